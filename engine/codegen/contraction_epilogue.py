"""The epilogue of a contraction: what is computed from the accumulators of a tile, and stored.

Where groups of columns are reduced or turned, the tile is seen as rows x groups x columns of a group (of a tile that
is one group wide, as rows x columns): every index, load and store follows from those axes. A small row reduction of an
input, such as partial sums that another kernel left, is one load of all its columns.
"""

from __future__ import annotations

from collections.abc import Sequence

from engine.codegen.contraction_facts import ContractionFacts
from engine.codegen.emit import Axis, Emitter, IndexSpace, Value
from engine.codegen.expressions import Operand, compute_dtype
from engine.codegen.frames import Frame, FrameError, whole_frame
from engine.codegen.tile_groups import group_reduction_text, half_roll_text
from engine.ir.column_groups import MAX_ROW_VALUES
from engine.ir.ops import REDUCTIONS


class EpilogueWriter:
    """Writes the epilogue of one set of tiles; `accumulators` are the names of the tiles, in the matmuls' order."""

    def __init__(
        self, facts: ContractionFacts, emitter: Emitter, rows: Axis, columns: Axis, block: tuple[int, int]
    ) -> None:
        self.facts = facts
        self.emitter = emitter
        self.rows = rows
        self.columns = columns
        self.block_m, self.block_n = block
        self.elements = facts.batch * facts.m * facts.n
        self.space = IndexSpace("", ())
        self.rank = 2

    def write(self, accumulators: Sequence[str]) -> None:
        facts, emitter = self.facts, self.emitter
        axes = self._axes()
        self.space = IndexSpace("output", (*reversed(axes), Axis("batch", facts.batch)))
        frame = whole_frame(self.elements)
        names = frozenset(axis.name for axis in axes)
        for name, index in zip(accumulators, (facts.matmul, *(i for i, _ in facts.siblings)), strict=True):
            held = Value(self._shaped(name), facts.accumulator, names)
            emitter.fix(index, held, frame, self.space.name)
        emitter.special = self._special
        for output in facts.outputs:
            grouped = output.spec.numel != self.elements
            stored = frame if not grouped else self._group_frame()
            value = emitter.value(output.index, stored, self.space)
            emitter.store(output.position, output.spec, value, self._places(axes, grouped=grouped))

    def _axes(self) -> tuple[Axis, ...]:
        """The axes of the tile, outermost first, written as indices where they aren't there yet."""
        facts, line = self.facts, self.emitter.line
        group = facts.group
        if not group:
            return self.rows, self.columns
        heads = facts.n // group
        if self.block_n == group:
            line(f"lane = tl.arange(0, {group})[None, :]")
            return self.rows, Axis("tile_n", heads), Axis("lane", group)
        self.rank = 3
        count = self.block_n // group
        line(f"row = tile_m * {self.block_m} + tl.arange(0, {self.block_m})[:, None, None]")
        line(f"head = tile_n * {count} + tl.arange(0, {count})[None, :, None]")
        line(f"lane = tl.arange(0, {group})[None, None, :]")
        return (
            Axis("row", facts.m, f"row < {facts.m}" if self.rows.mask else ""),
            Axis("head", heads, f"head < {heads}" if self.columns.mask else ""),
            Axis("lane", group),
        )

    def _shaped(self, accumulator: str) -> str:
        if self.rank == 2:
            return accumulator
        group = self.facts.group
        name = f"{accumulator}_groups"
        shape = f"({self.block_m}, {self.block_n // group}, {group})"
        self.emitter.line(f"{name} = tl.reshape({accumulator}, {shape})")
        return name

    def _places(self, axes: Sequence[Axis], *, grouped: bool) -> list[tuple[Axis, int]]:
        """The axes that an output is stored along, each with its stride; of a group's result those above the group."""
        kept = axes[:-1] if grouped else axes
        places: list[tuple[Axis, int]] = []
        stride = 1
        for axis in reversed(kept):
            places.insert(0, (axis, stride))
            stride *= axis.extent
        return [(Axis("batch", self.facts.batch), stride), *places] if self.facts.batch > 1 else places

    def _group_frame(self) -> Frame:
        return whole_frame(self.elements // self.facts.group, self.facts.group)

    def _special(self, index: int, frame: Frame, space: IndexSpace) -> Value | None:
        """A reduction or a turn that this epilogue does its own way; None for the others."""
        body = self.facts.body
        op = body.ops[index]
        if op.kind in REDUCTIONS and op.out.numel == body.ops[op.inputs[0]].out.numel:
            return None
        if index in self.facts.computed and (op.kind in REDUCTIONS or op.kind == "roll"):
            return self._of_groups(index, frame, space)
        return self._row_sum(index, frame, space) if op.kind in REDUCTIONS else None

    def _of_groups(self, index: int, frame: Frame, space: IndexSpace) -> Value:
        facts = self.facts
        op = facts.body.ops[index]
        reduces = op.kind in REDUCTIONS
        if frame != (self._group_frame() if reduces else whole_frame(self.elements)) or space != self.space:
            raise FrameError(f"the groups of a {op.kind} are not those of neighbouring columns of the matmul")
        inner = self.emitter.value(op.inputs[0], whole_frame(self.elements), space)
        dtype = compute_dtype(op.out.dtype)
        text = Operand(inner.text, inner.dtype, inner.number).scalar(dtype)
        block = (self.block_m, self.block_n, facts.group)
        if not reduces:
            return Value(half_roll_text(text, *block), dtype, inner.axes)
        return Value(group_reduction_text(op.kind, text, *block), dtype, inner.axes - {"lane"})

    def _row_sum(self, index: int, frame: Frame, space: IndexSpace) -> Value:
        """The sum or mean of each row of a small value, one row of it a row of the product."""
        facts = self.facts
        op = facts.body.ops[index]
        rows = facts.batch * facts.m
        width = facts.body.ops[op.inputs[0]].out.numel // op.out.numel
        last = len(op.out.shape) - 1
        if op.kind not in ("sum", "mean") or tuple(op.attribute("axes")) != (last,) or width > MAX_ROW_VALUES:
            raise FrameError(f"only rows of up to {MAX_ROW_VALUES} values are summed beside a matmul")
        if op.out.numel != rows or frame != whole_frame(rows, facts.n) or space != self.space:
            raise FrameError(f"the rows of a {op.kind} are not those of the matmul")
        block = 1 << (width - 1).bit_length()
        place = "[None, :]" if self.rank == 2 else "[None, None, :]"
        name = self.emitter.name("part", f"tl.arange(0, {block}){place}", frozenset())
        mask = f"{name} < {width}" if block != width else ""
        row = space.axes[-2]
        inside = IndexSpace(self.emitter.space_name(), (Axis(name, width, mask), row, space.axes[-1]))
        inner = self.emitter.value(op.inputs[0], whole_frame(rows * width), inside)
        dtype = compute_dtype(op.out.dtype)
        text = Operand(inner.text, inner.dtype, inner.number).scalar(dtype)
        shape = (self.block_m, block) if self.rank == 2 else (self.block_m, 1, block)
        text = f"tl.where({mask}, {text}, 0.0)" if mask else text
        text = text if {name, row.name} <= inner.axes else f"tl.broadcast_to({text}, {shape})"
        total = f"tl.sum({text}, {self.rank - 1}, keep_dims=True)"
        return Value(total if op.kind == "sum" else f"{total} / {float(width)!r}", dtype, frozenset({row.name}))
