"""Filters on a model in float32: each text is that of the request alone, in any company, in chunks, after a preemption and cut anywhere."""

from __future__ import annotations

import math
import random
import re
from collections.abc import Iterator
from typing import Any

import pytest

from rtlang.contract.config import RuntimeConfig
from rtlang.contract.errors import ParameterError
from rtlang.engine.constraints.compiler import ConstraintCompiler
from rtlang.engine.requests.request import Request
from rtlang.model.host_runner import HostRunner
from rtlang_grammars import Constraint, ConstraintKind
from tests.engine.drafts.test_drafter_exactness import PROMPTS, RULES, SCHEMA, World, assert_same, sources
from tests.support.long_tests import is_long

OPTIONS: dict[str, dict[str, Any]] = {
    "plain": {"temperature": 0.9},
    "bad_words": {"bad_words": ("the", "a", "and"), "temperature": 1.0},
    "ngrams": {"no_repeat_ngram_size": 2},
    "allowed": {"allowed_token_ids": tuple(range(100, 400, 3)), "temperature": 1.0},
    "typical": {"typical_p": 0.5, "temperature": 1.0, "logprobs": 2},
    "sigma": {"top_n_sigma": 1.5, "temperature": 1.6, "presence_penalty": 0.5},
    "xtc": {"xtc_probability": 0.5, "xtc_threshold": 0.03, "temperature": 0.8, "min_p": 0.01},
    "dry": {"dry_multiplier": 1.2, "dry_allowed_length": 1},
    "dynatemp": {"temperature": 1.0, "dynatemp_range": 0.9, "dynatemp_exponent": 0.8},
    "mirostat": {"mirostat": 2, "mirostat_tau": 2.0, "mirostat_eta": 0.3, "temperature": 1.0, "logprobs": 100},
    "constrained": {
        "constraint": SCHEMA,
        "temperature": 1.0,
        "typical_p": 0.6,
        "xtc_probability": 0.5,
        "dry_multiplier": 0.7,
    },
    "rules": {"constraint": RULES, "temperature": 0.8, "max_tokens": 30},
    "steered": {"constraint": SCHEMA, "temperature": 1.3, "mirostat": 2, "mirostat_tau": 3.0, "max_tokens": 26},
}

INDICES = range(len(PROMPTS)) if is_long() else (1, 2)
"""The prompts that are tried."""


@pytest.fixture(scope="module")
def model() -> Iterator[tuple[HostRunner, ConstraintCompiler]]:
    config = RuntimeConfig(dtype="float32", num_threads=1, num_pages=512, grammar_timeout_s=60)  # with native code
    runner = HostRunner(config)
    runner.load()
    compiler = ConstraintCompiler(config, runner.tokenizer, runner.model_config.vocab_size)
    yield runner, compiler
    compiler.close()
    runner.close()


def add(world: World, runner: HostRunner, index: int, name: str, **rest: Any) -> Request:
    prompt = runner.tokenizer.encode(PROMPTS[index], is_start=True)
    return world.add(prompt, OPTIONS[name], seed=7 + index, **rest)


@pytest.fixture(scope="module")
def alone(model: tuple[HostRunner, ConstraintCompiler]) -> dict[tuple[int, str], Any]:
    """What each request gives out in an engine of its own."""
    found = {}
    for index in INDICES:
        for name in OPTIONS:
            world = World(*model)
            add(world, model[0], index, name)
            world.run()
            found[index, name] = world.outcomes[0]
    return found


