"""One text from weights of few bits: the same tokens and bit-equal log-probabilities in every company, on both decoders and served.

The reference is the request alone, with nothing cached, in a whole prompt, without drafts, on one thread.
"""

from __future__ import annotations

import random
from pathlib import Path
from typing import Any

import pytest

import rtlang as rt
from rtlang.contract.params import SamplingParams
from rtlang.serve.server import running_server
from tests.support.models.gguf_models import CASES, make_model, write_model
from tests.support.models.real_weights import real_gguf
from tests.system.test_one_text import Answer

SETTINGS: dict[str, Any] = {
    "num_threads": 1,
    "page_size": 4,
    "num_pages": 1024,
    "max_model_len": 512,
    "speculation": "off",
}
COMPANIES: dict[str, dict[str, Any]] = {
    "eight at once on two threads": {"num_threads": 2},
    "in chunks with drafts": {"max_step_tokens": 13, "max_shared_step_tokens": 13, "speculation": "on"},
    "preempted": {"num_pages": 30, "max_running": 8},
}
Asked = tuple[list[int], SamplingParams]


def requests(vocab_size: int, max_tokens: int = 24) -> list[Asked]:
    """Eight prompts, greedy and sampled, which repeat themselves so that drafts are taken; half continue a common beginning."""
    rng = random.Random(3)
    common, made = [rng.randrange(3, vocab_size) for _ in range(40)], []
    for index in range(8):
        own = [rng.randrange(3, vocab_size) for _ in range(rng.randrange(4, 20))] * 2
        params = SamplingParams(
            max_tokens=max_tokens, ignore_eos=True, logprobs=0, temperature=(0.0, 0.8)[index // 2 % 2]
        )
        made.append((common + own if index % 2 else own, params))
    return made


def answers(opened: Any, asked: list[Asked]) -> list[Answer]:
    """Of requests that run together."""
    running = [opened.generate(token_ids=ids, params=params, seed=7) for ids, params in asked]
    found = [each.result().completions[0] for each in running]
    return [(tuple(each.token_ids), tuple(item.logprob for item in each.logprobs or ())) for each in found]


def check_one_text(asked: list[Asked], **settings: Any) -> None:
    def runtime(**others: Any) -> rt.Runtime:
        return rt.Runtime(config=rt.RuntimeConfig(**SETTINGS | settings | others))

    with runtime(prefix_sharing=False) as opened:
        alone = [answer for each in asked for answer in answers(opened, [each])]
    assert len({ids for ids, _ in alone}) == len(asked)
    for name, company in COMPANIES.items():
        with runtime(**company) as opened:
            assert answers(opened, asked) == alone, name
            assert answers(opened, asked[::-1])[::-1] == alone, f"{name}, with cached prefixes"
            if name == "preempted":
                assert opened.stats()["num_preemptions"] > 0
            if name == "in chunks with drafts":
                assert opened.stats()["num_drafted_tokens"] > 0
                with running_server(opened) as url, rt.connect(url) as there:
                    assert answers(there, asked) == alone, "served"


@pytest.mark.parametrize(
    ("case", "kind", "dtype"),
    [("llama", "Q4_1", "bfloat16"), pytest.param("mixtral", "Q4_0", "float32", marks=pytest.mark.long)],
)
def test_a_request_has_one_text(case: str, kind: str, dtype: str, tmp_path: Path) -> None:
    """Of the native decoder, and of the transformers decoder with experts."""
    path = write_model(tmp_path / "model.gguf", CASES[case], make_model(CASES[case]), kind)
    check_one_text(requests(300), model=str(path), dtype=dtype, deterministic=case == "mixtral")


@pytest.mark.slow
@pytest.mark.long  # the same checks as above, on files of 100 MB and more
@pytest.mark.parametrize("name", ["smollm2", "gemma3"])
def test_a_request_to_a_published_file_has_one_text(name: str) -> None:
    check_one_text(requests(40_000), model=str(real_gguf(name)), deterministic=name == "gemma3")
