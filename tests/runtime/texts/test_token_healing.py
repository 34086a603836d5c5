"""Token healing against brute force: of all tokens whose bytes begin with those taken back, the likeliest under transformers' logits."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
import torch
import transformers

import rtlang as rt
from rtlang.runtime.texts.token_healing import healing_of
from tests.support.models.tiny_models import make_checkpoint
from tests.support.models.tokenizer_kinds import KINDS, tokenizer_json, write_tokenizer_kind

TEXTS = ["the", "th", "hello wor", "a b", "x", "é", "Hello the", "  ", "1", "\n"]


@rt.program
def healed(s: rt.State, text: str, options: dict[str, Any]) -> None:
    s += text + rt.gen("x", token_healing=True, **options)


@pytest.fixture(scope="module")
def tiny() -> Iterator[rt.Runtime]:
    with rt.Runtime("rtlang:tiny") as runtime:
        yield runtime


@pytest.mark.parametrize("kind", sorted(KINDS))
def test_the_text_goes_on_as_brute_force_says(kind: str, tmp_path: Path) -> None:
    size = 1 + max(json.loads(tokenizer_json(kind))["model"]["vocab"].values()) if kind != "unigram" else 0
    size = max(size, len(json.loads(tokenizer_json(kind))["model"]["vocab"])) + 8
    folder = make_checkpoint(tmp_path / "model", vocab_size=size)
    write_tokenizer_kind(folder, kind)
    model = transformers.AutoModelForCausalLM.from_pretrained(folder, dtype=torch.float32)

    def likeliest(token_ids: list[int], allowed: list[int]) -> int:
        with torch.inference_mode():
            logits = model(torch.tensor([token_ids])).logits[0, -1]
        return max(allowed, key=lambda each: float(logits[each]))

    num_healed = 0
    with rt.Runtime(str(folder), dtype="float32") as runtime:
        tokenizer = runtime.tokenizer
        spellings = [tokenizer.token_bytes(each) for each in range(tokenizer.vocab_size)]
        for text in TEXTS:
            before = [*tokenizer.start_ids(), *tokenizer.encode(text, is_start=True)]
            start = spellings[before[-1]]
            longer = [each for each, spelling in enumerate(spellings) if spelling.startswith(start)]
            found = healed.run(text, {"max_tokens": 3, "ignore_eos": True}, runtime=runtime)
            is_whole = start.decode("utf-8", "ignore").encode() == start != b""
            if not is_whole or all(spellings[each] == start for each in longer):
                assert healing_of(tokenizer, tuple(before)) is None
                continue
            num_healed += 1
            token_ids = [likeliest(before[:-1], longer)]
            while len(token_ids) < 3:
                token_ids.append(likeliest([*before[:-1], *token_ids], list(range(size))))
            assert list(found.meta("x").token_ids) == token_ids
            written = b"".join(spellings[each] if each < len(spellings) else b"" for each in token_ids)
            assert written.startswith(start)
            assert found["x"] == written[len(start) :].decode("utf-8", "replace")
            assert found.text() == text + found["x"]
    assert num_healed


def test_a_constraint_holds_for_the_text_behind_the_healed_characters(tiny: rt.Runtime) -> None:
    assert healed.run("http:", {"max_tokens": 4}, runtime=tiny)["x"].startswith("//")
    for options in ({"regex": "//[a-c]{2}"}, {"choices": ["//x", "y"]}, {"regex": "[0-9]{3}"}):
        found = healed.run("http:", {"max_tokens": 12, **options}, runtime=tiny)
        assert found.text() == "http:" + found["x"]
        if "regex" in options:
            assert re.fullmatch(options["regex"], found["x"])
        else:
            assert found["x"] in ("//x", "y")
    schema = {"type": "array", "items": {"enum": [1, 2, 3]}, "uniqueItems": True, "minItems": 2, "maxItems": 3}
    for seed in range(3):
        options = {"schema": schema, "max_tokens": 20, "temperature": 1.0, "seed": seed, "max_retries": 16}
        value = healed.run("The list:", options, runtime=tiny)["x"]
        assert 2 <= len(value) == len(set(value))


def test_streams_stops_and_completions_leave_the_healed_characters_out(tiny: rt.Runtime) -> None:
    plain = healed.run("http:", {"max_tokens": 6}, runtime=tiny)
    events = list(healed.stream("http:", {"max_tokens": 6}, runtime=tiny))
    assert "".join(each.text for each in events if isinstance(each, rt.TextEvent)) == plain["x"]
    stopped = healed.run("http:", {"max_tokens": 6, "stop": plain["x"][2:4]}, runtime=tiny)
    assert stopped["x"] == plain["x"][:2]
    assert healed.run("http:", {"max_tokens": 6, "stop": ":/"}, runtime=tiny)["x"] == plain["x"]
    options = {"max_tokens": 3, "n": 3, "temperature": 1.0, "seed": 1, "logprobs": 1}
    several = healed.run("http:", options, runtime=tiny)
    colon = tiny.tokenizer.encode(":", is_start=False)[-1]
    for text, meta in zip(several["x"], several.meta("x"), strict=True):
        written = b"".join(map(tiny.tokenizer.token_bytes, meta.token_ids))
        assert written.decode("utf-8", "replace") == ":" + text
        assert [each.token_id for each in meta.logprobs] == list(meta.token_ids)
        assert tiny.tokenizer.token_bytes(meta.token_ids[0]).startswith(tiny.tokenizer.token_bytes(colon))


@rt.program
def stopped_at_once(s: rt.State, stop: str) -> None:
    s += "http:" + rt.gen("x", 6, token_healing=True, stop=stop) + " and" + rt.gen("y", 4, token_healing=True)


@rt.program
def written_out(s: rt.State, text: str) -> None:
    s += text
    s += " and" + rt.gen("y", 4, token_healing=True)


def test_a_text_that_is_cut_to_nothing_leaves_the_prompt_as_it_was(tiny: rt.Runtime) -> None:
    found = stopped_at_once.run("//", runtime=tiny)
    assert found["x"] == ""
    assert found.text() == "http: and" + found["y"]
    assert found["y"] == written_out.run("http:", runtime=tiny)["y"]


@rt.program
def chatting(s: rt.State, token_healing: bool) -> None:
    s += rt.user("Hi") + rt.assistant(rt.gen("first", 4, token_healing=token_healing))
    s += rt.gen("second", 3, token_healing=token_healing)


def test_tokens_of_the_chat_template_and_generated_ones_are_not_taken_back(tiny: rt.Runtime) -> None:
    on, off = chatting.run(True, runtime=tiny), chatting.run(False, runtime=tiny)
    assert [on["first"], on["second"]] == [off["first"], off["second"]]
    assert on.meta("first").token_ids == off.meta("first").token_ids


def test_what_was_computed_for_the_prompt_stays_cached(tiny: rt.Runtime) -> None:
    text = "A long text about many things, and then: http:"
    first = healed.run(text, {"max_tokens": 2}, runtime=tiny)
    again = healed.run(text, {"max_tokens": 2}, runtime=tiny)
    assert again["x"] == first["x"]
    assert again.meta("x").usage.cached_tokens == again.meta("x").usage.prompt_tokens - 1


def test_a_finished_value_is_checked_with_the_text_that_healing_takes_back(tiny: rt.Runtime) -> None:
    items = {"type": "array", "items": {"type": "string", "maxLength": 2}, "uniqueItems": True, "maxItems": 2}
    for text in ("The list:", "The list: ", "List"):
        value = healed.run(text, {"schema": items, "max_tokens": 30}, runtime=tiny)["x"]
        assert len(value) == len(set(value))
