"""One launch: a fused body of ops, its family, and the structural key that says what it computes.

`key`, `flops`, `bytes_moved` and `shape_text` are derived from the body, so equal kernels agree on them everywhere.
"""

from __future__ import annotations

from dataclasses import dataclass, field

from engine.ir.graph import Graph
from engine.ir.measures import count_bytes, count_flops, describe_shape
from engine.ir.structural_key import structural_key


@dataclass(frozen=True, slots=True)
class Kernel:
    """A fused body and the family that generates it ("contraction", "rowwise", "pointwise").

    `label` is for people ("matmul+gelu") and takes no part in equality or in the key.
    """

    family: str
    body: Graph
    label: str = field(default="", compare=False)
    _key: str = field(default="", init=False, repr=False, compare=False)

    def __post_init__(self) -> None:
        object.__setattr__(self, "_key", structural_key(self.family, self.body))

    @property
    def key(self) -> str:
        """Structural key: 24 hex digits, independent of names, process and hash seed."""
        return self._key

    @property
    def flops(self) -> int:
        return count_flops(self.body)

    @property
    def bytes_moved(self) -> int:
        """Fewest bytes of device memory: each input read once, each output written once."""
        return count_bytes(self.body)

    @property
    def shape_text(self) -> str:
        """For people, e.g. "4096x4096x4096 bfloat16"."""
        return describe_shape(self.family, self.body)
