"""Logits processors of `rt.gen` against those of `transformers` on the same weights, and against brute force."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
import torch
import transformers
from transformers.generation.logits_process import (
    LogitsProcessor,
    LogitsProcessorList,
    NoBadWordsLogitsProcessor,
    NoRepeatNGramLogitsProcessor,
    SequenceBiasLogitsProcessor,
)

import rtlang as rt
from rtlang.serve.server import running_server
from tests.support.models.tiny_models import make_checkpoint

TEXT = "the model said that one of them was here"


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return make_checkpoint(tmp_path_factory.mktemp("processors") / "model")


@pytest.fixture(scope="module")
def model(folder: Path) -> Any:
    return transformers.AutoModelForCausalLM.from_pretrained(folder, dtype=torch.float32)


@pytest.fixture(scope="module", params=["on", "off"])
def runtime(folder: Path, request: Any) -> Iterator[rt.Runtime]:
    with rt.Runtime(str(folder), dtype="float32", speculation=request.param) as made:
        yield made


@rt.program
def generate(s: rt.State, prompt: str, options: dict[str, Any]) -> None:
    s += prompt + rt.gen("x", **options)


def prompt_ids(runtime: rt.Runtime, text: str) -> list[int]:
    tokenizer: Any = runtime.tokenizer
    return [*tokenizer.start_ids(), *tokenizer.encode(text, is_start=True)]


def adapted(processor: LogitsProcessor, prompt: list[int]) -> Callable[[list[int], torch.Tensor], torch.Tensor]:
    """A processor of transformers as a function of the generated tokens."""

    def process(token_ids: list[int], logits: torch.Tensor) -> torch.Tensor:
        scores: torch.Tensor = processor(torch.tensor([prompt + token_ids]), logits[None])
        return scores[0]

    return process


PROCESSORS: dict[str, Callable[[list[int]], LogitsProcessor]] = {
    "no_repeat_ngram": lambda prompt: NoRepeatNGramLogitsProcessor(2),
    "bad_words": lambda prompt: NoBadWordsLogitsProcessor([[each] for each in range(40, 200, 3)]),
    "sequence_bias": lambda prompt: SequenceBiasLogitsProcessor([[[prompt[-1]], 9.0], [[prompt[-1], 7], 20.0]]),
}


@pytest.mark.parametrize("name", sorted(PROCESSORS))
def test_greedy_texts_are_those_of_transformers(name: str, model: Any, runtime: rt.Runtime) -> None:
    prompt = prompt_ids(runtime, TEXT)
    processor = PROCESSORS[name](prompt)
    options = {"max_tokens": 24, "ignore_eos": True}
    found = generate.run(TEXT, {**options, "logits_processors": [adapted(processor, prompt)]}, runtime=runtime)
    with torch.inference_mode():
        expected = model.generate(
            torch.tensor([prompt]),
            logits_processor=LogitsProcessorList([processor]),
            max_new_tokens=24,
            do_sample=False,
            eos_token_id=None,
            pad_token_id=0,
        )[0].tolist()
    assert list(found.meta("x").token_ids) == expected[len(prompt) :]
    assert expected[len(prompt) :] != list(generate.run(TEXT, options, runtime=runtime).meta("x").token_ids)


def test_each_token_is_seen_once_in_its_order_and_beside_others(runtime: rt.Runtime) -> None:
    """A processor with a state forces a text of its own; others of the batch go on as they would alone."""
    forced = [[40 + (row * 7 + at * 3) % 90 for at in range(20)] for row in range(4)]
    seen: list[list[list[int]]] = [[] for _ in forced]

    def forcing(row: int) -> Callable[[list[int], torch.Tensor], torch.Tensor]:
        def process(token_ids: list[int], logits: torch.Tensor) -> torch.Tensor:
            seen[row].append(token_ids)
            changed = torch.full_like(logits, -torch.inf)
            changed[forced[row][len(seen[row]) - 1]] = 0.0
            return changed

        return process

    plain = {"max_tokens": 20, "ignore_eos": True, "temperature": 1.0, "seed": 5}
    alone = generate.run(TEXT, plain, runtime=runtime)["x"]
    inputs = [{"prompt": TEXT, "options": {**plain, "logits_processors": [forcing(row)]}} for row in range(4)]
    inputs.insert(2, {"prompt": TEXT, "options": plain})
    results = generate.run_batch(inputs, runtime=runtime)
    assert results.pop(2)["x"] == alone
    for row, result in enumerate(results):
        assert list(result.meta("x").token_ids) == forced[row]
        assert seen[row] == [forced[row][:at] for at in range(20)]


def test_processors_run_in_order_and_before_penalties_bias_and_masks(runtime: rt.Runtime) -> None:
    tokenizer: Any = runtime.tokenizer
    (one,) = tokenizer.encode("1", is_start=False)
    (two,) = tokenizer.encode("2", is_start=False)

    def only_one(token_ids: list[int], logits: torch.Tensor) -> torch.Tensor:
        logits[:] = 0.0
        logits[one] = 50.0
        return logits

    def then_two(token_ids: list[int], logits: torch.Tensor) -> torch.Tensor:
        assert float(logits[one]) == 50.0
        logits[two] = 60.0
        return logits

    both = {"max_tokens": 4, "ignore_eos": True, "logits_processors": [only_one, then_two]}
    assert generate.run(TEXT, both, runtime=runtime)["x"] == "2222"
    assert generate.run(TEXT, {**both, "logit_bias": {two: -20.0}}, runtime=runtime)["x"] == "1111"
    assert generate.run(TEXT, {**both, "regex": "[13]{4}"}, runtime=runtime)["x"] == "1111"
    assert generate.run(TEXT, {**both, "presence_penalty": 55.0}, runtime=runtime)["x"] == "2133"[:2] + "22"


@pytest.mark.parametrize(
    ("process", "message"),
    [
        (lambda ids, logits: 1 / 0, "ZeroDivisionError: division by zero"),
        (lambda ids, logits: None, "TypeError: it returned NoneType"),
        (lambda ids, logits: logits[:3], r"TypeError: it returned shape \[3\]"),
        (lambda ids: ids, "TypeError: .* takes 1 positional argument but 2 were given"),
    ],
)
def test_a_processor_that_fails_fails_its_generation_alone(process: Any, message: str, runtime: rt.Runtime) -> None:
    options = {"max_tokens": 5, "ignore_eos": True}
    inputs: list[dict[str, Any]] = [
        {"prompt": TEXT, "options": {**options, "logits_processors": [process]}},
        {"prompt": TEXT, "options": options},
    ]
    failed, other = generate.run_batch(inputs, runtime=runtime)
    assert isinstance(failed.error, rt.ParameterError)
    with pytest.raises(rt.ParameterError, match=f"(?s)logits_processors = .*{message}"):
        failed["x"]
    assert other["x"] == generate.run(TEXT, options, runtime=runtime)["x"]


@pytest.mark.parametrize("value", [1, ["a"], [None], "abc"])
def test_only_functions_are_processors(value: Any, runtime: rt.Runtime) -> None:
    with pytest.raises(rt.ParameterError, match="logits_processors"):
        generate.run(TEXT, {"logits_processors": value}, runtime=runtime)


def test_equal_generations_with_processors_are_not_merged(runtime: rt.Runtime) -> None:
    calls: list[int] = []

    class Counting:
        __hash__ = None  # type: ignore[assignment]

        def __call__(self, token_ids: list[int], logits: torch.Tensor) -> torch.Tensor:
            calls.append(len(token_ids))
            return logits

    counting = Counting()

    @rt.program
    def forked(s: rt.State) -> None:
        s += TEXT
        forks = s.fork(2)
        for fork in forks:
            fork += rt.gen("x", max_tokens=3, ignore_eos=True, logits_processors=[counting])
        forks.join()

    first, second = forked.run(runtime=runtime)["x"]
    assert first == second
    assert sorted(calls) == [0, 0, 1, 1, 2, 2]


def test_functions_stay_in_their_process_and_are_not_recorded(runtime: rt.Runtime, tmp_path: Path) -> None:
    options = {"max_tokens": 3, "logits_processors": [lambda ids, logits: logits]}
    message = (
        r"logits_processors = .*: functions run only in a runtime of this process, without a journal or a recording"
    )
    with rt.journal(tmp_path / "journal", runtime), pytest.raises(rt.ParameterError, match=message):
        generate.run(TEXT, options)
    with rt.record(tmp_path / "record", runtime), pytest.raises(rt.ParameterError, match=message):
        generate.run(TEXT, options)
    with running_server(runtime) as url, rt.connect(url) as there:
        with pytest.raises(rt.ParameterError, match=message):
            generate.run(TEXT, options, runtime=there)
        assert generate.run(TEXT, {"max_tokens": 3}, runtime=there)["x"] is not None
