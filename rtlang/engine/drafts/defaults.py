"""The drafter of a runtime."""

from __future__ import annotations

import logging

from rtlang.cache.prefix_cache import PrefixCache
from rtlang.contract.config import RuntimeConfig
from rtlang.contract.errors import ConfigError
from rtlang.contract.process.thread_watch import ThreadWatch, exclude_computation
from rtlang.engine.drafts.call_sites import CallSites
from rtlang.engine.drafts.draft_model import DraftModel
from rtlang.engine.drafts.drafter import Drafter
from rtlang.engine.drafts.model_pages import HeadPages
from rtlang.engine.drafts.model_policy import ModelPolicy
from rtlang.engine.drafts.overlap import Overlap
from rtlang.engine.drafts.own_text import OwnText
from rtlang.engine.drafts.stored_text import StoredText
from rtlang.engine.drafts.structure import Structure
from rtlang.engine.planning.calibration import measured_cost
from rtlang.engine.planning.step_cost import StepCost
from rtlang.model.device_runner import DeviceRunner
from rtlang.model.draft_heads.head_runner import HeadRunner
from rtlang.model.draft_heads.loading import names_head
from rtlang.model.draft_runner import DeviceDraftRunner, DraftRunner
from rtlang.model.host_runner import HostRunner
from rtlang.model.runner import Runner

logger = logging.getLogger(__name__)


def drafter_for(
    config: RuntimeConfig, runner: Runner, cache: PrefixCache, cost: StepCost, draft_model: DraftModel | None = None
) -> Drafter | None:
    """A drafter with all sources; None if `config.speculation` or the runner allows no drafts."""
    if not config.may_draft(is_row_invariant=runner.is_row_invariant):
        return None
    overlap = Overlap(cost, lambda: cost.host_s) if runner.is_pipelined else None
    policy = None if draft_model is None else ModelPolicy(draft_model, cost, overlap)
    return Drafter(
        (StoredText(cache), CallSites(), OwnText(), Structure()),
        cost,
        model=policy,
        overlap=overlap,
        replays_drafts=runner.num_states > 0,
    )


def draft_runner_for(config: RuntimeConfig, runner: Runner) -> Runner | None:
    """The runner of the draft model of the settings, for `load_draft_model`; None if they name none, or a device allows no drafts.

    Args:
        runner: of the model. On a device it must not be loaded yet: it leaves memory to the draft model.
    Raises:
        ModelLoadError: the draft model or head cannot be read.
        ConfigError: a draft head with several ranks or a script.
    """
    if config.draft_model is None:
        return None
    if isinstance(runner, DeviceRunner) and not config.may_draft(is_row_invariant=runner.is_row_invariant):
        return None
    if names_head(config):  # which the runner of the model loads
        if config.tensor_parallel > 1:
            raise ConfigError("draft_model", config.draft_model, "draft heads require tensor_parallel 1")
        if not isinstance(runner, DeviceRunner | HostRunner):
            raise ConfigError(
                "draft_model", config.draft_model, "draft heads require a model with weights, not a script"
            )
        return None
    return DeviceDraftRunner(config, runner) if isinstance(runner, DeviceRunner) else DraftRunner(config, runner)


def load_draft_model(
    config: RuntimeConfig, runner: Runner, draft_runner: Runner | None, watch: ThreadWatch | None = None
) -> DraftModel | None:
    """Load the draft model; None if there is none, or the runner allows no drafts.

    Args:
        runner: of the model, loaded.
        draft_runner: from `draft_runner_for`.
        watch: of the engine thread; its computation is left out.
    Raises:
        ModelLoadError: it cannot be loaded.
        ConfigError: its tokens are not those of the model, or it has no memory for pages.
    """
    head = getattr(runner, "head", None)
    if isinstance(head, HeadRunner):
        pages, cost = HeadPages(head, config.page_size), measured_cost(config, head)
        return DraftModel(config, head, runner.model_config.vocab_size, cost=cost, pages=pages)
    if config.draft_model is None:
        return None
    if not config.may_draft(is_row_invariant=runner.is_row_invariant):
        logger.warning(
            "draft_model is not used: drafts could change texts of this model by rounding; speculation=on allows that"
        )
        return None
    assert draft_runner is not None
    draft_runner.load()
    exclude_computation(watch, draft_runner)
    cost = measured_cost(config, draft_runner)
    model = DraftModel(config, draft_runner, runner.model_config.vocab_size, cost=cost)
    logger.info("draft model %s with a KV pool of %d pages", config.draft_model, model.num_pages)
    return model
