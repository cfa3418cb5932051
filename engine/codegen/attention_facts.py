"""What an attention body is: its chain, how queries, keys and values are read, what hides keys, where results go."""

from __future__ import annotations

import math
from dataclasses import dataclass

from engine.codegen.attention_prologue import key_frame, streamed_bytes
from engine.codegen.emit import resolve
from engine.codegen.family import Unsupported
from engine.codegen.frames import Digit, Frame, FrameError, is_single_stride, split_by_axes, whole_frame
from engine.codegen.outputs import Output, stored_outputs
from engine.ir.attention import AttentionChain, attention_chain, steps_to_scores, unfit_because
from engine.ir.attention_mask import Masking, read_masking
from engine.ir.attention_prologue import KEYS, QUERIES, operand_prologue
from engine.ir.graph import DTYPE_BYTES, Graph, TensorSpec
from engine.ir.measures import matmul_extents
from engine.ir.placement import placed

_SMALLEST_TILE = 16


@dataclass(frozen=True, slots=True)
class Rows:
    """An operand as a matrix that a TMA descriptor loads, one row a query or key.

    `shape`, `strides` and `offset` in elements. The digits of the batch move either the row or the column.
    """

    shape: tuple[int, int]
    strides: tuple[int, int]
    offset: int
    row_digits: tuple[Digit, ...]
    column_digits: tuple[Digit, ...]


@dataclass(frozen=True, slots=True)
class Loaded:
    """Input op `source` at storage positions `place`; `rows` is its descriptor form; where it has none, why.

    A `computed` operand is op `source` of the body, a computed one, and `place` walks it as [batch, row, head];
    `streamed_bytes` are loaded for each of its elements.
    """

    source: int
    place: Frame
    rows: Rows | None
    no_rows: str
    computed: bool = False
    streamed_bytes: int = 0


@dataclass(frozen=True, slots=True)
class AttentionFacts:
    """`batch` matrices of `rows` queries and `keys` keys; heads of `depth` for the scores, of `width` for the values.

    `depth_block` and `width_block` are these as tile sizes. `out_place` says where in output storage the element goes
    that the values' matmul computes. `peaks` and `totals` are outputs with the largest logit and the sum of powers of
    each row, which a kernel without a mask may give as well.
    """

    body: Graph
    chain: AttentionChain
    batch: int
    rows: int
    keys: int
    depth: int
    width: int
    dtype: str
    allow_tf32: bool
    query: Loaded
    key: Loaded
    value: Loaded
    masking: Masking
    outputs: tuple[tuple[Output, Frame], ...]
    peaks: tuple[Output, ...] = ()
    totals: tuple[Output, ...] = ()

    @property
    def element_bytes(self) -> int:
        return DTYPE_BYTES[self.dtype]

    @property
    def shown(self) -> int:
        """The op that is the logit of each key that is seen: the one below the masks that are nothing but bounds."""
        conditions = {condition.index for condition in self.masking.conditions}
        index = self.chain.logits
        for step in steps_to_scores(self.body, self.chain):
            index = step.index
            if step.op.kind != "where" or step.op.inputs[0] not in conditions:
                break
            index = self.chain.scores if step.below is None else step.below
        return index

    @property
    def diagonal(self) -> bool:
        """Whether the mask is causal and nothing else, and comes last: every key up to the diagonal is seen."""
        masking, shown = self.masking, self.shown
        causal = masking.bounds.low is not None and masking.bounds.high is None and masking.bounds.exact
        last = shown != self.chain.logits and not any(
            self.body.ops[i].kind in ("where", "add") for i in self.chain.path if i <= shown
        )
        return causal and masking.infinite and last

    @property
    def changed(self) -> bool:
        """Whether more becomes of the scores below the masks than that they are scaled."""
        return self.shown != self.masking.scaled

    @property
    def unmasked(self) -> bool:
        """Whether every logit is its score times the scale."""
        return self.masking.plain and not any(i > self.masking.scaled for i in self.chain.path)

    @property
    def output_rows(self) -> tuple[Rows | None, str]:
        """The descriptor form of the only result, or why it has none."""
        ((output, place),) = self.outputs
        try:
            extents = (self.rows, self.width)
            return _rows(output.spec.element_bytes, place, self.batch, extents, is_key=False)
        except FrameError as error:
            return None, str(error)

    @property
    def depth_block(self) -> int:
        return _tile(self.depth)

    @property
    def width_block(self) -> int:
        return _tile(self.width)


