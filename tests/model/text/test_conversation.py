"""Conversations of growing sequences: given messages are what the template writes, generated tokens stay."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from rtlang.contract.errors import ParameterError
from rtlang.contract.request_graph import Part, RoleEnd, RoleStart
from rtlang.model.text.conversation import framing
from rtlang.model.text.tokenizer import Tokenizer
from rtlang.runtime.texts.token_sequence import TokenSequence, append_text
from tests.model.text.test_chat import CHATML, INSTRUCT, NO_ASSISTANT_END, TEMPLATES, TURNS, load

THINKING = (  # thoughts of earlier turns are dropped, and an answer begins with one
    "{% for m in messages %}{% set c = m.content %}{% if m.role == 'assistant' and '</think>' in c %}{% set c = c.split('</think>')[-1] %}"
    "{% endif %}{{ '<|im_start|>' + m.role + '\\n' + c | trim + '<|im_end|>\\n' }}{% endfor %}"
    "{% if add_generation_prompt %}{{ '<|im_start|>assistant\\n<think>\\n' }}{% endif %}"
)
SYSTEM_IN_LAST_TURN = (
    "{% set asked = messages | selectattr('role', 'equalto', 'user') | list %}"
    "{% set system = messages[0].content + ' ' if messages[0].role == 'system' else '' %}"
    "{% for m in messages if m.role != 'system' %}"
    "{% if m.role == 'user' %}{{ '[' + (system if m == asked[-1] else '') + m.content + ']' }}"
    "{% else %}{{ m.content + '<|im_end|>' }}{% endif %}{% endfor %}"
)
NO_EMPTY_SYSTEM = CHATML.replace(
    "{% for message in messages %}", "{% for message in messages if message.content or message.role != 'system' %}"
)
LAST_IS_SPECIAL = (
    "{% for m in messages %}{{ '<|' + m.role + '|>' + m.content }}"
    "{{ '<|im_end|>' if loop.last else '<|im_start|>' }}{% endfor %}"
)
ALL = TEMPLATES | {
    "thinking": THINKING,
    "system in last turn": SYSTEM_IN_LAST_TURN,
    "no empty system": NO_EMPTY_SYSTEM,
    "last is special": LAST_IS_SPECIAL,
    "no end": NO_ASSISTANT_END,
}
CONVERSATIONS = [
    [("user", "Who wrote it?")],
    [("user", " Who? \n"), ("assistant", "<think>\nlong\n</think>\n\nAda <|im_end|>"), ("user", "Why?")],
    [("system", " Be brief. "), ("user", "a"), ("assistant", "b"), ("user", "c"), ("assistant", "d"), ("user", "e")],
    [("system", ""), ("user", "a")],
]


@pytest.fixture(scope="module", params=ALL)
def loaded(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> tuple[Tokenizer, Any]:
    import transformers

    path = tmp_path_factory.mktemp("chat")
    tokenizer = load(path, ALL[request.param])
    return tokenizer, transformers.AutoTokenizer.from_pretrained(str(path))


def grow(tokenizer: Tokenizer, parts: list[Part], before: TokenSequence | None = None) -> TokenSequence:
    return append_text(TokenSequence() if before is None else before, parts, tokenizer, {}, lambda ref: "", 10_000)


def message(role: str, content: str) -> list[Part]:
    return [RoleStart(role), content, RoleEnd()]


def shown(tokenizer: Tokenizer, sequence: TokenSequence) -> str:
    decoder = tokenizer.decoder(shows_special=True)
    return decoder.push(sequence.token_ids) + decoder.flush()


@pytest.mark.parametrize("is_incremental", [False, True])
@pytest.mark.parametrize("given", CONVERSATIONS, ids=len)
def test_given_messages_are_what_the_library_writes(
    loaded: tuple[Tokenizer, Any], given: list[tuple[str, str]], is_incremental: bool
) -> None:
    """In one node or in one for each message: also where a template changes what it wrote for earlier messages."""
    tokenizer, library = loaded
    messages = [{"role": role, "content": content} for role, content in given]
    try:
        expected = library.apply_chat_template(messages, tokenize=False, add_generation_prompt=True)
    except Exception:
        with pytest.raises(ParameterError):
            grow(tokenizer, [part for each in given for part in message(*each)] + [RoleStart("assistant")])
        return
    sequence = TokenSequence()
    if is_incremental:
        for each in given:
            sequence = grow(tokenizer, message(*each), sequence)
        sequence = grow(tokenizer, [RoleStart("assistant")], sequence)
    else:
        sequence = grow(tokenizer, [part for each in given for part in message(*each)] + [RoleStart("assistant")])
    header = "### Bot: " if "### User" in expected else ""
    header = header if not expected.endswith(header) else ""
    if tokenizer.chat.template == LAST_IS_SPECIAL:
        return  # it has no generation prompt: see below
    assert shown(tokenizer, sequence) == expected + header


def test_a_generated_answer_follows_the_generation_prompt_and_stays(tmp_path: Path) -> None:
    tokenizer = load(tmp_path, THINKING)
    asked = grow(tokenizer, [*message("user", "a "), RoleStart("assistant")])
    answer = "deep</think>\n\nb \n"
    generated = asked.generated(tokenizer.encode(answer, is_start=False), answer)
    after = grow(
        tokenizer,
        [RoleEnd(), *message("user", " c"), *message("assistant", "<think>x</think>d"), RoleStart("user")],
        generated,
    )
    assert shown(tokenizer, after) == (
        "<|im_start|>user\na<|im_end|>\n<|im_start|>assistant\n<think>\ndeep</think>\n\nb \n<|im_end|>\n"
        "<|im_start|>user\nc<|im_end|>\n<|im_start|>assistant\nd<|im_end|>\n<|im_start|>user\n"
    )
    assert after.token_ids[: len(generated)] == generated.token_ids


def test_an_answer_of_given_and_generated_text_follows_the_generation_prompt(tmp_path: Path) -> None:
    tokenizer = load(tmp_path, THINKING)
    asked = grow(tokenizer, [*message("user", "a"), RoleStart("assistant"), "So: "])
    assert shown(tokenizer, asked).endswith("<|im_start|>assistant\n<think>\nSo: ")


@pytest.mark.parametrize("answer", ["", " ", "<think>only</think>"])
def test_an_answer_of_which_the_template_leaves_nothing_is_closed(tmp_path: Path, answer: str) -> None:
    tokenizer = load(tmp_path, THINKING)
    asked = grow(tokenizer, [*message("user", "a"), RoleStart("assistant")])
    generated = asked.generated(tokenizer.encode(answer, is_start=False), answer)
    after = grow(tokenizer, [RoleEnd(), *message("user", "b")], generated)
    assert shown(tokenizer, after).endswith(f"<think>\n{answer}<|im_end|>\n<|im_start|>user\nb<|im_end|>\n")


def test_what_a_template_refuses_so_far_may_be_completed(tmp_path: Path) -> None:
    template = "{% if messages | length < 2 %}{{ raise_exception('two or more') }}{% endif %}" + CHATML
    tokenizer = load(tmp_path, template)
    first = grow(tokenizer, message("system", "a"))
    assert first.token_ids == ()
    assert first.conversation.refusal is not None
    second = grow(tokenizer, message("user", "b"), first)
    assert second.conversation.refusal is None
    assert shown(tokenizer, second) == "<|im_start|>system\na<|im_end|>\n<|im_start|>user\nb<|im_end|>\n"
    with pytest.raises(ParameterError, match="alternate"):
        grow(load(tmp_path, TURNS), [*message("user", "a"), *message("user", "b"), RoleStart("assistant")])


def test_text_outside_messages_stays_where_it_is(tmp_path: Path) -> None:
    tokenizer = load(tmp_path, CHATML)
    before = grow(tokenizer, ["x ", *message("user", "a"), " y "])
    after = grow(tokenizer, message("user", "b"), before)
    start = "".join(map(tokenizer.token_name, tokenizer.start_ids()))
    assert shown(tokenizer, after) == (start + "x <|im_start|>user\na<|im_end|>\n y <|im_start|>user\nb<|im_end|>\n")


@pytest.mark.parametrize("name", ["chatml", "headers", "thinking"])
def test_the_text_around_a_content_is_what_is_written_around_it(name: str, tmp_path: Path) -> None:
    tokenizer = load(tmp_path, ALL[name])
    found, roles = "", ("user", "assistant", "user")
    for index, role in enumerate(roles):
        found += framing(tokenizer.chat, roles[:index], role, is_begin=True) + "x"
        found += framing(tokenizer.chat, roles[:index], role, is_begin=False)
    asked = grow(tokenizer, [*message("user", "x"), RoleStart("assistant")])
    generated = asked.generated(tokenizer.encode("x", is_start=False), "x")
    assert found == shown(tokenizer, grow(tokenizer, [RoleEnd(), *message("user", "x")], generated))


def test_an_assistant_message_without_a_generation_prompt_has_its_header(tmp_path: Path) -> None:
    tokenizer = load(tmp_path, CHATML.partition("{% if add_generation_prompt")[0])
    asked = grow(tokenizer, [*message("user", "a"), RoleStart("assistant")])
    assert shown(tokenizer, asked) == "<|im_start|>user\na<|im_end|>\n<|im_start|>assistant\n"
    spaced = grow(load(tmp_path, INSTRUCT), [*message("user", "a"), RoleStart("assistant")])
    assert shown(tokenizer, spaced).endswith("a [/INST]"), "a blank belongs to the answer"
