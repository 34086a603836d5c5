"""One run that holds a model to `transformers`: greedy, float32, ragged, chunked, preempted, over shared prefixes."""

from __future__ import annotations

import logging
import random
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest
import torch

from rtlang.contract.config import RuntimeConfig
from rtlang.contract.errors import ModelLoadError
from rtlang.contract.params import SamplingParams
from rtlang.contract.step import Row, Step
from rtlang.model.batch import Batch
from rtlang.model.device_runner import DeviceRunner
from rtlang.model.gpu import sync_check
from rtlang.model.host_runner import HostRunner
from rtlang.model.layers.attention import StepAttention
from tests.support.engine.engine_driver import EngineDriver
from tests.support.models.families import MAX_LEN, Family, make_config
from tests.support.models.state_check import state_errors
from tests.support.models.tiny_models import random_model, save_checkpoint

_PAGE_SIZE = 4
_NUM_SHARED = 22
_TIE = 1e-4
"""Logits that differ by less may come in either order: sums of another order differ by about 1e-5."""


_STATE_TOLERANCE = 1e-4
"""Relative error of a token's logits; a state that is wrong by one token moves them by 1e-2 and more."""


@dataclass(frozen=True, slots=True)
class Load:
    """What is asked of the runtime: prompts as (shared tokens, own tokens), and tokens to generate for each.

    Attributes:
        num_pages: too few for all prompts at a time, so that rows are preempted.
    """

    prompts: tuple[tuple[int, int], ...]
    num_new: int
    num_pages: int
    max_step_tokens: int = 24
    max_rows: int = 6


FULL = Load(((22, 9), (22, 1), (0, 38), (14, 11), (22, 16), (0, 3), (9, 30)), 14, 26)
SMALL = Load(((22, 7), (22, 1), (0, 19)), 6, 10, max_rows=2)
"""For kernels in an interpreter, and for most families: with a chunked prompt, a shared prefix and rows that are preempted."""


def check_served(family: Family, variant: str | None, decoder: str, path: Path, load: Load = FULL) -> None:
    """Make the configuration's checkpoint in the folder `path` and hold its tokens to the stock model's, under a load.

    Raises:
        ModelLoadError: it is refused.
        AssertionError: a token differs, or a graph could be captured where the family says otherwise.
    """
    model = random_model(make_config(family, variant))
    model.set_attn_implementation("eager")
    runner = check_against_stock(model, save_checkpoint(model, path), decoder, load)
    assert (runner.num_states > 0) == family.has_states
    if family.has_states:
        return
    obstacle = graph_obstacle(runner)
    assert (obstacle is not None) == (variant in family.without_graphs), obstacle


def check_refused(family: Family, path: Path) -> None:
    """Make the family's checkpoint in the folder `path` and see that it is refused by name, for the declared reason.

    Raises:
        AssertionError: it is served, or refused otherwise.
    """
    assert family.refusal is not None
    model = random_model(make_config(family))
    with pytest.raises(ModelLoadError) as refused:
        check_against_stock(model, save_checkpoint(model, path), "transformers")
    assert family.model_type in refused.value.reason, refused.value.reason
    assert family.refusal in refused.value.reason, refused.value.reason


def graph_obstacle(runner: HostRunner) -> str | None:
    """What keeps a step of pure decoding from being captured as a graph on a GPU, as far as that shows on a CPU."""
    rows = tuple(Row(index, [5 + index], 9, (0, 1, 2), 0, True, SamplingParams()) for index in range(3))
    batch = Batch.from_step(Step(0, rows), _PAGE_SIZE)
    attention = StepAttention(batch, runner.kv)
    with torch.inference_mode():
        runner.decoder.forward(attention)  # it plans
        return sync_check.obstacle(lambda: runner.decoder.forward(attention), torch.device("cpu"))


def check_against_stock(model: Any, path: Path, decoder: str, load: Load = FULL) -> HostRunner:
    """Serve the checkpoint in `path` and compare every token with `model`, the same weights in `transformers` alone.

    Args:
        model: in float32 with its own ("eager") attention.
        decoder: native or transformers.
    Raises:
        ModelLoadError: it is refused.
        AssertionError: a token is not the one that the stock model has there.
    """
    config = load_config(path, decoder, load)
    runner = HostRunner(config)
    runner.load()
    if runner.num_states:
        errors = state_errors(runner.decoder, model, runner.model_config.vocab_size)
        assert max(errors) < _STATE_TOLERANCE, errors
    check_tokens(runner, config, model, load)
    return runner


def load_config(path: Path, decoder: str, load: Load, device: str = "cpu") -> RuntimeConfig:
    """The settings that a load is made for."""
    return RuntimeConfig(
        model=str(path),
        device=device,
        dtype="float32",
        decoder=decoder,
        page_size=_PAGE_SIZE,
        num_pages=load.num_pages,
        max_step_tokens=load.max_step_tokens,
        max_rows=load.max_rows,
        max_model_len=MAX_LEN,
        num_threads=1,
    )


def check_tokens(runner: HostRunner | DeviceRunner, config: RuntimeConfig, model: Any, load: Load) -> None:
    """Put a load on a loaded runner and compare every token with `model`.

    Raises:
        AssertionError: a token is not the one that the stock model has there.
    """
    with _errors_raised():
        _check_tokens(runner, config, model, load)


@contextmanager
def _errors_raised() -> Iterator[None]:
    """Fail if the engine logs an error: it computes a failed step again, row by row, which would hide what failed."""
    logged: list[str] = []
    handler = logging.Handler(logging.ERROR)
    handler.emit = lambda record: logged.append(record.getMessage())  # type: ignore[method-assign]
    logging.getLogger("rtlang").addHandler(handler)
    try:
        yield
    finally:
        logging.getLogger("rtlang").removeHandler(handler)
    assert logged == []


def _check_tokens(runner: HostRunner | DeviceRunner, config: RuntimeConfig, model: Any, load: Load) -> None:
    driver = EngineDriver(runner, config)
    rng = random.Random(0)
    shared = [rng.randrange(256) for _ in range(_NUM_SHARED)]
    requests = []
    for num_shared, num_own in load.prompts:
        prompt = shared[:num_shared] + [rng.randrange(256) for _ in range(num_own)]
        requests.append((prompt, driver.add(prompt, load.num_new, params={"ignore_eos": True})))
        driver.step()
    driver.run()
    driver.assert_idle()
    assert driver.engine.scheduler.num_preemptions > 0
    assert driver.engine.cache.stats.num_hit_tokens > 0
    for prompt, request in requests:
        assert len(request.output_token_ids) == load.num_new
        # The stock model over the whole text: its greedy token at each place, given the (equal) tokens before it.
        tokens = prompt + request.output_token_ids
        with torch.inference_mode():
            logits = model(input_ids=torch.tensor([tokens[:-1]]), use_cache=False).logits[0].float()
        for place, token in enumerate(request.output_token_ids, start=len(prompt) - 1):
            assert float(logits[place].max() - logits[place, token]) < _TIE, f"token {place + 1} of {len(tokens)}"
