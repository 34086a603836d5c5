"""The baseline: `transformers` with static batches, as a careful user would write them.

Prompts are left-padded to the longest of their batch, the KV cache is the library's DynamicCache, attention is its sdpa implementation,
logits are computed for the last position only, and a batch decodes until its longest member is done. Generations whose inputs are
available, those that wait longest first, form the next batch, each with its whole prompt. Constrained generations are masked at every step
with the same grammar library that the runtime uses, as a logits processor would do.
"""

from __future__ import annotations

import inspect
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from time import perf_counter, sleep
from typing import Any

import numpy as np
import torch
from torch import Tensor

from rtlang.bench.baselines.plain_graphs import measurement, running
from rtlang.bench.measure import Measurement
from rtlang.bench.workloads.text import Codec
from rtlang.bench.workloads.workload import Workload
from rtlang.contract.params import Constraint
from rtlang.contract.request_graph import Generate
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
    def generate(self, members: Sequence[Member], clock: Callable[[], float] = perf_counter) -> list[float]:
        """Fill `token_ids` of every member; returns the clock time of each step, which gave every member a token that was not done.

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
        times: list[float] = []
        begin, end = 0, longest
        drawn: list[Tensor] = []
        is_constrained = any(member.matcher is not None for member in members)
        for _ in range(num_steps):
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
            times.append(clock())
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
        return times

    def run(
        self,
        workload: Workload,
        codec: Codec,
        compile_constraint: Callable[[Constraint], CompiledGrammar],
        *,
        clock: Callable[[], float] = perf_counter,
    ) -> Measurement:
        """Run the graphs of a workload in batches.

        Raises:
            ValueError: a graph has other nodes than texts, single generations and tools.
        """
        torch.set_num_threads(self.num_threads)
        programs = running(workload, codec)
        constraints = {
            (index, node.node_id): node.constraint
            for index, graph in enumerate(workload.graphs)
            for node in graph.nodes
            if isinstance(node, Generate)
        }
        started = clock()
        while not programs.is_done:
            batch = programs.take_due(clock() - started, self.batch_size)
            if not batch:
                assert programs.next_s is not None
                sleep(max(0.0, programs.next_s - (clock() - started)))
                continue
            members = []
            for key in batch:
                constraint = constraints[key]
                matcher = None if constraint is None else compile_constraint(constraint).matcher()
                members.append(Member(programs.start(key), programs.node(key)["max_tokens"], matcher))
            times = self.generate(members, clock)
            now = clock() - started
            for key, member in zip(batch, members, strict=True):
                for time in times[: len(member.token_ids)]:
                    programs.note_output(key, time - started)
                programs.finish(key, member.token_ids, now)
        return measurement(workload, programs.results(clock() - started))

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
