import triton
import triton.language as tl


@triton.jit
def contraction(in2, out0, left_desc, right_desc):
    tile = tl.program_id(0)
    tile_m = tile // 256 * 8 + tile % 8
    tile_n = tile % 256 // 8
    rows = tile_m * 64 + tl.arange(0, 64)[:, None]
    cols = tile_n * 128 + tl.arange(0, 128)[None, :]
    acc = tl.zeros((64, 128), tl.float32)
    for k in tl.range(0, 1024, 64):
        left_tile = left_desc.load([tile_m * 64, k])
        right_tile = right_desc.load([tile_n * 128, k]).T
        acc = tl.dot(left_tile, right_tile, acc)
    x2 = tl.load(in2 + cols).to(tl.float32)
    v5 = acc + x2
    v6 = 0.5 * v5 * (1.0 + tl.erf(v5 * 0.7071067811865476))
    tl.store(out0 + rows * 4096 + cols, v6.to(tl.bfloat16))
