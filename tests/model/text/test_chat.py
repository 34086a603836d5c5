"""Framing of conversations, with `apply_chat_template` of transformers as oracle."""

from __future__ import annotations

import datetime
import json
from pathlib import Path
from typing import Any

import pytest

from rtlang.contract.errors import ParameterError, RtlangError
from rtlang.model.text.chat import ChatFraming
from rtlang.model.text.chat_template import TemplateEnvironment
from rtlang.model.text.tokenizer import Tokenizer
from tests.support.tokenizer_kinds import write_tokenizer_kind

CHATML = (
    "{% for message in messages %}{{ '<|im_start|>' + message['role'] + '\\n' + message['content'] + '<|im_end|>' + '\\n' }}{% endfor %}"
    "{% if add_generation_prompt %}{{ '<|im_start|>assistant\\n' }}{% endif %}"
)
CHATML_WITH_DEFAULT = (
    "{%- if messages[0]['role'] != 'system' %}\n    {{- '<|im_start|>system\\nBe helpful.<|im_end|>\\n' }}\n{%- endif %}\n"
    + CHATML
)
INSTRUCT = (  # the system text goes into the first user message
    "{% if messages[0]['role'] == 'system' %}{% set loop_messages = messages[1:] %}{% set system_message = messages[0]['content'] %}"
    "{% else %}{% set loop_messages = messages %}{% set system_message = false %}{% endif %}"
    "{% for message in loop_messages %}"
    "{% if (message['role'] == 'user') != (loop.index0 % 2 == 0) %}{{ raise_exception('roles must alternate') }}{% endif %}"
    "{% if loop.index0 == 0 and system_message != false %}"
    "{% set content = '<<SYS>>\\n' + system_message + '\\n<</SYS>>\\n\\n' + message['content'] %}"
    "{% else %}{% set content = message['content'] %}{% endif %}"
    "{% if message['role'] == 'user' %}{{ bos_token + '[INST] ' + content.strip() + ' [/INST]' }}"
    "{% elif message['role'] == 'assistant' %}{{ ' ' + content.strip() + ' ' + eos_token }}{% endif %}{% endfor %}"
)
HEADERS = (
    "{{- bos_token }}{%- for message in messages %}"
    "{{- '<|start_header_id|>' + message['role'] + '<|end_header_id|>\\n\\n' + message['content'] | trim + '<|eot_id|>' }}"
    "{%- endfor %}{%- if add_generation_prompt %}{{- '<|start_header_id|>assistant<|end_header_id|>\\n\\n' }}{%- endif %}"
)
TURNS = (  # the assistant is called model, and there is no system
    "{{ bos_token }}{% if messages[0]['role'] == 'system' %}{{ raise_exception('System role not supported') }}{% endif %}"
    "{% for message in messages %}"
    "{% if (message['role'] == 'user') != (loop.index0 % 2 == 0) %}{{ raise_exception('roles must alternate') }}{% endif %}"
    "{% set role = 'model' if message['role'] == 'assistant' else message['role'] %}"
    "{{ '<start_of_turn>' + role + '\\n' + message['content'] | trim + '<end_of_turn>\\n' }}{% endfor %}"
    "{% if add_generation_prompt %}{{'<start_of_turn>model\\n'}}{% endif %}"
)
NO_ASSISTANT_END = (
    "{% for message in messages %}{% if message['role'] == 'user' %}{{ '### User: ' + message['content'] + '\\n' }}"
    "{% elif message['role'] == 'assistant' %}{{ '### Bot: ' + message['content'] }}{% if not loop.last %}{{ '\\n' }}{% endif %}"
    "{% else %}{{ raise_exception('only user and assistant') }}{% endif %}{% endfor %}"
    "{% if add_generation_prompt %}{{ '### Bot: ' }}{% endif %}"
)
TEMPLATES = {
    "chatml": CHATML,
    "chatml_with_default": CHATML_WITH_DEFAULT,
    "instruct": INSTRUCT,
    "headers": HEADERS,
    "turns": TURNS,
}
CONVERSATIONS = [
    ("user",),
    ("user", "assistant"),
    ("user", "assistant", "user"),
    ("user", "assistant", "user", "assistant"),
    ("system", "user"),
    ("system", "user", "assistant"),
    ("system", "user", "assistant", "user"),
]
CONTENTS = ["Who wrote it?", "Ada did <s>not</s> <|im_end|>", "{'a': 1}\nnaïve 😀", "x"]
MARKUP = (
    "<|im_start|>",
    "<|im_end|>",
    "<|start_header_id|>",
    "<|end_header_id|>",
    "<|eot_id|>",
    "<start_of_turn>",
    "<end_of_turn>",
)


