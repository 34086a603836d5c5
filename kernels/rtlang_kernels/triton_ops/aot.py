"""`python -m rtlang_kernels.triton_ops.aot`: compile every kernel of the table for a GPU that is not there, and read what it needs.

Compilation ahead of time tells whether a configuration builds, how many registers and how much shared memory it takes, and
whether registers spill to memory, without running anything. `VARIANTS` is the whole table: the attention tiles over head sizes,
types and features, and one entry of each other kernel. Exits with status 1 if any variant does not fit. Must run in a process without
TRITON_INTERPRET.
"""

from __future__ import annotations

import argparse
import json
import os
import re
import subprocess
import sys
import tempfile
from collections.abc import Iterable, Iterator
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any

import triton
from triton.backends.compiler import GPUTarget
from triton.compiler import ASTSource

from rtlang_kernels.triton_ops import (
    attention_kernel,
    automaton_kernel,
    filter_kernel,
    layers_kernel,
    logits_kernel,
    merge_kernel,
    sampling_kernel,
)
from rtlang_kernels.triton_ops.automaton import ADVANCE_BLOCK, MASK_BLOCK, MASK_WARPS, MAX_DEPTH
from rtlang_kernels.triton_ops.tiles import GFX942, LINES, SM_80, SM_90, attention_tile, float32_precision, split_dim

TARGETS = {
    SM_80: GPUTarget("cuda", 80, 32),
    SM_90: GPUTarget("cuda", 90, 32),
    GFX942: GPUTarget("hip", "gfx942", 64),
}
SHARED_LIMIT = {SM_80: 163 << 10, SM_90: 227 << 10, GFX942: 64 << 10}  # bytes that one program may take
ITEM_BYTES = {"bf16": 2, "fp16": 2, "fp32": 4}


@dataclass(frozen=True)
class Variant:
    """One kernel with all that decides its code. `types` are those of its other arguments, pointers unless named without a star."""

    name: str
    kernel: Any
    types: dict[str, str]
    constants: dict[str, Any]
    options: dict[str, Any] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class Report:
    """What one variant needs. Bytes of spilled registers per thread; shared memory per program; counts of matrix instructions."""

    target: str
    name: str
    registers: int
    spill_bytes: int
    shared_bytes: int
    matrix: str
    fits: bool


def attention_variants(arch: str) -> Iterator[Variant]:
    """Every class of tile for the commonest and the largest heads, and every feature, head size and type at least once."""
    every = range(len(LINES))
    shapes: list[tuple[str, int, int, Iterable[int], dict[str, bool]]] = [
        ("bf16", 128, 4, every, {}),
        ("bf16", 64, 7, (0, 1), {}),
        ("fp16", 80, 1, (1,), {}),
        ("bf16", 96, 1, (2,), {}),
        ("bf16", 64, 8, (1,), {"HAS_WINDOW": True, "HAS_SINKS": True}),
        ("bf16", 256, 4, every, {"HAS_WINDOW": True, "HAS_SOFT_CAP": True}),
        ("fp32", 128, 4, every, {}),
        ("bf16", 128, 4, every, {"KV_FLOAT8": True}),
    ]
    for kind, head_dim, group, classes, features in shapes:
        for lines_class in classes:
            yield attention_variant(arch, kind, head_dim, group, lines_class, features)


