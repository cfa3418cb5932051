import triton
import triton.language as tl


@triton.jit
def attention(in0, in1, in2, in3, out0):
    batch = tl.program_id(0) // 8
    first = (7 - tl.program_id(0) % 8) * 64
    rows = first + tl.arange(0, 64)[:, None]
    cols = tl.arange(0, 64)[None, :]
    d_value = tl.arange(0, 128)[None, :]
    d_query = tl.arange(0, 128)[None, :]
    d_key = tl.arange(0, 128)[:, None]
    keys = tl.arange(0, 64)[:, None]
    peak = tl.full((64,), float("-inf"), tl.float32)
    total = tl.zeros((64,), tl.float32)
    acc = tl.zeros((64, 128), tl.float32)
    p0 = in0 + batch * 80 + rows * 320 + d_query
    x0 = tl.load(p0, mask=(rows < 500) & (d_query < 80), other=0)
    begin = tl.maximum(first - 99, 0) // 64 * 64
    end = tl.minimum(500, tl.maximum(first + 64, 0))
    p1 = in1 + batch * 80 + d_key + cols * 320
    p3 = in3 + batch * 500 + cols
    p2 = in2 + batch * 80 + keys * 320 + d_value
    for start in tl.range(begin, end, 64):
        x1 = tl.load(p1 + start * 320, mask=(d_key < 80) & (cols < 500 - start), other=0)
        scores = tl.dot(x0, x1)
        seen13 = (rows - cols >= start) & (rows - cols <= start + 99)
        v6 = scores * 0.125
        v15 = tl.where(seen13, v6, tl.full([], float("-inf"), tl.float32))
        x3 = tl.load(p3 + start, mask=cols < 500 - start, other=0).to(tl.float32)
        v17 = v15 + x3
        logits = tl.where(cols < 500 - start, v17, float("-inf"))
        higher = tl.maximum(peak, tl.max(logits, 1))
        base = tl.where(higher == float("-inf"), 0.0, higher)
        weights = tl.exp2((logits - base[:, None]) * 1.4426950408889634)
        shrink = tl.exp2((peak - base) * 1.4426950408889634)
        total = total * shrink + tl.sum(weights, 1)
        acc = acc * shrink[:, None]
        x2 = tl.load(p2 + start * 320, mask=(keys < 500 - start) & (d_value < 80), other=0)
        acc = tl.dot(weights.to(tl.float16), x2, acc)
        peak = higher
    result = acc / total[:, None]
    tl.store(out0 + batch * 80 + rows * 320 + d_value, result.to(tl.float16), mask=(rows < 500) & (d_value < 80))
