"""The prior of a machine that has measured nothing: an analytic cost model.

time = launch + waves of programs, where a wave takes as long as the slowest of what its programs share (multipliers,
loads from L2, issue slots, the latency that too shallow a pipeline leaves exposed), and never less than device
memory or L2 need for the bytes. It is a roofline with the terms that decide between schedules of one kernel: tile
efficiency, wave quantization, padding at the edges, pipeline depth, spilled registers, programs in flight.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field

import numpy as np

from engine.prior.cold_constants import Constants
from engine.prior.features import FeatureMatrix
from engine.prior.geometry import MAX_REGISTERS, Column, without_dot

_Columns = Mapping[str, Column]
_WaveTime = Callable[[Column], Column]
"""us of one wave, by how many programs share a multiprocessor in it."""


_JOIN = 8
_IMPOSSIBLE = 100.0
"""What a tile that no kernel has is slower by, where somebody asks for combinations that are blind to legality."""
_SCORE_INSTRUCTIONS = 12
_MASK_INSTRUCTIONS = 1
"""Of one score: scale, mask, maximum, power, sum, conversion; a power takes as long as four to eight others. The mask's
are left out for most scores where only the blocks that it cuts are masked."""
_SHRINK_INSTRUCTIONS = 2
"""Of one accumulator in a step over keys: it is put on the scale of the new maximum."""
_OF_TWO_TILES = 0.5
_OF_ONE_TILE = 0.25
"""By which power of their number warp groups of a program run beside each other."""
_OVERLAPPED = (1.0, 0.76, 0.68)
"""What is left of the time where warps have roles, and where these programs walk the tiles besides: 141 and 125 us, the
best without roles 162 (4x16x2048x128, causal, bf16, H200); without a mask 242 and 220, and 273."""
_MANY_KEYS = 1024
"""From so many keys on these count. With them the orders of 20 schedules without a mask and of 20 under a causal one
(4x16x2048x128, bf16, H200) agree to 0.76 and 0.93 with the measured (Spearman), and without to 0.31 and 0.88."""

_WALKING = (-0.016, -0.02, -0.018)
"""What walking tiles in a loop adds where TMA stores them whole, in halves or in quarters, as a share: 177.2 us for
halves, 181.1 where tiles aren't walked (4096^3, bf16, H200). A whole tile leaves room for fewer stages besides."""
_IN_PARTS = -0.003
"""The same for an epilogue in parts where tiles aren't walked: fewer registers, no turn in shared memory."""


@dataclass(frozen=True, slots=True)
class ColdModel:
    """Predicts without any measurement. Rows with undecided knobs get a lower bound of their completions."""

    constants: Constants = field(default_factory=Constants)

    @property
    def version(self) -> str:
        return "cold-1"

    def predict(self, matrix: FeatureMatrix) -> Column:
        """See `Prior`: ln(us), one a row."""
        f = {name: matrix.values[:, position] for position, name in enumerate(matrix.names)}
        bound = _roofline(f, self.constants)
        with np.errstate(invalid="ignore", divide="ignore"):
            contraction = f["contractions"] > 0
            if contraction.all():
                body = _contraction(f, self.constants)
            elif not contraction.any():
                body = _streaming(f, self.constants)
            else:
                body = np.where(contraction, _contraction(f, self.constants), _streaming(f, self.constants))
            attention = contraction & (f["contractions"] > 1) & (f["reductions"] > 0)
            if attention.any():
                body = np.where(attention, _attention(f, self.constants), body)
        # A norm instead of the larger of the two: it keeps every difference between schedules, so none of them tie.
        joined = (body**_JOIN + bound**_JOIN) ** (1 / _JOIN)
        us: Column = self.constants.launch_us + np.where(np.isnan(joined), bound, joined)
        return np.log(us)

    def refit(self, matrix: FeatureMatrix, log_us: Column) -> ColdModel:
        """Itself: there is nothing to learn."""
        return self


