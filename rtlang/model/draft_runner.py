"""The runner of a draft model: a smaller model with the same tokens, which samples what the model is expected to sample."""

from __future__ import annotations

import os
from dataclasses import replace

from rtlang.contract.config import RuntimeConfig
from rtlang.contract.errors import ConfigError
from rtlang.model import system_resources
from rtlang.model.host_runner import HostRunner
from rtlang.model.runner import Runner

POOL_SHARE = 0.25
"""Maximum size of the draft model's KV pool relative to that of the model; more only for one sequence of the maximum length."""


class DraftRunner(HostRunner):
    """The `HostRunner` of a draft model.

    Args:
        config: the settings of the runtime, with a `draft_model`.
        target: the loaded runner of the model.
    """

    def __init__(self, config: RuntimeConfig, target: Runner) -> None:
        assert config.draft_model is not None
        super().__init__(
            replace(
                config,
                model=os.fspath(config.draft_model),
                draft_model=None,
                decoder="auto",
                tensor_parallel=1,
                max_model_len=None,
                num_pages=None,
                cache_bytes=None,
            )
        )
        self._name, self._target = config.draft_model, target

    def load(self) -> None:
        """See `Runner`.

        Raises:
            ConfigError: its tokens are not those of the model, it has recurrent layers, or there is no memory for two pages.
        """
        super().load()
        difference = self._target.tokenizer.difference(self.tokenizer)
        if difference is not None:
            raise ConfigError("draft_model", self._name, f"expected a model with the same tokens: {difference}")

    def _pick_sizes(self, page_bytes: int, state_bytes: int) -> tuple[int, int]:
        if state_bytes:
            raise ConfigError("draft_model", self._name, "expected a model without recurrent layers")
        target, page_size = self._target, self.config.page_size
        memory = target.page_memory
        share = 0 if memory is None else int(POOL_SHARE * target.num_pages * memory.page_bytes) // page_bytes
        longest = -(-min(self.max_model_len, target.max_model_len) // page_size) + 1
        num_pages = min(target.num_pages, max(share, longest), system_resources.free_bytes() // 2 // page_bytes)
        if num_pages < 2:
            raise ConfigError(
                "draft_model",
                self._name,
                f"a page of its KV pool takes {page_bytes:,} bytes, and there is no memory for two",
            )
        return num_pages, 0
