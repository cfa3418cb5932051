import triton
import triton.language as tl


@triton.jit
def attention(out0, query_desc, key_desc, value_desc):
    batch = tl.program_id(0) // 16
    first = (tl.program_id(0) % 16) * 128
    rows = first + tl.arange(0, 64)[:, None]
    rows_below = rows + 64
    cols = tl.arange(0, 64)[None, :]
    d_value = tl.arange(0, 128)[None, :]
    peak = tl.full((64,), float("-inf"), tl.float32)
    total = tl.zeros((64,), tl.float32)
    acc = tl.zeros((64, 128), tl.float32)
    query = query_desc.load([first, batch * 128])
    peak_below = tl.full((64,), float("-inf"), tl.float32)
    total_below = tl.zeros((64,), tl.float32)
    acc_below = tl.zeros((64, 128), tl.float32)
    query_below = query_desc.load([first + 64, batch * 128])
    for start in tl.range(0, 2048, 64):
        key = key_desc.load([start, batch * 128]).T
        scores = tl.dot(query, key)
        scores_below = tl.dot(query_below, key)
        higher = tl.maximum(peak, tl.max(scores, 1))
        base = higher
        weights = tl.exp2(scores * 0.18033688011112042 - (base * 0.18033688011112042)[:, None])
        shrink = tl.exp2((peak - base) * 0.18033688011112042)
        total = total * shrink + tl.sum(weights, 1)
        acc = acc * shrink[:, None]
        value = value_desc.load([start, batch * 128])
        acc = tl.dot(weights.to(tl.bfloat16), value, acc)
        peak = higher
        higher_below = tl.maximum(peak_below, tl.max(scores_below, 1))
        base_below = higher_below
        weights_below = tl.exp2(scores_below * 0.18033688011112042 - (base_below * 0.18033688011112042)[:, None])
        shrink_below = tl.exp2((peak_below - base_below) * 0.18033688011112042)
        total_below = total_below * shrink_below + tl.sum(weights_below, 1)
        acc_below = acc_below * shrink_below[:, None]
        acc_below = tl.dot(weights_below.to(tl.bfloat16), value, acc_below)
        peak_below = higher_below
    result = acc / total[:, None]
    tl.store(out0 + batch * 128 + rows * 2048 + d_value, result.to(tl.bfloat16))
    result_below = acc_below / total_below[:, None]
    tl.store(out0 + batch * 128 + rows_below * 2048 + d_value, result_below.to(tl.bfloat16))