def _roofline(f: _Columns, c: Constants) -> Column:
    """us that bytes and flops need at the least: L2 serves what fits in it, device memory the rest."""
    bandwidth = np.where(f["bytes"] < c.l2_bytes, c.l2_speedup, 1.0) * f["memory_bandwidth"]
    peak = np.where(f["contractions"] > 0, _peak(f), f["peak_fp32"])
    us: Column = 1e6 * np.maximum(f["bytes"] / bandwidth, f["flops"] / peak)
    return us


def _peak(f: _Columns) -> Column:
    """FLOP/s of the multiplier that operand width and precision allow; three TF32 passes make one fp32 product."""
    tf32 = np.where(f["PRECISION"] == 1, f["peak_tf32"] / 3, f["peak_tf32"])
    fp32 = np.where(f["PRECISION"] == 0, f["peak_fp32"], tf32)
    return np.where(
        f["left_width"] <= 2,
        f["peak_bf16"] * 2 / f["left_width"],
        np.where(f["left_width"] == 4, fp32, f["peak_fp32"] / 2),
    )


def _contraction(f: _Columns, c: Constants) -> Column:
    """us of a tiled contraction after its launch."""
    stages, descriptor = f["NUM_STAGES"], f["LOADS"] == 1
    flops = 2 * f["contractions"] * f["tile_area"] * f["BLOCK_K"]
    rate = _peak(f) * 1e-6 / f["multiprocessors"] * _tile_efficiency(f, c)
    excess = np.maximum(f["registers"] / MAX_REGISTERS - 1.0, 0.0)
    spill = 1.0 + np.where(f["tensor_core"] == 2, c.wgmma_spill, c.spill) * excess
    bare = without_dot(f)
    multiply = np.where(bare, _by_element(f), flops / rate) * spill
    alone = multiply * 4 / np.minimum(f["NUM_WARPS"], 4) + c.step_us
    link = f["memory_bandwidth"] * c.link_speedup * 1e-6 / f["multiprocessors"]
    load = f["stage_bytes"] / link * np.where(f["GROUP_M"] > 1, 1.0, 1.0 + c.raster)
    issue = np.where(descriptor, 0.0, c.issue_us_per_kib * f["stage_bytes"] / 1024) + c.step_issue_us
    latency = np.where(descriptor, c.descriptor_latency_us, c.pointer_latency_us)
    ahead = np.maximum(stages - 1, 1)
    exposed = np.where(stages > 1, (latency + load) / ahead, latency + load + alone)
    epilogue = f["tile_area"] * f["output_width"] / link * c.store_cost
    sums = f["contractions"] * f["BLOCK_M"] * (c.reduce_us + c.reduce_warp_us * f["NUM_WARPS"])
    epilogue = epilogue + np.where(bare, sums, 0.0)

    def wave(together: Column) -> Column:
        busy = (np.maximum(multiply, load) + issue) * together
        step = (busy**c.sharpness + alone**c.sharpness + exposed**c.sharpness) ** (1 / c.sharpness)
        us: Column = f["steps"] * step + c.program_us + epilogue * together
        return us

    total: Column = _waves(f, wave, c.smoothing) * np.where(bare & (f["BLOCK_M"] < f["rows"]), _IMPOSSIBLE, 1.0)
    return total * (1.0 + _storing(f, c)) + 0.0 * f["GROUP_M"]


def _storing(f: _Columns, c: Constants) -> Column:
    """What walking tiles in a loop adds, as a share: stores through pointers hold up the next tile, TMA's don't."""
    code = np.nan_to_num(f["STORES"]).astype(int).clip(0, 3)
    walking = np.choose(code, [c.persistent, *_WALKING])
    added: Column = np.where(f["PERSISTENT"] > 0, walking, np.where(code > 0, _IN_PARTS, 0.0))
    return added + 0.0 * (f["PERSISTENT"] + f["STORES"])


