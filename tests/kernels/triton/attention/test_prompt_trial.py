"""The trial of what can compute prompts: figures to choices, broken processes, and stored results."""

from __future__ import annotations

import json
import logging
import subprocess
from pathlib import Path
from typing import Any

import pytest
import torch

from rtlang_kernels.triton.attention import prompt_trial
from rtlang_kernels.triton.attention.prompt_choice import NOT_CHOSEN, PromptChoice, PromptShape, choice_for, set_choice
from rtlang_kernels.triton.attention.prompt_trial import (
    FLASH,
    PROMPT_ATTN,
    RECT_ATTN,
    SIZES,
    TrialLine,
    choose,
    decide,
    trial,
)
from tests.support.kernels.gpu import IS_INTERPRETED

SHAPE = PromptShape(torch.device("cpu"), torch.float16, 2, 1, 64, 16)


def lines(name: str, *us: float, error: float = 1e-3) -> list[TrialLine]:
    return [TrialLine(name, tokens, error, each) for tokens, each in zip(SIZES, us, strict=False)]


ALL = [RECT_ATTN, FLASH, PROMPT_ATTN]
RECT_LINES = lines(RECT_ATTN, 10, 100, 1000)


@pytest.mark.parametrize(
    ("found", "kernel", "flash_tokens", "reason"),
    [
        (
            lines(PROMPT_ATTN, 10, 80, 700) + lines(FLASH, 12, 70, 600),
            PROMPT_ATTN,
            2048,
            "8192 tokens: rect_attn 1000 us",
        ),
        (lines(PROMPT_ATTN, 10, 80, 700) + lines(FLASH, 9, 79, 690), PROMPT_ATTN, None, ""),  # less than the gain
        (lines(PROMPT_ATTN, 10, 80, 990) + lines(FLASH, 5, 60, 600), RECT_ATTN, 512, ""),
        (
            lines(PROMPT_ATTN, 10, 80, 700, error=0.5) + lines(FLASH, 5, 120, 600),
            RECT_ATTN,
            8192,
            "prompt_attn is wrong on 512",
        ),
        (lines(PROMPT_ATTN, 10, 80, 700, error=float("nan")), RECT_ATTN, None, "prompt_attn is wrong on 8192"),
        (lines(PROMPT_ATTN, 10, 80), RECT_ATTN, None, "prompt_attn did not finish"),
        (lines(FLASH, 5, 50, 500), RECT_ATTN, 512, "prompt_attn did not finish"),
    ],
)
def test_the_fastest_right_candidate_is_chosen(
    found: list[TrialLine], kernel: str, flash_tokens: int | None, reason: str
) -> None:
    choice = decide(RECT_LINES + found, ALL, "")
    assert choice[:2] == (kernel, flash_tokens)
    assert reason in choice.reason


def test_a_trial_that_finds_nothing_changes_nothing() -> None:
    assert decide([], ALL, "why")[:2] == (RECT_ATTN, None)
    assert "rect_attn did not finish" in decide([], ALL, "why").reason


@pytest.fixture
def candidates(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setenv("RTLANG_CACHE_DIR", str(tmp_path))
    monkeypatch.setattr(
        prompt_trial, "candidates", lambda shape: ([RECT_ATTN, PROMPT_ATTN], "no FlashAttention-3: not installed")
    )


def test_a_choice_is_made_once_and_kept(candidates: None, caplog: pytest.LogCaptureFixture, tmp_path: Path) -> None:
    calls = []

    def run(shape: PromptShape) -> list[TrialLine]:
        calls.append(shape)
        return RECT_LINES + lines(PROMPT_ATTN, 8, 80, 700)

    try:
        with caplog.at_level(logging.INFO):
            assert [choose(SHAPE, run).kernel for _ in range(2)] == [PROMPT_ATTN, PROMPT_ATTN]
        assert choice_for(SHAPE).kernel == PROMPT_ATTN
        assert calls == [SHAPE]
        assert "prompts: prompt_attn (8192 tokens: rect_attn 1000 us, prompt_attn 700 us" in caplog.text
        (path,) = (tmp_path / "kernels").iterdir()
        path.write_text("damaged")
        choose(SHAPE, run)
        assert len(calls) == 2
    finally:
        set_choice(SHAPE, NOT_CHOSEN)


@pytest.mark.parametrize("is_late", [True, False])
def test_what_a_broken_process_printed_counts(candidates: None, monkeypatch: pytest.MonkeyPatch, is_late: bool) -> None:
    """A candidate that hangs or faults is left out; half a line is not read."""
    printed = "".join(json.dumps(line) + "\n" for line in RECT_LINES + lines(PROMPT_ATTN, 1)) + '["prompt_attn", 20'

    def run(command: list[str], timeout: float, **_: Any) -> subprocess.CompletedProcess[bytes]:
        assert json.loads(command[-1]) == ["cpu", "float16", 2, 1, 64, 16]
        if is_late:
            raise subprocess.TimeoutExpired(command, timeout, output=printed.encode())
        return subprocess.CompletedProcess(command, -11, printed.encode())

    monkeypatch.setattr(subprocess, "run", run)
    try:
        choice = choose(SHAPE)
        assert choice.kernel == RECT_ATTN
        assert "prompt_attn did not finish; no FlashAttention-3: not installed" in choice.reason
    finally:
        set_choice(SHAPE, NOT_CHOSEN)


def test_nothing_is_tried_where_nothing_is_supported() -> None:
    try:
        choice = choose(SHAPE)
        assert choice[:2] == (RECT_ATTN, None)
        assert "no prompt_attn: cpu: not a GPU of NVIDIA" in choice.reason
    finally:
        set_choice(SHAPE, NOT_CHOSEN)


@pytest.mark.skipif(not IS_INTERPRETED, reason="interprets the candidate")
def test_a_candidate_is_compared_and_timed() -> None:
    (line,) = trial(SHAPE, [RECT_ATTN], (20,), lambda call: 2e-6 * (call() is not None))
    assert line == TrialLine(RECT_ATTN, 20, 0.0, 2.0)
    assert choice_for(SHAPE) == PromptChoice(RECT_ATTN, None, "on trial")
    set_choice(SHAPE, NOT_CHOSEN)
