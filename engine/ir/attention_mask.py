"""Which keys a query sees, read from the arithmetic of an attention's mask.

A mask that compares positions says low <= row - column <= high. Such bounds are conditions that every visible key
meets: a kernel leaves out whole blocks of other keys, and a roofline counts no work for them.
"""

from __future__ import annotations

from dataclasses import dataclass

from engine.ir.attention import AttentionChain, attention_chain, steps_to_scores
from engine.ir.graph import Graph, Op
from engine.ir.measures import op_flops
from engine.ir.views import view_axes

FAR_BELOW = -1e30
"""A fill at or below this weighs nothing beside any score, so a masked key is no different from an absent one."""
_MOST_STEPS = 256
"""Ops of a mask's arithmetic that are looked at; a hostile body can ask for no more."""
_MINUS_INFINITY = float("-inf")
_NEGATED = {"lt": "ge", "le": "gt", "gt": "le", "ge": "lt", "ne": "eq"}


@dataclass(frozen=True, slots=True)
class Bounds:
    """Visible keys have low <= row - column <= high (None = no bound). `exact` says that no other key is hidden."""

    low: int | None = None
    high: int | None = None
    exact: bool = True

    def both(self, other: Bounds) -> Bounds:
        lows = [b for b in (self.low, other.low) if b is not None]
        highs = [b for b in (self.high, other.high) if b is not None]
        return Bounds(max(lows, default=None), min(highs, default=None), self.exact and other.exact)

    def every_row_sees(self, rows: int, keys: int) -> bool:
        """Whether each of `rows` rows certainly sees at least one of `keys` keys."""
        low, high = self.low, self.high
        reaches = (low is None or low <= 0) and (high is None or rows - 1 - high <= keys - 1)
        return self.exact and reaches and (low is None or high is None or low <= high)

    def pairs(self, rows: int, keys: int) -> int:
        """How many (row, key) pairs lie within the bounds."""
        upper = rows * keys if self.low is None else _clipped_sum(rows, 1 - self.low, keys)
        lower = 0 if self.high is None else _clipped_sum(rows, -self.high, keys)
        return max(upper - lower, 0)

    def keys_seen(self, rows: int, keys: int) -> int:
        """How many of the keys lie within the bounds of at least one row."""
        first = 0 if self.high is None else -self.high
        last = keys - 1 if self.low is None else rows - 1 - self.low
        return self._between(first, last, keys) if rows else 0

    def rows_seeing(self, rows: int, keys: int) -> int:
        """How many of the rows have at least one key within the bounds."""
        first = 0 if self.low is None else self.low
        last = rows - 1 if self.high is None else keys - 1 + self.high
        return self._between(first, last, rows) if keys else 0

    def _between(self, first: int, last: int, count: int) -> int:
        empty = self.low is not None and self.high is not None and self.low > self.high
        return 0 if empty else max(min(last, count - 1) - max(first, 0) + 1, 0)


UNKNOWN = Bounds(exact=False)


@dataclass(frozen=True, slots=True)
class Condition:
    """Op `index` says exactly these bounds or, when `negated`, their opposite."""

    index: int
    bounds: Bounds
    negated: bool


@dataclass(frozen=True, slots=True)
class _Mask:
    """One mask of a path: what it lets through, and what the rest becomes (0 where that is not known)."""

    bounds: Bounds
    fill: float
    condition: int | None
    negated: bool


@dataclass(frozen=True, slots=True)
class Masking:
    """What the path from scores to logits does. `bounds` may cut the loop; `scale` multiplies the scores by a positive
    number at op `scaled`, which may as well be applied after the maximum. `conditions` are truth values that say
    nothing but bounds. `plain` says that nothing is masked or capped, `infinite` that whatever is masked becomes -inf.
    """

    bounds: Bounds
    scaled: int
    scale: float
    conditions: tuple[Condition, ...]
    plain: bool
    infinite: bool


def read_masking(graph: Graph, chain: AttentionChain) -> Masking:
    """Walk from the logits down to the scores. Ops are computed place by place, so a mask hides whatever becomes of
    the scores below it, such as a cap by tanh; below an op that is not understood nothing is known of masks."""
    return _Reader(graph, chain).read()


def _clipped_sum(rows: int, shift: int, top: int) -> int:
    """Sum over r = 0 .. rows - 1 of r + shift clipped to 0 .. top."""
    start, full = min(max(-shift, 0), rows), min(max(top - shift, 0), rows)
    full = max(full, start)
    count = full - start
    return count * (start + full - 1) // 2 + count * shift + (rows - full) * top


