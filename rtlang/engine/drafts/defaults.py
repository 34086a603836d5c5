"""The drafter of a runtime."""

from __future__ import annotations

from rtlang.cache.prefix_cache import PrefixCache
from rtlang.contract.config import RuntimeConfig
from rtlang.engine.drafts.call_sites import CallSites
from rtlang.engine.drafts.drafter import Cost, Drafter
from rtlang.engine.drafts.own_text import OwnText
from rtlang.engine.drafts.stored_text import StoredText
from rtlang.engine.drafts.structure import Structure
from rtlang.model.runner import Runner


def drafter_for(config: RuntimeConfig, runner: Runner, cache: PrefixCache, cost: Cost) -> Drafter | None:
    """A drafter with all sources; None if `config.speculation` or the runner allows no drafts."""
    is_wanted = config.speculation == "on" or (config.speculation == "auto" and runner.is_row_invariant)
    if not is_wanted or runner.is_pipelined:
        return None
    return Drafter((StoredText(cache), CallSites(), OwnText(), Structure()), cost)
