"""The goals of one H100 or H200, and the figures of a run beside them."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from typing import Any

from rtlang_bench.figure import Figure

Figures = Mapping[str, Sequence[Mapping[str, Any]]]
"""Figures by part."""
PROMPT_TOKENS = 8192
PROMPT_LABEL = f"bfloat16 32/8x128 1_{PROMPT_TOKENS} +{PROMPT_TOKENS}"
OURS, FLASH = "prompt_attn", "FlashAttention-3"
_PROMPT_FLOPS = 4 * 32 * 128 * PROMPT_TOKENS * (PROMPT_TOKENS + 1) / 2
"""4 x query heads x head size x visible keys."""
LIVE_ROWS = 256


def goals(figures: Figures) -> list[Figure]:
    """The goals with their values; NaN where nothing was measured.

    Args:
        figures: as `processes.read_figures` returns them.
    """
    prompt = _one(figures, "prompts", label=PROMPT_LABEL)
    peers = prompt.get("peers", {})
    times = {"rect_attn": prompt.get("ours_us", math.nan)} | {name: peers[name] for name in (OURS,) if name in peers}
    fastest = min(times, key=lambda name: times[name])
    found = [
        Figure(f"prompt of {PROMPT_TOKENS}", _PROMPT_FLOPS / times[fastest] / 1e6, ">=", 550, "TFLOP/s", note=fastest),
        Figure(
            f"prompt of {PROMPT_TOKENS}, FlashAttention-3's time over ours",
            peers.get(FLASH, math.nan) / times[fastest],
            ">=",
            0.85,
            note="" if FLASH in peers or not prompt else "FlashAttention-3 did not run; install fa3-fwd",
        ),
    ]
    for rows in (1, 64):
        floats = _step_us(figures, "steps", "floats", f"batch {rows}")
        by_name = {
            name: floats / _step_us(figures, "steps", name, f"batch {rows}") for name in ("float8 inputs", "float8")
        }
        known = {name: value for name, value in by_name.items() if not math.isnan(value)}
        name = max(known, key=lambda each: known[each], default="")
        value = known.get(name, math.nan)
        found.append(Figure(f"8B, {rows} rows: step in bfloat16 over step in float8", value, ">=", 1.45, note=name))
    for name in ("closed schema", "open schema"):
        value = _one(figures, "constrained", name=name).get("ratio", math.nan)
        found.append(Figure(f"8B, 128 rows: tokens/s, {name}, over free", value, ">=", 0.95))
    live = _one(figures, "live-large", rows=LIVE_ROWS, arrivals="at once").get("tokens_per_s", math.nan)
    found.append(Figure(f"8B, live load, {LIVE_ROWS} rows", live, ">=", 10_000, "tokens/s"))
    small = _one(figures, "live-small", rows=LIVE_ROWS, arrivals="at once").get("tokens_per_s", math.nan)
    replayed = _one(figures, "live-small", variant="small").get("tokens_per_s", math.nan)
    found.append(Figure("1B, live load over replayed steps", small / replayed, ">=", 0.7))
    return found


def others(figures: Figures) -> list[tuple[str, str]]:
    """Names and values of figures without a goal, as far as they were measured."""
    found: list[tuple[str, str]] = []

    def add(name: str, value: float, shown: str) -> None:
        if not math.isnan(value):
            found.append((name, shown.format(value)))

    for name in ("records", "masks of the host"):
        value = _one(figures, "constrained", name=name).get("ratio", math.nan)
        add(f"8B, 128 rows: tokens/s, {name}, over free", value, "{:.2f}")
    for variant in ("fixed order", "KV in float8", "int4"):
        for rows in (1, 64):
            floats = _step_us(figures, "steps", "floats", f"batch {rows}")
            step_us = _step_us(figures, "variants", variant, f"batch {rows}")
            add(f"8B, {rows} rows: step with {variant}, over bfloat16", step_us / floats, "{:.2f}")
    for each in figures.get("live-large", ()):
        shown = f"{{:.0f}} tokens/s, first token after {each['first_token_s']:.2f} s, {each['num_eager']} steps eager"
        add(f"8B, live load, {each['rows']} rows, {each['arrivals']}", each["tokens_per_s"], shown)
    for part in ("prompts", "decode", "experts"):
        for line in figures.get(part, ()):
            if line.get("kind") == "kernel":
                peers = ", ".join(f"{name} {us / line['ours_us']:.2f}" for name, us in line["peers"].items())
                shown = f"{{:.0f}} us, {line['floor_us'] / line['ours_us']:.0%} of the floor" + (
                    f"; times over ours: {peers}" if peers else ""
                )
                add(f"{line['group']} {line['label']}", line["ours_us"], shown)
    for each in figures.get("copies", ()):
        shown = f"{{:.1f}} GB/s; a step beside it takes {each['slowdown']:.2f} times as long"
        add(f"copies of KV pages, {each['name']}", each["rate"] / 1e9, shown)
    for each in figures.get("texts", ()):
        found.append(("texts in float32 equal the CPU's", "yes" if each["is_right"] else "NO"))
    return found


def table(figures: Figures) -> str:
    """Goals and other figures as tables in Markdown."""
    lines = ["| figure | goal | measured | |", "|---|---|---|---|"]
    for each in goals(figures):
        unit = f" {each.unit}" if each.unit else ""
        is_measured = not math.isnan(each.value)
        value = f"{each.value:.4g}{unit}" if is_measured else "not measured"
        verdict = ("met" if each.is_met else "MISSED") if is_measured else ""
        note = f"{verdict} ({each.note})" if verdict and each.note else verdict or each.note
        lines.append(f"| {each.name} | {each.relation} {each.bound:g}{unit} | {value} | {note} |")
    if more := others(figures):
        lines += ["", "| figure without a goal | measured |", "|---|---|"]
        lines += [f"| {name} | {value} |" for name, value in more]
    return "\n".join(lines)


def _one(figures: Figures, part: str, **fields: Any) -> Mapping[str, Any]:
    """The last figure of a part with these fields; an empty one if there is none."""
    found: Mapping[str, Any] = {}
    for each in figures.get(part, ()):
        if all(each.get(name) == value for name, value in fields.items()):
            found = each
    return found


def _step_us(figures: Figures, part: str, variant: str, case: str) -> float:
    for each in figures.get(part, ()):
        if each.get("variant") == variant and each["case"]["name"] == case:
            return float(each["step_us"])
    return math.nan
