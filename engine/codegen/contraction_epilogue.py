"""The epilogue of a contraction: what is computed from the accumulators of a tile, and stored.

Where groups of columns are reduced or turned, the tile is seen as rows x groups x columns of a group (of a tile that
is one group wide, as rows x columns): every index, load and store follows from those axes. A small row reduction of an
input, such as partial sums that another kernel left, is one load of all its columns.

A tile of one group that is turned by half of it ends as its two halves: what one of them reads at the other is there in
registers, and no tile is moved or put together. It is cut where something first tells its columns apart, since Triton
keeps the layout of the accumulator, in which a row's sum is cheap, only up to the cut. Where registers hold all of its
loads, they come first: each one that waited for a sum or an exchange of threads would add its own latency.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from engine.codegen.contraction_facts import ContractionFacts
from engine.codegen.contraction_stores import parts_text, store_text
from engine.codegen.emit import Axis, Emitter, IndexSpace, Value, resolve
from engine.codegen.expressions import Operand, compute_dtype
from engine.codegen.frames import Frame, FrameError, broadcast_frame, whole_frame
from engine.codegen.tile_groups import group_reduction_text, half_roll_text, halves_text, merged_text
from engine.ir.column_groups import MAX_ROW_VALUES
from engine.ir.graph import DTYPE_BYTES
from engine.ir.ops import OP_CLASS, REDUCTIONS, OpClass

_REGISTERS = 128
"""So many registers of a thread hold accumulators and early loads; with more of them the compiler spills others."""


class EpilogueWriter:
    """Writes the epilogue of one set of tiles; `accumulators` are the names of the tiles, in the matmuls' order.

    `stores` says in how many parts TMA stores a tile, 0 through pointers.
    """

    def __init__(
        self,
        facts: ContractionFacts,
        emitter: Emitter,
        rows: Axis,
        columns: Axis,
        block: tuple[int, int],
        warps: int,
        stores: int = 0,
    ) -> None:
        self.facts = facts
        self.emitter = emitter
        self.rows = rows
        self.columns = columns
        self.block_m, self.block_n = block
        self.threads = 32 * warps
        self.stores = stores
        self.elements = facts.batch * facts.m * facts.n
        self.space = IndexSpace("", ())
        self.parts: tuple[IndexSpace, ...] = ()
        self.cut: dict[str, tuple[str, ...]] = {}
        self.even: dict[tuple[int, Frame], bool] = {}
        self.rank = 2

    def write(self, accumulators: Sequence[str]) -> None:
        """Write the lines behind the main loop."""
        if self.stores:
            self._write_stored(accumulators)
        elif self._is_halved() and self._registers() <= _REGISTERS:
            with self.emitter.loads_first():
                self._write(accumulators)
        else:
            self._write(accumulators)

    def _write(self, accumulators: Sequence[str]) -> None:
        facts, emitter = self.facts, self.emitter
        axes = self._axes()
        self.space = IndexSpace("output", (*reversed(axes), Axis("batch", facts.batch)))
        self.parts = self._halves() if self._is_halved() else (self.space,)
        frame = whole_frame(self.elements)
        names = frozenset(axis.name for axis in axes)
        for name, index in zip(accumulators, facts.matmuls, strict=True):
            emitter.fix(index, Value(self._shaped(name), facts.accumulator, names), frame, self.space.name)
        emitter.special = self._special
        for output in facts.outputs:
            grouped = output.spec.numel != self.elements
            stored = frame if not grouped else self._group_frame()
            for space in (self.space,) if grouped else self.parts:
                value = emitter.value(output.index, stored, space)
                emitter.store(output.position, output.spec, value, self._places(space, grouped=grouped))

    def _write_stored(self, accumulators: Sequence[str]) -> None:
        """The same where TMA stores the tile: each part is computed, and then stored while the next one is."""
        facts, emitter, width = self.facts, self.emitter, self.block_n // self.stores
        parts = []
        for name in accumulators:
            lines, names = parts_text(name, (self.block_m, self.block_n), self.stores)
            parts.append(names)
            for line in lines:
                emitter.line(line)
        starts = [f"tile_n * {self.block_n}" + (f" + {n * width}" if n else "") for n in range(self.stores)]
        columns = [self.columns]
        if self.stores > 1:
            edge = f" < {facts.n}" if self.columns.mask else ""
            columns = [Axis(name, facts.n, edge and name + edge) for name in (f"cols{n}" for n in range(self.stores))]
        batch = Axis("batch", facts.batch)
        self.parts = tuple(IndexSpace(f"output {axis.name}", (axis, self.rows, batch)) for axis in columns)
        emitter.special = self._special
        frame = whole_frame(self.elements)
        for number, (space, axis, start) in enumerate(zip(self.parts, columns, starts, strict=True)):
            if facts.computes and self.stores > 1:
                emitter.line(f"{axis.name} = {start} + tl.arange(0, {width})[None, :]")
            for names, index in zip(parts, facts.matmuls, strict=True):
                held = Value(names[number], facts.accumulator, frozenset({self.rows.name, axis.name}))
                emitter.fix(index, held, frame, space.name)
            for output in facts.outputs:
                value = emitter.value(output.index, frame, space)
                text = self._tile_text(value, output.spec.dtype, space)
                emitter.line(store_text(facts, output, text, (f"tile_m * {self.block_m}", start)))

    def _registers(self) -> int:
        """How many registers of a thread hold the accumulators and all that is loaded for each of their elements."""
        facts = self.facts
        ops = facts.body.ops
        stack, seen = [output.index for output in facts.outputs], set[int]()
        while stack:
            index = stack.pop()
            if index not in seen and ops[index].kind != "matmul":
                seen.add(index)
                stack += ops[index].inputs
        specs = [ops[index].out for index in seen if ops[index].kind == "input"]
        loaded = sum(spec.element_bytes for spec in specs if spec.numel >= facts.m * facts.group)
        held = DTYPE_BYTES[facts.accumulator] * (1 + len(facts.siblings))
        return self.block_m * self.block_n * (held + loaded) // (4 * self.threads)

    def _is_halved(self) -> bool:
        """Whether a tile is one group, and turned by half of it."""
        kinds = {self.facts.body.ops[index].kind for index in self.facts.computed}
        return self.block_n == self.facts.group and "roll" in kinds

    def _halves(self) -> tuple[IndexSpace, ...]:
        """The halves of a tile of one group, each a space that has a part of the group's columns."""
        lane, *outer = self.space.axes
        half = lane.extent // 2
        self.emitter.line(f"low = tl.arange(0, {half})[None, :]")
        self.emitter.line(f"high = {half} + tl.arange(0, {half})[None, :]")
        low, high = replace(lane, name="low", span=(0, half)), replace(lane, name="high", span=(half, lane.extent))
        return tuple(IndexSpace(axis.name, (axis, *outer), self.space) for axis in (low, high))

    def _axes(self) -> tuple[Axis, ...]:
        """The axes of the tile, outermost first, written as indices where they aren't there yet."""
        facts, line = self.facts, self.emitter.line
        group = facts.group
        if not group:
            return self.rows, self.columns
        heads = facts.n // group
        if self.block_n == group:
            if not self._is_halved():
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

    def _places(self, space: IndexSpace, *, grouped: bool) -> list[tuple[Axis, int]]:
        """The axes that an output is stored along, each with its stride; of a group's result those above the group."""
        places: list[tuple[Axis, int]] = []
        stride = 1
        for axis in space.axes[1 if grouped else 0 : -1]:
            places.insert(0, (axis, stride))
            stride *= axis.extent
        return [(Axis("batch", self.facts.batch), stride), *places] if self.facts.batch > 1 else places

    def _group_frame(self) -> Frame:
        return whole_frame(self.elements // self.facts.group, self.facts.group)

    def _special(self, index: int, frame: Frame, space: IndexSpace) -> Value | None:
        """A reduction or a turn that this epilogue does its own way, and a cut of what is known of the whole tile; None
        for the others."""
        body = self.facts.body
        op = body.ops[index]
        if self.facts.group and space in self.parts and space != self.space and self._is_even(index, frame):
            return self._cut(index, frame, space)
        if op.kind in REDUCTIONS and op.out.numel == body.ops[op.inputs[0]].out.numel:
            return None
        if index in self.facts.computed and (op.kind in REDUCTIONS or op.kind == "roll"):
            return self._of_groups(index, frame, space)
        return self._row_sum(index, frame, space) if op.kind in REDUCTIONS else None

    def _is_even(self, index: int, frame: Frame) -> bool:
        """Whether nothing but the accumulators tells the columns of a group of this value apart."""
        if (index, frame) not in self.even:
            self.even[index, frame] = self._found_even(index, frame)
        return self.even[index, frame]

    def _found_even(self, index: int, frame: Frame) -> bool:
        body, group = self.facts.body, self.facts.group
        if all(digit.step >= group for digit in frame.digits):
            return True
        source, place = resolve(body, index, frame)
        op = body.ops[source]
        if op.kind in ("input", "matmul"):
            return op.kind == "matmul"
        if source != index:
            return self._is_even(source, place)
        if OP_CLASS[op.kind] is not OpClass.POINTWISE or not op.inputs:
            return False
        return all(self._is_even(i, broadcast_frame(frame, op.out.shape, body.ops[i].out.shape)) for i in op.inputs)

    def _cut(self, index: int, frame: Frame, space: IndexSpace) -> Value:
        """The part of a value of the whole tile."""
        value = self.emitter.value(index, frame, self.space)
        lane = self.space.axes[0].name
        if lane not in value.axes:
            return value
        if value.text not in self.cut:
            halves = tuple(f"{value.text}_{part.name}" for part in self.parts)
            text = self._tile_text(value, value.dtype, self.space)
            self.emitter.line(f"{', '.join(halves)} = {halves_text(text, self.block_m, self.block_n)}")
            self.cut[value.text] = halves
        text = self.cut[value.text][self.parts.index(space)]
        return Value(text, value.dtype, value.axes - {lane} | {space.axes[0].name})

    def _of_groups(self, index: int, frame: Frame, space: IndexSpace) -> Value:
        op = self.facts.body.ops[index]
        reduces = op.kind in REDUCTIONS
        expected = (self._group_frame(), (self.space,)) if reduces else (whole_frame(self.elements), self.parts)
        if frame != expected[0] or space not in expected[1]:
            raise FrameError(f"the groups of a {op.kind} are not those of neighbouring columns of the matmul")
        if reduces:
            return self._reduced(index)
        other = self.parts[len(self.parts) - 1 - self.parts.index(space)]
        inner = self.emitter.value(op.inputs[0], frame, other)
        here, there = space.axes[0].name, other.axes[0].name
        if there not in inner.axes or len(self.parts) > 1:
            return replace(inner, axes=frozenset(here if name == there else name for name in inner.axes))
        text = self._tile_text(inner, inner.dtype, space)
        return replace(inner, text=half_roll_text(text, self.block_m, self.block_n, self.facts.group))

    def _reduced(self, index: int) -> Value:
        """The reduction of each group; of halves what lies at the same place of both is put together first."""
        op = self.facts.body.ops[index]
        dtype = compute_dtype(op.out.dtype)
        frame = whole_frame(self.elements)
        spaces = (self.space,) if self._is_even(op.inputs[0], frame) else self.parts
        found = [(self.emitter.value(op.inputs[0], frame, space), space) for space in spaces]
        merged = merged_text(op.kind, [self._tile_text(value, dtype, space) for value, space in found])
        text = group_reduction_text(op.kind, merged, self.rank - 1, self.facts.group)
        lanes = {space.axes[0].name for space in spaces}
        return Value(text, dtype, frozenset().union(*(value.axes for value, _ in found)) - lanes)

    def _tile_text(self, value: Value, dtype: str, space: IndexSpace) -> str:
        """The value as a tile of the space's shape, also where it is one number a group, or one for all of them."""
        text = Operand(value.text, value.dtype, value.number).scalar(dtype)
        along = {axis.name for axis in space.axes[:-1]} - {"tile_n"}
        if along <= value.axes:
            return text
        columns = self.block_n if space == self.space else self.block_n // len(self.parts)
        group = self.facts.group
        shape = (self.block_m, columns) if self.rank == 2 else (self.block_m, self.block_n // group, group)
        return f"tl.broadcast_to({text}, {shape})"

    def _row_sum(self, index: int, frame: Frame, space: IndexSpace) -> Value:
        """The sum or mean of each row of a small value, one row of it a row of the product."""
        facts = self.facts
        op = facts.body.ops[index]
        rows = facts.batch * facts.m
        width = facts.body.ops[op.inputs[0]].out.numel // op.out.numel
        last = len(op.out.shape) - 1
        if op.kind not in ("sum", "mean") or tuple(op.attribute("axes")) != (last,) or width > MAX_ROW_VALUES:
            raise FrameError(f"only rows of up to {MAX_ROW_VALUES} values are summed beside a matmul")
        if op.out.numel != rows or frame != whole_frame(rows, facts.n) or space not in (self.space, *self.parts):
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