def attention_variant(
    arch: str, kind: str, head_dim: int, group: int, lines_class: int, features: dict[str, bool]
) -> Variant:
    """`rect_attn` for one class of tile."""
    tile = attention_tile(arch, lines_class, head_dim, head_dim, ITEM_BYTES[kind])
    d_lo, d_hi = split_dim(head_dim)
    types = dict.fromkeys(("q", "k_pool", "v_pool", "out", "sinks"), f"*{kind}")
    types |= dict.fromkeys(("lse", "partial_out", "partial_lse"), "*fp32")
    types |= dict.fromkeys(("items", "header", "page_table", "positions", "first_visible"), "*i32")
    types |= {"q_stride": "i32", "k_stride": "i32", "v_stride": "i32"}
    types |= {"scale": "fp32", "soft_cap": "fp32"}
    if "KV_FLOAT8" in features:
        types |= {"k_pool": "*u8", "v_pool": "*u8"}
    constants = {
        "LINES_CLASS": lines_class,
        "PARTS": LINES[lines_class] // tile.block_m,
        "NUM_KV_HEADS": 8,
        "GROUP": group,
        "HEAD_DIM": head_dim,
        "V_HEAD_DIM": head_dim,
        "D_LO": d_lo,
        "D_HI": d_hi,
        "V_LO": d_lo,
        "V_HI": d_hi,
        "PAGE_SIZE": 16,
        "BLOCK_M": tile.block_m,
        "BLOCK_N": tile.block_n,
        "NUM_STAGES": tile.num_stages,
        "HAS_WINDOW": False,
        "HAS_SOFT_CAP": False,
        "HAS_SINKS": False,
        "UPCAST": False,
        "PRECISION": float32_precision(arch),
        "KV_FLOAT8": False,
    }
    extra = "".join(f" {name[4:].lower()}" for name in features if name.startswith("HAS_"))
    held = " kv8" if "KV_FLOAT8" in features else ""
    name = f"rect_attn {kind}{held} D{head_dim} G{group} {LINES[lines_class]}: {tile.block_m}x{tile.block_n}{extra}"
    return Variant(name, attention_kernel.rect_attn, types, constants | features, {"num_warps": tile.num_warps})


def other_variants() -> Iterator[Variant]:
    """The kernels besides attention, as the runtime launches them for a model of 32 and 8 heads of 128 and 128k tokens."""
    i32, i64, fp32, bf16 = "*i32", "*i64", "*fp32", "*bf16"
    yield Variant(
        "merge_parts bf16 D128",
        merge_kernel.merge_parts,
        {"partial_out": fp32, "partial_lse": fp32, "sinks": bf16, "out": bf16, "lse": fp32}
        | dict.fromkeys(("header", "merge_tokens", "merge_start", "merge_rows"), i32),
        {"NUM_Q_HEADS": 32, "V_HEAD_DIM": 128, "BLOCK_H": 8, "BLOCK_V": 128, "HAS_SINKS": True},
    )
    yield Variant(
        "merge_two bf16 D128",
        merge_kernel.merge_two,
        {"out_a": bf16, "lse_a": fp32, "out_b": bf16, "lse_b": fp32, "out": bf16, "lse": fp32, "num_states": "i32"},
        {"V_HEAD_DIM": 128, "BLOCK_H": 8, "BLOCK_V": 128},
    )
    strides = dict.fromkeys(("q_stride", "k_stride", "v_stride", "k_pool_stride", "v_pool_stride"), "i32")
    yield Variant(
        "rope_append bf16 D128 norms",
        layers_kernel.rope_append,
        dict.fromkeys(("q", "k", "v", "k_pool", "v_pool", "q_norm", "k_norm"), bf16)
        | {"cos": fp32, "sin": fp32, "positions": i64, "slot_mapping": i64, "eps": "fp32"}
        | strides,
        {
            "NUM_Q_HEADS": 32,
            "NUM_KV_HEADS": 8,
            "HEAD_DIM": 128,
            "V_HEAD_DIM": 128,
            "HALF": 64,
            "BLOCK_H": 8,
            "BLOCK_HALF": 64,
            "BLOCK_REST": 1,
            "BLOCK_V": 128,
            "HAS_Q_NORM": True,
            "HAS_K_NORM": True,
            "TO_FLOAT8": False,
        },
    )
    for size, num_warps in ((4096, 8), (16384, 16)):
        yield Variant(
            f"add_rms_norm bf16 {size}",
            layers_kernel.add_rms_norm,
            dict.fromkeys(("x", "residual", "weight", "out"), bf16) | {"eps": "fp32", "size": "i32"},
            {"BLOCK": size, "HAS_RESIDUAL": True},
            {"num_warps": num_warps},
        )
    yield Variant(
        "silu_and_mul bf16",
        layers_kernel.silu_and_mul,
        {"gate_up": bf16, "out": bf16, "size": "i32", "gate_up_stride": "i32"},
        {"BLOCK": 1024},
    )
    yield Variant(
        "copy_lines bf16",
        layers_kernel.copy_lines,
        {"source": bf16, "target": bf16, "source_ids": i64, "target_ids": i64}
        | dict.fromkeys(("size", "source_stride", "target_stride"), "i32"),
        {"HAS_SOURCE_IDS": True, "HAS_TARGET_IDS": True, "TO_FLOAT8": False, "BLOCK": 1024},
    )
    yield Variant(
        "copy_lines bf16 to float8",
        layers_kernel.copy_lines,
        {"source": bf16, "target": "*u8", "source_ids": i64, "target_ids": i64}
        | dict.fromkeys(("size", "source_stride", "target_stride"), "i32"),
        {"HAS_SOURCE_IDS": False, "HAS_TARGET_IDS": True, "TO_FLOAT8": True, "BLOCK": 1024},
    )
    yield from sampling_variants()


