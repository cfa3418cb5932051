import triton
import triton.language as tl


@triton.jit
def pointwise(in0, in1, in2, out0):
    index = tl.program_id(0) * 128 + tl.arange(0, 128)
    x0 = tl.load(in0 + index, mask=index < 480, other=0)
    x1 = tl.load(in1 + index % 48, mask=index < 480, other=0)
    v3 = x0 * x1
    i5 = index % 8
    v7 = i5 < 4
    c = index // 240
    c_1 = index // 48 % 5
    c_2 = index // 8 % 6
    c_3 = index % 8
    turned = (c_3 + 4) % 8
    x0_1 = tl.load(in0 + c * 240 + c_1 * 48 + c_2 * 8 + turned, mask=index < 480, other=0)
    v8 = x0_1 * -1.0
    v9 = tl.where(v7, v8, x0_1)
    x2 = tl.load(in2 + index % 48, mask=index < 480, other=0)
    v10 = v9 * x2
    v11 = v3 + v10
    tl.store(out0 + index, v11, mask=index < 480)
