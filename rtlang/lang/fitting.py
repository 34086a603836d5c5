"""Histories of a conversation that fit into a number of tokens.

The tokenizer of the runtime counts the tokens, in the text of its chat template, as a call of the graph: so a recording or a journal of the
run has the outcome, and repeats the decision without a model. The body waits for it, which is a graph break.
"""

from __future__ import annotations

from collections.abc import Callable, Coroutine, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from hashlib import sha256
from typing import Any, Literal

from rtlang.contract.errors import ParameterError, TraceError
from rtlang.contract.graph.template_options import TemplateOptions
from rtlang.contract.request_graph import Part, RoleEnd, RoleStart, TokenIds
from rtlang.contract.service.text_service import count_tokens
from rtlang.lang.control import call
from rtlang.lang.lazy_values.values import Value, user_location
from rtlang.lang.output_types.tools import message_start
from rtlang.lang.program_state.body import current_state
from rtlang.lang.program_state.expr import Expr, Pieces, Recorded
from rtlang.lang.program_state.lost_expressions import check_kept
from rtlang.lang.program_state.messages import Message, append_history, append_messages, message_content, read_messages
from rtlang.lang.program_state.state import record_of
from rtlang.lang.recordings.recording import Recording

_HEADING = "Summary of the earlier conversation:\n"


def fit(
    source: Any,
    max_tokens: int,
    *,
    policy: Literal["drop"] | Callable[..., Any] = "drop",
    keep: int = 1,
    summary_tokens: int | None = None,
    tools: Iterable[Any] | None = None,
    template: TemplateOptions | None = None,
) -> Any:
    """The messages of `source`, without the oldest turns where they have more than `max_tokens` tokens, as an expression to append.

    A turn is a message of the user with everything up to the next one, so that no call of a tool is parted from its result. Messages of the
    system always stay. In an `async def` program it returns a coroutine: write `s += await rt.fit(...)`.

    Args:
        source, tools, template: as for `rt.messages`. A `Result` that fits is appended with its tokens.
        max_tokens: of the messages, with the beginning of an answer after them.
        policy: "drop" leaves the oldest turns out. A program, or another function, is called with the dropped messages and the tokens that
            its summary may have; its text, which may be lazy, is put before the first message of the user that stays. A program called so
            is a part of the same graph.
        keep: the number of last turns that always stay.
        summary_tokens: of the summary; default: a quarter of `max_tokens`.
    Raises:
        ParameterError: an argument is invalid, or the messages that stay have more than `max_tokens` tokens.
        TraceError: outside of a program, or ahead of time.
    """
    state = current_state()
    if state is None:
        raise TraceError("rt.fit() works only inside a program", user_location())
    recording = record_of(state).recording
    for name, value, least in (("max_tokens", max_tokens, 1), ("keep", keep, 0), ("summary_tokens", summary_tokens, 1)):
        if value is None and name == "summary_tokens":
            continue
        if isinstance(value, bool) or not isinstance(value, int) or value < least:
            raise ParameterError(name, value, f"expected an integer of at least {least}")
    if policy != "drop" and not callable(policy):
        raise ParameterError("policy", policy, 'expected "drop", a program or a function')
    room = 0 if policy == "drop" else max_tokens // 4 if summary_tokens is None else summary_tokens
    if room >= max_tokens:
        raise ParameterError("summary_tokens", room, f"expected less than max_tokens = {max_tokens}")
    start = message_start("system", tools, template)
    history_of = getattr(type(source), "_rt_history", None)
    fitting = _Fitting(
        recording,
        None if history_of is None else history_of(source),
        read_messages(source.messages if history_of is not None else source),
        _Settings(max_tokens, keep, room, policy, start.tools, start.template_options),
    )
    if recording.is_async:
        return fitting.run_async()
    made = fitting.run()
    check_kept(made, lambda _: "rt.fit(...)")
    return made


@dataclass(frozen=True, slots=True)
class _Settings:
    max_tokens: int
    keep: int
    room: int
    policy: Any
    tools: str | None
    template_options: str | None


