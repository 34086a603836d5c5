"""Steps on the device's runner, in triton's interpreter: what the engine's tests do not reach.

Tokens over whole runs are compared in system/test_device.
"""

from __future__ import annotations

import math
import os
import weakref
from collections.abc import Mapping, Sequence
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest
import torch

pytest.importorskip("triton")  # there is none for some platforms

from rtlang.contract.config import RuntimeConfig
from rtlang.contract.errors import ConfigError, ParameterError
from rtlang.contract.params import SamplingParams
from rtlang.contract.step import LogitFilters, Row, Step, StepOutput
from rtlang.model import loader
from rtlang.model.device_runner import DeviceRunner
from rtlang.model.gpu import device_graphs
from rtlang.model.gpu.accelerator import InterpretedAccelerator
from rtlang.model.gpu.device_sampler import _changed_logits
from rtlang.model.host_runner import HostRunner
from rtlang.model.loader import float8_share
from rtlang_kernels.triton.attention import paged_attention
from rtlang_kernels.triton.grammar import automaton_store
from rtlang_kernels.triton.linear.low_bit_linear import GpuLowBitLinear
from rtlang_kernels.triton.sampling import sampler
from rtlang_kernels_bench import automaton_checks
from tests.support.kernels import gpu
from tests.support.kernels.compiled_kernels import compiled_kernels
from tests.support.models.model_steps import run_step
from tests.support.models.quantized_checkpoints import SCHEMES, quantized_pair
from tests.support.models.tiny_models import make_checkpoint

DEVICE = "cuda" if os.environ.get("RTLANG_TEST_DEVICE") == "cuda" else "interpreter"
FLOAT8_DTYPE = "bfloat16" if DEVICE == "cuda" else "float32"
PARAMS = SamplingParams()
GPU_SCHEMES = [name for name in SCHEMES if name not in ("nf4", "llm.int8")]
"""Formats whose codes stay on the device."""