def sampling_variants() -> Iterator[Variant]:
    """Sampling over masks, and what else reads logits."""
    i32, i64, fp32, bf16 = "*i32", "*i64", "*fp32", "*bf16"
    exact = {"enable_fp_fusion": False}
    source = {"logits": bf16, "row_stride": "i32", "vocab_size": "i32"}
    chosen = {"factors": fp32, "keys": i32, "steps": i32, "bitmask": i32, "mask_rows": i32, "num_words": "i32"}
    chunks = {"chunk_top": fp32, "chunk_token": i32, "chunk_score": fp32, "chunk_nan": i32}
    results = {"token_ids": i64, "is_finite": "*i8", "row_top": fp32}
    yield Variant(
        "sample_stats bf16 masked",
        sampling_kernel.sample_stats,
        source | {"kinds": i32} | chosen | chunks,
        {"BLOCK": 2048, "HAS_MASK": True},
        exact,
    )
    yield Variant(
        "sample_finish bf16 masked",
        sampling_kernel.sample_finish,
        source | {"kinds": i32} | chosen | chunks | {"num_chunks": "i32"} | results,
        {"BLOCK": 2048, "NUM_CHUNKS": 64, "HAS_MASK": True},
        exact,
    )
    yield Variant(
        "sample_filtered bf16 masked",
        filter_kernel.sample_filtered,
        source | {"rows": i32, "top_ks": i32, "top_ps": fp32, "min_ps": fp32} | chosen | results,
        {"BLOCK": 4096, "HAS_MASK": True},
        exact | {"num_warps": 8},
    )
    keys = {"chunk_max": fp32, "chunk_sum": fp32, "chunk_keys": i64, "num_top": "i32"}
    yield Variant("logprob_chunks bf16", logits_kernel.logprob_chunks, source | keys, {"BLOCK": 2048})
    yield Variant(
        "logprob_finish bf16",
        logits_kernel.logprob_finish,
        {"logits": bf16, "row_stride": "i32", "token_ids": i64, "num_chunks": "i32"}
        | keys
        | {"chosen": fp32, "top_ids": i64, "top_values": fp32},
        {"NUM_CHUNKS": 64, "NUM_KEYS": 2048},
    )
    masks = {"bitmask": i32, "mask_rows": i32, "num_words": "i32"}
    yield Variant("mask_logits bf16", logits_kernel.mask_logits, source | masks, {"BLOCK": 2048})
    yield Variant(
        "penalize fp32",
        logits_kernel.penalize,
        {"logits": fp32, "token_ids": i32, "counts": i32, "num_tokens": "i32", "repetition": "fp32"}
        | {"presence": "*fp64", "frequency": "*fp64"},
        {"BLOCK": 256, "HAS_REPETITION": True, "HAS_COUNTS": True},
        exact,
    )


def automaton_variants() -> Iterator[Variant]:
    """Walks of automata."""
    i32 = "*i32"
    slots = dict.fromkeys(("slot_state", "slot_depth", "slot_stack", "slot_grammar", "slot_complete"), i32)
    tables = dict.fromkeys(("slots", "classes", "trans", "trans_at", "calls", "offsets"), i32) | {"text": "*u8"}
    kept = dict.fromkeys(("step", "end_words", "kept_allowed", "kept_undecided", "built", "masks"), i32)
    yield Variant(
        "build_masks",
        automaton_kernel.build_masks,
        slots | tables | kept | {"num_words": "i32", "vocab_size": "i32"},
        {"MAX_DEPTH": MAX_DEPTH, "BLOCK": MASK_BLOCK},
        {"num_warps": MASK_WARPS},
    )
    yield Variant(
        "advance",
        automaton_kernel.advance,
        slots | tables | {"drawn": "*i64", "places": i32, "num_rows": "i32", "may_end": i32},
        {"MAX_DEPTH": MAX_DEPTH, "BLOCK": ADVANCE_BLOCK},
        {"num_warps": 1},
    )


