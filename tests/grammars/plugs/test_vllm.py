"""The backend against the classes of `vllm`, without an engine; `test_readme.py` runs one."""

from __future__ import annotations

import itertools
import json
import random
import re
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest

from rtlang_grammars import Constraint, ConstraintKind, GrammarError, RtlangBackend
from tests.grammars.schema.test_json_options import SCHEMAS
from tests.support.grammars.vocabularies import without_letter
from tests.support.models.foreign_models import write_transformers_model

pytest.importorskip("vllm", reason="vllm is not installed: it needs an environment of its own")
import torch
import transformers
from vllm.config.structured_outputs import StructuredOutputsConfig
from vllm.entrypoints.openai.chat_completion.protocol import (
    ChatCompletionNamedToolChoiceParam,
    ChatCompletionToolsParam,
)
from vllm.exceptions import VLLMValidationError
from vllm.sampling_params import SamplingParams, StructuredOutputsParams
from vllm.tool_parsers.structural_tag_registry import (
    SUPPORTED_STRUCTURAL_TAG_MODELS,
    get_model_structural_tag,
    limit_to_single_tool_call,
)
from vllm.tool_parsers.tool_strict_level import ToolStrictLevel
from vllm.v1.structured_output.backend_guidance import process_for_additional_properties
from vllm.v1.structured_output.backend_types import (
    StructuredOutputBackend,
    StructuredOutputGrammar,
    StructuredOutputOptions,
)
from vllm.v1.structured_output.request import get_structured_output_key

from rtlang_grammars.plugs.vllm import (
    RtlangStructuredOutputBackend,
    RtlangStructuredOutputGrammar,
    register,
    report_of,
)
from rtlang_grammars.schema.json_options import without_additional_properties

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
    with pytest.raises(GrammarError, match="expected format, or structures"):
        report_of(StructuredOutputsParams(structural_tag="{}"))
    with pytest.raises(VLLMValidationError, match="expected format, or structures"):
        SamplingParams(structured_outputs=StructuredOutputsParams(structural_tag="{}"))._validate_structured_outputs(
            model, config, backend.tokenizer
        )
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


def properties(n: int) -> dict[str, Any]:
    return {
        "type": "object",
        "properties": {"q": {"type": "string"}, "n": {"type": "integer", "minimum": n}},
        "required": ["q"],
    }


TOOLS = [
    ChatCompletionToolsParam(
        function={
            "name": name,
            "strict": name == "find",
            "parameters": {**properties(n), "additionalProperties": False},
        }
    )
    for n, name in enumerate(("look", "find"))
]


@pytest.mark.parametrize("model", sorted(SUPPORTED_STRUCTURAL_TAG_MODELS))
def test_the_structural_tags_of_a_model_are_enforced(backend: Any, model: str) -> None:
    named = ChatCompletionNamedToolChoiceParam(function={"name": "find"})
    rng, bitmask, xgrammar = random.Random(0), backend.allocate_token_bitmask(2), pytest.importorskip("xgrammar")
    for choice, level in itertools.product(
        ("auto", "required", named), (ToolStrictLevel.AUTO, ToolStrictLevel.PARAMETER)
    ):
        for is_short in (False, True):
            made = get_model_structural_tag(model, TOOLS, choice, is_short, strict_level=level)
            if made is None:
                continue
            made = limit_to_single_tool_call(made) if is_short else made
            tag = made.model_dump_json()
            report_of(StructuredOutputsParams(structural_tag=tag))
            backend.vllm_config.structured_outputs_config = StructuredOutputsConfig(
                backend="rtlang", disable_any_whitespace=True
            )
            grammar, tokens = backend.compile_grammar(StructuredOutputOptions.STRUCTURAL_TAG, tag), list[int]()
            for _ in range(40):
                ids = [i for i in allowed(grammar, bitmask) if i != END]
                if not ids:
                    break
                tokens.append(rng.choice(ids))
                assert grammar.accept_tokens("request", tokens[-1:])
            closing = grammar._matcher.closing_bytes()
            assert closing is not None
            text = b"".join(backend._vocabulary.token_bytes[i] for i in tokens) + closing
            from xgrammar.testing import _is_grammar_accept_string

            assert _is_grammar_accept_string(xgrammar.Grammar.from_structural_tag(made), text.decode()), text


