import triton
import triton.language as tl


@triton.jit
def contraction(in0, in1, out0):
    tile = tl.program_id(0)
    batch = tile // 2
    place = tile % 2
    tile_m = place
    tile_n = 0
    rows = tile_m * 16 + tl.arange(0, 16)[:, None]
    cols = tile_n * 32 + tl.arange(0, 32)[None, :]
    k_row = tl.arange(0, 16)[None, :]
    k_col = tl.arange(0, 16)[:, None]
    acc = tl.zeros((16, 32), tl.float32)
    p0 = in0 + batch * 720 + rows * 36 + k_row
    p1 = in1 + batch * 1008 + k_col * 28 + cols
    for k in tl.range(0, 36, 16):
        x0 = tl.load(p0 + k, mask=(rows < 20) & (k_row < 36 - k), other=0)
        x1 = tl.load(p1 + k * 28, mask=(k_col < 36 - k) & (cols < 28), other=0)
        acc = tl.dot(x0, x1, acc, input_precision="ieee")
    tl.store(out0 + batch * 560 + rows * 28 + cols, acc, mask=(rows < 20) & (cols < 28))
