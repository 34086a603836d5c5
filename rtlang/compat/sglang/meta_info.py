"""The meta information of generations and choices, as the plain dict that programs expect.

A log-probability of a token is a tuple (log-probability, token id, text); the text is None unless it was asked for.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from statistics import fmean
from typing import Any

from rtlang.compat.sglang.options import LogprobWish
from rtlang.contract.events import TokenLogprob
from rtlang.contract.params import FinishReason
from rtlang.lang.recordings.meta import Meta

TokenText = Callable[[int], str | None]
Entry = tuple[float | None, int | None, str | None]


def of_generation(meta: Meta, wish: LogprobWish | None, token_text: TokenText, name: str) -> dict[str, Any]:
    """The meta information of one generated text.

    Args:
        name: identifies the generation.
    """
    usage = meta.usage
    found: dict[str, Any] = {
        "id": name,
        "finish_reason": _finish_reason(meta),
        "prompt_tokens": usage.prompt_tokens,
        "completion_tokens": usage.completion_tokens,
        "cached_tokens": usage.cached_tokens,
        "e2e_latency": meta.timing.total_s,
    }
    if wish is None:
        return found
    shown = token_text if wish.has_text else _no_text
    found["output_token_logprobs"] = entries(meta.logprobs or (), shown)
    if wish.num_top:
        found["output_top_logprobs"] = [_top(each, shown) for each in meta.logprobs or ()]
    prompt = () if wish.start is None else meta.prompt_logprobs or ()
    # The model gives no probability to the first token.
    first: list[Entry] = [(None, None, None)] * max(0, usage.prompt_tokens - len(prompt))
    start = len(prompt) + len(first) if wish.start is None else wish.start
    found["input_token_logprobs"] = [*first, *entries(prompt, shown)][start:]
    if wish.num_top:
        tops: list[list[Entry] | None] = [None] * len(first)
        found["input_top_logprobs"] = [*tops, *(_top(each, shown) for each in prompt)][start:]
    return found


def _finish_reason(meta: Meta) -> dict[str, Any]:
    if meta.finish_reason is FinishReason.LENGTH:
        return {"type": "length", "length": len(meta.token_ids)}
    if meta.finish_reason is FinishReason.STOP:
        return {"type": "stop", "matched": meta.stop_match}
    return {"type": "abort", "message": str(meta.finish_reason)}


def entries(logprobs: Iterable[TokenLogprob], token_text: TokenText) -> list[Entry]:
    """One tuple per token."""
    return [(each.logprob, each.token_id, token_text(each.token_id)) for each in logprobs]


def token_ids_of(meta: Meta) -> Iterator[int]:
    """The tokens with log-probabilities, those of choices and the likeliest ones at each place included."""
    of_choices = [*(meta.choice_logprobs or {}).values(), *(meta.unconditional_logprobs or {}).values()]
    of_choices += [meta.logprobs or (), meta.prompt_logprobs or ()]
    for each in (entry for logprobs in of_choices for entry in logprobs):
        yield each.token_id
        yield from (token_id for token_id, _ in each.top)


def _top(logprob: TokenLogprob, token_text: TokenText) -> list[Entry]:
    return [(value, token_id, token_text(token_id)) for token_id, value in logprob.top]


def _no_text(token_id: int) -> None:
    return None


def scores_of(meta: Meta, choices: Sequence[str], token_text: TokenText) -> dict[str, Any] | None:
    """The arguments of a `ChoicesSamplingMethod` from the log-probabilities of a select; None if the runtime reports none."""
    if meta.choice_logprobs is None:
        return None
    given = [entries(meta.choice_logprobs[choice], token_text) for choice in choices]
    alone = None
    if meta.unconditional_logprobs is not None:
        alone = [entries(meta.unconditional_logprobs[choice], token_text) for choice in choices]
    return {
        "choices": list(choices),
        "normalized_prompt_logprobs": [
            fmean(each.logprob for each in meta.choice_logprobs[choice]) for choice in choices
        ],
        "input_token_logprobs": given,
        "output_token_logprobs": [[] for _ in choices],
        "unconditional_token_logprobs": alone,
    }
