"""The process in which llama.cpp runs. It imports the files beside it only, so that its memory is that of llama.cpp.

    python llama_cpp_worker.py '{"model": "...", "libraries": "...", "num_tokens": 8192, "num_threads": 2, "cores": [0, 1]}'

Reads one workload per line of standard input and writes one line of results; the first line that it writes says that a first token was
generated. Batching is continuous: a step has one token of every sequence that generates, and prompts as far as a batch has room. A request
begins with a copy of what another sequence shares with it, and waits for it while that sequence still computes it.
"""

from __future__ import annotations

import importlib
import json
import os
import sys
from collections import deque
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path
from time import perf_counter, process_time, sleep
from typing import Any, Protocol

NUM_SEQUENCES = 64
BATCH_TOKENS = 2048
LEAST_SHARED = 16
"""Fewer equal tokens are computed again."""

Key = tuple[int, int]


class Context(Protocol):
    """The model and its cache; see `LlamaContext`."""

    @property
    def num_tokens(self) -> int: ...

    def step(self, ids: list[int], positions: list[int], sequences: list[int], wanted: list[bool]) -> bool: ...

    def best(self, index: int) -> int: ...

    def copy_prefix(self, source: int, target: int, length: int) -> None: ...

    def cut(self, sequence: int, length: int) -> None: ...

    def clear(self) -> None: ...


@dataclass
class Sequence:
    """A sequence of the cache.

    Attributes:
        tokens: its prompt and what was generated; of an ended one, what it has in the cache.
        num_computed: tokens that the cache has.
        key: the generation that it runs; None if that has ended.
        num_left: tokens still to be generated.
        used: number of the admission that used it last.
    """

    number: int
    tokens: list[int] = field(default_factory=list)
    num_computed: int = 0
    num_prompt: int = 0
    key: Key | None = None
    num_left: int = 0
    used: int = 0


class Batching:
    """Continuous batching with a context. Greedy."""

    def __init__(self, context: Context, num_sequences: int = NUM_SEQUENCES, batch_tokens: int = BATCH_TOKENS) -> None:
        self._context, self._batch_tokens = context, batch_tokens
        self._sequences = [Sequence(number) for number in range(num_sequences)]
        self._waiting: deque[tuple[Key, list[int], int]] = deque()
        self._num_admitted = 0
        self.num_cached_tokens = 0
        context.clear()

    @property
    def is_idle(self) -> bool:
        """Whether no request runs or waits."""
        return not self._waiting and not self._running()

    def add(self, key: Key, prompt: list[int], num_tokens: int) -> None:
        """A request for so many tokens.

        Raises:
            ValueError: the cache is smaller than it.
        """
        if len(prompt) + num_tokens > self._context.num_tokens:
            raise ValueError(f"{len(prompt)} + {num_tokens} tokens: the cache has {self._context.num_tokens}")
        self._waiting.append((key, prompt, num_tokens))

    def step(self) -> dict[Key, tuple[list[int], bool]]:
        """One batch; returns the tokens so far of every request that got one, and whether it has ended."""
        self._admit()
        running = sorted(self._running(), key=lambda each: (each.num_computed < each.num_prompt, each.used))
        parts: list[tuple[Sequence, int]] = []
        room = self._batch_tokens
        for sequence in running:  # those that generate come first
            count = min(len(sequence.tokens) - sequence.num_computed, room)
            if count:
                parts.append((sequence, count))
                room -= count
        while not self._compute(parts):
            self._make_room()
        answers: dict[Key, tuple[list[int], bool]] = {}
        at = -1
        for sequence, count in parts:
            at += count
            sequence.num_computed += count
            if sequence.num_computed < len(sequence.tokens):
                continue
            key = sequence.key
            assert key is not None
            sequence.tokens.append(self._context.best(at))
            sequence.num_left -= 1
            output = sequence.tokens[sequence.num_prompt :]
            if not sequence.num_left:
                sequence.key = None
                sequence.tokens.pop()  # the last token was never computed
            answers[key] = output, sequence.key is None
        return answers

    def _running(self) -> list[Sequence]:
        return [each for each in self._sequences if each.key is not None]

    def _admit(self) -> None:
        """Give sequences to requests, the longest waiting first."""
        held: list[tuple[Key, list[int], int]] = []
        while self._waiting:
            key, prompt, num_tokens = self._waiting.popleft()
            reserved = sum(len(each.tokens) + each.num_left for each in self._running())
            idle = [each for each in self._sequences if each.key is None]
            if not idle or reserved + len(prompt) + num_tokens > self._context.num_tokens:
                held.append((key, prompt, num_tokens))
                break
            source, shared = self._source(prompt)
            if source is not None and source.key is not None and source.num_computed < shared:
                held.append((key, prompt, num_tokens))  # until it is computed
                continue
            self._start(key, prompt, num_tokens, idle, source, shared)
        self._waiting.extendleft(reversed(held))

    def _source(self, prompt: list[int]) -> tuple[Sequence | None, int]:
        """The sequence that shares most of a prompt, and how many tokens it shares; at least the last one is computed again."""
        most, found = 0, None
        for each in self._sequences:
            shared = _num_equal(each.tokens, prompt[:-1])
            if shared > most or (shared == most and found is not None and each.num_computed > found.num_computed):
                most, found = shared, each
        return (found, most) if most >= LEAST_SHARED else (None, 0)

    def _start(
        self, key: Key, prompt: list[int], num_tokens: int, idle: list[Sequence], source: Sequence | None, shared: int
    ) -> None:
        if source is not None and source.key is None and shared == len(source.tokens):
            target = source  # a continuation
        else:
            target = min((each for each in idle if each is not source or len(idle) == 1), key=lambda each: each.used)
            if target is source:
                self._context.cut(target.number, shared)
            else:
                self._context.cut(target.number, 0)
                if source is not None:
                    self._context.copy_prefix(source.number, target.number, shared)
        self._num_admitted += 1
        if source is not None:
            source.used = self._num_admitted
        self.num_cached_tokens += shared
        target.tokens, target.num_prompt, target.num_computed = list(prompt), len(prompt), shared
        target.key, target.num_left, target.used = key, num_tokens, self._num_admitted

    def _compute(self, parts: list[tuple[Sequence, int]]) -> bool:
        ids: list[int] = []
        positions: list[int] = []
        sequences: list[int] = []
        wanted: list[bool] = []
        for sequence, count in parts:
            end = sequence.num_computed + count
            ids += sequence.tokens[sequence.num_computed : end]
            positions += range(sequence.num_computed, end)
            sequences += [sequence.number] * count
            wanted += [False] * (count - 1) + [end == len(sequence.tokens)]
        return self._context.step(ids, positions, sequences, wanted)

    def _make_room(self) -> None:
        """Forget the ended sequence that was used longest ago."""
        kept = [each for each in self._sequences if each.key is None and each.tokens]
        if not kept:
            raise MemoryError("the cache has no room for the running sequences")
        oldest = min(kept, key=lambda each: each.used)
        self._context.cut(oldest.number, 0)
        oldest.tokens, oldest.num_computed = [], 0


