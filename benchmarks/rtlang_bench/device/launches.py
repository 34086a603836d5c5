"""Counts the kernels that a layer of a decoding step launches on a device, for models with experts and one without.

    TRITON_INTERPRET=1 RTLANG_KERNELS=triton python -m rtlang_bench.device.launches

Needs no GPU: operators of torch that compute something and launches of triton are counted on CPU tensors, and kernels do not run. A layer
is the difference between models with more and with fewer layers. Sizes are small, since they change no number of launches; numbers of
experts and of slots are those of published models. `--decoder both` counts the code of `transformers` as well, with the attention of
rtlang. Exits with 1 if a layer of Qwen3-MoE on the native decoder takes more than 20.
"""

from __future__ import annotations

import argparse
import os
import sys
from collections import Counter
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any
from unittest.mock import patch

import torch
from torch.utils._python_dispatch import TorchDispatchMode

from rtlang.bench.checkpoint import write_config
from rtlang.contract.config import EMBEDDED_MODEL, RuntimeConfig
from rtlang.contract.params import SamplingParams
from rtlang.contract.step import Row, Step
from rtlang.model.batch import Batch
from rtlang.model.gpu.accelerator import InterpretedAccelerator
from rtlang.model.layers.attention import PagedKV, StepAttention
from rtlang.model.loader import load_model, model_directory

_COMMON: dict[str, Any] = {
    "vocab_size": 512,
    "hidden_size": 128,
    "intermediate_size": 64,
    "num_attention_heads": 8,
    "num_key_value_heads": 2,
    "head_dim": 32,
    "max_position_embeddings": 256,
}
SHAPES: dict[str, dict[str, Any]] = {
    "qwen3": _COMMON,
    "qwen3_moe": {
        **_COMMON,
        "num_experts": 128,
        "num_experts_per_tok": 8,
        "moe_intermediate_size": 32,
        "norm_topk_prob": True,
    },
    "mixtral": {**_COMMON, "num_local_experts": 8, "num_experts_per_tok": 2},
    "gpt_oss": {**_COMMON, "num_local_experts": 32, "num_experts_per_tok": 4, "sliding_window": 128},
    "qwen2_moe": {
        **_COMMON,
        "num_experts": 60,
        "num_experts_per_tok": 4,
        "moe_intermediate_size": 32,
        "shared_expert_intermediate_size": 64,
    },
}
LIMITS = {("qwen3_moe", "native"): 20.0}
_FEW, _MORE = 2, 4  # layers; their kinds take turns in some models
_PAGE_SIZE, _NUM_PAGES = 16, 32
_ALLOCATIONS = ("_unsafe_view", "empty", "new_empty", "detach", "resize_", "record_stream")


class _Operators(TorchDispatchMode):
    """Counts operators that compute: no views, and no memory that is only allocated."""

    def __init__(self, found: Counter[str]) -> None:
        super().__init__()  # type: ignore[no-untyped-call]
        self._found = found

    def __torch_dispatch__(self, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        """See `TorchDispatchMode`."""
        options = kwargs or {}
        with self:  # composite operators, which inference mode dispatches as a whole
            result = func.decompose(*args, **options)
        if result is not NotImplemented:
            return result
        name = func.overloadpacket.__name__
        aliases = [each.alias_info for each in func._schema.returns]
        is_view = any(each is not None and not each.is_write for each in aliases)
        if not is_view and not name.startswith(_ALLOCATIONS):
            self._found[name] += 1
        return func(*args, **options)


@contextmanager
def _counting(found: Counter[str]) -> Iterator[None]:
    """Count what is launched; kernels do not run."""
    from triton.runtime.interpreter import GridExecutor

    def note(executor: Any, *args: Any, **options: Any) -> None:
        found[executor.fn.__name__] += 1

    with patch.object(GridExecutor, "__call__", note), _Operators(found):
        yield


def launches_of_a_step(directory: Path, decoder: str, num_rows: int) -> Counter[str]:
    """Launches of a decoding step of a model with random weights, by the name of the operator or kernel."""
    config = RuntimeConfig(
        model=str(directory), device="interpreter", weights="dummy", dtype="bfloat16", decoder=decoder, num_threads=1
    )
    accelerator = InterpretedAccelerator()
    found: Counter[str] = Counter()
    with torch.inference_mode():
        made = load_model(config, accelerator)[0]
        kv = PagedKV(made.geometries, _NUM_PAGES, _PAGE_SIZE, made.dtype, accelerator.device, made.dtype)
        rows = (Row(row, (5 + row,), 9, (row,), 0, True, SamplingParams()) for row in range(num_rows))
        attention = StepAttention(Batch.from_step(Step(0, tuple(rows)), _PAGE_SIZE), kv)
        with _counting(found):
            made.forward(attention)
    return found


def launches_of_a_layer(model_type: str, shape: Mapping[str, Any], decoder: str, num_rows: int = 4) -> Counter[str]:
    """Launches of a layer, on average over its kinds: the counts of all that are added by more layers."""
    counts = []
    for num_layers in (_FEW, _MORE):
        with TemporaryDirectory() as folder:
            entries = {**shape, "num_hidden_layers": num_layers}
            write_config(Path(folder), model_directory(EMBEDDED_MODEL), model_type, entries)
            counts.append(launches_of_a_step(Path(folder), decoder, num_rows))
    added = {name: counts[1][name] - counts[0][name] for name in counts[1]}
    return Counter({name: count for name, count in added.items() if count})


def main(arguments: list[str] | None = None) -> int:
    """Print the launches of a layer of each model; returns the exit status."""
    parser = argparse.ArgumentParser(prog="python -m rtlang_bench.device.launches", description=__doc__)
    parser.add_argument("--decoder", choices=("native", "both"), default="native")
    parser.add_argument("--model", choices=SHAPES, action="append", help="may be repeated; default: all")
    parser.add_argument("--rows", type=int, default=4, help="rows of the step")
    options = parser.parse_args(arguments)
    if os.environ.get("TRITON_INTERPRET") != "1" or os.environ.get("RTLANG_KERNELS") != "triton":
        sys.stderr.write("set TRITON_INTERPRET=1 and RTLANG_KERNELS=triton: launches are counted in the interpreter\n")
        return 2
    is_over = False
    for model_type in options.model or SHAPES:
        for decoder in ("native", "transformers") if options.decoder == "both" else ("native",):
            found = launches_of_a_layer(model_type, SHAPES[model_type], decoder, options.rows)
            total = found.total() / (_MORE - _FEW)
            parts = ", ".join(f"{name} {count / (_MORE - _FEW):g}" for name, count in found.most_common())
            sys.stdout.write(f"{model_type:<10} {decoder:<13} {total:5.1f} launches a layer: {parts}\n")
            is_over |= total > LIMITS.get((model_type, decoder), float("inf"))
    return int(is_over)


if __name__ == "__main__":
    sys.exit(main())
