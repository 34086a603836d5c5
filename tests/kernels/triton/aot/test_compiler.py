"""Every kernel configuration compiles for every target, without register spills and within its shared memory."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from rtlang_kernels.planning.tile_sizes import GFX942, LINES, SM_80, SM_90, SM_100, attention_tile
from rtlang_kernels.triton.aot import __main__, table
from tests.support.long_tests import is_long

ROOT = Path(__file__).parents[4]
TARGETS = [SM_80, SM_90, SM_100, GFX942]
IS_LONG = is_long()
WIDE = "rect_attn bf16 D128 G4 128"
"""Variants with the largest tiles, which use the matrix units."""
LINEAR = ["low_bit_product bf16 q4_0 64x16", "low_bit_product bf16 q4_0 128x128"]
"""Variants of linear layers for the fewest and the most rows."""
ONLY = {
    # Only attention and linear layers have tile sizes of their own for each NVIDIA target.
    SM_80: ["rect_attn", "low_bit_product"] if IS_LONG else [WIDE],
    # The short test compiles every kernel once, where it needs most registers or shared memory, and attention with all its options.
    SM_90: [""]
    if IS_LONG
    else [
        WIDE,
        "rect_attn bf16 D128 G4 16: 16x64",
        "rect_attn bf16 D256 G4 64",
        "rect_attn bf16 kv8 D128 G4 64",
        "rect_attn bf16 D576/512 G16 16",
        "rect_attn fp32 D128 G4 16",
        "merge_parts bf16 D128 16 at a time sinks",
        "merge_two",
        "rope_append bf16 D128 kv8",
        "add_rms_norm bf16 16384",
        "silu_and_mul bf16",
        "gelu_and_mul bf16",
        "copy_lines bf16 to float8",
        "fp32 128256 masked",
        "logprob_chunks fp32 128256",
        "logprob_finish fp32 128256",
        "mask_logits fp32",
        "penalize fp32",
        "build_masks",
        "advance",
        "gated_recurrence bf16 kimi",
        "causal_conv fp32 4",
        "selective_scan fp32",
        *LINEAR,
        "finish_product bf16 gated",
        "low_bit_rows bf16 q6_k",
    ],
    SM_100: [""] if IS_LONG else LINEAR,
    GFX942: [""] if IS_LONG else [WIDE, "sample_stats fp32 128256 masked", "filter_choose fp32 128256 masked"],
}
"""Parts of the names of the variants that are compiled."""
PROCESSES = [[SM_90], [SM_80, SM_100, GFX942]]
"""Targets of the processes that compile; each takes seconds to start."""


def is_chosen(name: str, target: str) -> bool:
    return any(part in name for part in ONLY[target])


def environment(cache: Path) -> dict[str, str]:
    """Environment of a process that compiles: not interpreting, with a fresh cache."""
    kept = {name: value for name, value in os.environ.items() if name != "TRITON_INTERPRET"}
    return kept | {"PYTHONPATH": str(ROOT / "kernels"), "TRITON_CACHE_DIR": str(cache)}


def compiling(program: str, cache: Path) -> subprocess.Popen[str]:
    """A process that runs the program, with the modules of the compiler."""
    imports = "import dataclasses, sys\nfrom rtlang_kernels.triton.aot import __main__, compiler, table\n"
    return subprocess.Popen(
        [sys.executable, "-c", imports + program],
        env=environment(cache),
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
    )


@pytest.fixture(scope="module")
def reports(tmp_path_factory: pytest.TempPathFactory) -> dict[str, list[dict[str, Any]]]:
    """Reports per target; the processes run in parallel."""
    folder = tmp_path_factory.mktemp("aot")
    running = []
    for number, targets in enumerate(PROCESSES):
        calls = []
        for target in targets:
            only = [word for part in ONLY[target] for word in ("--only", part)]
            calls.append(["--target", target, *only, "--json", str(folder / f"{target}.json")])
        running.append(compiling(f"sys.exit(max(map(__main__.main, {calls})))", folder / str(number)))
    printed = [process.communicate()[0] for process in running]
    for process, text in zip(running, printed, strict=True):
        assert process.returncode in (0, 1), text
    return {target: json.loads((folder / f"{target}.json").read_text()) for target in TARGETS}


@pytest.mark.slow
@pytest.mark.parametrize("target", TARGETS)
def test_every_variant_fits(reports: dict[str, list[dict[str, Any]]], target: str) -> None:
    names = [variant.name for variant in table.variants(target) if is_chosen(variant.name, target)]
    assert [report["name"] for report in reports[target]] == names
    assert [report for report in reports[target] if not report["fits"]] == []
    assert [report for report in reports[target] if report["spill_bytes"] != 0] == []
    assert all(report["registers"] > 0 for report in reports[target])
    assert all(report["flushed"] == 0 for report in reports[target])


def test_the_short_list_has_every_kernel() -> None:
    chosen = {variant.name.split()[0] for variant in table.variants(SM_90) if is_chosen(variant.name, SM_90)}
    assert chosen == {variant.name.split()[0] for variant in table.variants(SM_90)}


def test_exact_kernels_and_codes_of_float8_keep_subnormal_numbers() -> None:
    """Flush patterns are set for exact noise and weights, and for conversions to and from float8."""
    kept = {
        variant.name.split()[0]: variant.flush_pattern for variant in table.variants(SM_90) if variant.flush_pattern
    }
    exact = ("sample_finish", "sample_filtered", "filter_histogram", "filter_choose", "penalize", "copy_lines")
    assert [kept.get(name) for name in exact] == [table.ANY_FLUSH] * len(exact)
    float8 = [variant for variant in table.variants(SM_90) if "kv8" in variant.name]
    assert {variant.flush_pattern for variant in float8} == {table.ARITHMETIC_FLUSH}
    assert len(float8) == 5


@pytest.mark.slow
@pytest.mark.parametrize(
    ("target", "instruction"), [(SM_80, "mma"), (SM_90, "wgmma"), (GFX942, "mfma")], ids=[SM_80, SM_90, GFX942]
)
def test_wide_tiles_use_the_matrix_units(
    reports: dict[str, list[dict[str, Any]]], target: str, instruction: str
) -> None:
    (report,) = (report for report in reports[target] if report["name"].startswith("rect_attn bf16 D128 G4 128:"))
    assert f"{instruction} " in f"{report['matrix']} "
    if target != GFX942:
        assert "cp.async" in report["matrix"]  # loads overlap with matrix products


@pytest.mark.slow
@pytest.mark.parametrize(("target", "instruction"), [(SM_90, "wgmma"), (SM_100, "tcgen05")])
def test_all_tiles_of_a_linear_layer_use_one_kind_of_instruction(
    reports: dict[str, list[dict[str, Any]]], target: str, instruction: str
) -> None:
    """A row keeps its bits when more rows make the tile wider, since both sum as many inputs with one instruction."""
    kinds = [report["matrix"].split() for report in reports[target] if report["name"].startswith(tuple(LINEAR))]
    assert [words[0] for words in kinds] == [instruction] * len(LINEAR)
    assert all("cp.async" in words for words in kinds)


@pytest.mark.slow
def test_keys_and_values_are_loaded_ahead(reports: dict[str, list[dict[str, Any]]]) -> None:
    """The tile that reads the context of one row has two buffers for its keys and values, so loading overlaps with computing."""
    (report,) = (report for report in reports[SM_90] if report["name"] == "rect_attn bf16 D128 G4 16: 16x64")
    assert report["shared_bytes"] >= 2 * 2 * 64 * 128 * 2


DOES_NOT_FIT = """
arguments = ["--target", "sm_90", "--only", "sample_finish fp32 1000"]
limit, compiler.SHARED_LIMIT["sm_90"] = compiler.SHARED_LIMIT["sm_90"], 16
status = __main__.main(arguments)
compiler.SHARED_LIMIT["sm_90"] = limit
status += __main__.main(arguments) * 2
def starved(arch):
    return [dataclasses.replace(v, options=v.options | {"maxnreg": 24}) for v in table.variants(arch)]
__main__.variants = starved
sys.exit(status + __main__.main(arguments) * 4)
"""
"""Compiles a variant with too little shared memory, with enough, and with too few registers."""


@pytest.mark.slow
def test_a_variant_that_does_not_fit_is_reported(tmp_path: Path) -> None:
    process = compiling(DOES_NOT_FIT, tmp_path)
    printed = process.communicate()[0]
    assert process.returncode == 1 + 4, printed
    assert printed.count("DOES NOT FIT") == 2


def test_an_interpreting_process_cannot_compile(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setenv("TRITON_INTERPRET", "1")
    assert __main__.main(["--target", SM_90]) == 2
    assert "TRITON_INTERPRET" in capsys.readouterr().err


def test_every_tile_divides_the_lines_of_its_class() -> None:
    for target in TARGETS:
        for lines_class, lines in enumerate(LINES):
            for head_dim in (16, 64, 80, 96, 128, 192, 256, 512):
                for item_bytes in (2, 4):
                    tile = attention_tile(target, lines_class, head_dim, head_dim, item_bytes)
                    assert lines % tile.block_m == 0
                    assert tile.block_m >= 16
                    assert tile.block_n >= 16
