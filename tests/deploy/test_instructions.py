"""Counting instructions in the texts that Triton, cuobjdump and nvdisasm write."""

from __future__ import annotations

from engine.deploy import ptx_instructions, sass_instructions

PTX = """
.version 8.7
.target sm_90a
.visible .entry contraction(
\t.param .u64 .ptr .global .align 1 contraction_param_0
)
.reqntid 128
{
\t.reg .pred \t%p<3>;
\t.loc\t1 12 0
$L__func_begin0:
\tld.param.b64 \t%rd1, [contraction_param_0];
\tmov.u32 \t%r1, %ctaid.x;
\t// begin inline asm
\t@%p1 cp.async.cg.shared.global [ %r1 + 0 ], [ %rd1 + 0 ], 0x10, %r2;
\t// end inline asm
\t@!%p2 bra \t$L__BB0_2;
$L__BB0_1:
\twgmma.mma_async.sync.aligned.m64n64k16.f32.bf16.bf16
\t{%f1, %f2}, %rd2, %rd3, 1, 1, 1, 0, 0;
\tcp.async.bulk.tensor.2d.shared::cluster.global.mbarrier::complete_tx::bytes [%r3], [%rd4, {%r5, %r6}], [%r7];
\t{ shl.b32 %r8, %r1, 2; }
\tret;
}
"""

CUOBJDUMP = """
\tcode for sm_90a
\t\tFunction : contraction
\t.headerflags\t@"EF_CUDA_SM90"
        /*0000*/                   LDC R1, c[0x0][0x28] ;                        /* 0x00000a00ff017b82 */
                                                                                 /* 0x000fe20000000800 */
        /*0010*/              @!P0 LDG.E.128 R4, desc[UR4][R2.64] ;              /* 0x0000000402048981 */
        /*0020*/              @UP1 UIADD3 UR4, UR5, 0x1, URZ ;                   /* 0x0000000105047890 */
        /*0030*/                   HGMMA.64x64x16.F32.BF16 R24, gdesc[UR4], !UPT ;
        /*0040*/                   EXIT ;                                        /* 0x000000000000794d */
        /*0050*/                   BRA 0x50;                                     /* 0xfffffffc00fc7947 */
        /*0060*/                   NOP;                                          /* 0x0000000000007918 */
        /*10070*/                  NOP;                                          /* 0x0000000000007918 */
"""


def test_kinds_of_ptx_without_directives_labels_and_types() -> None:
    assert ptx_instructions(PTX) == {
        "ld.param": 1,
        "mov": 1,
        "cp.async": 2,
        "bra": 1,
        "wgmma.mma_async": 1,
        "shl": 1,
        "ret": 1,
    }


def test_kinds_of_sass_without_padding_and_encodings() -> None:
    assert sass_instructions(CUOBJDUMP) == {"LDC": 1, "LDG": 1, "UIADD3": 1, "HGMMA": 1, "EXIT": 1, "BRA": 1}


def test_no_text_has_no_instruction() -> None:
    assert not ptx_instructions("")
    assert not sass_instructions("")
