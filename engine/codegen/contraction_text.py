"""The text of a contraction kernel: raster, main loop with pointer or TMA loads, epilogue.

Of products that lie side by side the tile's number says which one a program computes.

A prologue makes a new tile before it is multiplied, and a tile that is multiplied is never computed on elsewhere:
Triton 3.6 miscompiles a pipelined loop in which one loaded tile feeds both a wgmma and elementwise code.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from contextlib import ExitStack

from engine.codegen.contraction_epilogue import EpilogueWriter
from engine.codegen.contraction_facts import ContractionFacts, Operand, operand_frame, space_of
from engine.codegen.contraction_stores import parts_of, store_argument
from engine.codegen.emit import Axis, Emitter
from engine.codegen.expressions import TRITON_TYPE, cast_text
from engine.codegen.expressions import Operand as Scalar
from engine.codegen.family import Values
from engine.codegen.frames import index_text
from engine.codegen.module_text import descriptor_type, module_text, pointer_arguments
from engine.codegen.side_by_side import Product, side_by_side
from engine.codegen.source import Argument, KernelSource
from engine.codegen.vector_rules import is_vector
from engine.vocabulary import Target

ENTRY = "contraction"


def contraction_source(facts: ContractionFacts, values: Values, target: Target) -> KernelSource:
    """The source of a legal schedule's `values`."""
    firsts = [sum(len(part.rights) for part in facts.parts[:i]) for i in range(len(facts.parts))]
    writers = [_Writer(part, values, first) for part, first in zip(facts.parts, firsts, strict=True)]
    tiles = sum(writer.tiles for writer in writers)
    grid = min(tiles, target.multiprocessors) if values["PERSISTENT"] else tiles
    if len(writers) == 1:
        lines = writers[0].write(grid)
        arguments = writers[0].arguments(lines)
        text = module_text(ENTRY, arguments, lines)
    else:
        lines, functions = side_by_side([writer.write_product() for writer in writers])
        used = [line for function in functions for line in function.lines] + lines
        arguments = _joined([writer.arguments(used) for writer in writers])
        text = module_text(ENTRY, arguments, lines, functions)
    return KernelSource(text, ENTRY, arguments, (grid, 1, 1), int(values["NUM_WARPS"]), int(values["NUM_STAGES"]))


def _joined(arguments: Sequence[Sequence[Argument]]) -> tuple[Argument, ...]:
    """Every argument once: input pointers, output pointers, descriptors, each in order."""
    found = {argument.name: argument for each in arguments for argument in each}
    return tuple(sorted(found.values(), key=lambda a: (bool(a.block), a.kind == "output", a.index, a.name)))


