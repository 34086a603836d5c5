"""Published GGUF files, served as they are: logits, texts and chats against transformers with the weights multiplied out.

Skipped where the files have not been downloaded; `tests/support/models/real_weights.py` says how.
"""

from __future__ import annotations

import functools
from pathlib import Path
from typing import Any

import pytest
import torch
from torch.nn import functional

import rtlang as rt
from rtlang.contract.config import RuntimeConfig
from rtlang.model.gpu.accelerator import InterpretedAccelerator
from rtlang.model.layers.attention import PagedKV
from rtlang.model.loader import load_model, load_tokenizer, weight_bytes
from rtlang.model.loading.gguf.model_files import gguf_weights
from tests.support.models.model_steps import Pages, StepRunner, TrackedSequence, all_logits, next_row
from tests.support.models.real_weights import real_gguf, real_model

pytestmark = [pytest.mark.slow, pytest.mark.filterwarnings("ignore:::transformers", "ignore::DeprecationWarning")]

NAMES = ("smollm2", "gemma3")
TEXT = "The capital of France is Paris, and the river that runs through it is the Seine. def add(a, b):\n    return a + b\n"
NUM_NEW = 12
PAGE_SIZE = 16
# Layers round inputs to int8 by groups of 32, an error of .0056 each (definition A); a model adds those of all its layers.
_ERROR = 0.06
_SURE = 2.0  # logits: more than two of them move apart; one was seen to move by at most .94


@functools.cache
def loaded(name: str) -> Any:
    """Decoder and tokenizer of a file."""
    decoder, _, tokenizer = load_model(RuntimeConfig(model=str(real_gguf(name)), dtype="float32", max_model_len=256))
    return decoder, tokenizer


@functools.cache
def stock(name: str) -> Any:
    """The model and the tokenizer that transformers made of a file, with the exact weights of the file as float32.

    The directory has the weights that transformers read of the file, rounded to bfloat16: they say that the exact ones are right.
    """
    import transformers

    path = real_model(name)
    model = transformers.AutoModelForCausalLM.from_pretrained(path, dtype=torch.float32).eval().requires_grad_(False)
    weights, _ = gguf_weights(real_gguf(name))
    for key, values in model.named_parameters():
        exact = weights.tensor(key, torch.float32)
        assert torch.equal(exact.bfloat16(), values.bfloat16()), key
        values.copy_(exact)
    return model, transformers.AutoTokenizer.from_pretrained(path)


def ids_of(name: str) -> list[int]:
    """The tokens of `TEXT` as the start of a sequence."""
    _, tokenizer = loaded(name)
    return [*tokenizer.start_ids(), *tokenizer.encode(TEXT, is_start=True)]


