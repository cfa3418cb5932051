import triton
import triton.language as tl


@triton.jit
def attention(out0, out1, out2, query_desc, key_desc, value_desc):
    batch = tl.program_id(0) // 1
    rows = tl.arange(0, 16)[:, None]
    cols = tl.arange(0, 128)[None, :]
    d_value = tl.arange(0, 128)[None, :]
    peak = tl.full((16,), float("-inf"), tl.float32)
    total = tl.zeros((16,), tl.float32)
    acc = tl.zeros((16, 128), tl.float32)
    query = query_desc.load([batch // 16 * 2 + 0, 0])
    for start in tl.range(0, 256, 128):
        key = key_desc.load([batch * 256 + start, 0]).T
        scores = tl.dot(query, key)
        logits = scores
        higher = tl.maximum(peak, tl.max(logits, 1))
        base = higher
        weights = tl.exp2(logits * 0.18033688011112042 - (base * 0.18033688011112042)[:, None])
        shrink = tl.exp2((peak - base) * 0.18033688011112042)
        total = total * shrink + tl.sum(weights, 1)
        acc = acc * shrink[:, None]
        value = value_desc.load([batch * 256 + start, 0])
        acc = tl.dot(weights.to(tl.bfloat16), value, acc)
        peak = higher
    result = acc / total[:, None]
    tl.store(out0 + batch * 256 + rows * 128 + d_value, result, mask=rows < 2)
    tl.store(out1 + batch * 2 + rows, peak[:, None] * 0.125, mask=rows < 2)
    tl.store(out2 + batch * 2 + rows, total[:, None], mask=rows < 2)
