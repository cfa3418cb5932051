"""The numbers of the cold model: what the chip's data sheet leaves out.

They were fitted to the times of 7,800 candidates (contractions in bf16 and fp32, rowwise, pointwise) on one H200 with
Triton 3.6. In each of the 31 problems a candidate within 12 % of the best is among the first ten that the model
names, mostly the best itself. Speeds are relative to the `Target`'s, so that another chip starts from its own peak
and bandwidth. Times are us.
"""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Constants:
    """`x_us` is a time; `x_peak` a share of a peak; `x_speedup` a multiple of the device memory's bandwidth.

    Some shares exceed 1: the terms of a step add up smoothly, and a prediction never beats the roofline anyway.
    """

    launch_us: float = 1.51  # an empty kernel in a CUDA graph
    l2_bytes: float = 40e6  # what stays in L2 from one launch to the next
    l2_speedup: float = 1.56
    persistent: float = 0.01  # what walking tiles in a loop costs
    spill: float = 2.25  # how much slower a kernel gets when as many registers again would be needed

    # A contraction: its links and latencies, then how well a tile uses each kind of multiplier.
    link_speedup: float = 3.24  # all multiprocessors' loads from L2
    raster: float = 0.01  # loads of tiles in plain column order
    issue_us_per_kib: float = 0.00134  # issuing a KiB of pointer loads
    step_issue_us: float = 0.0216
    step_us: float = 0.0556  # a step's own time, waits included
    pointer_latency_us: float = 0.224
    descriptor_latency_us: float = 0.382
    program_us: float = 0.619  # start and end of a program
    store_cost: float = 0.0542  # an epilogue's stores, in loads
    sharpness: float = 2.27  # exponent of the norm that joins a step's terms
    smoothing: float = 0.0452  # share of programs that don't wait for their wave

    wgmma_peak: float = 2.04
    wgmma_columns: float = 12  # BLOCK_N at which half is reached
    wgmma_spill: float = 34.1
    wgmma_transpose: float = 0.181  # fp32 operand that wgmma can't read as it lies
    split_group: float = 0.505  # two warp groups on one group's rows
    mma_peak: float = 0.54
    mma_area: float = 343  # tile elements a warp at which half is reached
    fma_peak: float = 0.856
    fma_elements: float = 4.54  # elements a thread at which half is reached

    # Rows and elements that stream through.
    stream_latency_us: float = 0.0243
    stream_program_us: float = 0.416
    stream_sharpness: float = 1.6
    stream_smoothing: float = 1
    dispatch_us: float = 0.0718  # a multiprocessor's time to start a program
    thread_us: float = 0.00285  # one instruction of one thread, latency included
    reduce_us: float = 0.0421  # a reduction across threads
    reduce_warp_us: float = 0.0115  # and for each warp
    reduction_ops: float = 0.0247  # a reduction's instructions in those of an op
    op_instructions: float = 0.717
    access_instructions: float = 1.03
    staged: float = 0.0792  # more instructions where loads are staged
    evict_first: float = 0.04
    evict_last: float = 0.02
