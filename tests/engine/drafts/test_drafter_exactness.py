"""Drafts on a model in float32: for every option of a request the tokens, log-probabilities and texts are those without drafts."""

from __future__ import annotations

import json
import random
import threading
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field, replace
from functools import cache
from typing import Any

import pytest

from rtlang.contract.config import RuntimeConfig
from rtlang.contract.events import TokenLogprob
from rtlang.contract.params import SamplingParams
from rtlang.engine.constraints.compiler import ConstraintCompiler
from rtlang.engine.drafts.call_sites import CallSites
from rtlang.engine.drafts.draft_model import DraftModel
from rtlang.engine.drafts.drafter import Drafter
from rtlang.engine.drafts.model_policy import ModelPolicy
from rtlang.engine.drafts.own_text import OwnText
from rtlang.engine.drafts.stored_text import StoredText
from rtlang.engine.drafts.structure import Structure
from rtlang.engine.engine import Engine, LoadedModel
from rtlang.engine.planning.step_cost import StepSize
from rtlang.engine.requests.request import Request, RequestOutput, RequestSpec
from rtlang.model.draft_runner import DraftRunner
from rtlang.model.host_runner import HostRunner
from rtlang_grammars import Constraint, ConstraintKind
from tests.support.engine.draft_sources import FreeCost, Oracle
from tests.support.long_tests import is_long, sized

SCHEMA = Constraint(
    ConstraintKind.JSON_SCHEMA,
    json.dumps(
        {
            "type": "object",
            "properties": {
                "name": {"type": "string"},
                "age": {"type": "integer"},
                "tags": {"type": "array", "items": {"enum": ["red", "green", "blue"]}},
            },
            "required": ["name", "age", "tags"],
            "additionalProperties": False,
        }
    ),
)
RULES = Constraint(
    ConstraintKind.LARK,
    """start: "name: " name "; mood: " mood ("; age: " age)+
name[capture, temperature=1.4]: /[A-Za-z ]{4,12}/
mood[capture, temperature=0.0]: /[a-z]{3,9}/
age[capture="ages"]: /[0-9]{1,2}/
""",
)
"""A grammar whose rules set temperatures and capture texts."""
CHOICE = Constraint(ConstraintKind.CHOICE, json.dumps(["yes, of course", "yes, perhaps", "no"]))
PROMPTS = (
    "Repeat after me: the cat sat on the mat. The cat sat on the mat. The cat sat",
    "Once upon a time there was a little",
    'Write JSON. {"name": "Anna", "age": 3, "tags": ["red"]} {"name": "Tom", "age": 4, "tags": []} Now you:',
)
OPTIONS: dict[str, dict[str, Any]] = {
    "greedy": {},
    "seeded": {"temperature": 0.8, "top_p": 0.95},
    "hot": {"temperature": 1.3, "top_k": 50, "min_p": 0.02},
    "penalties": {"temperature": 0.7, "presence_penalty": 0.6, "frequency_penalty": 0.4, "repetition_penalty": 1.2},
    "logprobs": {"logprobs": 3, "temperature": 0.5},
    "prompt_logprobs": {"prompt_logprobs": 1, "logprobs": 0},
    "stops": {"stop": ("the", ".")},
    "stop_regex": {"stop_regex": (r"[a-z]+, ",), "temperature": 0.8},
    "min_tokens": {"min_tokens": 12, "stop": (" ",), "temperature": 0.9},
    "bias": {"logit_bias": ((300, 4.0), (301, 3.0)), "temperature": 0.6},
    "ignore_eos": {"ignore_eos": True},
    "schema": {"constraint": SCHEMA},
    "sampled_schema": {"constraint": SCHEMA, "temperature": 0.9, "logprobs": 2, "distortion": True},
    "steered": {"constraint": SCHEMA, "max_tokens": 18, "temperature": 1.0},
    "choice": {"constraint": CHOICE, "temperature": 1.0},
    "rules": {"constraint": RULES, "temperature": 0.7, "max_tokens": 30},
    "forbidden": {"bad_words": ("the", "a"), "no_repeat_ngram_size": 3, "logprobs": 1},
    "dry": {"dry_multiplier": 0.8, "dry_base": 1.5, "temperature": 0.6},
    "truncated": {
        "temperature": 1.2,
        "typical_p": 0.9,
        "top_n_sigma": 2.5,
        "xtc_probability": 0.5,
        "xtc_threshold": 0.02,
    },
    "filtered_schema": {
        "constraint": SCHEMA,
        "temperature": 1.1,
        "dynatemp_range": 0.6,
        "xtc_probability": 0.7,
        "dry_multiplier": 1.0,
        "bad_words": ("an",),
        "top_p": 0.9,
    },
    "mirostat": {"temperature": 1.0, "mirostat": 2, "mirostat_tau": 3.0},
}


