"""Published weights, whose activations random ones do not have: they load in every dtype and give the texts of `transformers`.

Skipped where the weights have not been downloaded; `tests/support/models/real_weights.py` says how.
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
from rtlang.model.decoders.native_decoder import NativeDecoder
from rtlang.model.host_runner import HostRunner
from rtlang.model.layers.attention import PagedKV
from rtlang.model.loader import load_model
from tests.support.engine.engine_driver import EngineDriver
from tests.support.long_tests import sized
from tests.support.models.model_steps import Pages, StepRunner, TrackedSequence, all_logits, next_row
from tests.support.models.real_weights import real_model

pytestmark = [pytest.mark.slow, pytest.mark.filterwarnings("ignore:::transformers", "ignore::DeprecationWarning")]

PROMPTS = (
    "What is the capital of France, and which river runs through it?",
    "List three uses of baking soda.",
    "Write a short poem about the sea in winter.",
    "Explain to a child why the sky is blue.",
    "def fibonacci(n):",
    "Translate into German: The train leaves at noon.",
    "A farmer has 12 hens and buys 7 more. How many hens does he have?",
    "Summarise the plot of Romeo and Juliet in two sentences.",
)
NUM_ASKED = sized(len(PROMPTS), usual=5)
NUM_NEW = sized(24, usual=16)
PAGE_SIZE = 16
DECODERS = ("native", "transformers")


@functools.cache
def prompts(path: Path) -> tuple[list[int], ...]:
    """The tokens of the first prompts, in the model's template if it has one."""
    import transformers

    tokenizer = transformers.AutoTokenizer.from_pretrained(path)
    if tokenizer.chat_template is None:
        return tuple(tokenizer(prompt)["input_ids"] for prompt in PROMPTS[:NUM_ASKED])
    chats = ([{"role": "user", "content": prompt}] for prompt in PROMPTS[:NUM_ASKED])
    texts = (tokenizer.apply_chat_template(chat, add_generation_prompt=True, tokenize=False) for chat in chats)
    return tuple(tokenizer(text, add_special_tokens=False)["input_ids"] for text in texts)


@functools.cache
def answers(path: Path, decoder: str) -> tuple[list[int], ...]:
    """What the engine writes after each prompt in float32, all of them at a time."""
    config = RuntimeConfig(
        model=str(path),
        dtype="float32",
        decoder=decoder,
        page_size=PAGE_SIZE,
        num_pages=80,
        max_model_len=256,
        max_rows=8,
    )
    runner = HostRunner(config)
    runner.load()
    driver = EngineDriver(runner, config)
    requests = [driver.add(prompt, NUM_NEW, params={"ignore_eos": True}) for prompt in prompts(path)]
    driver.run()
    return tuple(request.output_token_ids for request in requests)


@functools.cache
def stock_logits(path: Path, dtype: torch.dtype) -> tuple[torch.Tensor, ...]:
    """Logits of transformers, with the attention that it chooses, for each prompt with its answer by the native decoder."""
    import transformers

    model = transformers.AutoModelForCausalLM.from_pretrained(path, dtype=dtype).eval()
    with torch.inference_mode():
        return tuple(
            model(torch.tensor([prompt + answer]), use_cache=False).logits[0].float()
            for prompt, answer in zip(prompts(path), answers(path, "native"), strict=True)
        )


