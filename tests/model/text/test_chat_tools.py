"""Conversations with tools: what the chat template shows of them, with `apply_chat_template(messages, tools=tools)` as oracle.

The templates are written after the structure of published ones: tools in the system message, in the first user message, in a section of
their own, before the last user message.
"""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from rtlang.contract.errors import ContextLengthError, RequestError
from rtlang.contract.graph.tool_list import tools_to_text
from rtlang.contract.request_graph import Part, RoleEnd, RoleStart
from rtlang.model.text.tokenizer import Tokenizer
from rtlang.runtime.texts.token_sequence import TokenSequence, append_text
from rtlang_grammars.formats.parsing import parse_output
from tests.support.grammars.texts import SHARED
from tests.support.models.tokenizer_kinds import write_tokenizer_kind
from tests.support.schemas.tool_templates import render

QWEN = """
{%- if tools %}
    {{- '<|im_start|>system\\n' }}
    {{- messages[0]['content'] if messages[0]['role'] == 'system' else 'Be helpful.' }}
    {{- '\\n\\n# Tools\\n<tools>' }}
    {%- for tool in tools %}{{ '\\n' }}{{ tool | tojson }}{% endfor %}
    {{- '\\n</tools>\\nCalls: <tool_call>\\n{"name": ..., "arguments": ...}\\n</tool_call><|im_end|>\\n' }}
{%- elif messages[0]['role'] == 'system' %}
    {{- '<|im_start|>system\\n' + messages[0]['content'] + '<|im_end|>\\n' }}
{%- endif %}
{%- for message in messages %}
    {%- if message.role == 'user' or message.role == 'assistant' and not message.tool_calls %}
        {{- '<|im_start|>' + message.role + '\\n' + message.content + '<|im_end|>\\n' }}
    {%- elif message.role == 'assistant' %}
        {{- '<|im_start|>assistant' }}
        {%- if message.content %}{{ '\\n' + message.content }}{% endif %}
        {%- for call in message.tool_calls %}
            {{- '\\n<tool_call>\\n{"name": "' + call.function.name + '", "arguments": ' }}
            {{- (call.function.arguments | tojson) + '}\\n</tool_call>' }}
        {%- endfor %}
        {{- '<|im_end|>\\n' }}
    {%- elif message.role == 'tool' %}
        {%- if loop.first or messages[loop.index0 - 1].role != 'tool' %}{{ '<|im_start|>user' }}{% endif %}
        {{- '\\n<tool_response>\\n' + message.content + '\\n</tool_response>' }}
        {%- if loop.last or messages[loop.index0 + 1].role != 'tool' %}{{ '<|im_end|>\\n' }}{% endif %}
    {%- endif %}
{%- endfor %}
{%- if add_generation_prompt %}{{ '<|im_start|>assistant\\n' }}{% endif %}"""
LLAMA = """{{- bos_token }}
{%- if messages[0]['role'] == 'system' %}{% set system = messages[0]['content'] %}{% set messages = messages[1:] %}
{%- else %}{% set system = '' %}{% endif %}
{{- '<|start_header_id|>system<|end_header_id|>\\n\\n' }}{% if tools %}{{ 'Environment: ipython\\n' }}{% endif %}{{ system + '<|eot_id|>' }}
{%- for message in messages %}
    {%- if message.role == 'tool' %}
        {{- '<|start_header_id|>ipython<|end_header_id|>\\n\\n' + message.content + '<|eot_id|>' }}
    {%- elif message.tool_calls %}
        {%- if message.tool_calls | length != 1 %}{{ raise_exception('one call at once') }}{% endif %}
        {%- set call = message.tool_calls[0].function %}
        {{- '<|start_header_id|>assistant<|end_header_id|>\\n\\n{"name": "' + call.name + '", "parameters": ' }}
        {{- (call.arguments | tojson) + '}<|eot_id|>' }}
    {%- else %}
        {{- '<|start_header_id|>' + message.role + '<|end_header_id|>\\n\\n' }}
        {%- if loop.first and tools and message.role == 'user' %}
            {{- 'Answer with a call, {"name": ..., "parameters": ...}.\\n\\n' }}
            {%- for tool in tools %}{{ tool | tojson(indent=4) }}{{ '\\n\\n' }}{% endfor %}
        {%- endif %}
        {{- message.content + '<|eot_id|>' }}
    {%- endif %}
{%- endfor %}
{%- if add_generation_prompt %}{{ '<|start_header_id|>assistant<|end_header_id|>\\n\\n' }}{% endif %}"""
GRANITE = """
{%- if tools %}{{ '<|role|>available_tools<|end_role|>' + (tools | tojson(indent=4)) + '<|end_of_text|>\\n' }}{% endif %}
{%- for message in messages %}
    {{- '<|role|>' + ('tool_response' if message.role == 'tool' else message.role) + '<|end_role|>' }}
    {%- if message.tool_calls %}
        {{- '<|tool_call|>[' }}
        {%- for call in message.tool_calls %}
            {{- '{"name": "' + call.function.name + '", "arguments": ' + (call.function.arguments | tojson) + '}' }}
            {%- if not loop.last %}{{ ', ' }}{% endif %}
        {%- endfor %}
        {{- ']' }}
    {%- else %}{{ message.content }}{% endif %}
    {{- '<|end_of_text|>\\n' }}
{%- endfor %}
{%- if add_generation_prompt %}{{ '<|role|>assistant<|end_role|>' }}{% endif %}"""
MISTRAL = """{{- bos_token }}
{%- for message in messages %}
    {%- if message.role == 'user' %}
        {%- if tools and message == (messages | selectattr('role', 'equalto', 'user') | list)[-1] %}
            {{- '[AVAILABLE_TOOLS] ' + (tools | tojson) + '[/AVAILABLE_TOOLS]' }}
        {%- endif %}
        {{- '[INST] ' + message.content + '[/INST]' }}
    {%- elif message.role == 'tool' %}{{ '[TOOL_RESULTS] {"content": ' + message.content + '}[/TOOL_RESULTS]' }}
    {%- elif message.tool_calls %}
        {{- '[TOOL_CALLS] [' }}
        {%- for call in message.tool_calls %}
            {{- (call.function | tojson)[:-1] + ', "id": "' + call.id + '"}' }}{% if not loop.last %}{{ ', ' }}{% endif %}
        {%- endfor %}
        {{- ']</s>' }}
    {%- elif message.role == 'assistant' %}{{ message.content + '</s>' }}
    {%- else %}{{ raise_exception('no system message') }}{% endif %}
{%- endfor %}"""
TEMPLATES = {"hermes": QWEN, "llama-3": LLAMA, "granite-3": GRANITE, "mistral": MISTRAL}

