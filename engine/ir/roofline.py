"""The time below which no schedule of a kernel can come, from its bytes, its products and what the GPU can reach.

A roofline (Williams, Waterman, Patterson 2009) whose ceilings are measured on the GPU itself, not read in a data
sheet. It counts what every correct schedule must do: read each input and write each output once, multiply each pair
once, and only the pairs that a mask of positions shows (`engine.ir.needed`). Cheap arithmetic between them overlaps
with both, and launching costs what it costs, so the floor holds and isn't always met.

Memory reads faster than it writes, so reads and writes have a rate each: a kernel that mostly reads comes below the
time that a copy of as many bytes takes. And a schedule may keep as much as the L2 holds there from launch to launch.
"""

from __future__ import annotations

import json
from dataclasses import dataclass

from engine.ir.graph import Graph, Op
from engine.ir.kernel import Kernel
from engine.ir.needed import needed_work

SPLIT_PRODUCTS = 3.0
"""A product of fp32 values is the sum of so many products of tf32 values (`PRECISION=tf32x3`)."""

MOST_READING = 2.0
"""Reading alone is never so many times faster than a copy: from the memory of an H200 it is 1.1 times. A rate beyond
that timed what launches wait for, and a copy's stands for it."""

MEMORY, COMPUTE = "memory", "compute"
_KINDS = {"bfloat16": "bf16", "float16": "fp16", "float32": "fp32"}


@dataclass(frozen=True, slots=True)
class Ceilings:
    """What a GPU reaches: `copy_gbs` of a large copy (bytes read plus written), `tflops` of large matmuls by kind.

    Kinds are "bf16", "fp16", "tf32" and "fp32". `l2_gbs` is that of a copy within `l2_bytes`, where the data stays in
    the L2 between launches; 0 where the L2 is flushed before each launch, or that isn't known. `read_gbs` and
    `l2_read_gbs` are those of a sum, which only reads; 0 where they aren't known, and a copy's stand for them.
    """

    copy_gbs: float
    tflops: tuple[tuple[str, float], ...]
    l2_gbs: float = 0.0
    l2_bytes: int = 0
    read_gbs: float = 0.0
    l2_read_gbs: float = 0.0

    @property
    def text(self) -> str:
        """Canonical JSON, which `from_text` reads."""
        data = {
            "copy_gbs": self.copy_gbs,
            "tflops": dict(self.tflops),
            "l2_gbs": self.l2_gbs,
            "l2_bytes": self.l2_bytes,
            "read_gbs": self.read_gbs,
            "l2_read_gbs": self.l2_read_gbs,
        }
        return json.dumps(data, sort_keys=True, separators=(",", ":"))

    @classmethod
    def from_text(cls, text: str) -> Ceilings:
        """Raises ValueError for what is no ceilings: every rate is a positive number."""
        try:
            data = json.loads(text)
            tflops = tuple(sorted((str(kind), float(rate)) for kind, rate in data["tflops"].items()))
            found = cls(
                *(float(data["copy_gbs"]), tflops, float(data["l2_gbs"]), int(data["l2_bytes"])),
                *(float(data.get("read_gbs", 0.0)), float(data.get("l2_read_gbs", 0.0))),
            )
        except (KeyError, TypeError, AttributeError, ValueError):
            raise ValueError(f"not a GPU's ceilings: {text[:80]!r}") from None
        if not (found.copy_gbs > 0 and all(rate > 0 for _, rate in tflops)):
            raise ValueError(f"not a GPU's ceilings: {text[:80]!r}")
        return found

    def rate(self, kind: str, *, tf32: bool = False) -> float | None:
        """TFLOP/s of products of that kind; of fp32 the fastest that keeps the precision asked for. None if unknown."""
        known = dict(self.tflops)
        if kind != "fp32":
            return known.get(kind)
        by_parts = known.get("tf32", 0.0) / (1.0 if tf32 else SPLIT_PRODUCTS)
        return max(known.get("fp32", 0.0), by_parts) or None


def floor_us(kernel: Kernel, ceilings: Ceilings) -> tuple[float, str]:
    """The floor of a kernel in us, and what sets it: "memory" or "compute"."""
    needed = needed_work(kernel.body)
    memory = _memory_us(needed.read_bytes, needed.written_bytes, ceilings)
    compute = sum(_product_us(kernel.body, kernel.body.ops[i], flops, ceilings) for i, flops in needed.products.items())
    return (compute, COMPUTE) if compute > memory else (memory, MEMORY)


def _memory_us(read: int, written: int, ceilings: Ceilings) -> float:
    """What moving so many bytes takes at least, in us: from the GPU's memory what the L2 can't keep, from the L2 all.

    What the L2 keeps is taken off at the dearer of the two rates, as nobody says which bytes a schedule keeps there.
    Ceilings without a rate of reading are an older measurement, and give the floor that they gave: all bytes at the
    rate of a copy, within the L2 or beyond it.
    """
    if not ceilings.read_gbs > 0:
        near = 0 < read + written <= ceilings.l2_bytes and ceilings.l2_gbs > 0
        return (read + written) / ((ceilings.l2_gbs if near else ceilings.copy_gbs) * 1e3)
    per_read, per_written = _us_per_byte(ceilings.copy_gbs, ceilings.read_gbs)
    far = read * per_read + written * per_written
    if not (ceilings.l2_bytes > 0 and ceilings.l2_gbs > 0):
        return far
    far -= ceilings.l2_bytes * max(per_read, per_written)
    near_read, near_written = _us_per_byte(ceilings.l2_gbs, ceilings.l2_read_gbs)
    return max(far, read * near_read + written * near_written)


def reading_gbs(copy_gbs: float, measured_gbs: float) -> float:
    """GB/s of reading alone: as measured, if that can be, else a copy's. A copy reads, so it is never the faster one.

    >>> reading_gbs(4000.0, 4400.0), reading_gbs(4000.0, 0.0), reading_gbs(4000.0, 60000.0)
    (4400.0, 4000.0, 4000.0)
    """
    return measured_gbs if copy_gbs < measured_gbs <= MOST_READING * copy_gbs else copy_gbs


def _us_per_byte(copy_gbs: float, read_gbs: float) -> tuple[float, float]:
    """For a byte read and a byte written: what a copy takes for one of each is what both take together."""
    read = 1e-3 / reading_gbs(copy_gbs, read_gbs)
    return read, 2e-3 / copy_gbs - read


def _product_us(body: Graph, op: Op, flops: float, ceilings: Ceilings) -> float:
    """What the GPU needs for so many operations of one op's products, in us; 0 for a kind that isn't known."""
    kind = _KINDS.get(body.ops[op.inputs[0]].out.dtype)
    rate = ceilings.rate(kind, tf32=bool(op.attribute("allow_tf32"))) if kind is not None else None
    return flops / (rate * 1e6) if rate else 0.0
