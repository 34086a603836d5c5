"""The batches of a server: their states, their files, and what a later process goes on with."""

from __future__ import annotations

import asyncio
import json
from collections import Counter
from collections.abc import Awaitable, Callable
from pathlib import Path
from typing import Any, TypeVar

import pytest

from rtlang.contract.accounts.request_account import WorkKind
from rtlang.contract.errors import OverloadError, ParameterError
from rtlang.contract.runs.principal import Principal, PrincipalLimits
from rtlang.serve.batch import batches as batches_module
from rtlang.serve.batch.batch_lines import LineResult
from rtlang.serve.batch.batch_record import Batch, BatchStatus, read_batch
from rtlang.serve.batch.batch_usage import BatchUsage
from rtlang.serve.batch.batches import Batches, batch_principal
from rtlang.serve.batch.file_store import FileStore

_T = TypeVar("_T")
ANN = Principal("ann", limits=PrincipalLimits(max_places=40), max_priority=7)
ROUTES = ("/v1/completions", "/v1/responses")


class Desk:
    """Stands for the server: answers requests, most at once, and some only when it is told."""

    def __init__(self) -> None:
        self.asked = Counter[str]()
        self.principals: set[Principal] = set()
        self.running = self.most = 0
        self.holds: Callable[[str], bool] = lambda prompt: False
        self.has_key = True

    def principal_named(self, owner: str) -> Principal | None:
        return ANN if owner == ANN.name and self.has_key else None

    async def run(
        self,
        principal: Principal | None,
        price: float,
        fn: Callable[[], _T],
        *,
        kind: WorkKind,
        may_wait: bool = False,
        is_bounded: bool = True,
    ) -> _T:
        await asyncio.sleep(0)
        return fn()

    async def ask(self, principal: Principal, url: str, body: bytes, request_id: str) -> LineResult:
        prompt = json.loads(body)["prompt"]
        self.principals.add(principal)
        self.running += 1
        self.most = max(self.most, self.running)
        try:
            await asyncio.sleep(0)
            if self.holds(prompt):
                await asyncio.get_running_loop().create_future()
        finally:
            self.running -= 1
        self.asked[prompt] += 1
        status, body = 400, {"text": prompt}
        if not prompt.startswith("bad"):
            status, body = 200, body | {"model": "m", "usage": {"input_tokens": 2, "output_tokens": 1}}
        return LineResult(status, request_id, json.dumps(body).encode())


def lines(prompts: list[str], **more: Any) -> bytes:
    rows = [
        {"custom_id": each, "method": "POST", "url": ROUTES[0], "body": {"prompt": each}} | more for each in prompts
    ]
    return b"".join(json.dumps(row).encode() + b"\n" for row in rows)


def upload(store: FileStore, data: bytes) -> str:
    writer = store.begin(ANN.name)
    writer.write(data)
    return store.publish(ANN.name, writer, "in.jsonl", "batch", None).file_id


def body(file_id: str) -> dict[str, Any]:
    return {"input_file_id": file_id, "endpoint": ROUTES[0], "completion_window": "1h"}


def results(store: FileStore, batch: Batch) -> tuple[dict[str, Any], dict[str, Any]]:
    """The lines of the output file and of the error file by custom_id, each of which comes once."""
    found: list[dict[str, Any]] = []
    for file_id, is_there in ((batch.output_id, batch.has_output), (batch.error_id, batch.has_errors)):
        file = store.read(ANN.name, file_id)
        assert (file is not None) is is_there
        rows = [] if file is None else [json.loads(line) for line in file]
        if file is not None:
            file.close()
        found.append({row["custom_id"]: row for row in rows})
        assert len(found[-1]) == len(rows)
    return found[0], found[1]


async def until(condition: Callable[[], bool]) -> None:
    for _ in range(20_000):
        if condition():
            return
        await asyncio.sleep(0)
    raise AssertionError("it does not come true")


class World:
    def __init__(self, folder: Path, now: float = 1000.0) -> None:
        self.now, self.desk, self.store = now, Desk(), FileStore(str(folder), 1 << 20)

    def batches(self) -> Batches:
        return Batches(self.desk, self.store, self.desk.ask, ROUTES, 10_000, now=lambda: self.now)

    async def begun(self, batches: Batches, data: bytes) -> Batch:
        batch = read_batch(body(upload(self.store, data)), ANN.name, ROUTES, self.now)
        return await batches.create(ANN, batch)


@pytest.fixture
def world(tmp_path: Path) -> World:
    return World(tmp_path)


