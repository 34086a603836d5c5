"""The text service agrees with the tokenizer's library and with the prompts that the engine sees."""

from __future__ import annotations

import queue
from collections.abc import Iterator
from pathlib import Path

import pytest
import tokenizers

import rtlang as rt
from rtlang.bench.checkpoint import write_random_llama
from rtlang.contract.errors import ParameterError
from rtlang.contract.events import NodeFailed, NodeFinished
from rtlang.contract.params import SamplingParams
from rtlang.contract.request_graph import Generate, RequestGraph, RoleEnd, RoleStart, Text, TokenIds
from rtlang.contract.runs.known import KnownOutcome
from rtlang.contract.runs.run_options import RunOptions
from rtlang.runtime.texts.text_service import TokenizerTextService

TEXT = "Hello wörld, 你好 <|im_end|>"


@pytest.fixture(scope="module")
def runtime() -> Iterator[rt.Runtime]:
    with rt.Runtime("rtlang:tiny") as runtime:
        yield runtime


@pytest.fixture(scope="module")
def service(runtime: rt.Runtime) -> TokenizerTextService:
    return runtime.text_service


@pytest.fixture(scope="module")
def library(runtime: rt.Runtime) -> tokenizers.Tokenizer:
    return tokenizers.Tokenizer.from_file(str(runtime.model_directory / "tokenizer.json"))


def test_text_is_encoded_as_by_the_library_and_comes_back(
    service: TokenizerTextService, library: tokenizers.Tokenizer
) -> None:
    plain = "Hello wörld, 你好"
    ids = service.encode(plain, adds_start=False)
    assert ids == library.encode(plain, add_special_tokens=False).ids
    assert service.decode(ids) == plain
    assert b"".join(service.token_bytes(ids)).decode() == plain
    assert service.token_names(ids) == library.encode(plain, add_special_tokens=False).tokens


def test_names_of_special_tokens_are_text_unless_they_are_allowed(
    service: TokenizerTextService, library: tokenizers.Tokenizer
) -> None:
    special = library.id_to_token(service.info.special_token_ids[-1])
    plain, trusted = service.encode("a" + special), service.encode("a" + special, allow_special=True)
    assert set(service.info.special_token_ids).isdisjoint(plain[len(service.encode("")) :])
    assert trusted[-1] == service.info.special_token_ids[-1]
    assert service.decode(plain).endswith(special)
    assert not service.decode(trusted).endswith(special)
    assert service.decode(trusted, shows_special=True).endswith(special)


def test_ids_outside_of_the_vocabulary_are_refused(service: TokenizerTextService) -> None:
    with pytest.raises(ParameterError, match="tokens"):
        service.decode([service.info.vocab_size])
    with pytest.raises(ParameterError, match="tokens"):
        service.token_names([-1])


def test_parts_are_encoded_as_the_engine_counts_them(service: TokenizerTextService, runtime: rt.Runtime) -> None:
    parts = (RoleStart("user"), TEXT, RoleEnd(), RoleStart("assistant"))
    run = _run(runtime, parts)
    assert len(service.encode_parts(parts)) == run.usage.prompt_tokens


def test_a_prompt_of_token_ids_gives_the_same_text_as_its_words(
    service: TokenizerTextService, runtime: rt.Runtime
) -> None:
    by_text = _run(runtime, ("The sun is",))
    by_ids = _run(runtime, (TokenIds(tuple(service.encode_parts(("The sun is",)))),))
    assert by_ids.completions == by_text.completions
    assert by_ids.usage.prompt_tokens == by_text.usage.prompt_tokens


def test_a_prompt_with_an_unknown_token_fails_alone(service: TokenizerTextService, runtime: rt.Runtime) -> None:
    with pytest.raises(ParameterError, match=f"expected ids from 0 to {service.info.vocab_size - 1}"):
        _run(runtime, (TokenIds((1, service.info.vocab_size)),))


def test_tokens_of_a_model_with_wider_logits_than_its_tokenizer_can_be_given_back(
    tmp_path: Path, runtime: rt.Runtime
) -> None:
    small = {"hidden_size": 64, "intermediate_size": 96, "num_hidden_layers": 1}
    directory = write_random_llama(tmp_path / "model", runtime.model_directory, **small)
    with rt.Runtime(directory, dtype="float32") as wide:
        made = _run(wide, ("Hello",))
        token_ids = made.completions[0].token_ids
        assert max(token_ids) >= wide.text_service.info.vocab_size
        assert len(_run(wide, (TokenIds(token_ids),)).completions[0].token_ids) == 8
        again = _run(wide, ("Hello",), known={1: KnownOutcome(made)})
        assert again.completions[0].token_ids == token_ids
        assert isinstance(wide.text_service.decode(token_ids), str)
        with pytest.raises(ParameterError, match="expected ids from 0 to 31999"):
            _run(wide, (TokenIds((32_000,)),))


def _run(runtime: rt.Runtime, parts: tuple[object, ...], known: dict[int, KnownOutcome] | None = None) -> NodeFinished:
    events: queue.Queue[object] = queue.Queue()
    params = SamplingParams(max_tokens=8, min_tokens=8)
    nodes = (Text(0, None, parts), Generate(1, 0, "text", params))  # type: ignore[arg-type]
    runtime.submit(RequestGraph(nodes), events.put, RunOptions(seed=0, known=known))
    while True:
        event = events.get(timeout=60)
        if isinstance(event, NodeFinished):
            return event
        if isinstance(event, NodeFailed):
            raise event.error
