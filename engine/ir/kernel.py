"""One launch: a fused body of ops, its family, and the structural key that says what it computes.

`key`, `flops`, `bytes_moved` and `shape_text` are derived from the body, so equal kernels agree on them everywhere.
"""

from __future__ import annotations

from dataclasses import dataclass, field

from engine.ir.attention_mask import hidden_flops
from engine.ir.foreign import Identity, foreign_key
from engine.ir.graph import Graph
from engine.ir.measures import count_bytes, count_flops, describe_shape
from engine.ir.structural_key import KEY_DIGITS, structural_key


@dataclass(frozen=True, slots=True)
class Kernel:
    """A fused body and the family that generates it ("contraction", "attention", "rowwise", "pointwise", "extern").

    `label` is for people ("matmul+gelu") and takes no part in equality or in the key. `foreign` is the identity of
    a kernel of another tool; its family is "foreign" and its body is `engine.ir.foreign.NO_BODY`.
    """

    family: str
    body: Graph
    label: str = field(default="", compare=False)
    foreign: Identity | None = None
    _key: str = field(default="", init=False, repr=False, compare=False)

    def __post_init__(self) -> None:
        own = structural_key(self.family, self.body) if self.foreign is None else foreign_key(self.foreign, KEY_DIGITS)
        object.__setattr__(self, "_key", own)

    @property
    def key(self) -> str:
        """Structural key: 24 hex digits, independent of names, process and hash seed."""
        return self._key

    @property
    def flops(self) -> int:
        """Floating point operations of `count_flops`, without those on keys that the mask of an attention hides."""
        return count_flops(self.body) - hidden_flops(self.body)

    @property
    def bytes_moved(self) -> int:
        """Fewest bytes of device memory: each input read once, each output written once."""
        return count_bytes(self.body)

    @property
    def shape_text(self) -> str:
        """For people, e.g. "4096x4096x4096 bfloat16"."""
        if self.foreign is not None:
            return self.foreign.problem
        return describe_shape(self.family, self.body)