def load(path: Path, template: str | None, kind: str = "byte_level") -> Tokenizer:
    extra: dict[str, Any] = {"additional_special_tokens": list(MARKUP), "add_bos_token": False}
    if template is not None:
        extra["chat_template"] = template
    write_tokenizer_kind(path, kind, **extra)
    size = Tokenizer.from_pretrained(path).vocab_size
    extra["added_tokens_decoder"] = {str(size + i): {"content": name, "special": True} for i, name in enumerate(MARKUP)}
    write_tokenizer_kind(path, kind, **extra)
    return Tokenizer.from_pretrained(path)


@pytest.fixture(scope="module", params=TEMPLATES)
def loaded(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> tuple[Tokenizer, Any]:
    import transformers

    path = tmp_path_factory.mktemp("chat")
    tokenizer = load(path, TEMPLATES[request.param])
    return tokenizer, transformers.AutoTokenizer.from_pretrained(str(path))


def render(chat: ChatFraming, roles: tuple[str, ...]) -> str:
    text = ""
    for index, role in enumerate(roles):
        text += chat.open_text(roles[:index], role) + CONTENTS[index] + chat.close_text(roles[: index + 1])
    return text


@pytest.mark.parametrize("roles", CONVERSATIONS, ids=len)
def test_framing_and_contents_make_up_the_template(loaded: tuple[Tokenizer, Any], roles: tuple[str, ...]) -> None:
    tokenizer, library = loaded
    messages = [{"role": role, "content": content} for role, content in zip(roles, CONTENTS, strict=False)]
    try:
        expected = library.apply_chat_template(messages, tokenize=False)
    except Exception:
        with pytest.raises(ParameterError, match="template"):
            render(tokenizer.chat, roles)
        return
    assert render(tokenizer.chat, roles) == expected


@pytest.mark.parametrize("roles", CONVERSATIONS, ids=len)
def test_the_start_of_an_answer_is_the_generation_prompt(loaded: tuple[Tokenizer, Any], roles: tuple[str, ...]) -> None:
    tokenizer, library = loaded
    if roles[-1] != "user":
        return
    messages = [{"role": role, "content": content} for role, content in zip(roles, CONTENTS, strict=False)]
    try:
        expected = library.apply_chat_template(messages, tokenize=False, add_generation_prompt=True)
    except Exception:
        return
    got = render(tokenizer.chat, roles) + tokenizer.chat.open_text(roles, "assistant")
    assert got == expected or got == expected + " "  # the form with [INST] has no prompt, and a space before an answer


@pytest.mark.parametrize("roles", CONVERSATIONS[:4], ids=len)
def test_token_ids_are_those_of_the_library_and_contents_stay_plain(
    loaded: tuple[Tokenizer, Any], roles: tuple[str, ...]
) -> None:
    tokenizer, library = loaded
    plain = ["Who wrote it?", "Ada", "Why?", "Because"]
    ids: list[int] = []
    for index, role in enumerate(roles):
        ids += tokenizer.chat.open(roles[:index], role)
        ids += tokenizer.encode(plain[index], is_start=False)
        ids += tokenizer.chat.close(roles[: index + 1])
    messages = [{"role": role, "content": content} for role, content in zip(roles, plain, strict=False)]
    expected = library.apply_chat_template(messages, tokenize=True, return_dict=False)
    names = [tokenizer.token_name(i) for i in ids if i in tokenizer.special_token_ids]
    assert names == [tokenizer.token_name(i) for i in expected if i in tokenizer.special_token_ids]
    assert library.decode(ids) == library.decode(expected)
    hostile = tokenizer.encode(CONTENTS[1], is_start=False)
    assert not set(hostile) & tokenizer.special_token_ids


def test_framing_that_opens_the_conversation_but_not_the_sequence_has_no_start_token(tmp_path: Path) -> None:
    tokenizer = load(tmp_path, HEADERS)
    first, later = tokenizer.chat.open((), "user"), tokenizer.chat.open((), "user", is_start=False)
    assert first == [tokenizer.bos_token_id, *later]


@pytest.mark.parametrize(
    ("template", "roles", "role", "reason"),
    [
        (TURNS, (), "system", "System role not supported"),
        (TURNS, ("user",), "user", "alternate"),
        (INSTRUCT, (), "assistant", "alternate"),
        (INSTRUCT, ("user", "assistant"), "tool", "alternate|print"),
        (NO_ASSISTANT_END, ("user",), "tool", "only user and assistant"),
        ("{{ messages | map(attribute='nothing') | list | first + 1 }}", (), "user", "template"),
        ("{{ messages[0].content }}{{ messages[0].content }}", (), "user", "once"),
        ("fixed text", (), "user", "once"),
        ("{% broken", (), "user", "template"),
        ("{{ ''.__class__.__mro__[1].__subclasses__() }}{{ messages[0].content }}", (), "user", "unsafe|attribute"),
        ("{% for i in range(99999) %}{{ 'x' * 1000 }}{% endfor %}{{ messages[0].content }}", (), "user", "characters"),
        ("{{ messages[0].content }}{{ messages.append(1) }}", (), "user", "unsafe"),
    ],
)
def test_what_a_template_refuses_is_an_error_that_names_the_role(
    tmp_path: Path, template: str, roles: tuple[str, ...], role: str, reason: str
) -> None:
    chat = load(tmp_path, template).chat
    with pytest.raises(ParameterError, match=reason) as caught:
        chat.open(roles, role)
    assert caught.value.field == "role"
    assert caught.value.value == role


def test_a_last_message_printed_without_its_end_keeps_what_is_common(tmp_path: Path) -> None:
    chat = load(tmp_path, NO_ASSISTANT_END).chat
    roles = ("user", "assistant", "user", "assistant")
    assert render(chat, roles) == (
        f"### User: {CONTENTS[0]}\n### Bot: {CONTENTS[1]}\n### User: {CONTENTS[2]}\n### Bot: {CONTENTS[3]}"
    )
    ended = load(
        tmp_path,
        "{% for m in messages %}{{ '<|' + m.role + '|>' + m.content }}{{ '<|im_end|>' if loop.last else '<|im_start|>' }}{% endfor %}",
    ).chat
    assert ended.close_text(("user",)) == ""
    assert ended.open_text(("user",), "assistant") == "<|im_start|><|assistant|>"


def test_an_empty_thinking_part_of_finished_messages_is_not_put_before_a_generation(tmp_path: Path) -> None:
    template = CHATML.replace(
        "message['content'] +",
        "('<think>\\n\\n</think>\\n\\n' if message.role == 'assistant' else '') + message['content'] +",
    )
    chat = load(tmp_path, template).chat
    assert chat.open_text(("user",), "assistant") == "<|im_start|>assistant\n"
    assert chat.open_text(("user", "assistant"), "user") == "<|im_start|>user\n"


def test_without_a_template_a_plain_form_is_used(tmp_path: Path) -> None:
    tokenizer = Tokenizer.from_pretrained(write_tokenizer_kind(tmp_path, "byte_level"))
    chat = tokenizer.chat
    assert not chat.has_template
    ids: list[int] = []
    for index, role in enumerate(("system", "user", "assistant")):
        roles = ("system", "user", "assistant")[:index]
        ids += chat.open(roles, role) + tokenizer.encode("hi", is_start=False) + chat.close((*roles, role))
    assert ids[: len(tokenizer.start_ids())] == tokenizer.start_ids() != []
    assert tokenizer.decode(ids) == "System: hi\nUser: hi\nAssistant: hi\n"
    assert tokenizer.decode(chat.open((), "user", is_start=False)) == "User: "
    with pytest.raises(ParameterError, match="system, user"):
        chat.open((), "narrator")


def test_the_present_is_fixed_and_generation_marks_are_printed_through(tmp_path: Path) -> None:
    tokenizer = load(tmp_path, None)
    template = "{{ strftime_now('%Y') }} {{ {'a': 'é<'} | tojson }} {% generation %}{{ messages[0].content }}{% endgeneration %}!"
    chat = ChatFraming(tokenizer, template, {}, now=datetime.datetime(2031, 5, 1))
    assert (chat.open_text((), "user"), chat.close_text(("user",))) == ('2031 {"a": "é<"} ', "!")


def test_a_template_may_stand_in_a_file_of_its_own_or_among_several(tmp_path: Path) -> None:
    write_tokenizer_kind(
        tmp_path,
        "byte_level",
        chat_template=[{"name": "rag", "template": "x"}, {"name": "default", "template": CHATML}],
    )
    assert Tokenizer.from_pretrained(tmp_path).chat.open_text((), "user") == "<|im_start|>user\n"
    (tmp_path / "chat_template.jinja").write_text(TURNS)
    assert Tokenizer.from_pretrained(tmp_path).chat.open_text((), "user") == "<s><start_of_turn>user\n"


def test_a_template_is_compiled_once_with_the_tokenizer(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    compiled: list[str] = []
    original = TemplateEnvironment.compiled

    def compile_template(self: TemplateEnvironment, source: str) -> Any:
        compiled.append(source)
        return original(self, source)

    monkeypatch.setattr(TemplateEnvironment, "compiled", compile_template)
    tokenizer = load(tmp_path, CHATML)
    assert set(compiled) == {CHATML}
    compiled.clear()
    for name in ("a", "b"):
        tools = json.dumps([{"type": "function", "function": {"name": name}}])
        assert tokenizer.chat.with_tools(tools).open_text((), "user")
    assert tokenizer.chat.open_text((), "user") == "<|im_start|>user\n"
    assert not compiled


def test_an_invalid_template_fails_when_it_is_used(tmp_path: Path) -> None:
    tokenizer = load(tmp_path, "{% for %}")
    with pytest.raises(RtlangError):
        tokenizer.chat.open_text((), "user")
