import triton
import triton.language as tl


@triton.jit
def maximum_nan(left, right):
    return tl.maximum(left, right, propagate_nan=tl.PropagateNan.ALL)


@triton.jit
def rowwise(in0, out0):
    cols = tl.arange(0, 1024)[None, :]
    rows = tl.program_id(0) + tl.arange(0, 1)[:, None]
    acc2 = tl.full((1, 1024), float("-inf"), tl.float32)
    p0 = in0 + rows * 5000 + cols
    for start in tl.range(0, 5000, 1024, num_stages=3):
        x0 = tl.load(p0 + start, mask=cols < 5000 - start, other=0, eviction_policy="evict_last").to(tl.float32)
        acc2 = tl.maximum(acc2, tl.where(cols < 5000 - start, x0, float("-inf")), propagate_nan=tl.PropagateNan.ALL)
    r2 = tl.reduce(acc2, 1, maximum_nan, keep_dims=True)
    acc5 = tl.full((1, 1024), 0.0, tl.float32)
    for start in tl.range(0, 5000, 1024, num_stages=3):
        x0_1 = tl.load(p0 + start, mask=cols < 5000 - start, other=0, eviction_policy="evict_last").to(tl.float32)
        v3 = x0_1 - r2
        v4 = tl.exp(v3)
        acc5 = acc5 + tl.where(cols < 5000 - start, v4, 0.0)
    r5 = tl.sum(acc5, 1, keep_dims=True)
    for start in tl.range(0, 5000, 1024, num_stages=3):
        x0_2 = tl.load(p0 + start, mask=cols < 5000 - start, other=0, eviction_policy="evict_last").to(tl.float32)
        v3_1 = x0_2 - r2
        v4_1 = tl.exp(v3_1)
        v6 = v4_1 / r5
        v7 = v6.to(tl.bfloat16).to(tl.float32)
        tl.store(out0 + rows * 5000 + (start + cols), v7.to(tl.bfloat16), mask=cols < 5000 - start)
