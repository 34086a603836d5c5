"""The runtime on a device gives what it gives on the CPU: the same greedy and seeded tokens in float32.

Everything a GPU would run is run in triton's interpreter on CPU tensors (natively with RTLANG_TEST_DEVICE=cuda): the pool, plans and their
upload, the kernels of every layer, masks and draws, and a host that is one step behind.
"""

from __future__ import annotations

import itertools
import os
import threading
from collections.abc import Callable
from concurrent.futures import Future
from pathlib import Path
from typing import Any

import pytest

import rtlang as rt
from rtlang.cache.prefix_cache import PrefixCache
from rtlang.contract.config import RuntimeConfig
from rtlang.engine import device_constraints as device
from rtlang.engine.drafts.call_sites import CallSites
from rtlang.engine.drafts.drafter import Drafter
from rtlang.engine.drafts.overlap import Overlap
from rtlang.engine.drafts.own_text import OwnText
from rtlang.engine.drafts.stored_text import StoredText
from rtlang.engine.drafts.structure import Structure
from rtlang.model.device_runner import DeviceRunner
from rtlang.model.gpu.device_grammar import DeviceGrammars
from rtlang.runtime.runtime import Runtime
from tests.support.engine.draft_sources import FreeCost
from tests.support.models.draft_heads import EAGLE, write_head
from tests.support.models.tiny_models import make_checkpoint, make_model
from tests.support.waiting import LIMIT_S

pytest.importorskip("triton")  # there is none for some platforms

DEVICE = "cuda" if os.environ.get("RTLANG_TEST_DEVICE") == "cuda" else "interpreter"
PREFIX = "Once upon a time there was a kernel."  # 36 tokens: more than two pages
FLAGS = {"type": "array", "items": {"type": "boolean"}, "minItems": 1, "maxItems": 2}
pytestmark = pytest.mark.slow


