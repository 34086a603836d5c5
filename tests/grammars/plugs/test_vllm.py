"""The backend against the classes of `vllm`, without an engine; `test_readme.py` runs one."""

from __future__ import annotations

import json
import random
import re
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest

from rtlang_grammars import GrammarError
from tests.support.models.foreign_models import write_transformers_model

pytest.importorskip("vllm", reason="vllm is not installed: it needs an environment of its own")
import torch
import transformers
from vllm.config.structured_outputs import StructuredOutputsConfig
from vllm.exceptions import VLLMValidationError
from vllm.sampling_params import SamplingParams, StructuredOutputsParams
from vllm.v1.structured_output.backend_types import (
    StructuredOutputBackend,
    StructuredOutputGrammar,
    StructuredOutputOptions,
)

from rtlang_grammars.plugs.vllm import RtlangStructuredOutputBackend, register, report_of

END = 1


@pytest.fixture(scope="module")
def backend(tmp_path_factory: pytest.TempPathFactory) -> RtlangStructuredOutputBackend:
    path = write_transformers_model(tmp_path_factory.mktemp("model"))
    tokenizer = transformers.AutoTokenizer.from_pretrained(path)
    return RtlangStructuredOutputBackend(SimpleNamespace(), tokenizer, 2056)


def allowed(grammar: StructuredOutputGrammar, bitmask: torch.Tensor) -> list[int]:
    grammar.fill_bitmask(bitmask, 1)
    return [int(i) for i in np.flatnonzero(np.unpackbits(bitmask[1].numpy().view(np.uint8), bitorder="little"))]


def text_of(backend: Any, tokens: list[int]) -> str:
    return str(backend.tokenizer.decode(tokens, skip_special_tokens=True))


@pytest.mark.parametrize(
    ("kind", "source", "is_valid"),
    [
        (StructuredOutputOptions.JSON, '{"type": "array", "items": {"type": "integer"}, "maxItems": 3}', json.loads),
        (StructuredOutputOptions.JSON_OBJECT, "", json.loads),
        (StructuredOutputOptions.REGEX, "[ab]{2,4}", re.compile("[ab]{2,4}").fullmatch),
        (StructuredOutputOptions.CHOICE, '["left", "right"]', {"left", "right"}.__contains__),
        (StructuredOutputOptions.GRAMMAR, 'start: "x" | "(" start ")"', re.compile(r"\(*x\)*").fullmatch),
        (StructuredOutputOptions.GRAMMAR, 'root ::= "a" root | "b"', re.compile("a*b").fullmatch),
    ],
)
def test_every_kind_of_request_is_enforced(backend: Any, kind: Any, source: str, is_valid: Any) -> None:
    assert isinstance(backend, StructuredOutputBackend)
    bitmask, draw, num_texts = backend.allocate_token_bitmask(3), random.Random(0), 0
    for _ in range(20):
        grammar, tokens = backend.compile_grammar(kind, source), []
        while not grammar.is_terminated() and len(tokens) < 60:
            choices = allowed(grammar, bitmask)
            tokens.append(END if END in choices else draw.choice(choices))
            assert grammar.accept_tokens("request", tokens[-1:])
        if grammar.is_terminated():
            num_texts += 1
            assert is_valid(text_of(backend, tokens)) not in (None, False)
    assert num_texts
    assert (bitmask[[0, 2]] == -1).all()


def test_masks_say_what_is_accepted_and_rollback_undoes_it(backend: Any) -> None:
    grammar = backend.compile_grammar(StructuredOutputOptions.REGEX, "ab?(cd)*")
    bitmask, draw = backend.allocate_token_bitmask(2), random.Random(1)
    for _ in range(30):
        grammar.reset()
        masks, tokens = [allowed(grammar, bitmask)], []
        for _ in range(draw.randrange(1, 6)):
            refused = draw.choice([i for i in range(2056) if i not in masks[-1]])
            assert not grammar.accept_tokens("request", [refused])
            assert grammar.validate_tokens([refused]) == []
            tokens.append(draw.choice(masks[-1]))
            assert grammar.validate_tokens([tokens[-1], refused])[:1] == [tokens[-1]]
            assert grammar.accept_tokens("request", tokens[-1:])
            if grammar.is_terminated():
                break
            masks.append(allowed(grammar, bitmask))
        num_back = draw.randrange(len(tokens) + 1)
        grammar.rollback(num_back)
        if num_back or not grammar.is_terminated():
            assert allowed(grammar, bitmask) == masks[len(tokens) - num_back]
        assert grammar.accept_tokens("request", tokens[len(tokens) - num_back :])


