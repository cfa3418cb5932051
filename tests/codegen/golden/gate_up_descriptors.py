import triton
import triton.language as tl
from triton.language.extra import libdevice


@triton.jit
def silu_to_half(x):
    return libdevice.fast_dividef(x, 1.0 + tl.exp2(x * -1.4426950408889634))


@triton.jit
def contraction(out0, left_desc, right_desc, right1_desc):
    tile = tl.program_id(0)
    tile_m = tile // 384 * 8 + tile % 8
    tile_n = tile % 384 // 8
    rows = tile_m * 64 + tl.arange(0, 64)[:, None]
    cols = tile_n * 64 + tl.arange(0, 64)[None, :]
    acc = tl.zeros((64, 64), tl.float32)
    acc1 = tl.zeros((64, 64), tl.float32)
    for k in tl.range(0, 1024, 64):
        left_tile = left_desc.load([tile_m * 64, k])
        right_tile = right_desc.load([tile_n * 64, k]).T
        acc = tl.dot(left_tile, right_tile, acc)
        right1_tile = right1_desc.load([tile_n * 64, k]).T
        acc1 = tl.dot(left_tile, right1_tile, acc1)
    v6 = silu_to_half(acc)
    v8 = v6 * acc1
    tl.store(out0 + rows * 3072 + cols, v8.to(tl.bfloat16))
