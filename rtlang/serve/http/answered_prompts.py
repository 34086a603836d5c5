"""The tokens of answers go to the tokenizer before their clients get the end, so that a request which continues one finds them."""

from __future__ import annotations

import asyncio
import contextlib
from collections.abc import Sequence

from rtlang.contract.accounts.request_account import WorkKind
from rtlang.contract.errors import RtlangError
from rtlang.contract.events import Event, NodeFinished
from rtlang.contract.request_graph import Text, TokenIds
from rtlang.contract.runs.principal import Principal
from rtlang.contract.service.text_service import prompt_key, text_service_of
from rtlang.serve.openai.shapes import Asked
from rtlang.serve.service import StreamService
from rtlang.work.prices import DETOKENIZE_S_PER_TOKEN

_TIMEOUT_S = 1.0
_KEY_S_PER_TOKEN = 3e-8


async def remember_outputs(service: StreamService, asked: Asked, principal: Principal, events: Sequence[Event]) -> None:
    """Give the outputs among some events to the text service. An answer is never lost or late because of it."""
    if not asked.is_chat:
        return
    outputs = [
        each.token_ids
        for event in events
        if isinstance(event, NodeFinished)
        for each in event.completions
        if each.token_ids
        and not isinstance(each.stop_match, str)  # a stop cuts within tokens: these are not the model's
    ]
    prompt = asked.graph.nodes[0]
    if not outputs or not isinstance(prompt, Text) or len(prompt.parts) != 1:
        return
    (part,) = prompt.parts
    if not isinstance(part, TokenIds):  # the target has no tokenizer
        return
    ids = part.ids

    def remember() -> None:
        texts = text_service_of(service.target, history_owner(principal, asked.cache_salt))
        if texts is not None:
            texts.remember(prompt_key(ids), outputs)

    price = len(ids) * _KEY_S_PER_TOKEN + sum(map(len, outputs)) * DETOKENIZE_S_PER_TOKEN
    work = service.run(principal, price, remember, kind=WorkKind.DETOKENIZE, may_wait=True, is_bounded=False)
    with contextlib.suppress(RtlangError, TimeoutError):  # a later request encodes the text anew
        await asyncio.wait_for(work, _TIMEOUT_S)


def history_owner(principal: Principal, cache_salt: str | None) -> Principal:
    """The principal in the namespace of its conversations with a salt."""
    return principal if cache_salt is None else principal.salted(cache_salt)
