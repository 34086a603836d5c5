"""The checkpoint of `rtlang:tiny`: its files agree with its model card, and rtlang answers with it as `transformers` does."""

from __future__ import annotations

import json
import re
from importlib import resources
from pathlib import Path
from typing import Any

import pytest
import torch
from safetensors import safe_open

import rtlang as rt
from rtlang.serve.server import running_server

TINY = Path(str(resources.files("rtlang.tiny")))
CARD = (TINY / "MODEL_CARD.md").read_text(encoding="utf-8")
QUESTIONS = {
    "Extract customer, item, quantity, city as JSON.\nText: Ada ordered 12 chairs for 40 dollars each, to be shipped to Rome.": {
        "customer": "Ada",
        "item": "chairs",
        "quantity": 12,
        "city": "Rome",
    },
    "Extract name, age, job, city, hobby as JSON.\nText: Meet Lena, a baker living in Porto. At 41, Lena still loves chess.": {
        "name": "Lena",
        "age": 41,
        "job": "baker",
        "city": "Porto",
        "hobby": "chess",
    },
}


def test_the_folder_holds_the_checkpoint_and_its_card_only() -> None:
    files = {path.name for path in TINY.iterdir() if path.name != "__pycache__"}
    weights = {"model.safetensors", "config.json", "generation_config.json", "tokenizer.json", "tokenizer_config.json"}
    assert files == weights | {"MODEL_CARD.md", "__init__.py"}
    assert sum((TINY / name).stat().st_size for name in files) < 10_000_000


def test_the_weights_are_as_many_as_the_card_says() -> None:
    with safe_open(str(TINY / "model.safetensors"), framework="pt") as file:
        weights = {name: file.get_tensor(name) for name in file.keys()}  # noqa: SIM118
    count = sum(weight.numel() for name, weight in weights.items() if not name.endswith("_scale"))
    assert f"{count:,}" in CARD
    assert all(weight.isfinite().all() for weight in weights.values())


@pytest.mark.filterwarnings("ignore::DeprecationWarning")
@pytest.mark.filterwarnings("ignore:You passed `quantization_config`:UserWarning")
def test_rtlang_gives_the_greedy_answers_of_transformers() -> None:
    from transformers import AutoModelForCausalLM, AutoTokenizer, CompressedTensorsConfig

    quantization = CompressedTensorsConfig(dequantize=True)
    model: Any = AutoModelForCausalLM.from_pretrained(TINY, dtype=torch.float32, quantization_config=quantization)
    tokenizer: Any = AutoTokenizer.from_pretrained(TINY)

    @rt.program
    def answer(s: rt.State, question: str) -> str:
        s += rt.user(question)
        s += rt.assistant(rt.gen("answer", max_tokens=80, temperature=0.0))
        return str(s["answer"])

    with rt.Runtime(dtype="float32") as runtime:
        for question, expected in QUESTIONS.items():
            messages = [{"role": "user", "content": question}]
            text = tokenizer.apply_chat_template(messages, tokenize=False, add_generation_prompt=True)
            encoded = tokenizer(text, return_tensors="pt", add_special_tokens=False)["input_ids"]
            with torch.inference_mode():
                output = model.eval().generate(encoded, max_new_tokens=80, do_sample=False)
            generated = tokenizer.decode(output[0, encoded.shape[1] :], skip_special_tokens=True)
            assert answer.run(question=question, runtime=runtime).value == generated
            assert json.loads(generated) == expected


TAGS = rt.tagged({rt.token("<|system|>"): (int, "<|end|>")}, low=1, high=1, text_behind=False)


@rt.program
def name_tokens(s: rt.State) -> None:
    s += rt.user("Say a number.")
    with_tokens = rt.sequence("Number <|user|>", int, rt.token("<|end|>"), " done", rt.token(1))
    s += rt.assistant(rt.gen("forms", type=with_tokens, max_tokens=40, temperature=1.0, seed=3))
    lark = "start: <|user|> WORD <|assistant|> more?\nmore: <|end|> WORD\nWORD: /[a-z]+/"
    s += rt.assistant(rt.gen("lark", grammar=lark, max_tokens=12, temperature=1.0, seed=3))
    s += rt.assistant(rt.gen("tags", type=TAGS, max_tokens=30, temperature=1.0, seed=4))
    s += rt.assistant(
        rt.gen("gbnf", grammar="root ::= !<|user|>{2,5} <|user|>", max_tokens=30, temperature=1.0, seed=4)
    )
    s += rt.assistant(rt.gen("choice", choices=["yes<|user|>", "no<|system|>"], max_tokens=9))


def test_constraints_take_special_tokens_here_and_through_a_socket() -> None:
    END, SYSTEM, USER, ASSISTANT = 1, 2, 3, 4
    with rt.Runtime(dtype="float32") as runtime, running_server(runtime) as url, rt.connect(url) as there:
        for target in (runtime, there):
            result = name_tokens.run(runtime=target)
            assert re.fullmatch(r"Number <\|user\|>-?[0-9]+<\|end\|> done<\|end\|>", result.text("forms"))
            assert isinstance(result["forms"][1], int)
            ids = result.meta("forms").token_ids
            assert [each for each in ids if each <= ASSISTANT] == [USER, END, END]
            assert ids[-1] == END
            tree = result.tree("lark")
            assert [each.type for each in tree.children if not hasattr(each, "data")][:3] == [
                "<|user|>",
                "WORD",
                "<|assistant|>",
            ]
            assert str(result["lark"]).startswith("<|user|>")
            assert re.fullmatch(r"[^<]*<\|system\|>-?[0-9]+<\|end\|>", result.text("tags"), re.DOTALL)
            assert isinstance(result["tags"][-1].value, int)
            gbnf = result.meta("gbnf").token_ids
            assert gbnf[-1] == USER
            assert USER not in gbnf[:-1]
            assert 2 <= len(gbnf) - 1 <= 5
            assert set(gbnf[:-1]).isdisjoint({END})
            assert (
                result.meta("choice").token_ids[-1] == {"yes<|user|>": USER, "no<|system|>": SYSTEM}[result["choice"]]
            )


def test_min_tokens_bans_no_end_token_that_the_constraint_asks_for() -> None:
    @rt.program
    def long(s: rt.State) -> None:
        s += "x" + rt.gen("x", grammar='start: "a" <|end|> "b"*', max_tokens=9, min_tokens=6)

    with rt.Runtime() as runtime:
        assert str(long.run(runtime=runtime)["x"]).startswith("a<|end|>bbb")


def test_a_token_that_the_model_has_not_is_refused_by_name() -> None:
    @rt.program
    def unknown(s: rt.State) -> None:
        s += "x" + rt.gen("x", grammar='start: "a"\n  | <|ende|>', max_tokens=9)

    with (
        rt.Runtime() as runtime,
        pytest.raises(rt.ConstraintError, match=r"no token <\|ende\|>; did you mean <\|end\|>") as caught,
    ):
        unknown.run(runtime=runtime)
    assert caught.value.location == "2:5"