CUT = ("stops", "stop_regex", "min_tokens", "schema", "sampled_schema", "steered", "filtered_schema")
"""Options with which a text may end within a draft of its own tokens, or the token budget steers it away from them."""


@dataclass
class Outcome:
    """What a request gave out."""

    text: str = ""
    token_ids: list[int] = field(default_factory=list)
    logprobs: list[TokenLogprob] = field(default_factory=list)
    end: object = None
    scores: Sequence[TokenLogprob] = ()
    distortion: list[float] = field(default_factory=list)
    usage: tuple[int, ...] = ()


class World:
    """An engine on the model of the module, and what its requests gave out."""

    def __init__(self, runner: HostRunner, compiler: ConstraintCompiler, drafter: Any = None, **settings: Any) -> None:
        config = RuntimeConfig(page_size=runner.config.page_size, speculation="off", **settings)
        self._woken = threading.Event()
        self.engine = Engine(config, LoadedModel(runner), compiler, self._woken.set, check_every_step=True)
        if drafter is not None:
            self.drafter = drafter(self.engine)
            self.engine.scheduler._drafter = self.drafter
        self.outcomes: list[Outcome] = []

    def add(
        self,
        token_ids: list[int],
        options: dict[str, Any],
        *,
        seed: int,
        choice: int = 0,
        given_ids: Sequence[int] = (),
    ) -> Request:
        given = {"max_tokens": 40} | options
        constraint = given.pop("constraint", None)
        outcome = Outcome()
        self.outcomes.append(outcome)

        def listen(output: RequestOutput) -> None:
            assert outcome.end is None
            outcome.text += output.text
            outcome.token_ids += output.token_ids
            outcome.logprobs += output.logprobs
            if output.is_last:
                request = output.request
                outcome.end = (output.finish_reason, request.results.stop, repr(output.error))
                outcome.scores = request.prompt_scores
                outcome.distortion = [number for number, _ in request.results.distortion]
                outcome.usage = (request.num_prompt_tokens, request.num_output_tokens)
                assert request.output_text.text.endswith(outcome.text)
                assert output.error is not None or request.output_token_ids == [*given_ids, *outcome.token_ids]
                assert given_ids or request.output_text.text == outcome.text

        params = SamplingParams(**given)
        spec = RequestSpec(
            prompt_ids=token_ids,
            params=params,
            listener=listen,
            constraint=constraint,
            seed=seed,
            choice=choice,
            site="site",
            given_ids=given_ids,
            score_from=1 if params.prompt_logprobs is not None else None,
        )
        return self.engine.add(spec, 0.0)

    def run(self) -> None:
        for _ in range(20_000):
            if not self.engine.num_requests:
                break
            self._woken.clear()
            if not self.engine.has_work:
                assert self._woken.wait(60)
            for output in self.engine.step(0.0):
                output.request.spec.listener(output)
        assert self.engine.num_requests == 0
        assert self.engine.cache.num_in_use == 0


@pytest.fixture(scope="module")
def model() -> Iterator[tuple[HostRunner, ConstraintCompiler]]:
    config = RuntimeConfig(dtype="float32", num_threads=1, num_pages=512, grammar_timeout_s=60)  # with native code
    runner = HostRunner(config)
    runner.load()
    compiler = ConstraintCompiler(config, runner.tokenizer, runner.model_config.vocab_size)
    yield runner, compiler
    compiler.close()
    runner.close()


def sources(engine: Engine) -> Drafter:
    return Drafter((StoredText(engine.cache), CallSites(), OwnText(), Structure()), FreeCost())


