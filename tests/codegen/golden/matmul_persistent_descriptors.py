import triton
import triton.language as tl


@triton.jit
def contraction(out0, left_desc, right_desc):
    for tile in tl.range(tl.program_id(0), 512, 132, flatten=True):
        tile_m = tile // 128 * 8 + tile % 8
        tile_n = tile % 128 // 8
        rows = tile_m * 128 + tl.arange(0, 128)[:, None]
        cols = tile_n * 256 + tl.arange(0, 256)[None, :]
        acc = tl.zeros((128, 256), tl.float32)
        for k in tl.range(0, 4096, 64):
            left_tile = left_desc.load([tile_m * 128, k])
            right_tile = right_desc.load([k, tile_n * 256])
            acc = tl.dot(left_tile, right_tile, acc)
        tl.store(out0 + rows * 4096 + cols, acc.to(tl.bfloat16))
