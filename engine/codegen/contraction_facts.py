"""What a contraction body is: one matmul, or a few of one left operand; how each operand is read; its outputs."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass, replace

from engine.codegen.emit import Axis, IndexSpace, resolve
from engine.codegen.family import Unsupported
from engine.codegen.frames import Digit, Frame, FrameError, is_single_stride, split_by_axes, whole_frame
from engine.codegen.outputs import Output, stored_outputs
from engine.ir.column_groups import GroupError, column_group
from engine.ir.graph import DTYPE_BYTES, Graph
from engine.ir.measures import matmul_extents
from engine.ir.placement import placed
from engine.ir.siblings import MAX_SIBLINGS, product_parts, reached_products
from engine.ir.views import storage_roots


@dataclass(frozen=True, slots=True)
class Matrix:
    """An input read as a row-major matrix, the form a TMA descriptor takes.

    `shape`, `strides` and `offset` in elements. `transposed` says that its rows are the operand's second axis.
    A batch is folded into the rows: `row_digits` say by how many a matrix of the batch begins further down, which is
    the same for all that share a matrix (no digits: all do).
    """

    shape: tuple[int, int]
    strides: tuple[int, int]
    offset: int
    transposed: bool
    row_digits: tuple[Digit, ...]


@dataclass(frozen=True, slots=True)
class Operand:
    """One side of the matmul: op `index`, and its extents along the tile axes (rows x depth, or depth x columns).

    `source` is the input that is loaded and multiplied as it is, or None where a prologue makes a new tile of it.
    `place` is then its position in storage. `matrix` is its descriptor form; where it has none, `no_matrix` says why.
    `read` are all inputs that this operand reads.
    """

    index: int
    dtype: str
    extents: tuple[int, int]
    source: int | None
    place: Frame | None
    matrix: Matrix | None
    no_matrix: str
    read: frozenset[int]


@dataclass(frozen=True, slots=True)
class ContractionFacts:
    """`batch` products of m x k by k x n. `dtype` is that of the multiplied tiles, `accumulator` of their sum.

    `siblings` are further matmuls of the same left operand and of equal extents, each with its right operand; a tile
    of every one of them is held at once. `computed` are the ops that depend on these matmuls; some of them need groups
    of `group` neighbouring columns whole (0: none does). Where `beside` isn't empty, the kernel is these parts side by
    side, each with its tiles and outputs; `n` is then the sum of their widths, and the right operand the first one's.
    """

    body: Graph
    matmul: int
    batch: int
    m: int
    n: int
    k: int
    dtype: str
    accumulator: str
    allow_tf32: bool
    left: Operand
    right: Operand
    outputs: tuple[Output, ...]
    siblings: tuple[tuple[int, Operand], ...] = ()
    computed: frozenset[int] = frozenset()
    group: int = 0
    beside: tuple[ContractionFacts, ...] = ()

    @property
    def parts(self) -> tuple[ContractionFacts, ...]:
        """The facts of each set of tiles: one, unless products lie side by side."""
        return self.beside or (self,)

    @property
    def products(self) -> int:
        """How many matmuls a program multiplies at once, at most."""
        return max(1 + len(part.siblings) for part in self.parts)

    @property
    def rights(self) -> tuple[Operand, ...]:
        """The right operands of a program, of the part with most of them."""
        part = max(self.parts, key=lambda part: len(part.siblings))
        return (part.right, *(operand for _, operand in part.siblings))

    @property
    def operands(self) -> tuple[Operand, ...]:
        """Every operand of the kernel, the left one first."""
        return (self.left, *(right for part in self.parts for right in part.rights))

    @property
    def matmuls(self) -> tuple[int, ...]:
        """The matmuls whose tiles one epilogue takes, in order."""
        return (self.matmul, *(index for index, _ in self.siblings))

    @property
    def computes(self) -> bool:
        """Whether an epilogue computes something of the products before they are stored."""
        return any(output.index not in self.matmuls for output in self.outputs)

    @property
    def element_bytes(self) -> int:
        return DTYPE_BYTES[self.dtype]

    @property
    def shares_operand(self) -> bool:
        """One operand multiplies an input as it is, and another computes on that same input in the same loop."""
        if self.beside:
            return any(part.shares_operand for part in self.beside)
        operands = (self.left, *self.rights)
        computed = frozenset().union(*(operand.read for operand in operands if operand.source is None))
        return any(operand.source in computed for operand in operands)


def contraction_facts(body: Graph) -> ContractionFacts:
    """Read the body. Raises Unsupported or FrameError with a sentence when it is no contraction kernel."""
    body = placed(body)
    count = sum(op.kind == "matmul" for op in body.ops)
    if not 1 <= count <= MAX_SIBLINGS:
        raise Unsupported(
            f"A contraction kernel holds one matmul, or up to {MAX_SIBLINGS} of one operand, not {count}."
        )
    reached = reached_products(body, storage_roots(body), range(len(body.ops)))
    found = product_parts(body, reached)
    if found is None:
        raise Unsupported("The matmuls of a contraction kernel differ in their left operand, depth or precision.")
    outputs = stored_outputs(body)
    if len(found) == 1:
        return _part(body, found[0], reached, outputs)
    for output in outputs:
        if not reached[output.index]:
            raise Unsupported(f"Output {output.position} needs none of the matmuls, which lie side by side.")
    parts = tuple(
        _part(body, matmuls, reached, tuple(o for o in outputs if reached[o.index] <= set(matmuls)))
        for matmuls in found
    )
    return replace(parts[0], n=sum(part.n for part in parts), outputs=outputs, beside=parts)


def _part(
    body: Graph, matmuls: tuple[int, ...], reached: Mapping[int, frozenset[int]], outputs: tuple[Output, ...]
) -> ContractionFacts:
    op = body.ops[matmuls[0]]
    batch, m, n, k = matmul_extents(body, op)
    if batch * m * n * k == 0:
        raise Unsupported("A matmul of an empty tensor has nothing to multiply.")
    dtype = body.ops[op.inputs[0]].out.dtype
    if dtype == "float64":
        raise Unsupported("A float64 matmul is not written by the contraction family.")
    computed = frozenset(i for i, products in reached.items() if products & set(matmuls))
    try:
        group = column_group(body, computed, n)
    except GroupError as reason:
        raise Unsupported(str(reason)) from None
    for output in outputs:
        grouped = group and output.spec.numel == batch * m * (n // group)
        if output.spec.numel != batch * m * n and not grouped:
            raise Unsupported(f"Output {output.position} has another size than the matmul.")
    return ContractionFacts(
        body,
        matmuls[0],
        batch,
        m,
        n,
        k,
        dtype,
        "float32",
        bool(op.attribute("allow_tf32", False)),
        _operand(body, op.inputs[0], batch, (m, k)),
        _operand(body, op.inputs[1], batch, (k, n)),
        outputs,
        tuple((i, _operand(body, body.ops[i].inputs[1], batch, (k, n))) for i in matmuls[1:]),
        computed,
        group,
    )


def operand_frame(batch: int, extents: tuple[int, int]) -> Frame:
    return whole_frame(batch * extents[0] * extents[1])


def _operand(body: Graph, index: int, batch: int, extents: tuple[int, int]) -> Operand:
    frame = operand_frame(batch, extents)
    read = _inputs_read(body, index)
    dtype = body.ops[index].out.dtype
    try:
        source, place = resolve(body, index, frame)
    except FrameError:
        source, place = index, frame
    if body.ops[source].kind != "input":
        return Operand(index, dtype, extents, None, None, None, "its operand is computed in a prologue", read)
    matrix, reason = _matrix(body.ops[source].out.element_bytes, place, batch, extents)
    return Operand(index, dtype, extents, source, place, matrix, reason, read)


def _inputs_read(body: Graph, index: int) -> frozenset[int]:
    seen: set[int] = set()
    stack = [index]
    while stack:
        current = stack.pop()
        if current not in seen:
            seen.add(current)
            stack.extend(body.ops[current].inputs)
    return frozenset(i for i in seen if body.ops[i].kind == "input")


def _matrix(element_bytes: int, place: Frame, batch: int, extents: tuple[int, int]) -> tuple[Matrix | None, str]:
    """The descriptor form of an operand, or why it has none."""
    second, first, outer = split_by_axes(place, [extents[1], extents[0], batch])
    if not (is_single_stride(first, extents[0]) and is_single_stride(second, extents[1])):
        return None, "its axes are no single strides"
    stride = [_stride(group) for group in (first, second)]
    if place.offset * element_bytes % 16:
        return None, "its first element is not 16-byte aligned"
    unit = [axis for axis in (1, 0) if stride[axis] == 1] + [axis for axis in (1, 0) if extents[axis] == 1]
    if not unit:
        return None, "neither of its axes has stride 1"
    transposed = unit[0] == 0
    rows, columns, row_stride = extents[1 - unit[0]], extents[unit[0]], stride[1 - unit[0]]
    if rows == 1:
        row_stride = -(-columns * element_bytes // 16) * 16 // element_bytes
    if row_stride == 0:
        return None, "one of its axes is expanded"
    if row_stride * element_bytes % 16:
        return None, "its row stride is no multiple of 16 bytes"
    if any(digit.place % row_stride for digit in outer):
        return None, "its batch stride is no multiple of its row stride"
    digits = tuple(Digit(digit.extent, digit.step, digit.place // row_stride) for digit in outer)
    total = rows + sum((digit.extent - 1) * digit.place for digit in digits)
    if max(total, columns) >= 2**31:
        return None, "it is larger than a descriptor can say"
    return Matrix((total, columns), (row_stride, 1), place.offset, transposed, digits), ""


def _stride(group: list[Digit]) -> int:
    return group[0].place if group else 0


def space_of(name: str, first: Axis, second: Axis, batch: int) -> IndexSpace:
    """The index space of a tile with rows `first` and columns `second`, under a batch."""
    return IndexSpace(name, (second, first, Axis("batch", batch)))


def tiles_of(facts: ContractionFacts, block_m: int, block_n: int) -> int:
    """Output tiles of one launch."""
    return sum(part.batch * math.ceil(part.m / block_m) * math.ceil(part.n / block_n) for part in facts.parts)
