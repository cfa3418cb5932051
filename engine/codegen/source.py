"""A generated kernel as text: everything that compiling and launching it needs, and no object of torch or triton."""

from __future__ import annotations

import hashlib
import json
from dataclasses import asdict, dataclass
from typing import Any, Literal

TRITON: Literal["triton"] = "triton"
GLUON: Literal["gluon"] = "gluon"
"""The dialects of a text: functions under @triton.jit, or under @gluon.jit, whose warps may have roles."""
CONTROLS_FOLDER = "acf"
"""The folder inside a compile folder that holds what a source's `acf` may name."""


@dataclass(frozen=True, slots=True)
class Argument:
    """One argument of the generated function, in order.

    `type` is Triton's signature text ("*bf16", "tensordesc<bf16[128,64]>"). `index` is the position among the
    kernel's inputs or outputs. A descriptor describes the tensor as a matrix of `shape` and `strides` (elements)
    from element `offset` on, counted from the address that a pointer to it would hold (`engine.ir.placement`),
    loaded in blocks of `block`; for a pointer these are empty (0).
    """

    name: str
    kind: Literal["input", "output"]
    index: int
    type: str
    block: tuple[int, ...] = ()
    shape: tuple[int, ...] = ()
    strides: tuple[int, ...] = ()
    offset: int = 0


@dataclass(frozen=True, slots=True)
class KernelSource:
    """`text` is a Python module that defines the `entry` function; all shapes are literals in it.

    Pointer arguments are 16-byte aligned by contract (the launcher allocates storage so, and passes the last boundary
    before a tensor's first element), which is what "divisible by 16" in the signature states. The text holds nothing of
    an input's place in its buffer but the rest behind that boundary, so it is every kernel's of its structural key
    whose inputs and outputs stand in the same order: `Grouping.launches` puts them so. `pdl` says that the text waits
    for the kernel before it, so that it may be started with programmatic dependent launch. `acf` names the controls
    file that ptxas assembles with, "" none. In the Gluon `dialect`, `num_warps` are those of one role, and the compiled
    kernel says how many there are in all.
    """

    text: str
    entry: str
    arguments: tuple[Argument, ...]
    grid: tuple[int, int, int]
    num_warps: int
    num_stages: int
    pdl: bool = False
    acf: str = ""
    dialect: Literal["triton", "gluon"] = "triton"

    @property
    def fingerprint(self) -> str:
        """sha256 over everything above: equal sources compile once."""
        return hashlib.sha256(self.to_json().encode()).hexdigest()

    def to_json(self) -> str:
        """What says nothing is left out: the text is as it is where nobody knows of controls or of another dialect."""
        data = asdict(self)
        if not data["acf"]:
            del data["acf"]
        if data["dialect"] == TRITON:
            del data["dialect"]
        return json.dumps(data, sort_keys=True, separators=(",", ":"))

    @classmethod
    def from_json(cls, text: str) -> KernelSource:
        data: dict[str, Any] = json.loads(text)
        arguments = tuple(
            Argument(**{**a, "block": tuple(a["block"]), "shape": tuple(a["shape"]), "strides": tuple(a["strides"])})
            for a in data.pop("arguments")
        )
        return cls(**{**data, "arguments": arguments, "grid": tuple(data["grid"])})