def attention_facts(body: Graph) -> AttentionFacts:
    """Read the body. Raises Unsupported or FrameError with a sentence when it is no attention kernel."""
    body = placed(body)
    matmuls = [i for i, op in enumerate(body.ops) if op.kind == "matmul"]
    if len(matmuls) != 2:
        raise Unsupported(f"An attention kernel holds two matmuls, not {len(matmuls)}.")
    chain = attention_chain(body, matmuls[1])
    if chain is None:
        raise Unsupported("Its second matmul does not weigh values by a softmax of the first one's scores.")
    reason = unfit_because(body, chain)
    if reason:
        raise Unsupported(reason)
    scores, values = body.ops[chain.scores], body.ops[chain.values]
    batch, rows, keys, depth = matmul_extents(body, scores)
    width = matmul_extents(body, values)[2]
    operands = (
        _computed(body, chain, QUERIES) or _loaded(body, scores.inputs[0], batch, (rows, depth), "queries"),
        _computed(body, chain, KEYS) or _loaded(body, scores.inputs[1], batch, (depth, keys), "keys"),
        _loaded(body, values.inputs[1], batch, (keys, width), "values"),
    )
    _check_single_use(body, chain)
    masking, outputs = read_masking(body, chain), stored_outputs(body)
    peaks, totals = (tuple(o for o in outputs if o.index == index) for index in (chain.peak, chain.total))
    if (peaks or totals) and not masking.plain:
        raise Unsupported("The largest logit of a row leaves an attention kernel only where nothing is masked.")
    results = tuple(output for output in outputs if output not in (*peaks, *totals))
    return AttentionFacts(
        body,
        chain,
        batch,
        rows,
        keys,
        depth,
        width,
        body.ops[scores.inputs[0]].out.dtype,
        bool(scores.attribute("allow_tf32", False) and values.attribute("allow_tf32", False)),
        *operands,
        masking,
        tuple((output, _place(body, chain.values, output)) for output in results),
        peaks,
        totals,
    )


def _tile(extent: int) -> int:
    """The smallest power of two, of at least 16, that holds `extent`."""
    return max(_SMALLEST_TILE, 1 << max(extent - 1, 0).bit_length())


def _computed(body: Graph, chain: AttentionChain, operand: int) -> Loaded | None:
    """The operand as what the kernel computes head by head from what it loads, or None where it doesn't."""
    batch, rows, keys, depth = matmul_extents(body, body.ops[chain.scores])
    frame = whole_frame(batch * rows * depth) if operand == QUERIES else key_frame(batch, keys, depth)
    source, place = resolve(body, body.ops[chain.scores].inputs[operand], frame)
    if body.ops[source].kind == "input":
        return None
    if source not in operand_prologue(body, chain, operand):
        raise Unsupported(
            "Queries and keys of an attention kernel are read from memory, or computed head by head in it."
        )
    count = rows if operand == QUERIES else keys
    streamed = streamed_bytes(body, source, place, (depth, count))
    return Loaded(source, place, None, "it is computed in the kernel", computed=True, streamed_bytes=streamed)


def _loaded(body: Graph, index: int, batch: int, extents: tuple[int, int], name: str) -> Loaded:
    source, place = resolve(body, index, whole_frame(batch * extents[0] * extents[1]))
    if body.ops[source].kind != "input":
        raise Unsupported(f"The {name} of an attention kernel are read from memory, not computed in it.")
    try:
        rows, reason = _rows(body.ops[source].out.element_bytes, place, batch, extents, is_key=name == "keys")
    except FrameError as error:
        rows, reason = None, str(error)
    return Loaded(source, place, rows, reason)


