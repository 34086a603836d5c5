"""A batch from a file to a file: runs go on where they were, and bad files run nothing."""

from __future__ import annotations

import asyncio
import fcntl
import json
from collections import Counter
from pathlib import Path

import pytest

from rtlang.serve.batch.batch_file import BadFileError, FileInUseError, Progress, run_file
from rtlang.serve.batch.batch_lines import BatchLine, LineResult

URL = "/v1/completions"


class World:
    def __init__(self, folder: Path) -> None:
        self.source, self.output, self.errors = folder / "in", folder / "out", folder / "errors"
        self.asked = Counter[str]()
        self.fails: set[str] = set()
        self.dies_after = 10**9

    def write(self, ids: list[str]) -> None:
        rows = [{"custom_id": each, "method": "POST", "url": URL, "body": {"prompt": each}} for each in ids]
        self.source.write_text("".join(json.dumps(row) + "\n" for row in rows))

    def run(self) -> Progress:
        async def ask(line: BatchLine) -> LineResult:
            await asyncio.sleep(0)
            if sum(self.asked.values()) >= self.dies_after:
                raise ConnectionError("gone")
            self.asked[line.custom_id] += 1
            return LineResult(400 if line.custom_id in self.fails else 200, "r", line.body)

        return asyncio.run(
            run_file(self.source, self.output, self.errors, ask, (URL,), max_running=4, max_line_bytes=1000)
        )

    def results(self, path: Path) -> dict[str, str]:
        rows = [json.loads(line) for line in path.read_text().splitlines()]
        assert len({row["custom_id"] for row in rows}) == len(rows)
        return {row["custom_id"]: row["response"]["body"]["prompt"] for row in rows}


@pytest.fixture
def world(tmp_path: Path) -> World:
    return World(tmp_path)


def test_a_run_that_ended_early_goes_on_with_what_has_no_result(world: World) -> None:
    ids = [f"r{i}" for i in range(100)]
    world.write(ids)
    world.dies_after = 30
    with pytest.raises(ConnectionError):
        world.run()
    before = set(world.results(world.output))
    assert 20 <= len(before) <= 30
    with world.output.open("ab") as file:
        file.write(b'{"custom_id": "r99", "resp')  # as a killed process leaves it
    world.dies_after, world.fails = 10**9, {"r98"}
    found = world.run()
    assert (found.total, found.num_done, found.completed, found.failed) == (100, len(before), 99 - len(before), 1)
    assert world.results(world.output) == {each: each for each in ids if each != "r98"}
    assert set(world.results(world.errors)) == {"r98"}
    assert all(world.asked[each] == 1 for each in before)
    world.fails = set()
    found = world.run()
    assert (found.num_done, found.completed, found.failed) == (99, 1, 0)
    assert set(world.results(world.output)) == set(ids)
    assert not world.errors.exists()


def test_a_bad_file_and_a_file_in_use_run_nothing(world: World) -> None:
    world.write(["a", "b", "a"])
    with pytest.raises(BadFileError, match="line 3: custom_id"):
        world.run()
    world.write(["a"])
    with world.output.open("ab") as file:
        fcntl.flock(file, fcntl.LOCK_EX)
        with pytest.raises(FileInUseError):
            world.run()
    world.source.unlink()
    with pytest.raises(FileNotFoundError):
        world.run()
    assert not world.asked
