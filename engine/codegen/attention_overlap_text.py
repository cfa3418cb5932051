"""The text of an attention kernel whose warps have roles, in Gluon: one warp loads, two groups of four multiply.

Keys and values go through rings of buffers, each with a barrier that says when a block has arrived and one that says
when it may be overwritten. A group multiplies its 64 queries with a block of keys and, while the products of the block
before with the values still run, takes the powers of what came out. Sums of rows are kept as eighths of a row, which a
thread adds alone, and added up once at the end.

The next keys are awaited right before the products with the values are. That wait ends a basic block; without it ptxas
moves the other one, which knows nothing of the powers, in front of them, and nothing overlaps. A product that has ended
in one warp says nothing of the other three, so a barrier of the group stands before each buffer that is given back.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Literal

from engine.codegen.attention_facts import AttentionFacts, Rows
from engine.codegen.attention_overlap import GROUP_QUERIES, PERSISTENT, QUERIES, keys_ahead
from engine.codegen.expressions import POINTER_TYPE
from engine.codegen.family import Values
from engine.codegen.frames import index_text
from engine.codegen.source import GLUON, Argument, KernelSource
from engine.codegen.tile_order import heads_of_a_group, turns_of
from engine.vocabulary import Target

ENTRY = "attention"
_LOG2_E = math.log2(math.e)
_HEADS_TOGETHER = 16
"""Heads whose longest tiles start first where the hardware hands out one tile after the other: 141 us under a causal
mask, and 155 head by head (4x16x2048x128, bf16, H200)."""
_LOADING_WARPS = 1
_GROUP_WARPS = 4
_GROUP_REGISTERS, _LOADING_REGISTERS = 240, 24
_IMPORTS = (
    "from triton.experimental import gluon",
    "from triton.experimental.gluon import language as gl",
    "from triton.experimental.gluon.language.nvidia import hopper",
)
_FETCH = (
    "def fetch(desc, row, column, ring, slot, uses):",
    "    buffers, full, free = ring",
    "    hopper.mbarrier.wait(free.index(slot), (uses & 1) ^ 1)",
    "    hopper.mbarrier.expect(full.index(slot), desc.block_type.nbytes)",
    "    hopper.tma.async_copy_global_to_shared(desc, [row, column], full.index(slot), buffers.index(slot))",
)
_RINGS = ("query", "key", "value")
_LAYOUT = (
    "NVMMASharedLayout(swizzle_byte_width=128, element_bitwidth=16, rank=2, transposed=False, fp4_padded=False, "
    "cga_layout=[])"
)
"""Blocks of rows of 128 bytes or a multiple as TMA writes them and wgmma reads them, in the words of a signature."""


def overlap_source(facts: AttentionFacts, values: Values, target: Target) -> KernelSource:
    """The source of a legal schedule's `values` whose warps have roles."""
    writer = _Writer(facts, values, target)
    functions = [writer.walk(), list(_FETCH), writer.produce(), writer.consume(), writer.entry()]
    text = "\n".join([*_IMPORTS, *("\n".join(["", "", "@gluon.jit", *lines]) for lines in functions), ""])
    grid = (min(writer.programs, writer.tiles * facts.batch), 1, 1)
    return KernelSource(text, ENTRY, writer.arguments(), grid, _GROUP_WARPS, writer.stages, dialect=GLUON)


