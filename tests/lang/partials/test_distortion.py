"""Where removed probability belongs: to tokens, and in JSON to the innermost place in which a token begins."""

from __future__ import annotations

import math
from pathlib import Path

import pytest
import torch
import transformers

import rtlang as rt
from rtlang.contract.events import Completion
from rtlang.contract.params import Constraint, ConstraintKind, FinishReason, SamplingParams
from rtlang.contract.request_graph import Generate
from rtlang.lang.partials.distortion import distortion_of
from tests.support.models.tiny_models import make_checkpoint

JSON = Generate(1, None, "x", SamplingParams(), Constraint(ConstraintKind.JSON_SCHEMA, "true"))


def completion(pieces: list[tuple[str, float]]) -> Completion:
    text, steps = "", []
    for piece, nats in pieces:
        text += piece
        steps.append((nats, len(text)))
    return Completion(text, (), FinishReason.STOP, None, None, tuple(steps))


def test_each_token_counts_for_the_innermost_place_it_begins_in() -> None:
    pieces = [("{", 1.0), ('"a"', 2.0), (": ", 4.0), ("1", 8.0), ("2, ", 16.0), ('"b": [', 32.0), ('"x', 64.0)]
    pieces += [('y", ', 128.0), ("true", 256.0), ("]}", 512.0), ("", 1024.0)]
    found = distortion_of(JSON, completion(pieces))
    assert found is not None
    assert found.total == 2047.0
    assert found.by_field == {
        (): 1.0 + 2.0 + 4.0 + 32.0 + 1024.0,
        ("a",): 8.0 + 16.0,
        ("b", 0): 64.0 + 128.0,
        ("b", 1): 256.0,
        ("b",): 512.0,
    }


def test_other_texts_have_no_fields_and_unasked_ones_no_distortion() -> None:
    node = Generate(1, None, "x", SamplingParams(), Constraint(ConstraintKind.REGEX, "a+"))
    found = distortion_of(node, completion([("a", 0.5), ("", 0.25)]))
    assert found == rt.Distortion(0.75, (0.5, 0.25), None)
    assert distortion_of(node, Completion("a", (), FinishReason.STOP)) is None


CHOICES = ["yes", "yes, but", "no", "never"]


@rt.program
def choose(s: rt.State, temperature: float) -> None:
    s += "Well: " + rt.gen("x", choices=CHOICES, distortion=True, temperature=temperature, seed=3)
    s += rt.gen("plain", 2)


@pytest.mark.parametrize("temperature", [0.0, 1.5])
def test_a_generation_against_the_softmax_of_transformers(tmp_path: Path, temperature: float) -> None:
    folder = make_checkpoint(tmp_path / "model")
    with rt.Runtime(str(folder), dtype="float32") as runtime:
        found = choose.run(temperature, runtime=runtime)
        vocabulary = [runtime.tokenizer.token_bytes(each) for each in range(runtime.tokenizer.vocab_size)]
        ends = runtime.tokenizer.eos_token_ids
        before = [*runtime.tokenizer.start_ids(), *runtime.tokenizer.encode("Well: ", is_start=True)]
    model = transformers.AutoModelForCausalLM.from_pretrained(folder, dtype=torch.float32)
    meta, text, expected = found.meta("x"), b"", []
    while True:
        with torch.inference_mode():
            logits = model(torch.tensor([before])).logits[0, -1].double()
        allowed = [
            index in ends
            if not vocabulary[index]
            else any(choice.encode().startswith(text + vocabulary[index]) for choice in CHOICES)
            for index in range(len(vocabulary))
        ]
        for end in ends:
            allowed[end] = text.decode() in CHOICES
        mass = torch.softmax(logits, 0)[: len(allowed)][torch.tensor(allowed)].sum()
        expected.append(-math.log(mass))
        if len(expected) > len(meta.token_ids) or len(expected) == len(meta.distortion.per_token):
            break
        text += vocabulary[meta.token_ids[len(expected) - 1]]
        before.append(meta.token_ids[len(expected) - 1])
    assert len(meta.distortion.per_token) >= len(meta.token_ids)
    assert meta.distortion.per_token == pytest.approx(expected, abs=2e-3)
    assert meta.distortion.total == pytest.approx(sum(expected), abs=5e-3)
    assert meta.distortion.total > 1.0
    assert found.meta("plain").distortion is None
