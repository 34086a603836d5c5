"""Compile the CPU kernels before the first step needs them. numba writes the code to its disk cache, for this and later processes.

Compiling takes seconds and holds the interpreter lock. A program that has other work in the meantime, such as loading a model, calls
`start_background_compile`, which compiles in a process of its own.
"""

from __future__ import annotations

import os
import subprocess
import sys

import numpy as np
import torch

from rtlang_kernels import ops
from rtlang_kernels.cpu.attention.attention import variant_of
from rtlang_kernels.cpu.attention.attention_kernel import ATTEND_TYPES, attend_kernel
from rtlang_kernels.cpu.attention.attention_layout import tile_fault
from rtlang_kernels.cpu.codegen.llvm_bridge import address_of
from rtlang_kernels.cpu.codegen.tile_vectors import NO_TILES
from rtlang_kernels.cpu.fused.fused_linears import MULTIPLY_TYPES, multiply_kernel
from rtlang_kernels.cpu.fused.fused_step import fused_kernel
from rtlang_kernels.cpu.linear import ROW_COUNTS, TILED_ROW_COUNTS, PackedLinear, tile_code
from rtlang_kernels.cpu.linear_tuning import usable_tiles
from rtlang_kernels.cpu.recurrence.causal_conv import CONV_TYPES, block_of, conv_kernel
from rtlang_kernels.cpu.recurrence.delta_layer import DELTA_TYPES, delta_kernel
from rtlang_kernels.cpu.recurrence.gated_recurrence import RECURRENCE_TYPES, lanes_of, recurrence_kernel
from rtlang_kernels.host.processor import processor


def compile_ahead() -> None:
    """Compile the code that every model needs: attention, sampling, linear layers of the machine's own dtype, and the fused step.

    Also the gated delta layer with 128 values a head and a convolution of 4 taps, as in most hybrid models, in that dtype.

    Kernels that depend on the head geometry or the format of weights of few bits are compiled by the first step of a model.
    """
    row, ends = np.zeros((1, 1), dtype=np.int32), np.array([0, 1], dtype=np.int32)
    plan = ops.plan_attention(
        page_table=row,
        seq_lens=ends[1:],
        cu_seqlens_q=ends,
        shared_lens=row[0],
        page_size=16,
        num_q_heads=1,
        num_kv_heads=1,
        head_dim=32,
        dtype=torch.float32,
    )
    variant_of(plan, None, None)
    tiles = usable_tiles()
    if tiles != NO_TILES:
        tile_fault(tiles)
    dtype = torch.bfloat16 if processor().has_bf16_dot else torch.float32
    linear = PackedLinear.pack(torch.zeros((1, 4), dtype=dtype))
    tiled = tile_code(linear.code, tiles)
    for code, counts in ((linear.code, ROW_COUNTS), (tiled, TILED_ROW_COUNTS)):
        if code is not None and (code is linear.code or code.tiles != NO_TILES):
            linear.code = code
            for num_rows in counts:
                linear(torch.zeros((num_rows, 4), dtype=dtype))
    address_of(attend_kernel(), ATTEND_TYPES)
    address_of(multiply_kernel(), MULTIPLY_TYPES)
    fused_kernel()
    is_bf16 = int(dtype == torch.bfloat16)
    address_of(recurrence_kernel(is_bf16, lanes_of(128), 1), RECURRENCE_TYPES)
    address_of(conv_kernel(is_bf16, block_of(128), 4, 1), CONV_TYPES)
    address_of(delta_kernel(is_bf16, 128), DELTA_TYPES)
    ops.sample(
        torch.zeros((1, 32)),
        temperature=[1.0],
        top_k=[0],
        top_p=[1.0],
        min_p=[0.0],
        seeds=[0],
        choices=[0],
        steps=[0],
        bitmask=np.full((1, 1), -1, dtype=np.int32),
        mask_rows=row[0],
    )


def start_background_compile() -> subprocess.Popen[bytes]:
    """Run `compile_ahead` in a new process and return the process without waiting for it.

    The process needs no supervision: if it fails, the first step compiles the kernels.

    Raises:
        OSError: no process can be started.
    """
    environment = {**os.environ, "PYTHONPATH": os.pathsep.join(path for path in sys.path if path)}
    quiet = subprocess.DEVNULL
    return subprocess.Popen(
        [sys.executable, "-P", "-c", "from rtlang_kernels.precompile import compile_ahead; compile_ahead()"],
        stdin=quiet,
        stdout=quiet,
        stderr=quiet,
        env=environment,
        start_new_session=True,  # an interrupt from the terminal must not end it
    )
