import triton
import triton.language as tl


@triton.jit
def product0(acc, tile_m, tile_n, in1, in2, in4, out0):
    rows = tile_m * 64 + tl.arange(0, 64)[:, None]
    cols = tile_n * 128 + tl.arange(0, 128)[None, :]
    low = tl.arange(0, 64)[None, :]
    high = 64 + tl.arange(0, 64)[None, :]
    x4 = tl.load(in4 + low).to(tl.float32)
    x1 = tl.load(in1 + rows * 128 + low).to(tl.float32)
    x4_1 = tl.load(in4 + high).to(tl.float32)
    x2 = tl.load(in2 + rows * 128 + low).to(tl.float32)
    x1_1 = tl.load(in1 + rows * 128 + high).to(tl.float32)
    x2_1 = tl.load(in2 + rows * 128 + high).to(tl.float32)
    v10 = acc * acc
    v12 = tl.sum(v10, 1, keep_dims=True) / 128.0
    v14 = v12 + 1e-06
    v15 = tl.rsqrt(v14)
    v17 = acc * v15
    v18 = v17.to(tl.bfloat16).to(tl.float32)
    v18_low, v18_high = tl.split(tl.permute(tl.reshape(v18, (64, 2, 64)), (0, 2, 1)))
    v19 = x4 * v18_low
    v26 = v19 * x1
    v19_1 = x4_1 * v18_high
    v24 = v19_1 * -1.0
    v27 = v24 * x2
    v28 = v26 + v27
    tl.store(out0 + rows * 2048 + tile_n * 128 + low, v28.to(tl.bfloat16))
    v26_1 = v19_1 * x1_1
    v27_1 = v19 * x2_1
    v28_1 = v26_1 + v27_1
    tl.store(out0 + rows * 2048 + tile_n * 128 + high, v28_1.to(tl.bfloat16))


@triton.jit
def product1(acc, tile_m, tile_n, in1, in2, in6, out1):
    rows = tile_m * 64 + tl.arange(0, 64)[:, None]
    cols = tile_n * 128 + tl.arange(0, 128)[None, :]
    low = tl.arange(0, 64)[None, :]
    high = 64 + tl.arange(0, 64)[None, :]
    x6 = tl.load(in6 + low).to(tl.float32)
    x1 = tl.load(in1 + rows * 128 + low).to(tl.float32)
    x6_1 = tl.load(in6 + high).to(tl.float32)
    x2 = tl.load(in2 + rows * 128 + low).to(tl.float32)
    x1_1 = tl.load(in1 + rows * 128 + high).to(tl.float32)
    x2_1 = tl.load(in2 + rows * 128 + high).to(tl.float32)
    v34 = acc * acc
    v36 = tl.sum(v34, 1, keep_dims=True) / 128.0
    v37 = v36 + 1e-06
    v38 = tl.rsqrt(v37)
    v40 = acc * v38
    v41 = v40.to(tl.bfloat16).to(tl.float32)
    v41_low, v41_high = tl.split(tl.permute(tl.reshape(v41, (64, 2, 64)), (0, 2, 1)))
    v42 = x6 * v41_low
    v46 = v42 * x1
    v42_1 = x6_1 * v41_high
    v44 = v42_1 * -1.0
    v47 = v44 * x2
    v48 = v46 + v47
    tl.store(out1 + rows * 1024 + tile_n * 128 + low, v48.to(tl.bfloat16))
    v46_1 = v42_1 * x1_1
    v47_1 = v42 * x2_1
    v48_1 = v46_1 + v47_1
    tl.store(out1 + rows * 1024 + tile_n * 128 + high, v48_1.to(tl.bfloat16))


@triton.jit
def product2(acc, tile_m, tile_n, out2):
    rows = tile_m * 64 + tl.arange(0, 64)[:, None]
    cols = tile_n * 128 + tl.arange(0, 128)[None, :]
    tl.store(out2 + rows * 1024 + cols, acc.to(tl.bfloat16))


@triton.jit
def contraction(in1, in2, in4, in6, out0, out1, out2, left_desc, right_desc, right1_desc, right2_desc):
    tile = tl.program_id(0)
    if tl.program_id(0) < 128:
        right = right_desc
        tile_m = tile // 128 * 8 + tile % 8
        tile_n = tile % 128 // 8
    elif tl.program_id(0) < 192:
        right = right1_desc
        tile -= 128
        tile_m = tile // 64 * 8 + tile % 8
        tile_n = tile % 64 // 8
    else:
        right = right2_desc
        tile -= 192
        tile_m = tile // 64 * 8 + tile % 8
        tile_n = tile % 64 // 8
    rows = tile_m * 64 + tl.arange(0, 64)[:, None]
    cols = tile_n * 128 + tl.arange(0, 128)[None, :]
    acc = tl.zeros((64, 128), tl.float32)
    for k in tl.range(0, 1024, 64):
        left_tile = left_desc.load([tile_m * 64, k])
        right_tile = right.load([tile_n * 128, k]).T
        acc = tl.dot(left_tile, right_tile, acc)
    if tl.program_id(0) < 128:
        product0(acc, tile_m, tile_n, in1, in2, in4, out0)
    elif tl.program_id(0) < 192:
        product1(acc, tile_m, tile_n, in1, in2, in6, out1)
    else:
        product2(acc, tile_m, tile_n, out2)
