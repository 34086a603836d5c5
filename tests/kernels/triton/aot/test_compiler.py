"""Every kernel configuration compiles for every target, without register spills and within its shared memory."""

from __future__ import annotations

import json
import os
import re
import subprocess
import sys
from pathlib import Path
from typing import Any, NamedTuple

import pytest

from rtlang_kernels.planning.tile_sizes import GFX942, LINES, SM_80, SM_90, SM_100, attention_tile
from rtlang_kernels.triton.aot import __main__
from rtlang_kernels.triton.aot.compiler import load_pipeline, num_hasty
from rtlang_kernels.triton.aot.variant import ANY_FLUSH, ARITHMETIC_FLUSH
from tests.support.long_tests import is_long

ROOT = Path(__file__).parents[4]
TARGETS = [SM_80, SM_90, SM_100, GFX942]
IS_LONG = is_long()
COMMON = "rect_attn bf16 D128 G4 "
WIDE = f"{COMMON}mixed 128: "
"""Variants with the largest tiles, which use the matrix units."""
PROMPT = "prompt_attn bf16 D128 G4 prompt"
FLOAT8 = "rect_attn bf16 kv8 D128 G4 mixed 64: "
LINEAR = ["low_bit_product bf16 q4_0 16x64", "low_bit_product bf16 q4_0 128x128"]
"""Variants of linear layers for the fewest and the most rows."""
ONLY = {
    # Only attention and linear layers have tile sizes of their own for each NVIDIA target.
    SM_80: ["rect_attn", "low_bit_product"] if IS_LONG else [WIDE],
    # The short test compiles every kernel once, where it needs most registers or shared memory, and attention with most of its options.
    SM_90: [""]
    if IS_LONG
    else [
        f"{COMMON}decode",
        f"{COMMON}mixed",
        PROMPT,
        "rect_attn bf16 D256 G4 window cap mixed 64: ",
        FLOAT8,
        "rect_attn bf16 D576/512 G16 latent mixed 16: ",
        "merge_parts bf16 D64 G8 sinks decode",
        "merge_two",
        "rope_append bf16 D128 kv8",
        "add_rms_norm bf16 16384",
        "gate_and_mul bf16",
        "copy_lines bf16 to float8",
        "round_rows",
        "sample_stats fp32 128256",
        "sample_finish fp32 128256",
        "filter_histogram fp32 128256",
        "filter_cut bf16 128256",
        "filter_collect fp32 128256",
        "filter_choose fp32 128256",
        "sample_filtered fp32 128256",
        "logprob_chunks fp32 128256",
        "logprob_finish fp32 128256",
        "mask_logits fp32",
        "penalize fp32",
        "build_masks",
        *("find_lines", "advance", "keep_lost"),
        "gated_recurrence bf16 kimi",
        "causal_conv fp32 4",
        "selective_scan fp32",
        *LINEAR,
        "finish_product bf16 floats gated bias",
        "low_bit_rows bf16 q6_k",
        *("route_tokens bf16 qwen3-next", "count_pairs bf16 qwen3-next", "place_pairs bf16 qwen3-next #2"),
        *("add_slots bf16 qwen3-next", "expert_product bf16 qwen3 16x64", "expert_product bf16 gpt-oss 64x128"),
    ],
    SM_100: [""] if IS_LONG else LINEAR,
    GFX942: [""] if IS_LONG else [WIDE],
}
"""Parts of the names of the variants that are compiled."""
PROGRAM = """
import dataclasses, json, sys
from pathlib import Path
from rtlang_kernels.triton.aot import __main__, cases, recording

only, folder = json.loads(sys.argv[1]), Path(sys.argv[2])
recorded = {target: recording.record(target, cases.cases(target)) for target in only}
names = {
    target: [(each.name, each.flush_pattern, each.options.get("launch_pdl", False)) for each in found]
    for target, found in recorded.items()
}
(folder / "names.json").write_text(json.dumps(names))
__main__.record = lambda target, _: recorded[target]
for target, parts in only.items():
    words = [word for part in parts for word in ("--only", part)]
    assert __main__.main(["--target", target, *words, "--json", str(folder / f"{target}.json")]) in (0, 1)

small = ["--target", "sm_90", "--only", "sample_finish fp32 1000"]
whole = recording.TARGETS["sm_90"]
recording.TARGETS["sm_90"] = whole._replace(shared_bytes=16)
statuses = [__main__.main(small)]
recording.TARGETS["sm_90"] = whole
statuses.append(__main__.main(small))
__main__.record = lambda target, _: [
    dataclasses.replace(each, options=each.options | {"maxnreg": 24}) for each in recorded[target]
]
statuses.append(__main__.main(small))
(folder / "statuses.json").write_text(json.dumps(statuses))
"""
"""Compiles chosen variants; then one with too little shared memory, with enough, and with too few registers. All in one process, which
records the variants once."""


