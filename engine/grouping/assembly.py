"""A partition written out as a plan: kernels in an order that respects what they read, and the buffers between them."""

from __future__ import annotations

from engine.grouping.body import write_body
from engine.grouping.labels import kernel_label
from engine.grouping.partition import Partition, family_of
from engine.ir.graph import TensorSpec
from engine.ir.kernel import Kernel
from engine.ir.plan import BufferView, Grouping, KernelCall, Preparation
from engine.ir.shapes import GraphError
from engine.vocabulary import Option


def assemble_plan(
    partition: Partition, decisions: tuple[Option, ...], prepared: tuple[Preparation, ...] = ()
) -> Grouping:
    """The grouping of a partition, whose last inputs are what is `prepared`. Raises GraphError if an op of it fits no
    kernel family."""
    facts = partition.facts
    graph = facts.graph
    inlined = partition.members(*partition.inlined)
    buffers: list[TensorSpec] = list(graph.input_specs())
    where = {op: position for position, op in enumerate(graph.inputs)}
    calls: list[KernelCall] = []
    for atom in _launch_order(partition):
        members = partition.members(atom)
        family = family_of(facts, members)
        if family is None:
            kind = graph.ops[min(members)].kind
            raise GraphError(f"op {min(members)} ({kind}) is no kernel of its own: reductions run over the last axes")
        body = write_body(facts, members, inlined)
        arguments = tuple(BufferView(where[root], spec) for root, spec in body.reads)
        for op in body.outputs:
            where[op] = len(buffers)
            buffers.append(TensorSpec.contiguous(facts.shape(op), graph.ops[op].out.dtype))
        kernel = Kernel(family, body.graph, kernel_label(family, body.graph))
        calls.append(KernelCall(kernel, arguments, tuple(where[op] for op in body.outputs)))
    outputs = tuple(BufferView(where[facts.root[i]], graph.ops[i].out) for i in graph.outputs)
    return Grouping(tuple(buffers), tuple(calls), outputs, decisions, prepared)


def _launch_order(partition: Partition) -> list[int]:
    """Atoms that are kernels, each after those it reads; ties go to the atom whose first op comes first."""
    atoms = sorted({a for a in partition.atom_of if a >= 0})
    waiting = {atom: set(partition.producers(atom)) for atom in atoms}
    order: list[int] = []
    while waiting:
        ready = min(atom for atom, producers in waiting.items() if not producers)
        del waiting[ready]
        for producers in waiting.values():
            producers.discard(ready)
        order.append(ready)
    return [atom for atom in order if atom not in partition.inlined]