TOOLS = [
    {
        "type": "function",
        "function": {
            "name": "search",
            "description": "Search, <b>fast</b> & “well”.",
            "parameters": {"type": "object", "properties": {"query": {"type": "string"}}, "required": ["query"]},
        },
    },
    {
        "type": "function",
        "function": {"name": "now", "description": "", "parameters": {"type": "object", "properties": {}}},
    },
]
CALLS = [("search", {"query": "rain in Rome"}), ("now", {})]


@pytest.fixture(scope="module", params=TEMPLATES)
def loaded(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> tuple[str, Tokenizer, Any]:
    import transformers

    path = tmp_path_factory.mktemp("chat")
    write_tokenizer_kind(path, "byte_level")
    (path / "chat_template.jinja").write_text(TEMPLATES[request.param])
    return request.param, Tokenizer.from_pretrained(path), transformers.AutoTokenizer.from_pretrained(str(path))


def conversation(format: str, num_calls: int, *, with_system: bool) -> tuple[list[dict[str, Any]], list[str]]:
    """Messages of transformers, and the texts of a program in their place."""
    calls = CALLS[:num_calls]
    tool_calls = [
        {"type": "function", "id": "abcDEF123", "function": {"name": name, "arguments": arguments}}
        for name, arguments in calls
    ]
    messages: list[dict[str, Any]] = [{"role": "system", "content": "Be brief."}] if with_system else []
    messages += [
        {"role": "user", "content": "Does it rain?"},
        {"role": "assistant", "content": "", "tool_calls": tool_calls},
    ]
    messages += [{"role": "tool", "content": f'"result {index}"'} for index in range(len(calls))]
    messages += [{"role": "assistant", "content": "It does."}]
    texts = [str(message["content"]) for message in messages]
    texts[2 if with_system else 1] = render(format, "", "", calls).lstrip("\n")
    return messages, texts


def given(roles: list[str], texts: list[str]) -> list[Part]:
    return [part for role, text in zip(roles, texts, strict=True) for part in (RoleStart(role), text, RoleEnd())]


def written(tokenizer: Tokenizer, parts: list[Part], tools: list[Any] | None = TOOLS) -> str:
    first = parts[0]
    assert isinstance(first, RoleStart)
    start = RoleStart(first.role, None if tools is None else tools_to_text(tools))
    decoder = tokenizer.decoder(shows_special=True)
    return decoder.push(sequence(tokenizer, [start, *parts[1:]]).token_ids) + decoder.flush()


@pytest.mark.parametrize("num_calls", [1, 2])
@pytest.mark.parametrize("with_system", [True, False])
def test_a_call_its_result_and_the_answer_are_those_of_the_template(
    loaded: tuple[str, Tokenizer, Any], num_calls: int, with_system: bool
) -> None:
    """The call is text in the format of the model, as a model writes it."""
    format, tokenizer, library = loaded
    if (format == "llama-3" and num_calls > 1) or (format == "mistral" and with_system):
        pytest.skip("the template refuses it")
    messages, texts = conversation(format, num_calls, with_system=with_system)
    expected = library.apply_chat_template(messages, tools=TOOLS, tokenize=False)
    assert "search" in expected.split("Does it rain?")[0]
    assert tokenizer.chat.with_settings(tools_to_text(TOOLS)).description_of_tools == ""
    roles = [message["role"] for message in messages]
    assert written(tokenizer, given(roles, texts)) == expected
    parsed = parse_output(format, texts[roles.index("assistant")], TOOLS).calls
    assert [(call.name, call.arguments) for call in parsed] == CALLS[:num_calls]


def test_a_generation_begins_where_the_template_begins_it(loaded: tuple[str, Tokenizer, Any]) -> None:
    format, tokenizer, library = loaded
    messages, texts = conversation(format, 1, with_system=False)
    for count in (1, 3):
        expected = library.apply_chat_template(
            messages[:count], tools=TOOLS, tokenize=False, add_generation_prompt=True
        )
        roles = [message["role"] for message in messages[:count]]
        assert written(tokenizer, [*given(roles, texts[:count]), RoleStart("assistant")]) == expected


def test_tools_of_one_conversation_are_none_of_another(loaded: tuple[str, Tokenizer, Any]) -> None:
    _, tokenizer, library = loaded
    messages = [{"role": "user", "content": "Does it rain?"}]
    for tools in (None, TOOLS[:1], TOOLS, None):
        expected = library.apply_chat_template(messages, tools=tools, tokenize=False)
        assert written(tokenizer, given(["user"], ["Does it rain?"]), tools) == expected


def sequence(
    tokenizer: Tokenizer, parts: list[Part], before: TokenSequence | None = None, limit: int = 10_000
) -> TokenSequence:
    return append_text(TokenSequence() if before is None else before, parts, tokenizer, {}, lambda ref: "", limit)


def test_a_sequence_has_the_tools_of_its_first_message(loaded: tuple[str, Tokenizer, Any]) -> None:
    format, tokenizer, library = loaded
    messages, texts = conversation(format, 1, with_system=False)
    start = sequence(tokenizer, [RoleStart("user", tools_to_text(TOOLS)), texts[0], RoleEnd()])
    rest: list[Part] = []
    for message, text in zip(messages[1:], texts[1:], strict=True):
        rest += [RoleStart(message["role"]), text, RoleEnd()]
    found = sequence(tokenizer, rest, start)
    expected = library.apply_chat_template(messages, tools=TOOLS, tokenize=False)
    assert library.decode(found.token_ids) == library.decode(library(expected, add_special_tokens=False)["input_ids"])
    with pytest.raises(RequestError, match="tools and template options are allowed on the first message only"):
        sequence(tokenizer, [RoleStart("user", tools_to_text(TOOLS))], found)
    with pytest.raises(ContextLengthError):
        sequence(tokenizer, [RoleStart("user", tools_to_text(TOOLS)), "x", RoleEnd()], limit=20)


@pytest.mark.parametrize(
    "template", [None, "{% for m in messages %}{{ '<|' + m.role + '|>' + m.content + '<|user|>' }}{% endfor %}"]
)
def test_tools_that_a_template_does_not_render_are_described_in_the_first_message(
    template: str | None, tmp_path: Path
) -> None:
    write_tokenizer_kind(tmp_path, "byte_level")
    if template is not None:
        (tmp_path / "chat_template.jinja").write_text(template)
    tokenizer = Tokenizer.from_pretrained(tmp_path)
    parts: list[Part] = [
        RoleStart("system", tools_to_text(TOOLS)),
        "Hi <|user|>",
        RoleEnd(),
        RoleStart("user"),
        "Rain?",
        RoleEnd(),
    ]
    found = sequence(tokenizer, parts)
    text = tokenizer.decode(found.token_ids)
    assert text.count(json.dumps(TOOLS[0]["function"], ensure_ascii=False)) == 1
    assert text.index("Hi") < text.index('"search"') < text.index("Rain?")
    assert '{"name": ..., "arguments": {...}}' in text
    special = tokenizer.encode("<|user|>", is_start=False, allow_special=True)
    assert list(found.token_ids).count(special[0]) == (0 if template is None else 3), "contents stay plain text"


def test_tokens_spell_the_conversation_of_transformers_with_the_tokenizer_of_qwen(tmp_path: Path) -> None:
    import transformers

    source = SHARED / "tokenizers" / "qwen2"
    if not source.is_dir():
        pytest.skip(f"{source} is missing: it has the tokenizer of Qwen 2")
    for file in source.iterdir():
        if file.suffix == ".json":
            (tmp_path / file.name).symlink_to(file)
    (tmp_path / "chat_template.jinja").write_text(QWEN)
    tokenizer, library = Tokenizer.from_pretrained(tmp_path), transformers.AutoTokenizer.from_pretrained(str(tmp_path))
    assert tokenizer.tool_format == "hermes"
    messages, texts = conversation("hermes", 2, with_system=True)
    parts: list[Part] = []
    for message, text in zip(messages, texts, strict=True):
        is_first = not parts
        parts += [RoleStart(message["role"], tools_to_text(TOOLS) if is_first else None), text, RoleEnd()]
    found = sequence(tokenizer, parts)
    expected = library.apply_chat_template(messages, tools=TOOLS, tokenize=True, return_dict=False)
    # Contents are encoded apart from the framing, so that ".\n\n" is one token less here and there; special tokens are the same.
    assert library.decode(found.token_ids) == library.decode(expected)
    specials = {library.convert_tokens_to_ids(name) for name in ("<|im_start|>", "<|im_end|>")}
    assert [each for each in found.token_ids if each in specials] == [each for each in expected if each in specials]