class Compiled(NamedTuple):
    """What the process found: by target, the names of all variants with their flush patterns and whether they start early, and the reports
    of the chosen ones."""

    names: dict[str, list[tuple[str, str | None, bool]]]
    reports: dict[str, list[dict[str, Any]]]
    statuses: list[int]
    printed: str


@pytest.fixture(scope="module")
def compiled(tmp_path_factory: pytest.TempPathFactory) -> Compiled:
    folder = tmp_path_factory.mktemp("aot")
    kept = {name: value for name, value in os.environ.items() if name != "TRITON_INTERPRET"}
    done = subprocess.run(
        [sys.executable, "-c", PROGRAM, json.dumps(ONLY), str(folder)],
        env=kept | {"PYTHONPATH": str(ROOT / "kernels"), "TRITON_CACHE_DIR": str(folder / "cache")},
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
    )
    assert done.returncode == 0, done.stdout

    def read(name: str) -> Any:
        return json.loads((folder / f"{name}.json").read_text())

    return Compiled(read("names"), {target: read(target) for target in TARGETS}, read("statuses"), done.stdout)


def is_chosen(name: str, target: str) -> bool:
    return any(part in name for part in ONLY[target])


@pytest.mark.slow
@pytest.mark.parametrize("target", TARGETS)
def test_every_variant_fits(compiled: Compiled, target: str) -> None:
    reports = compiled.reports[target]
    names = [name for name, _, _ in compiled.names[target]]
    assert len(set(names)) == len(names)
    assert [report["name"] for report in reports] == [name for name in names if is_chosen(name, target)]
    assert [report for report in reports if not report["fits"]] == []
    assert [report for report in reports if report["spill_bytes"] != 0] == []
    assert all(report["registers"] > 0 for report in reports)
    assert all(report["flushed"] == 0 for report in reports)


@pytest.mark.slow
def test_every_kernel_is_recorded_and_in_the_short_list(compiled: Compiled) -> None:
    names = [name for name, _, _ in compiled.names[SM_90]]
    recorded = {name.split()[0] for name in names}
    assert {name.split()[0] for name in names if is_chosen(name, SM_90)} == recorded
    written = set()
    for path in (ROOT / "kernels/rtlang_kernels/triton").rglob("*_kernel.py"):
        written |= set(
            re.findall(r"^@(?:gluon\.)?jit\ndef ([a-z]\w*)\([^)]*\) -> None:", path.read_text(), re.MULTILINE)
        )
    assert recorded == written


@pytest.mark.slow
def test_exact_kernels_and_codes_of_float8_keep_subnormal_numbers(compiled: Compiled) -> None:
    """Flush patterns are set for exact noise and weights, and for conversions to and from float8."""
    patterns = {name.split()[0]: pattern for name, pattern, _ in compiled.names[SM_90] if pattern}
    exact = ("sample_finish", "sample_filtered", "filter_histogram", "filter_choose", "penalize", "copy_lines")
    assert [patterns.get(name) for name in exact] == [ANY_FLUSH] * len(exact)
    float8 = [pattern for name, pattern, _ in compiled.names[SM_90] if " kv8" in name and "merge" not in name]
    assert set(float8) == {ARITHMETIC_FLUSH}
    assert len(float8) == 6


@pytest.mark.slow
def test_integers_are_specialized_as_at_run_time(compiled: Compiled) -> None:
    """The norm of 4096 elements reads 16 bytes at a time, since triton knows that the size is a multiple of 16."""
    (report,) = (each for each in compiled.reports[SM_90] if each["name"] == "add_rms_norm bf16 16384")
    assert report["registers"] <= 64


@pytest.mark.slow
@pytest.mark.parametrize(
    ("target", "instruction"), [(SM_80, "mma"), (SM_90, "wgmma"), (GFX942, "mfma")], ids=[SM_80, SM_90, GFX942]
)
def test_wide_tiles_use_the_matrix_units(compiled: Compiled, target: str, instruction: str) -> None:
    (report,) = (report for report in compiled.reports[target] if report["name"].startswith(WIDE))
    assert f"{instruction} " in f"{report['matrix']} "
    if target != GFX942:
        assert "cp.async" in report["matrix"]  # loads overlap with matrix products


