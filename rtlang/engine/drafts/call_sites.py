"""Drafts from the call site: earlier outputs of the same generation of the same program.

The texts of one site are stored one after the other, each after a mark. A request looks for the end of its output among them, so its first
tokens are drafted from the first tokens of earlier texts. A chat has two sites: its session, whose tool calls repeat each other beyond the
part of the prompt that `own_text.py` searches, and all sessions that begin alike, as with the same system prompt.

Sites belong to one principal and one namespace: otherwise the time of a step would reveal texts to others.
"""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Hashable, Sequence

from rtlang.engine.drafts.proposal import Proposal
from rtlang.engine.drafts.token_index import LONGEST_MATCH, TokenIndex
from rtlang.engine.requests.request import Request

MAX_SITE_TOKENS = 4096
"""Tokens of one site; then the older half is dropped."""
MAX_TOKENS = 1 << 18
"""Tokens of all sites, about 40 MB; then the site that was used least recently is dropped."""
_MAX_TEXT_TOKENS = 1024
_MARKS = (-2, -1)  # before each text: two, since matches begin with two tokens


class CallSites:
    """The texts of call sites. See `Source`."""

    name = "call_site"

    def __init__(self) -> None:
        self._sites: OrderedDict[Hashable, TokenIndex] = OrderedDict()
        self._num_tokens = 0

    def propose(self, request: Request, limit: int) -> Proposal | None:
        """See `Source`."""
        best: Proposal | None = None
        for key in _keys(request):
            site = self._sites.get(key)
            found = None if site is None else self._propose(site, request, limit)
            if found is not None and (best is None or found.evidence > best.evidence):
                best = found
        return best

    def _propose(self, site: TokenIndex, request: Request, limit: int) -> Proposal | None:
        context = request.token_ids[max(request.num_prompt_tokens, len(request.token_ids) - LONGEST_MATCH) :]
        if len(context) < LONGEST_MATCH:
            context = [*_MARKS, *context]
        place = site.find(context)
        if place is None:
            return None
        tokens = site.tokens[place[0] : place[0] + limit]
        end = next((index for index, token_id in enumerate(tokens) if token_id < 0), len(tokens))
        return Proposal(self.name, tokens[:end], place[1]) if end else None

    def forget(self, request: Request) -> None:
        """Keep the text of a request for the next one of its site."""
        text = request.output_token_ids[:_MAX_TEXT_TOKENS]
        for key in _keys(request) if text else ():
            self._add(key, text)

    def _add(self, key: Hashable, text: Sequence[int]) -> None:
        site = self._sites.get(key)
        if site is None:
            site = self._sites[key] = TokenIndex()
        self._sites.move_to_end(key)
        num_before = len(site.tokens)
        site.extend((*_MARKS, *text))
        if len(site.tokens) > MAX_SITE_TOKENS:
            half = TokenIndex()
            half.extend(site.tokens[-MAX_SITE_TOKENS // 2 :])
            site = self._sites[key] = half
        self._num_tokens += len(site.tokens) - num_before
        while self._num_tokens > MAX_TOKENS:
            _, dropped = self._sites.popitem(last=False)
            self._num_tokens -= len(dropped.tokens)


def _keys(request: Request) -> Sequence[Hashable]:
    """The sites of a request, each within its principal and namespace."""
    spec, turn = request.spec, request.turn
    if spec.site is None:
        return ()
    owner = spec.principal.name, spec.principal.namespace
    if turn is None or not turn.is_of_chat:
        return ((*owner, spec.site),)
    return (*owner, spec.site, turn.opening), (*owner, "session", turn.session.root_id)
