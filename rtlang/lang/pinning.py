"""Keeps prompts in the prefix cache of a runtime or a server."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from rtlang.contract.errors import ParameterError
from rtlang.contract.service.generation import Prompt
from rtlang.contract.service.target import Target
from rtlang.lang.execution.run import resolve_runtime


def pin(
    prompt: Prompt | None = None,
    *,
    token_ids: Iterable[int] | None = None,
    ttl_s: float | None = None,
    runtime: Target | None = None,
) -> Any:
    """Compute a prompt and keep its pages from eviction, on a runtime, a server, or the default runtime.

    Returns:
        The pinned prompt, which has the granted time and can be released: see `CacheView.pin`, and for a server `RemoteCache.pin`.
    Raises:
        TraceError: there is no runtime. ParameterError: it has no cache. Also the errors of these methods.
    """
    target = resolve_runtime(runtime)
    cache = getattr(target, "cache", None)
    if cache is None:
        raise ParameterError(
            "runtime", target, "expected an rt.Runtime(...) or an rt.connect(...), which have a prefix cache"
        )
    return cache.pin(prompt, token_ids=token_ids, ttl_s=ttl_s)