def run(work: Callable[[], Awaitable[None]]) -> None:
    asyncio.run(asyncio.wait_for(work(), 30))  # type: ignore[arg-type]


def test_each_request_runs_once_at_the_lowest_priority_and_within_a_share_of_the_limits(world: World) -> None:
    async def work() -> None:
        prompts = [f"{'bad' if i % 10 == 3 else 'q'}{i}" for i in range(100)]
        batches = world.batches()
        batch = await world.begun(batches, lines(prompts))
        assert batches.get("bob", batch.batch_id) is None
        assert batches.batches_of("bob") == []
        await until(lambda: batch.status.is_final)
        assert batch.status is BatchStatus.COMPLETED
        assert (batch.total, batch.completed, batch.failed) == (100, 90, 10)
        good, bad = results(world.store, batch)
        assert set(good) | set(bad) == set(prompts)
        assert all(row["response"]["body"]["text"] == name for name, row in (good | bad).items())
        assert (batch.model, batch.usage) == ("m", BatchUsage(180, 0, 90, 0))
        assert set(world.desk.asked.values()) == {1}
        assert world.desk.most == 10  # a quarter of max_places
        (principal,) = world.desk.principals
        assert principal == batch_principal(ANN)
        assert (principal.priority_of(0), principal.name, principal.limits) == (7, "ann", ANN.limits)
        assert principal.share < 1
        with pytest.raises(ParameterError, match="completed"):
            await batches.cancel(batch)

    run(work)


def test_a_bad_file_fails_before_a_request_runs(world: World) -> None:
    async def work() -> None:
        batches = world.batches()
        other = lines(["x"], url=ROUTES[1])
        for data, line, code in (
            (lines(["a", "b", "a"]), 3, "duplicate_custom_id"),
            (lines(["a"]) + other, 2, "mismatched_endpoint"),
            (b"", 1, "empty_file"),
            (b"\n\nno\n", 3, "invalid_json_line"),
        ):
            batch = await world.begun(batches, data)
            await until(lambda batch=batch: batch.status.is_final)  # type: ignore[misc]
            assert batch.status is BatchStatus.FAILED
            assert [(each["line"], each["code"]) for each in batch.errors] == [(line, code)]
            assert results(world.store, batch) == ({}, {})
        assert not world.desk.asked
        with pytest.raises(ParameterError) as caught:
            await batches.create(ANN, read_batch(body("file-unknown"), ANN.name, ROUTES, 0))
        assert caught.value.field == "input_file_id"

    run(work)


def test_a_cancelled_batch_keeps_the_results_that_it_has(world: World) -> None:
    async def work() -> None:
        world.desk.holds = lambda prompt: int(prompt) >= 5
        batches = world.batches()
        batch = await world.begun(batches, lines([str(i) for i in range(50)]))
        await until(lambda: batch.completed == 5)
        await batches.cancel(batch)
        await batches.cancel(batch)
        assert batch.status is BatchStatus.CANCELLING
        await until(lambda: batch.status.is_final)
        assert batch.status is BatchStatus.CANCELLED
        good, unrun = results(world.store, batch)
        assert set(good) == {"0", "1", "2", "3", "4"}
        assert set(unrun) == {str(i) for i in range(5, 50)}
        assert {row["error"]["code"] for row in unrun.values()} == {"batch_cancelled"}
        assert all(row["response"] is None for row in unrun.values())
        assert (batch.completed, batch.failed) == (5, 45)
        assert world.desk.running == 0
        at_once = await world.begun(batches, lines(["1", "2"]))
        await batches.cancel(at_once)
        await until(lambda: at_once.status.is_final)
        assert at_once.status is BatchStatus.CANCELLED

    run(work)


def test_requests_that_were_not_run_in_time_are_lines_of_the_error_file(world: World) -> None:
    async def work() -> None:
        batches = world.batches()
        world.desk.holds = lambda prompt: int(prompt) >= 3
        batch = await world.begun(batches, lines([str(i) for i in range(30)]))
        await until(lambda: batch.completed == 3)
        batches.drain(0)
        await until(lambda: world.desk.running == 0)
        world.now += 3601
        later = world.batches()
        later.resume()
        found = later.get(ANN.name, batch.batch_id)
        assert found is not None
        await until(lambda: found.status.is_final)
        assert found.status is BatchStatus.EXPIRED
        good, late = results(world.store, found)
        assert set(good) == {"0", "1", "2"}
        assert {row["error"]["code"] for row in late.values()} == {"batch_expired"}
        assert set(late) == {str(i) for i in range(3, 30)}
        assert (found.completed, found.failed) == (3, 27)

    run(work)


