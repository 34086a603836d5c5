"""Programs over batches of Ray Data: a value or an error per row, and the other columns as they were."""

from __future__ import annotations

import ast
import pickle
import re
from collections.abc import Mapping
from pathlib import Path
from types import SimpleNamespace
from typing import Any, cast

import numpy as np
import pytest

from rtlang.contract.errors import DeadlineError, ParameterError
from rtlang.contract.service.target import Target
from rtlang.fleet import ray_data
from rtlang.fleet.ray_data import map_batches, run_on_batch

TARGET = cast(Target, object())


class Twice:
    """A program that repeats its word; the numbers of the rows must be those of Python."""

    def __init__(self) -> None:
        self.options: dict[str, Any] = {}

    def run_batch(self, inputs: Any, **options: Any) -> list[Any]:
        self.options = options
        return [self._run(**row) for row in inputs]

    def _run(self, word: str, count: int) -> Any:
        assert type(count) is int
        if count > 2:
            return SimpleNamespace(value=None, error=DeadlineError(1.0))
        return SimpleNamespace(value=word * count, error=None)


class Frame:
    """As much of a data frame as is needed: columns by name, and `assign`."""

    def __init__(self, columns: Mapping[str, Any]) -> None:
        self.columns = dict(columns)

    def __contains__(self, name: object) -> bool:
        return name in self.columns

    def __getitem__(self, name: str) -> Any:
        return self.columns[name]

    def assign(self, **columns: Any) -> Frame:
        return Frame(self.columns | columns)


BATCH = {"text": np.array(["a", "b", "c"], object), "n": np.array([1, 3, 2]), "other": np.array([[1], [2], [3]])}


@pytest.mark.parametrize("kind", [dict, Frame])
def test_each_row_has_its_value_or_its_error(kind: Any) -> None:
    program = Twice()
    found = run_on_batch(program, TARGET, kind(BATCH), {"word": "text", "count": "n"}, "out", "bad", {"priority": 3})
    assert found["out"].tolist() == ["a", None, "cc"]
    assert [each and each.split(":")[0] for each in found["bad"].tolist()] == [None, "deadline", None]
    assert found["other"] is BATCH["other"]
    assert program.options == {"runtime": TARGET, "on_error": "result", "priority": 3}


def test_an_empty_batch_gets_its_columns() -> None:
    batch = {"text": np.array([], object), "n": np.array([], int)}
    found = run_on_batch(Twice(), TARGET, batch, {"word": "text", "count": "n"}, "out", "bad", {})
    assert list(found) == ["text", "n", "out", "bad"]
    assert len(found["out"]) == len(found["bad"]) == 0


def test_a_missing_column_is_named() -> None:
    with pytest.raises(ParameterError, match="no column 'title' for 'word'"):
        run_on_batch(Twice(), TARGET, BATCH, {"word": "title", "count": "n"}, "out", "bad", {})


def test_options_that_rows_cannot_have_are_refused() -> None:
    with pytest.raises(ParameterError, match="on_error"):
        map_batches(Twice(), arguments={"word": "text"}, on_error="raise")
    with pytest.raises(ParameterError, match="another column"):
        map_batches(Twice(), arguments={"word": "text"}, value="x", error="x")


def test_nothing_is_connected_before_ray_makes_the_class() -> None:
    made = map_batches(Twice(), arguments={"word": "text"}, runtime="ray://nowhere")
    assert isinstance(made, type)
    assert pickle.loads(pickle.dumps(Twice())).options == {}


def _calls_of_ray(text: str) -> list[set[str]]:
    """The names of the keyword arguments of each call of `Dataset.map_batches` in an example."""
    calls = [node for node in ast.walk(ast.parse(text)) if isinstance(node, ast.Call)]
    of_ray = [call for call in calls if re.fullmatch(r"(rows|dataset)\.map_batches", ast.unparse(call.func))]
    return [{keyword.arg or "" for keyword in call.keywords} for call in of_ray]


def test_examples_give_ray_data_no_deprecated_argument() -> None:
    """Ray Data deprecates `concurrency` of `map_batches` in favor of `compute`."""
    page = (Path(__file__).parents[2] / "docs" / "ray.md").read_text(encoding="utf-8")
    examples = re.findall(r"```python\n(.*?)```", page, re.DOTALL)
    docstring = ray_data.__doc__ or ""
    examples.append("\n".join(line[4:] for line in docstring.splitlines() if line.startswith("    ")))
    found = [names for example in examples for names in _calls_of_ray(example)]
    assert len(found) == 2
    assert all("compute" in names and "concurrency" not in names for names in found)
