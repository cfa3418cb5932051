"""The text of an attention kernel: a block of queries stays, keys and values stream past it, one softmax online.

The running maximum and sum are those of Milakov and Gimelshein's online normalizer, in powers of two as Dao's
FlashAttention has them. Keys outside the bounds of the mask are never loaded. The tiles of keys and values are
multiplied as they are loaded and never computed on (see contraction_text).
"""

from __future__ import annotations

import math
import re
from collections.abc import Sequence

from engine.codegen.attention_facts import AttentionFacts, Loaded
from engine.codegen.attention_prologue import computed_tile
from engine.codegen.emit import Axis, Emitter, IndexSpace, Value
from engine.codegen.expressions import POINTER_TYPE, TRITON_TYPE, Operand
from engine.codegen.family import Values
from engine.codegen.frames import broadcast_frame, index_text, whole_frame
from engine.codegen.module_text import module_text, pointer_arguments
from engine.codegen.source import Argument, KernelSource
from engine.ir.attention_mask import Condition

ENTRY = "attention"
_LOG2_E = math.log2(math.e)
_MINUS_INFINITY = 'float("-inf")'


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
        maxnreg=int(values.get("MAXNREG", 0)),
    )


class _Writer:
    def __init__(self, facts: AttentionFacts, values: Values) -> None:
        self.facts = facts
        self.block_m = int(values["BLOCK_M"])
        self.block_n = int(values["BLOCK_N"])
        self.precision = f', input_precision="{values["PRECISION"]}"' if facts.dtype == "float32" else ""
        self.descriptors = values["LOADS"] == "descriptor"
        self.diagonal = bool(values.get("DIAGONAL", False))
        self.tiles = -(-facts.rows // self.block_m)
        self.emitter = Emitter(facts.body)
        rows_mask = f"rows < {facts.rows}" if facts.rows % self.block_m else ""
        deep = f" < {facts.depth}" if facts.depth != facts.depth_block else ""
        wide = f"d_value < {facts.width}" if facts.width != facts.width_block else ""
        self.ragged = facts.keys % self.block_n != 0
        edge = f" < {facts.keys} - start" if self.ragged else ""
        self.rows = Axis("rows", facts.rows, rows_mask)
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
            dtype = POINTER_TYPE[self.facts.dtype][1:]
            kind = f"tensordesc<{dtype}[{block[0]},{block[1]}]>"
            rows = loaded.rows
            arguments.append(Argument(name, "input", position, kind, block, rows.shape, rows.strides, rows.offset))
        return tuple(arguments)

    def write(self) -> list[str]:
        line = self.emitter.line
        self._write_raster()
        line(f"peak = tl.full(({self.block_m},), {_MINUS_INFINITY}, tl.float32)")
        line(f"total = tl.zeros(({self.block_m},), tl.float32)")
        line(f"acc = tl.zeros(({self.block_m}, {self.facts.width_block}), tl.float32)")
        query = self._tile(self.facts.query, "query_desc", (self.rows, self.query_depth), self._first())
        first, last = self._loop_bounds()
        if self.diagonal:
            # Every row of the block sees the keys in front of `whole`.
            seen = f"tl.maximum(first + {1 - (self.facts.masking.bounds.low or 0)}, 0)"
            line(f"whole = tl.minimum({self.facts.keys}, {seen}) // {self.block_n} * {self.block_n}")
            with self.emitter.block(f"for start in tl.range({first}, whole, {self.block_n}):", "start"):
                self._write_step(query, masked=False)
            first = "whole"
        with self.emitter.block(f"for start in tl.range({first}, {last}, {self.block_n}):", "start"):
            self._write_step(query)
        self._write_epilogue()
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
        line(f"rows = {'first + ' if self.tiles > 1 else ''}tl.arange(0, {block})[:, None]")
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

    def _write_step(self, query: str, *, masked: bool = True) -> None:
        facts, emitter = self.facts, self.emitter
        if facts.key.computed:
            key = self._tile(facts.key, "key_desc", (self.keys, self.key_depth), "start") + ".T"
        else:
            key = self._tile(facts.key, "key_desc", (self.key_depth, self.columns), "start")
        emitter.line(f"scores = tl.dot({query}, {key}{self.precision})")
        logits = self._logits() if masked else "scores"
        factor = facts.masking.scale * _LOG2_E
        emitter.line(f"higher = tl.maximum(peak, tl.max({logits}, 1))")
        robust = not facts.masking.plain and not facts.masking.infinite
        if (facts.masking.plain or not masked) and not self.ragged:
            emitter.line("base = higher")
        else:
            emitter.line(f"base = tl.where(higher == {_MINUS_INFINITY}, 0.0, higher)")
        if robust:
            emitter.line(f"weights = tl.exp2(({logits} - base[:, None]) * {factor!r})")
        else:
            emitter.line(f"weights = tl.exp2({logits} * {factor!r} - (base * {factor!r})[:, None])")
        emitter.line(f"shrink = tl.exp2((peak - base) * {factor!r})")
        emitter.line("total = total * shrink + tl.sum(weights, 1)")
        emitter.line("acc = acc * shrink[:, None]")
        value = self._tile(facts.value, "value_desc", (self.keys, self.width), "start")
        narrow = "weights" if facts.dtype == "float32" else f"weights.to({TRITON_TYPE[facts.dtype]})"
        emitter.line(f"acc = tl.dot({narrow}, {value}, acc{self.precision})")
        emitter.line("peak = higher")

    def _logits(self) -> str:
        """The name of what the softmax is taken of in this step, before the scale where that commutes."""
        facts, emitter = self.facts, self.emitter
        masking, body = facts.masking, facts.body
        moves = frozenset({"rows", "cols", "start"})
        emitter.fix(masking.scaled, Value("scores", "float32", moves), self.logits)
        for condition in masking.conditions:
            shape = body.ops[condition.index].out.shape
            at = broadcast_frame(self.logits, body.ops[facts.chain.logits].out.shape, shape)
            emitter.fix(condition.index, Value(self._seen(condition), "bool", moves), at)
        value = emitter.value(facts.chain.logits, self.logits, self.space)
        text = Operand(value.text, value.dtype, value.number).scalar("float32")
        if self.ragged:
            text = f"tl.where({self.columns.mask}, {text}, {_MINUS_INFINITY})"
        emitter.line(f"logits = {text}")
        return "logits"

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

    def _tile(self, loaded: Loaded, name: str, axes: tuple[Axis, Axis], moving: str) -> str:
        """The name of one operand's tile: loaded through a descriptor or through pointers, or computed."""
        emitter = self.emitter
        if self.descriptors and loaded.rows is not None:
            rows = loaded.rows
            batch = self.facts.batch
            row = [*(index_text("batch", digit, batch) for digit in rows.row_digits), moving]
            column = [index_text("batch", digit, batch) for digit in rows.column_digits] or ["0"]
            tile = name.removesuffix("_desc")
            turn = ".T" if tile == "key" else ""
            emitter.line(f"{tile} = {name}.load([{' + '.join(row)}, {' + '.join(column)}]){turn}")
            return tile
        sizes = {
            "rows": self.block_m,
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

    def _write_epilogue(self) -> None:
        facts, emitter = self.facts, self.emitter
        emitter.line("result = acc / total[:, None]")
        if facts.chain.safe:
            emitter.line(f"result = tl.where(peak[:, None] == {_MINUS_INFINITY}, 0.0, result)")
        space = IndexSpace("output", (self.width, self.rows, self.batch))
        result = Value("result", "float32", frozenset({"rows", "d_value"}))
        for output, place in facts.outputs:
            emitter.store_at(output.position, output.spec, result, place, space)
        places = [*([(self.batch, facts.rows)] if facts.batch > 1 else []), (self.rows, 1)]
        scale = facts.masking.scale
        peak = "peak[:, None]" if scale == 1.0 else f"peak[:, None] * {scale!r}"
        for text, outputs in ((peak, facts.peaks), ("total[:, None]", facts.totals)):
            for output in outputs:
                emitter.store(output.position, output.spec, Value(text, "float32", frozenset({"rows"})), places)

    def _described(self) -> list[tuple[str, Loaded, tuple[int, int]]]:
        if not self.descriptors:
            return []
        facts = self.facts
        found = [
            ("query_desc", facts.query, (self.block_m, facts.depth_block)),
            ("key_desc", facts.key, (self.block_n, facts.depth_block)),
            ("value_desc", facts.value, (self.block_n, facts.width_block)),
        ]
        return [(name, loaded, block) for name, loaded, block in found if loaded.rows is not None]