@dataclass(frozen=True, slots=True)
class _Form:
    """number + sum of places[axis] * (coordinate along axis), over the axes of a value."""

    places: tuple[int, ...]
    number: int

    def minus(self, other: _Form) -> _Form:
        rank = max(len(self.places), len(other.places))
        left, right = ((0,) * (rank - len(f.places)) + f.places for f in (self, other))
        return _Form(tuple(a - b for a, b in zip(left, right, strict=True)), self.number - other.number)

    def negated(self) -> _Form:
        return _Form(tuple(-place for place in self.places), -self.number)


@dataclass(frozen=True, slots=True)
class _Truth:
    """Conditions `form >= 0` that a truth value needs; `exact` says that they are enough."""

    forms: tuple[_Form, ...] = ()
    exact: bool = True


_OPEN = _Truth(exact=False)


_OPAQUE = _Mask(UNKNOWN, 0.0, None, False)
"""What an op may do that isn't understood: masks above it hold whatever becomes of the scores below."""


class _Reader:
    def __init__(self, graph: Graph, chain: AttentionChain) -> None:
        self._graph = graph
        self._ops = graph.ops
        self._chain = chain
        self._left = _MOST_STEPS
        self._rows, self._keys = graph.ops[chain.logits].out.shape[-2:]

    def read(self) -> Masking:
        scores, scale = self._chain.scores, 1.0
        plain, fold, masked_last = True, True, True
        masks: list[_Mask] = []
        for step in steps_to_scores(self._graph, self._chain):
            op, below, factor = step.op, step.below, self._scale(step.op)
            masks_here = op.kind in ("where", "add")
            known = factor is not None or masks_here or op.kind in ("cast", "copy", "tanh")
            if below is None or not known or (masks_here and not masked_last):
                return self._joined([*masks, _OPAQUE], self._chain.scores, 1.0, False)
            if factor is not None and fold and below == scores:
                scores, scale = step.index, factor
                break
            if factor is not None or (op.kind in ("cast", "copy") and op.out.dtype != "float32"):
                fold = False
            elif op.kind == "tanh":
                plain = fold = masked_last = False
            elif masks_here:
                mask = self._where(op, below) if op.kind == "where" else self._added(op, below)
                masks.append(mask)
                plain = False
                fold = fold and op.kind == "where" and mask.fill <= FAR_BELOW
        return self._joined(masks, scores, scale, plain)

    def _joined(self, masks: list[_Mask], scores: int, scale: float, plain: bool) -> Masking:
        """A key that one mask gives -inf is out. With a finite fill a row without visible keys is the mean of all of
        its keys, so those masks bound nothing unless every row is known to see a key."""
        whole, hard = Bounds(), Bounds()
        for mask in masks:
            whole = whole.both(mask.bounds)
            hard = hard.both(mask.bounds if mask.fill == _MINUS_INFINITY else UNKNOWN)
        sees = all(m.fill <= FAR_BELOW for m in masks) and whole.every_row_sees(self._rows, self._keys)
        infinite = all(mask.fill == _MINUS_INFINITY and mask.condition is not None for mask in masks)
        conditions = tuple(
            Condition(mask.condition, mask.bounds, mask.negated)
            for mask in masks
            if mask.condition is not None and mask.bounds.exact and mask.bounds != Bounds()
        )
        return Masking(whole if sees else hard, scores, scale, conditions, plain, infinite)

    def _scale(self, op: Op) -> float | None:
        """The positive number that an op multiplies the scores by, or None when it does something else."""
        if op.kind not in ("mul", "div"):
            return None
        numbers = [self._number(i) for i in (op.inputs if op.kind == "mul" else op.inputs[1:])]
        found = [n for n in numbers if n is not None and 0 < n < float("inf")]
        if len(found) != 1:
            return None
        return found[0] if op.kind == "mul" else 1.0 / found[0]

    def _number(self, index: int) -> float | None:
        op = self._ops[index]
        while op.kind in ("cast", "copy"):
            op = self._ops[op.inputs[0]]
        return float(op.attribute("value")) if op.kind == "constant" else None

    def _where(self, op: Op, below: int) -> _Mask:
        """What a `where` on the path lets through, and the number it puts in the other places."""
        condition, kept, other = op.inputs
        if kept == other or condition == below:
            return _OPAQUE
        negate = other == below
        fill = self._number(kept if negate else other)
        bounds = self._bounds(self._truth(condition, negate))
        return _Mask(bounds, 0.0 if fill is None else fill, condition, negate)

    def _added(self, op: Op, below: int) -> _Mask:
        """What an added mask lets through: bounds where it is a `where` of zero and a far number."""
        mask = next((i for i in op.inputs if i != below), below)
        views: list[int] = []
        while self._ops[mask].kind in ("cast", "copy", "view"):
            if self._ops[mask].kind == "view":
                views.append(mask)
            mask = self._ops[mask].inputs[0]
        inner = self._ops[mask]
        if inner.kind != "where":
            return _OPAQUE
        condition, kept, other = inner.inputs[0], self._number(inner.inputs[1]), self._number(inner.inputs[2])
        if kept != 0 and other != 0:
            return _OPAQUE
        fill = other if kept == 0 else kept
        truth = self._truth(condition, kept != 0)
        for view in reversed(views):
            truth = self._viewed_truth(view, truth)
        return _Mask(self._bounds(truth), 0.0 if fill is None else fill, None, False)

    def _bounds(self, truth: _Truth) -> Bounds:
        """As bounds on row - column, the last two axes of the logits."""
        bounds = Bounds(exact=truth.exact)
        for form in truth.forms:
            places = ((0,) * 2 + form.places)[-2:]
            row, column = places
            straight = column in (1, -1) and (row == -column or self._rows == 1)
            if not straight or any(form.places[:-2]):
                bounds = bounds.both(UNKNOWN)
            elif column == -1:
                bounds = bounds.both(Bounds(low=-form.number))
            else:
                bounds = bounds.both(Bounds(high=form.number))
        return bounds

    def _truth(self, index: int, negate: bool) -> _Truth:
        op = self._ops[index]
        self._left -= 1
        if self._left < 0:
            return _OPEN
        if op.kind == "constant":
            return _Truth() if bool(op.attribute("value")) != negate else _OPEN
        if op.kind == "view":
            return self._viewed_truth(index, self._truth(op.inputs[0], negate))
        if op.kind in ("copy", "logical_not") or (op.kind == "cast" and op.out.dtype == "bool"):
            return self._truth(op.inputs[0], negate != (op.kind == "logical_not"))
        if op.kind == ("logical_or" if negate else "logical_and"):
            parts = [self._truth(i, negate) for i in op.inputs]
            return _Truth((*parts[0].forms, *parts[1].forms), parts[0].exact and parts[1].exact)
        kind = _NEGATED.get(op.kind, "") if negate else op.kind
        if kind not in ("lt", "le", "gt", "ge", "eq"):
            return _OPEN
        left, right = (self._form(i) for i in op.inputs)
        if left is None or right is None:
            return _OPEN
        above = left.minus(right)
        strict = 1 if kind in ("lt", "gt") else 0
        found = [above] if kind in ("ge", "gt", "eq") else []
        found += [above.negated()] if kind in ("le", "lt", "eq") else []
        return _Truth(tuple(_Form(form.places, form.number - strict) for form in found))

    def _viewed_truth(self, view: int, truth: _Truth) -> _Truth:
        forms = [self._viewed(view, form) for form in truth.forms]
        known = tuple(form for form in forms if form is not None)
        return _Truth(known, truth.exact and len(known) == len(forms))

    def _viewed(self, view: int, form: _Form | None) -> _Form | None:
        """A form of what a view re-reads, along the axes of the view."""
        source = self._ops[view].inputs[0]
        while self._ops[source].kind == "view":
            source = self._ops[source].inputs[0]
        direct = source == self._ops[view].inputs[0]
        axes = view_axes(self._ops[view].out, self._ops[source].out)
        if axes is None or form is None or not direct:
            return None
        lead = len(self._ops[source].out.shape) - len(form.places)
        places = (0,) * lead + form.places
        return _Form(tuple(0 if axis is None else places[axis] for axis in axes), form.number)

    def _form(self, index: int) -> _Form | None:
        op = self._ops[index]
        self._left -= 1
        if self._left < 0:
            return None
        if op.kind == "constant":
            value = op.attribute("value")
            return _Form((), int(value)) if float(value).is_integer() else None
        if op.kind == "view":
            return self._viewed(index, self._form(op.inputs[0]))
        if op.kind == "iota":
            axis = op.attribute("axis")
            return _Form(tuple(int(i == axis and extent > 1) for i, extent in enumerate(op.out.shape)), 0)
        if op.kind in ("cast", "copy") and op.out.dtype in ("int64", "int32"):
            return self._form(op.inputs[0])
        if op.kind not in ("add", "sub"):
            return None
        left, right = (self._form(i) for i in op.inputs)
        if left is None or right is None:
            return None
        return left.minus(right if op.kind == "sub" else right.negated())


def hidden_flops(body: Graph) -> int:
    """Operations of a body's attention on pairs of a query and a key that the mask hides; 0 without an attention."""
    matmuls = [i for i, op in enumerate(body.ops) if op.kind == "matmul"]
    chain = attention_chain(body, matmuls[1]) if len(matmuls) == 2 else None
    if chain is None:
        return 0
    rows, keys = body.ops[chain.logits].out.shape[-2:]
    work = sum(op_flops(body, body.ops[i]) for i in chain.ops)
    pairs = rows * keys
    visible = read_masking(body, chain).bounds.pairs(rows, keys)
    return work * (pairs - visible) // pairs if pairs else 0
