"""Tokens of earlier prompts and answers: what was generated is found again by its text, and a dictionary says what must be found.

Outputs are random tokens, which no tokenizer would make of their text. Clients send back what the server would have shown.
"""

from __future__ import annotations

import itertools
import random
import unicodedata
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest

from rtlang.contract.runs.principal import Principal
from rtlang.contract.service.text_service import prompt_key
from rtlang.model.text import tracked_text
from rtlang.model.text.chat import ChatTemplate
from rtlang.model.text.token_history import OwnedHistory, TokenHistory
from rtlang.model.text.tokenizer import Tokenizer
from rtlang.model.text.tracked_text import TextSource, TrackedText
from rtlang.runtime.texts.text_service import TokenizerTextService
from tests.support.long_tests import sized
from tests.support.models.tokenizer_kinds import KINDS, write_tokenizer_kind

QWEN2 = Path(__file__).parents[3].parent / "shared" / "tokenizers" / "qwen2"
CHATML = (
    "{% for m in messages %}<|im_start|>{{ m.role }}\n{{ m.content }}<|im_end|>\n{% endfor %}"
    "{% if add_generation_prompt %}<|im_start|>assistant\n{% endif %}"
)
TRIMMED = CHATML.replace("m.content", "m.content | trim")
NEW_LINES = (
    "{{ bos_token }}{% for m in messages %}{{ '### ' + m.role + ':\n' + m.content + '\n' }}{% endfor %}"
    "{% if add_generation_prompt %}{{ '### assistant:\n' }}{% endif %}"
)
"""Without a special token after an answer: a tokenizer would merge its end with the new line."""
LLAMA2 = (
    "{% for m in messages %}{% if m.role == 'user' %}{{ bos_token + '[INST] ' + m.content + ' [/INST]' }}"
    "{% else %}{{ m.content + eos_token }}{% endif %}{% endfor %}"
)
TEMPLATES = {"chatml": CHATML, "trimmed": TRIMMED, "new lines": NEW_LINES, "llama-2": LLAMA2, "plain": None}
ANN = Principal("ann")


def tokenizer_of(kind: str, folder: Path) -> Tokenizer:
    if kind == "qwen2":
        if not QWEN2.is_dir():
            pytest.skip(f"{QWEN2} is missing: it has the tokenizer of Qwen 2")
        return Tokenizer.from_pretrained(QWEN2)
    write_tokenizer_kind(folder, kind)
    return Tokenizer.from_pretrained(folder)


def use_template(tokenizer: Tokenizer, template: str | None) -> None:
    bos, eos = ("<s>", "</s>") if "<s>" in special_names(tokenizer) else ("<|endoftext|>", "<|im_end|>")
    tokenizer.chat = ChatTemplate(tokenizer, template, {"bos_token": bos, "eos_token": eos})


def special_names(tokenizer: Tokenizer) -> list[str]:
    return [tokenizer.named_bytes(each).decode() for each in tokenizer.special_token_ids]


def rendered(tokenizer: Tokenizer, messages: Sequence[dict[str, Any]]) -> str:
    return tracked_text.plain(tokenizer.chat.render(messages, adds_prompt=True))


@dataclass
class Count:
    turns: int = 0
    before: int = 0
    after: int = 0


def converse(tokenizer: Tokenizer, rng: random.Random, num_turns: int, count: Count) -> None:
    """A conversation whose answers are random tokens: each prompt begins with the one before and its answer, if the text does."""
    service = TokenizerTextService(tokenizer)
    mine, plain = service.for_principal(ANN), service
    usable = [each for each in range(tokenizer.vocab_size) if tokenizer.token_bytes(each)]
    messages: list[dict[str, Any]] = [{"role": "user", "content": "Größe 10 of a dog"}]
    told: list[int] = []
    text_before = ""
    for _ in range(num_turns):
        prompt, again = (each.chat_prompt(messages, None, "prompt") for each in (mine, plain))
        assert spelled(tokenizer, prompt) == spelled(tokenizer, again)
        text = rendered(tokenizer, messages)
        if told and text.startswith(text_before):
            count.turns += 1
            count.before += again[: len(told)] != told
            count.after += prompt[: len(told)] != told
        output = [rng.choice(usable) for _ in range(rng.randint(1, 12))]
        mine.remember(prompt_key(prompt), [output])
        content = tokenizer.decode(output)
        told, text_before = prompt + output, text + content
        messages += [
            {"role": "assistant", "content": content},
            {"role": "user", "content": rng.choice(["and then?", "dog\n", "  Ä\n", "<|im_end|>", "</s> x"])},
        ]


