"""The runners of a draft model: a smaller model with the same tokens, which samples what the model is expected to sample.

It runs where the model does. On the host it is loaded after the model. On a device its weights are loaded before the model's memory is
divided, so that the pools of both fit; then it has pages and graphs of its own, on the same stream.
"""

from __future__ import annotations

import os
from dataclasses import replace

from rtlang.contract.config import RuntimeConfig
from rtlang.contract.errors import ConfigError
from rtlang.model import system_resources
from rtlang.model.device_runner import CACHE_SHARE, DeviceRunner
from rtlang.model.host_runner import HostRunner
from rtlang.model.runner import Runner
from rtlang.model.text.tokenizer import Tokenizer

POOL_SHARE = 0.25
"""Maximum size of the draft model's KV pool relative to that of the model; more only for one sequence of the maximum length."""


class DraftRunner(HostRunner):
    """The `HostRunner` of a draft model.

    Args:
        config: the settings of the runtime, with a `draft_model`.
        target: the loaded runner of the model.
    """

    def __init__(self, config: RuntimeConfig, target: Runner) -> None:
        super().__init__(_draft_settings(config))
        self._name, self._target = config.draft_model, target

    def load(self) -> None:
        """See `Runner`.

        Raises:
            ConfigError: its tokens are not those of the model, it has recurrent layers, or there is no memory for two pages.
        """
        super().load()
        _check_tokens(self._name, self._target, self.tokenizer)

    def _pick_sizes(self, page_bytes: int, state_bytes: int) -> tuple[int, int]:
        _check_states(self._name, state_bytes)
        free = system_resources.free_bytes() // 2
        return _num_pages(self._name, self._target, self.config.page_size, self.max_model_len, page_bytes, free), 0


class DeviceDraftRunner(DeviceRunner):
    """The `DeviceRunner` of a draft model, on the device of the model.

    Args:
        config: as for `DraftRunner`.
        target: the runner of the model, not loaded yet: its `load` loads the weights of both.
    """

    def __init__(self, config: RuntimeConfig, target: DeviceRunner) -> None:
        super().__init__(_draft_settings(config), target.accelerator)
        self._name, self._target = config.draft_model, target
        target.beside = self

    def load(self) -> None:
        """See `DraftRunner.load`; the runner of the model was loaded before."""
        super().load()
        _check_tokens(self._name, self._target, self.tokenizer)

    def pool_share(self, page_bytes: int) -> int:
        """Bytes of the draft model's pages for each page of the model, which has so many bytes."""
        return min(self.bytes_per_page, int(POOL_SHARE * page_bytes))

    def _pick_sizes(self, bytes_per_page: int) -> tuple[int, int, int]:
        _check_states(self._name, sum(shape.num_bytes for shape in self.decoder.state_shapes))
        free = int(CACHE_SHARE * self.accelerator.free_bytes()) - bytes_per_page  # of the scratch page
        target, sizes = self._target, (self.config.page_size, self.max_model_len, bytes_per_page, free)
        return _num_pages(self._name, target, *sizes), 0, target.with_limits(self.config).row_limit


def _draft_settings(config: RuntimeConfig) -> RuntimeConfig:
    """The settings of the draft model: no drafts of its own, no tiers, and a pool that follows the model's."""
    assert config.draft_model is not None
    return replace(
        config,
        model=os.fspath(config.draft_model),
        draft_model=None,
        decoder="auto",
        tensor_parallel=1,
        max_model_len=None,
        num_pages=None,
        cache_bytes=None,
        speculation="off",
        cache_host_bytes=None,
        cache_dir=None,
        cache_listen=None,
        cache_peers=None,
    )


def _check_tokens(name: str | None, target: Runner, tokenizer: Tokenizer) -> None:
    difference = target.tokenizer.difference(tokenizer)
    if difference is not None:
        raise ConfigError("draft_model", name, f"expected a model with the same tokens: {difference}")


def _check_states(name: str | None, state_bytes: int) -> None:
    if state_bytes:
        raise ConfigError("draft_model", name, "expected a model without recurrent layers")


def _num_pages(
    name: str | None, target: Runner, page_size: int, max_model_len: int, page_bytes: int, free_bytes: int
) -> int:
    """Pages of the draft model's pool.

    Args:
        target: of the model.
        max_model_len, page_bytes: of the draft model.
        free_bytes: bytes that the pool may have.
    """
    memory = target.page_memory
    share = 0 if memory is None else int(POOL_SHARE * target.num_pages * memory.page_bytes) // page_bytes
    longest = -(-min(max_model_len, target.max_model_len) // page_size) + 1
    num_pages = min(target.num_pages, max(share, longest), free_bytes // page_bytes)
    if num_pages < 2:
        raise ConfigError(
            "draft_model", name, f"a page of its KV pool takes {page_bytes:,} bytes, and there is no memory for two"
        )
    return num_pages
