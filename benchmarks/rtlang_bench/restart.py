"""Measures the time to the first token of a known prompt after a restart: with an empty pool, and with its pages in `cache_dir`.

python -m rtlang_bench.restart

Each figure is of a runtime of its own, so nothing but the directory survives. The text must be the same with and without.
"""

from __future__ import annotations

import random
import statistics
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Annotated, Any

import typer

from rtlang.bench.checkpoint import write_random_llama
from rtlang.console.one_line_errors import one_line_errors
from rtlang.console.options import with_settings
from rtlang.contract.config import EMBEDDED_MODEL, RuntimeConfig
from rtlang.contract.params import SamplingParams
from rtlang.model.loader import model_directory
from rtlang.runtime.runtime import Runtime
from rtlang_bench.command import command, progress, show

GOAL = 5.0
"""A warm restart is so many times sooner than a cold one."""
_EMBEDDED_MODEL_TOKENS = 1000
_PARAMS = SamplingParams(max_tokens=8, ignore_eos=True)


@dataclass(frozen=True, slots=True)
class WarmRestart:
    """Seconds to the first token, and from the start of the runtime to its first token, in each round.

    Attributes:
        num_bytes: of the files on disk.
    """

    num_tokens: int
    num_bytes: int
    cold_s: tuple[float, ...]
    warm_s: tuple[float, ...]
    is_same_text: bool

    @property
    def ratio(self) -> float:
        """How many times sooner the first token of a warm restart is, by the medians."""
        return statistics.median(self.cold_s) / statistics.median(self.warm_s)

    @property
    def is_met(self) -> bool:
        """Whether the goal is met, with the same text."""
        return self.is_same_text and self.ratio >= GOAL

    def __str__(self) -> str:
        cold, warm = statistics.median(self.cold_s), statistics.median(self.warm_s)
        return (
            f"first token on a known prefix of {self.num_tokens} tokens: cold {cold * 1000:.0f} ms, after a restart with "
            f"{self.num_bytes / 2**20:.0f} MiB on disk {warm * 1000:.0f} ms: {self.ratio:.1f}x sooner "
            f"(goal: {GOAL:g}x; {'same' if self.is_same_text else 'DIFFERENT'} text)"
        )


def measure_warm_restart(
    config: RuntimeConfig, *, num_tokens: int = 4000, rounds: int = 3, tell: Callable[[str], None] = lambda line: None
) -> WarmRestart:
    """Measure `rounds` cold starts and as many warm ones, in turns.

    Args:
        config: its model; if it is the embedded one and the prompt is too long for it, a random Llama of 36 million parameters.
    """
    with TemporaryDirectory() as folder:
        if config.model == EMBEDDED_MODEL and num_tokens > _EMBEDDED_MODEL_TOKENS:
            config = replace(
                config, model=str(write_random_llama(Path(folder, "model"), model_directory(EMBEDDED_MODEL)))
            )
        generator, pages = random.Random(0), Path(folder, "pages")
        prompt = [generator.randrange(100, 20_000) for _ in range(num_tokens)]
        tell("filling the cache directory")
        texts = {_first_token(replace(config, cache_dir=str(pages)), prompt)[1]}
        cold, warm = list[float](), list[float]()
        for number in range(rounds):
            tell(f"round {number + 1} of {rounds}")
            for times, settings in ((cold, config), (warm, replace(config, cache_dir=str(pages)))):
                seconds, text = _first_token(settings, prompt)
                times.append(seconds)
                texts.add(text)
        num_bytes = sum(path.stat().st_size for path in pages.rglob("*") if path.is_file())
    return WarmRestart(num_tokens, num_bytes, tuple(cold), tuple(warm), len(texts) == 1)


def _first_token(config: RuntimeConfig, prompt: Sequence[int]) -> tuple[float, tuple[int, ...]]:
    """Seconds to the first token of a new runtime, which has loaded, and all tokens."""
    with Runtime(config=config) as runtime:
        vocab_size = runtime.text_service.info.vocab_size
        ids = [each % vocab_size for each in prompt]
        runtime.generate(token_ids=ids[-1:], params=_PARAMS).result()  # compiles what the first step needs
        started = time.perf_counter()
        generation = runtime.generate(token_ids=ids, params=_PARAMS)
        next(iter(generation))
        seconds = time.perf_counter() - started
        return seconds, generation.result().completions[0].token_ids


@with_settings(RuntimeConfig, "settings")
def bench_restart(
    settings: dict[str, Any],
    tokens: Annotated[int, typer.Option(min=64, max=1_000_000, help="Length of the known prompt.")] = 4000,
    rounds: Annotated[int, typer.Option(min=1, max=100, help="Cold and warm starts; the medians count.")] = 3,
) -> None:
    """Measure the first token of a known prompt after a restart, with and without a cache directory.

    Exits with code 1 if the first token does not come at least 5 times sooner with the directory, or if the texts differ.
    """
    with one_line_errors():
        with progress() as tell:
            found = measure_warm_restart(RuntimeConfig(**settings), num_tokens=tokens, rounds=rounds, tell=tell)
        show(found)


app = command(bench_restart)

if __name__ == "__main__":
    app()