def _by_element(f: _Columns) -> Column:
    """us of a step without a dot: each element of the right tile is converted once and added to a sum a row."""
    instructions = f["contractions"] * f["BLOCK_K"] * f["BLOCK_N"] * (1 + f["BLOCK_M"])
    us: Column = instructions / (f["peak_fp32"] / 2 * 1e-6 / f["multiprocessors"])
    return us


def _attention(f: _Columns, c: Constants) -> Column:
    """us of an attention kernel after its launch: two products a step, and the powers of the scores between them.

    The terms and numbers are those of a contraction; only the work on a score is new, in instructions an element.
    """
    block = f["tile_area"]
    head = f["stage_bytes"] / (2 * f["BLOCK_N"] * f["right_width"])
    per_sm = 1e-6 / f["multiprocessors"]
    multiply = 4 * block * head / (_peak(f) * per_sm * _tile_efficiency(f, c))
    multiply = multiply * (1.0 + c.spill * np.maximum(f["registers"] / MAX_REGISTERS - 1.0, 0.0))
    instructions = _SCORE_INSTRUCTIONS - np.where(f["MASK"] == 1, _MASK_INSTRUCTIONS, 0)
    long = (f["columns"] >= _MANY_KEYS) & (f["tensor_core"] == 2)
    shrink = np.where(long, _SHRINK_INSTRUCTIONS * f["BLOCK_M"] * head, 0.0)
    powers = (block * instructions + shrink) / (f["peak_fp32"] / 2 * per_sm)
    apart = np.where(f["QUERY_TILES"] == 2, _OF_TWO_TILES, _OF_ONE_TILE)
    groups = np.where(long, np.maximum(f["NUM_WARPS"] / 4, 1.0) ** apart, 1.0)
    # Of two tiles of queries, one's product with the values runs while the other's powers are taken.
    beside = np.where(f["QUERY_TILES"] == 2, np.minimum(multiply / 4, powers / 2), 0.0)
    link = f["memory_bandwidth"] * c.link_speedup * per_sm
    load = f["stage_bytes"] / link
    descriptor = f["LOADS"] == 1
    issue = np.where(descriptor, 0.0, c.issue_us_per_kib * f["stage_bytes"] / 1024) + c.step_issue_us
    latency = np.where(descriptor, c.descriptor_latency_us, c.pointer_latency_us)
    ahead = np.maximum(f["NUM_STAGES"] - 1, 1)
    alone = (multiply + powers - beside) * 4 / np.minimum(f["NUM_WARPS"], 4) / groups + c.step_us
    exposed = np.where(f["NUM_STAGES"] > 1, (latency + load) / ahead, latency + load + alone)
    epilogue = f["BLOCK_M"] * head * f["output_width"] / link * c.store_cost

    def wave(together: Column) -> Column:
        busy = (np.maximum(np.maximum(multiply, powers), load) + issue) * together
        step = (busy**c.sharpness + alone**c.sharpness + exposed**c.sharpness) ** (1 / c.sharpness)
        us: Column = f["steps"] * step + c.program_us + epilogue * together
        return us

    total: Column = _waves(f, wave, c.smoothing) * np.where(without_dot(f), _IMPOSSIBLE, 1.0)
    total = total * np.choose(np.nan_to_num(f["OVERLAP"]).astype(int).clip(0, 2), _OVERLAPPED)
    return total + 0.0 * (f["LOADS"] + f["NUM_STAGES"] + f["OVERLAP"])


