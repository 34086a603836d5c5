"""The baseline: `transformers` with static batches, as a careful user would write them.

Prompts are left-padded to the longest of their batch, the KV cache is the library's DynamicCache, attention is its sdpa implementation,
logits are computed for the last position only, and a batch decodes until its longest member is done. A graph is run level by level: all
generations whose inputs are available form the next batches, each with its whole prompt. Constrained generations are masked at every
step with the same grammar library that the runtime uses, as a logits processor would do.
"""

from __future__ import annotations

import inspect
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from time import perf_counter
from typing import Any

import numpy as np
import torch
from torch import Tensor

from rtlang.bench.baselines.graph_progress import GraphProgress
from rtlang.bench.measure import Measurement, OutputKey
from rtlang.bench.workloads import Encoder
from rtlang.contract.graph import RequestGraph, parent_of
from rtlang.contract.params import Constraint
from rtlang_grammars import CompiledGrammar, GrammarMatcher

DTYPES = {"float32": torch.float32, "bfloat16": torch.bfloat16}


@dataclass(slots=True)
class Member:
    """One generation of a batch. `matcher` enforces its constraint; without one, exactly `num_tokens` tokens are generated.

    With a matcher, generation ends at an end token (which is not kept), when nothing can follow, or after `num_tokens` tokens.
    """

    prompt: Sequence[int]
    num_tokens: int
    matcher: GrammarMatcher | None = None
    token_ids: list[int] = field(default_factory=list)
    is_done: bool = False


class StaticBatching:
    """A causal model of `transformers` that generates greedily in static batches.

    Args:
        directory: the checkpoint.
        dtype: a key of DTYPES.
        num_threads: CPU threads, set for the calling thread whenever it runs a workload.
        batch_size: maximum number of members of a batch.
        eos_token_ids: tokens that end a constrained generation.
    """

    def __init__(
        self,
        directory: Path,
        *,
        dtype: str,
        num_threads: int,
        batch_size: int = 8,
        eos_token_ids: frozenset[int] = frozenset(),
    ) -> None:
        import transformers

        self.batch_size, self.num_threads = batch_size, num_threads
        self._model: Any = transformers.AutoModelForCausalLM.from_pretrained(
            directory, dtype=DTYPES[dtype], attn_implementation="sdpa"
        ).eval()
        self._new_cache: Callable[[], Any] = lambda: transformers.DynamicCache(config=self._model.config)
        parameters = inspect.signature(self._model.forward).parameters
        self._cache_argument = (
            "cache" if "cache" in parameters else "past_key_values"
        )  # its name before transformers 5.24
        self._eos_token_ids = eos_token_ids

    @torch.inference_mode()
    def generate(self, members: Sequence[Member], clock: Callable[[], float] = perf_counter) -> float:
        """Fill `token_ids` of every member; returns the clock time at which the first tokens were available.

        The batch decodes until every member is done; tokens decoded for members that are already done are dropped.
        """
        longest = max(len(member.prompt) for member in members)
        num_steps = max(member.num_tokens for member in members)
        input_ids = torch.zeros(len(members), longest, dtype=torch.long)  # [B, L]
        mask = torch.ones(len(members), longest + num_steps, dtype=torch.long)  # [B, L + steps]
        for row, member in enumerate(members):
            padding = longest - len(member.prompt)
            input_ids[row, padding:] = torch.tensor(member.prompt)
            mask[row, :padding] = 0
        positions = (mask.cumsum(-1) - 1).clamp_(min=0)  # [B, L + steps]
        cache = self._new_cache()
        first_token_at = 0.0
        begin, end = 0, longest
        drawn: list[Tensor] = []
        is_constrained = any(member.matcher is not None for member in members)
        for step in range(num_steps):
            logits = self._model(
                input_ids=input_ids,
                attention_mask=mask[:, :end],
                position_ids=positions[:, begin:end],
                **{self._cache_argument: cache},
                use_cache=True,
                logits_to_keep=1,
            ).logits[:, -1]  # [B, V]
            if is_constrained:
                _forbid(logits, members)
            token_ids = logits.argmax(-1)  # [B]
            if step == 0:
                first_token_at = clock()
            if is_constrained:
                for member, token_id in zip(members, token_ids.tolist(), strict=True):
                    self._accept(member, token_id)
                if all(member.is_done for member in members):
                    break
            else:
                drawn.append(token_ids)
            input_ids = token_ids[:, None]
            begin, end = end, end + 1
        if drawn:
            for member, row in zip(members, torch.stack(drawn, dim=1).tolist(), strict=True):
                member.token_ids = row[: member.num_tokens]
        return first_token_at

    def run(
        self,
        graphs: Sequence[RequestGraph],
        encoder: Encoder,
        compile_constraint: Callable[[Constraint], CompiledGrammar],
        *,
        clock: Callable[[], float] = perf_counter,
    ) -> Measurement:
        """Run graphs of text and generate nodes level by level in batches; all are submitted at the start.

        Raises:
            ValueError: a graph has a select node, a reference, or a node with several completions.
        """
        torch.set_num_threads(self.num_threads)
        started = clock()
        progress = [GraphProgress(graph, encoder) for graph in graphs]
        latencies = [0.0] * len(graphs)
        first_tokens: dict[int, float] = {}
        outputs: dict[OutputKey, tuple[int, ...]] = {}
        num_prompt_tokens = 0
        while level := [(index, node) for index, graph in enumerate(progress) for node in graph.ready()]:
            for offset in range(0, len(level), self.batch_size):
                batch = level[offset : offset + self.batch_size]
                members = []
                for index, node in batch:
                    matcher = None if node.constraint is None else compile_constraint(node.constraint).matcher()
                    prompt = progress[index].sequence(parent_of(node))
                    members.append(Member(prompt, node.params.max_tokens, matcher))
                first_token_at = self.generate(members, clock)
                for (index, node), member in zip(batch, members, strict=True):
                    progress[index].finish(node, member.token_ids)
                    outputs[index, node.node_id] = tuple(member.token_ids)
                    first_tokens.setdefault(index, first_token_at - started)
                    latencies[index] = clock() - started
                    num_prompt_tokens += len(member.prompt)
        return Measurement(
            total_s=clock() - started,
            latencies_s=tuple(latencies),
            first_token_s=tuple(first_tokens[index] for index in range(len(graphs))),
            outputs=outputs,
            prompt_tokens=num_prompt_tokens,
        )

    def _accept(self, member: Member, token_id: int) -> None:
        if member.is_done:
            return
        if member.matcher is not None:
            if token_id in self._eos_token_ids:
                member.is_done = True
                return
            member.matcher.accept_token(token_id)
        member.token_ids.append(token_id)
        is_complete = member.matcher is not None and member.matcher.is_terminated
        member.is_done = is_complete or len(member.token_ids) == member.num_tokens


def _forbid(logits: Tensor, members: Sequence[Member]) -> None:
    """Set the logits [B, V] of tokens that a member's constraint does not allow to -inf, in place."""
    vocab_size = logits.shape[1]
    words = np.zeros(-(-vocab_size // 32), dtype=np.int32)
    for row, member in enumerate(members):
        if member.matcher is not None and not member.is_done:
            member.matcher.fill_bitmask(words)
            allowed = np.unpackbits(words.view(np.uint8), bitorder="little")[:vocab_size]
            logits[row].masked_fill_(torch.from_numpy(allowed == 0), float("-inf"))
