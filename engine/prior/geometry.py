"""What a schedule makes of a kernel on a chip: tiles, programs, waves, shared memory, registers, reuse.

Every quantity is an array with one entry a schedule. A knob that is not decided is NaN, and whatever depends on it
is NaN too; a knob that is off is 0. Shared memory and registers are estimates, good to tell how many programs share
a multiprocessor, and no legality rule.
"""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np
from numpy.typing import NDArray

from engine.prior.structure import Facts

Column = NDArray[np.float64]
Columns = Mapping[str, Column]

PROGRAM_SHARED_BYTES = 1024
"""Shared memory that the system keeps for each resident program (CUDA occupancy rules, sm_80 and later)."""
MAX_PROGRAMS = 32
SMALLEST_DOT = 16
"""The smallest side of a tile that a dot multiplies."""
MAX_REGISTERS = 255
_LOADING_THREADS, _ROLE_REGISTERS = 128, 168
"""What a program whose warps have roles takes besides the warps that multiply, and registers of all of them."""
GEOMETRY = (
    *("tile_area", "programs", "resident", "waves", "wave_fill", "padding", "steps", "reuse"),
    *("stage_bytes", "shared_bytes", "registers", "threads", "elements_per_thread", "vector_bytes", "tensor_core"),
)
"""Names of what `geometry` derives. `resident` is programs a multiprocessor; `padding` is work done over work wanted;
`reuse` is multiply-adds per element loaded; `tensor_core` is 0 (none), 1 (one warp's mma) or 2 (four warps' wgmma)."""
_READ: Mapping[str, tuple[str, ...]] = {
    "contraction": (
        *("BLOCK_M", "BLOCK_N", "BLOCK_K", "PRECISION", "LOADS", "GROUP_M", "PERSISTENT"),
        *("NUM_WARPS", "NUM_STAGES", "STORES"),
    ),
    "attention": (
        *("BLOCK_M", "BLOCK_N", "PRECISION", "LOADS", "MASK", "NUM_WARPS", "NUM_STAGES", "QUERY_TILES", "OVERLAP"),
    ),
    "rowwise": ("PERSISTENT", "ROWS", "COLUMNS", "EVICTION", "NUM_WARPS", "NUM_STAGES"),
    "pointwise": ("BLOCK", "EVICTION", "NUM_WARPS"),
}


def knobs_read(facts: Facts) -> tuple[str, ...]:
    """The knobs that matter to a kernel of these facts; the others are off whether a schedule names them or not."""
    if is_attention(facts):
        return _READ["attention"]
    return _READ["contraction" if facts["contractions"] else "rowwise" if facts["reductions"] else "pointwise"]


def is_attention(facts: Facts) -> bool:
    """Whether the kernel reduces between its contractions, as only attention does."""
    return facts["contractions"] > 1 and facts["reductions"] > 0


def geometry(facts: Facts, knobs: Columns) -> dict[str, Column]:
    """Derived columns of schedules of one kernel: `facts` of kernel and chip, `knobs` by knob name."""
    threads = 32 * knobs["NUM_WARPS"]
    if is_attention(facts):
        shape = _attention(facts, knobs, threads)
        threads = threads + np.where(knobs["OVERLAP"] > 0, _LOADING_THREADS, 0)
    elif facts["contractions"]:
        shape = _contraction(facts, knobs, threads)
    elif facts["reductions"]:
        shape = _rowwise(facts, knobs, threads)
    else:
        shape = _pointwise(facts, knobs, threads)
    shared = np.floor(facts["multiprocessor_shared"] / (shape["shared_bytes"] + PROGRAM_SHARED_BYTES))
    held = np.clip(np.ceil(shape["registers"] / 8) * 8, 16, 256)
    registers = np.floor(facts["multiprocessor_registers"] / (held * threads))
    resident = np.minimum(np.minimum(shared, registers), np.floor(facts["multiprocessor_threads"] / threads))
    resident = np.clip(resident, 1, MAX_PROGRAMS)
    slots = facts["multiprocessors"] * resident
    waves = np.ceil(shape["programs"] / slots)
    return {
        **shape,
        "resident": resident,
        "waves": waves,
        "wave_fill": shape["programs"] / (waves * slots),
        "threads": threads,
    }


