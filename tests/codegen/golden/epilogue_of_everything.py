import triton
import triton.language as tl


@triton.jit
def contraction(in0, in1, in2, in3, in4, in5, in6, out0, out1, out2):
    tile = tl.program_id(0)
    tile_m = tile // 2
    tile_n = tile % 2
    rows = tile_m * 16 + tl.arange(0, 16)[:, None]
    cols = tile_n * 32 + tl.arange(0, 32)[None, :]
    k_row = tl.arange(0, 16)[None, :]
    k_col = tl.arange(0, 16)[:, None]
    acc = tl.zeros((16, 32), tl.float32)
    p0 = in0 + rows * 32 + k_row
    p1 = in1 + k_col * 48 + cols
    for k in tl.range(0, 32, 16):
        x0 = tl.load(p0 + k, mask=rows < 60, other=0)
        x1 = tl.load(p1 + k * 48, mask=cols < 48, other=0)
        acc = tl.dot(x0, x1, acc)
    x2 = tl.load(in2 + rows % 20, mask=rows < 60, other=0).to(tl.float32)
    v4 = acc * x2
    x3 = tl.load(in3 + cols, mask=cols < 48, other=0).to(tl.float32)
    v6 = v4 + x3
    x4 = tl.load(in4 + rows * 48 + cols, mask=(rows < 60) & (cols < 48), other=0).to(tl.float32)
    v8 = v6 + x4
    tl.store(out0 + rows * 48 + cols, v8.to(tl.float16), mask=(rows < 60) & (cols < 48))
    x5 = tl.load(in5 + rows // 20 * 48 + cols, mask=(rows < 60) & (cols < 48), other=0)
    x6 = tl.load(in6).to(tl.float32)
    v11 = v8 * x6
    v12 = v11 / (1.0 + tl.exp(-v11))
    v14 = tl.where(x5, v12, tl.full([], -2.5, tl.float32))
    tl.store(out1 + rows * 48 + cols, v14.to(tl.float16), mask=(rows < 60) & (cols < 48))
    v16 = v8 > 0.0
    tl.store(out2 + rows * 48 + cols, v16, mask=(rows < 60) & (cols < 48))
