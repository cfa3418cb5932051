import triton
import triton.language as tl


@triton.jit
def contraction(in0, in1, out0):
    tile = tl.program_id(0)
    tile_m = tile
    tile_n = 0
    rows = tile_m * 16 + tl.arange(0, 16)[:, None]
    cols = tile_n * 32 + tl.arange(0, 32)[None, :]
    k_row = tl.arange(0, 16)[None, :]
    k_col = tl.arange(0, 16)[:, None]
    acc = tl.zeros((16, 32), tl.float32)
    p0 = in0 + rows // 9 * 1000 + rows % 9 * 40 + k_row
    p1 = in1 + k_col * 24 + cols
    for k in tl.range(0, 40, 16):
        x0 = tl.load(p0 + k, mask=(rows < 18) & (k_row < 40 - k), other=0)
        x1 = tl.load(p1 + k * 24, mask=(k_col < 40 - k) & (cols < 24), other=0)
        acc = tl.dot(x0, x1, acc, input_precision="ieee")
    tl.store(out0 + rows * 24 + cols, acc, mask=(rows < 18) & (cols < 24))
