import triton
import triton.language as tl


@triton.jit
def attention(in0, in1, in2, in3, in4, in5, out0, value_desc):
    batch = tl.program_id(0) // 2
    first = (1 - tl.program_id(0) % 2) * 16
    rows = first + tl.arange(0, 16)[:, None]
    cols = tl.arange(0, 32)[None, :]
    d_value = tl.arange(0, 128)[None, :]
    d_query = tl.arange(0, 128)[None, :]
    d_key = tl.arange(0, 128)[None, :]
    keys = tl.arange(0, 32)[:, None]
    peak = tl.full((16,), float("-inf"), tl.float32)
    total = tl.zeros((16,), tl.float32)
    acc = tl.zeros((16, 128), tl.float32)
    x2 = tl.load(in2 + batch * 128 + rows * 2048 + d_query).to(tl.float32)
    v4 = x2 * x2
    r6 = tl.sum(v4, 1, keep_dims=True) / 128.0
    x3 = tl.load(in3 + d_query).to(tl.float32)
    v8 = r6 + 1e-06
    v9 = tl.rsqrt(v8)
    v11 = x2 * v9
    v12 = v11.to(tl.bfloat16).to(tl.float32)
    v14 = x3 * v12
    x0 = tl.load(in0 + rows * 128 + d_query).to(tl.float32)
    v23 = v14 * x0
    v20 = d_query < 64
    turned = (d_query + 64) % 128
    x3_1 = tl.load(in3 + turned).to(tl.float32)
    x2_1 = tl.load(in2 + batch * 128 + rows * 2048 + turned).to(tl.float32)
    v8_1 = r6 + 1e-06
    v9_1 = tl.rsqrt(v8_1)
    v11_1 = x2_1 * v9_1
    v12_1 = v11_1.to(tl.bfloat16).to(tl.float32)
    v14_1 = x3_1 * v12_1
    v21 = v14_1 * -1.0
    v22 = tl.where(v20, v21, v14_1)
    x1 = tl.load(in1 + rows * 128 + d_query).to(tl.float32)
    v24 = v22 * x1
    v25 = v23 + v24
    query = v25.to(tl.bfloat16)
    end = tl.minimum(32, tl.maximum(first + 16, 0))
    p4 = in4 + batch // 2 * 128 + keys * 1024 + d_key
    x5 = tl.load(in5 + d_key).to(tl.float32)
    p0 = in0 + keys * 128 + d_key
    v20_1 = d_key < 64
    turned_1 = (d_key + 64) % 128
    x5_1 = tl.load(in5 + turned_1).to(tl.float32)
    p4_1 = in4 + batch // 2 * 128 + keys * 1024 + turned_1
    p1 = in1 + keys * 128 + d_key
    for start in tl.range(0, end, 32):
        x4 = tl.load(p4 + start * 1024).to(tl.float32)
        v28 = x4 * x4
        r30 = tl.sum(v28, 1, keep_dims=True) / 128.0
        v31 = r30 + 1e-06
        v32 = tl.rsqrt(v31)
        v34 = x4 * v32
        v35 = v34.to(tl.bfloat16).to(tl.float32)
        v37 = x5 * v35
        x0_1 = tl.load(p0 + start * 128).to(tl.float32)
        v41 = v37 * x0_1
        x4_1 = tl.load(p4_1 + start * 1024).to(tl.float32)
        v31_1 = r30 + 1e-06
        v32_1 = tl.rsqrt(v31_1)
        v34_1 = x4_1 * v32_1
        v35_1 = v34_1.to(tl.bfloat16).to(tl.float32)
        v37_1 = x5_1 * v35_1
        v39 = v37_1 * -1.0
        v40 = tl.where(v20_1, v39, v37_1)
        x1_1 = tl.load(p1 + start * 128).to(tl.float32)
        v42 = v40 * x1_1
        v43 = v41 + v42
        key = v43.to(tl.bfloat16)
        scores = tl.dot(query, key.T)
        seen52 = rows - cols >= start
        v54 = tl.where(seen52, scores, tl.full([], float("-inf"), tl.float32))
        logits = v54
        higher = tl.maximum(peak, tl.max(logits, 1))
        base = tl.where(higher == float("-inf"), 0.0, higher)
        weights = tl.exp2(logits * 0.12751743082459868 - (base * 0.12751743082459868)[:, None])
        shrink = tl.exp2((peak - base) * 0.12751743082459868)
        total = total * shrink + tl.sum(weights, 1)
        acc = acc * shrink[:, None]
        value = value_desc.load([start, batch // 2 * 128])
        acc = tl.dot(weights.to(tl.bfloat16), value, acc)
        peak = higher
    result = acc / total[:, None]
    tl.store(out0 + batch * 128 + rows * 2048 + d_value, result.to(tl.bfloat16))
