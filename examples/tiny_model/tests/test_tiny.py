"""The checkpoint that the package ships, read by `transformers` and `tokenizers`."""

import json
from typing import Any

import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from safetensors import safe_open
from tiny_model.corpus.documents import CHAT_TEMPLATE, END, SPECIAL_TOKENS
from tiny_model.training.network import Network, Shape, int8_state_dict_for_llama, llama_config
from tokenizers import Tokenizer
from training_runs import TINY
from transformers import AutoModelForCausalLM, AutoTokenizer, CompressedTensorsConfig

pytestmark = [
    pytest.mark.filterwarnings("ignore::DeprecationWarning"),
    pytest.mark.filterwarnings("ignore:You passed `quantization_config`:UserWarning"),
]

TOKENIZER = Tokenizer.from_file(str(TINY / "tokenizer.json"))

PROMPTS = {
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


@pytest.fixture(scope="module")
def model() -> Any:
    quantization = CompressedTensorsConfig(dequantize=True)
    return AutoModelForCausalLM.from_pretrained(TINY, dtype=torch.float32, quantization_config=quantization).eval()


def answer(model: Any, content: str) -> str:
    tokenizer = AutoTokenizer.from_pretrained(TINY)
    messages = [{"role": "user", "content": content}]
    text = tokenizer.apply_chat_template(messages, tokenize=False, add_generation_prompt=True)
    encoded = tokenizer(text, return_tensors="pt", add_special_tokens=False)
    with torch.inference_mode():
        output = model.generate(
            input_ids=encoded["input_ids"], attention_mask=encoded["attention_mask"], max_new_tokens=80, do_sample=False
        )
    assert output[0, -1] == tokenizer.eos_token_id
    decoded: str = tokenizer.decode(output[0, encoded["input_ids"].shape[1] : -1])
    return decoded


def test_the_weights_fit_the_package_and_the_shape() -> None:
    assert (TINY / "model.safetensors").stat().st_size <= 10_000_000
    expected = {
        name: (weight.shape, weight.dtype) for name, weight in int8_state_dict_for_llama(Network(Shape())).items()
    }
    with safe_open(str(TINY / "model.safetensors"), framework="pt") as file:
        weights = {name: file.get_tensor(name) for name in file.keys()}  # noqa: SIM118
    assert {name: (weight.shape, weight.dtype) for name, weight in weights.items()} == expected
    assert all(weight.isfinite().all() for weight in weights.values())


def test_the_configuration_is_the_one_that_training_writes() -> None:
    config = json.loads((TINY / "config.json").read_text())
    eos, pad = TOKENIZER.token_to_id(END), TOKENIZER.token_to_id(SPECIAL_TOKENS[0])
    assert config == llama_config(Shape(), eos_token_id=eos, pad_token_id=pad)
    assert json.loads((TINY / "generation_config.json").read_text())["eos_token_id"] == eos


def test_the_tokenizer_covers_the_embedding_and_names_the_chat_template() -> None:
    assert TOKENIZER.get_vocab_size() == Shape().vocab_size
    assert json.loads((TINY / "tokenizer_config.json").read_text())["chat_template"] == CHAT_TEMPLATE
    assert all(TOKENIZER.token_to_id(token) is not None for token in SPECIAL_TOKENS)


@settings(max_examples=200, deadline=None, derandomize=True)
@given(st.text())
def test_any_text_survives_the_tokenizer(text: str) -> None:
    encoded = TOKENIZER.encode(text, add_special_tokens=False)
    if not any(token in text for token in SPECIAL_TOKENS):
        assert TOKENIZER.decode(encoded.ids, skip_special_tokens=False) == text


def test_a_name_has_the_same_tokens_in_prose_and_in_json() -> None:
    name = TOKENIZER.encode("Brakoshou").ids
    for text in ("Ask Brakoshou, please.", '{"name": "Brakoshou", "age": 3}', "Brakoshou", "\nBrakoshou\n"):
        ids = TOKENIZER.encode(text).ids
        assert any(ids[start : start + len(name)] == name for start in range(len(ids)))


def test_every_digit_is_a_token_of_its_own() -> None:
    assert TOKENIZER.encode("4711").tokens == ["4", "7", "1", "1"]


@pytest.mark.parametrize("content", PROMPTS)
def test_the_model_extracts_a_record(model: Any, content: str) -> None:
    assert json.loads(answer(model, content)) == PROMPTS[content]


def test_the_model_describes_a_character(model: Any) -> None:
    sheet = json.loads(
        answer(model, "Describe Mira, a pilot from Oslo, as JSON with name, age, role, home, traits, motto.")
    )
    assert list(sheet) == ["name", "age", "role", "home", "traits", "motto"]
    assert (sheet["name"], sheet["role"], sheet["home"]) == ("Mira", "pilot", "Oslo")
    assert 18 <= sheet["age"] <= 80
    assert all(isinstance(trait, str) for trait in sheet["traits"])
    assert sheet["traits"]
