"""Bodies of `/api/chat` and `/api/generate` as bodies of `/v1/chat/completions` and `/v1/completions`.

Fields and their meanings follow the published clients `ollama` for Python and Node. Options that are not given have the defaults of this
server; there is no model file.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any

from rtlang.contract.errors import ParameterError
from rtlang.serve.openai.fields import FieldTable, check_inner, read_bool, read_list, read_text, rename_field

_SHARED = frozenset(("model", "stream", "options", "format", "think", "logprobs", "top_logprobs"))
_HINTS = frozenset(("keep_alive",))
_NO_IMAGES = "not supported: the model takes no images"
CHAT_FIELDS = FieldTable(accepted=_SHARED | {"messages", "tools"}, hints=_HINTS)
"""The fields of `/api/chat`."""
GENERATE_FIELDS = FieldTable(
    accepted=_SHARED | {"prompt", "system", "raw"},
    fixed={"suffix": ("",), "template": ("",), "context": ([],), "images": ([],)},
    refused=dict.fromkeys(("width", "height", "steps"), "not supported: the model makes no images"),
    hints=_HINTS,
)
"""The fields of `/api/generate`."""
_OPTIONS = {
    **dict.fromkeys(
        ("seed", "top_k", "top_p", "min_p", "typical_p", "temperature", "presence_penalty", "frequency_penalty")
    ),
    **dict.fromkeys(("mirostat", "mirostat_tau", "mirostat_eta", "stop")),
    "num_predict": "max_tokens",
    "repeat_penalty": "repetition_penalty",
}
OPTION_FIELDS = FieldTable(
    accepted=frozenset((*_OPTIONS, "repeat_last_n")),
    fixed={
        "tfs_z": (1, 1.0),
        "penalize_newline": (True,),
        "logits_all": (False,),
        "vocab_only": (False,),
        "embedding_only": (False,),
    },
    hints=frozenset(
        (
            "numa",
            "num_ctx",
            "num_batch",
            "num_gpu",
            "main_gpu",
            "low_vram",
            "f16_kv",
            "use_mmap",
            "use_mlock",
            "num_thread",
        )
    )
    | {"num_keep", "draft_num_predict"},
)
"""The fields of `options`. Fields about memory and devices are hints: the server was started with its own."""
_CHAT_NAMES = (
    *((name or option, f"options.{option}") for option, name in _OPTIONS.items()),
    ("response_format.json_schema.schema", "format"),
    ("response_format.json_schema", "format"),
    ("response_format", "format"),
    ("enable_thinking", "think"),
    ("reasoning_effort", "think"),
)
_ROLES = ("system", "user", "assistant", "tool")
_EFFORTS = ("low", "medium", "high", "max")
LATEST = ":latest"
"""The tag that Ollama's clients append to the name of a model."""


def chat_body(body: Mapping[str, Any]) -> dict[str, Any] | None:
    """The body of a chat completion; None if the request only asks to load the model.

    Raises:
        ParameterError: a field is not supported, missing or invalid; names it.
    """
    given = CHAT_FIELDS.given(body)
    messages = read_list(given, "messages") if "messages" in given else []
    if not messages:
        return None
    found = _shared(given) | {"messages": _messages(messages)}
    if given.get("tools"):
        found["tools"] = given["tools"]
    return found


def generate_body(body: Mapping[str, Any]) -> tuple[dict[str, Any] | None, bool]:
    """The body of a chat completion, or of a completion if the prompt is raw, and which it is.

    Raises:
        ParameterError: a field is not supported, missing or invalid; names it.
    """
    given = GENERATE_FIELDS.given(body)
    prompt = read_text(given, "prompt") if "prompt" in given else ""
    is_raw = read_bool(given, "raw")
    if not prompt:
        return None, is_raw
    found = _shared(given)
    if is_raw:
        for name in ("system", "think"):
            if given.get(name):
                raise ParameterError(name, given[name], "allowed only without raw")
        if found.pop("logprobs", False):
            found["logprobs"] = found.pop("top_logprobs", 0)
        return found | {"prompt": prompt}, True
    system = [{"role": "system", "content": read_text(given, "system")}] if given.get("system") else []
    return found | {"messages": [*system, {"role": "user", "content": prompt}]}, False


def renamed_error(error: ParameterError) -> ParameterError:
    """An error of the chat request with the name that its field has in this API."""
    return rename_field(error, _CHAT_NAMES)


