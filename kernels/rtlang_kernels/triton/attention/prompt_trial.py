"""Tries the kernels for prompts on a GPU, and chooses by correctness and time. `choose` runs this module in a process of its own.

A kernel that has never run on a kind of GPU may be wrong, fault, or hang. So every candidate is compared with `rect_attn` before it is
timed, and one that ends or outlasts the process is left out; earlier figures count. Results are kept on disk for the GPU,
the versions of torch and triton, and the sources of the kernels.
"""

from __future__ import annotations

import hashlib
import json
import logging
import subprocess
import sys
from collections.abc import Callable, Iterable, Iterator
from contextlib import suppress
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path
from typing import NamedTuple

import numpy as np
import torch
from torch import Tensor

from rtlang_kernels.contract.attention_plan import checked_plan
from rtlang_kernels.host.tuning import cache_dir
from rtlang_kernels.triton.attention.flash_attention import flash_reason
from rtlang_kernels.triton.attention.paged_attention import paged_attention, prepare
from rtlang_kernels.triton.attention.prompt_attention import device_reason, shape_reason
from rtlang_kernels.triton.attention.prompt_choice import PromptChoice, PromptShape, set_choice

logger = logging.getLogger(__name__)

SIZES = (512, 2048, 8192)  # new tokens of the prompts that are timed
LIMIT_S = 180.0  # of the process: it loads torch, compiles the kernels, and runs them for a second
LARGEST_ERROR = 1e-2  # relative to `rect_attn`; both round attention weights to 8 bits
MIN_GAIN = 0.03  # by which a candidate must be faster
RECT_ATTN, PROMPT_ATTN, FLASH = "rect_attn", "prompt_attn", "FlashAttention-3"
CHOICES = {RECT_ATTN: (RECT_ATTN, None), PROMPT_ATTN: (PROMPT_ATTN, None), FLASH: (RECT_ATTN, 1)}
"""The kernel and the fewest tokens for FlashAttention-3 with which a candidate is tried."""


class TrialLine(NamedTuple):
    """One candidate on one prompt: its error, and the least microseconds of several runs."""

    candidate: str
    tokens: int
    error: float
    us: float


def candidates(shape: PromptShape) -> tuple[list[str], str]:
    """The kernels that can be tried, the least proven last, and why the others cannot."""
    sizes = shape.head_dim, shape.head_dim, shape.dtype, shape.dtype
    reasons = {
        FLASH: device_reason(shape.device) or flash_reason(*sizes),
        PROMPT_ATTN: device_reason(shape.device) or shape_reason(*sizes, shape.page_size),
    }
    found = [RECT_ATTN, *(name for name, reason in reasons.items() if reason is None)]
    return found, "; ".join(f"no {name}: {reason}" for name, reason in reasons.items() if reason is not None)


def decide(lines: Iterable[TrialLine], names: list[str], excuses: str) -> PromptChoice:
    """Choose from the figures of a trial.

    Of the two kernels for tiles of 128 lines, `prompt_attn` is taken if it is right on all sizes and faster on the largest.
    FlashAttention-3 computes rows from the smallest size on from which it is always the fastest.
    """
    us: dict[str, dict[int, float]] = {name: {} for name in names}
    wrong = []
    for line in lines:
        us[line.candidate][line.tokens] = line.us
        if not line.error < LARGEST_ERROR:
            wrong.append(f"{line.candidate} is wrong on {line.tokens} tokens (error {line.error:.1e})")
    broken = [f"{name} did not finish" for name in names if len(us[name]) < len(SIZES)]
    usable = [name for name in names if len(us[name]) == len(SIZES) and not any(name in text for text in wrong)]
    if RECT_ATTN not in usable:
        return PromptChoice(RECT_ATTN, None, "; ".join([*wrong, *broken, "the trial failed"]))

    def is_faster(name: str, than: str, tokens: int) -> bool:
        return name in usable and us[name][tokens] < us[than][tokens] * (1 - MIN_GAIN)

    kernel = PROMPT_ATTN if is_faster(PROMPT_ATTN, RECT_ATTN, SIZES[-1]) else RECT_ATTN
    fewest = None
    for tokens in reversed(SIZES):
        if not is_faster(FLASH, kernel, tokens):
            break
        fewest = tokens
    figures = ", ".join(f"{name} {us[name][SIZES[-1]]:.0f} us" for name in usable)
    reason = "; ".join(filter(None, [f"{SIZES[-1]} tokens: {figures}", *wrong, *broken, excuses]))
    return PromptChoice(kernel, fewest, reason)


def choose(shape: PromptShape, run: Callable[[PromptShape], list[TrialLine]] | None = None) -> PromptChoice:
    """Choose the kernels of a geometry for this process, and log the choice. Tries the candidates once per kind of GPU.

    Args:
        run: makes the trial; default: in a process of its own.
    """
    names, excuses = candidates(shape)
    if names == [RECT_ATTN]:
        choice = PromptChoice(RECT_ATTN, None, excuses)
    else:
        path = cache_dir() / f"prompts-{_digest(shape)}.json"
        lines = _stored(path)
        if lines is None:
            lines = (run or run_apart)(shape)
            with suppress(OSError):
                path.parent.mkdir(parents=True, exist_ok=True)
                path.write_text(json.dumps(lines), encoding="utf-8")
        choice = decide(lines, names, excuses)
    set_choice(shape, choice)
    logger.info("prompts: %s", choice.describe())
    return choice