def texts_under(backend: Any, params: StructuredOutputsParams, config: StructuredOutputsConfig) -> set[str]:
    """Which of `JSON_TEXTS` the checked request allows."""
    request = SamplingParams(structured_outputs=params)
    request._validate_structured_outputs(SimpleNamespace(is_diffusion=False), config, backend.tokenizer)
    assert request.structured_outputs is not None
    backend.vllm_config.structured_outputs_config = config
    grammar = backend.compile_grammar(*get_structured_output_key(request.structured_outputs))
    return {text for text in JSON_TEXTS if grammar._matcher.fork().completes_bytes(text.encode())}


JSON_TEXTS = ('{"q":"a"}', '{"q": "a"}', '{"q":"a","z":1}', '{"q": "a", "z": 1}')


def test_options_for_json_are_obeyed(backend: Any) -> None:
    register()
    compact, closed = set(JSON_TEXTS[::2]), set(JSON_TEXTS[:2])
    plain = StructuredOutputsConfig(backend="rtlang")
    tag = json.dumps({"structures": [{"begin": "", "schema": properties(0), "end": "!"}], "triggers": [""]})
    for given in ({"json": properties(0)}, {"json": json.dumps(properties(0))}):
        made = {name: StructuredOutputsParams(**given, **options) for name, options in OPTIONS.items()}
        assert texts_under(backend, made["none"], plain) == set(JSON_TEXTS)
        assert texts_under(backend, made["blanks"], plain) == set(JSON_TEXTS)
        assert texts_under(backend, made["no blanks"], plain) == compact
        assert texts_under(backend, made["empty pattern"], plain) == compact
        assert texts_under(backend, made["closed"], plain) == closed
        params = StructuredOutputsParams(**given)
        setting = StructuredOutputsConfig(
            backend="rtlang", disable_any_whitespace=True, disable_additional_properties=True
        )
        assert texts_under(backend, params, setting) == compact & closed
    assert (
        texts_under(backend, StructuredOutputsParams(json_object=True, disable_any_whitespace=True), plain) == compact
    )
    for bad, message in (
        (StructuredOutputsParams(json={}, whitespace_pattern=" +"), "whitespace_pattern = ' [+]': expected a pattern"),
        (StructuredOutputsParams(regex="a", whitespace_pattern=" ?"), "whitespace_pattern: expected beside json"),
        (
            StructuredOutputsParams(structural_tag=tag, disable_any_whitespace=True),
            "triggers: expected a list of non-empty strings",
        ),
    ):
        with pytest.raises(VLLMValidationError, match=message):
            texts_under(backend, bad, plain)
    with pytest.raises(ValueError, match="only supported for"):
        StructuredOutputsConfig(backend="outlines", disable_any_whitespace=True)


def test_schemas_are_closed_as_vllm_closes_them_for_guidance() -> None:
    for schema, _, _ in SCHEMAS:
        if isinstance(schema, dict):
            assert without_additional_properties(schema) == process_for_additional_properties(schema)


OPTIONS: dict[str, dict[str, Any]] = {
    "none": {},
    "blanks": {"whitespace_pattern": r"[ \t\n\r]*"},
    "no blanks": {"disable_any_whitespace": True},
    "empty pattern": {"whitespace_pattern": ""},
    "closed": {"disable_additional_properties": True},
}


def test_a_place_without_a_token_fails_the_request(backend: Any, caplog: pytest.LogCaptureFixture) -> None:
    stuck = RtlangBackend.create(without_letter(backend._vocabulary, b"b")).compile(
        Constraint(ConstraintKind.REGEX, "ab")
    )
    grammar, a = RtlangStructuredOutputGrammar(stuck, frozenset()), backend.tokenizer.convert_tokens_to_ids("a")
    assert grammar.accept_tokens("request", [a])
    assert allowed(grammar, backend.allocate_token_bitmask(2)) == []
    assert "no token may follow" in caplog.text
    assert not any(grammar.accept_tokens("request", [token_id]) for token_id in range(2056))


def test_the_entry_point_names_register() -> None:
    text = (Path(__file__).parents[3] / "grammars" / "pyproject.toml").read_text(encoding="utf-8")
    assert 'rtlang_grammars = "rtlang_grammars.plugs.vllm:register"' in text.partition("vllm.general_plugins")[2]