def _tile_efficiency(f: _Columns, c: Constants) -> Column:
    """Share of the multiplier's peak that a tile reaches, by the shape that one warp or warp group works on."""
    groups = np.maximum(f["NUM_WARPS"] / 4, 1)
    wgmma = c.wgmma_peak * f["BLOCK_N"] / (f["BLOCK_N"] + c.wgmma_columns)
    wgmma = wgmma * np.where(groups * 64 > f["BLOCK_M"], c.split_group, 1.0)
    wgmma = wgmma * np.where((f["left_width"] == 4) & (f["right_transposed"] == 0), c.wgmma_transpose, 1.0)
    per_warp = f["tile_area"] / f["NUM_WARPS"]
    mma = c.mma_peak * per_warp / (per_warp + c.mma_area)
    fma = c.fma_peak * f["elements_per_thread"] / (f["elements_per_thread"] + c.fma_elements)
    kind = f["tensor_core"]
    share: Column = np.where(kind == 2, wgmma, np.where(kind == 1, mma, fma)) + 0.0 * kind
    return share


def _streaming(f: _Columns, c: Constants) -> Column:
    """us of a kernel that streams rows or elements, after its launch."""
    looped = f["steps"] > 1
    staged = f["shared_bytes"] > 0
    passes = np.where(looped, f["reductions"] + 1, 1)
    elements = f["tile_area"] * f["steps"]
    per_sm = 1e-6 / f["multiprocessors"]
    spill = 1.0 + c.spill * np.maximum(f["registers"] / MAX_REGISTERS - 1.0, 0.0)
    instructions = spill * _stream_instructions(f, c, passes) * np.where(staged, 1.0 + c.staged, 1.0)
    compute = elements * instructions / (f["peak_fp32"] / 2 * per_sm)
    fits = f["resident"] * f["multiprocessors"] * elements * f["left_width"] < c.l2_bytes
    move = f["bytes"] / f["programs"] / np.where(f["bytes"] < c.l2_bytes, c.l2_speedup, 1.0)
    move = move + (passes - 1) * elements * f["left_width"] / np.where(fits, c.l2_speedup, 1.0)
    move = move / (f["memory_bandwidth"] * per_sm)
    ahead = np.where(staged, np.maximum(f["NUM_STAGES"] - 1, 1), 1.0)
    trips = np.where(looped, f["steps"] * passes / ahead, 1.0)
    latency = trips * c.stream_latency_us + f["reductions"] * (c.reduce_us + c.reduce_warp_us * f["NUM_WARPS"])
    alone = latency + c.thread_us * instructions * f["elements_per_thread"] * f["steps"] + c.stream_program_us

    def wave(together: Column) -> Column:
        busy = np.maximum(np.maximum(compute, move), c.dispatch_us) * together
        us: Column = (busy**c.stream_sharpness + alone**c.stream_sharpness) ** (1 / c.stream_sharpness)
        return us

    hint = np.choose(np.nan_to_num(f["EVICTION"]).astype(int).clip(0, 2), [0.0, c.evict_first, c.evict_last])
    total = _waves(f, wave, c.stream_smoothing) * (1.0 + hint + 0.0 * f["EVICTION"])
    return total * (1.0 + c.persistent * f["PERSISTENT"])


def _stream_instructions(f: _Columns, c: Constants, passes: Column) -> Column:
    """Instructions an element: its ops, most of them again in each pass, and its loads and stores by their width."""
    work = f["pointwise_ops"] + c.reduction_ops * f["reductions"]
    accesses = (f["inputs"] + f["outputs"] - 1 + passes) * 16 / f["vector_bytes"]
    count: Column = c.op_instructions * work * np.where(passes > 1, 1.5, 1.0) + c.access_instructions * accesses
    return count


def _waves(f: _Columns, wave: _WaveTime, smoothing: float) -> Column:
    """us of all programs: full waves and a last one; a share `smoothing` of it as if no program waited for a wave."""
    slots = f["multiprocessors"] * f["resident"]
    full = np.floor(f["programs"] / slots)
    last = np.ceil((f["programs"] - full * slots) / f["multiprocessors"])
    stepped = full * wave(f["resident"]) + np.where(last > 0, wave(np.maximum(last, 1.0)), 0.0)
    smooth = f["programs"] / slots * wave(f["resident"])
    return np.where(full >= 1, (1 - smoothing) * stepped + smoothing * smooth, stepped)
