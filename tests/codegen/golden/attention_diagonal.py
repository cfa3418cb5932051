import triton
import triton.language as tl


@triton.jit
def attention(out0, query_desc, key_desc, value_desc):
    batch = tl.program_id(0) // 16
    first = (15 - tl.program_id(0) % 16) * 128
    rows = first + tl.arange(0, 128)[:, None]
    cols = tl.arange(0, 64)[None, :]
    d_value = tl.arange(0, 128)[None, :]
    peak = tl.full((128,), float("-inf"), tl.float32)
    total = tl.zeros((128,), tl.float32)
    acc = tl.zeros((128, 128), tl.float32)
    query = query_desc.load([first, batch * 128])
    end = tl.minimum(2048, tl.maximum(first + 128, 0))
    whole = tl.minimum(2048, tl.maximum(first + 1, 0)) // 64 * 64
    for start in tl.range(0, whole, 64):
        key = key_desc.load([start, batch * 128]).T
        scores = tl.dot(query, key)
        higher = tl.maximum(peak, tl.max(scores, 1))
        base = higher
        weights = tl.exp2(scores * 0.18033688011112042 - (base * 0.18033688011112042)[:, None])
        shrink = tl.exp2((peak - base) * 0.18033688011112042)
        total = total * shrink + tl.sum(weights, 1)
        acc = acc * shrink[:, None]
        value = value_desc.load([start, batch * 128])
        acc = tl.dot(weights.to(tl.bfloat16), value, acc)
        peak = higher
    for start in tl.range(whole, end, 64):
        key = key_desc.load([start, batch * 128]).T
        scores = tl.dot(query, key)
        seen9 = rows - cols >= start
        v11 = tl.where(seen9, scores, tl.full([], float("-inf"), tl.float32))
        logits = v11
        higher = tl.maximum(peak, tl.max(logits, 1))
        base = tl.where(higher == float("-inf"), 0.0, higher)
        weights = tl.exp2(logits * 0.18033688011112042 - (base * 0.18033688011112042)[:, None])
        shrink = tl.exp2((peak - base) * 0.18033688011112042)
        total = total * shrink + tl.sum(weights, 1)
        acc = acc * shrink[:, None]
        value = value_desc.load([start, batch * 128])
        acc = tl.dot(weights.to(tl.bfloat16), value, acc)
        peak = higher
    result = acc / total[:, None]
    tl.store(out0 + batch * 128 + rows * 2048 + d_value, result.to(tl.bfloat16))
