"""Whether a kernel or a grouping says only possible things: the door for whatever a database or a pipe holds."""

from __future__ import annotations

from engine.ir.foreign import FOREIGN, NO_BODY, Identity
from engine.ir.graph import Graph, TensorSpec
from engine.ir.kernel import Kernel
from engine.ir.ops import OP_CLASS, OpClass
from engine.ir.plan import BufferView, Grouping, KernelCall, Preparation
from engine.ir.shapes import GraphError
from engine.ir.siblings import MAX_SIBLINGS
from engine.ir.verify import verify, verify_spec

FAMILIES = ("contraction", "attention", "rowwise", "pointwise", "extern")


def verify_kernel(kernel: Kernel) -> Kernel:
    """Return the kernel, or raise GraphError: unknown family, or a body that the family doesn't cover."""
    verify_body(kernel.family, verify(kernel.body), kernel.foreign)
    return kernel


def verify_body(family: str, body: Graph, foreign: Identity | None = None) -> None:
    """Raise GraphError unless the body's ops are those of the family, and only a foreign kernel has an identity."""
    if family == FOREIGN and foreign is not None:
        if body != NO_BODY or not foreign.legal:
            raise GraphError("a foreign kernel has no body, and names that can be printed")
        return
    if foreign is not None:
        raise GraphError(f"a {str(family)[:40]} kernel has no identity but its body")
    if family not in FAMILIES:
        raise GraphError(f"unknown kernel family {str(family)[:40]!r}")
    classes = [OP_CLASS[op.kind] for op in body.ops]
    contractions, reductions = classes.count(OpClass.CONTRACTION), classes.count(OpClass.REDUCTION)
    # A reduction of single elements is a copy, which any kernel may hold.
    wide = sum(
        kind is OpClass.REDUCTION and body.ops[op.inputs[0]].out.numel != op.out.numel
        for kind, op in zip(classes, body.ops, strict=True)
    )
    calls = classes.count(OpClass.EXTERN)
    fits = {
        "contraction": 1 <= contractions <= MAX_SIBLINGS,
        "attention": contractions == 2 and reductions >= 2,
        "rowwise": contractions == 0 and reductions > 0,
        "pointwise": contractions == 0 and wide == 0,
        "extern": contractions == 0 and reductions == 0,
    }
    if calls != (family == "extern"):
        raise GraphError(f"a {family} kernel can't hold {calls} calls of ATen ops")
    if not fits[family]:
        raise GraphError(f"a {family} kernel can't hold {contractions} contractions and {reductions} reductions")


def verify_grouping(grouping: Grouping) -> Grouping:
    """Return the grouping, or raise GraphError: a view past its buffer, a spec that isn't the kernel's, a buffer
    that is read before it is written, or written twice."""
    for spec in grouping.buffers:
        verify_spec(spec)
    steps: list[tuple[str, KernelCall | Preparation, Graph]] = [
        *((f"preparation {i}", step, step.body) for i, step in enumerate(grouping.prepared)),
        *((f"call {i}", call, call.kernel.body) for i, call in enumerate(grouping.calls)),
    ]
    ready = set(range(len(grouping.buffers))) - {result for _, step, _ in steps for result in step.results}
    for name, step, body in steps:
        try:
            _verify_step(grouping, step, body, ready)
        except GraphError as error:
            raise GraphError(f"{name}: {error}") from None
        ready.update(step.results)
    if not grouping.outputs:
        raise GraphError("a grouping has at least one output")
    for view in grouping.outputs:
        _verify_buffer_view(grouping, view, ready)
    return grouping


def _verify_step(grouping: Grouping, call: KernelCall | Preparation, body: Graph, ready: set[int]) -> None:
    """Raise GraphError unless the step's arguments are what its body reads, and its results what the body gives."""
    wanted = body.input_specs()
    if len(call.arguments) != len(wanted) or len(call.results) != len(body.outputs):
        raise GraphError("has more or fewer arguments or results than its kernel")
    for view, spec in zip(call.arguments, wanted, strict=True):
        _verify_buffer_view(grouping, view, ready)
        if view.spec != spec:
            raise GraphError("passes a tensor that isn't the one its kernel reads")
    for buffer, spec in zip(call.results, body.output_specs(), strict=True):
        if not 0 <= buffer < len(grouping.buffers) or buffer in ready:
            raise GraphError("writes a buffer that doesn't exist or is written already")
        if grouping.buffers[buffer] != TensorSpec.contiguous(spec.shape, spec.dtype):
            raise GraphError("writes a buffer of another shape or dtype")
    if len(set(call.results)) != len(call.results):
        raise GraphError("writes one buffer twice")


def _verify_buffer_view(grouping: Grouping, view: BufferView, ready: set[int]) -> None:
    verify_spec(view.spec)
    if view.buffer not in ready:
        raise GraphError("reads a buffer that doesn't exist or isn't written yet")
    buffer = grouping.buffers[view.buffer]
    if view.spec.dtype != buffer.dtype or view.spec.storage_elements > buffer.storage_elements:
        raise GraphError("reads past a buffer, or reads it as another dtype")
