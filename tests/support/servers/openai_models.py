"""The response models of the official `openai` package, read strictly: what its client accepts is what a server may send."""

from __future__ import annotations

import copy
from collections.abc import Iterable, Sequence
from typing import Any

from openai.types import Completion, Model
from openai.types.chat import ChatCompletion, ChatCompletionChunk

_EXTRA = {"reasoning_content", "reasoning"}  # of other servers for models that reason; clients look for them


def read_chat(response: object) -> ChatCompletion:
    found = ChatCompletion.model_validate(response, strict=True)
    _check_extra(found)
    return found


def read_completion(response: dict[str, Any]) -> Completion:
    """The models know no null in two places where the API has them: in streams, and for the first token of an echo."""
    plain = copy.deepcopy(response)
    for choice in plain["choices"]:
        choice["finish_reason"] = choice["finish_reason"] or "content_filter"
        for name in ("token_logprobs", "top_logprobs"):
            values = (choice["logprobs"] or {}).get(name)
            if values and values[0] is None:
                values[0] = 0.0 if name == "token_logprobs" else {}
    found = Completion.model_validate(plain, strict=True)
    _check_extra(found)
    return found


def read_model(response: object) -> Model:
    return Model.model_validate(response, strict=True)


def joined_chunks(chunks: Iterable[object]) -> dict[int, dict[str, Any]]:
    """The choices of a stream by index: role, content, reasoning, calls, logprobs and finish reason. Checks the rules of a stream."""
    choices: dict[int, dict[str, Any]] = {}
    for plain in chunks:
        chunk = ChatCompletionChunk.model_validate(plain, strict=True)
        _check_extra(chunk)
        for choice in chunk.choices:
            found = choices.get(choice.index)
            if found is None:
                assert choice.delta.role == "assistant"  # the first chunk of a choice names the role
                found = choices[choice.index] = {
                    "content": "",
                    "reasoning": "",
                    "calls": [],
                    "tokens": [],
                    "thought": [],
                    "finish": None,
                }
            assert found["finish"] is None, "a chunk behind the finish reason"
            found["finish"] = choice.finish_reason
            found["content"] += choice.delta.content or ""
            found["reasoning"] += getattr(choice.delta, "reasoning_content", None) or ""
            found["tokens"] += (choice.logprobs.content or []) if choice.logprobs else []
            found["thought"] += getattr(choice.logprobs, "reasoning", None) or []
            for call in choice.delta.tool_calls or ():
                assert call.function is not None
                if call.index == len(found["calls"]):
                    assert call.id
                    assert call.type == "function"
                    found["calls"].append([call.function.name, "", call.id])
                else:
                    assert call.index == len(found["calls"]) - 1, "a piece of a call that is over"
                    assert call.id is None
                    assert call.function.name is None
                found["calls"][call.index][1] += call.function.arguments or ""
    return choices


def calls_of(response: ChatCompletion, index: int = 0) -> list[tuple[str, str]]:
    return [(call.function.name, call.function.arguments) for call in response.choices[index].message.tool_calls or ()]  # type: ignore[union-attr]


def _check_extra(model: Any) -> None:
    """No field that the models do not know, at any depth."""
    unknown = set(model.model_extra or ()) - _EXTRA
    assert not unknown, unknown
    for value in vars(model).values():
        for each in value if isinstance(value, Sequence) and not isinstance(value, str | bytes) else [value]:
            if hasattr(each, "model_extra"):
                _check_extra(each)