class _Writer:
    def __init__(self, facts: ContractionFacts, values: Values, first: int = 0) -> None:
        self.facts = facts
        self.first = first
        self.block_m = int(values["BLOCK_M"])
        self.block_n = int(values["BLOCK_N"])
        self.block_k = int(values["BLOCK_K"])
        self.group_m = int(values["GROUP_M"])
        self.stages = int(values["NUM_STAGES"])
        self.warps = int(values["NUM_WARPS"])
        self.precision = str(values["PRECISION"])
        self.persistent = bool(values["PERSISTENT"])
        self.descriptors = values["LOADS"] == "descriptor"
        self.parts = parts_of(values)
        self.tiles_m = -(-facts.m // self.block_m)
        self.tiles_n = -(-facts.n // self.block_n)
        self.tiles = facts.batch * self.tiles_m * self.tiles_n
        self.emitter = Emitter(facts.body)
        ragged_k = facts.k % self.block_k != 0
        self.rows = Axis("rows", facts.m, f"rows < {facts.m}" if facts.m % self.block_m else "")
        self.cols = Axis("cols", facts.n, f"cols < {facts.n}" if facts.n % self.block_n else "")
        self.left_k = Axis("k_row", facts.k, f"k_row < {facts.k} - k" if ragged_k else "", "k", "k")
        self.right_k = Axis("k_col", facts.k, f"k_col < {facts.k} - k" if ragged_k else "", "k", "k")

    def arguments(self, lines: Sequence[str]) -> tuple[Argument, ...]:
        """The pointers that the lines use, then the descriptors."""
        text = "\n".join(lines)
        arguments = [a for a in pointer_arguments(self.facts.body) if re.search(rf"\b{a.name}\b", text)]
        for operand, block in self._described():
            assert operand.matrix is not None
            position = self.facts.body.inputs.index(operand.source or 0)
            matrix = operand.matrix
            shown = (block[1], block[0]) if matrix.transposed else block
            arguments.append(
                Argument(
                    self._descriptor_name(operand),
                    "input",
                    position,
                    descriptor_type(operand.dtype, shown),
                    shown,
                    matrix.shape,
                    matrix.strides,
                    matrix.offset,
                )
            )
        block = (self.block_m, self.block_n)
        if self.parts:
            arguments += [store_argument(self.facts, output, block, self.parts) for output in self.facts.outputs]
        return tuple(arguments)

    def write(self, programs: int) -> list[str]:
        emitter = self.emitter
        with ExitStack() as stack:
            tile = "tl.program_id(0)"
            if self.persistent:
                header = f"for tile in tl.range({tile}, {self.tiles}, {programs}, flatten=True):"
                stack.enter_context(emitter.block(header, ""))
            else:
                emitter.line(f"tile = {tile}")
            self.write_tile()
        return emitter.lines

    def write_tile(self) -> list[str]:
        """The lines that compute the tile whose number is in `tile`."""
        self._write_raster()
        self._write_place()
        self._write_loop()
        self._write_epilogue()
        return self.emitter.lines

    def write_product(self) -> Product:
        """The same in its parts, for a kernel that computes several products."""
        ends = []
        for write in (self._write_raster, self._write_place, self._write_loop, self._write_epilogue):
            write()
            ends.append(len(self.emitter.lines))
        lines = self.emitter.lines
        raster, place, loop, epilogue = (lines[a:b] for a, b in zip([0, *ends], ends, strict=False))
        return Product(self.tiles, self._only_right(), tuple(raster), tuple(place), tuple(loop), tuple(epilogue))

    def _only_right(self) -> str:
        """The argument that holds the right matrix; empty where there are several or it is computed."""
        right, *others = self.facts.rights
        if others or right.source is None:
            return ""
        described = self.descriptors and right.matrix is not None
        return self._descriptor_name(right) if described else f"in{self.facts.body.inputs.index(right.source)}"

    def _write_loop(self) -> None:
        if is_vector({"BLOCK_M": self.block_m}):
            self._write_vector_loop()
        else:
            self._write_main_loop()

    def _write_epilogue(self) -> None:
        block = (self.block_m, self.block_n)
        names = [_numbered("acc", number) for number in range(self.facts.products)]
        writer = EpilogueWriter(self.facts, self.emitter, self.rows, self.cols, block, self.warps, self.parts)
        writer.write(names)

    def _write_raster(self) -> None:
        """From the tile's number to its row, column and batch; GROUP_M rows of tiles share their columns in L2."""
        line = self.emitter.line
        area = self.tiles_m * self.tiles_n
        name = "tile"
        if self.facts.batch > 1:
            line(f"batch = tile // {area}")
            line(f"place = tile % {area}")
            name = "place"
        group = min(self.group_m, self.tiles_m)
        if self.tiles_n == 1 or self.tiles_m == 1:
            line(f"tile_m = {name if self.tiles_n == 1 else 0}")
            line(f"tile_n = {0 if self.tiles_n == 1 else name}")
        elif group == 1:
            line(f"tile_m = {name} // {self.tiles_n}")
            line(f"tile_n = {name} % {self.tiles_n}")
        elif self.tiles_m % group == 0:
            width = group * self.tiles_n
            line(f"tile_m = {name} // {width} * {group} + {name} % {group}")
            line(f"tile_n = {name} % {width} // {group}")
        else:
            width = group * self.tiles_n
            line(f"first_m = {name} // {width} * {group}")
            line(f"group_m = tl.minimum({self.tiles_m} - first_m, {group})")
            line(f"tile_m = first_m + {name} % {width} % group_m")
            line(f"tile_n = {name} % {width} // group_m")

    def _write_place(self) -> None:
        computed = self.facts.computes
        read = not self.parts or len(self._described()) < len(self.facts.operands)
        line = self.emitter.line
        if read or computed:
            line(f"rows = tile_m * {self.block_m} + tl.arange(0, {self.block_m})[:, None]")
        if read or (computed and self.parts == 1):
            line(f"cols = tile_n * {self.block_n} + tl.arange(0, {self.block_n})[None, :]")

    def _write_vector_loop(self) -> None:
        """Rows times the right tiles element by element; a sum a row and element, added up over the depth at the end.

        Triton pipelines loads that no dot reads only where the loop itself names its stages.
        """
        facts, emitter = self.facts, self.emitter
        emitter.line(f"k_col = tl.arange(0, {self.block_k})[:, None]")
        block = (self.block_k, self.block_n)
        for row in range(facts.m) if facts.m > 1 else ():
            emitter.line(f"row{row} = tl.full((), {row}, tl.int32)")
        sums = [[f"{_numbered('sum', number)}_{row}" for row in range(facts.m)] for number in range(facts.products)]
        for name in (name for names in sums for name in names):
            emitter.line(f"{name} = tl.zeros({block}, tl.float32)")
        with emitter.block(f"for k in tl.range(0, {facts.k}, {self.block_k}, num_stages={self.stages}):", "k"):
            lefts = [
                self._tile(facts.left, f"left{row}", (Axis(f"row{row}", facts.m), self.right_k), (self.block_k, 1))
                for row in range(facts.m)
            ]
            for number, operand in enumerate(facts.rights):
                right = self._tile(operand, _numbered("right", number), (self.right_k, self.cols), block)
                for left, name in zip(lefts, sums[number], strict=True):
                    emitter.line(f"{name} += {left}.to(tl.float32) * {right}.to(tl.float32)")
        for number, names in enumerate(sums):
            acc = _numbered("acc", number)
            *others, last = (f"tl.sum({name}, 0, keep_dims=True)" for name in names)
            emitter.line(f"{acc} = {last}")
            for row, text in enumerate(others):
                emitter.line(f"{acc} = tl.where(rows == {row}, {text}, {acc})")

    def _write_main_loop(self) -> None:
        facts, emitter = self.facts, self.emitter
        described = {id(operand) for operand, _ in self._described()}
        if id(facts.left) not in described:
            emitter.line(f"k_row = tl.arange(0, {self.block_k})[None, :]")
        if any(id(right) not in described for right in facts.rights):
            emitter.line(f"k_col = tl.arange(0, {self.block_k})[:, None]")
        kind = TRITON_TYPE[facts.accumulator]
        for number in range(facts.products):
            emitter.line(f"{_numbered('acc', number)} = tl.zeros(({self.block_m}, {self.block_n}), {kind})")
        with emitter.block(f"for k in tl.range(0, {facts.k}, {self.block_k}):", "k"):
            left = self._tile(facts.left, "left", (self.rows, self.left_k), (self.block_m, self.block_k))
            precision = f', input_precision="{self.precision}"' if facts.dtype == "float32" else ""
            for number, operand in enumerate(facts.rights):
                side, acc = _numbered("right", number), _numbered("acc", number)
                right = self._tile(operand, side, (self.right_k, self.cols), (self.block_k, self.block_n))
                emitter.line(f"{acc} = tl.dot({left}, {right}, {acc}{precision})")

    def _tile(self, operand: Operand, side: str, axes: tuple[Axis, Axis], block: tuple[int, int]) -> str:
        """The text of one operand's tile of this step."""
        space = space_of(side, axes[0], axes[1], self.facts.batch)
        if operand.source is not None and operand.place is not None:
            if self.descriptors and operand.matrix is not None:
                return self._described_tile(operand, side)
            return self.emitter.load_tile(operand.source, operand.place, space, block)
        value = self.emitter.value(operand.index, operand_frame(self.facts.batch, operand.extents), space)
        text = cast_text(Scalar(value.text, value.dtype, value.number).scalar(value.dtype), value.dtype, operand.dtype)
        edge = [axis.mask for axis in axes if axis.start and axis.mask]
        if edge:
            text = f"tl.where({edge[0]}, {text}, 0)"
        name = f"{side}_tile"
        self.emitter.line(f"{name} = tl.broadcast_to({text}, {block})")
        return name

    def _described_tile(self, operand: Operand, side: str) -> str:
        matrix = operand.matrix
        assert matrix is not None
        tile = f"tile_m * {self.block_m}" if side == "left" else f"tile_n * {self.block_n}"
        first, second = (tile, "k") if side == "left" else ("k", tile)
        row, column = (second, first) if matrix.transposed else (first, second)
        row = " + ".join([*(index_text("batch", digit, self.facts.batch) for digit in matrix.row_digits), row])
        name = f"{side}_tile"
        turn = ".T" if matrix.transposed else ""
        self.emitter.line(f"{name} = {self._descriptor_name(operand)}.load([{row}, {column}]){turn}")
        return name

    def _described(self) -> list[tuple[Operand, tuple[int, int]]]:
        if not self.descriptors:
            return []
        pairs = [(self.facts.left, (self.block_m, self.block_k))]
        pairs += [(right, (self.block_k, self.block_n)) for right in self.facts.rights]
        return [(operand, block) for operand, block in pairs if operand.matrix is not None]

    def _descriptor_name(self, operand: Operand) -> str:
        if operand is self.facts.left:
            return "left_desc"
        number = next(i for i, right in enumerate(self.facts.rights) if right is operand)
        return f"{_numbered('right', self.first + number)}_desc"


def _numbered(stem: str, number: int) -> str:
    """The first has the plain name."""
    return f"{stem}{number}" if number else stem
