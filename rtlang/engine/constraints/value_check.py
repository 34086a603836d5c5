"""Values that their constraint could not hold in full: checked when they are finished, off the step, and asked for again where they fail.

A schema may have keywords that its masks do not enforce (`Report` names them). Where a constraint has such keywords its finished text is
validated on a thread of its own, within a time; a text that fails is generated again as often as the request allows, and then the request
ends in an InvalidValueError. While a text may still be replaced nothing of it is shown. Everything but the check itself happens on
the engine thread.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from concurrent.futures import Executor
from dataclasses import replace
from typing import Protocol

from rtlang.contract.errors import ConstraintError, EngineDeadError, InvalidValueError, RtlangError
from rtlang.contract.params import SamplingParams
from rtlang.engine.daemon_pool import DaemonPool
from rtlang.engine.request import Request, RequestOutput
from rtlang_grammars.spec import GrammarError
from rtlang_grammars.value_checks import ValueCheck

_SEED_STEP = 0x9E3779B97F4A7C15
_NUM_THREADS = 2


class Start(Protocol):
    """Starts a generation like another one; see `Engine.add`."""

    def __call__(self, params: SamplingParams, seed: int, listener: Callable[[RequestOutput], None]) -> Request: ...


class ValueChecker:
    """Stands between requests and their listeners. Used on the engine thread; its pool checks values.

    Args:
        post: runs a command on the engine thread; raises EngineDeadError where that has ended.
        pool: runs the checks instead of own threads; for tests.
    """

    def __init__(self, post: Callable[[Callable[[], None]], None], pool: Executor | None = None) -> None:
        self._post = post
        self._pool = pool or DaemonPool(_NUM_THREADS, "value-check")

    def close(self) -> None:
        """Check nothing more."""
        self._pool.shutdown(wait=False, cancel_futures=True)

    def start(
        self,
        start: Start,
        params: SamplingParams,
        seed: int,
        listener: Callable[[RequestOutput], None],
        abort: Callable[[Request], None],
        is_wanted: Callable[[], bool],
    ) -> Request:
        """Start a generation whose listener gets a valid value or an error.

        Args:
            abort: ends a request, as `Engine.abort`.
            is_wanted: whether anyone still waits for the value. Where nobody does, later requests end.
        Returns:
            The first request. Outputs may come of later ones, and name them.
        """
        return _Generation(self._submit, start, params, seed, listener, abort, is_wanted).begin()

    def _submit(self, check: ValueCheck, text: str, then: Callable[[str | RtlangError | None], None]) -> None:
        def job() -> None:
            answer: str | RtlangError | None
            try:
                answer = check.error_in(text)
            except GrammarError as error:
                answer = ConstraintError(error.reason, error.location)
            except Exception as error:
                answer = ConstraintError(f"the value cannot be checked: {type(error).__name__}: {error}")
            try:
                self._post(lambda: then(answer))
            except EngineDeadError:
                return  # whoever waits was told when it ended

        self._pool.submit(job)


class _Generation:
    """One wanted value, and the requests for it, one after the other."""

    def __init__(
        self,
        check: Callable[[ValueCheck, str, Callable[[str | RtlangError | None], None]], None],
        start: Start,
        params: SamplingParams,
        seed: int,
        listener: Callable[[RequestOutput], None],
        abort: Callable[[Request], None],
        is_wanted: Callable[[], bool],
    ) -> None:
        self._check, self._start, self._params, self._seed = check, start, params, seed
        self._listener, self._abort, self._is_wanted = listener, abort, is_wanted
        self._num_attempts = 0
        self._held: list[RequestOutput] = []

    def begin(self) -> Request:
        attempt, params = self._num_attempts, self._params
        self._num_attempts += 1
        if attempt and params.temperature == 0:
            params = replace(params, temperature=1.0)  # else the same text would come again
        return self._start(params, (self._seed + attempt * _SEED_STEP) % (1 << 64), self._on_output)

    def _on_output(self, output: RequestOutput) -> None:
        session = output.request.session
        check = None if session is None else session.value_check
        if check is None or output.error is not None:
            self._listener(output)
        elif output.finish_reason is not None:
            self._held.append(output)
            self._check(check, output.request.output_text.text, self._on_answer)
        elif self._num_attempts > 1 and not self._is_wanted():
            self._abort(output.request)
        elif self._params.max_retries:
            self._held.append(output)
        else:
            self._listener(output)

    def _on_answer(self, answer: str | RtlangError | None) -> None:
        last = self._held[-1]
        held, self._held = self._held, []
        if answer is None:
            token_ids: Sequence[int] = [token_id for each in held for token_id in each.token_ids]
            self._listener(replace(last, text="".join(each.text for each in held), token_ids=token_ids))
        elif not self._is_wanted():
            return
        elif isinstance(answer, str) and self._num_attempts <= self._params.max_retries:
            try:
                self.begin()
            except RtlangError as error:
                self._listener(RequestOutput(last.request, error=error))
        else:
            if isinstance(answer, str):
                answer = InvalidValueError(last.request.output_text.text, answer, self._num_attempts)
            self._listener(RequestOutput(last.request, error=answer))
