"""The text of a rowwise kernel: the whole row in registers, or a loop over the columns for each level of reductions."""

from __future__ import annotations

from contextlib import ExitStack

from engine.codegen.emit import Axis, Emitter, IndexSpace, Value
from engine.codegen.expressions import TRITON_TYPE, Operand, compute_dtype
from engine.codegen.family import Values
from engine.codegen.frames import whole_frame
from engine.codegen.module_text import module_text, pointer_arguments
from engine.codegen.outputs import Output
from engine.codegen.rowwise_facts import RowwiseFacts
from engine.codegen.source import KernelSource
from engine.ir.graph import Op
from engine.ir.shapes import FLOATS
from engine.vocabulary import Target

ENTRY = "rowwise"


def rowwise_source(facts: RowwiseFacts, values: Values, target: Target) -> KernelSource:
    """The source of a legal schedule's `values`."""
    writer = _Writer(facts, values)
    tiles = -(-facts.rows // int(values["ROWS"]))
    grid = min(tiles, target.multiprocessors) if values["PERSISTENT"] else tiles
    lines = writer.write(tiles, grid)
    arguments = pointer_arguments(facts.body)
    return KernelSource(
        module_text(ENTRY, arguments, lines),
        ENTRY,
        arguments,
        (grid, 1, 1),
        int(values["NUM_WARPS"]),
        int(values["NUM_STAGES"]),
    )


class _Writer:
    def __init__(self, facts: RowwiseFacts, values: Values) -> None:
        self.facts = facts
        self.block_rows = int(values["ROWS"])
        self.block_columns = int(values["COLUMNS"])
        self.persistent = bool(values["PERSISTENT"])
        self.stages = int(values["NUM_STAGES"])
        self.looped = self.block_columns < facts.columns
        self.row_frame = whole_frame(facts.rows, facts.columns)
        self.frame = whole_frame(facts.rows * facts.columns)
        ragged_rows = facts.rows % self.block_rows != 0
        self.ragged = facts.columns % self.block_columns != 0
        start = "start" if self.looped else ""
        mask = f"cols < {facts.columns}{' - start' if self.looped else ''}" if self.ragged else ""
        self.columns = Axis("cols", facts.columns, mask, start, start)
        self.rows = Axis("rows", facts.rows, f"rows < {facts.rows}" if ragged_rows else "")
        self.space = IndexSpace("element", (self.columns, self.rows))
        self.emitter = Emitter(facts.body)
        self.emitter.eviction = str(values["EVICTION"])
        self.column_axes = frozenset({"cols", *([start] if start else [])})

    def write(self, tiles: int, programs: int) -> list[str]:
        emitter = self.emitter
        emitter.line(f"cols = tl.arange(0, {self.block_columns})[None, :]")
        with ExitStack() as stack:
            tile = "tl.program_id(0)"
            if self.persistent:
                hint = f", num_stages={self.stages}" if self.stages > 1 and not self.looped else ""
                stack.enter_context(emitter.block(f"for tile in tl.range({tile}, {tiles}, {programs}{hint}):", ""))
                tile = "tile"
            wide = self.facts.rows >= 2**31
            index = f"{tile}.to(tl.int64)" if wide else tile
            first = index if self.block_rows == 1 else f"{index} * {self.block_rows}"
            emitter.line(f"rows = {first} + tl.arange(0, {self.block_rows})[:, None]")
            if self.looped:
                self._write_loops()
            else:
                self._write_whole_row()
            for output in self.facts.row_outputs:
                self._store(output, row=True)
        return emitter.lines

    def _write_whole_row(self) -> None:
        for level in self.facts.levels:
            for index in level:
                value = self._operand(index)
                self.emitter.line(f"r{index} = {self._reduced(index, self._masked(index, value))}")
                self._fix(index)
        for output in self.facts.wide_outputs:
            self._store(output, row=False)

    def _write_loops(self) -> None:
        depth = self.facts.depth
        for level, reductions in enumerate((*self.facts.levels, ())):
            stores = [o for o in self.facts.wide_outputs if depth[o.index] == level]
            if not reductions and not stores:
                continue
            for index in reductions:
                fill = self._identity(self.facts.body.ops[index])
                dtype = compute_dtype(self.facts.body.ops[index].out.dtype)
                shape = f"({self.block_rows}, {self.block_columns})"
                self.emitter.line(f"acc{index} = tl.full({shape}, {fill}, {TRITON_TYPE[dtype]})")
            hint = f", num_stages={self.stages}" if self.stages > 1 else ""
            header = f"for start in tl.range(0, {self.facts.columns}, {self.block_columns}{hint}):"
            with self.emitter.block(header, "start"):
                for index in reductions:
                    value = self._masked(index, self._operand(index))
                    self.emitter.line(f"acc{index} = {self._combined(index, f'acc{index}', value)}")
                for output in stores:
                    self._store(output, row=False)
            for index in reductions:
                self.emitter.line(f"r{index} = {self._reduced(index, f'acc{index}')}")
                self._fix(index)

    def _fix(self, index: int) -> None:
        dtype = compute_dtype(self.facts.body.ops[index].out.dtype)
        self.emitter.fix(index, Value(f"r{index}", dtype, frozenset({"rows"})), self.row_frame)

    def _operand(self, index: int) -> str:
        """The reduced value in the reduction's own register dtype, as wide as the block."""
        op = self.facts.body.ops[index]
        dtype = compute_dtype(op.out.dtype)
        value = self.emitter.value(op.inputs[0], self.frame, self.space)
        text = Operand(value.text, value.dtype, value.number).scalar(dtype)
        if value.axes >= {"rows", "cols"} or (self.block_rows == 1 and "cols" in value.axes):
            return text
        return f"tl.broadcast_to({text}, ({self.block_rows}, {self.block_columns}))"

    def _masked(self, index: int, text: str) -> str:
        """Columns past the end hold the reduction's identity, whatever was computed for them."""
        if not self.ragged:
            return text
        return f"tl.where({self.columns.mask}, {text}, {self._identity(self.facts.body.ops[index])})"

    def _identity(self, op: Op) -> str:
        dtype = compute_dtype(op.out.dtype)
        if op.kind in ("sum", "mean"):
            return "0.0" if dtype in FLOATS else "0"
        if dtype in FLOATS:
            return 'float("-inf")' if op.kind == "amax" else 'float("inf")'
        low, high = _INTEGER_RANGE[dtype]
        return str(low if op.kind == "amax" else high)

    def _combined(self, index: int, left: str, right: str) -> str:
        op = self.facts.body.ops[index]
        if op.kind in ("sum", "mean"):
            return f"{left} + {right}"
        name = "maximum" if op.kind == "amax" else "minimum"
        nan = ", propagate_nan=tl.PropagateNan.ALL" if compute_dtype(op.out.dtype) in FLOATS else ""
        return f"tl.{name}({left}, {right}{nan})"

    def _reduced(self, index: int, text: str) -> str:
        op = self.facts.body.ops[index]
        dtype = compute_dtype(op.out.dtype)
        if op.kind == "sum":
            return f"tl.sum({text}, 1, keep_dims=True)"
        if op.kind == "mean":
            return f"tl.sum({text}, 1, keep_dims=True) / {float(self.facts.columns)!r}"
        if dtype in FLOATS:
            return f"tl.reduce({text}, 1, {'maximum_nan' if op.kind == 'amax' else 'minimum_nan'}, keep_dims=True)"
        return f"tl.{'max' if op.kind == 'amax' else 'min'}({text}, 1, keep_dims=True)"

    def _store(self, output: Output, *, row: bool) -> None:
        frame = self.row_frame if row else self.frame
        value = self.emitter.value(output.index, frame, self.space)
        axes = [(self.rows, 1)] if row else [(self.rows, self.facts.columns), (self.columns, 1)]
        self.emitter.store(output.position, output.spec, value, axes)


_INTEGER_RANGE = {
    "int64": (-(2**63), 2**63 - 1),
    "int32": (-(2**31), 2**31 - 1),
    "int16": (-(2**15), 2**15 - 1),
    "int8": (-128, 127),
    "uint8": (0, 255),
}
