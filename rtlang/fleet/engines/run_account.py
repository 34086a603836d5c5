"""The account of a graph over all engines that had it.

An engine sends its part with the end of each node and with the final event; an engine that has died sends nothing more. Of the nodes that
had not ended there, the tokens that arrived are known, and their prompts where the graph reports its progress. The next engine counts only
what it computes: tokens that it was given count as prompt, known outcomes not at all.
"""

from __future__ import annotations

import time
from collections.abc import Mapping
from typing import Any

from rtlang.contract.accounts.request_account import RequestAccount, Tokens, Wait
from rtlang.contract.events import Event, NodeFinished, PromptComputed, TextDelta


class RunAccount:
    """The sums of one graph. Used by one thread at a time.

    Args:
        begun_at: the time (`time.monotonic`) at which the run began; it waits for an engine since then.
    """

    def __init__(self, begun_at: float) -> None:
        self._begun_at = begun_at
        self._sum = RequestAccount()  # of the engines that it has left, and of its waits for engines
        self._stay = RequestAccount()  # at its present engine, as of the last node that ended there
        self._unfinished: dict[int, RequestAccount] = {}  # by node, what has arrived from its present engine
        self._waits_since: float | None = begun_at

    def note_opened(self) -> None:
        """An engine has the graph now."""
        if self._waits_since is not None:
            self._sum.add_wait(Wait.ENGINE, time.monotonic() - self._waits_since)
            self._waits_since = None

    def note(self, event: Event, stay: Mapping[str, Any] | None = None) -> None:
        """Note an event of the present engine, whether or not an earlier one has sent it.

        Args:
            stay: the engine's part so far, in plain form, if it comes with the event.
        """
        match event:
            case TextDelta():
                if event.token_ids:
                    self._of_node(event.node_id).add_tokens(Tokens.OUTPUT, len(event.token_ids))
                    if self._sum.first_token_s is None:
                        self._sum.note_first_token(time.monotonic() - self._begun_at)
            case PromptComputed():
                account = self._of_node(event.node_id)
                account.add_tokens(Tokens.PROMPT, event.num_prompt_tokens)
                account.add_tokens(Tokens.CACHED, event.num_cached_tokens)
            case NodeFinished():
                if stay is not None:
                    self._stay = RequestAccount.from_plain(stay)
                    self._unfinished.pop(event.node_id, None)

    def note_left(self, reason: str) -> None:
        """The graph has left its engine, and waits for another one."""
        self._sum.moves.append((time.time_ns(), reason))
        self._waits_since = time.monotonic()
        self._add_stay(self._stay)

    def closed(self, stay: Mapping[str, Any] | None) -> RequestAccount:
        """The whole account, after the end of the graph.

        Args:
            stay: the part of the last engine, in plain form; None if it did not tell.
        """
        self.note_opened()
        if stay is not None:
            self._unfinished.clear()
        self._add_stay(self._stay if stay is None else RequestAccount.from_plain(stay))
        return self._sum

    def _of_node(self, node_id: int) -> RequestAccount:
        return self._unfinished.setdefault(node_id, RequestAccount())

    def _add_stay(self, stay: RequestAccount) -> None:
        stay.first_token_s = None  # from the beginning of its stay there, and known from the text
        self._sum.add(stay)
        for account in self._unfinished.values():
            self._sum.add(account)
        self._stay, self._unfinished = RequestAccount(), {}
