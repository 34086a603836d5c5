"""What chat templates write, with `apply_chat_template` of transformers as oracle."""

from __future__ import annotations

import datetime
import itertools
import json
from pathlib import Path
from typing import Any

import pytest

from rtlang.contract.errors import ParameterError
from rtlang.contract.graph.template_options import TemplateOptions
from rtlang.model.text.chat import ChatTemplate
from rtlang.model.text.chat_template import TemplateEnvironment
from rtlang.model.text.tokenizer import Tokenizer
from rtlang.model.text.tracked_text import TextSource
from tests.support.models.tokenizer_kinds import write_tokenizer_kind

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


def messages_of(roles: tuple[str, ...], contents: list[str] = CONTENTS) -> list[dict[str, str]]:
    return [{"role": role, "content": content} for role, content in zip(roles, contents, strict=False)]


@pytest.mark.parametrize("adds_prompt", [False, True])
@pytest.mark.parametrize("roles", CONVERSATIONS, ids=len)
def test_a_conversation_is_what_the_library_writes(
    loaded: tuple[Tokenizer, Any], roles: tuple[str, ...], adds_prompt: bool
) -> None:
    tokenizer, library = loaded
    messages = messages_of(roles)
    try:
        expected = library.apply_chat_template(messages, tokenize=False, add_generation_prompt=adds_prompt)
    except Exception:
        with pytest.raises(ParameterError, match="chat template refuses"):
            tokenizer.chat.render(messages, adds_prompt=adds_prompt)
        return
    assert tokenizer.chat.render(messages, adds_prompt=adds_prompt) == expected


@pytest.mark.parametrize("roles", CONVERSATIONS[:4], ids=len)
def test_token_ids_are_those_of_the_library(loaded: tuple[Tokenizer, Any], roles: tuple[str, ...]) -> None:
    tokenizer, library = loaded
    messages = messages_of(roles, ["Who wrote it?", "Ada", "Why?", "Because"])
    ids = tokenizer.chat.encode(tokenizer.chat.render(messages, adds_prompt=False), is_start=True)
    assert ids == library.apply_chat_template(messages, tokenize=True, return_dict=False)


def test_names_of_special_tokens_in_contents_stay_plain_text(loaded: tuple[Tokenizer, Any]) -> None:
    tokenizer, _ = loaded
    special = tokenizer.special_token_ids

    def specials(contents: list[str]) -> list[int]:
        text = tokenizer.chat.render(messages_of(("user", "assistant", "user"), contents), adds_prompt=True)
        ids = tokenizer.chat.encode(text, is_start=True)
        return [i for i in ids if i in special]

    names = "".join(MARKUP)
    for hostile in (names, "<|im_end|>", f"a {names} b", "<|im_<|im_end|>end|>", "<|im_end", "|>", "<", names[::-1]):
        assert specials([hostile, hostile, hostile]) == specials(["x", "x", "x"])


@pytest.mark.parametrize(
    "template",
    [
        "{% for m in messages %}<|im_start|>{{ m.content | replace('#', '') }}<|im_end|>{% endfor %}",
        "{% for m in messages %}<|im_start|>{{ m.content.split('#') | join }}<|im_end|>{% endfor %}",
        "{% for m in messages %}<|im_start|>{{ m.content[:4] + m.content[5:] }}<|im_end|>{% endfor %}",
        "{% for m in messages %}<|im_start|>{% for c in m.content if c != '#' %}{{ c }}{% endfor %}<|im_end|>{% endfor %}",
        "{% for m in messages %}<|im_start|>{{ '%s' % (m.content | replace('#', '')) }}<|im_end|>{% endfor %}",
        "{% for m in messages %}{{ '<|im_start|>{}<|im_end|>'.format(m.content.replace('#', '')) }}{% endfor %}",
        "{% for m in messages %}{% set t %}<|im_start|>{{ m.content | replace('#', '') }}{% endset %}{{ t | trim }}<|im_end|>{% endfor %}",
        "{% for m in messages %}<|im_start|>{{ m | tojson | replace('#', '') }}<|im_end|>{% endfor %}",
        "{% for m in messages %}<|im_start|>{{ m.content | upper | replace('#', '') | lower }}<|im_end|>{% endfor %}",
    ],
)
def test_a_template_cannot_be_made_to_put_together_a_special_token(tmp_path: Path, template: str) -> None:
    tokenizer = load(tmp_path, template)
    text = tokenizer.chat.render([{"role": "user", "content": "<|im#_end|>x"}], adds_prompt=False)
    assert "<|im_end|>x" in text
    ids = tokenizer.chat.encode(text, is_start=True)
    names = [tokenizer.token_name(i) for i in ids if i in tokenizer.special_token_ids]
    assert names == ["<|im_start|>", "<|im_end|>"]


@pytest.mark.parametrize(
    ("template", "roles", "reason"),
    [
        (TURNS, ("system",), "System role not supported"),
        (TURNS, ("user", "user"), "alternate"),
        (NO_ASSISTANT_END, ("user", "tool"), "only user and assistant"),
        ("{{ messages | map(attribute='nothing') | list | first + 1 }}", ("user",), "template"),
        ("{% broken", ("user",), "template"),
        ("{{ ''.__class__.__mro__[1].__subclasses__() }}{{ messages[0].content }}", ("user",), "unsafe|attribute"),
        ("{% for i in range(99999) %}{{ 'x' * 1000 }}{% endfor %}{{ messages[0].content }}", ("user",), "characters"),
        ("{{ messages[0].content }}{{ messages.append(1) }}", ("user",), "unsafe"),
    ],
)
def test_what_a_template_refuses_is_an_error_with_its_reason(
    tmp_path: Path, template: str, roles: tuple[str, ...], reason: str
) -> None:
    chat = load(tmp_path, template).chat
    with pytest.raises(ParameterError, match=reason) as caught:
        chat.render(messages_of(roles), adds_prompt=False)
    assert (caught.value.field, caught.value.value) == ("role", roles[-1])


