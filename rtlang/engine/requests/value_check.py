"""Checks finished values against keywords that masks do not enforce, and regenerates invalid ones.

A schema may have keywords that its masks do not enforce (its `Report` lists them). It may be the schema of the whole text, or of a part,
such as the arguments of a tool call. Finished texts are validated on a separate thread with a time limit. An invalid one is generated again
up to `max_retries` times, after which the request ends with InvalidValueError, or with the invalid text (`keeps_invalid`). Text that may
still be replaced is not streamed: only the text before the first checked part is passed on as it comes, and later attempts continue after
it. Everything except the check itself runs on the engine thread.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace

from rtlang.contract.accounts.request_account import WorkKind
from rtlang.contract.errors import ConstraintError, EngineDeadError, InvalidValueError, RtlangError
from rtlang.engine.requests.request import Request, RequestOutput, RequestSpec
from rtlang.work.fair_executor import FairExecutor
from rtlang.work.fair_queue import Owner, owner_of
from rtlang.work.prices import CHECK_S_PER_CHAR
from rtlang_grammars import GrammarError, TextCheck

_SEED_STEP = 0x9E3779B97F4A7C15


Start = Callable[[RequestSpec], Request]
"""Starts a generation; see `Engine.add`."""


class ValueChecker:
    """Intercepts outputs between requests and their listeners. Used on the engine thread; a pool checks values.

    Args:
        post: runs a command on the engine thread; raises EngineDeadError if the engine has ended.
        executor: runs the checks in turns with other work; it belongs to the caller.
    """

    def __init__(self, post: Callable[[Callable[[], None]], None], executor: FairExecutor) -> None:
        self._post, self._executor = post, executor

    def start(
        self, start: Start, spec: RequestSpec, abort: Callable[[Request], None], is_wanted: Callable[[], bool]
    ) -> Request:
        """Start a generation whose listener receives a valid value or an error.

        Args:
            spec: of the first attempt. The constraint, and so its check, includes `begins_with`.
            abort: ends a request, like `Engine.abort`.
            is_wanted: whether the value is still needed; otherwise later attempts are aborted.
        Returns:
            The first request. Outputs may belong to later attempts and then name their request.
        """
        return _Generation(self._submit, start, spec, abort, is_wanted).begin()

    def _submit(
        self, owner: Owner, check: TextCheck, text: str, then: Callable[[str | RtlangError | None], None]
    ) -> None:
        def job() -> None:
            answer: str | RtlangError | None
            try:
                answer = check.error_in(text)
            except GrammarError as error:
                answer = ConstraintError(error.reason, error.location)
            except Exception as error:
                answer = ConstraintError(f"checking the value failed: {type(error).__name__}: {error}")
            try:
                self._post(lambda: then(answer))
            except EngineDeadError:
                return  # the listener was already notified

        self._executor.submit_for(owner, len(text) * CHECK_S_PER_CHAR, job, kind=WorkKind.VALUE)


class _Generation:
    """One requested value, with its successive attempts."""

    def __init__(
        self,
        check: Callable[[Owner, TextCheck, str, Callable[[str | RtlangError | None], None]], None],
        start: Start,
        spec: RequestSpec,
        abort: Callable[[Request], None],
        is_wanted: Callable[[], bool],
    ) -> None:
        self._check, self._start, self._spec = check, start, spec
        self._abort, self._is_wanted = abort, is_wanted
        self._given_ids = spec.given_ids  # with which the next attempt begins
        self._num_attempts = 0
        self._held: list[RequestOutput] = []

    def begin(self) -> Request:
        attempt, params = self._num_attempts, self._spec.params
        self._num_attempts += 1
        if attempt and params.temperature == 0:
            params = replace(params, temperature=1.0)  # greedy decoding would repeat the same text
        seed = (self._spec.seed + attempt * _SEED_STEP) % (1 << 64)
        return self._start(
            replace(self._spec, params=params, seed=seed, listener=self._on_output, given_ids=self._given_ids)
        )

    def _on_output(self, output: RequestOutput) -> None:
        session = output.request.session
        check = None if session is None else session.value_check
        if check is None or output.error is not None:
            self._spec.listener(output)
        elif output.finish_reason is not None:
            self._hold(check, output)
            owner = owner_of(self._spec.principal)
            self._check(owner, check, self._spec.begins_with + output.request.output_text.text, self._on_answer)
        elif self._num_attempts > 1 and not self._is_wanted():
            self._abort(output.request)
        elif self._spec.params.max_retries and (
            self._held or check.may_begin(self._spec.begins_with + output.request.output_text.shown, len(output.text))
        ):
            self._hold(check, output)
        else:
            self._spec.listener(output)

    def _hold(self, check: TextCheck, output: RequestOutput) -> None:
        """Keep an output until the text is valid. Later attempts begin with the tokens before the first of them."""
        if not self._held:
            shown, token_ids = output.request.output_text.shown, output.request.output_token_ids
            before = self._spec.begins_with + shown[: len(shown) - len(output.text)]
            is_kept = not check.may_begin(before, len(before))
            self._given_ids = tuple(token_ids[: len(token_ids) - len(output.token_ids)]) if is_kept else ()
        self._held.append(output)

    def _on_answer(self, answer: str | RtlangError | None) -> None:
        last = self._held[-1]
        held, self._held = self._held, []
        is_last = self._num_attempts > self._spec.params.max_retries
        if answer is None or (isinstance(answer, str) and is_last and self._spec.params.keeps_invalid):
            token_ids: Sequence[int] = [token_id for each in held for token_id in each.token_ids]
            logprobs = [logprob for each in held for logprob in each.logprobs]
            text = "".join(each.text for each in held)
            self._spec.listener(replace(last, text=text, token_ids=token_ids, logprobs=logprobs))
        elif not self._is_wanted():
            return
        elif isinstance(answer, str) and not is_last:
            try:
                self.begin()
            except RtlangError as error:
                self._spec.listener(RequestOutput(last.request, error=error))
        else:
            if isinstance(answer, str):
                answer = InvalidValueError(last.request.output_text.text, answer, self._num_attempts)
            self._spec.listener(RequestOutput(last.request, error=answer))