def spelled(tokenizer: Tokenizer, token_ids: Sequence[int]) -> str:
    """The text of tokens, normalized as the tokenizer of Qwen 2 does with every text.

    Without a blank at its start: whether a tokenizer puts one there depends on where a text is cut, and known tokens keep the first cut.
    """
    text = TokenizerTextService(tokenizer).decode(token_ids, shows_special=True)
    return unicodedata.normalize("NFC", text.replace("<s> ", "<s>", 1).lstrip(" "))


@pytest.mark.parametrize("kind", [pytest.param("qwen2", marks=pytest.mark.long), *KINDS])
def test_a_prompt_begins_with_the_tokens_that_were_generated(kind: str, tmp_path: Path) -> None:
    counts = {name: Count() for name in TEMPLATES}
    tokenizer = tokenizer_of(kind, tmp_path)
    for name, template in TEMPLATES.items():
        use_template(tokenizer, template)
        for seed in range(sized(12, usual=3)):
            converse(tokenizer, random.Random(seed), 6, counts[name])
    print(kind, counts)  # the figures of the long run
    assert all(count.after == 0 for count in counts.values())
    assert sum(count.turns for count in counts.values()) >= 40
    assert sum(count.before for count in counts.values()) >= 20


@pytest.fixture(scope="module")
def tokenizer(tmp_path_factory: pytest.TempPathFactory) -> Tokenizer:
    found = tokenizer_of("byte_level", tmp_path_factory.mktemp("byte_level"))
    use_template(found, LLAMA2)
    return found


Piece = tuple[str, bool]
"""A text, and whether names of special tokens in it are these tokens."""


def as_text(pieces: Sequence[Piece]) -> TrackedText:
    return tracked_text.joined(
        TrackedText.whole(text, None if is_special else TextSource(0, "content")) for text, is_special in pieces
    )


def marked(tokenizer: Tokenizer, token_ids: Sequence[int]) -> tuple[Any, ...]:
    """What tokens spell: special ones as numbers, the text between them."""
    found: list[Any] = [""]
    plain = list[int]()
    for token_id in [*token_ids, None]:
        if token_id is not None and token_id not in tokenizer.special_token_ids:
            plain.append(token_id)
            continue
        found[-1] += tokenizer.decode(plain)
        plain = []
        if token_id is not None:
            found += [token_id, ""]
    return tuple(found)


def test_a_dictionary_says_what_is_known(tokenizer: Tokenizer) -> None:
    """Random prompts and answers, in several namespaces; every prompt continues what a dictionary of marked texts has for it, or less."""
    rng, history = random.Random(1), TokenHistory(tokenizer)
    owners = [history.owned(name, salt) for name in ("ann", "bob") for salt in ("", "s")]
    plain_ids = [each for each in range(tokenizer.vocab_size) if tokenizer.token_bytes(each)]
    special_ids = sorted(tokenizer.special_token_ids)
    known: list[dict[tuple[Any, ...], list[int]]] = [{} for _ in owners]
    texts: list[list[list[Piece]]] = [[[]] for _ in owners]
    num_found = 0
    for _ in range(sized(4000, usual=600)):
        index = rng.randrange(len(owners))
        pieces = list(rng.choice(texts[index][-30:]))
        pieces += [
            (rng.choice(["<s>", "</s>", "<|user|>"]), rng.random() < 0.6),
            (rng.choice(["a dog ", "</", "é"]), False),
        ]
        pieces.append(("<|user|>", True))
        text, cuts = as_text(pieces), list(itertools.accumulate(len(piece) for piece, _ in pieces))
        prompt = owners[index].encode(tokenizer.chat, text, cuts)
        mark = marked(tokenizer, prompt)
        assert mark == marked(tokenizer, tokenizer.chat.encode(text, is_start=True))
        longest = max((ids for each, ids in known[index].items() if is_prefix(each, mark)), key=len, default=[])
        assert prompt[: len(longest)] == longest
        num_found += bool(longest)
        known[index][mark] = prompt
        outputs = [
            [rng.choice(special_ids if rng.random() < 0.2 else plain_ids) for _ in range(rng.randint(1, 6))]
            for _ in range(rng.randint(1, 2))
        ]
        owners[index].remember(prompt_key(prompt), outputs)
        for output in outputs:
            for end in range(1, len(output) + 1):
                if is_border(tokenizer, output, end):
                    known[index][marked(tokenizer, prompt + output[:end])] = prompt + output[:end]
            whole = marked(tokenizer, prompt + output)
            if "\ufffd" not in "".join(each for each in whole if isinstance(each, str)):
                texts[index].append([(name_or(tokenizer, each), isinstance(each, int)) for each in whole])
    assert num_found > 100


