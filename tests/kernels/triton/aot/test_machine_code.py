"""The order of instructions in a loop, read from a disassembly."""

from __future__ import annotations

from rtlang_kernels.triton.aot.machine_code import product_loops

OUTER = """
.L_x_0:
        /*0000*/                   MUFU.EX2 R1, R1 ;
.L_x_1:
        /*0010*/                   HGMMA.64x128x16.F32.BF16 R24, gdesc[UR28], RZ, !UPT ;
        /*0020*/                   HGMMA.64x128x16.F32.BF16 R24, gdesc[UR36], R24, gsb0 ;
        /*0030*/                   HGMMA.64x64x16.F32.BF16 R120, R152, gdesc[UR40].tnspB, R120, gsb0 ;
        /*0040*/                   WARPGROUP.DEPBAR.LE gsb0, 0x1 ;
        /*0050*/                   MUFU.EX2 R2, R2 ;
        /*0060*/                   FADD R2, R2, R3 ;
        /*0070*/              @!P1 MUFU.EX2 R3, R3 ;
        /*0080*/                   WARPGROUP.DEPBAR.LE gsb0, 0x0 ;
        /*0090*/               @P0 BRA `(.L_x_1) ;
        /*00a0*/               @P2 BRA `(.L_x_0) ;
.L_x_2:
        /*00b0*/                   MUFU.RCP R3, R3 ;
        /*00c0*/                   BRA `(.L_x_2) ;
        /*00d0*/                   BRA `(.L_x_3) ;
.L_x_3:
"""


def test_inner_loops_with_products_are_read_in_order() -> None:
    assert product_loops(OUTER) == [["scores", "output", "wait 1", "exp 2", "wait 0"]]
    late = OUTER.replace("@!P1 MUFU.EX2 R3, R3", "NOP").replace("0x0 ;", "0x0 ;\n        /*0088*/ MUFU.EX2 R3, R3 ;", 1)
    assert product_loops(late) == [["scores", "output", "wait 1", "exp 1", "wait 0", "exp 1"]]


def test_loops_without_products_are_left_out() -> None:
    assert product_loops(OUTER.replace("R152, gdesc", "gdesc, gdesc").replace(".L_x_1", ".L_x_4")) == []