def _contraction(facts: Facts, knobs: Columns, threads: Column) -> dict[str, Column]:
    block_m, block_n, block_k = (_positive(knobs[name]) for name in ("BLOCK_M", "BLOCK_N", "BLOCK_K"))
    area = block_m * block_n
    tiles_m, tiles_n = np.ceil(facts["rows"] / block_m), np.ceil(facts["columns"] / block_n)
    steps = np.ceil(facts["depth"] / block_k)
    products = facts["contractions"]
    stage_bytes = block_k * (block_m * facts["left_width"] + products * block_n * facts["right_width"])
    per_thread = products * area / threads
    tensor_core = _tensor_core(facts, knobs, block_m)
    registers = _contraction_registers(facts, knobs, tensor_core, threads)
    # wgmma reads the newest stage in place; for one warp's mma it is in registers by then.
    buffers = (
        np.maximum(np.where(tensor_core == 2, knobs["NUM_STAGES"], knobs["NUM_STAGES"] - 1), 1) + 0.0 * tensor_core
    )
    return {
        "tile_area": area,
        "programs": facts["batch"] * tiles_m * tiles_n,
        "padding": tiles_m
        * block_m
        * tiles_n
        * block_n
        * steps
        * block_k
        / (facts["rows"] * facts["columns"] * facts["depth"]),
        "steps": steps,
        "reuse": area / (block_m + block_n),
        "shared_bytes": stage_bytes * buffers,
        "stage_bytes": stage_bytes,
        "registers": registers,
        "elements_per_thread": per_thread,
        "vector_bytes": np.minimum(16.0, np.minimum(block_k * facts["left_width"], block_n * facts["right_width"])),
        "tensor_core": tensor_core,
    }


def _contraction_registers(facts: Facts, knobs: Columns, tensor_core: Column, threads: Column) -> Column:
    """Registers that a thread asks for; above 255 the rest spills.

    Accumulators, addresses of the 16-byte loads of a step, what is loaded where nothing is staged, and operands that
    are held at once, which are many where fp32 is split into TF32 parts. The factors are least squares of what ptxas
    reported (registers and spills) for 720 kernels on sm_90; they tell spilling kernels from others in 97 of 100.
    """
    products = facts["contractions"]
    loaded = knobs["BLOCK_K"] * (knobs["BLOCK_M"] + products * knobs["BLOCK_N"]) / threads
    pointers = np.where(knobs["LOADS"] == 1, 0.0, loaded * facts["left_width"] / 8)
    unstaged = np.where(knobs["NUM_STAGES"] > 1, 0.0, pointers * 2)
    split = (facts["left_width"] == 4) & (knobs["PRECISION"] == 1)
    kinds = [tensor_core == 2, split, tensor_core == 1]
    summed = products * knobs["BLOCK_K"] * knobs["BLOCK_N"] / threads
    demand = (
        np.select(kinds, [20.0, 37.0, 27.0], 32.0)
        + np.select(kinds, [1.13, 1.5, 1.2], 2.2) * products * knobs["BLOCK_M"] * knobs["BLOCK_N"] / threads
        + np.select(kinds, [1.36, 1.95, 1.1], 0.6) * pointers
        + np.select(kinds, [0.4, 0.0, 0.2], 0.2) * unstaged
        + np.select(kinds, [0.0, 1.35, 0.04], 0.1) * loaded
    )
    # Without a dot a thread keeps a sum for each row and element it loads, and what it loads.
    vector = 28.0 + summed * (knobs["BLOCK_M"] + facts["right_width"] / 4)
    demand = np.where(without_dot(knobs), vector, demand)
    return np.asarray(demand + 0.0 * (tensor_core + knobs["LOADS"] + knobs["NUM_STAGES"]))


