import triton
import triton.language as tl


@triton.jit
def contraction(in0, in1, in2, out0):
    tile = tl.program_id(0)
    tile_m = tile
    tile_n = 0
    rows = tile_m * 16 + tl.arange(0, 16)[:, None]
    cols = tile_n * 32 + tl.arange(0, 32)[None, :]
    k_row = tl.arange(0, 16)[None, :]
    k_col = tl.arange(0, 16)[:, None]
    acc = tl.zeros((16, 32), tl.float32)
    p0 = in0 + rows * 21 + k_row
    p1 = in1 + k_row
    p2 = in2 + k_col * 18 + cols
    for k in tl.range(0, 21, 16):
        x0 = tl.load(p0 + k, mask=(rows < 33) & (k_row < 21 - k), other=0).to(tl.float32)
        x1 = tl.load(p1 + k, mask=k_row < 21 - k, other=0)
        v3 = x0 * x1
        left_tile = tl.broadcast_to(tl.where(k_row < 21 - k, v3, 0), (16, 16))
        x2 = tl.load(p2 + k * 18, mask=(k_col < 21 - k) & (cols < 18), other=0)
        v5 = tl.abs(x2)
        v6 = tl.log(v5)
        v7 = tl.exp(v6)
        right_tile = tl.broadcast_to(tl.where(k_col < 21 - k, v7, 0), (16, 32))
        acc = tl.dot(left_tile, right_tile, acc, input_precision="ieee")
    tl.store(out0 + rows * 18 + cols, acc, mask=(rows < 33) & (cols < 18))
