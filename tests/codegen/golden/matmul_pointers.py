import triton
import triton.language as tl


@triton.jit
def contraction(in0, in1, out0):
    tile = tl.program_id(0)
    tile_m = tile // 128 * 8 + tile % 8
    tile_n = tile % 128 // 8
    rows = tile_m * 128 + tl.arange(0, 128)[:, None]
    cols = tile_n * 256 + tl.arange(0, 256)[None, :]
    k_row = tl.arange(0, 64)[None, :]
    k_col = tl.arange(0, 64)[:, None]
    acc = tl.zeros((128, 256), tl.float32)
    p0 = in0 + rows * 4096 + k_row
    p1 = in1 + k_col * 4096 + cols
    for k in tl.range(0, 4096, 64):
        x0 = tl.load(p0 + k)
        x1 = tl.load(p1 + k * 4096)
        acc = tl.dot(x0, x1, acc)
    tl.store(out0 + rows * 4096 + cols, acc.to(tl.bfloat16))
