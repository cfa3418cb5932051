"""The text of an attention kernel: a block of queries stays, keys and values stream past it, one softmax online.

The running maximum and sum are those of Milakov and Gimelshein's online normalizer, in powers of two as Dao's
FlashAttention has them. Keys outside the bounds of the mask are never loaded. The tiles of keys and values are
multiplied as they are loaded and never computed on (see contraction_text).

With two tiles of queries a program, both are scored first, and the weights of the first are multiplied while the
softmax of the second runs: Triton lets a product go on until the next one is waited for, if nothing in the loop reads
it but the same product one step later.
"""

from __future__ import annotations

import math
import re
from collections.abc import Sequence
from dataclasses import dataclass

from engine.codegen.attention_facts import AttentionFacts, Loaded
from engine.codegen.attention_prologue import computed_tile
from engine.codegen.emit import Axis, Emitter, IndexSpace, Value
from engine.codegen.expressions import TRITON_TYPE, Operand
from engine.codegen.family import Values
from engine.codegen.frames import broadcast_frame, index_text, whole_frame
from engine.codegen.module_text import descriptor_type, module_text, pointer_arguments
from engine.codegen.source import Argument, KernelSource
from engine.ir.attention_mask import Condition

ENTRY = "attention"
_LOG2_E = math.log2(math.e)
_MINUS_INFINITY = 'float("-inf")'
_MOVES = frozenset({"rows", "cols", "start"})


def attention_source(facts: AttentionFacts, values: Values) -> KernelSource:
    """The source of a legal schedule's `values`."""
    writer = _Writer(facts, values)
    lines = writer.write()
    arguments = writer.arguments(lines)
    return KernelSource(
        module_text(ENTRY, arguments, lines),
        ENTRY,
        arguments,
        (facts.batch * writer.tiles, 1, 1),
        int(values["NUM_WARPS"]),
        int(values["NUM_STAGES"]),
    )


@dataclass(frozen=True, slots=True)
class _QueryTile:
    """Queries with a softmax of their own: what their names end in, their axis, and how far below the block's first."""

    suffix: str
    rows: Axis
    below: int