class _Fitting:
    """One call of `fit`."""

    def __init__(self, recording: Recording, history: Any, listed: tuple[Message, ...], settings: _Settings) -> None:
        self._recording, self._history, self._settings = recording, history, settings
        contents = [message_content(message, recording) for message in listed]
        self._contents = dict(zip(map(id, listed), contents, strict=True))
        self._lazy = [piece for content in contents for piece in _pieces(content) if isinstance(piece, Value)]
        head = next((at for at, message in enumerate(listed) if message.role != "system"), len(listed))
        self._head, self._turns = listed[:head], _turns(listed[head:])

    def run(self) -> Expr:
        found = self._counted()
        dropped = int(found["dropped"])
        self._check(dropped, int(found["tokens"]))
        if not dropped or self._settings.policy == "drop":
            return self._made(dropped, None)
        return self._made(dropped, self._settings.policy(self._dropped(dropped), self._settings.room))

    async def run_async(self) -> Expr:
        found = await self._counted()
        dropped = int(found["dropped"])
        self._check(dropped, int(found["tokens"]))
        if not dropped or self._settings.policy == "drop":
            return self._made(dropped, None)
        summary = self._settings.policy(self._dropped(dropped), self._settings.room)
        return self._made(dropped, await summary if isinstance(summary, Coroutine) else summary)

    def _counted(self) -> Any:
        """The number of turns to drop, and the tokens of the rest, as the lazy value of a call."""
        lazy = self._lazy

        def fit_messages(digest: str, *values: Any) -> dict[str, int]:
            return self._smallest(dict(zip(map(id, lazy), values, strict=True)))

        return call(fit_messages, self._digest(), *lazy, pure=True)

    def _digest(self) -> str:
        """Of everything that decides besides the generated values: recordings find the outcome of the call by its arguments."""
        settings = self._settings
        shown: list[object] = [
            settings.max_tokens,
            settings.keep,
            settings.room,
            settings.tools,
            settings.template_options,
        ]
        shown.append(None if self._history is None else self._history.pieces)
        for message in (*self._head, *(message for turn in self._turns for message in turn)):
            pieces = _pieces(self._contents[id(message)])
            shown.append((message.role, [None if isinstance(piece, Value) else piece for piece in pieces]))
        return sha256(repr(shown).encode("utf-8", "surrogatepass")).hexdigest()

    def _smallest(self, values: Mapping[int, Any]) -> dict[str, int]:
        """The fewest turns to drop, by bisection: dropping more leaves fewer tokens."""
        limit, room = self._settings.max_tokens, self._settings.room
        target = self._recording.driver.target
        if self._history is None:
            num_all = self._count(0, values)
        else:
            parts = [part for piece in self._history.pieces_for(target) for part in piece]
            num_all = count_tokens(target, [*parts, RoleStart("assistant")])
        most = max(len(self._turns) - self._settings.keep, 0)
        if num_all <= limit or not most:
            return {"dropped": 0, "tokens": num_all}
        low, high, num_tokens = 0, most, self._count(most, values) + room
        while num_tokens <= limit and high - low > 1:
            middle = (low + high) // 2
            found = self._count(middle, values) + room
            if found <= limit:
                high, num_tokens = middle, found
            else:
                low = middle
        return {"dropped": high, "tokens": num_tokens}

    def _count(self, dropped: int, values: Mapping[int, Any]) -> int:
        """The tokens of the messages without so many turns, a summary not included."""
        settings = self._settings
        parts: list[Part] = []
        summary = (_HEADING, "\n\n") if dropped and settings.room else ()
        for message in self._kept(dropped):
            start = RoleStart(message.role)
            if not parts:
                start = RoleStart(message.role, settings.tools, settings.template_options)
            pieces: list[Any] = list(_pieces(self._contents[id(message)]))
            if summary and message.role == "user":
                pieces, summary = [*summary, *pieces], ()
            texts = (piece if isinstance(piece, TokenIds) else str(values.get(id(piece), piece)) for piece in pieces)
            parts += [start, *(text for text in texts if text), RoleEnd()]
        return count_tokens(self._recording.driver.target, [*parts, RoleStart("assistant")])

    def _kept(self, dropped: int) -> list[Message]:
        """The messages without the oldest turns; their messages of the system stay."""
        system = [message for turn in self._turns[:dropped] for message in turn if message.role == "system"]
        return [*self._head, *system, *(message for turn in self._turns[dropped:] for message in turn)]

    def _dropped(self, dropped: int) -> list[Any]:
        return [message.given for turn in self._turns[:dropped] for message in turn if message.role != "system"]

    def _check(self, dropped: int, num_tokens: int) -> None:
        settings = self._settings
        if num_tokens <= settings.max_tokens:
            return
        kept = f"the last {settings.keep} turns" if settings.keep != 1 else "the last turn"
        with_summary = f", {settings.room} of a summary included" if settings.room and dropped else ""
        raise ParameterError(
            "max_tokens",
            settings.max_tokens,
            f"the system messages and {kept}, which stay, have {num_tokens} tokens{with_summary}",
        )

    def _made(self, dropped: int, summary: Any) -> Expr:
        history, settings = self._history, self._settings
        if not dropped and history is not None:
            return Recorded(lambda record: append_history(record, history), "rt.fit(...)")
        kept = self._kept(dropped)
        if summary is not None:
            if not isinstance(summary, (str, Value)):
                raise TraceError(
                    f"rt.fit(): the policy returned {summary!r:.60}; expected the text of a summary", user_location()
                )
            at = next((at for at, message in enumerate(kept) if message.role == "user"), None)
            if at is None:
                kept.append(Message("user", (Pieces((_HEADING, summary)),), (), None))
            else:
                pieces = Pieces((_HEADING, summary, "\n\n"))
                kept[at] = replace(kept[at], content=(pieces, *kept[at].content))
        return Recorded(
            lambda record: append_messages(record, kept, settings.tools, settings.template_options), "rt.fit(...)"
        )


def _pieces(content: Sequence[Expr]) -> list[str | Value | TokenIds]:
    found: list[str | Value | TokenIds] = []
    for each in content:
        if not isinstance(each, Pieces):
            raise ParameterError("messages", each, "expected texts and values; a generation has no tokens to count yet")
        found.extend(each.pieces)
    return found


def _turns(listed: Sequence[Message]) -> list[list[Message]]:
    """The messages from one of the user to the next. The result of a call stays in the turn of the call."""
    turns: list[list[Message]] = []
    for message in listed:
        if not turns or message.role == "user":
            turns.append([])
        turns[-1].append(message)
        if message.role == "tool" and len(turns) > 1 and not any(each.role == "assistant" for each in turns[-1]):
            last = turns.pop()
            turns[-1] += last
    return turns
