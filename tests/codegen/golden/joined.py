import triton
import triton.language as tl


@triton.jit
def pointwise(in0, in1, in2, out0):
    index = tl.program_id(0) * 128 + tl.arange(0, 128)
    c = index // 48
    c_1 = index // 4 % 12
    c_2 = index % 4
    x0 = tl.load(in0 + c * 12 + c_1 * 4 + c_2, mask=(index < 192) & ((index < 192) & (c_1 < 3)), other=0)
    v1 = tl.exp(x0)
    c_3 = c_1 - 3
    x1 = tl.load(in1 + c_3 * 7 + c_2 * 6, mask=((index < 192) & (c_3 >= 0) & (c_3 < 4)) & (index < 192), other=0)
    c_4 = c_1 - 7
    x2 = tl.load(in2 + c * 20 + c_4 * 4 + c_2, mask=(index < 192) & ((index < 192) & (c_4 >= 0)), other=0)
    v4 = x2 * -1.0
    v5 = tl.where(c_1 < 3, v1, tl.where(c_1 < 7, x1, v4))
    v7 = v5 * 0.5
    tl.store(out0 + index, v7, mask=index < 192)
