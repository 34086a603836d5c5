"""CPU benchmarks: the CPU backend against plain torch, as ratios within one run.

All functions of a line are timed in turn, round by round; the median over the rounds is reported with the spread (interquartile range
over median) of ours, so that a busy machine slows all alike.
"""

from __future__ import annotations

import statistics
import time
from collections.abc import Callable
from functools import partial
from typing import Any

import numpy as np
import torch
from torch import Tensor

from rtlang_kernels import ops
from rtlang_kernels.reference import layer_ops as reference_layers

TOLERANCE = {torch.float32: 1e-4, torch.bfloat16: 1e-2}


def measured(functions: dict[str, Callable[[], object]], rounds: int) -> dict[str, list[float]]:
    """Time functions in turn, round by round: microseconds per call."""
    times: dict[str, list[float]] = {name: [] for name in functions}
    for turn in range(rounds + 2):
        for name, function in functions.items():
            start = time.perf_counter()
            function()
            if turn >= 2:
                times[name].append((time.perf_counter() - start) * 1e6)
    return times


def line(kind: str, label: str, times: dict[str, list[float]], error: float) -> dict[str, Any]:
    """One line of the report: medians, the ratio of every other function to ours, our spread."""
    median = {name: statistics.median(values) for name, values in times.items()}
    low, _, high = statistics.quantiles(times["ours"], n=4)
    ratios = {name: value / median["ours"] for name, value in median.items() if name not in ("ours", "plan")}
    return {
        "kind": kind,
        "label": label,
        "us": median,
        "ratio": ratios,
        "spread": (high - low) / median["ours"],
        "error": error,
    }


def sampling_lines(rounds: int) -> list[dict[str, Any]]:
    """Sampling against plain torch: masked fill, softmax, multinomial."""
    lines = []
    for vocab_size in (32_000, 128_256):
        logits = torch.randn(32, vocab_size) * 3
        mask = np.full((1, -(-vocab_size // 32)), 0x5F5F5F5F, np.int32)
        bits = np.unpackbits(mask.view(np.uint8), bitorder="little")[:vocab_size].astype(np.bool_)
        forbidden = torch.from_numpy(~bits)
        for temperature in (0.0, 1.0):
            settings: dict[str, Any] = {
                "temperature": np.full(32, temperature, np.float32),
                "top_k": np.zeros(32, np.int32),
                "top_p": np.ones(32, np.float32),
                "min_p": np.zeros(32, np.float32),
                "seeds": np.arange(32, dtype=np.uint64),
                "choices": np.zeros(32, np.int32),
                "steps": np.arange(32),
                "bitmask": mask,
                "mask_rows": np.zeros(32, np.int32),
            }

            def ours(logits: Tensor = logits, settings: dict[str, Any] = settings) -> Tensor:
                return ops.sample(logits, **settings)[0]

            def plain(
                logits: Tensor = logits, forbidden: Tensor = forbidden, greedy: bool = temperature == 0
            ) -> Tensor:
                masked = logits.masked_fill(forbidden, float("-inf"))
                return masked.argmax(-1) if greedy else torch.multinomial(masked.softmax(-1), 1)

            tokens = ours()
            if bool(forbidden[tokens].any()) or (temperature == 0 and not torch.equal(tokens, plain())):
                raise ArithmeticError(f"sampling at {vocab_size}, temperature {temperature}: wrong token")
            label = f"32 x {vocab_size} masked, temperature {temperature:g}"
            lines.append(line("sampling", label, measured({"ours": ours, "torch": plain}, rounds), 0.0))
    return lines


def layer_lines(rounds: int) -> list[dict[str, Any]]:
    """Fused layer operations against the same in torch operators."""
    lines = []
    for dtype in (torch.bfloat16, torch.float32):
        x, weight, gate_up = torch.randn(32, 512).to(dtype), torch.randn(512).to(dtype), torch.randn(32, 3072).to(dtype)
        pairs: dict[str, tuple[Callable[[], Tensor], Callable[[], Tensor]]] = {
            "rms norm 32 x 512": (
                partial(ops.add_rms_norm, x, None, weight, 1e-5),
                partial(reference_layers.add_rms_norm, x, None, weight, 1e-5),
            ),
            "silu and mul 32 x 1536": (
                partial(ops.silu_and_mul, gate_up),
                partial(reference_layers.silu_and_mul, gate_up),
            ),
        }
        for label, (ours, plain) in pairs.items():
            want = plain().double()
            error = float((ours().double() - want).norm() / want.norm())
            if not error < TOLERANCE[dtype]:
                raise ArithmeticError(f"{label} {dtype}: error {error:.1e}")
            times = measured({"ours": ours, "torch": plain}, rounds)
            lines.append(line("layers", f"{str(dtype)[6:]} {label}", times, error))
    return lines
