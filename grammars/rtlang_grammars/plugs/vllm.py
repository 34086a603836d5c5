"""A structured-output backend for `vllm` (its V1 engine).

`structured_outputs_config={"backend": "rtlang"}` chooses it. `vllm` calls `register` in every process by the entry point
`vllm.general_plugins`; a program calls it once itself if it makes a `StructuredOutputsConfig` before an engine. `vllm` has no registry of
these backends, so `register` wraps the three places that name them: the setting's type and check, the check of a request, and the choice of
the backend. Requests for other backends pass through unchanged.

The options for JSON (`disable_any_whitespace`, `disable_additional_properties`, `whitespace_pattern`) are obeyed, in the setting and in
requests. `vllm` hands a backend nothing but the kind and the source of a request, so the check of a request writes its options into them:
the request becomes the structural tag of one schema.

Masks are made without scores, so a text that `max_tokens` cuts off may be incomplete. numba is loaded when the first grammar is needed: the
workers of `vllm` 0.32 fail to start in a process that has loaded it.
"""

from __future__ import annotations

import functools
import json
import logging
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any, Literal, get_args

import numpy as np
import torch
from pydantic.dataclasses import rebuild_dataclass
from vllm.config import VllmConfig
from vllm.config.structured_outputs import StructuredOutputsConfig
from vllm.exceptions import VLLMValidationError
from vllm.sampling_params import SamplingParams, StructuredOutputsParams
from vllm.v1.structured_output import StructuredOutputManager
from vllm.v1.structured_output.backend_types import (
    StructuredOutputBackend,
    StructuredOutputGrammar,
    StructuredOutputOptions,
)
from vllm.v1.structured_output.request import get_structured_output_key
from vllm.v1.structured_output.utils import grammar_is_likely_lark

from rtlang_grammars.formats.structural_tag import read_structural_tag
from rtlang_grammars.schema.json_options import style_of, without_additional_properties
from rtlang_grammars.schema.reading.report import Report
from rtlang_grammars.spec.constraint import Constraint, ConstraintKind, Whitespace
from rtlang_grammars.spec.errors import EmptyMaskError, GrammarError
from rtlang_grammars.spec.vocabulary import Vocabulary

if TYPE_CHECKING:
    from rtlang_grammars.api.rtlang_backend import RtlangGrammar

logger = logging.getLogger(__name__)
_NAME = "rtlang"
_OPTIONS = ("disable_any_whitespace", "disable_additional_properties", "whitespace_pattern")


def constraint_of(
    request_type: StructuredOutputOptions, grammar_spec: str, config: StructuredOutputsConfig | None = None
) -> Constraint:
    """The constraint of a request: a schema, any JSON object, a regular expression, choices, a Lark grammar, GBNF or a structural tag.

    Args:
        config: the setting, of which the options for JSON are obeyed; None: the default.
    Raises:
        GrammarError: a structural tag is malformed; the location is a JSON pointer.
    """
    closes = config is not None and config.disable_additional_properties
    style = style_of(None, disable_any_whitespace=config is not None and config.disable_any_whitespace)
    match request_type:
        case StructuredOutputOptions.JSON:
            source = json.dumps(without_additional_properties(grammar_spec)) if closes else grammar_spec
            return Constraint(ConstraintKind.JSON_SCHEMA, source, style)
        case StructuredOutputOptions.JSON_OBJECT:
            return Constraint(ConstraintKind.JSON_SCHEMA, '{"type": "object"}', style)
        case StructuredOutputOptions.REGEX:
            return Constraint(ConstraintKind.REGEX, grammar_spec)
        case StructuredOutputOptions.CHOICE:
            return Constraint(ConstraintKind.CHOICE, grammar_spec)
        case StructuredOutputOptions.GRAMMAR:
            kind = ConstraintKind.LARK if grammar_is_likely_lark(grammar_spec) else ConstraintKind.GBNF
            return Constraint(kind, grammar_spec)
        case StructuredOutputOptions.STRUCTURAL_TAG:
            return read_structural_tag(_with_closed_schemas(grammar_spec) if closes else grammar_spec, style=style)
    raise GrammarError(
        f"{request_type.name.lower()}: expected json, json_object, regex, choice, grammar or structural_tag"
    )


def _with_closed_schemas(tag: str) -> Any:
    """A structural tag whose schemas allow no additional properties."""

    def closed(plain: Any) -> Any:
        if isinstance(plain, list):
            return [closed(each) for each in plain]
        if not isinstance(plain, dict):
            return plain
        keys = ("json_schema", "schema")
        return {
            key: without_additional_properties(each) if key in keys else closed(each) for key, each in plain.items()
        }

    try:
        return closed(json.loads(tag))
    except (ValueError, RecursionError) as error:
        raise GrammarError(f"structural_tag: expected JSON: {error}", "#") from None


