"""The actions that steer the engine: skip, patience, tune again, and the list of what was asked."""

from __future__ import annotations

from emmy_tui.action import LIVE, PINS, VARIANTS, Action, Group, Now, because, on_tabs
from emmy_tui.row_actions import no_row, why_no_write
from emmy_tui.source import Mode


def no_run(now: Now) -> str:
    return f"No run is on; {now.key('start')} starts one"


def _why_not_steered(now: Now) -> str:
    if now.mode is Mode.BROWSE:
        return "This database is only looked at; a run is steered where it was started"
    return no_run(now)


def _may_retune(now: Now) -> bool:
    return now.writable and (now.items > 0 if now.tab == PINS else now.kernels > 0)


def _why_no_retune(now: Now) -> str:
    return why_no_write(now) or (no_row(now) if now.tab == PINS else "No kernel is known yet")


def _may_retune_stale(now: Now) -> bool:
    return now.writable and now.row.pins and now.row.stale


def _why_nothing_stale(now: Now) -> str:
    if reason := why_no_write(now):
        return reason
    calm = f"No pin is stale: none was overtaken, none is of other versions; {now.key('measure')} measures a row's"
    return calm if now.row.pins else f"Nothing is pinned, so no pin is stale; {now.key('pin')} pins"


def _may_measure(now: Now) -> bool:
    return _may_retune(now) and now.row.schedule


def _why_no_measure(now: Now) -> str:
    if _may_retune(now):
        return f"{now.row.name or 'This kernel'} has no schedule to measure, as a library runs it"
    return _why_no_retune(now)


STEER_ACTIONS: tuple[Action, ...] = (
    on_tabs(
        (LIVE,),
        "skip",
        ("x",),
        "Skip",
        "End this kernel's search with what it has; the run goes on",
        Group.RUN,
        lambda now: "skip" in now.capabilities,
        _why_not_steered,
        footer=8,
    ),
    on_tabs(
        (LIVE,),
        "more_patience",
        ("plus",),
        "Patience",
        "More patience for this kernel, by 10",
        Group.RUN,
        lambda now: "patience" in now.capabilities,
        _why_not_steered,
        footer=22,
    ),
    on_tabs(
        (LIVE,),
        "less_patience",
        ("minus",),
        "Less",
        "Less patience for this kernel, by 10",
        Group.RUN,
        lambda now: "patience" in now.capabilities,
        _why_not_steered,
    ),
    on_tabs(
        (LIVE,),
        "select_kernel",
        ("m",),
        "Mark",
        "Mark the kernel under the cursor, to tune several again",
        Group.RUN,
        lambda now: now.focus == "kernels" and _may_retune(now),
        lambda now: (
            _why_no_retune(now) if not _may_retune(now) else f"Focus the kernels first: {now.key('focus_next_panel')}"
        ),
        footer=16,
    ),
    on_tabs(
        (LIVE, VARIANTS, PINS),
        "retune",
        ("r",),
        "Re-tune",
        "Tune the marked kernels, or this one, again from the database alone",
        Group.RUN,
        _may_retune,
        _why_no_retune,
        footer=15,
    ),
    on_tabs(
        (PINS,),
        "retune_stale",
        ("R",),
        "All stale",
        "Tune every kernel again whose pin is stale: something faster came since, or other versions",
        Group.RUN,
        _may_retune_stale,
        _why_nothing_stale,
        footer=15,
    ),
    on_tabs(
        (PINS,),
        "measure",
        ("m",),
        "Measure",
        "Measure these knob values now, and nothing else",
        Group.RUN,
        _may_measure,
        _why_no_measure,
        footer=10,
    ),
    on_tabs(
        (LIVE,),
        "plan",
        ("o",),
        "Graph",
        "The best grouping's launches with their edges, in the tree's place",
        Group.VIEW,
        footer=19,
    ),
    on_tabs(
        (LIVE,),
        "health",
        ("H",),
        "Health",
        "Workers, compiles, GPUs and what was taken down, in the tree's place",
        Group.VIEW,
        footer=19,
    ),
    on_tabs(
        (LIVE,),
        "close_middle",
        ("escape",),
        "Tree",
        "The search tree again, in place of graph or health",
        Group.VIEW,
        lambda now: now.middle != "tree",
        because("The search tree is in its place"),
        footer=3,
    ),
    on_tabs(
        (LIVE,),
        "kill_compile",
        ("K",),
        "End compile",
        "End the compile under the cursor; its candidate fails",
        Group.RUN,
        lambda now: now.compiles > 0 and "stop" in now.capabilities,
        because("Nothing compiles at the moment"),
        footer=7,
    ),
    on_tabs(
        (LIVE, PINS),
        "acts",
        ("A",),
        "Queue",
        "What waits to be tuned again, and who asked for what",
        Group.RUN,
        footer=23,
    ),
)