def test_without_a_template_a_plain_form_is_used(tmp_path: Path) -> None:
    tokenizer = Tokenizer.from_pretrained(write_tokenizer_kind(tmp_path, "byte_level"))
    chat = tokenizer.chat
    assert chat.template is None
    text = chat.render(messages_of(("system", "user", "assistant"), ["hi", "hi", "hi"]), adds_prompt=True)
    assert text == "System: hi\nUser: hi\nAssistant: hi\nAssistant: "
    ids = chat.encode(text, is_start=True)
    assert ids[: len(tokenizer.start_ids())] == tokenizer.start_ids() != []
    with pytest.raises(ParameterError, match="system, user"):
        chat.render(messages_of(("narrator",)), adds_prompt=False)


def test_the_present_is_fixed_and_generation_marks_are_printed_through(tmp_path: Path) -> None:
    tokenizer = load(tmp_path, None)
    template = "{{ strftime_now('%Y') }} {{ {'a': 'é<'} | tojson }} {% generation %}{{ messages[0].content }}{% endgeneration %}!"
    chat = ChatTemplate(tokenizer, template, {}, now=datetime.datetime(2031, 5, 1))
    text = chat.render([{"role": "user", "content": "x"}], adds_prompt=False)
    assert text == '2031 {"a": "é<"} x!'
    assert text.runs == ((17, None), (1, TextSource(0, "content")), (1, None))


def test_a_template_may_stand_in_a_file_of_its_own_or_among_several(tmp_path: Path) -> None:
    write_tokenizer_kind(
        tmp_path,
        "byte_level",
        chat_template=[{"name": "rag", "template": "x"}, {"name": "default", "template": CHATML}],
    )
    assert Tokenizer.from_pretrained(tmp_path).chat.template == CHATML
    (tmp_path / "chat_template.jinja").write_text(TURNS)
    assert Tokenizer.from_pretrained(tmp_path).chat.template == TURNS


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
    messages = messages_of(("user",))
    for name in ("a", "b"):
        tools = json.dumps([{"type": "function", "function": {"name": name}}])
        assert tokenizer.chat.with_settings(tools).render(messages, adds_prompt=False)
    assert tokenizer.chat.render(messages, adds_prompt=False)
    assert not compiled


def test_options_reach_the_template_and_nothing_else(tmp_path: Path) -> None:
    template = (
        "{{ thinking | default('unset') }}/{{ effort }}/{{ messages[0].content }}"
        "{% if add_generation_prompt %}/{{ '' if enable_thinking | default(true) else 'no ' }}thought{% endif %}"
    )
    chat = load(tmp_path, template).chat
    messages = [{"role": "user", "content": "x"}]
    options = TemplateOptions(variables={"enable_thinking": False, "thinking": True, "effort": "<|im_end|>"})
    chosen = chat.with_settings(None, options.text)
    assert chat.render(messages, adds_prompt=True) == "unset//x/thought"
    text = chosen.render(messages, adds_prompt=True)
    assert text == "True/<|im_end|>/x/no thought"
    special = [each for each in chosen.encode(text, is_start=True) if each in load(tmp_path, None).special_token_ids]
    assert special == []
    over = chosen.with_settings(None, TemplateOptions(variables={"effort": "low"}).text)
    assert over.render(messages, adds_prompt=True) == "True/low/x/no thought", (
        "a conversation adds to a runtime's options"
    )
    other = chat.with_settings(None, TemplateOptions("({{ messages[0].content }})").text)
    assert other.render(messages, adds_prompt=True) == "(x)"


def test_a_longer_history_begins_with_the_tokens_of_the_shorter_one(tmp_path: Path) -> None:
    """Also where the framing has no special tokens, so that tokens could cross from it into the answer."""
    for name, template in {
        "words": "{% for m in messages %}{{ m.role }}:\n{{ m.content }}\n{% endfor %}{% if add_generation_prompt %}assistant:\n{% endif %}",
        "spaces": (
            "{% for m in messages %}{{ m.role + ' ' + m.content + ' ' }}{% endfor %}"
            "{% if add_generation_prompt %}assistant {% endif %}"
        ),
        "no prompt": "{% for m in messages %}{{ '[' + m.content + ']' if m.role != 'assistant' else ' ' + m.content }}{% endfor %}",
        "chatml": CHATML,
    }.items():
        (tmp_path / name).mkdir()
        chat = load(tmp_path / name, template).chat
        roles = ("user", "assistant", "tool", "assistant", "user", "assistant", "user")
        messages = messages_of(roles, ["a b", "\n b", " a", "  c", "x\n", "y", "z"])
        encoded = []
        for count in (1, 3, 5, 7):
            text = chat.render(messages[:count], adds_prompt=True)
            cuts = chat.cuts(text, messages[:count], ends_with_prompt=True)
            encoded.append(chat.encode(text, is_start=True, cuts=cuts))
        for shorter, longer in itertools.pairwise(encoded):
            assert longer[: len(shorter)] == shorter, name
