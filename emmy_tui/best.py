"""Which variant is a kernel's best: the one that would deploy, and where it stands in the search tree.

The search goes by ranking times and a deployment by deploy times, which order candidates a little differently. The
star, the curve's text, Selected and Why mean what deploys; where the search's own best is another, they name both.
"""

from __future__ import annotations

from emmy_tui import format as fmt
from emmy_tui.knob_words import BadKnobs, long_words, parse_knobs
from engine.snapshot import DeployTime, KernelRow, NodeRow, Snapshot


def node_path(snapshot: Snapshot, name: str) -> list[NodeRow]:
    """Rows from the root down to a node."""
    rows: list[NodeRow] = []
    row = snapshot.nodes.get(name)
    while row is not None:
        rows.append(row)
        row = snapshot.nodes.get(row.parent)
    return rows[::-1]


def best_path(snapshot: Snapshot, root: str) -> list[str]:
    """Nodes from a root down to its kernel's best variant, as far as the tree holds it; in the outer tree to the
    grouping with the smallest sum."""
    row = snapshot.nodes.get(root)
    if row is None or row.best_us is None:
        return []
    kernel = snapshot.kernels.get(row.kernel)
    if kernel is None:
        return best_sum_path(snapshot, root)
    return leaf_path(snapshot, root, kernel.best_schedule, kernel.best_node)


def leaf_path(snapshot: Snapshot, root: str, schedule: str, leaf: str = "") -> list[str]:
    """Nodes from a root down to a candidate: to its leaf, else along the options that its schedule (words) takes."""
    names = [row.node for row in node_path(snapshot, leaf)]
    if names and names[0] == root:
        return names
    words = set(schedule.split(" "))
    row = snapshot.nodes[root]
    names = [root]
    while row.children:
        taken = (snapshot.nodes[child] for child in row.children)
        found = next((child for child in taken if child.label and words.issuperset(child.label.split(" "))), None)
        if found is None:
            break
        names.append(found.node)
        row = found
    return names


def leaf_of(snapshot: Snapshot, kernel: str, schedule: str) -> str:
    """The tree node of a kernel's candidate, else the last branch on the way to it; "" where there is no tree."""
    root = next((name for name in snapshot.roots if snapshot.nodes[name].kernel == kernel), "")
    return leaf_path(snapshot, root, schedule)[-1] if root else ""


def best_sum_path(snapshot: Snapshot, root: str) -> list[str]:
    """Nodes from a root down to the best number that the search itself went by."""
    names: list[str] = []
    row = snapshot.nodes.get(root)
    while row is not None and row.best_us is not None:
        names.append(row.node)
        timed = [child for name in row.children if (child := snapshot.nodes[name]).best_us is not None]
        row = min(timed, key=lambda child: child.best_us or 0.0, default=None)
    return names


def deploy_below(snapshot: Snapshot, node: NodeRow) -> tuple[DeployTime, int, int] | None:
    """The best deploy time at or below a node, its place among the kernel's, and how many there are; None without."""
    kernel = snapshot.kernels.get(node.kernel)
    places = kernel.deploy_places if kernel is not None else []
    for place, one in enumerate(places, 1):
        if any(row is node for row in node_path(snapshot, one.node)) or _takes_all(snapshot, node, one.schedule):
            return one, place, len(places)
    return None


def _takes_all(snapshot: Snapshot, node: NodeRow, schedule: str) -> bool:
    """Whether a schedule lies at or below the node, by the options that lead to it."""
    words = set(schedule.split(" "))
    return all(words.issuperset(row.label.split(" ")) for row in node_path(snapshot, node.node)[1:])


def deploy_text(snapshot: Snapshot, node: NodeRow) -> str:
    """The best deploy time at or below a node beside what deploys; "" where none was taken."""
    found = deploy_below(snapshot, node)
    if found is None:
        return ""
    one, place, among = found
    kernel = snapshot.kernels[node.kernel]
    beside = (
        "what deploys" if place == 1 else f"{ordinal(place)} of {among}; what deploys takes {fmt.us(kernel.deploy_us)}"
    )
    return f"{fmt.us(one.us)} us, {beside}"


def two_bests(kernel: KernelRow) -> str:
    """A sentence where the search's best by ranking time is another variant than what deploys; else ""."""
    if kernel.deployed is None or not kernel.ranked_schedule or kernel.best_schedule == kernel.ranked_schedule:
        return ""
    places = kernel.deploy_places
    place = next((n for n, one in enumerate(places, 1) if one.schedule == kernel.ranked_schedule), None)
    by_deploy = "without a deploy time" if place is None else f"{ordinal(place)} of {len(places)} by deploy time"
    ranked = f"{fmt.us(kernel.best_us)} us, {by_deploy}: {_in_order(kernel.ranked_schedule)}"
    return f"By ranking time the search's best is another, {ranked}"


def _in_order(schedule: str) -> str:
    """A schedule's words in the order of the forks."""
    try:
        return long_words(parse_knobs(schedule).as_dict())
    except BadKnobs:
        return schedule


def ordinal(number: int) -> str:
    """1st, 2nd, 3rd, 11th, 21st."""
    ending = "th" if number % 100 in (11, 12, 13) else {1: "st", 2: "nd", 3: "rd"}.get(number % 10, "th")
    return f"{number}{ending}"