def test_the_filters_do_what_they_say(
    model: tuple[HostRunner, ConstraintCompiler], alone: dict[tuple[int, str], Any]
) -> None:
    tokenizer = model[0].tokenizer
    for index in INDICES:
        for word in ("the", "a", "and"):
            for form in (word, f" {word}"):
                sequence = tokenizer.encode(form, is_start=False)
                written = alone[index, "bad_words"].token_ids
                assert not any(written[i : i + len(sequence)] == sequence for i in range(len(written)))
        whole = tokenizer.encode(PROMPTS[index], is_start=True)
        new = len(whole)
        whole += alone[index, "ngrams"].token_ids
        assert len(whole) > new + 5
        assert not any(
            whole[i - 1 : i + 1] == whole[j - 1 : j + 1] for i in range(new, len(whole)) for j in range(1, i)
        )
        assert set(alone[index, "allowed"].token_ids) <= set(OPTIONS["allowed"]["allowed_token_ids"])
        assert len({tuple(alone[index, name].token_ids) for name in OPTIONS}) > len(OPTIONS) - 3


@pytest.mark.parametrize("drafts", [False, True])
@pytest.mark.parametrize("settings", [{}, {"max_rows": 4, "max_running": 9, "max_step_tokens": 24}], ids=str)
def test_texts_are_the_same_in_company_in_chunks_and_after_preemptions(
    model: tuple[HostRunner, ConstraintCompiler],
    alone: dict[tuple[int, str], Any],
    drafts: bool,
    settings: dict[str, Any],
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    runner, compiler = model
    if settings:
        monkeypatch.setattr(HostRunner, "num_pages", 17)  # too few for all that run
    world = World(runner, compiler, sources if drafts else None, **settings)
    cases = [(index, name) for index in INDICES for name in OPTIONS]
    random.Random(str(settings)).shuffle(cases)
    requests = [add(world, runner, index, name) for index, name in cases]
    world.run()
    for case, outcome in zip(cases, world.outcomes, strict=True):
        assert_same(outcome, alone[case], case[1])
    preempted = {name for request, (_, name) in zip(requests, cases, strict=True) if request.stats.num_preemptions}
    assert bool(preempted) == bool(settings)
    drafted = {name for request, (_, name) in zip(requests, cases, strict=True) if request.stats.drafts}
    assert not drafted & {"mirostat", "steered"}
    assert len(drafted) > 3 if drafts else not drafted


@pytest.mark.parametrize("name", list(OPTIONS))
def test_a_text_goes_on_wherever_it_is_cut(
    model: tuple[HostRunner, ConstraintCompiler], alone: dict[tuple[int, str], Any], name: str
) -> None:
    runner, compiler = model
    for index in INDICES:
        whole = alone[index, name]
        world = World(runner, compiler)
        cuts = sorted({0, 1, len(whole.token_ids) // 2, len(whole.token_ids) - 1, len(whole.token_ids)})
        requests = [add(world, runner, index, name, given_ids=whole.token_ids[:cut]) for cut in cuts]
        world.run()
        for cut, request, outcome in zip(cuts, requests, world.outcomes, strict=True):
            assert request.output_token_ids == whole.token_ids
            assert outcome.end == whole.end
            assert outcome.token_ids == whole.token_ids[cut:]
            assert whole.text.endswith(outcome.text)
            assert request.output_text.text == whole.text


def test_the_rules_of_a_grammar_set_temperatures_and_capture_texts(
    model: tuple[HostRunner, ConstraintCompiler],
) -> None:
    """Each token is the one that a request with this temperature samples there, under the grammar without options."""
    runner, compiler = model
    prompt = runner.tokenizer.encode(PROMPTS[1], is_start=True)
    plain = Constraint(ConstraintKind.LARK, re.sub(r"\[.*\]:", ":", RULES.source))
    world = World(runner, compiler)
    request = world.add(prompt, {"constraint": RULES, "temperature": 0.7, "max_tokens": 30}, seed=5)
    world.run()
    text, token_ids = world.outcomes[0].text, world.outcomes[0].token_ids
    found = re.fullmatch(r"name: ([A-Za-z ]{4,12}); mood: ([a-z]{3,9})((?:; age: [0-9]{1,2})+)", text)
    assert found is not None
    ages = tuple(re.findall("[0-9]+", found[3]))
    assert request.results.captures == {"name": (found[1],), "mood": (found[2],), "ages": ages}
    matcher, temperatures = request.session.matcher.fork(), list[float]()
    matcher.rollback(len(token_ids) + matcher.is_terminated)
    for token_id in token_ids:
        temperatures.append(0.7 if matcher.temperature is None else matcher.temperature)
        assert matcher.accept_token(token_id)
    assert {0.0, 0.7, 1.4} == set(temperatures)
    again = World(runner, compiler)
    for at, temperature in enumerate(temperatures):
        options = {"constraint": plain, "temperature": temperature, "max_tokens": 30}
        again.add(prompt, options, seed=5, given_ids=token_ids[:at])
    again.run()
    assert [outcome.token_ids[0] for outcome in again.outcomes] == token_ids


def test_mirostat_learns_its_limit_from_the_surprise_of_each_token(
    model: tuple[HostRunner, ConstraintCompiler],
) -> None:
    """Computed again in float64 from the reported log-probabilities."""
    tau, eta = 1.0, 0.2
    options = {"mirostat": 2, "mirostat_tau": tau, "mirostat_eta": eta, "temperature": 1.0, "logprobs": 100}
    for prompt in PROMPTS:
        world = World(*model)
        request = world.add(model[0].tokenizer.encode(prompt, is_start=True), options, seed=3)
        world.run()
        limit = 2 * tau
        for logprob in world.outcomes[0].logprobs:
            bits = {token_id: -value / math.log(2) for token_id, value in logprob.top}
            assert len(bits) == 100
            left = {token_id for token_id in bits if bits[token_id] <= limit} or {min(bits, key=bits.__getitem__)}
            assert logprob.token_id in left
            assert len(left) < 100
            total = math.fsum(2.0 ** -bits[token_id] for token_id in left)
            limit -= eta * (bits[logprob.token_id] + math.log2(total) - tau)
        assert request.max_surprise == pytest.approx(limit, abs=1e-3)


def test_a_seed_repeats_a_text_and_another_gives_another(model: tuple[HostRunner, ConstraintCompiler]) -> None:
    runner, compiler = model
    prompt = runner.tokenizer.encode(PROMPTS[1], is_start=True)
    for name in ("typical", "xtc", "mirostat", "dynatemp"):
        world = World(runner, compiler)
        for seed in (3, 3, 4, 5):
            world.add(prompt, OPTIONS[name], seed=seed)
        world.run()
        first, again, *others = (outcome.token_ids for outcome in world.outcomes)
        assert first == again
        assert all(other != first for other in others)


def test_given_tokens_that_the_constraint_refuses_end_the_request(model: tuple[HostRunner, ConstraintCompiler]) -> None:
    runner, compiler = model
    for name in ("steered", "constrained"):
        world = World(runner, compiler)
        add(world, runner, 2, name, given_ids=runner.tokenizer.encode("no JSON", is_start=False))
        world.run()
        assert "not allowed by the constraint" in world.outcomes[0].end[2]


def test_a_text_without_any_token_left_ends_with_the_options_that_left_none(
    model: tuple[HostRunner, ConstraintCompiler],
) -> None:
    world = World(*model)
    prompt = model[0].tokenizer.encode(PROMPTS[0], is_start=True)
    world.add(prompt, {"constraint": SCHEMA, "allowed_token_ids": (300,), "no_repeat_ngram_size": 2}, seed=1)
    world.run()
    error = world.outcomes[0].end[2]
    assert "no token is allowed (by the constraint and allowed_token_ids, no_repeat_ngram_size together)" in error


def test_an_allowed_token_that_the_model_lacks_is_refused(model: tuple[HostRunner, ConstraintCompiler]) -> None:
    runner, compiler = model
    world = World(runner, compiler)
    with pytest.raises(ParameterError, match="allowed_token_ids = 99999999: expected a token id below"):
        world.add([5], {"allowed_token_ids": (99999999,)}, seed=0)
