"""The counts of states: what no engine can avoid, against sets of prefixes; and small hybrids against the promised bounds."""

from __future__ import annotations

import json
import random
from array import array
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pytest

from rtlang.bench import states
from rtlang.bench.baselines.plain_graphs import running
from rtlang.bench.checkpoint import SHAPES
from rtlang.bench.machine import Environment
from rtlang.bench.measure import Measurement
from rtlang.bench.states import DENSE, HYBRID, Counts, StatesReport, least_computed, most_on_path, run_states
from rtlang.bench.workloads.text import Codec
from rtlang.bench.workloads.workload import Workload
from rtlang.cache.outline import OutlineNode
from rtlang.contract.config import EMBEDDED_MODEL, RuntimeConfig
from rtlang.model.loader import load_tokenizer, model_directory


def least_by_sets(sequences: Sequence[tuple[Sequence[int], Sequence[int]]]) -> int:
    """The same with the set of all prefixes."""
    known: set[tuple[int, ...]] = set()
    total = 0
    for prompt, output in sequences:
        prefixes = [tuple(prompt[:end]) for end in range(1, len(prompt) + 1)]
        total += max(1, sum(each not in known for each in prefixes))
        whole = (*prompt, *output)
        known.update(whole[:end] for end in range(1, len(whole)))
    return total


def test_the_least_count_is_that_of_all_prefixes() -> None:
    rng = random.Random(4)
    num_shared = 0
    for _ in range(300):
        texts: list[list[int]] = [[]]
        sequences = []
        for _ in range(rng.randint(1, 8)):
            start = rng.choice(texts)
            prompt = start[: rng.randint(0, len(start))] + rng.choices(range(3), k=rng.randint(1, 6))
            output = rng.choices(range(3), k=rng.randint(1, 4))
            sequences.append((prompt, output))
            texts.append(prompt + output)
        found = least_computed(sequences)
        assert found == least_by_sets(sequences)
        num_shared += found < sum(len(prompt) for prompt, _ in sequences)
    assert num_shared > 200


def node(node_id: int, parent_id: int, *ends: int) -> OutlineNode:
    return OutlineNode(node_id, parent_id, array("q"), 32, 2, 0, False, 0, 0, states=ends)


def test_states_on_a_path_are_not_those_of_other_branches() -> None:
    assert most_on_path([node(1, 0, 16, 32), node(2, 1, 32), node(3, 1), node(4, 3, 16, 32)]) == 4
    assert most_on_path([]) == 0


@pytest.fixture(scope="module")
def report() -> StatesReport:
    """Of four layers, since no count depends on their number; without drafts, so that none depends on times."""
    with pytest.MonkeyPatch.context() as patch:
        for shape in states.MODELS.values():
            model_type, fields = SHAPES[shape]
            patch.setitem(SHAPES, shape, (model_type, {**fields, "num_hidden_layers": 4}))
        return run_states(RuntimeConfig(num_threads=1, dtype="float32", speculation="off"), is_quick=True)


def counts_of(report: StatesReport, workload: str, side: str) -> Counts:
    (found,) = (each for each in report.counts if (each.workload, each.side) == (workload, side))
    return found


def test_a_tree_computes_no_more_than_a_dense_model(report: StatesReport) -> None:
    hybrid, dense = (counts_of(report, "tree", side) for side in (HYBRID, DENSE))
    assert hybrid.num_requests == dense.num_requests == 39
    assert hybrid.num_prompt_tokens == dense.num_prompt_tokens
    # The last token of a thought that is continued is computed once, and texts of siblings may begin alike.
    most = 256 + 39 * 48 + 12
    assert all(most - 30 <= each.num_least <= most for each in (hybrid, dense))
    assert dense.num_computed >= dense.num_least
    assert hybrid.num_computed <= 1.05 * dense.num_computed
    assert 4 * hybrid.num_computed <= hybrid.num_prompt_tokens
    assert hybrid.states is not None
    assert hybrid.states.num_kept <= 3 * hybrid.num_requests
    assert dense.states is None


def test_a_prefix_of_100_tokens_is_found(report: StatesReport) -> None:
    # The second one may find that the first has gone past the junction. It keeps a state there, and the six after it go on from that.
    for name in ("short at once", "short in turn"):
        found = counts_of(report, name, HYBRID)
        assert found.num_requests == 8
        assert found.num_prompt_tokens - found.num_computed >= 6 * 96


def test_a_chat_computes_its_turns_once(report: StatesReport) -> None:
    hybrid = counts_of(report, "chat", HYBRID)
    assert hybrid.num_requests == 8
    assert hybrid.twice_share <= 0.02
    assert hybrid.num_computed >= hybrid.num_least


def test_a_report_is_a_table_and_plain_values(report: StatesReport) -> None:
    plain = json.loads(json.dumps(report.to_plain()))
    assert plain["dtype"] == "float32"
    assert len(plain["counts"]) == 8
    lines = report.to_markdown().splitlines()
    assert lines[2].startswith("| tree | hybrid | 16,896 | ")
    assert "| tree | dense | 16,896 | " in lines[3]
    assert report.to_tables()[0].row_count == 8
    assert report.is_sound
    assert any("states" in fact for fact in report.facts())
    assert report.of_dense(counts_of(report, "tree", DENSE)) == 1.0


class TwoTimes:
    """Stands in for vLLM: computes each prompt, and finds only the repeated text of the first token again."""

    version = "9"

    def __init__(self, python: str, directory: Path, **settings: Any) -> None:
        self.settings = settings

    def close(self) -> None:
        self.is_closed = True

    def run(self, workload: Workload, codec: Codec) -> Measurement:
        programs = running(workload, codec)
        outputs = {}
        while due := programs.take_due(0.0):
            for key in due:
                programs.start(key)
                outputs[key] = (
                    tuple(codec.encode("a b c d e f g h i", is_start=False)[:1]) * programs.node(key)["max_tokens"]
                )
                programs.finish(key, list(outputs[key]), 0.0)
        return Measurement(1.0, (1.0,), {}, outputs, programs.num_prompt_tokens, cached_tokens=len(outputs))


def counted_on_vllm(python: str) -> list[Counts]:
    path = model_directory(EMBEDDED_MODEL)
    codec = load_tokenizer(path)
    workloads = [make(codec, seed=0, quick=True) for make in states.CASES.values()]
    config = RuntimeConfig(dtype="float32", num_threads=1)
    return states._on_vllm(python, path, config, workloads, codec)


def test_what_vllm_computes_is_counted_in_the_same_way(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(states, "VllmEngine", TwoTimes)
    tree, at_once, _, chat = counted_on_vllm("python")
    assert (tree.side, tree.workload, tree.num_requests) == ("vLLM 9", "tree", 39)
    assert tree.num_computed == tree.num_prompt_tokens - 39
    assert chat.num_least < 8 * (135 + 16) < chat.num_computed
    assert at_once.num_least == 100 + 8 * 40
    assert 0 < at_once.found_share < 0.02
    assert at_once.states is None


def test_where_vllm_does_not_start_its_lines_say_why(tmp_path: Path) -> None:
    found = counted_on_vllm(str(tmp_path / "no-python"))
    assert [(each.side, each.num_requests) for each in found] == [("vLLM", 0)] * 4
    assert all("no-python" in (each.reason or "") for each in found)
    environment = Environment.of("rtlang bench", "a model", "float32", 1)
    report = StatesReport(environment, (), tuple(found))
    assert report.rows()[0] == ["tree", "vLLM", *["-"] * 8]
    assert sum("no-python" in fact for fact in report.facts()) == 1
