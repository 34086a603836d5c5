"""The events of a request of the OpenAI API: its graph runs, and an error of the graph becomes one of the request."""

from __future__ import annotations

import contextlib
from collections.abc import AsyncGenerator
from typing import Any

from rtlang.contract.errors import BudgetError, ConstraintError, GraphError, RtlangError
from rtlang.contract.events import Event, GraphFailed, NodeFailed, TextDelta
from rtlang.contract.runs.principal import Principal
from rtlang.contract.runs.run_options import Ability, RunOptions
from rtlang.serve.http.answered_prompts import remember_outputs
from rtlang.serve.http.errors import HttpError
from rtlang.serve.http.events.direct_events import DirectEvents
from rtlang.serve.http.events.graph_stream import GraphStream
from rtlang.serve.openai.shapes import Asked
from rtlang.serve.service import StreamService


async def asked_events(
    service: StreamService, asked: Asked, principal: Principal, direct: DirectEvents[Any] | None = None
) -> AsyncGenerator[list[Event], None]:
    """Groups of the events of a request's graph, which is cancelled when the generator is closed.

    Args:
        direct: writes small events while nobody waits for a group.
    Raises:
        HttpError: the prompt or the constraint is refused; names the field of the request.
        RtlangError: a node failed, or the server ended the run.
    """
    options = RunOptions(
        priority=asked.priority,
        principal=principal,
        cache_salt=asked.cache_salt,
        session=asked.session,
        reports_progress=asked.reports_prompt and Ability.PROGRESS in service.abilities,
    )
    graph_stream = GraphStream(service, asked.graph, options, direct)
    async with contextlib.AsyncExitStack() as stack:
        try:
            stream = await stack.enter_async_context(graph_stream)
        except GraphError as error:  # the fields are checked, so this is about a text or token ids of the prompt
            raise HttpError(400, error.reason, code=error.code, param=asked.prompt_field) from error
        async for events in stream.batches():
            for index, event in enumerate(events):
                if isinstance(event, (NodeFailed, GraphFailed)):
                    if any(isinstance(each, TextDelta) for each in events[:index]):
                        yield events[:index]
                    raise _failure(event.error, asked)
            await remember_outputs(service, asked, principal, events)
            yield events


def _failure(error: RtlangError, asked: Asked) -> Exception:
    if not isinstance(error, ConstraintError):
        return error
    if isinstance(error, BudgetError):
        message = error.message.replace("max_tokens", asked.budget_field, 1)
        return HttpError(400, message, code=error.code, param=asked.budget_field)
    return HttpError(400, error.message, code=error.code, param=asked.constraint_field)
