import triton
import triton.language as tl


@triton.jit
def product0(tile, in0, in1, in2, in4, out0):
    tile_m = tile // 2
    tile_n = tile % 2
    rows = tile_m * 16 + tl.arange(0, 16)[:, None]
    cols = tile_n * 32 + tl.arange(0, 32)[None, :]
    k_row = tl.arange(0, 16)[None, :]
    k_col = tl.arange(0, 16)[:, None]
    acc = tl.zeros((16, 32), tl.float32)
    p0 = in0 + rows * 40 + k_row
    p2 = in2 + k_col + cols * 40
    for k in tl.range(0, 40, 16):
        x0 = tl.load(p0 + k, mask=(rows < 20) & (k_row < 40 - k), other=0)
        x2 = tl.load(p2 + k, mask=k_col < 40 - k, other=0)
        acc = tl.dot(x0, x2, acc)
    row = tile_m * 16 + tl.arange(0, 16)[:, None, None]
    head = tile_n * 2 + tl.arange(0, 2)[None, :, None]
    lane = tl.arange(0, 16)[None, None, :]
    acc_groups = tl.reshape(acc, (16, 2, 16))
    x4 = tl.load(in4 + lane).to(tl.float32)
    part = tl.arange(0, 4)[None, None, :]
    x1 = tl.load(in1 + row * 3 + part, mask=(row < 20) & (part < 3), other=0)
    v2 = tl.sum(tl.where(part < 3, x1, 0.0), 2, keep_dims=True)
    v3 = tl.abs(v2)
    v5 = v3 * 0.010416666666666666
    v7 = v5 + 1e-06
    v8 = tl.rsqrt(v7)
    v12 = acc_groups * v8
    v13 = v12.to(tl.bfloat16).to(tl.float32)
    v21 = v13 * v13
    v23 = tl.sum(v21, 2, keep_dims=True) / 16.0
    v24 = v23 + 1e-06
    v25 = tl.rsqrt(v24)
    v27 = v13 * v25
    v28 = v27.to(tl.bfloat16).to(tl.float32)
    v29 = x4 * v28
    tl.store(out0 + row * 64 + head * 16 + lane, v29.to(tl.bfloat16), mask=row < 20)


@triton.jit
def product1(tile, in0, in1, in3, out1):
    tile_m = tile
    tile_n = 0
    rows = tile_m * 16 + tl.arange(0, 16)[:, None]
    cols = tile_n * 32 + tl.arange(0, 32)[None, :]
    k_row = tl.arange(0, 16)[None, :]
    k_col = tl.arange(0, 16)[:, None]
    acc = tl.zeros((16, 32), tl.float32)
    p0 = in0 + rows * 40 + k_row
    p3 = in3 + k_col + cols * 40
    for k in tl.range(0, 40, 16):
        x0 = tl.load(p0 + k, mask=(rows < 20) & (k_row < 40 - k), other=0)
        x3 = tl.load(p3 + k, mask=(k_col < 40 - k) & (cols < 24), other=0)
        acc = tl.dot(x0, x3, acc)
    part = tl.arange(0, 4)[None, :]
    x1 = tl.load(in1 + rows * 3 + part, mask=(rows < 20) & (part < 3), other=0)
    v2 = tl.sum(tl.where(part < 3, x1, 0.0), 1, keep_dims=True)
    v3 = tl.abs(v2)
    v5 = v3 * 0.010416666666666666
    v7 = v5 + 1e-06
    v8 = tl.rsqrt(v7)
    v17 = acc * v8
    v18 = v17.to(tl.bfloat16).to(tl.float32)
    tl.store(out1 + rows * 24 + cols, v18.to(tl.bfloat16), mask=(rows < 20) & (cols < 24))


@triton.jit
def contraction(in0, in1, in2, in3, in4, out0, out1):
    tile = tl.program_id(0)
    if tile < 4:
        product0(tile, in0, in1, in2, in4, out0)
    else:
        product1(tile - 4, in0, in1, in3, out1)
