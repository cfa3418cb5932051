"""Pointwise kernels: any number of inputs and outputs over one flat output space, BLOCK elements a program."""

from __future__ import annotations

from dataclasses import dataclass

from engine.codegen.emit import WIDE, Axis, Emitter, IndexSpace
from engine.codegen.expressions import Unrenderable
from engine.codegen.family import Rule, Unsupported, Values, fork_over
from engine.codegen.frames import FrameError, whole_frame
from engine.codegen.module_text import module_text, pointer_arguments
from engine.codegen.outputs import Output, stored_outputs
from engine.codegen.source import KernelSource
from engine.ir.graph import Graph
from engine.ir.kernel import Kernel
from engine.ir.ops import REDUCTIONS
from engine.ir.placement import placed
from engine.knobs import KNOBS
from engine.vocabulary import Fork, KnobValue, Schedule, Target

ENTRY = "pointwise"
TILE_ELEMENTS = 2**20
_MOST_OF_A_THREAD = 64
_SMALLEST: dict[str, KnobValue] = {"BLOCK": 128, "EVICTION": "", "NUM_WARPS": 1}


@dataclass(frozen=True, slots=True)
class PointwiseFacts:
    """`numel` elements of every output."""

    body: Graph
    numel: int
    outputs: tuple[Output, ...]


def pointwise_facts(body: Graph) -> PointwiseFacts:
    """Read the body. Raises Unsupported with a sentence when it is no pointwise kernel."""
    body = placed(body)
    for op in body.ops:
        if op.kind == "matmul" or (op.kind in REDUCTIONS and op.out.numel != body.ops[op.inputs[0]].out.numel):
            raise Unsupported(f"A pointwise kernel holds no {op.kind}.")
    outputs = stored_outputs(body)
    sizes = {output.spec.numel for output in outputs}
    if len(sizes) != 1:
        raise Unsupported("The outputs of a pointwise kernel have one size.")
    numel = sizes.pop()
    if numel == 0:
        raise Unsupported("The output is empty.")
    return PointwiseFacts(body, numel, outputs)


class Pointwise:
    """Every program handles BLOCK neighbouring elements of the flat output."""

    name = "pointwise"
    knobs: tuple[str, ...] = ("BLOCK", "EVICTION", "NUM_WARPS")

    def declined_because(self, body: Graph) -> str | None:
        try:
            _source(pointwise_facts(body), _SMALLEST)
        except (Unsupported, FrameError, Unrenderable) as reason:
            return str(reason)
        return None

    def forks(self, kernel: Kernel, target: Target) -> tuple[Fork, ...]:
        numel = pointwise_facts(kernel.body).numel
        smallest = int(KNOBS["BLOCK"].values[0])
        blocks = tuple(v for v in KNOBS["BLOCK"].values if int(v) < 2 * max(numel, smallest))
        return (
            fork_over(("BLOCK", blocks)),
            fork_over(("EVICTION", KNOBS["EVICTION"].values)),
            fork_over(("NUM_WARPS", (1, 2, 4, 8, 16))),
        )

    def rules(self, kernel: Kernel, target: Target) -> tuple[Rule, ...]:
        return _RULES

    def render(self, kernel: Kernel, schedule: Schedule, target: Target) -> KernelSource:
        return _source(pointwise_facts(kernel.body), schedule.as_dict())


def _block_size(v: Values) -> str | None:
    if int(v["BLOCK"]) < 1:
        return f"BLOCK={v['BLOCK']} leaves a pointwise kernel without elements."
    if int(v["BLOCK"]) > TILE_ELEMENTS:
        return f"BLOCK={v['BLOCK']} is more than the {TILE_ELEMENTS} elements that Triton allows a block."
    return None


def _thread_load(v: Values) -> str | None:
    each = int(v["BLOCK"]) // (32 * int(v["NUM_WARPS"]))
    if each > _MOST_OF_A_THREAD:
        return f"{each} elements a thread don't fit its registers."
    return f"BLOCK={v['BLOCK']} is less than one element a thread." if each < 1 else None


_RULES = (
    Rule(("BLOCK",), _block_size),
    Rule(("BLOCK", "NUM_WARPS"), _thread_load, law=False),
)


def _source(facts: PointwiseFacts, values: Values) -> KernelSource:
    block = int(values["BLOCK"])
    emitter = Emitter(facts.body)
    emitter.eviction = str(values["EVICTION"])
    mask = f"index < {facts.numel}" if facts.numel % block else ""
    axis = Axis("index", facts.numel, mask)
    space = IndexSpace("element", (axis,))
    program = "tl.program_id(0).to(tl.int64)" if facts.numel >= WIDE - block else "tl.program_id(0)"
    emitter.line(f"index = {program} * {block} + tl.arange(0, {block})")
    frame = whole_frame(facts.numel)
    for output in facts.outputs:
        emitter.store(output.position, output.spec, emitter.value(output.index, frame, space), [(axis, 1)])
    arguments = pointer_arguments(facts.body)
    grid = (-(-facts.numel // block), 1, 1)
    return KernelSource(
        module_text(ENTRY, arguments, emitter.lines), ENTRY, arguments, grid, int(values["NUM_WARPS"]), 1
    )
