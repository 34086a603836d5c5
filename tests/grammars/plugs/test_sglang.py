"""The backend against the classes of `sglang`, without a server: they run where its package can be imported, on any device."""

from __future__ import annotations

import json
import random
import re
from collections.abc import Callable
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest

from rtlang_grammars.spec.errors import EmptyMaskError
from tests.support.models.foreign_models import write_transformers_model

try:
    from sglang.srt.constrained import base_grammar_backend
except ImportError as error:  # its requirements are kernels for GPUs; a part of them will do
    pytest.skip(f"sglang cannot be imported: {error}", allow_module_level=True)
import torch
import transformers
from sglang.srt.constrained.base_grammar_backend import GrammarRow, InvalidGrammarObject, create_grammar_backend
from sglang.srt.constrained.reasoner_grammar_backend import ReasonerGrammarObject

from rtlang_grammars.plugs import sglang as plug

SCHEMA = '{"type": "object", "properties": {"age": {"type": "integer", "minimum": 3}}, "required": ["age"]}'
TAG = json.dumps(
    {
        "structures": [{"begin": "<f>", "schema": {"type": "integer"}, "end": "</f>"}],
        "triggers": ["<f>"],
        "at_least_one": True,
    }
)
NESTED = json.dumps({"format": {"type": "tag", "begin": "<t>", "content": {"type": "json_schema"}, "end": "</t>"}})


@pytest.fixture(scope="module")
def tokenizer(tmp_path_factory: pytest.TempPathFactory) -> Any:
    return transformers.AutoTokenizer.from_pretrained(write_transformers_model(tmp_path_factory.mktemp("model")))


@pytest.fixture(scope="module")
def backend(tokenizer: Any) -> plug.RtlangGrammarBackend:
    return plug.RtlangGrammarBackend(tokenizer, 2056, [tokenizer.eos_token_id])


def allowed(grammar: Any) -> list[int]:
    mask = grammar.allocate_vocab_mask(2056, 2, "cpu")
    grammar.fill_vocab_mask(mask, 1)
    assert (mask[0] == -1).all()
    return [int(i) for i in np.flatnonzero(np.unpackbits(mask[1].numpy().view(np.uint8), bitorder="little"))]


@pytest.mark.parametrize(
    ("kind", "source", "is_valid"),
    [
        ("json", SCHEMA, lambda text: json.loads(text)["age"] >= 3),
        ("json", "$$ANY$$", lambda text: json.loads(text) is not NotImplemented),
        ("regex", "[ab]{2,4}", re.compile("[ab]{2,4}").fullmatch),
        ("ebnf", 'root ::= "a" root | "b"', re.compile("a*b").fullmatch),
        ("structural_tag", TAG, re.compile(r"<f>\s*-?\d+\s*</f>.*", re.DOTALL).fullmatch),
        ("structural_tag", NESTED, re.compile(r"<t>.*</t>", re.DOTALL).fullmatch),
    ],
)
def test_every_kind_of_request_is_enforced(
    backend: Any, tokenizer: Any, kind: str, source: str, is_valid: Callable[[str], Any]
) -> None:
    grammar, rng, end, num = (
        backend._init_value_dispatch((kind, source), False),
        random.Random(0),
        tokenizer.eos_token_id,
        0,
    )
    for _ in range(6):
        follower, ids = grammar.copy(), list[int]()
        while not follower.is_terminated() and len(ids) < 40:
            choices = allowed(follower)
            ids.append(end if end in choices else rng.choice(choices))
            follower.accept_token(ids[-1])
        if follower.is_terminated():
            num += 1
            assert is_valid(tokenizer.decode(ids, skip_special_tokens=True))
            assert allowed(follower) == [end]
            follower.rollback(1)
            assert end in allowed(follower)
    assert num or source == "$$ANY$$"
    assert not grammar.is_terminated()


def test_a_refused_request_says_why(backend: Any) -> None:
    for kind, source, message in (
        ("json", '{"type": "string", "format": "regex"}', "format"),
        ("regex", "(", "1:"),
        ("ebnf", "root = 1", "1:"),
        ("structural_tag", '{"format": {"type": "other"}}', "#/format/type"),
    ):
        found = backend._init_value_dispatch((kind, source), False)
        assert isinstance(found, InvalidGrammarObject)
        assert message in found.error_message


