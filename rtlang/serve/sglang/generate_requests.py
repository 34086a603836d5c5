"""Bodies of `/generate`, as clients of SGLang's runtime write them, to a graph of independent generations.

A body has one prompt or a list, as `text` or `input_ids`; options may be lists too, one for each prompt. The graph has two nodes for each
prompt: node 2i is the prompt i, node 2i + 1 its generation. Field names and defaults are those of SGLang, but for two differences: text in
the prompt never becomes a special token unless `parse_special` is true, and the log-probabilities of a prompt without new tokens
(max_new_tokens = 0) are those of the whole prompt if `logprob_start_len` does not say otherwise.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from rtlang.contract.errors import ParameterError
from rtlang.contract.params import MAX_LOGPROBS, MAX_MAX_TOKENS, MAX_N, MAX_PRIORITY, Constraint, SamplingParams
from rtlang.contract.request_graph import Generate, Node, Part, RequestGraph, Text, TokenIds
from rtlang.serve.openai.completions import MAX_PROMPTS, Prompt
from rtlang.serve.openai.fields import IGNORED as HINTS
from rtlang.serve.openai.fields import SALTS, FieldTable, read_bool, read_cache_salt, read_id_lists, read_int
from rtlang.serve.openai.sampling import FILTER_FIELDS, read_biases, read_filters
from rtlang.serve.openai.structured import STYLE, read_structured

MAX_ID_CHARS = 128
IGNORED = frozenset(
    (
        "bootstrap_room",
        "conversation_id",
        "log_metrics",
        "model",
        "no_logs",
        "routing_key",
        "session_id",
    )
)
"""Fields of `/generate` that do not change the text. docs/serving.md publishes this list."""
FIELDS = FieldTable(
    accepted=frozenset(
        (
            "text",
            "input_ids",
            "sampling_params",
            "rid",
            "return_logprob",
            "logprob_start_len",
            "top_logprobs_num",
            "return_text_in_logprobs",
            "stream",
            "priority",
            "parse_special",
            *SALTS,
        )
    ),
    fixed={
        "image_data": ([], ""),
        "video_data": ([],),
        "audio_data": ([],),
        "modalities": ([], ["text"]),
        "token_ids_logprob": ([],),
        "return_hidden_states": (False,),
        "return_routed_experts": (False,),
        "return_sampling_mask": (False,),
        "return_flat_raw_top_logprobs": (False,),
        "return_flat_raw_output_top_logprobs": (False,),
        "background": (False,),
        "require_reasoning": (False,),
        "use_audio_in_video": (False,),
    },
    hints=HINTS | IGNORED,
)
_SAME_NAME = (
    "stop",
    "stop_token_ids",
    "stop_regex",
    "temperature",
    "top_p",
    "top_k",
    "min_p",
    "frequency_penalty",
    "presence_penalty",
    "repetition_penalty",
    "n",
    "ignore_eos",
)
_CONSTRAINTS = ("json_schema", "regex", "ebnf", STYLE)
_SAMPLING = FieldTable(
    accepted=frozenset(
        (
            *(*_SAME_NAME, *FILTER_FIELDS, *_CONSTRAINTS),
            *("max_new_tokens", "min_new_tokens", "sampling_seed", "logit_bias", "no_stop_trim"),
        )
    ),
    fixed={
        "skip_special_tokens": (True,),
        "spaces_between_special_tokens": (True, False),  # there are no special tokens in the text
        "custom_params": ({},),
        "beam_width": (1,),
        "structural_tag": ("",),
    },
)
_ALL_TOKENS = 1 << 30  # SGLang writes "all" as -1 or as this
_ANY_JSON = "$$ANY$$"


@dataclass(frozen=True, slots=True)
class Item:
    """One prompt of a request.

    Attributes:
        params: of its generation; with max_new_tokens = 0 one token, which the response leaves out.
        start: the position in the prompt from which log-probabilities are reported; None for none.
        num_top: the number of most likely tokens that are reported at each position.
        is_empty: whether the response has no generated token.
        keeps_stop: whether the stop string is a part of the text.
        rid: id that the response repeats; None for one of the server.
    """

    prompt: Prompt
    params: SamplingParams
    constraint: Constraint | None
    has_logprobs: bool
    start: int | None
    num_top: int
    is_empty: bool
    keeps_stop: bool
    rid: str | None


@dataclass(frozen=True, slots=True)
class GenerateRequest:
    """A request.

    Attributes:
        items: its prompts.
        is_list: whether the prompts came as a list, so that the response is one.
        has_text: whether log-probabilities have the texts of their tokens.
        parses_special: whether names of special tokens in a prompt are these tokens.
        cache_salt: see `RunOptions`; one for all prompts.
    """

    items: tuple[Item, ...]
    is_list: bool
    is_stream: bool
    has_text: bool
    parses_special: bool
    priority: int
    cache_salt: str | None

    @property
    def needs_ids(self) -> tuple[int, ...]:
        """The items whose text must be encoded before the graph is made."""
        return tuple(
            i
            for i, item in enumerate(self.items)
            if isinstance(item.prompt, str) and (self.parses_special or item.start is not None)
        )


def read_generate(body: Mapping[str, Any], *, parses_special: bool = False) -> GenerateRequest:
    """Read a body.

    Args:
        parses_special: the default of `parse_special`.
    Raises:
        ParameterError: a field is not supported, missing or invalid; names it.
    """
    given = FIELDS.given(body)
    prompts, is_list = _read_prompts(given)
    count = len(prompts)
    columns = {
        name: _for_each(given, name, count)
        for name in ("sampling_params", "return_logprob", "logprob_start_len", "top_logprobs_num")
    }
    rids = _read_rids(given.get("rid"), count, is_list)
    items = tuple(
        _read_item(prompt, {name: values[i] for name, values in columns.items() if values[i] is not None}, rids[i])
        for i, prompt in enumerate(prompts)
    )
    return GenerateRequest(
        items,
        is_list,
        read_bool(given, "stream"),
        read_bool(given, "return_text_in_logprobs"),
        read_bool(given, "parse_special", parses_special),
        read_int(given, "priority", -MAX_PRIORITY, MAX_PRIORITY, 0) or 0,
        read_cache_salt(given),
    )


def generate_graph(request: GenerateRequest, ids: Mapping[int, Sequence[int]]) -> RequestGraph:
    """The graph of a request.

    Args:
        ids: the tokens of the prompts that were encoded, by item.
    """
    nodes: list[Node] = []
    for i, item in enumerate(request.items):
        prompt = tuple(ids[i]) if i in ids else item.prompt
        part: Part = prompt if isinstance(prompt, str) else TokenIds(prompt)
        nodes.append(Text(2 * i, None, (part,)))
        nodes.append(Generate(2 * i + 1, 2 * i, None, item.params, item.constraint))
    return RequestGraph(tuple(nodes), outputs=tuple(range(1, 2 * len(request.items), 2)))


def _read_prompts(given: Mapping[str, Any]) -> tuple[list[Prompt], bool]:
    if ("text" in given) == ("input_ids" in given):
        raise ParameterError("text", given.get("text"), "expected exactly one of text and input_ids")
    if "text" in given:
        text = given["text"]
        texts = text if isinstance(text, list) else [text]
        if not texts or len(texts) > MAX_PROMPTS or not all(isinstance(each, str) for each in texts):
            raise ParameterError("text", text, f"expected a string, or a list of 1 to {MAX_PROMPTS} strings")
        return list(texts), isinstance(text, list)
    lists, is_list = read_id_lists("input_ids", given["input_ids"], MAX_PROMPTS)
    return list(lists), is_list


def _for_each(given: Mapping[str, Any], name: str, count: int) -> list[Any]:
    """The value of an option for each prompt; None where it is not given."""
    value = given.get(name)
    if not isinstance(value, list):
        return [value] * count
    if len(value) != count:
        raise ParameterError(name, len(value), f"expected {count} values, one for each prompt")
    return value


def _read_rids(value: Any, count: int, is_list: bool) -> list[str | None]:
    if value is None:
        return [None] * count
    if isinstance(value, str):
        rids = [f"{value}_{i}" for i in range(count)] if is_list else [value]
    elif isinstance(value, list) and len(value) == count and all(isinstance(each, str) for each in value):
        rids = value
    else:
        raise ParameterError("rid", value, f"expected a string, or {count} strings")
    for rid in rids:
        if not 0 < len(rid) <= MAX_ID_CHARS or not rid.isprintable():
            raise ParameterError("rid", rid, f"expected 1 to {MAX_ID_CHARS} printable characters")
    return list(rids)


def _read_item(prompt: Prompt, given: Mapping[str, Any], rid: str | None) -> Item:
    plain = given.get("sampling_params", {})
    if not isinstance(plain, Mapping):
        raise ParameterError("sampling_params", plain, "expected an object")
    try:
        options = _SAMPLING.given(plain)
        max_tokens = read_int(options, "max_new_tokens", 0, MAX_MAX_TOKENS, 128)
        constraint = _read_constraint(options)
        sampling = _read_sampling(options)
    except ParameterError as error:
        error.field, error.message = f"sampling_params.{error.field}", f"sampling_params.{error.message}"
        raise
    assert max_tokens is not None
    has_logprobs = read_bool(given, "return_logprob")
    num_top = read_int(given, "top_logprobs_num", 0, MAX_LOGPROBS, 0) or 0
    start = read_int(given, "logprob_start_len", -1, MAX_MAX_TOKENS, -1)
    if start == -1:
        start = 0 if max_tokens == 0 else None
    if not has_logprobs:
        num_top, start = 0, None
    params = SamplingParams(
        max_tokens=max(1, max_tokens),
        logprobs=num_top if has_logprobs else None,
        prompt_logprobs=num_top if start is not None else None,
        **sampling,
    )
    return Item(
        prompt,
        params,
        constraint,
        has_logprobs,
        start,
        num_top,
        max_tokens == 0,
        read_bool(options, "no_stop_trim"),
        rid,
    )


def _read_sampling(options: Mapping[str, Any]) -> dict[str, Any]:
    sampling: dict[str, Any] = {"temperature": 1.0}
    sampling |= {name: options[name] for name in _SAME_NAME if name in options} | read_filters(options)
    for name in ("stop", "stop_regex", "stop_token_ids"):
        if sampling.get(name) in ([], ""):
            del sampling[name]
    if sampling.get("top_k") in (-1, _ALL_TOKENS):
        sampling["top_k"] = 0
    if "n" in sampling:
        sampling["n"] = read_int(options, "n", 1, MAX_N)
    if read_int(options, "min_new_tokens", 0, MAX_MAX_TOKENS, 0):
        sampling["min_tokens"] = options["min_new_tokens"]
    seed = read_int(options, "sampling_seed", -(1 << 63), (1 << 63) - 1)
    if seed is not None:
        sampling["seed"] = seed & ((1 << 64) - 1)
    if "logit_bias" in options:
        sampling["logit_bias"] = read_biases(options["logit_bias"])
    # Errors are found here, where they get the field's own name.
    SamplingParams(**{**sampling, "max_tokens": MAX_MAX_TOKENS})
    return sampling


def _read_constraint(options: Mapping[str, Any]) -> Constraint | None:
    asked = {name: options[name] for name in _CONSTRAINTS if options.get(name) not in (None, "")}
    if asked.get("json_schema") == _ANY_JSON:
        asked["json_schema"] = {"type": "object"}
    found = read_structured(asked)
    return None if found is None else found.constraint