def logits_of(decoder: Any, sequence: list[int]) -> torch.Tensor:
    """Logits [len(sequence), vocab_size] of a text in one step."""
    num_pages = -(-len(sequence) // PAGE_SIZE)
    runner = StepRunner(decoder, PagedKV(decoder.geometries, num_pages, PAGE_SIZE, decoder.dtype))
    row = next_row(TrackedSequence(sequence), len(sequence), Pages(num_pages), PAGE_SIZE)
    return all_logits(runner, [row])[0]


@pytest.mark.parametrize("name", NAMES)
def test_logits_are_those_of_the_weights_multiplied_out(name: str) -> None:
    decoder, _ = loaded(name)
    model, stock_tokenizer = stock(name)
    sequence = ids_of(name)
    assert sequence[-20:] == stock_tokenizer(TEXT)["input_ids"][-20:]
    with torch.inference_mode():
        expected = model(torch.tensor([sequence]), use_cache=False).logits[0]
    found = logits_of(decoder, sequence)
    errors = (found - expected).norm(dim=1) / expected.norm(dim=1)
    log, target = functional.log_softmax(found, -1), functional.log_softmax(expected, -1)
    divergence = functional.kl_div(log, target, log_target=True, reduction="none").sum(-1)
    print(
        f"{name}: error {float(errors.mean()):.4f}, at most {float(errors.max()):.4f}; KL {float(divergence.mean()):.5f}"
    )
    assert float(errors.mean()) < _ERROR
    assert float(divergence.mean()) < 0.02


@pytest.mark.parametrize("name", NAMES)
def test_greedy_text_is_that_of_the_weights_multiplied_out(name: str) -> None:
    """Token by token, wherever the two best logits lie further apart than rounded inputs can move them."""
    decoder, _ = loaded(name)
    model, _ = stock(name)
    sequence, num_sure = ids_of(name), 0
    for _ in range(NUM_NEW):
        with torch.inference_mode():
            expected = model(torch.tensor([sequence]), use_cache=False).logits[0, -1]
        found = logits_of(decoder, sequence)[-1]
        first, second = expected.topk(2).values.tolist()
        print(f"{name}: margin {first - second:.2f}, moved {float((found - expected).abs().max()):.2f}")
        if first - second > _SURE:
            num_sure += 1
            assert int(found.argmax()) == int(expected.argmax())
        sequence = [*sequence, int(expected.argmax())]
    assert num_sure >= NUM_NEW // 4


@pytest.mark.parametrize("name", NAMES)
def test_weights_take_the_memory_of_the_file(name: str) -> None:
    path = real_gguf(name)
    needed = weight_bytes(RuntimeConfig(model=str(path)))
    assert 0.8 < needed / path.stat().st_size < 1.05


@pytest.mark.long  # more than six minutes of one core in the interpreter
def test_a_device_computes_with_the_codes_of_the_file(monkeypatch: pytest.MonkeyPatch) -> None:
    """In float32, inputs are not rounded: logits are those of the weights multiplied out."""
    pytest.importorskip("triton")
    monkeypatch.setenv("RTLANG_KERNELS", "triton")
    model, tokenizer = stock("smollm2")
    sequence = tokenizer("The capital of France is")["input_ids"]
    config = RuntimeConfig(
        model=str(real_gguf("smollm2")), device="interpreter", dtype="float32", max_model_len=64, num_threads=1
    )
    with torch.inference_mode():
        decoder, _, _ = load_model(config, InterpretedAccelerator())
        expected = model(torch.tensor([sequence]), use_cache=False).logits[0]
        found = logits_of(decoder, sequence)
    errors = (found - expected).norm(dim=1) / expected.norm(dim=1)
    print(f"error {float(errors.max()):.1e}")
    assert float(errors.max()) < 1e-4
    assert torch.equal(found.argmax(1), expected.argmax(1))


def test_a_chat_goes_through_the_template_of_the_file() -> None:
    path, (model, tokenizer) = real_gguf("smollm2"), stock("smollm2")
    chat = [{"role": "user", "content": "What is the capital of France?"}]
    prompt = tokenizer.apply_chat_template(chat, add_generation_prompt=True, tokenize=True, return_dict=False)
    with torch.inference_mode():
        best = model(torch.tensor([prompt]), use_cache=False).logits[0, -1].topk(3).indices.tolist()

    @rt.program
    def ask(s: Any) -> None:
        s += rt.user(chat[0]["content"])
        s += rt.assistant(rt.gen("answer", max_tokens=4, temperature=0))

    with rt.Runtime(str(path), dtype="float32", max_model_len=512, num_threads=2) as runtime:
        result = ask.run(runtime=runtime)
    assert result.meta("answer").usage.prompt_tokens == len(prompt)
    assert result.meta("answer").token_ids[0] in best


def test_a_tokenizer_beside_the_file_wins(tmp_path: Path) -> None:
    (tmp_path / "model.gguf").symlink_to(real_gguf("smollm2"))
    own = load_tokenizer(tmp_path / "model.gguf")
    import rtlang.tiny

    tiny = Path(rtlang.tiny.__path__[0])
    (tmp_path / "tokenizer.json").write_bytes((tiny / "tokenizer.json").read_bytes())
    beside = load_tokenizer(tmp_path / "model.gguf")
    assert (own.vocab_size, beside.num_ids) == (49152, 49152)
    assert beside.vocab_size < own.vocab_size
    assert beside.eos_token_ids  # metadata name them
