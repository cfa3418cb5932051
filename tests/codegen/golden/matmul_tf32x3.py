import triton
import triton.language as tl


@triton.jit
def contraction(in0, in1, out0):
    tile = tl.program_id(0)
    tile_m = tile // 8
    tile_n = tile % 8
    rows = tile_m * 32 + tl.arange(0, 32)[:, None]
    cols = tile_n * 64 + tl.arange(0, 64)[None, :]
    k_row = tl.arange(0, 64)[None, :]
    k_col = tl.arange(0, 64)[:, None]
    acc = tl.zeros((32, 64), tl.float32)
    p0 = in0 + rows * 512 + k_row
    p1 = in1 + k_col * 512 + cols
    for k in tl.range(0, 512, 64):
        x0 = tl.load(p0 + k)
        x1 = tl.load(p1 + k * 512)
        acc = tl.dot(x0, x1, acc, input_precision="tf32x3")
    tl.store(out0 + rows * 512 + cols, acc)