def write_options(params: StructuredOutputsParams) -> None:
    """Write the options of a request for JSON into its constraint; requests without options stay as they are.

    Raises:
        GrammarError: `whitespace_pattern` is not supported, or an option stands beside a constraint that is no JSON.
    """
    given = [name for name in _OPTIONS if getattr(params, name) not in (None, False)]
    if not given:
        return
    if params.json is None and not params.json_object and params.structural_tag is None:
        raise GrammarError(f"{given[0]}: expected beside json, json_object or structural_tag only")
    style = style_of(params.whitespace_pattern, disable_any_whitespace=params.disable_any_whitespace)
    if params.structural_tag is not None:
        tag = json.loads(params.structural_tag)
    else:
        schema = {"type": "object"} if params.json is None else params.json
        schema = json.loads(schema) if isinstance(schema, str) else schema
        tag = {"type": "structural_tag", "format": {"type": "json_schema", "json_schema": schema}}
        params.json = params.json_object = None
    tag = _with_closed_schemas(json.dumps(tag)) if params.disable_additional_properties else tag
    if style.whitespace is Whitespace.COMPACT:
        tag = _compact(tag)
    params.structural_tag = json.dumps(tag)
    params.disable_any_whitespace = params.disable_additional_properties = False
    params.whitespace_pattern = None


def _compact(plain: Any) -> Any:
    """A structural tag whose schemas allow no blanks."""
    if isinstance(plain, list):
        return [_compact(each) for each in plain]
    if not isinstance(plain, dict):
        return plain
    if "structures" in plain:
        tags = [
            {
                "type": "tag",
                "begin": each["begin"],
                "content": {"type": "json_schema", "json_schema": each["schema"]},
                "end": each["end"],
            }
            for each in plain["structures"]
        ]
        inner = {"type": "triggered_tags", "triggers": plain["triggers"], "tags": tags}
        return {"type": "structural_tag", "format": _compact(inner)}
    found = {key: each if key == "json_schema" else _compact(each) for key, each in plain.items()}
    return {**found, "max_whitespace_cnt": 0} if plain.get("type") in ("json_schema", "qwen_xml_parameter") else found


def report_of(params: StructuredOutputsParams, config: StructuredOutputsConfig | None = None) -> Report | None:
    """The status of every keyword of a request's schemas, without an engine; None for requests without a schema.

    Args:
        config: as for `constraint_of`.
    Raises:
        GrammarError: the request would be refused; names the JSON pointer or the line and column.
    """
    from rtlang_grammars.lowering.compilation import check_constraint

    params = replace(params)
    write_options(params)
    request_type, source = get_structured_output_key(params)
    return check_constraint(constraint_of(request_type, source, config), allow_checked=False)


@dataclass
class RtlangStructuredOutputBackend(StructuredOutputBackend):  # type: ignore[misc]
    """Compiles the requests of one engine."""

    def __post_init__(self) -> None:
        self._vocabulary = Vocabulary.from_tokenizer(self.tokenizer, vocab_size=self.vocab_size)
        from rtlang_grammars.api.rtlang_backend import RtlangBackend

        self._backend = RtlangBackend.create(self._vocabulary)

    def compile_grammar(
        self,
        request_type: StructuredOutputOptions,
        grammar_spec: str,
        stop_token_ids: set[int] | None = None,
    ) -> RtlangStructuredOutputGrammar:
        """Compile one request.

        Args:
            stop_token_ids: tokens that stop the request, beside the end tokens of the tokenizer; allowed where the text is complete.
        Raises:
            GrammarError: the request cannot be enforced; names the JSON pointer or the line and column.
        """
        config = getattr(self.vllm_config, "structured_outputs_config", None)
        grammar = self._backend.compile(constraint_of(request_type, grammar_spec, config))
        stops = {token_id for token_id in stop_token_ids or () if 0 <= token_id < self.vocab_size}
        return RtlangStructuredOutputGrammar(grammar, frozenset(stops - self._vocabulary.eos_token_ids))

    def allocate_token_bitmask(self, max_num_seqs: int) -> torch.Tensor:
        """Rows of int32 words, [max_num_seqs, ceil(vocab_size / 32)], that allow every token."""
        return torch.full((max_num_seqs, self._vocabulary.num_mask_words), -1, dtype=torch.int32)

    def destroy(self) -> None:
        """Nothing is held outside this object."""