def assert_same(found: Outcome, expected: Outcome, name: str) -> None:
    assert found.token_ids == expected.token_ids, name
    assert (found.text, found.end, found.usage) == (expected.text, expected.end, expected.usage), name
    for ours, theirs in ((found.logprobs, expected.logprobs), (found.scores, expected.scores)):
        assert [each.token_id for each in ours] == [each.token_id for each in theirs], name
        for mine, other in zip(ours, theirs, strict=True):
            assert mine.logprob == pytest.approx(other.logprob, abs=1e-4), name
            assert [token_id for token_id, _ in mine.top] == [token_id for token_id, _ in other.top], name
    assert found.distortion == pytest.approx(expected.distortion, abs=1e-4), name


def plain(runner: HostRunner, compiler: ConstraintCompiler, names: Sequence[str], seed: int) -> list[Outcome]:
    """Every prompt with every named option, one token a step."""
    world = World(runner, compiler)
    for index, prompt in enumerate(PROMPTS):
        for name in names:
            world.add(runner.tokenizer.encode(prompt, is_start=True), OPTIONS[name], seed=seed + index)
    world.run()
    return world.outcomes


@pytest.fixture(scope="module")
def expected_of(model: tuple[HostRunner, ConstraintCompiler]) -> Callable[[int], list[Outcome]]:
    """What every prompt gives with every option, by seed."""
    return cache(lambda seed: plain(*model, list(OPTIONS), seed))


@pytest.fixture(scope="module")
def draft_runners(model: tuple[HostRunner, ConstraintCompiler]) -> Iterator[dict[str, DraftRunner]]:
    """The model itself, and one of the same shape with random weights."""
    runner, _ = model
    runners = {}
    for name, weights in (("same", "safetensors"), ("random", "dummy")):
        config = replace(runner.config, draft_model=runner.config.model, weights=weights)
        runners[name] = DraftRunner(config, runner)
        runners[name].load()
    yield runners
    for each in runners.values():
        each.close()


@pytest.mark.parametrize("name", ["same", "random"])
def test_a_draft_model_keeps_every_text(
    model: tuple[HostRunner, ConstraintCompiler],
    draft_runners: dict[str, DraftRunner],
    expected_of: Callable[[int], list[Outcome]],
    name: str,
) -> None:
    """The same model draws what the model draws, under every option; another one does not, and changes nothing."""
    runner, compiler = model
    for seed in range(sized(20, usual=1)):
        names = list(OPTIONS)
        expected = expected_of(seed)

        def with_model(engine: Engine) -> Drafter:
            drafting = DraftModel(runner.config, draft_runners[name], runner.model_config.vocab_size)
            drafting.cost.observe(StepSize(1, 1, 10), 1e-3)
            return Drafter((), FreeCost(), model=ModelPolicy(drafting, FreeCost()))

        world = World(runner, compiler, with_model, max_rows=8, max_step_tokens=96)
        requests = [
            world.add(runner.tokenizer.encode(prompt, is_start=True), OPTIONS[option], seed=seed + index)
            for index, prompt in enumerate(PROMPTS)
            for option in names
        ]
        world.run()
        for found, wanted, option in zip(world.outcomes, expected, names * len(PROMPTS), strict=True):
            assert_same(found, wanted, option)
        uses = {
            request: request.stats.drafts["draft_model"]
            for request, option in zip(requests, names * len(PROMPTS), strict=True)
            if request.stats.drafts and option not in CUT
        }
        # how often a model that is always wrong is tried depends on the clock
        assert len(uses) > (len(PROMPTS) * 5 if name == "same" else 0)
        drafted, accepted = map(sum, zip(*uses.values(), strict=True))
        assert accepted == drafted if name == "same" else accepted < 0.5 * drafted
        assert world.drafter.model is not None
        world.drafter.model.pages.check()
        assert world.drafter.model.pages.cache.num_in_use == 0


