"""The batching of the worker, on a cache whose next token is known and which refuses what llama.cpp refuses."""

from __future__ import annotations

import random
from typing import Any

import pytest

from rtlang.bench.baselines.llama_cpp_worker import Batching, run
from rtlang.bench.baselines.plain_programs import PlainPrograms
from tests.support.engine.encoders import Letters

VOCABULARY = 97


def following(tokens: list[int]) -> int:
    """The next token of a sequence: it depends on all tokens and their places."""
    return sum((index + 1) * token for index, token in enumerate(tokens)) % VOCABULARY


class Cells:
    """A cache of cells that sequences share, with the tokens that each has."""

    def __init__(self, num_tokens: int) -> None:
        self.num_tokens = num_tokens
        self.contents: dict[int, list[tuple[int, object]]] = {}
        self.num_computed = 0
        self.most_rows = 0
        self._found: list[int | None] = []

    def step(self, ids: list[int], positions: list[int], sequences: list[int], wanted: list[bool]) -> bool:
        held = {id(cell) for content in self.contents.values() for _, cell in content}
        if len(held) + len(ids) > self.num_tokens:
            return False
        self._found = []
        for token, position, sequence, is_wanted in zip(ids, positions, sequences, wanted, strict=True):
            content = self.contents.setdefault(sequence, [])
            assert position == len(content)
            content.append((token, object()))
            self._found.append(following([each for each, _ in content]) if is_wanted else None)
        self.num_computed += len(ids)
        self.most_rows = max(self.most_rows, len(set(sequences)))
        return True

    def best(self, index: int) -> int:
        found = self._found[index]
        assert found is not None, "no logits were asked for"
        return found

    def copy_prefix(self, source: int, target: int, length: int) -> None:
        assert not self.contents.get(target)
        assert len(self.contents[source]) >= length
        self.contents[target] = self.contents[source][:length]

    def cut(self, sequence: int, length: int) -> None:
        self.contents[sequence] = self.contents.get(sequence, [])[:length]

    def clear(self) -> None:
        self.contents.clear()


def text_of(prompt: list[int], num_tokens: int) -> list[int]:
    """What is generated without any batching."""
    tokens = list(prompt)
    for _ in range(num_tokens):
        tokens.append(following(tokens))
    return tokens[len(prompt) :]


def finish(batching: Batching) -> dict[Any, list[int]]:
    """The outputs of all requests."""
    done: dict[Any, list[int]] = {}
    for _ in range(10_000):
        if batching.is_idle:
            return done
        for key, (tokens, is_done) in batching.step().items():
            assert key not in done
            if is_done:
                done[key] = tokens
    raise AssertionError("it does not end")


@pytest.mark.parametrize("seed", range(12))
def test_texts_do_not_depend_on_batches_prefixes_or_room(seed: int) -> None:
    dice = random.Random(seed)
    cells = Cells(dice.choice([160, 400, 4_000]))
    batching = Batching(cells, num_sequences=dice.choice([1, 2, 5, 16]), batch_tokens=dice.choice([8, 33, 512]))
    stems = [[dice.randrange(VOCABULARY) for _ in range(dice.randint(1, 60))] for _ in range(3)]
    expected: dict[tuple[int, int], list[int]] = {}
    got: dict[tuple[int, int], list[int]] = {}
    for turn in range(3):
        for number in range(8):
            stem = dice.choice(stems)
            if dice.random() < 0.3:
                stems.append(stem + text_of(stem, 20))  # a later request may continue it
            prompt = stem + [dice.randrange(VOCABULARY) for _ in range(dice.randint(0, 4))]
            length = dice.randint(1, 30)
            if len(prompt) + length > cells.num_tokens:
                continue
            expected[turn, number] = text_of(prompt, length)
            batching.add((turn, number), prompt, length)
        got |= finish(batching)
    assert got == expected


def test_a_prefix_is_computed_once_and_requests_run_together() -> None:
    cells = Cells(2_000)
    batching = Batching(cells)
    stem = [index * 7 % VOCABULARY for index in range(300)]
    for number in range(6):
        batching.add((number, 0), [*stem, number], 10)
    outputs = finish(batching)
    assert outputs == {(number, 0): text_of([*stem, number], 10) for number in range(6)}
    assert batching.num_cached_tokens == 5 * 300
    assert cells.num_computed == 300 + 6 * 10
    assert cells.most_rows >= 5
    turn = [*stem, 3, *outputs[3, 0], 1, 2]
    batching.add((9, 0), turn, 4)  # continues an ended one
    assert finish(batching) == {(9, 0): text_of(turn, 4)}
    assert cells.num_computed == 300 + 6 * 10 + 3 + 3  # its last token was never computed


def test_a_request_that_never_fits_is_refused() -> None:
    with pytest.raises(ValueError, match="9 \\+ 3 tokens: the cache has 10"):
        Batching(Cells(10)).add((0, 0), [1] * 9, 3)


def test_programs_are_run_when_they_are_due() -> None:
    graph = [
        {"id": -1, "parent": None, "tokens": [1, 2, 3]},
        {"id": 1, "parent": -1, "max_tokens": 2, "schema": None},
        {"id": 2, "caller": 1, "delay_s": 0.5, "text": "d", "parent": None},
        {"id": 3, "parent": 1, "parts": [2]},
        {"id": 4, "parent": 3, "max_tokens": 1, "schema": None},
    ]
    now, slept = [0.0], []

    def sleep(seconds: float) -> None:
        slept.append(seconds)
        now[0] += seconds

    letters = Letters()
    programs = PlainPrograms([graph], [], lambda text: letters.encode(text, is_start=False), letters.decode)
    results = run(Batching(Cells(100)), programs, lambda: now[0], sleep)
    first = text_of([1, 2, 3], 2)
    second = text_of([1, 2, 3, *first, *letters.encode("d", is_start=False)], 1)
    assert results["outputs"] == [[0, 1, first], [0, 4, second]]
    assert slept == [0.5]
    assert results["num_cached_tokens"] == 0
    assert results["num_prompt_tokens"] == 3 + 6
