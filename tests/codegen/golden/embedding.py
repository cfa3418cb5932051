import triton
import triton.language as tl


@triton.jit
def pointwise(in0, in1, in2, out0):
    index = tl.program_id(0) * 256 + tl.arange(0, 256)
    c = index // 140
    c_1 = index // 20 % 7
    c_2 = index % 20
    x1 = tl.load(in1 + c * 7 + c_1, mask=index < 420, other=0)
    row = (x1 % 11 + 11) % 11
    x0 = tl.load(in0 + row * 20 + c_2, mask=index < 420, other=0).to(tl.float32)
    c_3 = index // 20 % 7
    c_4 = index % 20
    row_1 = (c_3 % 9 + 9) % 9
    x2 = tl.load(in2 + row_1 * 20 + c_4, mask=index < 420, other=0).to(tl.float32)
    v6 = x0 + x2
    tl.store(out0 + index, v6.to(tl.float16), mask=index < 420)
