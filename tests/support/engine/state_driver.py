"""Drives an engine on a runner with states, and knows what each request must give; see fake_state_runner."""

from __future__ import annotations

import random
from typing import Any

from rtlang.contract.config import RuntimeConfig
from rtlang.contract.errors import AbortedError
from rtlang.engine.drafts.drafter import Drafter
from rtlang.engine.requests.request import Request, RequestOutput
from tests.support.engine.draft_sources import FreeCost, Oracle
from tests.support.engine.engine_driver import EngineDriver
from tests.support.engine.fake_state_runner import FakeStateDeviceRunner, FakeStateRunner, generate_from_states
from tests.support.engine.open_constraint import OpenSession

REPLACED = 3 + ord("Z")


class Replacing(OpenSession):
    """Replaces every `every`th token: on a pipelined runner the row after it was computed from a wrong token."""

    matcher = object()

    def __init__(self, every: int) -> None:
        self._every, self._num_accepted = every, 0

    def accept(self, token_id: int, remaining: int) -> int:
        self._num_accepted += 1
        return REPLACED if self._num_accepted % self._every == 0 else token_id


class StateDriver(EngineDriver):
    """An engine on a runner with states, and what each request must give."""

    runner: FakeStateRunner

    def __init__(
        self,
        num_states: int = 16,
        num_pages: int = 64,
        page_size: int = 4,
        *,
        is_pipelined: bool = False,
        **settings: Any,
    ) -> None:
        settings.setdefault("max_step_tokens", 32)
        of_runner = {k: settings.pop(k) for k in ("eos_every", "fail_at", "raising", "state_bytes") if k in settings}
        parts = {k: settings.pop(k) for k in ("drafter", "rebuild") if k in settings}
        wrong = settings.pop("wrong", None)
        if wrong is not None:
            source = Oracle(lambda request: self.expected[request], wrong=wrong, wrong_ids=range(100, 104))
            parts["drafter"] = Drafter([source], FreeCost(), max_draft_tokens=settings.pop("max_draft_tokens", 5))
        config = RuntimeConfig(page_size=page_size, num_pages=num_pages, **settings)
        kind = FakeStateDeviceRunner if is_pipelined else FakeStateRunner
        super().__init__(kind(num_pages, page_size, num_states=num_states, **of_runner), config, **parts)
        self.expected: dict[Request, list[int]] = {}
        self.aborted: set[Request] = set()

    def add(self, tokens: list[int], max_tokens: int = 8, *, every: int = 0, **rest: Any) -> Request:
        """Add a request, of whose tokens every `every`th one is replaced by its constraint."""
        request = super().add(tokens, max_tokens, **rest)
        if every:
            request.session = Replacing(every)  # type: ignore[assignment]
        spec = request.spec
        self.expected[request] = (
            []
            if spec.score_only
            else generate_from_states(
                tokens,
                max_tokens,
                seed=spec.seed,
                choice=spec.choice,
                eos_every=self.runner.eos_every,
                replaced=(every, REPLACED),
            )
        )
        return request

    def listen(self, output: RequestOutput) -> None:
        super().listen(output)
        if output.request.spec.credit is not None:
            output.request.spec.credit.num_tokens -= len(output.token_ids)

    def abort_one(self, rng: random.Random) -> None:
        live = [request for request in self.expected if request not in self.last and request not in self.aborted]
        if live:
            victim = rng.choice(live)
            self.engine.abort(victim)
            self.aborted.add(victim)
            self.engine.scheduler.check()

    def assert_texts(self) -> None:
        assert self.runner.broken == []
        for request, tokens in self.expected.items():
            if request in self.aborted:
                assert isinstance(self.last[request].error, AbortedError)
            else:
                assert self.last[request].error is None
                assert request.output_token_ids == tokens
        self.assert_idle()
        assert self.engine.cache.states is not None
        assert self.engine.cache.states.num_private == 0
