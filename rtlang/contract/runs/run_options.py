"""The options of a run, in one value that every target takes whole, and the abilities that some of them need.

`RunOptions` is the only list of these options. A target names the abilities that it has; an option that needs another one is refused with
an error that names it, and never dropped. `rtlang/protocol/run_options.py` writes and reads the options in messages.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, fields, replace
from enum import StrEnum
from typing import Any, Self

from rtlang.contract.accounts.request_context import RequestContext
from rtlang.contract.errors import DeadlineError, GraphError, ParameterError
from rtlang.contract.graph.frozen_copies import changed
from rtlang.contract.params import check_credit, check_run_options, seconds_left
from rtlang.contract.runs.budget import Budget
from rtlang.contract.runs.known import ContinueFrom, Known
from rtlang.contract.runs.principal import LOCAL, Principal, check_cache_salt
from rtlang.contract.runs.session_options import SessionOptions


class Ability(StrEnum):
    """An option of a run that not every target takes. A server announces the values in its `welcome`, in this order."""

    CREDIT = "credit"
    PROGRESS = "progress"
    CONTINUE = "continue"
    BUDGET = "budget"
    KNOWN = "known"
    CACHE_SALT = "cache_salt"


ALL_ABILITIES = frozenset(Ability)


KEYWORD = "keyword"
"""In the metadata of a field: it is a keyword of `Program.run`."""


def _option(needs: Ability | None = None, *, is_keyword: bool = False) -> dict[str, Any]:
    return ({} if needs is None else {"needs": needs}) | ({KEYWORD: True} if is_keyword else {})


@dataclass(frozen=True, slots=True)
class RunOptions:
    """Options of one submitted graph; see `rtlang.contract.service.target.Target.submit`.

    Attributes:
        inputs: the text of each input of the graph.
        is_open: whether nodes may be added until `GraphRun.close` is called.
        priority: lower values run first under the priority policy.
        deadline_s: seconds from `begun_at` after which the graph fails with DeadlineError.
        begun_at: when the run began, in seconds of `time.monotonic`; None: when a target takes it. Whoever is first decides, see `begun`.
        seed: determines the text of every generation that samples without a seed of its own, together with its path; random if it is not
            given. The same graph with the same seed gives the same texts.
        known: outcomes of nodes of the graph from an earlier run; nothing is computed for these.
        budget: what the nodes may spend together.
        cache_salt: text that divides the prefix cache of the principal: the graph reuses cached pages of graphs with the same salt only.
        principal: the party that the graph belongs to. A remote runtime ignores it: its server knows the principal from the key.
        continue_from: by node, for each choice the output tokens that an earlier run of the graph gave out: those of its `TextDelta`
            events. The generation goes on after them, and its events begin there; with the same seed the text is the same.
        credit: number of tokens that may be delivered until `GraphRun.grant` adds more; None for no limit. Every token of a TextDelta
            takes one. Without credit prompts are computed, but no token of the graph is sampled. Texts that come in one piece
            (`best_of`, a select, a value that is checked at its end) take theirs at once, so credit may fall below zero.
        reports_progress: whether NodeStarted, PromptComputed and ValueKnown are sent.
        context: the request that the run belongs to, for logs, errors and spans; None for a request of its own.
        session: of the chat that the run answers, for targets that infer sessions; a hint, which others ignore.
        identity: gives a text that tells the run from others: its program and its arguments. Recordings seed runs by it; it is not sent.
    Raises:
        ParameterError: an option is invalid; names it.
    """

    inputs: Mapping[str, str] = field(default_factory=dict)
    is_open: bool = False
    priority: int = field(default=0, metadata=_option(is_keyword=True))
    deadline_s: float | None = field(default=None, metadata=_option(is_keyword=True))
    begun_at: float | None = None
    seed: int | None = field(default=None, metadata=_option(is_keyword=True))
    known: Known = field(default_factory=dict, metadata=_option(Ability.KNOWN))
    budget: Budget | None = field(default=None, metadata=_option(Ability.BUDGET, is_keyword=True))
    cache_salt: str | None = field(default=None, metadata=_option(Ability.CACHE_SALT, is_keyword=True))
    principal: Principal = LOCAL
    continue_from: ContinueFrom = field(default_factory=dict, metadata=_option(Ability.CONTINUE))
    credit: int | None = field(default=None, metadata=_option(Ability.CREDIT))
    reports_progress: bool = field(default=False, metadata=_option(Ability.PROGRESS))
    context: RequestContext | None = None
    session: SessionOptions | None = None
    identity: Callable[[], str] | None = field(default=None, compare=False)

    def __post_init__(self) -> None:
        for name, kind, usual in (
            ("inputs", Mapping, {}),
            ("known", Mapping, {}),
            ("continue_from", Mapping, {}),
            ("principal", Principal, LOCAL),
        ):
            if getattr(self, name) is None:
                object.__setattr__(self, name, usual)
            elif not isinstance(getattr(self, name), kind):
                raise ParameterError(name, getattr(self, name), f"expected a {kind.__name__}")
        check_run_options(self.priority, self.deadline_s, self.seed)
        if self.credit is not None:
            check_credit(self.credit)
        if self.cache_salt is not None:
            check_cache_salt(self.cache_salt)
        if self.context is not None and not isinstance(self.context, RequestContext):
            raise ParameterError("context", self.context, "expected a RequestContext")
        if self.session is not None and not isinstance(self.session, SessionOptions):
            raise ParameterError("session", self.session, "expected a SessionOptions")
        if self.budget is not None and not isinstance(self.budget, Budget):
            raise ParameterError("budget", self.budget, "expected rt.Budget(...)")

    def begun(self, now: float) -> Self:
        """These options with the time at which the run began: `now`, unless it was decided before."""
        return self if self.begun_at is not None else changed(self, begun_at=now)

    def salted(self) -> Self:
        """These options with the salt made part of the principal's namespace, so that all code that uses the namespace obeys the salt."""
        if self.cache_salt is None:
            return self
        return replace(self, principal=self.principal.salted(self.cache_salt), cache_salt=None)

    @property
    def deadline(self) -> float | None:
        """When the graph fails with DeadlineError, in seconds of `time.monotonic`, once the run has begun."""
        if self.deadline_s is None:
            return None
        assert self.begun_at is not None, "the run has not begun"
        return self.begun_at + seconds_left(self.deadline_s)

    def deadline_error(self) -> DeadlineError:
        """The error of a graph whose deadline has passed."""
        return DeadlineError(f"the deadline of {seconds_left(self.deadline_s or 0.0):g} s has passed")

    def lacking(self, abilities: frozenset[Ability]) -> str | None:
        """The name of an option that is given and needs an ability beyond these; None if there is none."""
        for name, ability in _ABILITIES.items():
            value = getattr(self, name)
            is_given = bool(value) or (name == "credit" and value is not None)
            if is_given and ability not in abilities:
                return name
        return None

    def check_abilities(self, abilities: frozenset[Ability], who: str = "this runtime") -> None:
        """Refuse options that need an ability beyond these, so that none is dropped.

        Raises:
            GraphError: names the option.
        """
        name = self.lacking(abilities)
        if name is not None:
            raise GraphError(None, name, f"{who} does not offer {name}")


_ABILITIES: dict[str, Ability] = {
    item.name: item.metadata["needs"] for item in fields(RunOptions) if "needs" in item.metadata
}
DEFAULT_OPTIONS = RunOptions()


def abilities_of(target: Any) -> frozenset[Ability]:
    """The abilities that a target declares; none if it declares none, as code of others may."""
    return frozenset(getattr(target, "abilities", ()))
