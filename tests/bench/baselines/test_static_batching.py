"""The baseline must be what it says: the same greedy tokens as `generate` of transformers, one prompt at a time."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
import torch
import transformers

from rtlang.bench.baselines.static_batching import Member, StaticBatching
from rtlang.bench.workloads.workload import Workload, tool_call
from rtlang.contract.params import Constraint, SamplingParams
from rtlang.contract.request_graph import Generate, Ref, RequestGraph, Text
from rtlang_grammars import CompiledGrammar
from tests.support.engine.encoders import Bytes
from tests.support.models.tiny_models import BOS_TOKEN_ID, make_checkpoint


class OnlyDigits:
    """A matcher, and its own grammar: digits, at most `limit` of them."""

    size_bytes = 0

    def __init__(self, limit: int) -> None:
        self.limit, self.count = limit, 0

    def matcher(self) -> OnlyDigits:
        return OnlyDigits(self.limit)

    @property
    def is_terminated(self) -> bool:
        return self.count == self.limit

    def accept_token(self, token_id: int) -> bool:
        self.count += 1
        return chr(token_id).isdigit()

    def fill_bitmask(self, row: object) -> None:
        row[:] = 0  # type: ignore[index]
        for digit in b"0123456789":
            row[digit // 32] |= 1 << (digit % 32)  # type: ignore[index]


def no_constraint(constraint: Constraint) -> CompiledGrammar:
    raise AssertionError(constraint)


@pytest.fixture(scope="module")
def directory(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return make_checkpoint(tmp_path_factory.mktemp("model"))


@pytest.fixture(scope="module")
def baseline(directory: Path) -> StaticBatching:
    return StaticBatching(directory, dtype="float32", num_threads=torch.get_num_threads(), batch_size=3)


@pytest.fixture(scope="module")
def oracle(directory: Path) -> transformers.PreTrainedModel:
    return transformers.AutoModelForCausalLM.from_pretrained(directory).eval()


def greedy(oracle: transformers.PreTrainedModel, prompt: list[int], num_tokens: int) -> list[int]:
    output = oracle.generate(
        torch.tensor([prompt]),
        attention_mask=torch.ones(1, len(prompt), dtype=torch.long),
        do_sample=False,
        max_new_tokens=num_tokens,
        eos_token_id=None,
    )
    return list(output[0, len(prompt) :].tolist())


def test_a_ragged_batch_gives_the_tokens_of_generate(
    baseline: StaticBatching, oracle: transformers.PreTrainedModel
) -> None:
    prompts = [[BOS_TOKEN_ID, 72, 105], [BOS_TOKEN_ID, *range(65, 105)], [BOS_TOKEN_ID, *range(97, 110)]]
    members = [Member(prompt, num_tokens) for prompt, num_tokens in zip(prompts, [9, 4, 17], strict=True)]
    baseline.generate(members)
    for member in members:
        assert member.token_ids == greedy(oracle, list(member.prompt), member.num_tokens)


def test_graphs_run_in_batches_on_what_was_generated(
    baseline: StaticBatching, oracle: transformers.PreTrainedModel
) -> None:
    def gen(node_id: int, parent: int) -> Generate:
        return Generate(node_id, parent, None, SamplingParams(max_tokens=6, min_tokens=6, ignore_eos=True))

    fork = RequestGraph(
        (
            Text(0, None, ("root ",)),
            gen(1, 0),
            *(node for i in range(4) for node in (Text(2 + 2 * i, 1, (f"child {i} ",)), gen(3 + 2 * i, 2 + 2 * i))),
        )
    )
    ticks = iter(range(10_000))
    workload = Workload("w", "", (fork, fork))
    result = baseline.run(workload, Bytes(), no_constraint, clock=lambda: float(next(ticks)))
    root = [BOS_TOKEN_ID, *b"root "]
    first = greedy(oracle, root, 6)
    assert result.outputs[1, 1] == tuple(first)
    for i in range(4):
        expected = greedy(oracle, [*root, *first, *f"child {i} ".encode()], 6)
        assert result.outputs[0, 3 + 2 * i] == tuple(expected)
    assert result.num_output_tokens == 60
    assert result.prompt_tokens == 2 * (len(root) + 4 * (len(root) + 6 + 8))
    assert all(0 < first < last for first, last in zip(result.first_token_s, result.latencies_s, strict=True))


def test_a_constrained_member_keeps_to_its_grammar_and_its_neighbour_is_unchanged(
    directory: Path, baseline: StaticBatching, oracle: transformers.PreTrainedModel
) -> None:
    prompt = [BOS_TOKEN_ID, *b"give"]
    members = [Member(prompt, 8, OnlyDigits(3)), Member(prompt, 5)]  # type: ignore[arg-type]
    baseline.generate(members)
    assert len(members[0].token_ids) == 3
    assert all(chr(token_id).isdigit() for token_id in members[0].token_ids)
    assert members[1].token_ids == greedy(oracle, prompt, 5)


def test_tools_are_waited_for_and_their_answers_are_read(
    baseline: StaticBatching, oracle: transformers.PreTrainedModel
) -> None:
    params = SamplingParams(max_tokens=3, min_tokens=3, ignore_eos=True)
    nodes = (
        Text(0, None, ("ask ",)),
        Generate(1, 0, None, params),
        tool_call(2, 1, 0.001, "found"),
        Text(3, 1, ("it ", Ref(2))),
        Generate(4, 3, None, params),
    )
    result = baseline.run(Workload("w", "", (RequestGraph(nodes),)), Bytes(), no_constraint)
    first = greedy(oracle, [BOS_TOKEN_ID, *b"ask "], 3)
    assert result.outputs[0, 4] == tuple(greedy(oracle, [BOS_TOKEN_ID, *b"ask ", *first, *b"it found"], 3))
    assert [len(times) for times in result.output_times_s.values()] == [3, 3]
    assert result.output_times_s[0, 4][0] - result.output_times_s[0, 1][-1] >= 0.001


def test_a_graph_with_other_nodes_is_refused(baseline: StaticBatching) -> None:
    graph = RequestGraph((Text(0, None, ("a",)), Generate(1, 0, "x", SamplingParams()), Text(2, None, (Ref(1),))))
    with pytest.raises(ValueError, match="node 2"):
        baseline.run(Workload("w", "", (graph,)), Bytes(), no_constraint)


def test_padding_does_not_depend_on_a_pad_token(tmp_path: Path) -> None:
    directory = make_checkpoint(tmp_path / "model", num_hidden_layers=1)
    config = json.loads((directory / "config.json").read_text())
    config.pop("pad_token_id", None)
    (directory / "config.json").write_text(json.dumps(config))
    model = StaticBatching(directory, dtype="bfloat16", num_threads=torch.get_num_threads())
    members = [Member([BOS_TOKEN_ID, 1], 2), Member([BOS_TOKEN_ID, 1, 2, 3], 3)]
    model.generate(members)
    assert [len(member.token_ids) for member in members] == [2, 3]