def run_apart(shape: PromptShape) -> list[TrialLine]:
    """Try the candidates in a process of its own; returns the lines that it printed before it ended, failed or was stopped."""
    described = json.dumps([str(shape.device), str(shape.dtype).removeprefix("torch."), *shape[2:]])
    command = [sys.executable, "-P", "-m", __name__, described]
    try:
        done = subprocess.run(command, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, timeout=LIMIT_S, check=False)
        printed = done.stdout
    except subprocess.TimeoutExpired as stopped:
        printed = stopped.stdout or b""
    return read_lines(printed.decode(errors="replace"))


def read_lines(printed: str) -> list[TrialLine]:
    """The whole lines of a trial's output."""
    found = []
    for text in printed.splitlines(keepends=True):
        with suppress(ValueError, TypeError):
            if text.endswith("\n"):
                found.append(TrialLine(*json.loads(text)))
    return found


def trial(
    shape: PromptShape, names: list[str], sizes: tuple[int, ...], measure: Callable[[Callable[[], object]], float]
) -> Iterator[TrialLine]:
    """Try candidates on prompts, each prompt in pages of random order. `measure`: least seconds of several calls."""
    generator = torch.Generator().manual_seed(0)
    for name in names:
        set_choice(shape, PromptChoice(*CHOICES[name], "on trial"))
        for tokens in sizes:
            attend = _prompt(shape, tokens, generator)
            got = attend()
            set_choice(shape, PromptChoice(*CHOICES[RECT_ATTN], "on trial"))
            want = attend()
            set_choice(shape, PromptChoice(*CHOICES[name], "on trial"))
            error = float((got.float() - want.float()).norm() / want.float().norm())
            us = 1e6 * measure(attend)
            yield TrialLine(name, tokens, error if error == error else float("inf"), us)


def _prompt(shape: PromptShape, tokens: int, generator: torch.Generator) -> Callable[[], Tensor]:
    """Attention of a prompt; returns new results at every call."""
    pages = -(-tokens // shape.page_size)
    table = torch.randperm(pages + 1, generator=generator)[:pages].to(torch.int32).numpy()[None]
    plan = checked_plan(
        np.ascontiguousarray(table),
        np.array([tokens], np.int32),
        np.array([0, tokens], np.int32),
        np.zeros(1, np.int32),
        page_size=shape.page_size,
        num_q_heads=shape.num_q_heads,
        num_kv_heads=shape.num_kv_heads,
        head_dim=shape.head_dim,
        dtype=shape.dtype,
        device=shape.device,
        backend="triton",
    )
    prepare(plan)

    def random(count: int, heads: int) -> Tensor:
        return torch.randn(count, heads, shape.head_dim, generator=generator).to(shape.device, shape.dtype)

    q = random(tokens, shape.num_q_heads)
    k_pool, v_pool = (random((pages + 1) * shape.page_size, shape.num_kv_heads) for _ in range(2))

    def attend() -> Tensor:
        out = torch.full_like(q, float("nan"))
        lse = torch.empty(q.shape[:2], dtype=torch.float32, device=q.device)
        paged_attention(q, k_pool, v_pool, plan, shape.head_dim**-0.5, None, None, None, None, out, lse)
        return out

    return attend


def _digest(shape: PromptShape) -> str:
    sources = sorted(Path(__file__).parent.glob("*.py"))
    name = torch.cuda.get_device_name(shape.device) if shape.device.type == "cuda" else "cpu"
    facts = [name, torch.__version__, _version("triton"), _version("fa3_fwd"), str(shape[1:])]
    text = "\n".join([*facts, *(path.read_text(encoding="utf-8") for path in sources)])
    return hashlib.sha256(text.encode()).hexdigest()[:16]


def _version(package: str) -> str:
    try:
        return version(package)
    except PackageNotFoundError:
        return "-"


def _stored(path: Path) -> list[TrialLine] | None:
    try:
        return [TrialLine(*line) for line in json.loads(path.read_text(encoding="utf-8"))]
    except (OSError, ValueError, TypeError):
        return None


def _device_seconds(call: Callable[[], object]) -> float:
    call()
    least = float("inf")
    for _ in range(5):
        begin, end = (torch.cuda.Event(enable_timing=True) for _ in range(2))  # type: ignore[no-untyped-call]
        begin.record()
        call()
        end.record()
        end.synchronize()
        least = min(least, begin.elapsed_time(end) / 1e3)
    return least


def main(arguments: list[str]) -> int:
    """Print the lines of a trial as they are found."""
    device, dtype, *numbers = json.loads(arguments[0])
    shape = PromptShape(torch.device(device), getattr(torch, dtype), *numbers)
    for line in trial(shape, candidates(shape)[0], SIZES, _device_seconds):
        sys.stdout.write(json.dumps(line) + "\n")
        sys.stdout.flush()
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