def test_rows_of_a_batch_and_filters_agree_with_single_rows(backend: Any, tokenizer: Any) -> None:
    grammars = [backend.dispatch_regex("ab+"), backend.dispatch_json(SCHEMA), backend.dispatch_regex("a")]
    a = tokenizer.convert_tokens_to_ids("a")
    grammars[2].accept_token(a)
    grammars[2].accept_token(tokenizer.eos_token_id)
    mask, single = (backend.allocate_vocab_mask(2056, 4, "cpu") for _ in range(2))
    type(grammars[0]).fill_vocab_mask_batched([GrammarRow(i + 1, each) for i, each in enumerate(grammars)], mask)
    for i, each in enumerate(grammars):
        each.fill_vocab_mask(single, i + 1)
    assert torch.equal(mask, single)
    logits = torch.zeros(4, 2060)
    grammars[0].apply_vocab_mask(logits, mask)
    bits = np.unpackbits(mask.numpy().view(np.uint8), axis=1, bitorder="little")[:, :2060]
    assert np.array_equal(np.isfinite(logits.numpy()), np.pad(bits, ((0, 0), (0, 2060 - bits.shape[1]))) == 1)
    backend.set_token_filter(mask, [a], 0)
    assert np.flatnonzero(np.unpackbits(mask[0].numpy().view(np.uint8), bitorder="little")).tolist() == [a]
    backend.set_token_filter(mask, [a], 0, is_allowed=False, reset_vocab_mask=False)
    assert not mask[0].any()


def test_text_without_a_choice_is_jumped_over(backend: Any, tokenizer: Any) -> None:
    grammar = backend.dispatch_regex("ab(cd)?e")
    helper = grammar.try_jump_forward(tokenizer)
    assert grammar.jump_forward_str_state(helper) == ("ab", -1)
    a, b, c, d, e = (tokenizer.convert_tokens_to_ids(each) for each in "abcde")
    grammar.accept_token(a)
    grammar.jump_and_retokenize([a], [a, b], -1)
    assert grammar.try_jump_forward(tokenizer) is None
    grammar.accept_token(c)
    grammar.jump_and_retokenize([a, b, c], [a, b, e], -1)
    assert grammar.try_jump_forward(tokenizer) is None
    with pytest.raises(ValueError, match=f"token {d} is not allowed"):
        grammar.accept_token(d)


def test_a_place_without_a_token_is_an_error(backend: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    grammar = backend.dispatch_regex("ab")

    def fill(row: Any) -> None:
        raise EmptyMaskError("nothing fits")

    monkeypatch.setattr(grammar, "_matcher", SimpleNamespace(fill_bitmask=fill, is_terminated=False))
    with pytest.raises(EmptyMaskError, match="constraint ab: no token may follow after b''"):
        allowed(grammar)


def serving(**given: Any) -> SimpleNamespace:
    names = ("constrained_json_disable_any_whitespace", "constrained_json_whitespace_pattern", "reasoning_parser")
    more = ("constrained_json_max_whitespace_cnt", "enable_strict_thinking", "skip_tokenizer_init")
    return SimpleNamespace(**{**dict.fromkeys((*names, *more)), **given})


def made(monkeypatch: pytest.MonkeyPatch, tokenizer: Any, **given: Any) -> Any:
    """The backend that `sglang` makes for `--grammar-backend rtlang`."""
    plug.register()
    plug.register()
    settings, kernel = serving(**given), SimpleNamespace(kernel=SimpleNamespace(grammar_backend="rtlang"))
    monkeypatch.setattr(plug, "get_serving", lambda: settings)
    monkeypatch.setattr(base_grammar_backend, "get_exec", lambda: kernel)
    return create_grammar_backend(SimpleNamespace(), tokenizer, 2056, {tokenizer.eos_token_id})


def test_sglang_makes_the_backend_with_its_options(monkeypatch: pytest.MonkeyPatch, tokenizer: Any) -> None:
    from sglang.srt.arg_groups.choices import GRAMMAR_BACKEND_CHOICES

    texts = ('{"age":3}', '{"age": 3}')
    for given, expected in (
        ({}, set(texts)),
        ({"constrained_json_disable_any_whitespace": True}, {texts[0]}),
        ({"constrained_json_whitespace_pattern": ""}, {texts[0]}),
        ({"constrained_json_max_whitespace_cnt": 0}, {texts[0]}),
    ):
        matcher = made(monkeypatch, tokenizer, **given).dispatch_json(SCHEMA)._matcher
        assert {text for text in texts if matcher.completes_bytes(text.encode())} == expected
    assert GRAMMAR_BACKEND_CHOICES.count("rtlang") == 1


def test_reasoning_comes_before_the_grammar(monkeypatch: pytest.MonkeyPatch, tokenizer: Any) -> None:
    backend = made(monkeypatch, tokenizer, reasoning_parser="qwen3")
    grammar = backend._init_value_dispatch(("regex", "ab"), True)
    assert isinstance(grammar, ReasonerGrammarObject)
    grammar.maybe_init_reasoning(True)
    x, a = (tokenizer.convert_tokens_to_ids(each) for each in "xa")
    for token_id in (x, *grammar.think_end_ids):
        grammar.accept_token(token_id)
    assert allowed(grammar) == allowed(backend.grammar_backend.dispatch_regex("ab"))
    grammar.accept_token(a)
    grammar.rollback(1)
    assert a in allowed(grammar)


def test_the_entry_point_names_register() -> None:
    for name in ("grammars/pyproject.toml", "pyproject.toml"):
        text = (Path(__file__).parents[3] / name).read_text(encoding="utf-8")
        assert 'rtlang_grammars = "rtlang_grammars.plugs.sglang:register"' in text.partition("sglang.srt.plugins")[2]