@pytest.mark.parametrize("rounds", [2])
def test_every_source_keeps_every_text(
    model: tuple[HostRunner, ConstraintCompiler], expected_of: Callable[[int], list[Outcome]], rounds: int
) -> None:
    """In the second round the tree and the call site know the texts."""
    runner, compiler = model
    for seed in range(sized(20, usual=1)):
        names = list(OPTIONS)
        expected = expected_of(seed)
        world = World(runner, compiler, sources)
        for _ in range(rounds):
            world.outcomes.clear()
            for index, prompt in enumerate(PROMPTS):
                for name in names:
                    world.add(runner.tokenizer.encode(prompt, is_start=True), OPTIONS[name], seed=seed + index)
            world.run()
            for found, wanted, name in zip(world.outcomes, expected, names * len(PROMPTS), strict=True):
                assert_same(found, wanted, name)
        assert set(world.drafter.num_accepted) >= {"own_text", "stored_text"}


@pytest.mark.parametrize(("limit", "wrong"), [(1, 0.0), (3, 0.4), (7, 0.0), (16, 0.1), (16, 1.0)])
def test_right_and_wrong_drafts_keep_every_text(
    model: tuple[HostRunner, ConstraintCompiler], limit: int, wrong: float
) -> None:
    """Rows take turns, and share steps with prompts in chunks."""
    runner, compiler = model
    rng = random.Random(f"{limit}{wrong}")
    names = list(OPTIONS) if is_long() else rng.sample(list(OPTIONS), 7)
    expected = plain(runner, compiler, names, 3)
    texts: dict[Request, list[int]] = {}
    wrong_ids = [*runner.tokenizer.eos_token_ids, *rng.sample(range(300, 500), 8)]

    def oracle(engine: Engine) -> Drafter:
        source = Oracle(lambda request: texts[request], wrong=wrong, wrong_ids=wrong_ids)
        return Drafter([source], FreeCost(), max_draft_tokens=limit)

    world = World(runner, compiler, oracle, max_rows=8, max_step_tokens=96)
    cases = [(index, name) for index in range(len(PROMPTS)) for name in names]
    for (index, name), wanted in zip(cases, expected, strict=True):
        request = world.add(runner.tokenizer.encode(PROMPTS[index], is_start=True), OPTIONS[name], seed=3 + index)
        texts[request] = wanted.token_ids
    world.run()
    for found, wanted, (_, name) in zip(world.outcomes, expected, cases, strict=True):
        assert_same(found, wanted, name)
    drafted, accepted = world.drafter.num_drafted["oracle"], world.drafter.num_accepted["oracle"]
    assert drafted > 0
    if wrong == 0.0:
        assert accepted >= 0.99 * drafted, "only a steered token or a stop may cut a right draft"
    if wrong == 1.0:
        assert accepted < 0.05 * drafted


def test_choices_of_one_prompt_keep_their_texts(model: tuple[HostRunner, ConstraintCompiler]) -> None:
    runner, compiler = model
    prompt = runner.tokenizer.encode(PROMPTS[1], is_start=True)
    outcomes = []
    for drafter in (None, sources):
        world = World(runner, compiler, drafter)
        for choice in range(4):
            world.add(prompt, {"temperature": 0.9}, seed=11, choice=choice)
        world.run()
        outcomes.append([outcome.token_ids for outcome in world.outcomes])
    assert outcomes[0] == outcomes[1]
    assert len({tuple(each) for each in outcomes[0]}) > 1


def test_tokens_that_other_threads_accept_keep_their_texts(
    model: tuple[HostRunner, ConstraintCompiler], monkeypatch: pytest.MonkeyPatch
) -> None:
    """A token with which the constraint has much work ends what is taken of a draft, and is applied between two steps."""
    runner, compiler = model
    names = ["schema", "steered"]
    expected = plain(runner, compiler, names, 5)
    monkeypatch.setattr("rtlang.engine.engine.MAX_WORK", 0)
    world = World(runner, compiler, sources)
    num_late = 0
    accept_late = world.engine.preparation.accept_late

    def count_late(request: Request) -> None:
        nonlocal num_late
        num_late += 1
        accept_late(request)

    monkeypatch.setattr(world.engine.preparation, "accept_late", count_late)
    for _ in range(2):
        world.outcomes.clear()
        for index, prompt in enumerate(PROMPTS):
            for name in names:
                world.add(runner.tokenizer.encode(prompt, is_start=True), OPTIONS[name], seed=5 + index)
        world.run()
        for found, wanted, name in zip(world.outcomes, expected, names * len(PROMPTS), strict=True):
            assert_same(found, wanted, name)
    assert num_late > 0
    assert world.drafter.num_accepted.total() > 0