def run(
    batching: Batching,
    programs: Any,
    clock: Callable[[], float] = perf_counter,
    sleep: Callable[[float], None] = sleep,
) -> dict[str, Any]:
    """Run `PlainPrograms`; returns times and outputs as plain data."""
    started, cpu_started = clock(), process_time()
    while not programs.is_done:
        for key in programs.take_due(clock() - started):
            batching.add(key, programs.start(key), programs.node(key)["max_tokens"])
        if batching.is_idle:
            sleep(max(0.0, programs.next_s - (clock() - started)))
            continue
        answers = batching.step()
        now = clock() - started
        for key, (token_ids, is_done) in answers.items():
            programs.note_output(key, now)
            if is_done:
                programs.finish(key, token_ids, now)
    results: dict[str, Any] = programs.results(clock() - started)
    return {**results, "cpu_s": process_time() - cpu_started, "num_cached_tokens": batching.num_cached_tokens}


def _num_equal(first: list[int], second: list[int]) -> int:
    """How many tokens two sequences begin with alike."""
    most = min(len(first), len(second))
    if first[:most] == second[:most]:
        return most
    return next(index for index in range(most) if first[index] != second[index])


def main() -> None:
    settings = json.loads(sys.argv[1])
    os.sched_setaffinity(0, settings["cores"])
    library_module = importlib.import_module("llama_cpp_library")  # beside this file
    plain = importlib.import_module("plain_programs")
    library = library_module.LlamaCpp(Path(settings["libraries"]))
    context = library_module.LlamaContext(
        library,
        Path(settings["model"]),
        num_tokens=settings["num_tokens"],
        num_sequences=NUM_SEQUENCES,
        num_threads=settings["num_threads"],
    )
    context.step([0], [0], [0], [True])
    context.best(0)
    print(json.dumps({"version": library.version_name, "cpu_s": process_time()}), flush=True)
    vocabulary = context.vocabulary
    for line in sys.stdin:
        workload = json.loads(line)
        programs = plain.PlainPrograms(workload["programs"], workload["arrivals_s"], vocabulary.tokens, vocabulary.text)
        print(json.dumps(run(Batching(context), programs)), flush=True)


if __name__ == "__main__":
    main()