class _Writer:
    def __init__(self, facts: AttentionFacts, values: Values, target: Target) -> None:
        self.facts = facts
        self.block_n, self.stages = int(values["BLOCK_N"]), int(values["NUM_STAGES"])
        self.tiles = facts.rows // QUERIES
        self.all_tiles = facts.batch * self.tiles
        self.persistent = values["OVERLAP"] == PERSISTENT and self.all_tiles > target.multiprocessors
        self.programs = target.multiprocessors if self.persistent else self.all_tiles
        self.causal = not facts.unmasked
        self.dtype = f"gl.{facts.dtype}"
        self.factor = repr(facts.masking.scale * _LOG2_E)
        self.output = facts.outputs[0][0]

    def arguments(self) -> tuple[Argument, ...]:
        """Descriptors of queries, keys, values and result, in that order."""
        facts = self.facts
        read = [("query_desc", facts.query, GROUP_QUERIES), ("key_desc", facts.key, self.block_n)]
        read.append(("value_desc", facts.value, self.block_n))
        found = []
        for name, loaded, rows in read:
            position = facts.body.inputs.index(loaded.source)
            found.append(self._argument(name, "input", position, loaded.rows, rows))
        stored = facts.output_rows[0]
        return (*found, self._argument("out_desc", "output", self.output.position, stored, GROUP_QUERIES))

    def _argument(
        self, name: str, kind: Literal["input", "output"], position: int, rows: Rows | None, block_rows: int
    ) -> Argument:
        assert rows is not None
        block = (block_rows, self.facts.depth)
        dtype = POINTER_TYPE[self.facts.dtype][1:]
        text = f"tensordesc<{dtype}[{block[0]}, {block[1]}],{_LAYOUT}>"
        return Argument(name, kind, position, text, block, rows.shape, rows.strides, rows.offset)

    def walk(self) -> list[str]:
        """Functions that say which tiles a program works on."""
        if not self.persistent:
            return ["def tile():", *self._tile_lines("gl.program_id(0)", _HEADS_TOGETHER if self.causal else 1)]
        turns, last = turns_of(self.all_tiles, self.programs)
        back = f"{self.programs - 1} - gl.program_id(0)"
        place = back if self.causal and turns % 2 == 0 else "gl.program_id(0)"
        count = str(turns) if last == self.programs else f"gl.where({place} < {last}, {turns}, {turns - 1})"
        number = f"turn * {self.programs} + gl.program_id(0)"
        group = 1
        if self.causal:
            number = f"turn * {self.programs} + gl.where(turn % 2 == 0, gl.program_id(0), {back})"
            group = heads_of_a_group(self.facts.batch, self.tiles, self.programs)
        lines = ["def turns():", f"    return {count}", "", "", "@gluon.jit", "def tile(turn):"]
        return [*lines, *self._tile_lines(number, group)]

    def _tile_lines(self, number: str, group: int) -> list[str]:
        """Batch and first query of the tile of a number: heads in groups, a causal group's longest tiles first."""
        batch, tiles = self.facts.batch, self.tiles
        lines = [f"    number = {number}"]
        group = min(group, batch)
        if group == 1:
            head, place = ("number", "0") if tiles == 1 else (f"number // {tiles}", f"number % {tiles}")
        else:
            first, heads = (f"number // {group * tiles} * {group}", str(group)) if group < batch else ("", str(batch))
            inside = f"number % {group * tiles}" if group < batch else "number"
            if batch % group:
                lines += [f"    head = {first}", f"    heads = gl.minimum({group}, {batch} - head)"]
                first, heads = "head", "heads"
            head = f"{first} + {inside} % {heads}" if first else f"{inside} % {heads}"
            place = f"{inside} // {heads}"
        place = f"({tiles - 1} - {place})" if self.causal else f"({place})"
        return [*lines, f"    return {head}, {place} * {QUERIES}"]

    def _open(self, statements: Sequence[str]) -> tuple[list[str], str]:
        """The lines in front of a tile's work, and how that is indented."""
        if self.persistent:
            return [*statements, "    for turn in range(turns()):", "        batch, first = tile(turn)"], " " * 8
        return [*statements, "    batch, first = tile()"], " " * 4

    def _steps(self) -> str:
        """How many blocks of keys a tile walks."""
        if not self.causal:
            return str(self.facts.keys // self.block_n)
        ahead = keys_ahead(self.facts) // self.block_n + QUERIES // self.block_n
        return f"first // {self.block_n} + {ahead}"

    def _place(self, rows: Rows | None) -> tuple[str, str]:
        """Row and column at which a head begins."""
        assert rows is not None
        batch = self.facts.batch
        texts = [
            " + ".join(index_text("batch", digit, batch) for digit in digits)
            for digits in (rows.row_digits, rows.column_digits)
        ]
        return texts[0] or "0", texts[1] or "0"

    def _slot(self, ahead: int) -> tuple[str, str]:
        """Where in a ring the block stands that comes `ahead` of the current one, and how often that was used."""
        count = f"(count + {ahead})" if ahead else "count"
        return f"{count} % {self.stages}", f"{count} // {self.stages}"

    def produce(self) -> list[str]:
        """The loading warp: queries of the first group, the first keys, queries of the second, in the order of need."""
        facts, turn, block = self.facts, "turn" if self.persistent else "0", self.block_n
        lines, pad = self._open(["    count = 0"])
        now, next_one = (", ".join(self._slot(ahead)) for ahead in (0, 1))
        for name, loaded in (("query", facts.query), ("key", facts.key), ("value", facts.value)):
            row, column = self._place(loaded.rows)
            lines += [f"{pad}{name}_row = {row}", f"{pad}{name}_column = {column}"]
        below = f"query_row + first + {GROUP_QUERIES}"
        lines += [
            f"{pad}steps = {self._steps()}",
            f"{pad}start = (steps - 1) * {block}",
            f"{pad}fetch(query_desc, query_row + first, query_column, query_ring, 0, {turn})",
            f"{pad}fetch(key_desc, key_row + start, key_column, key_ring, {now})",
            f"{pad}fetch(query_desc, {below}, query_column, query_ring, 1, {turn})",
            f"{pad}for step in range(steps):",
            f"{pad}    if step + 1 < steps:",
            f"{pad}        fetch(key_desc, key_row + start - {block}, key_column, key_ring, {next_one})",
            f"{pad}    fetch(value_desc, value_row + start, value_column, value_ring, {now})",
            f"{pad}    start -= {block}",
            f"{pad}    count += 1",
        ]
        return ["def produce(query_desc, key_desc, value_desc, query_ring, key_ring, value_ring):", *lines]

    def consume(self) -> list[str]:
        """A group of four warps: 64 queries, from their last block of keys to the first."""
        keys, depth = self.block_n, self.facts.depth
        lines, pad = self._open(
            [
                *(f"    {name}s, {name}s_full, {name}s_free = {name}_ring" for name in _RINGS[1:]),
                "    queries, queries_full, queries_free = query_ring",
                f"    scores_layout: gl.constexpr = gl.NVMMADistributedLayout([3, 0], [4, 1], [16, {keys}, 16])",
                f"    result_layout: gl.constexpr = gl.NVMMADistributedLayout([3, 0], [4, 1], [16, {depth}, 16])",
                "    weights_layout: gl.constexpr = gl.DotOperandLayout(0, result_layout, 2)",
                f"    zeros = gl.zeros([{GROUP_QUERIES}, {keys}], gl.float32, scores_layout)",
                "    query = queries.index(group)",
                "    result = results.index(group)",
                "    count = 0",
            ]
        )
        turn = "turn & 1" if self.persistent else "0"
        body = [f"steps = {self._steps()}"]
        if self.causal and keys < QUERIES:
            body += self._skipped()
        body += [f"hopper.mbarrier.wait(queries_full.index(group), {turn})", self._wait("keys", 0)]
        body += [*self._scores(0), "scores = hopper.warpgroup_mma_wait(0, (scores,))", *self._give("keys", 0)]
        body += [*(self._mask() if self.causal else []), "peak = gl.max(scores, 1)"]
        body += [f"weights = gl.exp2(scores * {self.factor} - (peak * {self.factor})[:, None])"]
        body += [f"total = gl.sum(gl.reshape(weights, [{GROUP_QUERIES}, {keys // 8}, 8]), 1)"]
        body += [f"weights = gl.convert_layout(weights.to({self.dtype}), weights_layout, assert_trivial=True)"]
        body += [f"acc = gl.zeros([{GROUP_QUERIES}, {depth}], gl.float32, result_layout)"]
        body += [self._wait("keys", 1, ", pred=steps > 1"), "for step in range(1, steps):"]
        body += [f"    {line}" for line in self._step()]
        body += self._end()
        head = "def consume(out_desc, results, query_ring, key_ring, value_ring, group: gl.constexpr):"
        return [head, *lines, *(pad + line for line in body), "    hopper.tma.store_wait(0)"]

    def _wait(self, ring: str, ahead: int, condition: str = "") -> str:
        slot, uses = self._slot(ahead)
        return f"hopper.mbarrier.wait({ring}_full.index({slot}), {uses} & 1{condition})"

    def _give(self, ring: str, ahead: int) -> list[str]:
        """Give a buffer of the ring back once the whole group is done with it."""
        return ["gl.thread_barrier()", f"hopper.mbarrier.arrive({ring}_free.index({self._slot(ahead)[0]}), count=1)"]

    def _scores(self, ahead: int) -> list[str]:
        return [
            f"key = keys.index({self._slot(ahead)[0]}).permute((1, 0))",
            "scores = hopper.warpgroup_mma(query, key, zeros, use_acc=False, is_async=True)",
        ]

    def _weigh(self) -> str:
        value = f"values.index({self._slot(0)[0]})"
        return f"flying = hopper.warpgroup_mma(weights, {value}, acc, is_async=True)"

    def _skipped(self) -> list[str]:
        """The last block of a tile lies behind the first group's queries. It is given back once it has arrived, for
        only then have both groups given back what stood there before."""
        lines = []
        for ring in ("keys", "values"):
            lines += [self._wait(ring, 0), *self._give(ring, 0)]
        return ["if group == 0:", *(f"    {line}" for line in (*lines, "count += 1", "steps -= 1"))]

    def _mask(self) -> list[str]:
        """Hide the keys behind the diagonal, which stand in a group's first block alone."""
        ahead = keys_ahead(self.facts)
        moved = f"first + group * {GROUP_QUERIES}{f' + {ahead}' if ahead else ''} - (steps - 1) * {self.block_n}"
        return [
            f"row = gl.arange(0, {GROUP_QUERIES}, layout=gl.SliceLayout(1, scores_layout))[:, None]",
            f"column = gl.arange(0, {self.block_n}, layout=gl.SliceLayout(0, scores_layout))[None, :]",
            f'scores = gl.where(row + ({moved}) >= column, scores, float("-inf"))',
        ]

    def _step(self) -> list[str]:
        factor = self.factor
        return [
            *self._scores(1),
            self._wait("values", 0),
            self._weigh(),
            "scores = hopper.warpgroup_mma_wait(1, (scores,))",
            *self._give("keys", 1),
            "higher = gl.maximum(peak, gl.max(scores, 1))",
            f"powers = gl.exp2(scores * {factor} - (higher * {factor})[:, None])",
            f"shrink = gl.exp2((peak - higher) * {factor})",
            "total = total * gl.convert_layout(shrink, gl.SliceLayout(1, total.type.layout))[:, None]",
            f"total = total + gl.sum(gl.reshape(powers, [{GROUP_QUERIES}, {self.block_n // 8}, 8]), 1)",
            "peak = higher",
            f"fresh = gl.convert_layout(powers.to({self.dtype}), weights_layout, assert_trivial=True)",
            self._wait("keys", 2, ", pred=step + 1 < steps"),
            "acc, weights = hopper.warpgroup_mma_wait(0, (flying, weights))",
            *self._give("values", 0),
            "acc = acc * gl.convert_layout(shrink, gl.SliceLayout(1, result_layout), assert_trivial=True)[:, None]",
            "weights = fresh",
            "count += 1",
        ]

    def _end(self) -> list[str]:
        """The last product with the values, the division, and the store, which runs on while the next tile begins."""
        row, column = self._place(self.facts.output_rows[0])
        return [
            "hopper.mbarrier.arrive(queries_free.index(group), count=1)",
            self._wait("values", 0),
            self._weigh(),
            "whole = gl.convert_layout(gl.sum(total, 1), gl.SliceLayout(1, result_layout))",
            "acc, weights = hopper.warpgroup_mma_wait(0, (flying, weights))",
            *self._give("values", 0),
            "count += 1",
            "acc = acc * (1.0 / whole)[:, None]",
            *(["hopper.tma.store_wait(0)", "gl.thread_barrier()"] if self.persistent else []),
            f"result.store(acc.to({self.dtype}))",
            "hopper.fence_async_shared()",
            "gl.thread_barrier()",
            f"out_row = {row} + first + group * {GROUP_QUERIES}",
            f"hopper.tma.async_copy_shared_to_global(out_desc, [out_row, {column}], result)",
        ]

    def entry(self) -> list[str]:
        depth, stages = self.facts.depth, self.stages
        tiles = [("queries", 2, GROUP_QUERIES, "query"), ("keys", stages, self.block_n, "key")]
        tiles += [("values", stages, self.block_n, "value"), ("results", 2, GROUP_QUERIES, "out")]
        lines = [f"def {ENTRY}(query_desc, key_desc, value_desc, out_desc):"]
        for name, count, rows, of in tiles:
            shape = f"[{count}, {rows}, {depth}]"
            lines.append(f"    {name} = gl.allocate_shared_memory({self.dtype}, {shape}, {of}_desc.layout)")
        plurals = dict(zip(_RINGS, ("queries", "keys", "values"), strict=True))
        counted = (("queries", 2, 1), ("keys", stages, 2), ("values", stages, 2))
        for name, count, _ in counted:
            for state in ("full", "free"):
                barriers = f"gl.allocate_shared_memory(gl.int64, [{count}, 1], hopper.mbarrier.MBarrierLayout())"
                lines.append(f"    {name}_{state} = {barriers}")
        for name, count, groups in counted:
            lines.append(f"    for i in gl.static_range({count}):")
            lines.append(f"        hopper.mbarrier.init({name}_full.index(i), count=1)")
            lines.append(f"        hopper.mbarrier.init({name}_free.index(i), count={groups})")
        rings = "query_ring, key_ring, value_ring"
        return [
            *lines,
            "    hopper.fence_async_shared()",
            *(f"    {name}_ring = ({plural}, {plural}_full, {plural}_free)" for name, plural in plurals.items()),
            "    gl.warp_specialize(",
            "        [",
            *(f"            (consume, (out_desc, results, {rings}, {group}))," for group in range(2)),
            f"            (produce, (query_desc, key_desc, value_desc, {rings})),",
            "        ],",
            f"        [{_GROUP_WARPS}, {_LOADING_WARPS}],",
            f"        [{_GROUP_REGISTERS}, {_LOADING_REGISTERS}],",
            "    )",
        ]
