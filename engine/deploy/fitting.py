"""A recorded grouping for a program that computes the same, and names its inputs and outputs in another order.

Two captures of one program need not agree on order: torch.compile hands weights over in the order in which they are
read, torch.export as the module lists them. Graphs with equal canonical forms are one graph, and the numbers in that
form say which input is which.
"""

from __future__ import annotations

from dataclasses import replace

from engine.ir.graph import Graph
from engine.ir.plan import BufferView, Grouping
from engine.ir.structural_key import canonical_numbers, structural_key

PROGRAM = "program"


def program_key(graph: Graph) -> str:
    """Equal for graphs that compute the same, whatever the order of their ops, inputs and outputs."""
    return structural_key(PROGRAM, graph)


def fitted(grouping: Grouping, recorded: Graph, graph: Graph) -> Grouping | None:
    """The grouping of `recorded` with the inputs and outputs of `graph`, both of one `program_key`.

    None where an input lies at another offset, where one of the two has inputs that it doesn't read, or where the
    grouping prepares values of an input that is no weight of `graph`.
    """
    places = _places(recorded, graph)
    if places is None or len(grouping.outputs) != len(graph.outputs):
        return None
    specs, wanted = recorded.input_specs(), graph.input_specs()
    if any(specs[old] != wanted[new] for old, new in places.items()):
        return None
    inputs = range(len(specs))
    read = {view.buffer for step in grouping.prepared for view in step.arguments if view.buffer in inputs}
    if not {places[old] for old in read} <= set(graph.weights):
        return None
    return _moved(grouping, places, _outputs(recorded, graph))


def _places(recorded: Graph, graph: Graph) -> dict[int, int] | None:
    """For each input position of `recorded` that of `graph`."""
    if (recorded.ops, recorded.inputs) == (graph.ops, graph.inputs):
        return {position: position for position in range(len(graph.inputs))}
    old, new = canonical_numbers(recorded), canonical_numbers(graph)
    if len(recorded.inputs) != len(graph.inputs) or any(i not in old for i in recorded.inputs):
        return None
    by_number = {new[op]: position for position, op in enumerate(graph.inputs) if op in new}
    places = {position: by_number.get(old[op], -1) for position, op in enumerate(recorded.inputs)}
    return places if sorted(places.values()) == list(range(len(graph.inputs))) else None


def _outputs(recorded: Graph, graph: Graph) -> list[int]:
    """For each output of `graph` the position among those of `recorded`."""
    if (recorded.ops, recorded.outputs) == (graph.ops, graph.outputs):
        return list(range(len(graph.outputs)))
    old, new = canonical_numbers(recorded), canonical_numbers(graph)
    numbers = [old[op] for op in recorded.outputs]
    return [numbers.index(new[op]) for op in graph.outputs]


def _moved(grouping: Grouping, places: dict[int, int], outputs: list[int]) -> Grouping:
    if all(old == new for old, new in places.items()) and outputs == sorted(outputs):
        return grouping
    buffers = list(grouping.buffers)
    for old, new in places.items():
        buffers[new] = grouping.buffers[old]

    def view(one: BufferView) -> BufferView:
        return BufferView(places.get(one.buffer, one.buffer), one.spec)

    return Grouping(
        buffers=tuple(buffers),
        calls=tuple(replace(call, arguments=tuple(map(view, call.arguments))) for call in grouping.calls),
        outputs=tuple(view(grouping.outputs[position]) for position in outputs),
        decisions=grouping.decisions,
        prepared=tuple(replace(step, arguments=tuple(map(view, step.arguments))) for step in grouping.prepared),
    )