def test_a_refused_token_takes_the_whole_list_back(backend: Any) -> None:
    grammar, bitmask = backend.compile_grammar(StructuredOutputOptions.REGEX, "a+b"), backend.allocate_token_bitmask(2)
    before, (a, c) = allowed(grammar, bitmask), (backend.tokenizer.convert_tokens_to_ids(each) for each in "ac")
    assert not grammar.accept_tokens("request", [a, a, c])
    assert allowed(grammar, bitmask) == before
    assert grammar.validate_tokens([a, a, c, a]) == [a, a]


def test_stop_tokens_follow_complete_texts_only(backend: Any) -> None:
    stop = backend.tokenizer.convert_tokens_to_ids("!")
    grammar = backend.compile_grammar(StructuredOutputOptions.REGEX, "a!?", stop_token_ids={stop, 5000})
    bitmask, a = backend.allocate_token_bitmask(2), backend.tokenizer.convert_tokens_to_ids("a")
    assert not {stop, END} & set(allowed(grammar, bitmask))
    assert grammar.accept_tokens("request", [a])
    assert {stop, END} <= set(allowed(grammar, bitmask))
    assert grammar.accept_tokens("request", [stop, 77])  # tokens after the end are ignored
    assert grammar.is_terminated()


def test_requests_are_checked_before_they_reach_the_engine(backend: Any) -> None:
    register()
    register()
    config, model = StructuredOutputsConfig(backend="rtlang"), SimpleNamespace(is_diffusion=False)
    good = SamplingParams(structured_outputs=StructuredOutputsParams(json={"type": "object"}))
    good._validate_structured_outputs(model, config, backend.tokenizer)
    assert good.structured_outputs is not None
    assert good.structured_outputs._backend == "rtlang"
    bad = StructuredOutputsParams(json={"properties": {"n": {"type": "string", "format": "regex"}}})
    with pytest.raises(VLLMValidationError, match="#/properties/n"):
        SamplingParams(structured_outputs=bad)._validate_structured_outputs(model, config, backend.tokenizer)
    with pytest.raises(GrammarError) as caught:
        report_of(bad)
    assert str(caught.value.location).startswith("#/properties/n")
    with pytest.raises(GrammarError, match="structural_tag"):
        report_of(StructuredOutputsParams(structural_tag="{}"))
    other = SamplingParams(structured_outputs=StructuredOutputsParams(regex="a"))
    other._validate_structured_outputs(model, StructuredOutputsConfig(backend="xgrammar"), backend.tokenizer)
    assert other.structured_outputs is not None
    assert other.structured_outputs._backend == "xgrammar"
    with pytest.raises(ValueError, match="no_such"):
        StructuredOutputsConfig(backend="no_such")


def test_the_report_is_that_of_the_schema(backend: Any) -> None:
    schema = {"type": "object", "properties": {"n": {"type": "integer", "minimum": 3}}}
    report = report_of(StructuredOutputsParams(json=schema))
    assert report is not None
    assert ("#/properties/n", "minimum", "enforced") in {(e.pointer, e.keyword, str(e.status)) for e in report.entries}
    compiled = backend.compile_grammar(StructuredOutputOptions.JSON, json.dumps(schema))
    assert compiled.report.entries == report.entries


def test_the_entry_point_names_register() -> None:
    text = (Path(__file__).parents[3] / "grammars" / "pyproject.toml").read_text(encoding="utf-8")
    assert 'rtlang_grammars = "rtlang_grammars.plugs.vllm:register"' in text.partition("vllm.general_plugins")[2]