class _Writer:
    def __init__(self, facts: AttentionFacts, values: Values) -> None:
        self.facts = facts
        self.block_m = int(values["BLOCK_M"])
        self.cut = values.get("MASK", "every") == "cut"
        self.tile_rows = self.block_m // int(values.get("QUERY_TILES", 1))
        self.block_n = int(values["BLOCK_N"])
        self.precision = f', input_precision="{values["PRECISION"]}"' if facts.dtype == "float32" else ""
        self.descriptors = values["LOADS"] == "descriptor"
        self.tiles = -(-facts.rows // self.block_m)
        self.emitter = Emitter(facts.body)
        ragged = facts.rows % self.block_m != 0
        self.query_tiles = tuple(
            _QueryTile(end, Axis(f"rows{end}", facts.rows, f"rows{end} < {facts.rows}" if ragged else ""), below)
            for end, below in zip(("", "_below"), range(0, self.block_m, self.tile_rows), strict=False)
        )
        deep = f" < {facts.depth}" if facts.depth != facts.depth_block else ""
        wide = f"d_value < {facts.width}" if facts.width != facts.width_block else ""
        self.ragged = facts.keys % self.block_n != 0
        edge = f" < {facts.keys} - start" if self.ragged else ""
        self.rows = self.query_tiles[0].rows
        self.query_depth = Axis("d_query", facts.depth, f"d_query{deep}" if deep else "")
        self.key_depth = Axis("d_key", facts.depth, f"d_key{deep}" if deep else "")
        self.width = Axis("d_value", facts.width, wide)
        self.columns = Axis("cols", facts.keys, f"cols{edge}" if edge else "", "start", "start")
        self.keys = Axis("keys", facts.keys, f"keys{edge}" if edge else "", "start", "start")
        self.batch = Axis("batch", facts.batch)
        self.logits = whole_frame(facts.batch * facts.rows * facts.keys)
        self.space = IndexSpace("score", (self.columns, self.rows, self.batch))

    def arguments(self, lines: Sequence[str]) -> tuple[Argument, ...]:
        """The pointers that the lines use, then the descriptors."""
        text = "\n".join(lines)
        arguments = [a for a in pointer_arguments(self.facts.body) if re.search(rf"\b{a.name}\b", text)]
        for name, loaded, block in self._described():
            assert loaded.rows is not None
            position = self.facts.body.inputs.index(loaded.source)
            kind = descriptor_type(self.facts.dtype, block)
            rows = loaded.rows
            arguments.append(Argument(name, "input", position, kind, block, rows.shape, rows.strides, rows.offset))
        return tuple(arguments)

    def write(self) -> list[str]:
        line = self.emitter.line
        self._write_raster()
        queries = []
        for tile in self.query_tiles:
            line(f"peak{tile.suffix} = tl.full(({self.tile_rows},), {_MINUS_INFINITY}, tl.float32)")
            line(f"total{tile.suffix} = tl.zeros(({self.tile_rows},), tl.float32)")
            line(f"acc{tile.suffix} = tl.zeros(({self.tile_rows}, {self.facts.width_block}), tl.float32)")
            first = f"{self._first()} + {tile.below}" if tile.below else self._first()
            queries.append(
                self._tile(self.facts.query, "query_desc", (tile.rows, self.query_depth), first, tile.suffix)
            )
        first, last = self._loop_bounds()
        with self.emitter.block(f"for start in tl.range({first}, {last}, {self.block_n}):", "start"):
            self._write_step(queries)
        for tile in self.query_tiles:
            self._write_epilogue(tile)
        return self.emitter.lines

    def _write_raster(self) -> None:
        """Heads one after the other, since their queries share keys in L2; a causal head's longest rows start first."""
        line, facts, block = self.emitter.line, self.facts, self.block_m
        if facts.batch > 1:
            line(f"batch = tl.program_id(0) // {self.tiles}")
        place = f"tl.program_id(0) % {self.tiles}" if facts.batch > 1 else "tl.program_id(0)"
        if facts.masking.bounds.low is not None and self.tiles > 1:
            place = f"{self.tiles - 1} - {place}"
        if self.tiles > 1:
            line(f"first = ({place}) * {block}")
        line(f"rows = {'first + ' if self.tiles > 1 else ''}tl.arange(0, {self.tile_rows})[:, None]")
        for tile in self.query_tiles[1:]:
            line(f"{tile.rows.name} = rows + {tile.below}")
        line(f"cols = tl.arange(0, {self.block_n})[None, :]")
        line(f"d_value = tl.arange(0, {facts.width_block})[None, :]")
        described = {name for name, _, _ in self._described()}
        if "query_desc" not in described:
            line(f"d_query = tl.arange(0, {facts.depth_block})[None, :]")
        if "key_desc" not in described:
            line(f"d_key = tl.arange(0, {facts.depth_block}){'[None, :]' if facts.key.computed else '[:, None]'}")
        if "value_desc" not in described or facts.key.computed:
            line(f"keys = tl.arange(0, {self.block_n})[:, None]")

    def _loop_bounds(self) -> tuple[str, str]:
        """First and last key of the loop: the keys that some row of the block may see."""
        keys, bounds, block = self.facts.keys, self.facts.masking.bounds, self.block_n
        first, last = "0", str(keys)
        if bounds.high is not None and self.tiles == 1:
            first = str(max(-bounds.high, 0) // block * block)
        elif bounds.high is not None:
            self.emitter.line(f"begin = tl.maximum(first - {bounds.high}, 0) // {block} * {block}")
            first = "begin"
        if bounds.low is not None and self.tiles == 1:
            last = str(min(keys, max(self.block_m - bounds.low, 0)))
        elif bounds.low is not None:
            self.emitter.line(f"end = tl.minimum({keys}, tl.maximum(first + {self.block_m - bounds.low}, 0))")
            last = "end"
        return first, last

    def _first(self) -> str:
        """The first query of the block."""
        return "first" if self.tiles > 1 else "0"

    def _write_step(self, queries: Sequence[str]) -> None:
        facts, emitter = self.facts, self.emitter
        if facts.key.computed:
            key = self._tile(facts.key, "key_desc", (self.keys, self.key_depth), "start") + ".T"
        else:
            key = self._tile(facts.key, "key_desc", (self.key_depth, self.columns), "start")
        for tile, query in zip(self.query_tiles, queries, strict=True):
            emitter.line(f"scores{tile.suffix} = tl.dot({query}, {key}{self.precision})")
        if self.cut:
            self._mask_the_cut()
        logits = "scores" if self.cut or len(queries) > 1 else self._logits()
        value = ""
        for tile in self.query_tiles:
            end = tile.suffix
            self._write_softmax(f"{logits}{end}", end)
            value = value or self._tile(facts.value, "value_desc", (self.keys, self.width), "start")
            narrow = f"weights{end}" if facts.dtype == "float32" else f"weights{end}.to({TRITON_TYPE[facts.dtype]})"
            emitter.line(f"acc{end} = tl.dot({narrow}, {value}, acc{end}{self.precision})")
            emitter.line(f"peak{end} = higher{end}")

    def _write_softmax(self, logits: str, end: str) -> None:
        """The weights of one tile of queries, and what has been summed before on the scale of the new maximum."""
        facts, line = self.facts, self.emitter.line
        factor = facts.masking.scale * _LOG2_E
        line(f"higher{end} = tl.maximum(peak{end}, tl.max({logits}, 1))")
        if facts.masking.plain and not self.ragged:
            line(f"base{end} = higher{end}")
        else:
            line(f"base{end} = tl.where(higher{end} == {_MINUS_INFINITY}, 0.0, higher{end})")
        if not facts.masking.plain and not facts.masking.infinite:
            line(f"weights{end} = tl.exp2(({logits} - base{end}[:, None]) * {factor!r})")
        else:
            line(f"weights{end} = tl.exp2({logits} * {factor!r} - (base{end} * {factor!r})[:, None])")
        line(f"shrink{end} = tl.exp2((peak{end} - base{end}) * {factor!r})")
        line(f"total{end} = total{end} * shrink{end} + tl.sum(weights{end}, 1)")
        line(f"acc{end} = acc{end} * shrink{end}[:, None]")

    def _mask_the_cut(self) -> None:
        """Hide the scores, or what they are capped to, behind the diagonal in the blocks that hold some of them.

        The moving number stands on the side of the rows, of which a thread has few.
        """
        line, low = self.emitter.line, self.facts.masking.bounds.low or 0
        if self.facts.changed:
            line(f"scores = {self._changed_scores(self.facts.shown)}")
        moved = f"(start + {low})" if low else "start"
        line(f"if start > {self._first()} - {self.block_n - 1 + low}:")
        line(f"    scores = tl.where(rows - {moved} >= cols, scores, {_MINUS_INFINITY})")

    def _logits(self) -> str:
        """The name of what the softmax is taken of in this step, before the scale where that commutes."""
        facts, emitter = self.facts, self.emitter
        for condition in facts.masking.conditions:
            shape = facts.body.ops[condition.index].out.shape
            at = broadcast_frame(self.logits, facts.body.ops[facts.chain.logits].out.shape, shape)
            emitter.fix(condition.index, Value(self._seen(condition), "bool", _MOVES), at)
        text = self._changed_scores(facts.chain.logits)
        if self.ragged:
            text = f"tl.where({self.columns.mask}, {text}, {_MINUS_INFINITY})"
        emitter.line(f"logits = {text}")
        return "logits"

    def _changed_scores(self, index: int) -> str:
        """What an op between the scores and the logits makes of them."""
        emitter = self.emitter
        emitter.fix(self.facts.masking.scaled, Value("scores", "float32", _MOVES), self.logits)
        value = emitter.value(index, self.logits, self.space)
        return Operand(value.text, value.dtype, value.number).scalar("float32")

    def _seen(self, condition: Condition) -> str:
        """The name of a mask that is nothing but bounds, in 32 bits."""
        low, high = condition.bounds.low, condition.bounds.high
        parts = []
        if low is not None:
            parts.append(f"rows - cols >= start + {low}" if low else "rows - cols >= start")
        if high is not None:
            parts.append(f"rows - cols <= start + {high}")
        text = parts[0] if len(parts) == 1 else " & ".join(f"({part})" for part in parts)
        name = f"seen{condition.index}"
        self.emitter.line(f"{name} = ({text}) == 0" if condition.negated else f"{name} = {text}")
        return name

    def _tile(self, loaded: Loaded, name: str, axes: tuple[Axis, Axis], moving: str, end: str = "") -> str:
        """The name of one operand's tile: loaded through a descriptor or through pointers, or computed."""
        emitter = self.emitter
        if self.descriptors and loaded.rows is not None:
            rows = loaded.rows
            batch = self.facts.batch
            row = [*(index_text("batch", digit, batch) for digit in rows.row_digits), moving]
            column = [index_text("batch", digit, batch) for digit in rows.column_digits] or ["0"]
            tile = name.removesuffix("_desc") + end
            turn = ".T" if tile == "key" else ""
            emitter.line(f"{tile} = {name}.load([{' + '.join(row)}, {' + '.join(column)}]){turn}")
            return tile
        sizes = {
            **{tile.rows.name: self.tile_rows for tile in self.query_tiles},
            "cols": self.block_n,
            "keys": self.block_n,
            "d_query": self.facts.depth_block,
            "d_key": self.facts.depth_block,
            "d_value": self.facts.width_block,
        }
        name, shape = name.removesuffix("_desc"), (sizes[axes[0].name], sizes[axes[1].name])
        space = IndexSpace(name, (axes[1], axes[0], self.batch))
        if loaded.computed:
            return computed_tile(emitter, loaded.source, loaded.place, space, shape)
        return emitter.load_tile(loaded.source, loaded.place, space, shape)

    def _write_epilogue(self, tile: _QueryTile) -> None:
        facts, emitter, end, rows = self.facts, self.emitter, tile.suffix, tile.rows
        emitter.line(f"result{end} = acc{end} / total{end}[:, None]")
        if facts.chain.safe:
            emitter.line(f"result{end} = tl.where(peak{end}[:, None] == {_MINUS_INFINITY}, 0.0, result{end})")
        space = IndexSpace(f"output{end}", (self.width, rows, self.batch))
        result = Value(f"result{end}", "float32", frozenset({rows.name, "d_value"}))
        for output, place in facts.outputs:
            emitter.store_at(output.position, output.spec, result, place, space)
        places = [*([(self.batch, facts.rows)] if facts.batch > 1 else []), (rows, 1)]
        scale = facts.masking.scale
        peak = f"peak{end}[:, None]" if scale == 1.0 else f"peak{end}[:, None] * {scale!r}"
        for text, outputs in ((peak, facts.peaks), (f"total{end}[:, None]", facts.totals)):
            for output in outputs:
                emitter.store(output.position, output.spec, Value(text, "float32", frozenset({rows.name})), places)

    def _described(self) -> list[tuple[str, Loaded, tuple[int, int]]]:
        if not self.descriptors:
            return []
        facts = self.facts
        found = [
            ("query_desc", facts.query, (self.tile_rows, facts.depth_block)),
            ("key_desc", facts.key, (self.block_n, facts.depth_block)),
            ("value_desc", facts.value, (self.block_n, facts.width_block)),
        ]
        return [(name, loaded, block) for name, loaded, block in found if loaded.rows is not None]
