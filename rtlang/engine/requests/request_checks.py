"""Refuses requests that can never run."""

from __future__ import annotations

from rtlang.contract.errors import ContextLengthError, ParameterError, RequestError
from rtlang.engine.requests.request import RequestSpec
from rtlang.model.runner import Runner

MAX_PROMPT_LOGPROBS = 1 << 20
"""Log-probabilities that one request may report of its prompt."""


def check_request(runner: Runner, spec: RequestSpec) -> None:
    """Check a request against the model and the limits of its principal.

    Raises:
        RequestError, ParameterError: the request can never run.
    """
    tokenizer, model = runner.tokenizer, runner.model_config
    token_ids, params, principal = spec.prompt_ids, spec.params, spec.principal
    if not token_ids:
        raise RequestError("the prompt is empty, and the model has no start token")
    for name, ids in (
        ("stop_token_ids", params.stop_token_ids),
        ("logit_bias", [pair[0] for pair in params.logit_bias]),
        ("allowed_token_ids", params.allowed_token_ids or ()),
    ):
        for token_id in ids:
            if token_id >= model.vocab_size:
                raise ParameterError(name, token_id, f"expected a token id below {model.vocab_size}")
    if params.include_stop_str_in_output and spec.constraint is not None:
        raise ParameterError(
            "include_stop_str_in_output",
            True,
            "allowed only without a constraint, whose text ends before the stop",
        )
    if spec.given_ids and not params.max_tokens:
        raise ParameterError("continue_from", spec.given_ids[0], "expected no tokens where max_tokens = 0")
    limit = principal.limits.max_prompt_tokens
    if limit is not None and len(token_ids) > limit:
        raise RequestError(f"the prompt has {len(token_ids)} tokens; max_prompt_tokens = {limit} of {principal.name}")
    for token_id in spec.given_ids:
        if not 0 <= token_id < model.vocab_size:
            raise ParameterError("continue_from", token_id, f"expected a token id below {model.vocab_size}")
    if tokenizer.vocab_size > model.vocab_size and max(token_ids) >= model.vocab_size:
        raise RequestError(
            f"the prompt contains token {max(token_ids)}; the model's vocabulary has {model.vocab_size} tokens"
        )
    if spec.score_from is not None and params.prompt_logprobs is not None:
        num_logprobs = len(token_ids) * (params.prompt_logprobs + 1)
        if num_logprobs > MAX_PROMPT_LOGPROBS:
            allowed = f"expected at most {MAX_PROMPT_LOGPROBS} log-probabilities, not {num_logprobs} of {len(token_ids)} tokens"
            raise ParameterError("prompt_logprobs", params.prompt_logprobs, allowed)
    room = runner.max_model_len - len(token_ids)
    if room < (0 if spec.score_only else max(1, len(spec.given_ids))):
        raise ContextLengthError(len(token_ids), params.max_tokens, runner.max_model_len)
