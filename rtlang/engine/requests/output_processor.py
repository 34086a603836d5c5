"""Applies a sampled token to its request: constraint, stop conditions, detokenization, end of generation.

Everything here concerns one request; an exception fails that request alone.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from rtlang.contract.errors import BudgetError, NumericsError, ParameterError
from rtlang.contract.events import TokenLogprob
from rtlang.contract.params import FinishReason
from rtlang.contract.step import Row, SampledRow, SampledToken
from rtlang.engine.constraints.session import ConstraintSession
from rtlang.engine.constraints.stop_places import StopPlaces
from rtlang.engine.constraints.stop_search import StopPattern
from rtlang.engine.constraints.thought_limit import limit_of
from rtlang.engine.requests.request import Request, RequestOutput
from rtlang_grammars.spec.work_limit import WorkLimit

_FORBIDDING = ("bad_words", "allowed_token_ids", "no_repeat_ngram_size")


def num_remaining(request: Request) -> int:
    """Tokens that may still be generated, the next one included."""
    return request.max_tokens - request.num_output_tokens


def end_of_scoring(request: Request) -> FinishReason:
    """Why a request ends that generates nothing."""
    return FinishReason.STOP if request.spec.params.max_tokens else FinishReason.LENGTH


def take_session(request: Request, session: ConstraintSession) -> None:
    """Give a request the session of its constraint, or of the limit of its thought."""
    request.session = session
    if request.spec.params.thought_marks:
        is_constrained = request.spec.constraint is not None
        session.thought = limit_of(request.spec.params, request.max_tokens, is_constrained=is_constrained)


def take_stops(request: Request, patterns: Sequence[StopPattern]) -> None:
    """Give a request its compiled stop patterns; call after `take_session`. A stop ends a constrained text only where it is complete."""
    params, session, places = request.spec.params, request.session, None
    if (
        session is not None
        and not request.has_limited_thought
        and (params.stop or params.stop_regex or params.stop_token_ids)
    ):
        names = request.output_text.special_token_ids
        places = StopPlaces(params, names, num_skipped=len(request.spec.begins_with))
        session.stop_at(places)
    if patterns or places is not None:
        request.output_text.search_for(patterns, None if places is None else places.may_begin)


def advance(request: Request, row: Row, result: SampledRow, work: WorkLimit) -> Iterator[RequestOutput]:
    """Apply the result of a row to its request; yields one output for each token that it takes.

    Sampled tokens are taken up to the first one that is not the draft's, so the text is that of one token at a time. They also end before
    one with which the constraint has more work than `work` allows: it becomes `request.late`, and `advance_late` takes it.

    Raises:
        NumericsError: the logits are not finite, or no token is allowed.
        RtlangError: raised by a logits processor, a script, the constraint or a stop regex.
    """
    if result.error is not None:
        raise result.error
    if not result.is_finite:
        forbidding = [name for name in _FORBIDDING if getattr(request.spec.params, name)]
        hint = f" (by the constraint and {', '.join(forbidding)} together)" if forbidding else ""
        raise NumericsError(
            f"the logits of token {len(request.token_ids)} are not finite, or no token is allowed{hint}"
        )
    if result.scores:
        request.results.scores.extend(result.scores)
        request.take_given_logprobs()
    if request.spec.score_only:
        if request.num_computed_tokens - request.pending.num_computed_tokens >= request.num_target_tokens:
            yield request.given_end or RequestOutput(request, finish_reason=end_of_scoring(request))
        return
    draft = row.draft_token_ids if row.num_draft_tokens else ()
    for index, sampled in enumerate(result.tokens):
        if (
            index and request.pages.node is not None
        ):  # the draft before this token was right: its K and V belong to the text
            if request.states is None:
                request.num_computed_tokens += 1
            else:  # its state was not kept: it is computed again with the next row
                request.states.num_kv_tokens += 1
        if request.resampled_ids and request.num_output_tokens < len(request.resampled_ids):
            sampled = _as_given(sampled, request.resampled_ids[request.num_output_tokens])
        session = request.session
        if session is not None:
            num_left = request.max_tokens + request.num_prompt_tokens - len(request.token_ids)
            if not session.try_accept(sampled.token_id, num_left, work):
                request.late = sampled
                return
        output = _take(request, sampled)
        yield output
        if index >= len(draft) or output.is_last or request.token_ids[-1] != draft[index]:
            return


def advance_late(request: Request) -> RequestOutput:
    """Take the late token, which the constraint has accepted; see `advance`."""
    assert request.late is not None
    sampled, request.late = request.late, None
    return _take(request, sampled)


def replay(request: Request, num_tokens: int, work: WorkLimit) -> RequestOutput | None:
    """Append the next given tokens, with the constraint, the stops and the text as if they had been sampled now.

    Args:
        num_tokens: how many at most; fewer if the constraint has more work with one than `work` allows.
    Returns:
        The last output, without the text and tokens that were given out before, if the text ends within these tokens; else None.
    Raises:
        ParameterError: the constraint does not lead to these tokens.
        RtlangError: raised by the constraint or a stop regex.
    """
    for token_id in request.spec.given_ids[request.num_given : request.num_given + num_tokens]:
        if request.session is not None and not request.session.try_accept(token_id, num_remaining(request), work):
            return None
        num_known = len(request.token_ids)
        output = _append(request, token_id, None)
        _check_given(request.token_ids[num_known:], token_id)
        request.num_given += 1
        _note_captures(request, output)
        if output.is_last:
            return RequestOutput(request, finish_reason=output.finish_reason)
    return None


def _check_given(appended: Sequence[int], token_id: int) -> None:
    if list(appended) != [token_id]:
        raise ParameterError("continue_from", token_id, "expected a token that an earlier run of this generation gave")


def _as_given(sampled: SampledToken, token_id: int) -> SampledToken:
    """A sampled token, or the given one in its place: the constraint replaced it in the earlier run, or the device is not deterministic."""
    if sampled.token_id == token_id:
        return sampled
    logprob = None if sampled.logprob is None else _replaced(sampled.logprob, token_id)
    return sampled._replace(token_id=token_id, logprob=logprob, surprise=None)


def _replaced(logprob: TokenLogprob, token_id: int) -> TokenLogprob:
    """The log-probability of another token: known only if it is among the reported top entries."""
    return TokenLogprob(token_id, dict(logprob.top).get(token_id, float("-inf")), logprob.top)


def _take(request: Request, sampled: SampledToken) -> RequestOutput:
    results, num_known = request.results, len(request.token_ids)
    num_logprobs = len(results.logprobs)
    is_resampled = bool(request.resampled_ids) and request.num_output_tokens < len(request.resampled_ids)
    output = _append(request, sampled.token_id, sampled.logprob)
    if num_logprobs < len(results.logprobs):
        output.logprobs = results.logprobs[num_logprobs:]
    if is_resampled:
        _check_given(request.token_ids[num_known:], sampled.token_id)
        output = RequestOutput(request, finish_reason=output.finish_reason)
    if sampled.surprise is not None and request.token_ids[num_known:] == [sampled.token_id]:
        # a token that the constraint chose instead was no surprise of the distribution
        params = request.spec.params
        request.max_surprise -= params.mirostat_eta * (sampled.surprise - params.mirostat_tau)
    if sampled.distortion is not None:
        results.distortion.append((sampled.distortion, len(request.output_text.text)))
    if output.finish_reason is not None:
        _note_captures(request, output)
    return output


def _note_captures(request: Request, output: RequestOutput) -> None:
    """Keep what the grammar of a text that has ended has captured."""
    if output.is_last and request.session is not None:
        request.results.captures = request.session.captures()


def _append(request: Request, token_id: int, logprob: TokenLogprob | None) -> RequestOutput:
    session, token_ids = request.session, request.token_ids
    num_before = len(token_ids) - request.num_prompt_tokens
    min_tokens = request.spec.params.min_tokens
    if session is not None:
        sampled = token_id
        accepted = session.accept(sampled, request.max_tokens - num_before)
        if accepted is None:
            is_stop = sampled in request.stop_ids and sampled not in request.eos_ids
            return _end(request, FinishReason.STOP, sampled if is_stop else None)
        token_id = accepted
        if token_id != sampled and logprob is not None:
            logprob = _replaced(logprob, token_id)  # by a completion path
    elif token_id in request.stop_ids and num_before >= min_tokens:
        return _end_at_token(request, token_id, logprob)
    token_ids.append(token_id)
    if logprob is not None:
        request.results.logprobs.append(logprob)
    is_in_free_thought = session is not None and request.has_limited_thought
    if session is not None and is_in_free_thought and not session.is_in_thought:
        session.close()  # it only limited the thought, which has ended
        request.session = session = None
        is_in_free_thought = False
    num_output_tokens = num_before + 1
    text, stop = request.output_text.push(token_id, may_stop=not is_in_free_thought and num_output_tokens >= min_tokens)
    if stop is not None:
        request.results.stop = stop.match
        return RequestOutput(request, text, (token_id,), FinishReason.STOP)
    if session is not None and session.is_complete:
        return _end(request, FinishReason.STOP, None, text, (token_id,))
    if num_output_tokens >= request.max_tokens:
        if session is not None and not session.is_accepting:
            raise BudgetError(request.max_tokens, None)
        return _end(request, FinishReason.LENGTH, None, text, (token_id,))
    return RequestOutput(request, text, (token_id,))


def _end_at_token(request: Request, token_id: int, logprob: TokenLogprob | None) -> RequestOutput:
    """End a free text at a stop token or an end token of the model."""
    if token_id in request.eos_ids:
        return _end(request, FinishReason.STOP, None)
    if not request.spec.params.include_stop_str_in_output:
        return _end(request, FinishReason.STOP, token_id)
    request.token_ids.append(token_id)
    if logprob is not None:
        request.results.logprobs.append(logprob)
    text, _ = request.output_text.push(token_id, may_stop=False)
    return _end(request, FinishReason.STOP, token_id, text, (token_id,))


def _end(
    request: Request, reason: FinishReason, match: int | None, text: str = "", token_ids: tuple[int, ...] = ()
) -> RequestOutput:
    rest, stop = request.output_text.finish()
    if stop is not None:
        reason = FinishReason.STOP
    request.results.stop = stop.match if stop is not None else match
    return RequestOutput(request, text + rest, token_ids, reason)