@pytest.fixture(scope="module")
def checkpoint(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return make_checkpoint(tmp_path_factory.mktemp("mistral"), "mistral", num_hidden_layers=1)  # a window of 24


@pytest.fixture
def triton(monkeypatch: pytest.MonkeyPatch) -> None:
    if DEVICE == "interpreter":
        monkeypatch.setenv("RTLANG_KERNELS", "triton")


def settings(path: Path, **rest: Any) -> dict[str, Any]:
    """With graphs for 4 tokens at most: larger ones take longer in the interpreter, and test_device_runner_prompts has them."""
    given = {"model": str(path), "dtype": "float32", "num_pages": 12, "page_size": 16, "num_threads": 1, "max_rows": 2}
    return {**given, "max_step_tokens": 4, **rest}


def on_cpu(path: Path, monkeypatch: pytest.MonkeyPatch) -> HostRunner:
    monkeypatch.delenv("RTLANG_KERNELS", raising=False)
    runner = HostRunner(RuntimeConfig(**settings(path)))
    runner.load()
    return runner


def loaded(path: Path, **rest: Any) -> DeviceRunner:
    runner = DeviceRunner(RuntimeConfig(device=DEVICE, **settings(path, **rest)))
    runner.load()
    return runner


def computed(runner: DeviceRunner, step: Step) -> StepOutput:
    flight = runner.launch(step)
    runner.sample(flight, step.rows, None)
    return runner.collect(flight)


def steps(prompt: list[int]) -> list[Step]:
    """A prompt in two chunks with scores, a copy of its half-full page, then a step that two rows decode in, one of them poisoned."""
    half = len(prompt) - 8
    scored = Row(0, prompt[:half], 0, (3, 5, 1), 0, False, PARAMS, score_token_ids=prompt[1:half], num_score_top=2)
    logprobs = SamplingParams(logprobs=3, repetition_penalty=1.3, frequency_penalty=0.5)
    history = {"prompt_token_ids": prompt, "output_token_ids": [4, 4, 5], "banned_token_ids": (77,)}
    rest = Row(0, prompt[half:], half, (3, 5, 1), 0, True, logprobs, **history)
    copied = Row(1, [9], half, (3, 5, 7), 16, True, SamplingParams(logprobs=1))
    return [Step(0, (scored,)), Step(1, (rest, copied), copies=((1, 7),))]


def test_scores_copies_and_changed_logits_are_those_of_the_cpu(
    checkpoint: Path, triton: None, monkeypatch: pytest.MonkeyPatch
) -> None:
    prompt = [(7 * i) % 250 for i in range(46)]
    runner = loaded(checkpoint)
    got = [computed(runner, step) for step in steps(prompt)]
    other = on_cpu(checkpoint, monkeypatch)
    want = [run_step(other, step) for step in steps(prompt)]
    for a, b in zip(got, want, strict=True):
        assert a.step_id == b.step_id
        for mine, theirs in zip(a.rows, b.rows, strict=True):
            assert (mine.token_id, mine.is_finite) == (theirs.token_id, theirs.is_finite)
            pairs = [*zip(mine.scores, theirs.scores, strict=True)]
            if theirs.logprob is not None:
                assert mine.logprob is not None
                pairs.append((mine.logprob, theirs.logprob))
            for x, y in pairs:
                assert x.token_id == y.token_id
                assert x.logprob == pytest.approx(y.logprob, abs=2e-4)
                assert [token for token, _ in x.top] == [token for token, _ in y.top]
    assert len(got[0].rows[0].scores) == 37
    assert got[1].rows[0].logprob is not None
    assert len(got[1].rows[0].logprob.top) == 3


@pytest.mark.filterwarnings(
    "ignore:All-NaN slice encountered:RuntimeWarning"
)  # of numpy, under the interpreter's maximum
def test_a_row_with_poisoned_pages_fails_alone(checkpoint: Path, triton: None) -> None:
    runner = loaded(checkpoint)
    computed(runner, Step(0, tuple(Row(index, [5, 6, 7], 0, (index,), 0, False, PARAMS) for index in range(2))))
    with torch.inference_mode():
        runner.kv.v[0][16] = torch.nan
    step = Step(1, tuple(Row(index, [8], 3, (index,), 0, True, PARAMS) for index in range(2)))
    output = computed(runner, step)
    assert runner.num_replayed == 1
    assert [row.is_finite for row in output.rows] == [True, False]
    assert output.rows[0].token_id is not None
    assert output.rows[1].token_id is None


def test_kv_in_float8_is_near(checkpoint: Path, triton: None) -> None:
    prompt = [(11 * i) % 250 for i in range(20)]
    row = Row(0, prompt, 0, (3, 5), 0, True, PARAMS, score_token_ids=prompt[1:])
    exact = computed(loaded(checkpoint), Step(0, (row,))).rows[0].scores
    runner = loaded(checkpoint, kv_dtype="float8")
    near = computed(runner, Step(0, (row,))).rows[0].scores
    assert runner.kv.k[0].dtype == torch.float8_e4m3fn
    errors = [abs(a.logprob - b.logprob) for a, b in zip(exact, near, strict=True)]
    assert 0 < max(errors) < 0.5


def counted(names: list[str], function: Any) -> Any:
    def call(*args: Any, **given: Any) -> Any:
        names.append(function.__name__)
        return function(*args, **given)

    return call


def test_every_class_of_tiles_is_compiled_at_load(
    tmp_path: Path, triton: None, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Prompts of one step each, as long as a class's tile is wide, a prefix that is merged, draws of every kind, and automata."""
    checkpoint = make_checkpoint(tmp_path, "llama", num_hidden_layers=1)
    launched: set[tuple[int, bool]] = set()
    kinds: list[tuple[bool, int]] = []
    merged: list[int] = []
    schedule, draw = paged_attention.schedule, sampler.sample_staged

    def scheduled(*args: Any, **given: Any) -> Any:
        found = schedule(*args, **given)
        launched.update((index, bool(args[2].any())) for index, size in enumerate(found.class_sizes) if size)
        merged.append(len(found.merge_tokens))
        return found

    def drawn(logits: torch.Tensor, staged: sampler.StagedSettings) -> Any:
        kinds.append((staged.has_mask, staged.num_filtered))
        return draw(logits, staged)

    followed: list[str] = []
    for name in ("build_masks", "advance"):
        monkeypatch.setattr(
            automaton_store.AutomatonStore, name, counted(followed, getattr(automaton_store.AutomatonStore, name))
        )
    monkeypatch.setattr(InterpretedAccelerator, "compiles", True)
    monkeypatch.setattr(paged_attention, "schedule", scheduled)
    monkeypatch.setattr(sampler, "sample_staged", drawn)
    runner = loaded(checkpoint)
    assert {index for index, _ in launched} == {0, 1, 2}
    assert {has_mask for has_mask, _ in kinds} == {True, False}
    assert {number for _, number in kinds} == {0, 1, 2}
    assert max(merged) == 2
    assert followed == ["build_masks", "advance"]
    assert (runner.num_eager, runner.num_replayed) == (0, 0)


def test_nothing_is_compiled_after_load(tmp_path: Path, triton: None, monkeypatch: pytest.MonkeyPatch) -> None:
    """Scores, likeliest tokens, changed logits, draws with filters, steps of decoding and automata need what is there."""
    if DEVICE != "interpreter":
        pytest.skip("what is compiled is told by the interpreter's launches")
    checkpoint = make_checkpoint(tmp_path, "llama", num_hidden_layers=1)
    monkeypatch.setattr(InterpretedAccelerator, "compiles", True)
    prompt = [(7 * i) % 250 for i in range(46)]
    filters = SamplingParams(temperature=0.8, top_k=9, top_p=0.9, min_p=0.01)
    with compiled_kernels() as kernels:
        runner = loaded(checkpoint, max_step_tokens=24)
        at_load = set(kernels)
        for step in steps(prompt):
            computed(runner, step)
        for number in range(3):
            rows = (
                Row(0, [9], 46 + number, (3, 5, 1, 2), 0, True, filters),
                Row(1, [9], number, (8,), 0, True, PARAMS),
            )
            computed(runner, Step(2 + number, rows[: 1 + number % 2]))
        automaton_checks.check(runner.model_config.vocab_size, torch.device("cpu"))
    assert runner.num_replayed == 4
    assert [kernel for kernel in kernels if kernel not in at_load] == []
    assert len(at_load) > 20


@pytest.mark.long  # test_published_weights.py has two of them in a usual run
@pytest.mark.parametrize("scheme", GPU_SCHEMES)
def test_weights_of_few_bits_give_the_logits_of_their_float_twin(
    scheme: str, tmp_path: Path, triton: None, monkeypatch: pytest.MonkeyPatch
) -> None:
    """In prefill, in a graph of a decoding step, and in scores; the layers hold the codes."""
    quantized_path, float_path = quantized_pair(tmp_path, scheme, "qwen2")
    prompt = [(7 * i) % 250 for i in range(20)]
    scored = Row(0, prompt, 0, (3, 5), 0, True, SamplingParams(logprobs=5), score_token_ids=prompt[1:], num_score_top=2)
    both = [Step(0, (scored,)), Step(1, (Row(0, [9], 20, (3, 5), 0, True, SamplingParams(logprobs=5)),))]
    runner = loaded(quantized_path)
    assert all(isinstance(each.packed, GpuLowBitLinear) for each in runner.decoder._layers[0].linears)  # type: ignore[attr-defined]
    other = on_cpu(float_path, monkeypatch)
    expected = [run_step(other, step) for step in both]
    if DEVICE == "interpreter":
        monkeypatch.setenv("RTLANG_KERNELS", "triton")
    for step, wanted in zip(both, expected, strict=True):
        (mine,), (theirs,) = computed(runner, step).rows, wanted.rows
        assert mine.token_id == theirs.token_id
        assert mine.logprob is not None
        assert theirs.logprob is not None
        for a, b in zip((*mine.scores, mine.logprob), (*theirs.scores, theirs.logprob), strict=True):
            assert a.logprob == pytest.approx(b.logprob, abs=1e-3)
            assert [value for _, value in a.top] == pytest.approx([value for _, value in b.top], abs=1e-3)
    assert runner.num_replayed == 1


def test_inputs_in_float8_are_near_and_reported(tmp_path: Path, triton: None, caplog: pytest.LogCaptureFixture) -> None:
    path, _ = quantized_pair(tmp_path, "float8 rows")
    prompt = [(11 * i) % 250 for i in range(20)]
    row = Row(0, prompt, 0, (3, 5), 0, True, PARAMS, score_token_ids=prompt[1:])
    exact = computed(loaded(path, dtype=FLOAT8_DTYPE), Step(0, (row,))).rows[0].scores
    with caplog.at_level("INFO", "rtlang.model.loader"):
        runner = loaded(path, dtype=FLOAT8_DTYPE, linear_inputs="float8")
    near = computed(runner, Step(0, (row,))).rows[0].scores
    errors = [abs(a.logprob - b.logprob) for a, b in zip(exact, near, strict=True)]
    assert 1e-3 < max(errors) < 0.5
    told = "float8 for 14 of 14 matrices of few bits outside of experts"
    assert f"linear inputs: {told}" in caplog.messages
    assert float8_share(runner.config) == told


def test_inputs_in_float8_are_refused_where_no_weight_takes_them(
    checkpoint: Path, tmp_path: Path, triton: None, monkeypatch: pytest.MonkeyPatch
) -> None:
    blocks, _ = quantized_pair(tmp_path, "fp8")
    for path in (checkpoint, blocks):
        with pytest.raises(ConfigError, match="no layer of this model has float8 weights with one scale"):
            loaded(path, dtype=FLOAT8_DTYPE, linear_inputs="float8")
    monkeypatch.setattr(loader, "float8_product_obstacle", lambda device: "it is too old")
    with pytest.raises(ConfigError, match="expected float on this device: it is too old"):
        loaded(blocks, dtype=FLOAT8_DTYPE, linear_inputs="float8")


def test_a_closed_runner_holds_no_memory_of_the_device(checkpoint: Path, triton: None) -> None:
    runner = loaded(checkpoint)
    computed(runner, Step(0, (Row(0, [5, 6, 7], 0, (0,), 0, True, PARAMS),)))
    held = [weakref.ref(runner.kv.k[0].untyped_storage()), weakref.ref(runner.decoder), weakref.ref(runner._sampled)]
    graph = next(iter(runner._graphs.steps.values()))
    held.append(weakref.ref(graph.plan))
    del graph
    flight = runner.launch(Step(1, (Row(0, [8], 3, (0,), 0, True, PARAMS),)))
    runner.close()
    assert [found() for found in held] == [None] * 4
    runner.close()
    assert (runner.num_replayed, runner.num_eager) == (2, 0)
    walk: Any = None
    for use in (
        lambda: runner.launch(flight.step),
        lambda: runner.sample(flight, flight.step.rows, None),
        lambda: runner.collect(flight),
        lambda: runner.can_follow(walk),
        lambda: runner.num_pages,
        runner.load,
    ):
        with pytest.raises(RuntimeError, match="this runner is closed"):
            use()


def test_a_step_that_fits_no_graph_is_computed_and_logged_once(
    checkpoint: Path, triton: None, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    runner = loaded(checkpoint, max_rows=1)
    graphs = runner._graphs.steps
    assert list(graphs) == [1, 2, 4]
    for graph in graphs.values():
        monkeypatch.setattr(graph, "write_decoding", lambda *_: False)
        monkeypatch.setattr(graph, "write", lambda *_: False)
    for row in (Row(0, [5], 0, (0,), 0, True, PARAMS), Row(0, [5, 6, 7], 1, (0,), 0, True, PARAMS)):
        assert computed(runner, Step(0, (row,))).rows[0].token_id is not None
    assert (runner.num_replayed, runner.num_eager) == (0, 2)
    assert [record.getMessage() for record in caplog.records if record.name == "rtlang.model.gpu.device_graphs"] == [
        "a step of 1 tokens does not fit its graph; launching kernel by kernel"
    ]


# KV of an 8B Llama in bfloat16: 32 layers of 8 heads of 128; memory that the weights leave, in GB
@pytest.mark.parametrize(
    ("gigabytes", "rest", "rows", "tokens"),
    [
        (80 - 16.1, {}, 384, 2048),
        (80 - 16.1, {"kv_dtype": "float8"}, 512, 2048),
        (24 - 16.1, {}, 64, 1024),
        (48 - 16.1, {}, 192, 1536),
        (24 - 16.1, {"max_rows": 300}, 300, 2048),
        (80 - 16.1, {"max_step_tokens": 700}, 384, 700),
        (80 - 16.1, {"num_pages": 1000}, 64, 1024),
        (80 - 16.1, {"cache_bytes": 40 << 30}, 320, 2048),
        (80 - 16.1, {"max_model_len": 512}, 512, 2048),
    ],
    ids=str,
)
def test_rows_and_tokens_of_a_step_follow_the_memory(
    gigabytes: float, rest: dict[str, Any], rows: int, tokens: int, triton: None
) -> None:
    runner = DeviceRunner(RuntimeConfig(device=DEVICE, **rest), InterpretedAccelerator())
    runner.model_config = SimpleNamespace(max_position_embeddings=8192)  # type: ignore[assignment]
    runner.decoder = SimpleNamespace(state_shapes=())  # type: ignore[assignment]
    runner.accelerator.free_bytes = lambda: int(gigabytes * 1e9)  # type: ignore[method-assign]
    item = 1 if rest.get("kv_dtype") == "float8" else 2
    num_pages, _, num_rows = runner._pick_sizes(16 * 2 * 32 * 8 * 128 * item)
    config = runner.config.with_device_rows(num_rows)
    assert (config.row_limit, config.running_limit, config.step_limit) == (rows, rows, tokens)
    assert num_pages * 16 >= 4096
    assert config.with_device_rows(1) == config, "a runner in its place has the same"


class Repeats:
    """Raises the token sampled last, forbids the one before it, and knows one that the model lacks."""

    def biases(self, output_token_ids: Sequence[int]) -> Mapping[int, float]:
        return {output_token_ids[-1]: 6.0, output_token_ids[-2]: -math.inf, 1 << 20: 3.0}


def test_filtered_rows_are_those_of_the_cpu(checkpoint: Path, triton: None, monkeypatch: pytest.MonkeyPatch) -> None:
    """Each alone beside a plain row, at several places of the text; two of them with a mask."""
    truncating = LogitFilters(truncates=True)
    cases: list[tuple[dict[str, Any], LogitFilters, int | None]] = [
        ({}, LogitFilters((Repeats(),)), None),
        ({"temperature": 0.0}, LogitFilters((Repeats(),), tuple(range(3, 90))), 0),
        ({"typical_p": 0.5, "logprobs": 2}, truncating, None),
        ({"typical_p": 0.9, "top_k": 40, "top_p": 0.8, "min_p": 0.01}, truncating, 0),
        ({"top_n_sigma": 1.0, "dynatemp_range": 0.7}, truncating, None),
        ({"xtc_probability": 0.5, "xtc_threshold": 0.005}, LogitFilters((Repeats(),), truncates=True), None),
        ({"mirostat": 2, "mirostat_tau": 3.0, "logprobs": 1}, truncating, None),
    ]
    prompt = [(7 * i) % 250 for i in range(9)]
    runner, other = loaded(checkpoint), on_cpu(checkpoint, monkeypatch)
    bitmask = np.full((1, -(-runner.model_config.vocab_size // 32)), 0x0F0F0F0F, dtype=np.int32)
    for number, (options, filters, mask_row) in enumerate(cases):
        params = SamplingParams(**{"temperature": 1.2, **options})
        for place in range(5):
            row = Row(0, prompt, 0, (1,), 0, True, params, number, 0, place, mask_row, output_token_ids=(5, 17))
            rows = (row._replace(filters=filters, max_surprise=5.0), Row(1, prompt[:4], 0, (2,), 0, True, PARAMS))
            found = []
            for each in (runner, other):
                flight = each.launch(Step(place, rows, num_mask_rows=1))  # type: ignore[attr-defined]
                each.sample(flight, rows, bitmask)  # type: ignore[attr-defined]
                found.append(each.collect(flight).rows)  # type: ignore[attr-defined]
            for mine, theirs in zip(*found, strict=True):
                assert mine.token_id == theirs.token_id
                assert (mine.logprob is None) == (theirs.logprob is None)
            mine, theirs = (rows[0].tokens[0].surprise for rows in found)
            assert (mine is not None) == bool(params.mirostat)
            assert mine == theirs if mine is None else mine == pytest.approx(theirs, abs=1e-3)


def test_changed_logits_may_come_in_any_layout() -> None:
    logits = torch.randn(7, 3, generator=torch.Generator().manual_seed(0)).to(gpu.DEVICE).T
    row = Row(0, [1], 0, (0,), 0, True, SamplingParams(logit_bias=((2, 1.5),)), banned_token_ids=(4,))
    changed = _changed_logits(logits, [row] * 3, [1], None, {})
    want = logits.clone()
    want[1, 2] += 1.5
    want[1, 4] = -torch.inf
    assert torch.equal(changed, want)


def test_processors_come_first_and_their_errors_are_of_their_rows() -> None:
    logits = torch.randn(3, 7, generator=torch.Generator().manual_seed(0)).to(gpu.DEVICE)
    untouched = logits.clone()
    flip = SamplingParams(logits_processors=(lambda token_ids, line: -line,), logit_bias=((2, 1.5),))
    fail = SamplingParams(logits_processors=(lambda token_ids, line: token_ids,))
    rows = [Row(0, [1], 0, (0,), 0, True, params, output_token_ids=[3]) for params in (PARAMS, flip, fail)]
    errors: dict[int, ParameterError] = {}
    changed = _changed_logits(logits, rows, [1, 2], None, errors)
    assert list(errors) == [2]
    want = -untouched[1]
    want[2] += 1.5
    assert torch.equal(changed[1], want)
    assert torch.equal(changed[0], untouched[0])
    assert bool(changed[2].isnan().all())
    assert torch.equal(logits, untouched)


def test_limits_beyond_the_pool_take_no_memory(checkpoint: Path, triton: None, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(device_graphs, "GRAPH_TOKENS", (2,))
    runner = loaded(checkpoint, num_pages=20, max_rows=1 << 40, max_step_tokens=1 << 40, speculation="on")
    assert (runner.config.row_limit, runner.config.step_limit) == (64, 1024)
    assert runner.with_limits(runner.config).row_limit == 64
    runner.close()


def test_the_last_page_is_nobodys(checkpoint: Path, triton: None) -> None:
    runner = loaded(checkpoint)
    assert runner.num_pages == 12
    assert runner.kv.num_pages == 13
    assert list(runner._graphs.steps) == [1, 2, 4]
    assert runner.max_model_len == 512


@pytest.mark.parametrize(
    ("given", "name"),
    [({"max_model_len": 4096}, "max_model_len"), ({"num_pages": 1 << 40}, "num_pages")],
)
def test_settings_that_do_not_fit_are_told(checkpoint: Path, triton: None, given: dict[str, Any], name: str) -> None:
    with pytest.raises(ConfigError) as caught:
        loaded(checkpoint, **given)
    assert caught.value.field == name
    with pytest.raises(ConfigError, match="are free"):
        loaded(checkpoint, num_pages=None, cache_bytes=1 << 50)
