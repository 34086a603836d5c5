"""The table sets figures as the parts write them beside the goals."""

from __future__ import annotations

import json
import math
from dataclasses import asdict
from pathlib import Path
from typing import Any

import pytest
import torch

pytest.importorskip("triton")  # there is none for some platforms

from typer.testing import CliRunner

from rtlang_bench.device.goals import goals
from rtlang_bench.device.goals.__main__ import PARTS, app
from rtlang_bench.device.goals.engine_parts import PARTS as ENGINE_PARTS
from rtlang_bench.device.run import Case
from rtlang_bench.device.run import Line as Step
from rtlang_kernels.triton.attention import prompt_trial
from rtlang_kernels_bench.device_cases import EXTEND, HEADS, attention_label
from rtlang_kernels_bench.table import Line


def step(variant: str, name: str, step_us: float, tokens_per_s: float = 1.0) -> dict[str, Any]:
    line = Step(Case(name, 1, 1), step_us, 0.0, tokens_per_s, 1.0)
    return {"kind": "decoding", "variant": variant} | json.loads(json.dumps(asdict(line)))


def live(model: str, tokens_per_s: float) -> dict[str, Any]:
    fields = {"rows": 256, "arrivals": "at once", "first_token_s": 0.5, "num_eager": 3}
    return {"kind": "live", "model": model, "tokens_per_s": tokens_per_s, **fields}


def prompt(peers: dict[str, float]) -> dict[str, Any]:
    label = attention_label(EXTEND[0], HEADS[0], torch.bfloat16)
    return {"kind": "kernel"} | asdict(Line("extend", label, 1400.0, 0.0, 1.0, 700.0, peers, 1e-3))


FIGURES: dict[str, list[dict[str, Any]]] = {
    "prompts": [{"kind": "ceilings"}, prompt({prompt_trial.PROMPT_ATTN: 1000.0, prompt_trial.FLASH: 900.0})],
    "steps": [
        *(step(name, "batch 1", us) for name, us in (("floats", 600.0), ("float8 inputs", 500.0), ("float8", 400.0))),
        *(step(name, "batch 64", us) for name, us in (("floats", 700.0), ("float8 inputs", 500.0))),
    ],
    "constrained": [{"kind": "constrained", "name": "closed schema", "ratio": 0.97}],
    "live-large": [live("large", 12_000.0)],
    "live-small": [live("small", 30_000.0), step("small", "batch of the live load", 9.0, 40_000.0)],
    "variants": [step("fixed order", "batch 1", 720.0)],
    "copies": [{"kind": "copies", "name": "read", "rate": 2e10, "slowdown": 1.02}],
    "texts": [{"kind": "texts", "is_right": True}],
}


def test_figures_stand_beside_their_goals() -> None:
    found = {figure.name: figure for figure in goals.goals(FIGURES)}
    values = [figure.value for figure in found.values()]
    assert values[:6] == pytest.approx([549.8, 0.9, 1.5, 1.4, 0.97, math.nan], rel=1e-3, nan_ok=True)
    assert values[6:] == [12_000.0, 0.75]
    assert [figure.is_met for figure in found.values()] == [False, True, True, False, True, False, True, True]
    assert [figure.note for figure in found.values()][:4] == ["prompt_attn", "", "float8", "float8 inputs"]
    text = goals.table(FIGURES)
    assert "| 8B, 1 rows: step in bfloat16 over step in float8 | >= 1.45 | 1.5 | met (float8) |" in text
    assert "| 8B, 128 rows: tokens/s, open schema, over free | >= 0.95 | not measured |  |" in text
    assert "| 8B, 1 rows: step with fixed order, over bfloat16 | 1.20 |" in text
    assert "| copies of KV pages, read | 20.0 GB/s; a step beside it takes 1.02 times as long |" in text


def test_nothing_measured_is_not_a_goal_met() -> None:
    assert not any(figure.is_met for figure in goals.goals({}))
    assert goals.table({}).count("not measured") == len(goals.goals({}))
    (share,) = (figure for figure in goals.goals({"prompts": [prompt({})]}) if "FlashAttention" in figure.name)
    assert share.note == "FlashAttention-3 did not run; install fa3-fwd"


def test_the_command_shows_the_table_of_a_folder(tmp_path: Path) -> None:
    for part, figures in FIGURES.items():
        (tmp_path / f"{part}.jsonl").write_text("".join(json.dumps(each) + "\n" for each in figures))
    found = CliRunner().invoke(app, [str(tmp_path), "--show"])
    assert found.exit_code == 1
    assert goals.table(FIGURES) in found.output
    assert "0 parts failed; 3 goals missed or not measured" in found.output
    unknown = CliRunner().invoke(app, [str(tmp_path), "--only", "steps,stairs"])
    assert unknown.exit_code == 1
    assert "--only stairs: expected prompts, steps" in unknown.output


def test_every_part_of_the_runtime_is_run_and_the_names_are_those_of_kernels() -> None:
    assert {part.arguments[-1] for part in PARTS if part.arguments[1].endswith("engine_parts")} == set(ENGINE_PARTS)
    assert (goals.OURS, goals.FLASH) == (prompt_trial.PROMPT_ATTN, prompt_trial.FLASH)
    assert attention_label(EXTEND[0], HEADS[0], torch.bfloat16) == goals.PROMPT_LABEL
    names = [part.name for part in PARTS]
    assert sum(part.limit_s for part in PARTS[: names.index("live-small")]) <= 420
