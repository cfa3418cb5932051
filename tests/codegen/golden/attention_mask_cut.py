import triton
import triton.language as tl


@triton.jit
def attention(out0, query_desc, key_desc, value_desc):
    batch = tl.program_id(0) // 32
    first = (31 - tl.program_id(0) % 32) * 64
    rows = first + tl.arange(0, 64)[:, None]
    cols = tl.arange(0, 64)[None, :]
    d_value = tl.arange(0, 128)[None, :]
    peak = tl.full((64,), float("-inf"), tl.float32)
    total = tl.zeros((64,), tl.float32)
    acc = tl.zeros((64, 128), tl.float32)
    query = query_desc.load([first, batch * 128])
    end = tl.minimum(2048, tl.maximum(first + 64, 0))
    for start in tl.range(0, end, 64):
        key = key_desc.load([start, batch * 128]).T
        scores = tl.dot(query, key)
        if start > first - 63:
            scores = tl.where(rows - start >= cols, scores, float("-inf"))
        higher = tl.maximum(peak, tl.max(scores, 1))
        base = tl.where(higher == float("-inf"), 0.0, higher)
        weights = tl.exp2(scores * 0.18033688011112042 - (base * 0.18033688011112042)[:, None])
        shrink = tl.exp2((peak - base) * 0.18033688011112042)
        total = total * shrink + tl.sum(weights, 1)
        acc = acc * shrink[:, None]
        value = value_desc.load([start, batch * 128])
        acc = tl.dot(weights.to(tl.bfloat16), value, acc)
        peak = higher
    result = acc / total[:, None]
    tl.store(out0 + batch * 128 + rows * 2048 + d_value, result.to(tl.bfloat16))
