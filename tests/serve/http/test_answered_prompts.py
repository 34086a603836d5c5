"""Conversations that go on through the server begin with the tokens that were generated."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pytest
from openai import OpenAI

from rtlang.contract.errors import OverloadError
from rtlang.contract.service.text_service import prompt_key
from rtlang.runtime.runtime import Runtime
from rtlang.runtime.texts.text_service import TokenizerTextService
from rtlang.serve.network.key_table import digest_of
from tests.support.servers.serving import serving

KEYS = "".join(f'[[keys]]\nname = "{name}"\nsha256 = "{digest_of(name)}"\n' for name in ("ann", "bob"))
RANDOM: dict[str, Any] = {
    "max_tokens": 40,
    "temperature": 5.0,
    "seed": 4,
    "logit_bias": {str(token_id): -100 for token_id in range(5)},
}
"""Without a special token by chance, so that the texts are those of the tokens."""
ASKED: list[Any] = [{"role": "user", "content": "Tell me of a dog."}]


@pytest.fixture(scope="module")
def clients() -> Iterator[dict[str, OpenAI]]:
    with Runtime(num_threads=1, num_pages=200) as runtime, serving(runtime, keys=KEYS) as server:  # type: ignore[arg-type]
        url = server.url.replace("ws", "http", 1) + "/v1"
        yield {name: OpenAI(base_url=url, api_key=name, max_retries=0) for name in ("ann", "bob")}


@pytest.fixture
def told(monkeypatch: pytest.MonkeyPatch) -> list[tuple[bytes, list[list[int]]]]:
    """What the text service was told."""
    found: list[tuple[bytes, list[list[int]]]] = []
    usual = TokenizerTextService.remember

    def remember(self: TokenizerTextService, prompt: bytes, outputs: Any) -> None:
        found.append((prompt, [list(each) for each in outputs]))
        usual(self, prompt, outputs)

    monkeypatch.setattr(TokenizerTextService, "remember", remember)
    return found


def tokens(client: OpenAI, messages: list[Any], **more: Any) -> list[int]:
    found = client.post("/tokenize", body={"messages": messages, **more}, cast_to=dict)
    return found["tokens"]  # type: ignore[no-any-return]


def going_on(text: str | None) -> list[Any]:
    return [*ASKED, {"role": "assistant", "content": text}, {"role": "user", "content": "And then?"}]


@pytest.mark.parametrize("is_stream", [False, True])
def test_every_choice_goes_on_with_its_own_tokens(
    clients: dict[str, OpenAI], told: list[tuple[bytes, list[list[int]]]], is_stream: bool
) -> None:
    options: dict[str, Any] = {"model": "default", "messages": ASKED, "n": 2, **RANDOM}
    if is_stream:
        texts = ["", ""]
        for chunk in clients["ann"].chat.completions.create(**options, stream=True):
            for choice in chunk.choices:
                texts[choice.index] += choice.delta.content or ""
    else:
        answer = clients["ann"].chat.completions.create(**options)
        texts = [choice.message.content or "" for choice in answer.choices]
    prompt = tokens(clients["ann"], ASKED)
    outputs = [output for key, found in told for output in found if key == prompt_key(prompt)]
    assert len(outputs) == 2
    known = [prompt + output for output in outputs]
    for text in texts:
        found = tokens(clients["ann"], going_on(text))
        assert any(found[: len(each)] == each for each in known)
        assert not any(tokens(clients["bob"], going_on(text))[: len(each)] == each for each in known)


def test_an_answer_that_a_stop_has_cut_within_a_token_is_not_kept(
    clients: dict[str, OpenAI], told: list[tuple[bytes, list[list[int]]]]
) -> None:
    asked: list[Any] = [{"role": "user", "content": "Who is at the door? Give a name and an age."}]
    options: dict[str, Any] = {"model": "default", "messages": asked, "temperature": 0, "max_tokens": 6}
    whole = clients["bob"].chat.completions.create(**options).choices[0].message.content or ""
    cut = clients["ann"].chat.completions.create(**options, stop=[whole[3:5]])
    assert cut.choices[0].message.content == whole[:3]
    assert all(key != prompt_key(tokens(clients["ann"], asked)) for key, _ in told[1:])


def test_an_answer_comes_whole_if_its_tokens_cannot_be_kept(
    clients: dict[str, OpenAI], monkeypatch: pytest.MonkeyPatch
) -> None:
    def refuse(*_: Any) -> None:
        raise OverloadError("full", 1.0)

    options: dict[str, Any] = {"model": "default", "messages": ASKED, "temperature": 0, "max_tokens": 3}
    kept = clients["bob"].chat.completions.create(**options)
    monkeypatch.setattr(TokenizerTextService, "remember", refuse)
    answer = clients["ann"].chat.completions.create(**options)
    assert answer.choices == kept.choices
    assert answer.usage is not None
    assert kept.usage is not None
    assert answer.usage.completion_tokens == kept.usage.completion_tokens > 0


def test_a_salt_has_conversations_of_its_own(
    clients: dict[str, OpenAI], told: list[tuple[bytes, list[list[int]]]]
) -> None:
    ask = clients["ann"].chat.completions.create
    answer = ask(model="default", messages=ASKED, **RANDOM | {"seed": 9}, extra_body={"cache_salt": "x"})
    (output,) = [each for _, found in told for each in found]
    later = going_on(answer.choices[0].message.content)
    known = [*tokens(clients["ann"], ASKED), *output]
    assert tokens(clients["ann"], later)[: len(known)] != known
    for salt, is_same in (("x", True), ("y", False)):
        told.clear()
        again = ask(model="default", messages=later, max_tokens=1, extra_body={"cache_salt": salt})
        assert again.usage is not None
        assert (
            again.usage.prompt_tokens
            == len(known) + len(tokens(clients["ann"], going_on(""))) - len(tokens(clients["ann"], ASKED))
        ) is is_same
