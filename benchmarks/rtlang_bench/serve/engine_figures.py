"""Figures of the engine alone, on runtimes in this process."""

from __future__ import annotations

import math
import time
from collections.abc import Iterator
from dataclasses import replace

from rtlang.contract.config import RuntimeConfig
from rtlang.contract.errors import OverloadError
from rtlang.contract.params import Constraint, ConstraintKind
from rtlang.contract.request_graph import RequestGraph
from rtlang.runtime.runtime import Runtime
from rtlang_bench.figure import Figure
from rtlang_bench.serve.streams import Recorder, generation

STORY = "Once upon a time, in a small town by the sea, there lived "
WAIT_S = 120.0


def run_all(runtime: Runtime, graphs: list[RequestGraph], seeds: list[int]) -> list[Recorder]:
    """Submit graphs together and wait for their ends."""
    recorders = [Recorder().submit(runtime, graph, seed=seed) for graph, seed in zip(graphs, seeds, strict=True)]
    for each in recorders:
        each.wait(WAIT_S)
    return recorders


def cancel_figure(config: RuntimeConfig) -> Figure:
    """Steps that end after a cancel, besides the one in progress, until the pages of the request are back."""
    most = 0
    with Runtime(config=config) as runtime:
        for number in range(5):
            bystander = Recorder().submit(runtime, generation("A bystander: ", max_tokens=2000, ignore_eos=True))
            victim = Recorder().submit(runtime, generation(f"{number} " + STORY * 4, max_tokens=2000, ignore_eos=True))
            _until(lambda each=victim: len(each.times) >= 5)
            before = runtime.stats()["num_steps"]
            victim.cancel()
            victim.wait(WAIT_S)
            most = max(most, runtime.stats()["num_steps"] - before - 1)
            bystander.cancel()
            bystander.wait(WAIT_S)
        pages = runtime.stats()
        left = pages["num_pages"] - pages["num_pages_free"] - pages["num_pages_cached"]
    note = "5 cancelled requests beside a running one" + (f"; {left} pages did not come back" if left else "")
    return Figure("cancel_steps", math.nan if left else max(0, most), "<=", 1, "steps", note)


def over_commit_figures(config: RuntimeConfig) -> Iterator[Figure]:
    """Three times as many pages are wanted as there are: every request ends, with the text that it has alone."""
    graphs = [
        generation(f"{number}. " + STORY, max_tokens=48, temperature=1.0, ignore_eos=True) for number in range(24)
    ]
    seeds = list(range(24))
    with Runtime(config=replace(config, dtype="float32")) as runtime:
        alone = [run_all(runtime, [graph], [seed])[0].text for graph, seed in zip(graphs, seeds, strict=True)]
    with Runtime(config=replace(config, dtype="float32", page_size=16, num_pages=44)) as runtime:
        found = run_all(runtime, graphs, seeds)
        preempted = runtime.stats()["num_preemptions"]
    ended = sum(each.text is not None or isinstance(each.error, OverloadError) for each in found)
    same = sum(each.text in (None, text) for each, text in zip(found, alone, strict=True))
    yield Figure("over_commit_ended", ended, "==", 24, "requests", f"3x the pages, {preempted} preemptions")
    yield Figure("over_commit_same_text", same, "==", 24, "requests")


def batch_shape_figure(config: RuntimeConfig) -> Figure:
    """The number of distinct texts of one seeded request over batch sizes, cold and warm."""
    graph = generation(STORY, max_tokens=40, temperature=1.0, ignore_eos=True)
    texts: set[str | None] = set()
    with Runtime(config=replace(config, dtype="float32")) as runtime:
        for size in (1, 2, 5, 16, 33):
            for is_cold in (True, False):
                if is_cold:
                    runtime.clear_cache()
                others = [generation(f"{n} other ", max_tokens=60, ignore_eos=True) for n in range(size - 1)]
                texts.add(run_all(runtime, [*others, graph], [*range(1, size), 7])[-1].text)
    return Figure("batch_shape_texts", len(texts) if None not in texts else math.nan, "==", 1, "texts", "10 batches")


def text_figures(config: RuntimeConfig) -> Iterator[Figure]:
    """Characters of several bytes are never split, and no part of a stop string is streamed."""
    letters = "é漢😀ß한🎈"
    split = leaked = 0
    with Runtime(config=config) as runtime:
        wide = [
            generation(f"{n}:", constraint=Constraint(ConstraintKind.REGEX, f"[{letters}]{{20}}"), max_tokens=200)
            for n in range(8)
        ]
        for each in run_all(runtime, wide, list(range(8))):
            text = "".join(each.deltas)
            split += each.text is None or text != each.text or "\ufffd" in text or not set(text) <= set(letters)
        free = [generation(STORY + str(n), max_tokens=120, temperature=1.0, ignore_eos=True) for n in range(8)]
        texts = [each.text or "" for each in run_all(runtime, free, list(range(8)))]
        stops = [text[len(text) // 2 :][:6] for text in texts]
        halted = [
            generation(STORY + str(n), max_tokens=120, temperature=1.0, ignore_eos=True, stop=[stops[n]])
            for n in range(8)
        ]
        for number, each in enumerate(run_all(runtime, halted, list(range(len(halted))))):
            expected = texts[number].partition(stops[number])[0]
            leaked += "".join(each.deltas) != expected or each.text != expected
    yield Figure("utf8_split", split, "==", 0, "texts", "8 texts of 20 characters of 2 to 4 bytes")
    yield Figure("stop_leaked", leaked, "==", 0, "texts", f"{len(halted)} texts with a stop string inside")


def _until(condition: object, timeout_s: float = WAIT_S) -> None:
    assert callable(condition)
    end = time.monotonic() + timeout_s
    while not condition() and time.monotonic() < end:
        time.sleep(0.001)
