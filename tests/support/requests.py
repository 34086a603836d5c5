"""Requests for tests of the engine's parts."""

from __future__ import annotations

from dataclasses import fields
from typing import Any

from rtlang.contract.params import SamplingParams
from rtlang.engine.requests.detokenizer import IncrementalDetokenizer
from rtlang.engine.requests.request import Request, RequestSpec
from tests.support.engine.fake_runner import FakeTokenizer

_SPEC_FIELDS = {each.name for each in fields(RequestSpec)}


def make_request(
    request_id: int, prompt_ids: list[int], params: SamplingParams | None = None, tokenizer: Any = None, **rest: Any
) -> Request:
    """A request whose listener hears nothing.

    Args:
        rest: fields of its specification and of the request.
    """
    params = SamplingParams() if params is None else params
    asked: dict[str, Any] = {"listener": lambda output: None}
    asked |= {name: value for name, value in rest.items() if name in _SPEC_FIELDS}
    own = {name: value for name, value in rest.items() if name not in _SPEC_FIELDS or name == "program"}
    text = IncrementalDetokenizer(FakeTokenizer() if tokenizer is None else tokenizer, params)
    return Request(request_id, RequestSpec(prompt_ids=prompt_ids, params=params, **asked), text, **own)
