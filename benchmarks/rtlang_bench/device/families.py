"""Checks models of transformers on a device, one family at a time: their greedy float32 output must equal the CPU's.

Each model is a small random checkpoint with the head sizes of its real family; the families differ in their attention. Rows share a
prefix; most steps are pure decoding, so that graphs are replayed if the family supports it.
"""

from __future__ import annotations

import tempfile
from collections.abc import Callable, Iterator, Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any

from rtlang.bench.checkpoint import write_random
from rtlang.bench.measure import agreement, run_on_target
from rtlang.bench.workloads.text import TextMaker
from rtlang.contract.config import EMBEDDED_MODEL, RuntimeConfig
from rtlang.contract.params import SamplingParams
from rtlang.contract.request_graph import Generate, RequestGraph, Text
from rtlang.model.loader import model_directory
from rtlang.runtime.runtime import Runtime
from rtlang_kernels_bench.output import Output

_COMMON: dict[str, Any] = {
    "vocab_size": 4_096,
    "hidden_size": 256,
    "intermediate_size": 512,
    "num_hidden_layers": 4,
    "num_attention_heads": 4,
    "num_key_value_heads": 2,
    "max_position_embeddings": 1_024,
    "initializer_range": 0.05,
    "pad_token_id": None,
}
_EXPERTS: dict[str, Any] = {"num_experts_per_tok": 2, "moe_intermediate_size": 128}
SHAPES: dict[str, dict[str, Any]] = {
    # local and global layers, a soft cap
    "gemma2": {**_COMMON, "head_dim": 256, "sliding_window": 64, "attn_logit_softcapping": 20.0},
    # sinks, eight query heads per KV head, experts
    "gpt_oss": {
        **_COMMON,
        "num_attention_heads": 16,
        "head_dim": 64,
        "sliding_window": 64,
        "num_local_experts": 4,
        "num_experts_per_tok": 2,
    },
    # keys larger than values
    "deepseek_v3": {
        **_COMMON,
        **_EXPERTS,
        "num_key_value_heads": 4,
        "n_routed_experts": 4,
        "n_shared_experts": 1,
        "n_group": 1,
        "topk_group": 1,
        "first_k_dense_replace": 1,
        "q_lora_rank": 64,
        "kv_lora_rank": 512,
        "qk_nope_head_dim": 128,
        "qk_rope_head_dim": 64,
        "v_head_dim": 128,
    },
    # learned positions
    "gpt2": {
        "vocab_size": 4_096,
        "n_embd": 256,
        "n_layer": 4,
        "n_head": 4,
        "n_positions": 1_024,
        "initializer_range": 0.05,
        "pad_token_id": None,
    },
}
SHARED_TOKENS, NUM_ROWS, NUM_TOKENS = 200, 8, 24
SETTINGS: dict[str, Any] = {
    "dtype": "float32",
    "kv_dtype": "auto",
    "weights": "safetensors",
    "decoder": "transformers",
    "num_pages": 512,
    "cache_bytes": None,
    "max_rows": NUM_ROWS,
    "max_model_len": 512,
}


def run(config: RuntimeConfig, output: Output, families: Iterator[str], is_late: Callable[[], bool]) -> None:
    """Check `families` (keys of SHAPES) and note each in the output, until `is_late`; unchecked ones stay in `families`."""
    while not is_late() and (model_type := next(families, None)) is not None:
        with output.part(f"check {model_type}"):
            check(config, output.write, model_type, SHAPES[model_type])


def check(
    config: RuntimeConfig,
    tell: Callable[[str], None],
    model_type: str,
    shape: Mapping[str, Any],
    *,
    shared_tokens: int = SHARED_TOKENS,
    num_rows: int = NUM_ROWS,
    num_tokens: int = NUM_TOKENS,
) -> None:
    """Compare the device's outputs with the CPU's; one may differ, since two logits may tie within rounding.

    Args:
        config: names the device.
    Raises:
        ArithmeticError: more than one differs.
    """
    with tempfile.TemporaryDirectory(prefix="rtlang-bench-") as scratch:
        directory = write_random(Path(scratch), model_directory(EMBEDDED_MODEL), model_type, shape)
        config = replace(config, model=str(directory), **SETTINGS)
        sides = []
        for device in ("cpu", config.device):
            with Runtime(config=replace(config, device=device)) as runtime:
                sides.append(run_on_target(runtime, _graphs(runtime, shared_tokens, num_rows, num_tokens)))
                counts = runtime.stats()
            del runtime
    same, total = agreement(*sides)
    steps = f"{counts['num_steps_replayed']} steps replayed, {counts['num_steps_eager']} not"
    tell(f"check {model_type}: {same} of {total} float32 outputs match the CPU's, {steps}")
    if same < total - 1:
        raise ArithmeticError(f"{total - same} of {total} outputs differ from the CPU's")


def _graphs(runtime: Runtime, shared_tokens: int, num_rows: int, num_tokens: int) -> tuple[RequestGraph, ...]:
    maker = TextMaker(runtime.tokenizer, 0)
    shared = maker.text(shared_tokens, is_start=True)
    params = SamplingParams(max_tokens=num_tokens, ignore_eos=True)
    return tuple(
        RequestGraph((Text(0, None, (shared + maker.text(3 + row, is_start=False),)), Generate(1, 0, "out", params)))
        for row in range(num_rows)
    )