def is_border(tokenizer: Tokenizer, output: Sequence[int], end: int) -> bool:
    """Whether a known text ends there: beside a special token, or with nothing but blanks up to the next one."""
    special = tokenizer.special_token_ids
    rest = list(itertools.takewhile(lambda each: each not in special, output[end:]))
    return output[end - 1] in special or all(not tokenizer.token_bytes(each).strip() for each in rest)


def name_or(tokenizer: Tokenizer, part: Any) -> str:
    return part if isinstance(part, str) else tokenizer.token_name(part)


def is_prefix(first: tuple[Any, ...], second: tuple[Any, ...]) -> bool:
    """Whether a marked text begins with another one."""
    at = len(first) - 1
    return second[:at] == first[:at] and len(second) > at and second[at].startswith(first[at])


def spoken(tokenizer: Tokenizer, *contents: str) -> list[dict[str, str]]:
    """Messages of the user and the assistant in turns."""
    return [{"role": ("user", "assistant")[index % 2], "content": each} for index, each in enumerate(contents)]


def test_tokens_of_one_principal_or_salt_are_never_those_of_another(tokenizer: Tokenizer) -> None:
    service = TokenizerTextService(tokenizer)
    ann = service.for_principal(ANN.salted("y"))
    prompt = ann.chat_prompt(spoken(tokenizer, "dog"), None, "prompt")
    letters = [tokenizer.encode(each, is_start=False)[0] for each in "the quick"]
    ann.remember(prompt_key(prompt), [letters])
    history = spoken(tokenizer, "dog", "the quick", "and?")
    assert ann.chat_prompt(history, None, "prompt")[: len(prompt) + 9] == prompt + letters
    for other in (Principal("bob"), ANN.salted("x"), ANN):
        service.for_principal(other).remember(prompt_key(prompt), [letters])  # it has no such prompt
        assert service.for_principal(other).chat_prompt(history, None, "prompt") == service.chat_prompt(
            history, None, "prompt"
        )


def test_each_choice_and_each_fork_has_its_own_tokens(tokenizer: Tokenizer) -> None:
    ann = TokenizerTextService(tokenizer).for_principal(ANN)
    prompt = ann.chat_prompt(spoken(tokenizer, "dog"), None, "prompt")
    choices = ["a cat", "a cart", "a", "a cat "]
    outputs = [[tokenizer.encode(each, is_start=False)[0] for each in text] for text in choices]
    ann.remember(prompt_key(prompt), outputs)
    for text, output in zip(choices, outputs, strict=True):
        for question in ("why?", "how?"):
            found = ann.chat_prompt(spoken(tokenizer, "dog", text, question), None, "prompt")
            assert found[: len(prompt) + len(output)] == prompt + output
            assert found[len(prompt) + len(output)] == tokenizer.encode("</s>", is_start=False, allow_special=True)[0]


def test_the_latest_of_two_answers_with_one_text_counts(tokenizer: Tokenizer) -> None:
    ann = TokenizerTextService(tokenizer).for_principal(ANN)
    prompt = ann.chat_prompt(spoken(tokenizer, "dog"), None, "prompt")
    letters = [tokenizer.encode(each, is_start=False)[0] for each in "dog"]
    for output in (letters, tokenizer.encode("dog", is_start=False)):
        ann.remember(prompt_key(prompt), [output])
        found = ann.chat_prompt(spoken(tokenizer, "dog", "dog", f"and {len(output)}?"), None, "prompt")
        assert found[: len(prompt) + len(output)] == prompt + output


def test_blanks_that_a_template_trims_cost_no_other_token(tokenizer: Tokenizer) -> None:
    service = TokenizerTextService(tokenizer)
    usual, tokenizer.chat = tokenizer.chat, ChatTemplate(tokenizer, TRIMMED, {})
    try:
        ann = service.for_principal(ANN)
        prompt = ann.chat_prompt(spoken(tokenizer, "dog"), None, "prompt")
        letters = [tokenizer.encode(each, is_start=False)[0] for each in "a dog"]
        blanks = [tokenizer.encode(each, is_start=False)[0] for each in " \n\n"]
        ann.remember(prompt_key(prompt), [letters + blanks])
        found = ann.chat_prompt(spoken(tokenizer, "dog", "a dog \n\n", "and?"), None, "prompt")
        assert found[: len(prompt) + 5] == prompt + letters
        assert tokenizer.decode(found).count("a dog<") == tokenizer.decode(found).count("a dog") == 1
    finally:
        tokenizer.chat = usual