def logits_of(decoder: Any, sequence: list[int], kv_dtype: torch.dtype | None = None) -> torch.Tensor:
    """Logits [len(sequence), vocab_size] of a text in one step."""
    num_pages = -(-len(sequence) // PAGE_SIZE)
    kv = PagedKV(decoder.geometries, num_pages, PAGE_SIZE, decoder.dtype, kv_dtype=kv_dtype)
    runner = StepRunner(decoder, kv)
    row = next_row(TrackedSequence(sequence), len(sequence), Pages(num_pages), PAGE_SIZE)
    return all_logits(runner, [row])[0]


def divergence(expected: torch.Tensor, found: torch.Tensor) -> torch.Tensor:
    """KL divergence of each token's distribution from the expected one, in nats."""
    target = functional.log_softmax(expected.float(), -1)
    return functional.kl_div(functional.log_softmax(found.float(), -1), target, log_target=True, reduction="none").sum(
        -1
    )


@pytest.mark.parametrize("decoder", DECODERS)
def test_greedy_texts_equal_those_of_transformers_in_float32(decoder: str) -> None:
    path = real_model("smollm2")
    found = answers(path, decoder)
    assert found == answers(path, "native")
    # the token that transformers prefers at each place, given the (equal) tokens before it
    preferred = tuple(logits[-NUM_NEW - 1 : -1].argmax(-1).tolist() for logits in stock_logits(path, torch.float32))
    assert found == preferred
    assert len({tuple(answer) for answer in found}) == NUM_ASKED


@pytest.mark.parametrize("decoder", ["native", pytest.param("transformers", marks=pytest.mark.long)])
def test_bfloat16_is_as_near_to_float32_as_transformers_is(decoder: str) -> None:
    path = real_model("smollm2")
    made = load_model(RuntimeConfig(model=str(path), dtype="bfloat16", decoder=decoder, max_model_len=256))[0]
    assert isinstance(made, NativeDecoder) == (decoder == "native")
    expected = stock_logits(path, torch.float32)
    texts = (prompt + answer for prompt, answer in zip(prompts(path), answers(path, "native"), strict=True))
    ours = torch.cat([divergence(each, logits_of(made, text)) for each, text in zip(expected, texts, strict=True)])
    theirs = torch.cat(list(map(divergence, expected, stock_logits(path, torch.bfloat16))))
    print(f"{decoder}: {float(ours.mean()):.5f}, transformers {float(theirs.mean()):.5f} over {len(ours)} tokens")
    assert 1e-5 < float(theirs.mean()) < 0.02
    assert float(ours.mean()) <= 1.1 * float(theirs.mean())


def test_int8_pages_cost_about_as_much_as_bfloat16() -> None:
    """The divergence of float32 with pages of int8, whose own rounding is all of it."""
    path = real_model("smollm2")
    made = load_model(RuntimeConfig(model=str(path), dtype="float32", decoder="native", max_model_len=256))[0]
    texts = [prompt + answer for prompt, answer in zip(prompts(path), answers(path, "native"), strict=True)]
    pairs = zip(stock_logits(path, torch.float32), texts, strict=True)
    found = torch.cat([divergence(each, logits_of(made, text, torch.int8)) for each, text in pairs])
    print(f"int8 pages: {float(found.mean()):.5f} over {len(found)} tokens")
    assert 1e-6 < float(found.mean()) < 0.003


@pytest.mark.parametrize("dtype", ["bfloat16", "float32"])
def test_gemma_passes_the_self_check(dtype: str) -> None:
    import transformers

    path, text = real_model("gemma3"), list(range(1000, 1040))
    made = load_model(RuntimeConfig(model=str(path), dtype=dtype, max_model_len=256))[0]
    stock = transformers.AutoModelForCausalLM.from_pretrained(path, dtype=torch.float32, attn_implementation="eager")
    with torch.inference_mode():
        expected = stock.eval()(torch.tensor([text]), use_cache=False).logits[0]
    mean = float(divergence(expected, logits_of(made, text)).mean())
    assert mean < (1e-6 if dtype == "float32" else 0.1)


def test_a_conversation_over_several_runs_is_never_computed_again() -> None:
    """Sampled texts too, whose tokens are often not those of the tokenizer: a list of messages loses them, a result does not."""

    @rt.program
    def turn(s: Any, history: Any, question: str) -> None:
        s += rt.messages(history)
        s += rt.user(question)
        s += rt.assistant(rt.gen("answer", max_tokens=24, temperature=1.5, seed=len(question)))

    missed: list[int] = []
    with rt.Runtime(str(real_model("smollm2")), page_size=1, max_model_len=1024, num_threads=2) as runtime:
        result = turn.run([{"role": "system", "content": "You are brief."}], PROMPTS[0], runtime=runtime)
        for question in PROMPTS[1:]:
            meta, before = result.meta("answer"), result
            num_known = (
                meta.usage.prompt_tokens + len(meta.token_ids) - 1
            )  # the last token was sampled, but not computed
            as_messages = turn.run(before.messages, question, runtime=runtime)
            missed.append(num_known - as_messages.meta("answer").usage.cached_tokens)
            result = turn.run(before, question, runtime=runtime)
            assert result.meta("answer").usage.cached_tokens >= num_known
    print("tokens computed again for lists of messages:", missed)
    assert max(missed) > 0  # otherwise these texts would not show the difference


WORDS = ("piano", "harbor", "garden", "winter", "bread")


def test_refused_values_are_repaired_and_an_edit_computes_only_what_follows(tmp_path: Path) -> None:
    def describe(s: Any, word: str) -> None:
        def has_word(text: str) -> str | None:
            return (
                None if word in text.lower() else f"Your answer does not contain the word {word}. Write about a {word}."
            )

        s += rt.user("Write a sentence about something that people like.")
        s += rt.assistant(rt.gen("text", max_tokens=14, temperature=0.8, check=has_word, repair=4))

    def edited(s: Any, word: str) -> None:
        describe(s, word)
        s += rt.user("Why?")
        s += rt.assistant(rt.gen("reason", max_tokens=6))

    edited.__name__ = "describe"  # the program that was edited
    rows, num_recorded = [{"word": word} for word in WORDS], []
    with rt.Runtime(str(real_model("smollm2")), max_model_len=1024, num_threads=2) as runtime:
        for body in (describe, edited):
            with rt.record(tmp_path / "run", runtime) as recorder:
                results = rt.program(body).run_batch(rows, seed=3)
            num_recorded.append(recorder.num_recorded)
    attempts = [[each.message for each in result.meta("text").attempts] for result in results]
    print([len(each) for each in attempts], [result.error for result in results])
    assert sum(len(tried) > 1 and tried[-1] is None for tried in attempts) >= 2, "otherwise this shows nothing"
    for result, tried, word in zip(results, attempts, WORDS, strict=True):
        assert (result.error is None) == (tried[-1] is None)
        assert result.error is not None or word in result["text"].lower()
    assert num_recorded[1] == sum(result.error is None for result in results), "the reasons"
