"""What every kernel that multiplies with tl.dot obeys: its smallest tile, its precision, its largest block."""

from __future__ import annotations

from collections.abc import Callable

from engine.codegen.family import Values
from engine.knobs import KNOBS
from engine.vocabulary import KnobValue, Target

Check = Callable[[Values], str | None]

SMALLEST_SIDE = 16
"""The smallest side of a tile that tl.dot multiplies."""
TILE_ELEMENTS = 2**20
"""The most elements that Triton allows a block."""
TMA_SIDE = 256
"""The most elements of a TMA block along an axis (CUDA driver API, cuTensorMapEncodeTiled)."""
TMA_CAPABILITY = 90
NEEDS_TMA = "needs TMA, which came with compute capability 9.0"
WITHOUT_TMA = f"LOADS=descriptor {NEEDS_TMA}."
WGMMA_ROWS = 64
"""From this many tile rows on, 16-bit tiles are multiplied by wgmma (sm_90 and above) instead of mma.sync."""


def smallest_tile(name: str) -> Check:
    """tl.dot multiplies no tile with a side below 16."""

    def broken(v: Values) -> str | None:
        if int(v[name]) >= SMALLEST_SIDE:
            return None
        return f"{name}={v[name]} is below {SMALLEST_SIDE}, the smallest tile that tl.dot multiplies."

    return broken


def descriptor_law(target: Target, unsuited: Check) -> Check:
    """TMA's conditions (CUDA driver API, cuTensorMapEncodeTiled) where descriptors load: a GPU that has it, and what
    `unsuited` says of the blocks."""

    def broken(v: Values) -> str | None:
        if v["LOADS"] != "descriptor":
            return None
        return WITHOUT_TMA if target.capability < TMA_CAPABILITY else unsuited(v)

    return broken


def too_wide_block(rows: int, columns: int) -> str | None:
    """Why TMA can't move such a block at once, or None."""
    if max(rows, columns) <= TMA_SIDE:
        return None
    return f"A TMA block of {rows} x {columns} has more than {TMA_SIDE} elements along an axis."


def too_many_accumulators(each: int) -> str | None:
    """Why a thread can't hold so many accumulators, or None."""
    return f"{each} accumulators a thread don't fit its 255 registers." if each > 255 else None


def too_deep_pipeline(needed: int, target: Target) -> str | None:
    """Why a pipeline of so many bytes can't be built, or None."""
    if needed <= target.shared_bytes:
        return None
    return f"Its pipeline needs {needed} bytes of shared memory, and a block has {target.shared_bytes}."


def too_much_shared(needed: int, target: Target) -> str | None:
    """Why a kernel that is thought to need so many bytes in all isn't worth a try, or None."""
    if needed <= target.shared_bytes:
        return None
    return f"It needs about {needed} bytes of shared memory, and a block has {target.shared_bytes}."


def precision_values(dtype: str, allow_tf32: bool) -> tuple[KnobValue, ...]:
    """How operands of `dtype` may be multiplied without losing precision that the user did not give away."""
    if dtype != "float32":
        return ("ieee",)
    return ("ieee", "tf32x3", "tf32") if allow_tf32 else ("ieee", "tf32x3")


def precision_law(dtype: str, allow_tf32: bool, product: str) -> Check:
    """The same as a law; `product` says what is multiplied, for the sentence."""

    def broken(v: Values) -> str | None:
        if dtype != "float32" and v["PRECISION"] != "ieee":
            return f"PRECISION={v['PRECISION']} is for float32 operands; these are {dtype}."
        if v["PRECISION"] == "tf32" and not allow_tf32:
            return f"PRECISION=tf32 rounds float32 operands to 10 bits, and this {product} doesn't allow TF32."
        return None

    return broken


def values_up_to(name: str, extent: int) -> tuple[KnobValue, ...]:
    """The knob's values that tl.dot multiplies, up to the first that covers `extent`."""
    values = tuple(v for v in KNOBS[name].values if int(v) >= SMALLEST_SIDE)
    return tuple(v for i, v in enumerate(values) if i == 0 or int(values[i - 1]) < extent)


def wgmma_warps(element_bytes: int, rows: int, warps: int) -> str | None:
    """Why these warps don't suit a tile of 16-bit operands that wgmma would multiply, or None."""
    if element_bytes == 2 and rows >= WGMMA_ROWS and warps < 4:
        return "A wgmma is issued by four warps."
    if element_bytes == 2 and rows == WGMMA_ROWS and warps == 8:
        return "NUM_WARPS=8 splits a wgmma tile of 64 rows between two warp groups."
    return None


def deeper_than_loop(stages: int, steps: int) -> str | None:
    """Why a main loop of so many steps can't be pipelined so deep, or None."""
    return f"NUM_STAGES={stages} is deeper than the loop's {steps} steps." if stages > max(steps, 1) else None
