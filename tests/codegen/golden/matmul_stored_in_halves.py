import triton
import triton.language as tl


@triton.jit
def contraction(left_desc, right_desc, out0_desc):
    for tile in tl.range(tl.program_id(0), 512, 132, flatten=True):
        tile_m = tile // 128 * 8 + tile % 8
        tile_n = tile % 128 // 8
        acc = tl.zeros((128, 256), tl.float32)
        for k in tl.range(0, 4096, 64):
            left_tile = left_desc.load([tile_m * 128, k])
            right_tile = right_desc.load([k, tile_n * 256])
            acc = tl.dot(left_tile, right_tile, acc)
        acc_2_0, acc_2_1 = tl.split(tl.permute(tl.reshape(acc, (128, 2, 128)), (0, 2, 1)))
        out0_desc.store([tile_m * 128, tile_n * 256], acc_2_0.to(tl.bfloat16))
        out0_desc.store([tile_m * 128, tile_n * 256 + 128], acc_2_1.to(tl.bfloat16))