@pytest.fixture(scope="module")
def checkpoint(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return make_checkpoint(tmp_path_factory.mktemp("llama"), "llama", num_hidden_layers=1)


@rt.program
def story(s: Any, ending: str, options: dict[str, Any]) -> Any:
    s += rt.text(PREFIX, ending)
    s += rt.gen("text", ignore_eos=True, **options)


@rt.program
def branches(s: Any) -> Any:
    s += rt.text(PREFIX)
    s += rt.gen("root", max_tokens=3, ignore_eos=True)
    forks = s.fork(2)
    for index, fork in enumerate(forks):
        fork += rt.text(" " * index)
        fork += rt.gen("leaf", max_tokens=2, ignore_eos=True, temperature=1.0, seed=index)
    forks.join()
    s += rt.select("word", ["mmm", "mn", "zq"])


@rt.program
def typed(s: Any, options: dict[str, Any]) -> Any:
    s += rt.text(PREFIX)
    s += rt.gen("value", **options)


Work = Callable[[Runtime], Any]


def on_both(checkpoint: Path, monkeypatch: pytest.MonkeyPatch, work: Work, **settings: Any) -> DeviceRunner:
    """Do the work on the CPU and on the device; the results must be equal. Returns the device's runner."""
    given = {"model": str(checkpoint), "dtype": "float32", "num_pages": 40, "num_threads": 1, "max_rows": 4, **settings}
    monkeypatch.setenv("RTLANG_DEBUG", "1")
    with Runtime(**given) as runtime:
        want = work(runtime)
    if DEVICE == "interpreter":
        monkeypatch.setenv("RTLANG_KERNELS", "triton")
    with Runtime(**given, device=DEVICE) as runtime:
        got = work(runtime)
        runner = runtime._runner
        assert isinstance(runner, DeviceRunner)
        assert runtime.stats()["num_requests_running"] == 0
    assert got == want
    return runner


def texts(program: Any, cases: list[dict[str, Any]], name: str) -> Work:
    """Run cases together: the engine waits until all are submitted. Their texts."""

    def work(runtime: Runtime) -> list[str]:
        submit, submitted, is_complete = runtime.submit, itertools.count(1), threading.Event()

        def counted(*args: Any, **options: Any) -> Any:
            run = submit(*args, **options)
            if next(submitted) == len(cases):
                is_complete.set()
            return run

        runtime.start().post(lambda: is_complete.wait(LIMIT_S))
        with pytest.MonkeyPatch.context() as patch:
            patch.setattr(runtime, "submit", counted)
            results = program.run_batch(cases, runtime=runtime)
        assert [result.error for result in results] == [None] * len(cases)
        return [result.text(name) for result in results]

    return work


def test_rows_over_a_shared_prefix(checkpoint: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    cases = [(" A", {"max_tokens": 7}), (" B", {"max_tokens": 4}), (" A b", {"max_tokens": 9})]
    work = texts(story, [{"ending": ending, "options": options} for ending, options in cases], "text")
    runner = on_both(checkpoint, monkeypatch, work)
    assert (runner.num_replayed > 0, runner.num_eager) == (True, 0)
    assert runner.num_grown > 0


def test_every_option_of_sampling(checkpoint: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    options: list[dict[str, Any]] = [
        {"temperature": 1.2, "seed": 5, "top_k": 20, "top_p": 0.9},
        {"repetition_penalty": 1.5, "frequency_penalty": 0.4, "presence_penalty": 0.2, "logprobs": 2},
        {"temperature": 0.7, "seed": 2, "logit_bias": {65: 4.0, 66: -3.0}, "min_p": 0.02},
    ]
    cases = [{"ending": " A", "options": {"max_tokens": 5, **each}} for each in options]
    on_both(checkpoint, monkeypatch, texts(story, cases, "text"))


def test_every_filter(checkpoint: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Those that depend on the tokens before, and one of a constraint whose masks the device makes itself."""
    options: list[dict[str, Any]] = [
        {"bad_words": ["a", "e"], "no_repeat_ngram_size": 2, "dry_multiplier": 1.0, "dry_allowed_length": 1},
        {"allowed_token_ids": list(range(40, 200)), "typical_p": 0.8, "top_n_sigma": 1.5, "logprobs": 1},
        {"mirostat": 2, "mirostat_tau": 3.0, "mirostat_eta": 0.5},
        {"xtc_probability": 0.5, "xtc_threshold": 0.004, "dynatemp_range": 0.6},
    ]
    cases = [{"ending": " A", "options": {"max_tokens": 6, "temperature": 1.0, "seed": 3, **each}} for each in options]
    on_both(checkpoint, monkeypatch, texts(story, cases, "text"))
    options = [
        {"regex": "[ab]{2,5}c", "mirostat": 2, "mirostat_tau": 1.0},
        {"schema": FLAGS, "typical_p": 0.5, "xtc_probability": 1.0, "xtc_threshold": 0.01},
    ]
    cases = [{"options": {"max_tokens": 13, "temperature": 1.0, "seed": 4, **each}} for each in options]
    on_both(checkpoint, monkeypatch, texts(typed, cases, "value"))


def test_processors_stops_and_prompts_without_text(checkpoint: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def rising(token_ids: list[int], logits: Any) -> Any:
        logits[70 + len(token_ids)] = 1000.0
        return logits

    options: list[dict[str, Any]] = [
        {"logits_processors": [rising], "max_tokens": 4, "temperature": 1.0, "seed": 1},
        {"max_tokens": 0},
        {"truncate_prompt_tokens": 7, "max_tokens": 3},
        {"logits_processors": [rising], "max_tokens": 6, "stop": "K", "include_stop_str_in_output": True},
    ]
    on_both(
        checkpoint,
        monkeypatch,
        texts(story, [{"ending": " A", "options": each} for each in options], "text"),
    )


def test_stops_beside_constraints(checkpoint: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    options: list[dict[str, Any]] = [
        {"regex": "[ab]{2,9}", "stop": "ba", "max_tokens": 9, "temperature": 1.0, "seed": 3},
        {"regex": "([ab]c)+", "stop_token_ids": [90], "logit_bias": {90: 100.0}, "max_tokens": 6, "min_tokens": 3},
        {"regex": "[ab]{2,9}", "stop_regex": "a{2}|b{2}", "max_tokens": 9, "temperature": 1.0, "seed": 5},
    ]
    on_both(checkpoint, monkeypatch, texts(typed, [{"options": each} for each in options], "value"))


def test_constrained_text_that_is_steered_to_its_end(checkpoint: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    options: list[dict[str, Any]] = [
        {"schema": FLAGS, "max_tokens": 13, "temperature": 1.0, "seed": 1},
        {"regex": "[ab]{2,4}c", "max_tokens": 4, "temperature": 1.0, "seed": 3},
        {"regex": "[a-z]+z", "max_tokens": 4},  # greedy text does not end by itself: the last token is replaced
        {"max_tokens": 5, "ignore_eos": True},
    ]
    work = texts(typed, [{"options": each} for each in options], "value")
    monkeypatch.setattr("rtlang.engine.device_constraints.export", lambda _: None)  # masks are the host's
    on_both(checkpoint, monkeypatch, work)


class Immediate:
    """An executor that is done when it is asked, so that no automaton comes late."""

    def __init__(self, *_: object) -> None:
        pass

    def submit(self, job: Callable[..., Any], *args: Any) -> Future[Any]:
        future: Future[Any] = Future()
        future.set_result(job(*args))
        return future


def test_constraints_that_the_device_follows_by_itself(checkpoint: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(device, "FairExecutor", Immediate)
    followed: list[int] = []
    masks = DeviceGrammars.masks

    def counted(grammars: DeviceGrammars, rows: Any, walks: Any, bitmask: Any) -> Any:
        followed.append(sum(walk is not None for walk in walks))
        return masks(grammars, rows, walks, bitmask)

    monkeypatch.setattr(DeviceGrammars, "masks", counted)
    options: list[dict[str, Any]] = [
        {"schema": FLAGS, "max_tokens": 13, "temperature": 1.0, "seed": 4},
        {"regex": "[ab]{2,4}c", "max_tokens": 4, "temperature": 1.0, "seed": 3},
        {"regex": "[a-z]+z", "max_tokens": 4},  # steered, and the device put right
        {"grammar": 'start: "(" start? ")" | "x"', "max_tokens": 5},
    ]
    work = texts(typed, [{"options": each} for each in options], "value")
    on_both(checkpoint, monkeypatch, work)
    assert sum(followed) >= 9


class Late(Immediate):
    """An executor that is done when it is asked for the fourth time."""

    def submit(self, job: Callable[..., Any], *args: Any) -> Future[Any]:
        future = super().submit(job, *args)
        asked = itertools.count()
        future.done = lambda: next(asked) >= 4  # type: ignore[method-assign]
        return future


def test_an_automaton_that_comes_late_takes_over_in_the_middle_of_a_text(
    checkpoint: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(device, "FairExecutor", Late)
    places: list[Any] = []
    put = DeviceGrammars.takes

    def noted(grammars: DeviceGrammars, walk: Any) -> bool:
        places.append((walk.state, walk.register))
        return put(grammars, walk)

    monkeypatch.setattr(DeviceGrammars, "takes", noted)
    options: list[dict[str, Any]] = [
        {"schema": {"type": "string", "maxLength": 12}, "max_tokens": 12, "temperature": 1.0, "seed": 4},
    ]
    on_both(checkpoint, monkeypatch, texts(typed, [{"options": each} for each in options], "value"))
    assert len(places) == 1
    assert places[0][1] > 0  # characters so far


def test_rows_that_the_device_loses_are_sampled_again(checkpoint: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The first token meets alternatives, and nucleus sampling would notice a mask with a token too many or too few."""
    monkeypatch.setattr(device, "FairExecutor", Immediate)
    left = []
    leave = device.DeviceConstraints.leave

    def counted(constraints: Any, request: Any) -> None:
        left.append(request.num_output_tokens)
        leave(constraints, request)

    monkeypatch.setattr(device.DeviceConstraints, "leave", counted)
    schema = {"type": "object", "properties": {"a": {"type": "boolean"}}, "minProperties": 1, "maxProperties": 2}
    options: list[dict[str, Any]] = [
        {"schema": schema, "max_tokens": 12, "temperature": 1.0, "top_p": 0.8, "seed": 7},
        {"regex": "[ab]{2,4}c", "max_tokens": 4, "temperature": 1.0, "top_p": 0.8, "seed": 3},
    ]
    on_both(checkpoint, monkeypatch, texts(typed, [{"options": each} for each in options], "value"))
    assert left


def drafts_on_devices(
    config: RuntimeConfig, runner: Any, cache: PrefixCache, cost: Any, model: object
) -> Drafter | None:
    """A drafter whose choices do not depend on the machine: it drafts, and also lets rows go on beside drafts."""
    sources = StoredText(cache), CallSites(), OwnText(), Structure()
    return None if config.device == "cpu" else Drafter(sources, FreeCost(), overlap=Overlap(FreeCost(), lambda: 0.4))


@pytest.mark.long
def test_drafts_keep_every_text(checkpoint: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Masks of the device and of the host, penalties, noise; in the second round the texts of the first are drafts."""
    monkeypatch.setattr("rtlang.engine.engine.drafter_for", drafts_on_devices)
    monkeypatch.setattr(device, "FairExecutor", Immediate)
    options: list[dict[str, Any]] = [
        {"max_tokens": 9, "ignore_eos": True},
        {"max_tokens": 6, "ignore_eos": True, "temperature": 0.9, "seed": 2, "top_p": 0.9},
        {"schema": FLAGS, "max_tokens": 13, "temperature": 1.0, "seed": 4},
        {"schema": FLAGS, "max_tokens": 13, "repetition_penalty": 1.6, "frequency_penalty": 0.9},
        {"max_tokens": 6, "ignore_eos": True, "repetition_penalty": 1.5, "frequency_penalty": 0.4},
    ]
    work = texts(typed, [{"options": each} for each in options], "value")
    accepted = []

    def twice(runtime: Runtime) -> Any:
        found = [work(runtime), work(runtime)]
        accepted.append(runtime.stats()["num_accepted_tokens"])
        return found

    runner = on_both(checkpoint, monkeypatch, twice, speculation="on", max_step_tokens=64)
    assert accepted[0] == 0
    assert accepted[1] > 15
    assert runner.num_replayed > 0


@pytest.mark.long
def test_a_draft_model_on_the_device_keeps_every_text(checkpoint: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The model itself, as if it were much smaller: noise and masks are the same, so nearly all of its drafts are right."""
    options: list[dict[str, Any]] = [
        {"max_tokens": 12, "ignore_eos": True, "temperature": 0.9, "seed": 2, "top_p": 0.9},
        {"schema": FLAGS, "max_tokens": 13, "temperature": 1.0, "seed": 4},
        {"max_tokens": 8, "ignore_eos": True, "repetition_penalty": 1.5, "frequency_penalty": 0.4},
    ]
    work = texts(typed, [{"options": each} for each in options], "value")
    found: dict[str, tuple[int, int]] = {}

    def drafted(runtime: Runtime) -> Any:
        assert runtime._engine is not None
        drafter: Any = runtime._engine.drafter
        drafter._sources.clear()
        drafter.model.cost.predict = lambda size: 1e-9
        drafter._cost.predict = lambda size: 1.0  # here each token takes time, for which a device has room
        answers = work(runtime)
        model = drafter.model._runner
        if isinstance(model, DeviceRunner):
            assert model.num_replayed > 5
            assert model.accelerator is runtime._runner.accelerator  # type: ignore[union-attr]
        found[runtime.config.device] = drafter.num_drafted["draft_model"], drafter.num_accepted["draft_model"]
        return answers

    on_both(checkpoint, monkeypatch, drafted, speculation="on", draft_model=str(checkpoint), max_model_len=128)
    num_drafted, num_accepted = found[DEVICE]
    assert num_accepted > 10
    assert num_accepted > 0.8 * num_drafted


@pytest.mark.long
def test_a_draft_head_on_the_device_keeps_every_text(
    checkpoint: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A random head, whose drafts are wrong, is drafted from in every step."""
    head = write_head(tmp_path / "head", EAGLE, make_model("llama", num_hidden_layers=1))
    options: list[dict[str, Any]] = [
        {"max_tokens": 12, "ignore_eos": True, "temperature": 0.9, "seed": 2, "top_p": 0.9},
        {"schema": FLAGS, "max_tokens": 13, "temperature": 1.0, "seed": 4},
    ]
    work = texts(typed, [{"options": each} for each in options], "value")

    def drafted(runtime: Runtime) -> Any:
        assert runtime._engine is not None
        drafter: Any = runtime._engine.drafter
        drafter._sources.clear()
        drafter.model.cost.predict = lambda size: 1e-9
        drafter._cost.predict = lambda size: 1.0
        answers = work(runtime)
        assert drafter.num_drafted["draft_model"] > 5
        return answers

    on_both(checkpoint, monkeypatch, drafted, speculation="on", draft_model=str(head), max_model_len=128)


@pytest.mark.long
def test_one_text_whatever_runs_beside_it(checkpoint: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """With `deterministic`, in bfloat16: alone without drafts in short chunks, and together with drafts over cached prefixes."""
    if DEVICE == "interpreter":
        monkeypatch.setenv("RTLANG_KERNELS", "triton")
    for module in ("planning.work_items", "triton.attention.decode_plan"):
        monkeypatch.setattr(f"rtlang_kernels.{module}.SEGMENT", 64)
    monkeypatch.setattr("rtlang.engine.engine.drafter_for", drafts_on_devices)
    given = {"model": str(checkpoint), "dtype": "bfloat16", "device": DEVICE, "num_pages": 40, "num_threads": 1}
    options: list[dict[str, Any]] = [
        {"temperature": 1.0, "seed": 7},
        {},
        {"temperature": 0.7, "seed": 2, "top_k": 20},
        {},
    ]
    endings = [" A", " B b", " " * 40, " A c"]
    cases = [
        {"ending": ending, "options": {"max_tokens": 30, **each}} for ending, each in zip(endings, options, strict=True)
    ]
    with Runtime(**given, deterministic=True, max_rows=1, speculation="off", max_step_tokens=16) as runtime:
        alone = [texts(story, [case], "text")(runtime)[0] for case in cases]
    with Runtime(**given, deterministic=True, max_rows=4) as runtime:
        assert texts(story, cases, "text")(runtime) == alone
        assert texts(story, cases[::-1], "text")(runtime) == alone[::-1]
        assert runtime.stats()["num_accepted_tokens"] > 0


def test_penalties_of_a_constrained_text_count_its_last_token(
    checkpoint: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The token is known only after the row that follows it is launched."""
    pattern = {"regex": "[ab]{9}", "max_tokens": 9, "frequency_penalty": 2.0, "presence_penalty": 1.0}
    for is_followed in (False, True):
        monkeypatch.setattr(device, "FairExecutor", Immediate)
        if not is_followed:
            monkeypatch.setattr("rtlang.engine.device_constraints.export", lambda _: None)
        on_both(checkpoint, monkeypatch, texts(typed, [{"options": pattern}], "value"))
        monkeypatch.undo()


def test_forks_and_scores(checkpoint: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def work(runtime: Runtime) -> Any:
        result = branches.run(runtime=runtime)
        return [result.text("root"), result["leaf"], result["word"]]

    on_both(checkpoint, monkeypatch, work)


def test_preempted_rows_go_on_where_they_were(checkpoint: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    preempted = []

    def work(runtime: Runtime) -> Any:
        cases = [{"ending": f" {letter}", "options": {"max_tokens": 14}} for letter in "ABC"]
        found = texts(story, cases, "text")(runtime)
        preempted.append(runtime.stats()["num_preemptions"])
        return found

    on_both(checkpoint, monkeypatch, work, num_pages=7, prefix_sharing=False, page_size=16)
    assert all(preempted)


def test_a_model_of_the_library(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    checkpoint = make_checkpoint(tmp_path, "gemma2", num_hidden_layers=2)  # a window, a soft cap
    cases = [{"ending": end, "options": {"max_tokens": 2}} for end in (" A", " B")]
    runner = on_both(checkpoint, monkeypatch, texts(story, cases, "text"))
    assert runner.num_replayed > 0