def test_a_later_process_runs_what_has_no_result(world: World, tmp_path: Path) -> None:
    async def work() -> None:
        batches = world.batches()
        world.desk.holds = lambda prompt: prompt >= "q50"
        prompts = [f"q{i:02}" for i in range(100)]
        batch = await world.begun(batches, lines(prompts))
        waiting = await world.begun(batches, lines(["q99x"]))
        cancelled = await world.begun(batches, lines(["q90"]))
        await until(lambda: batch.completed == 50)
        await batches.cancel(cancelled)
        batches.end(1012, "stop")
        await until(lambda: world.desk.running == 0)
        (path,) = tmp_path.glob(f"*/{batch.output_id}.open")
        path.write_bytes(path.read_bytes() + b'{"id": "torn')
        world.store.close()
        again = World(tmp_path)
        again.desk.has_key = False
        later = again.batches()
        later.resume()
        found = later.get(ANN.name, batch.batch_id)
        assert found is not None
        for _ in range(100):
            await asyncio.sleep(0)
        assert not again.desk.asked  # its principal has no key
        again.desk.has_key = True
        await until(lambda: all(each.status.is_final for each in later.batches_of(ANN.name)))
        await until(lambda: not later._tasks)
        good, bad = results(again.store, found)
        assert (set(good), bad, found.completed) == (set(prompts), {}, 100)
        assert (found.model, found.usage) == ("m", BatchUsage(200, 0, 100, 0))
        assert set(again.desk.asked) == {*prompts[50:], "q99x"}
        by_id = {each.batch_id: each.status for each in later.batches_of(ANN.name)}
        assert by_id[waiting.batch_id] is BatchStatus.COMPLETED
        assert by_id[cancelled.batch_id] in (BatchStatus.CANCELLED, BatchStatus.COMPLETED)
        assert [each.batch_id for each in later.batches_of(ANN.name)] == [
            each.batch_id for each in sorted(later.batches_of(ANN.name), key=lambda each: each.created_at, reverse=True)
        ]
        final = World.__new__(World)
        final.now, final.desk, final.store = again.now, again.desk, again.store
        last = final.batches()
        last.resume()
        assert [each.to_object() for each in last.batches_of(ANN.name)] == [
            each.to_object() for each in later.batches_of(ANN.name)
        ]

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(batches_module, "_KEY_WAIT_S", 0.0)
        run(work)


def test_results_beyond_the_quota_fail_the_batch_and_keep_what_there_is(world: World, tmp_path: Path) -> None:
    async def work() -> None:
        data = lines([f"q{i:04}" for i in range(50)])
        world.store.close()
        world.store = FileStore(str(tmp_path), len(data) + 2000)
        batches = world.batches()
        batch = await world.begun(batches, data)
        await until(lambda: batch.status.is_final)
        assert (batch.status, batch.errors[0]["code"]) == (BatchStatus.FAILED, "file_quota_exceeded")
        await until(lambda: not batches._tasks)
        assert 0 < batch.completed < 50
        assert len(results(world.store, batch)[0]) == batch.completed

    run(work)


def test_an_input_file_may_be_deleted_while_its_batch_waits(world: World) -> None:
    async def work() -> None:
        batches = world.batches()
        batch = await world.begun(batches, lines(["a"]))
        world.store.delete(ANN.name, batch.input_file_id)
        await until(lambda: batch.status.is_final)
        assert (batch.status, batch.errors[0]["code"]) == (BatchStatus.FAILED, "input_file_missing")

    run(work)


def test_the_batches_of_a_principal_are_bounded(world: World, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(batches_module, "MAX_UNFINISHED", 3)
    monkeypatch.setattr(batches_module, "MAX_BATCHES", 4)

    async def work() -> None:
        world.desk.holds = lambda prompt: prompt == "held"
        batches = world.batches()
        held = [await world.begun(batches, lines(["held"])) for _ in range(3)]
        with pytest.raises(OverloadError, match="3 batches"):
            await world.begun(batches, lines(["held"]))
        await batches.cancel(held[0])
        await until(lambda: held[0].status.is_final)
        for number in range(5):
            batch = await world.begun(batches, lines([f"q{number}"]))
            await until(lambda batch=batch: batch.status.is_final)  # type: ignore[misc]
        kept = batches.batches_of(ANN.name)
        assert len(kept) == 4
        assert {each.batch_id for each in held[1:]} < {each.batch_id for each in kept}
        assert len(list(world.store.records(ANN.name))) == 4
        batches.drain(0)
        await until(lambda: world.desk.running == 0)

    run(work)
