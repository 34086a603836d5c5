"""The kernel configurations compiled ahead of time: every kernel as the runtime launches it, with all constants that determine its code.

There are attention tiles for various head sizes, types and features. Every other kernel appears for each type of logits or activations,
with and without its optional parts, with a large vocabulary and with one of a single chunk. Integers that are 1 need no code of their own
(`jit.UNSPECIALIZED`).
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import Any

from rtlang_kernels.planning.tile_sizes import (
    LINES,
    SM_100,
    attention_tile,
    float32_precision,
    power_of_two,
    split_dim,
)
from rtlang_kernels.triton.aot.linear_table import linear_variants
from rtlang_kernels.triton.aot.recurrence_table import recurrence_variants
from rtlang_kernels.triton.aot.variant import ANY_FLUSH, ARITHMETIC_FLUSH, CompiledVariant
from rtlang_kernels.triton.attention import merge_kernel, rectangle_kernel
from rtlang_kernels.triton.attention.paged_attention import MERGE_FEW, MERGE_MANY, merge_block
from rtlang_kernels.triton.grammar import automaton_kernel
from rtlang_kernels.triton.grammar.automaton_store import ADVANCE_BLOCK, MASK_BLOCK, MASK_WARPS, MAX_DEPTH
from rtlang_kernels.triton.layers import layers_kernel
from rtlang_kernels.triton.layers.layer_ops import heads_per_program, norm_warps
from rtlang_kernels.triton.sampling import candidates_kernel, filter_kernel, logits_kernel, sample_kernel
from rtlang_kernels.triton.sampling.logits import num_keys
from rtlang_kernels.triton.sampling.sampler import CAPACITY, CHUNK, FILTER_CHUNK, FILTER_WARPS, FINISH_WARPS

ITEM_BYTES = {"bf16": 2, "fp16": 2, "fp32": 4}
VOCAB_SIZE = 128_256


def attention_variants(arch: str) -> Iterator[CompiledVariant]:
    """Every tile class for the most common and the largest heads, and every feature, head size and type at least once."""
    every = range(len(LINES))
    shapes: list[tuple[str, int | tuple[int, int], int, Iterable[int], dict[str, bool]]] = [
        ("bf16", 128, 4, every, {}),
        ("bf16", 128, 4, (0,), {"IS_SHARED": True}),
        ("bf16", 64, 7, (0, 1), {}),
        ("fp16", 80, 1, (1,), {}),
        ("bf16", 96, 1, (2,), {}),
        ("bf16", 64, 8, (1,), {"HAS_WINDOW": True, "HAS_SINKS": True}),
        ("bf16", 256, 4, every, {"HAS_WINDOW": True, "HAS_SOFT_CAP": True}),
        ("fp32", 128, 4, every, {}),
        ("fp32", 64, 2, every, {}),
        ("bf16", 128, 4, every, {"KV_FLOAT8": True}),
        ("bf16", (192, 128), 1, every, {}),
        ("bf16", 512, 8, every, {}),
        ("fp32", (192, 128), 1, (0,), {}),
        ("bf16", (576, 512), 16, every, {"LATENT": True}),
        ("bf16", (576, 512), 128, (2,), {"LATENT": True, "KV_FLOAT8": True}),
        ("bf16", (288, 256), 40, every, {"LATENT": True}),
        ("bf16", (448, 384), 16, (0,), {}),
    ]
    for kind, size, group, classes, features in shapes:
        head_dim, v_head_dim = (size, size) if isinstance(size, int) else size
        for lines_class in classes:
            yield attention_variant(arch, kind, head_dim, v_head_dim, group, lines_class, features)


def attention_variant(
    arch: str, kind: str, head_dim: int, v_head_dim: int, group: int, lines_class: int, features: dict[str, bool]
) -> CompiledVariant:
    """`rect_attn` for one tile class."""
    features = dict(features)
    is_shared = features.pop("IS_SHARED", False)
    sizes = head_dim, 0 if "LATENT" in features else v_head_dim
    tile = attention_tile(arch, lines_class, *sizes, ITEM_BYTES[kind], is_shared=is_shared)
    (d_lo, d_hi), (v_lo, v_hi) = split_dim(head_dim), split_dim(v_head_dim)
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
        "NUM_KV_HEADS": 1 if "LATENT" in features else 8,
        "GROUP": group,
        "HEAD_DIM": head_dim,
        "V_HEAD_DIM": v_head_dim,
        "D_LO": d_lo,
        "D_HI": d_hi,
        "V_LO": v_lo,
        "V_HI": v_hi,
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
        "LATENT": False,
    }
    extra = "".join(f" {name[4:].lower()}" for name in features if name.startswith("HAS_"))
    float8 = " kv8" if "KV_FLOAT8" in features else ""
    extra += " latent" * ("LATENT" in features)
    dims = f"D{head_dim}" if v_head_dim == head_dim else f"D{head_dim}/{v_head_dim}"
    name = f"rect_attn {kind}{float8} {dims} G{group} {LINES[lines_class]}: {tile.block_m}x{tile.block_n}{extra}"
    small = ARITHMETIC_FLUSH if float8 else None
    return CompiledVariant(
        name, rectangle_kernel.rect_attn, types, constants | features, {"num_warps": tile.num_warps}, small
    )


def other_variants() -> Iterator[CompiledVariant]:
    """All kernels except attention, as the runtime launches them for a model with 32 query and 8 KV heads of size 128."""
    i32, fp32, bf16 = "*i32", "*fp32", "*bf16"
    for (block_p, most), has_sinks in ((MERGE_FEW, False), (MERGE_FEW, True), (MERGE_MANY, False), (MERGE_MANY, True)):
        block_v, block_h = merge_block(32, 128, most)
        yield CompiledVariant(
            f"merge_parts bf16 D128 {block_p} at a time{' sinks' * has_sinks}",
            merge_kernel.merge_parts,
            {"partial_out": fp32, "partial_lse": fp32, "sinks": bf16 if has_sinks else fp32, "out": bf16, "lse": fp32}
            | dict.fromkeys(("header", "merge_tokens", "merge_start", "merge_rows"), i32),
            {"NUM_Q_HEADS": 32, "V_HEAD_DIM": 128, "BLOCK_P": block_p, "BLOCK_H": block_h, "BLOCK_V": block_v}
            | {"HAS_SINKS": has_sinks},
        )
    yield CompiledVariant(
        "merge_two bf16 D128",
        merge_kernel.merge_two,
        {"out_a": bf16, "lse_a": fp32, "out_b": bf16, "lse_b": fp32, "out": bf16, "lse": fp32, "num_states": "i32"},
        {"V_HEAD_DIM": 128, "BLOCK_H": 8, "BLOCK_V": 128},
    )
    yield rope_variant("bf16", 32, 8, 128, has_norms=True)
    yield rope_variant("bf16", 32, 8, 128, has_norms=False, is_float8=True)
    yield rope_variant("fp32", 4, 2, 64, has_norms=False)
    for kind, size, has_residual in (
        ("bf16", 4096, True),
        ("bf16", 16384, True),
        ("bf16", 4096, False),
        ("fp32", 4096, True),
        ("fp32", 64, False),
    ):
        yield CompiledVariant(
            f"add_rms_norm {kind} {size}{'' if has_residual else ' alone'}",
            layers_kernel.add_rms_norm,
            dict.fromkeys(("x", "residual", "weight", "out"), f"*{kind}") | {"eps": "fp32", "size": "i32"},
            {"BLOCK": power_of_two(size), "HAS_RESIDUAL": has_residual},
            {"num_warps": norm_warps(size)},
        )
    for kind, is_gelu in (("bf16", False), ("fp32", False), ("bf16", True)):
        yield CompiledVariant(
            f"{'gelu' if is_gelu else 'silu'}_and_mul {kind}",
            layers_kernel.gate_and_mul,
            {"gate_up": f"*{kind}", "out": f"*{kind}", "size": "i32", "gate_up_stride": "i32"},
            {"IS_GELU": is_gelu, "BLOCK": 1024},
        )
    for kind, target, has_source_ids, is_float8 in (
        ("bf16", "bf16", True, False),
        ("u8", "u8", True, False),
        ("bf16", "u8", False, True),
        ("fp32", "fp32", False, False),
    ):
        yield CompiledVariant(
            f"copy_lines {kind}{' to float8' * is_float8}",
            layers_kernel.copy_lines,
            {"source": f"*{kind}", "target": f"*{target}", "source_ids": "*i64", "target_ids": "*i64"}
            | dict.fromkeys(("size", "source_stride", "target_stride"), "i32"),
            {"HAS_SOURCE_IDS": has_source_ids, "HAS_TARGET_IDS": True, "TO_FLOAT8": is_float8, "BLOCK": 1024},
            flush_pattern=ANY_FLUSH,
        )
    yield from sampling_variants()
    yield from filter_variants()
    yield from logits_variants()


def rope_variant(
    kind: str, num_q_heads: int, num_kv_heads: int, head_dim: int, *, has_norms: bool, is_float8: bool = False
) -> CompiledVariant:
    """`rope_append` for one geometry."""
    element = f"*{kind}"
    pool = "*u8" if is_float8 else element
    strides = dict.fromkeys(("q_stride", "k_stride", "v_stride", "k_pool_stride", "v_pool_stride"), "i32")
    return CompiledVariant(
        f"rope_append {kind} D{head_dim}{' norms' * has_norms}{' kv8' * is_float8}",
        layers_kernel.rope_append,
        dict.fromkeys(("q", "k", "v", "q_norm", "k_norm"), element)
        | {"k_pool": pool, "v_pool": pool, "cos": "*fp32", "sin": "*fp32", "eps": "fp32"}
        | {"positions": "*i64", "slot_mapping": "*i64"}
        | strides,
        {
            "NUM_Q_HEADS": num_q_heads,
            "NUM_KV_HEADS": num_kv_heads,
            "HEAD_DIM": head_dim,
            "V_HEAD_DIM": head_dim,
            "HALF": head_dim // 2,
            "BLOCK_H": heads_per_program(head_dim, num_q_heads),
            "BLOCK_HALF": power_of_two(head_dim // 2),
            "BLOCK_REST": 1,
            "BLOCK_V": power_of_two(head_dim),
            "HAS_Q_NORM": has_norms,
            "HAS_K_NORM": has_norms,
            "TO_FLOAT8": is_float8,
        },
        flush_pattern=ARITHMETIC_FLUSH if is_float8 else None,
    )


NUMBER = {"num_chunks": "i32"}
EXACT = {"enable_fp_fusion": False}
CHOSEN = {"factors": "*fp32", "keys": "*i32", "steps": "*i32"}
MASKS = {"bitmask": "*i32", "mask_rows": "*i32", "num_words": "i32"}
RESULTS = {"token_ids": "*i64", "is_finite": "*i8", "row_top": "*fp32"}
# Type of the logits, whether rows are masked, size of the vocabulary.
LOGITS = (("bf16", True, VOCAB_SIZE), ("bf16", False, VOCAB_SIZE), ("fp32", True, VOCAB_SIZE), ("fp32", False, 1000))


def source_of(kind: str) -> dict[str, str]:
    """Argument types that describe rows of logits."""
    return {"logits": f"*{kind}", "row_stride": "i32", "vocab_size": "i32"}


def logits_cases() -> Iterator[tuple[str, dict[str, str], dict[str, Any], int]]:
    """Name, types, constants and number of chunks per row, for each entry of LOGITS."""
    for kind, has_mask, vocab_size in LOGITS:
        num_chunks = -(-vocab_size // CHUNK)
        yield (
            f"{kind} {vocab_size}{' masked' * has_mask}",
            source_of(kind) | MASKS,
            {"HAS_MASK": has_mask},
            num_chunks,
        )


def sampling_variants() -> Iterator[CompiledVariant]:
    """Sampling without filters."""
    chunks = {"chunk_top": "*fp32", "chunk_token": "*i32", "chunk_score": "*fp32", "chunk_nan": "*i32"}
    for name, types, constants, num_chunks in logits_cases():
        each = types | CHOSEN | {"kinds": "*i32"} | chunks
        yield CompiledVariant(
            f"sample_stats {name}", sample_kernel.sample_stats, each, constants | {"BLOCK": CHUNK}, dict(EXACT)
        )
        yield CompiledVariant(
            f"sample_finish {name}",
            sample_kernel.sample_finish,
            each | NUMBER | RESULTS,
            constants | {"BLOCK": CHUNK, "NUM_CHUNKS": power_of_two(num_chunks)},
            {"num_warps": FINISH_WARPS, **EXACT},
            ANY_FLUSH,
        )


def filter_variants() -> Iterator[CompiledVariant]:
    """Sampling with filters."""
    rows = {"rows": "*i32"}
    kept = {"top_ks": "*i32", "top_ps": "*fp32", "min_ps": "*fp32"}
    sums = {"counts": "*i32", "masses": "*fp64"}
    found = {"cuts": "*i32", "starts": "*i32", "totals": "*fp64", "retained_ks": "*i32"}
    top = {"row_top": "*fp32"}
    finite = {"is_finite": "*i8"}
    wide = {"num_warps": FILTER_WARPS, **EXACT}
    for name, types, constants, num_chunks in logits_cases():
        plain = {key: kind for key, kind in types.items() if key not in MASKS and key != "vocab_size"}
        factors = {"factors": "*fp32"}
        yield CompiledVariant(
            f"filter_histogram {name}",
            candidates_kernel.filter_histogram,
            types | rows | factors | top | finite | sums,
            constants | {"BLOCK": CHUNK},
            dict(EXACT),
            ANY_FLUSH,
        )
        yield CompiledVariant(
            f"filter_cut {name}",
            candidates_kernel.filter_cut,
            rows | kept | finite | sums | NUMBER | found,
            {"NUM_CHUNKS": power_of_two(num_chunks), "CAPACITY": CAPACITY},
            dict(wide),
        )
        yield CompiledVariant(
            f"filter_collect {name}",
            candidates_kernel.filter_collect,
            types | rows | factors | top | {"cuts": "*i32", "starts": "*i32", "candidates": "*i32"},
            constants | {"BLOCK": CHUNK, "CAPACITY": CAPACITY},
            dict(EXACT),
            ANY_FLUSH,
        )
        yield CompiledVariant(
            f"filter_choose {name}",
            candidates_kernel.filter_choose,
            plain
            | rows
            | CHOSEN
            | {"top_ps": "*fp32", "min_ps": "*fp32", "candidates": "*i32", "token_ids": "*i64"}
            | top
            | found
            | NUMBER,
            {"CAPACITY": CAPACITY},
            dict(wide),
            ANY_FLUSH,
        )
        yield CompiledVariant(
            f"sample_filtered {name}",
            filter_kernel.sample_filtered,
            types | rows | kept | CHOSEN | RESULTS | {"cuts": "*i32"},
            constants | {"BLOCK": FILTER_CHUNK},
            dict(wide),
            ANY_FLUSH,
        )


def logits_variants() -> Iterator[CompiledVariant]:
    """Log-probabilities, masks and penalties."""
    i32, fp32 = "*i32", "*fp32"
    for kind, vocab_size in (("bf16", VOCAB_SIZE), ("fp32", VOCAB_SIZE), ("fp32", 1000)):
        num_chunks = -(-vocab_size // CHUNK)
        keys = {"chunk_max": fp32, "chunk_sum": fp32, "chunk_keys": "*i64", "num_top": "i32"}
        yield CompiledVariant(
            f"logprob_chunks {kind} {vocab_size}",
            logits_kernel.logprob_chunks,
            source_of(kind) | keys,
            {"BLOCK": CHUNK},
        )
        yield CompiledVariant(
            f"logprob_finish {kind} {vocab_size}",
            logits_kernel.logprob_finish,
            {"logits": f"*{kind}", "row_stride": "i32", "token_ids": "*i64", "chosen": fp32}
            | {"top_ids": "*i64", "top_values": fp32}
            | NUMBER
            | keys,
            {"NUM_CHUNKS": power_of_two(num_chunks), "NUM_KEYS": num_keys(num_chunks, 20)},
        )
    for kind in ("bf16", "fp32"):
        yield CompiledVariant(
            f"mask_logits {kind}", logits_kernel.mask_logits, source_of(kind) | MASKS, {"BLOCK": CHUNK}
        )
        yield CompiledVariant(
            f"penalize {kind}",
            logits_kernel.penalize,
            {"logits": f"*{kind}", "row_stride": "i32", "rows": i32, "token_ids": i32, "counts": i32}
            | {"num_entries": "i32", "repetitions": fp32, "presences": "*fp64", "frequencies": "*fp64"},
            {"BLOCK": 256},
            dict(EXACT),
            ANY_FLUSH,
        )


def automaton_variants() -> Iterator[CompiledVariant]:
    """Grammar automata."""
    i32 = "*i32"
    slots = dict.fromkeys(("slot_state", "slot_depth", "slot_stack", "slot_grammar", "slot_complete"), i32)
    tables = dict.fromkeys(("slots", "classes", "trans", "trans_at", "calls", "offsets"), i32) | {"text": "*u8"}
    kept = dict.fromkeys(("step", "end_words", "kept_allowed", "kept_undecided", "built", "masks"), i32)
    yield CompiledVariant(
        "build_masks",
        automaton_kernel.build_masks,
        slots | tables | kept | {"num_words": "i32", "vocab_size": "i32"},
        {"MAX_DEPTH": MAX_DEPTH, "BLOCK": MASK_BLOCK},
        {"num_warps": MASK_WARPS},
    )
    yield CompiledVariant(
        "advance",
        automaton_kernel.advance,
        slots | tables | {"token_ids": "*i64", "places": i32, "num_rows": "i32", "may_end": i32},
        {"MAX_DEPTH": MAX_DEPTH, "BLOCK": ADVANCE_BLOCK},
        {"num_warps": 1},
    )


def variants(arch: str) -> list[CompiledVariant]:
    """The table for one target. For sm_100, linear layers, which have matrix instructions of their own there, and recurrent layers."""
    if arch == SM_100:
        return [*recurrence_variants(), *linear_variants(arch)]
    return [
        *attention_variants(arch),
        *other_variants(),
        *automaton_variants(),
        *recurrence_variants(),
        *linear_variants(arch),
    ]
