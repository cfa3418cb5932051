import triton
import triton.language as tl


@triton.jit
def contraction(in0, in1, in2, out0, out1):
    tile = tl.program_id(0)
    tile_m = tile // 128 * 8 + tile % 8
    tile_n = tile % 128 // 8
    rows = tile_m * 64 + tl.arange(0, 64)[:, None]
    cols = tile_n * 64 + tl.arange(0, 64)[None, :]
    k_row = tl.arange(0, 64)[None, :]
    k_col = tl.arange(0, 64)[:, None]
    acc = tl.zeros((64, 64), tl.float32)
    p1 = in1 + rows * 2048 + k_row
    p2 = in2 + k_col + cols * 2048
    for k in tl.range(0, 2048, 64):
        x1 = tl.load(p1 + k)
        x2 = tl.load(p2 + k)
        acc = tl.dot(x1, x2, acc)
    row = tile_m * 64 + tl.arange(0, 64)[:, None, None]
    head = tile_n * 2 + tl.arange(0, 2)[None, :, None]
    lane = tl.arange(0, 32)[None, None, :]
    acc_groups = tl.reshape(acc, (64, 2, 32))
    x0 = tl.load(in0 + row * 1024 + head * 32 + lane).to(tl.float32)
    v5 = x0 + acc_groups
    tl.store(out0 + row * 1024 + head * 32 + lane, v5.to(tl.bfloat16))
    v7 = v5 * v5
    v9 = tl.sum(v7, 2, keep_dims=True)
    tl.store(out1 + row * 32 + head, v9)