def variants(arch: str) -> list[Variant]:
    """The table for one target."""
    return [*attention_variants(arch), *other_variants(), *automaton_variants()]


def compiled(variant: Variant, arch: str) -> Report:
    """Compile one variant for a target and read its resources."""
    names = variant.kernel.arg_names
    unknown = set(variant.types) ^ (set(names) - set(variant.constants))
    assert not unknown, f"{variant.name}: {sorted(unknown)}"
    aligned = [name for name in names if variant.types.get(name, "").startswith("*") or "stride" in name]
    source = ASTSource(
        fn=variant.kernel,
        signature={name: variant.types.get(name, "constexpr") for name in names},
        constexprs={(index,): variant.constants[name] for index, name in enumerate(names) if name in variant.constants},
        attrs={(index,): [["tt.divisibility", 16]] for index, name in enumerate(names) if name in aligned},
    )
    built = triton.compile(
        source, target=TARGETS[arch], options={"num_warps": 4, "enable_fp_fusion": True} | variant.options
    )
    shared = int(built.metadata.shared)
    if arch == GFX942:
        text = built.asm["amdgcn"]
        registers, spill = _number(r"\.vgpr_count:\s+(\d+)", text), 4 * _number(r"\.vgpr_spill_count:\s+(\d+)", text)
        matrix = f"mfma {text.count('v_mfma')}"
    else:
        usage = _cubin_usage(built.asm["cubin"])
        registers, spill = _number(r"REG:(\d+)", usage), _number(r"STACK:(\d+)", usage)
        ptx = built.asm["ptx"]
        counts = {"wgmma": "wgmma.mma_async", "mma": "mma.sync", "cp.async": "cp.async.cg"}
        matrix = " ".join(f"{label} {ptx.count(word)}" for label, word in counts.items() if word in ptx)
    fits = spill == 0 and shared <= SHARED_LIMIT[arch]
    return Report(arch, variant.name, registers, spill, shared, matrix, fits)


def _cubin_usage(cubin: bytes) -> str:
    tool = Path(triton.__file__).parent / "backends" / "nvidia" / "bin" / "cuobjdump"
    with tempfile.NamedTemporaryFile(suffix=".cubin") as file:
        file.write(cubin)
        file.flush()
        done = subprocess.run([str(tool), "-res-usage", file.name], capture_output=True, text=True, check=True)
    return done.stdout + done.stderr


def _number(pattern: str, text: str) -> int:
    found = re.search(pattern, text)
    assert found, pattern
    return int(found.group(1))


def main(arguments: list[str] | None = None) -> int:
    """Compile the table; returns the exit status."""
    parser = argparse.ArgumentParser(prog="python -m rtlang_kernels.triton_ops.aot", description=__doc__)
    parser.add_argument("--target", action="append", choices=sorted(TARGETS), help="may be repeated; all by default")
    parser.add_argument("--only", default="", help="variants whose name contains this")
    parser.add_argument("--json", metavar="FILE", help="also write the reports to a file")
    options = parser.parse_args(arguments)
    if os.environ.get("TRITON_INTERPRET") == "1":
        sys.stderr.write("TRITON_INTERPRET is set: nothing can be compiled in this process\n")
        return 2
    reports = []
    write = sys.stdout.write
    write(f"triton {triton.__version__}\n{'target':<8} {'kernel':<48} {'regs':>5} {'spill':>6} {'shared':>7}  matrix\n")
    for arch in options.target or sorted(TARGETS):
        for variant in variants(arch):
            if options.only in variant.name:
                report = compiled(variant, arch)
                reports.append(report)
                write(
                    f"{arch:<8} {report.name:<48} {report.registers:>5} {report.spill_bytes:>6} {report.shared_bytes:>7}  "
                    f"{report.matrix}{'' if report.fits else '  DOES NOT FIT'}\n"
                )
                sys.stdout.flush()
    if options.json:
        Path(options.json).write_text(json.dumps([asdict(report) for report in reports], indent=1), encoding="utf-8")
    return 0 if all(report.fits for report in reports) else 1


if __name__ == "__main__":
    sys.exit(main())