def test_an_answer_that_was_cut_goes_on_after_its_own_tokens(tokenizer: Tokenizer) -> None:
    """Cut in a character and in a word; the client lets the model continue, or appends to the text."""
    ann = TokenizerTextService(tokenizer).for_principal(ANN)
    for cut, text in (("ß".encode()[:1], "\ufffd"), (b"lit", "lit")):
        prompt = ann.chat_prompt(spoken(tokenizer, "dog " + text), None, "prompt")
        by_byte = {tokenizer.token_bytes(each): each for each in range(tokenizer.vocab_size)}
        output = [by_byte[bytes([each])] for each in cut]
        ann.remember(prompt_key(prompt), [output])
        assert ann.chat_prompt(spoken(tokenizer, "dog " + text, text), None, "open") == prompt + output
        longer = ann.chat_prompt(spoken(tokenizer, "dog " + text, text + "tle"), None, "open")
        assert longer == prompt + output + tokenizer.encode("tle", is_start=False)
        changed = spoken(tokenizer, "dog " + text, "x" + text)
        assert ann.chat_prompt(changed, None, "open") == prompt + tokenizer.encode("x" + text, is_start=False)


def test_a_prompt_that_begins_an_answer_within_a_word_leaves_other_texts_alone(tokenizer: Tokenizer) -> None:
    plain = TokenizerTextService(tokenizer)
    ann = plain.for_principal(ANN)
    ann.chat_prompt(spoken(tokenizer, "dog"), None, "prompt")
    for begun in ("d", "do", "dog", "d"):
        messages = spoken(tokenizer, "dog", begun)
        assert ann.chat_prompt(messages, None, "open") == plain.chat_prompt(messages, None, "open")


def test_a_name_that_a_message_spells_is_never_taken_for_a_special_token(tokenizer: Tokenizer) -> None:
    ann, plain = TokenizerTextService(tokenizer).for_principal(ANN), TokenizerTextService(tokenizer)
    (end_id,) = tokenizer.encode("</s>", is_start=False, allow_special=True)
    prompt = ann.chat_prompt(spoken(tokenizer, "dog"), None, "prompt")
    ann.remember(
        prompt_key(prompt), [[*tokenizer.encode("a", is_start=False), end_id, *tokenizer.encode("b", is_start=False)]]
    )
    spelled_name = spoken(tokenizer, "dog", "a</s>b", "x")
    found, usual = (each.chat_prompt(spelled_name, None, "prompt") for each in (ann, plain))
    assert marked(tokenizer, found) == marked(tokenizer, usual)
    assert found.count(end_id) == 1  # the template's own


def test_memory_is_bounded_for_each_principal_and_for_all(tokenizer: Tokenizer) -> None:
    history = TokenHistory(tokenizer, max_bytes=60_000, max_principal_bytes=40_000)
    ann = history.owned("ann", "")
    answer = [tokenizer.encode(each, is_start=False)[0] for each in "quick"]

    def say(owner: OwnedHistory, text: str) -> bool:
        """Ask and answer; whether the answer is known then."""
        whole = as_text([("<s>", True), (text, False), ("</s>", True)])
        prompt = owner.encode(tokenizer.chat, whole, [len(whole)])
        owner.remember(prompt_key(prompt), [answer])
        return knows(owner, text)

    def knows(owner: OwnedHistory, text: str) -> bool:
        reply = tokenizer.decode(answer)
        whole = as_text([("<s>", True), (text, False), ("</s>", True), (reply, False), ("<s>", True)])
        ids = owner.encode(tokenizer.chat, whole, [len(text) + len("<s></s>")])
        return ids[-1 - len(answer) : -1] == answer

    assert say(ann, "kept")
    for number in range(300):
        assert say(history.owned("hostile", str(number % 7)), f"dog {number}")
        assert history.num_bytes <= 60_000
        if number % 50 == 0:
            history.check()
    assert knows(ann, "kept")  # the one with the most texts forgot
    assert not knows(history.owned("hostile", "0"), "dog 0")
    assert not say(TokenHistory(tokenizer, max_principal_bytes=10).owned("ann", ""), "dog")
    history.check()


def test_a_long_chain_takes_memory_for_its_tokens_once(tokenizer: Tokenizer) -> None:
    history = TokenHistory(tokenizer)
    ann = history.owned("ann", "")
    pieces: list[Piece] = []
    num_turns = sized(2000, usual=120)
    for _ in range(num_turns):
        pieces += [("<s>", True), ("go on", False), ("</s>", True)]
        cuts = list(itertools.accumulate(len(piece) for piece, _ in pieces))
        prompt = ann.encode(tokenizer.chat, as_text(pieces), cuts)
        pieces.append(("quick", False))
        ann.remember(prompt_key(prompt), [tokenizer.encode("quick", is_start=False)])
    history.check()
    assert history.num_bytes == pytest.approx(2 * 1500 * num_turns, rel=0.05)
    assert tokenizer.decode(prompt) == "go onquick" * (num_turns - 1) + "go on"