@pytest.mark.slow
@pytest.mark.parametrize(("target", "instruction"), [(SM_90, "wgmma"), (SM_100, "tcgen05")])
def test_all_tiles_of_a_linear_layer_use_one_kind_of_instruction(
    compiled: Compiled, target: str, instruction: str
) -> None:
    """A row keeps its bits when more rows make the tile wider, since both sum as many inputs with one instruction."""
    kinds = [
        report["matrix"].split() for report in compiled.reports[target] if report["name"].startswith(tuple(LINEAR))
    ]
    assert [words[0] for words in kinds] == [instruction] * len(LINEAR)
    assert all("cp.async" in words for words in kinds)


@pytest.mark.slow
def test_keys_and_values_are_loaded_ahead(compiled: Compiled) -> None:
    """Loading overlaps with computing: two buffers or more for keys and for values, and no wait for everything in the loop over them."""
    reports = [each for each in compiled.reports[SM_90] if each["name"].startswith(COMMON) and "rect" in each["name"]]
    assert len(reports) == 4
    for report in reports:
        assert len(report["buffers"]) == 2
        assert min(report["buffers"]) >= 2
        assert report["waits"]
        assert min(report["waits"]) > 0


@pytest.mark.slow
def test_float8_is_converted_by_the_processor(compiled: Compiled) -> None:
    (report,) = (report for report in compiled.reports[SM_90] if report["name"].startswith(FLOAT8))
    assert "cvt" in report["matrix"].split()


@pytest.mark.slow
def test_kernels_of_layers_start_early(compiled: Compiled) -> None:
    """On sm_90 only; one attention kernel beside others does not, since it is a branch of a graph."""
    early = {target: {name for name, _, is_early in compiled.names[target] if is_early} for target in TARGETS}
    assert early[SM_80] == early[GFX942] == set()
    kernels = {name.split()[0] for name in early[SM_90]}
    layers = {"rope_append", "rect_attn", "merge_parts", "add_rms_norm", "gate_and_mul"}
    assert kernels == layers | {"low_bit_product", "finish_product"}
    assert {name.split(" mixed ")[0] for name in early[SM_90] if " mixed " in name and "D128 G4" in name} == set()
    assert all(report["hasty"] == 0 for report in compiled.reports[SM_90])


def test_accesses_before_a_wait_are_counted() -> None:
    wait, load = "griddepcontrol.wait ;\n", "ld.global.b64 { %rd12 }, [ %rd13 + 0 ];\n"
    assert num_hasty(load) == 0
    assert num_hasty(wait + load) == 0
    assert num_hasty(f"ld.param.b64 %rd1, [p];\n{load}{wait}{load}") == 1
    assert num_hasty(f"cp.async.cg.shared.global [ %r1 + 0 ], [ %rd2 + 0 ], 16;\n{wait}") == 1
    assert num_hasty(f"griddepcontrol.launch_dependents ;\n{load}") == 1


def test_waits_and_buffers_are_read_from_the_code_of_triton() -> None:
    code = """
    %k = ttg.local_alloc : () -> !ttg.memdesc<3x128x64xbf16, #shared1, #smem, mutable>
    %q = ttg.local_alloc %q_0 : (tensor<16x128xbf16, #blocked1>) -> !ttg.memdesc<16x128xbf16, #shared, #smem>
    %r:2 = scf.for %i = %c0 to %n step %c1 iter_args(%a = %b) -> (f32)  : i32 {
      %w = ttg.async_wait %k_0, %v_0 {num = 2 : i32}
      scf.yield %a : f32
    } {tt.num_stages = 3 : i32}
    %end = ttg.async_wait {num = 0 : i32}
"""
    assert load_pipeline(code) == ((3,), (2,))
    inside = code.replace("    %end", "      %end").replace("    } {tt", "      } {tt")
    assert load_pipeline(inside) == ((3,), (2, 0))


@pytest.mark.slow
def test_a_variant_that_does_not_fit_is_reported(compiled: Compiled) -> None:
    assert compiled.statuses == [1, 0, 1]
    assert compiled.printed.count("DOES NOT FIT") == 2


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


@pytest.mark.slow
def test_products_of_prompts_run_while_others_compute_their_softmax(compiled: Compiled) -> None:
    """In every loop, scores and the output of the keys before are started, the scores are waited for, and 64 exponentials follow."""
    reports = [report for report in compiled.reports[SM_90] if report["name"].startswith("prompt_attn ")]
    assert PROMPT in [report["name"] for report in reports]
    for report in reports:
        assert len(report["loops"]) == 4  # two warpgroups, with and without masks
        for scores, output, wait, exponentials, end in report["loops"]:
            assert (scores, output, end) == ("scores", "output", "wait 0")
            assert int(wait.removeprefix("wait ")) in (1, 2)
            assert int(exponentials.removeprefix("exp ")) >= 60
