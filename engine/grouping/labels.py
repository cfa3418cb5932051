"""A short human name of a kernel, from its ops: "matmul+add+gelu", "softmax", "rms_norm"."""

from __future__ import annotations

from collections.abc import Callable

from engine.ir.attention import ATTENTION
from engine.ir.graph import Graph

_UNNAMED = frozenset({"input", "constant", "view", "cast", "copy", "iota"})
_MAX_PARTS = 5


def kernel_label(family: str, body: Graph) -> str:
    """At most five op kinds joined with "+"; a rowwise kernel is called by what it is where that is recognizable."""
    kinds = [op.kind for op in body.ops if op.kind not in _UNNAMED]
    if family == ATTENTION:
        return family
    if family == "extern":
        return next(str(op.attribute("op")).removeprefix("aten.").split(".")[0] for op in body.ops if op.kind == family)
    if family == "rowwise":
        for name, matches in _RECOGNIZED:
            if matches(set(kinds), kinds):
                return name
    if family == "contraction":
        kinds = _around_matmul(body)
    if not kinds:
        kinds = [op.kind for op in body.ops if op.kind in ("cast", "copy", "iota")]
    parts = list(dict.fromkeys(kinds))
    return "+".join(parts[:_MAX_PARTS]) + ("…" if len(parts) > _MAX_PARTS else "")


def _around_matmul(body: Graph) -> list[str]:
    """Kinds of the prologue, the matmul, then the kinds of the epilogue that the prologue doesn't name."""
    positions = [i for i, op in enumerate(body.ops) if op.kind == "matmul"]
    before = set(positions)
    for index in range(positions[-1], -1, -1):
        if index in before:
            before.update(body.ops[index].inputs)
    product = f"{len(positions)} matmuls" if len(positions) > 1 else "matmul"
    named = [
        (i, product if op.kind == "matmul" else op.kind) for i, op in enumerate(body.ops) if op.kind not in _UNNAMED
    ]
    return [kind for i, kind in named if i in before] + [kind for i, kind in named if i not in before]


def _is_softmax(kinds: set[str], ops: list[str]) -> bool:
    return {"amax", "sub", "exp", "sum", "div"} <= kinds and "log" not in kinds


def _is_log_softmax(kinds: set[str], ops: list[str]) -> bool:
    return {"amax", "exp", "sum", "log"} <= kinds and ops.count("sub") == 2


def _is_layer_norm(kinds: set[str], ops: list[str]) -> bool:
    return ops.count("mean") == 2 and {"sub", "rsqrt", "mul"} <= kinds


def _is_rms_norm(kinds: set[str], ops: list[str]) -> bool:
    squares = "mean" in kinds and "mul" in ops[: ops.index("mean")]
    return squares and ops.count("mean") == 1 and {"mul", "rsqrt"} <= kinds and "sub" not in kinds


_RECOGNIZED: tuple[tuple[str, Callable[[set[str], list[str]], bool]], ...] = (
    ("softmax", _is_softmax),
    ("log_softmax", _is_log_softmax),
    ("layer_norm", _is_layer_norm),
    ("rms_norm", _is_rms_norm),
)
