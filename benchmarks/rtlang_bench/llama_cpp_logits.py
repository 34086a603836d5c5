"""Compares what rtlang and llama.cpp predict from the same GGUF file after each token of a text.

python -m rtlang_bench.llama_cpp_logits MODEL.gguf --llama-cpp FOLDER --text FILE

Both round the inputs of a layer to 8 bits in groups, so neither computes what the file says exactly, and their errors are independent:
ours come from the dtype of the model in groups of 32, with float32 scales; llama.cpp's from float32, with float16 scales, for K types in
groups of 256. Its KV cache is in float16, ours in the dtype of the model. Over 512 tokens of docs/getting-started.md with SmolLM2 135M in
Q4_1, from float32 products with the file's weights: llama.cpp 0.0035 nats, ours 0.0036 in float32 and 0.0048 in bfloat16; from each other
0.0044 and 0.0057.
"""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import Annotated

import numpy as np
import typer
from numpy.typing import NDArray

from rtlang.bench.baselines.llama_cpp_library import MAX_STEP_TOKENS, LlamaContext, LlamaCpp, LlamaCppError
from rtlang.console.one_line_errors import one_line_errors
from rtlang.console.source import CommandError
from rtlang.model.loader import load_tokenizer
from rtlang.model.quantization.comparison import Difference, compared_logits, text_logits
from rtlang_bench.command import command, progress, show

MOST_DIVERGENCE, MOST_PERPLEXITY = 1e-2, 2e-3
"""Nats, and the relative difference of the perplexities. About twice what is measured: a wrong tensor or rotation gives whole nats."""


@dataclass(frozen=True, slots=True)
class Agreement:
    """How both predict a text."""

    difference: Difference

    @property
    def is_met(self) -> bool:
        """Whether both differences are small."""
        return self.difference.divergence <= MOST_DIVERGENCE and abs(self.perplexity_ratio - 1) <= MOST_PERPLEXITY

    @property
    def perplexity_ratio(self) -> float:
        """Ours over llama.cpp's."""
        return self.difference.perplexity / self.difference.other_perplexity

    def __str__(self) -> str:
        found = self.difference
        return (
            f"{found.num_tokens} tokens: divergence {found.divergence:.2e} nats (at most {MOST_DIVERGENCE:g}); "
            f"perplexity {found.perplexity:.3f}, llama.cpp's {found.other_perplexity:.3f}, {self.perplexity_ratio - 1:+.3%} "
            f"(at most {MOST_PERPLEXITY:.1%}); same first token {found.agreement:.2%}"
        )


def llama_cpp_logits(context: LlamaContext, token_ids: list[int]) -> NDArray[np.float32]:
    """Logits of llama.cpp after each token of a text: float32 [num_tokens, vocab_size].

    Raises:
        LlamaCppError: it fails.
    """
    context.clear()
    rows: list[NDArray[np.float32]] = []
    for start in range(0, len(token_ids), MAX_STEP_TOKENS):
        ids = token_ids[start : start + MAX_STEP_TOKENS]
        if not context.step(ids, list(range(start, start + len(ids))), [0] * len(ids), [True] * len(ids)):
            raise LlamaCppError(f"the cache has no room for {len(token_ids)} tokens")
        rows += [context.logits(index).copy() for index in range(len(ids))]
    return np.stack(rows)


def compare_logits(
    model: Annotated[Path, typer.Argument(help="A GGUF file.")],
    llama_cpp: Annotated[Path, typer.Option(help="The folder of llama.cpp's shared libraries.", metavar="FOLDER")],
    text: Annotated[Path, typer.Option(help="A text file.")],
    tokens: Annotated[int, typer.Option(min=2, help="Use at most so many tokens of it.")] = 512,
    dtype: Annotated[str, typer.Option(help="The dtype of our side.")] = "auto",
    threads: Annotated[int, typer.Option(min=1, help="Threads of llama.cpp.")] = 2,
) -> None:
    """Compare the predictions of rtlang and llama.cpp over a text."""
    with one_line_errors(), progress() as tell:
        content = text.read_text(encoding="utf-8")
        token_ids = load_tokenizer(model).encode(content, is_start=True)[:tokens]
        tell("llama.cpp")
        try:
            context = LlamaContext(
                LlamaCpp(llama_cpp),
                model,
                num_tokens=len(token_ids),
                num_sequences=1,
                num_threads=threads,
                all_logits=True,
            )
            theirs = llama_cpp_logits(context, token_ids)
            context.close()
        except LlamaCppError as error:
            raise CommandError(str(error)) from error
        tell("rtlang")
        ours = text_logits(str(model), token_ids, dtype=dtype)
        show(Agreement(compared_logits(ours, theirs, token_ids)))


app = command(compare_logits)

if __name__ == "__main__":
    app()