def _attention(facts: Facts, knobs: Columns, threads: Column) -> dict[str, Column]:
    """Blocks of queries (rows) that walk the keys (columns); the values' heads are taken to be those of the keys.

    The registers are fitted to what ptxas reported for 35 kernels on sm_90: scores and accumulators, and the rest, of
    which the weights are those of one of two tiles of queries.
    """
    block_m, block_n = _positive(knobs["BLOCK_M"]), _positive(knobs["BLOCK_N"])
    head = 2.0 ** np.ceil(np.log2(max(facts["depth"], 16)))
    tiles, steps = np.ceil(facts["rows"] / block_m), np.ceil(facts["columns"] / block_n)
    tensor_core = _tensor_core(facts, knobs, block_m)
    stage_bytes = 2 * block_n * head * facts["right_width"]
    on_wgmma = tensor_core == 2
    stages = np.where(on_wgmma, knobs["NUM_STAGES"], np.maximum(knobs["NUM_STAGES"] - 1, 1)) + 0.0 * tensor_core
    held = block_m * (block_n + head) / threads
    with_weights = np.where(knobs["QUERY_TILES"] == 2, 1.1, 1.2)
    registers = np.where(on_wgmma, 40 + with_weights * held, 45 + 1.6 * held) + 0.0 * tensor_core
    results = np.where(on_wgmma, np.where(knobs["OVERLAP"] > 0, 2, 1) * block_m * head * facts["left_width"], 0.0)
    area = block_m * block_n
    return {
        "tile_area": area,
        "programs": facts["batch"] * tiles,
        "padding": tiles * block_m * steps * block_n * head / (facts["rows"] * facts["columns"] * facts["depth"]),
        "steps": steps,
        "reuse": block_m + 0.0 * steps,
        "shared_bytes": stage_bytes * stages + results,
        "stage_bytes": stage_bytes,
        "registers": np.where(knobs["OVERLAP"] > 0, _ROLE_REGISTERS + 0.0 * registers, registers),
        "elements_per_thread": area / threads,
        "vector_bytes": np.minimum(16.0, head * facts["right_width"] + 0.0 * area),
        "tensor_core": tensor_core,
    }


def without_dot(columns: Columns) -> NDArray[np.bool_]:
    """Which contractions multiply their few rows element by element; none whose BLOCK_M is open."""
    return np.asarray(columns["BLOCK_M"] < SMALLEST_DOT)


def _tensor_core(facts: Facts, knobs: Columns, block_m: Column) -> Column:
    """Which multiplier a tile gets. Triton takes wgmma on sm_90 for at least 64 rows and four warps.

    Rows below the smallest tile of a dot have none.
    """
    wide = (block_m >= 64) & (knobs["NUM_WARPS"] >= 4) & (facts["capability"] == 90)
    kind = np.where(wide, 2.0, 1.0)
    if facts["left_width"] == 4:
        kind = np.where(knobs["PRECISION"] == 0, 0.0, np.where(knobs["PRECISION"] == 1, 1.0, kind))
        undecided = np.isnan(knobs["PRECISION"])
    elif facts["left_width"] == 8:
        return np.zeros_like(block_m)
    else:
        undecided = np.zeros_like(wide)
    kind = np.where(block_m < SMALLEST_DOT, 0.0, kind)
    return np.where(undecided | np.isnan(block_m) | np.isnan(knobs["NUM_WARPS"]), np.nan, kind)


def _rowwise(facts: Facts, knobs: Columns, threads: Column) -> dict[str, Column]:
    rows, columns = _positive(knobs["ROWS"]), _positive(knobs["COLUMNS"])
    steps = np.ceil(facts["columns"] / columns)
    held = rows * columns / threads
    looped = np.where(np.isnan(steps), np.nan, (steps > 1) | (knobs["PERSISTENT"] == 1))
    return {
        "tile_area": rows * columns,
        "programs": np.ceil(facts["rows"] / rows),
        "padding": np.ceil(facts["rows"] / rows) * rows * steps * columns / (facts["rows"] * facts["columns"]),
        "steps": steps,
        "reuse": np.ones_like(held + steps),
        "stage_bytes": rows * columns * facts["left_width"],
        "shared_bytes": np.where(
            (looped * knobs["NUM_STAGES"] <= 1), 0.0, rows * columns * facts["left_width"] * knobs["NUM_STAGES"]
        ),
        "registers": 16 + held * (1.0 + facts["left_width"] / 8),
        "elements_per_thread": held,
        "vector_bytes": np.minimum(16.0, np.minimum(held, columns / 32) * facts["left_width"]),
        "tensor_core": np.zeros_like(held),
    }


def _pointwise(facts: Facts, knobs: Columns, threads: Column) -> dict[str, Column]:
    block = _positive(knobs["BLOCK"])
    programs = np.ceil(facts["columns"] / block)
    held = block / threads
    return {
        "tile_area": block,
        "programs": programs,
        "padding": programs * block / facts["columns"],
        "steps": np.ones_like(block),
        "reuse": np.ones_like(block),
        "stage_bytes": block * facts["left_width"],
        "shared_bytes": np.zeros_like(block),
        "registers": 16 + held * facts["inputs"],
        "elements_per_thread": held,
        "vector_bytes": np.minimum(16.0, held * facts["left_width"]),
        "tensor_core": np.zeros_like(block),
    }


def _positive(values: Column) -> Column:
    """An extent of 0 (the knob is off) counts as 1."""
    return np.where(values < 1, 1.0, values)
