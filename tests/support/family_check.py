"""One run that holds a model to `transformers`: greedy, float32, ragged, chunked, preempted, over shared prefixes."""

from __future__ import annotations

import random
from pathlib import Path
from typing import Any

import pytest
import torch

from rtlang.config import RuntimeConfig
from rtlang.errors import ModelLoadError
from rtlang.model.runner import ModelRunner
from tests.support.engine_driver import EngineDriver
from tests.support.families import MAX_LEN, Family, make_config
from tests.support.tiny_models import random_model, save_checkpoint

_PAGE_SIZE, _NUM_PAGES = 4, 26
_NUM_SHARED, _NUM_NEW = 22, 14
_TIE = 1e-4
"""Logits that differ by less may come in either order: sums of another order differ by about 1e-5."""


def check_served(family: Family, variant: str | None, decoder: str, path: Path) -> None:
    """Make the configuration's checkpoint in the folder `path` and hold its tokens to the stock model's.

    Raises:
        ModelLoadError: it is refused.
        AssertionError: a token differs.
    """
    model = random_model(make_config(family, variant))
    model.set_attn_implementation("eager")
    check_against_stock(model, save_checkpoint(model, path), decoder)


def check_refused(family: Family, path: Path) -> None:
    """Make the family's checkpoint in the folder `path` and see that it is refused by name, for the declared reason.

    Raises:
        AssertionError: it is served, or refused otherwise.
    """
    assert family.refusal is not None
    model = random_model(make_config(family))
    with pytest.raises(ModelLoadError) as refused:
        check_against_stock(model, save_checkpoint(model, path), "zoo")
    assert family.model_type in refused.value.reason, refused.value.reason
    assert family.refusal in refused.value.reason, refused.value.reason


def check_against_stock(model: Any, path: Path, decoder: str) -> None:
    """Serve the checkpoint in `path` and compare every token with `model`, the same weights in `transformers` alone.

    Args:
        model: in float32 with its own ("eager") attention.
        decoder: lean or zoo.
    Raises:
        ModelLoadError: it is refused.
        AssertionError: a token is not the one that the stock model has there.
    """
    config = RuntimeConfig(
        model=str(path),
        dtype="float32",
        decoder=decoder,
        page_size=_PAGE_SIZE,
        num_pages=_NUM_PAGES,
        max_step_tokens=24,
        max_rows=6,
        max_model_len=MAX_LEN,
        num_threads=1,
    )
    runner = ModelRunner(config)
    runner.load()
    driver = EngineDriver(runner, config)
    rng = random.Random(0)
    shared = [rng.randrange(256) for _ in range(_NUM_SHARED)]
    requests = []
    for num_shared, num_own in ((22, 9), (22, 1), (0, 38), (14, 11), (22, 16), (0, 3), (9, 30)):
        prompt = shared[:num_shared] + [rng.randrange(256) for _ in range(num_own)]
        requests.append((prompt, driver.add(prompt, _NUM_NEW, params={"ignore_eos": True})))
        driver.step()
    driver.run()
    driver.assert_idle()
    assert driver.engine.scheduler.num_preemptions > 0
    assert driver.engine.cache.stats.num_hit_tokens > 0
    for prompt, request in requests:
        assert len(request.output_token_ids) == _NUM_NEW
        # The stock model over the whole text: its greedy token at each place, given the (equal) tokens before it.
        tokens = prompt + request.output_token_ids
        with torch.inference_mode():
            logits = model(input_ids=torch.tensor([tokens[:-1]]), use_cache=False).logits[0].float()
        for place, token in enumerate(request.output_token_ids, start=len(prompt) - 1):
            assert float(logits[place].max() - logits[place, token]) < _TIE, f"token {place + 1} of {len(tokens)}"