def _shared(given: Mapping[str, Any]) -> dict[str, Any]:
    """The fields that both routes have."""
    found: dict[str, Any] = {"stream": read_bool(given, "stream", True)}
    if found["stream"]:
        found["stream_options"] = {"include_usage": True}
    if "model" in given:
        found["model"] = read_text(given, "model").removesuffix(LATEST)
    if (form := given.get("format", "")) != "":
        found["response_format"] = _format(form)
    if "think" in given:
        found |= _thought(given["think"])
    if read_bool(given, "logprobs"):
        found |= {"logprobs": True, "top_logprobs": given.get("top_logprobs", 0)}
    elif given.get("top_logprobs"):
        raise ParameterError("top_logprobs", given["top_logprobs"], "allowed only with logprobs = true")
    return found | _options(given.get("options", {}))


def _format(form: Any) -> dict[str, Any]:
    if form == "json":
        return {"type": "json_object"}
    if not isinstance(form, Mapping):
        raise ParameterError("format", form, "expected 'json' or a JSON schema")
    return {"type": "json_schema", "json_schema": {"name": "format", "schema": form, "strict": True}}


def _thought(think: Any) -> dict[str, Any]:
    if isinstance(think, bool):
        return {"enable_thinking": think}
    if think not in _EFFORTS:
        raise ParameterError("think", think, f"expected true, false, {', '.join(_EFFORTS)}")
    return {"reasoning_effort": think}


def _options(options: Any) -> dict[str, Any]:
    if not isinstance(options, Mapping):
        raise ParameterError("options", options, "expected an object")
    try:
        given = OPTION_FIELDS.given(options)
    except ParameterError as error:
        raise ParameterError(f"options.{error.field}", error.value, error.allowed) from None
    last = given.pop("repeat_last_n", -1)
    if last == 0:
        given.pop("repeat_penalty", None)
    elif last != -1 and given.get("repeat_penalty", 1.0) != 1.0:
        raise ParameterError("options.repeat_last_n", last, "only -1 (all tokens) and 0 (no penalty) are supported")
    num_predict = given.get("num_predict")
    if isinstance(num_predict, int) and num_predict < 0:  # without a limit
        del given["num_predict"]
    return {_OPTIONS[name] or name: value for name, value in given.items()}


def _messages(messages: list[Any]) -> list[dict[str, Any]]:
    """The messages of a chat: calls get ids, by which the results after them name them."""
    found: list[dict[str, Any]] = []
    open_calls: list[tuple[str, str]] = []  # name and id of calls without a result
    num_calls = 0
    for i, message in enumerate(messages):
        where = f"messages[{i}]"
        given = check_inner(
            where, message, ("role", "content", "thinking", "tool_calls", "tool_name", "tool_call_id", "name", "images")
        )
        if given.get("images"):
            raise ParameterError(f"{where}.images", "...", _NO_IMAGES)
        role = given.get("role")
        if role not in _ROLES:
            raise ParameterError(f"{where}.role", role, f"expected one of {', '.join(_ROLES)}")
        made: dict[str, Any] = {"role": role, "content": given.get("content", "")}
        if role == "assistant":
            if given.get("thinking"):
                made["reasoning_content"] = given["thinking"]
            calls = read_list(given, "tool_calls", f"{where}.") if "tool_calls" in given else []
            open_calls = []
            for j, call in enumerate(calls):
                num_calls += 1
                name, text, given_id = _call(call, f"{where}.tool_calls[{j}]")
                call_id = given_id or f"call_{num_calls}"
                open_calls.append((name, call_id))
                made.setdefault("tool_calls", []).append(
                    {"id": call_id, "type": "function", "function": {"name": name, "arguments": text}}
                )
        elif role == "tool":
            wanted = given.get("tool_name", given.get("name"))
            at = next((k for k, (name, _) in enumerate(open_calls) if wanted in (None, name)), None)
            matched = open_calls.pop(at)[1] if at is not None else f"call_{max(1, num_calls)}"
            made["tool_call_id"] = given.get("tool_call_id", matched)
            if isinstance(wanted, str):
                made["name"] = wanted
        found.append(made)
    return found


def _call(call: Any, where: str) -> tuple[str, str, str | None]:
    """The name of a call, its arguments as JSON text, and its id."""
    given = check_inner(where, call, ("function", "id", "type"))
    function = check_inner(f"{where}.function", given.get("function"), ("name", "arguments"), ("index",))
    name, arguments = read_text(function, "name", f"{where}.function."), function.get("arguments", {})
    if not isinstance(arguments, Mapping):
        raise ParameterError(f"{where}.function.arguments", arguments, "expected an object")
    call_id = read_text(given, "id", f"{where}.") if "id" in given else None
    return name, json.dumps(arguments, ensure_ascii=False), call_id