class RtlangStructuredOutputGrammar(StructuredOutputGrammar):  # type: ignore[misc]
    """Follows one request. Owned by it.

    Attributes:
        report: status of every keyword of the schema; None without a schema.
    """

    def __init__(self, grammar: RtlangGrammar, stop_ids: frozenset[int]) -> None:
        """`stop_ids`: tokens that stop the request, beside the end tokens of the vocabulary."""
        self.report = grammar.report
        self._grammar, self._matcher = grammar, grammar.matcher()
        self._stop_ids, self._has_stopped = stop_ids, False
        self._stops = np.array(sorted(stop_ids), dtype=np.int64)

    def accept_tokens(self, request_id: str, tokens: list[int]) -> bool:
        """Advance by some tokens; those after an end token are ignored. False, and nothing changes, if one is not allowed."""
        for num_accepted, token_id in enumerate(tokens):
            if self.is_terminated():
                break
            if not self._accept(token_id):
                self.rollback(num_accepted)
                return False
        return True

    def validate_tokens(self, tokens: list[int]) -> list[int]:
        """The longest beginning of some tokens that may follow. Changes nothing."""
        num_accepted = 0
        while num_accepted < len(tokens) and not self.is_terminated() and self._accept(tokens[num_accepted]):
            num_accepted += 1
        self.rollback(num_accepted)
        return tokens[:num_accepted]

    def _accept(self, token_id: int) -> bool:
        if token_id not in self._stop_ids:
            return self._matcher.accept_token(token_id)
        self._has_stopped = self._matcher.is_accepting
        return self._has_stopped

    def rollback(self, num_tokens: int) -> None:
        """Take back the last tokens; an end token counts as one."""
        if num_tokens and self._has_stopped:
            self._has_stopped, num_tokens = False, num_tokens - 1
        self._matcher.rollback(num_tokens)

    def fill_bitmask(self, bitmask: torch.Tensor, batch_index: int) -> None:
        """Write the allowed tokens into one row of a bitmask; end tokens and stop tokens exactly where the text is complete.

        Where no token is allowed, no token is accepted, and `vllm` ends the request with an error. (What is raised here ends its engine.)
        """
        row = bitmask[batch_index].numpy()
        try:
            self._matcher.fill_bitmask(row)
        except EmptyMaskError as error:
            row.fill(0)
            logger.error("a request under rtlang fails: %s", error)
        words, bits = row.view(np.uint32), np.uint32(1) << (self._stops & 31).astype(np.uint32)
        if self._matcher.is_accepting:
            np.bitwise_or.at(words, self._stops >> 5, bits)
        else:
            np.bitwise_and.at(words, self._stops >> 5, ~bits)

    def is_terminated(self) -> bool:
        """Whether an end token or a stop token was accepted, after which `vllm` masks nothing."""
        return self._has_stopped or (self._matcher.is_terminated and not self._matcher.is_accepting)

    def reset(self) -> None:
        """Go back to the start of the text."""
        self._matcher, self._has_stopped = self._grammar.matcher(), False


def register() -> None:
    """Make `rtlang` a choice of `structured_outputs_config.backend`, beside vllm's own. Harmless if called again."""
    if getattr(StructuredOutputManager.grammar_init, "knows_rtlang", False):
        return
    _add_to_setting()
    own_check = SamplingParams._validate_structured_outputs
    own_init = StructuredOutputManager.grammar_init

    @functools.wraps(own_check)
    def check(self: SamplingParams, model_config: Any, config: StructuredOutputsConfig | None, tokenizer: Any) -> None:
        if config is None or self.structured_outputs is None or config.backend != _NAME:
            own_check(self, model_config, config, tokenizer)
            return
        if tokenizer is None or model_config.is_diffusion:
            raise VLLMValidationError("structured outputs need a tokenizer and an autoregressive model")
        try:
            write_options(self.structured_outputs)
            report_of(self.structured_outputs, config)
        except GrammarError as error:
            raise VLLMValidationError(str(error), parameter="structured_outputs") from error
        self.structured_outputs._backend = _NAME

    @functools.wraps(own_init)
    def grammar_init(self: StructuredOutputManager, request: Any) -> None:
        is_ours = self.vllm_config.structured_outputs_config.backend == _NAME
        if self.backend is None and is_ours and request.structured_output_request is not None:
            vocab_size = self.vllm_config.model_config.get_vocab_size()
            self.backend = RtlangStructuredOutputBackend(self.vllm_config, self.tokenizer, vocab_size)
        own_init(self, request)

    grammar_init.knows_rtlang = True  # type: ignore[attr-defined]
    SamplingParams._validate_structured_outputs = check
    StructuredOutputManager.grammar_init = grammar_init


def _add_to_setting() -> None:
    """Add the name to the values that the setting may have."""
    field = StructuredOutputsConfig.__dataclass_fields__["backend"]
    names = Literal[(*get_args(field.type), _NAME)]  # type: ignore[valid-type]
    field.type = StructuredOutputsConfig.__annotations__["backend"] = names
    StructuredOutputsConfig.__pydantic_fields__["backend"].annotation = names
    _allow_options()
    rebuild_dataclass(StructuredOutputsConfig, force=True)
    rebuild_dataclass(VllmConfig, force=True)  # it checks the setting that it has


def _allow_options() -> None:
    """Let the setting have its options for JSON beside this backend; `vllm` allows them for two of its own only."""
    for decorator in StructuredOutputsConfig.__pydantic_decorators__.model_validators.values():
        decorator.func = _unless_ours(decorator.func)


def _unless_ours(own_check: Any) -> Any:
    @functools.wraps(own_check)
    def check(config: StructuredOutputsConfig) -> StructuredOutputsConfig:
        return config if config.backend == _NAME else own_check(config)

    return check