def _rows(
    element_bytes: int, place: Frame, batch: int, extents: tuple[int, int], *, is_key: bool
) -> tuple[Rows | None, str]:
    """The descriptor form of an operand, or why it has none."""
    first, second, outer = split_by_axes(place, [extents[1], extents[0], batch])
    inner, along = (second, first) if is_key else (first, second)
    width, count = (extents[0], extents[1]) if is_key else (extents[1], extents[0])
    if not (is_single_stride(inner, width) and is_single_stride(along, count)):
        return None, "its axes are no single strides"
    if width > 1 and (not inner or inner[0].place != 1):
        return None, "the elements of a head are not neighbours"
    stride = along[0].place if along else -(-width * element_bytes // 16) * 16 // element_bytes
    if count > 1 and not along:
        return None, "one of its axes is expanded"
    if place.offset * element_bytes % 16 or stride * element_bytes % 16:
        return None, "its rows are not 16-byte aligned"
    rows = tuple(digit for digit in outer if digit.place % stride == 0)
    columns = tuple(digit for digit in outer if digit.place % stride)
    wide = width + sum((digit.extent - 1) * digit.place for digit in columns)
    if wide > stride:
        return None, "its batch is no multiple of its rows"
    if columns and width != _tile(width):
        return None, f"its neighbouring heads of {width} elements don't fill a tile"
    long = count + sum((digit.extent - 1) * (digit.place // stride) for digit in rows)
    if max(long, wide) >= 2**31:
        return None, "it is larger than a descriptor can say"
    moved = tuple(Digit(digit.extent, digit.step, digit.place // stride) for digit in rows)
    return Rows((long, wide), (stride, 1), place.offset, moved, columns), ""


def _check_single_use(body: Graph, chain: AttentionChain) -> None:
    """Triton 3.6 miscompiles a loop that multiplies a loaded tile with wgmma and computes on it as well."""
    loads = {_input_of(body, i) for i in (*body.ops[chain.scores].inputs, body.ops[chain.values].inputs[1])}
    others = {
        _input_of(body, i)
        for index, op in enumerate(body.ops)
        if op.kind not in ("view", "matmul")
        for i in op.inputs
        if index not in (chain.scores, chain.values)
    }
    if loads & others - {None}:
        raise Unsupported("A tensor is multiplied as it is and computed on in one loop, which Triton 3.6 miscompiles.")


def _input_of(body: Graph, index: int) -> int | None:
    while body.ops[index].kind == "view":
        index = body.ops[index].inputs[0]
    return index if body.ops[index].kind == "input" else None


def _place(body: Graph, values: int, output: Output) -> Frame:
    """Where an output stores the element that the values' matmul computes: views in between only move elements."""
    moves: list[TensorSpec] = []
    index = output.index
    while index != values:
        op = body.ops[index]
        if op.kind == "view":
            if body.ops[op.inputs[0]].kind == "view":
                raise Unsupported("A view of a view stands between the values and an output.")
            moves.append(op.out)
        elif op.kind not in ("copy", "cast"):
            raise Unsupported(f"An attention kernel stores what it computes, and {op.kind} stands behind it.")
        index = op.inputs[0]
    place = whole_frame(output.spec.numel)
    for view in reversed(moves):
        place = _moved(place, view)
    return place


def _moved(place: Frame, view: TensorSpec) -> Frame:
    """Where elements go that a view re-reads in its own order; each is read once."""
    steps = [(extent, stride) for extent, stride in zip(view.shape, view.strides, strict=True) if extent > 1]
    expected = 1
    for extent, stride in sorted(steps, key=lambda step: step[1]):
        if stride != expected:
            raise Unsupported("An output of an attention kernel is no permutation of its values.")
        expected *= extent
    if place != whole_frame(expected) or view.offset:
        raise Unsupported("An output of an attention kernel is moved twice, or is a part of its values.")
    strides = [math.prod(view.shape[axis + 1 :]) for axis in range(len(view.shape))]
    digits = [
        Digit(extent, stride, out)
        for extent, stride, out in zip(view.shape, view.strides, strides, strict=True)
        if extent > 1
    ]
    return Frame(tuple(sorted(digits, key=lambda digit: digit.step)), 0)
