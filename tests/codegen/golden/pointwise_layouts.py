import triton
import triton.language as tl


@triton.jit
def pointwise(in0, in1, in2, in3, out0):
    index = tl.program_id(0) * 128 + tl.arange(0, 128)
    x0 = tl.load(in0 + index // 20 + index % 20 * 6, mask=index < 120, other=0)
    x1 = tl.load(in1 + index % 20, mask=index < 120, other=0)
    v3 = x0 + x1
    x2 = tl.load(in2 + 5 + index // 20 * 60 + index % 20 * 2, mask=index < 120, other=0).to(tl.float32)
    x3 = tl.load(in3)
    v5 = x2 * x3
    v6 = v3 + v5
    tl.store(out0 + index, v6, mask=index < 120)
