"""The routes of batches through the official client, and a server that is killed in the middle of one."""

from __future__ import annotations

import json
import multiprocessing
import time
from collections import Counter
from multiprocessing.connection import Connection
from pathlib import Path
from random import Random
from typing import Any

import openai
import pytest
from openai import OpenAI
from openai.types import Batch

from tests.support.long_tests import sized
from tests.support.programs.fake_target import Call, FakeTarget
from tests.support.servers.fuzz import mutated, shuffled_bytes
from tests.support.servers.http_client import HttpClient
from tests.support.servers.serving import serving
from tests.support.waiting import wait_until

_CONTEXT = multiprocessing.get_context("forkserver")
_CONTEXT.set_forkserver_preload(["tests.support.servers.serving", "tests.support.programs.fake_target"])
FINAL = ("completed", "failed", "expired", "cancelled")


def client_of(url: str) -> OpenAI:
    return OpenAI(base_url=url.replace("ws", "http", 1) + "/v1", api_key="any", max_retries=0)


def upload(client: OpenAI, rows: list[dict[str, Any]]) -> str:
    data = b"".join(json.dumps(row).encode() + b"\n" for row in rows)
    return client.files.create(file=("in.jsonl", data), purpose="batch").id


def row(number: int, url: str, **body: Any) -> dict[str, Any]:
    return {"custom_id": f"r{number}", "method": "POST", "url": url, "body": {"model": "default"} | body}


def ended(client: OpenAI, batch: Batch) -> Batch:
    wait_until(lambda: client.batches.retrieve(batch.id).status in FINAL)
    return client.batches.retrieve(batch.id)


def results(client: OpenAI, file_id: str | None) -> dict[str, Any]:
    rows = [] if file_id is None else [json.loads(line) for line in client.files.content(file_id).text.splitlines()]
    assert len({each["custom_id"] for each in rows}) == len(rows)
    return {each["custom_id"]: each["response"] for each in rows}


def test_batches_of_each_route_give_what_live_requests_give() -> None:
    with FakeTarget(lambda call: f"[{call.prompt}]") as target, serving(target) as server:  # type: ignore[arg-type]
        client = client_of(server.url)
        messages = [{"role": "user", "content": "hi"}]
        bodies: dict[str, dict[str, Any]] = {
            "/v1/chat/completions": {"messages": messages},
            "/v1/completions": {"prompt": "hi"},
            "/v1/responses": {"input": "hi"},
        }
        for endpoint, body in bodies.items():
            good = [row(i, endpoint, **body) for i in range(3)]
            file_id = upload(
                client, [*good, row(3, endpoint, **body, top_p=7), row(4, endpoint, **body | {"speed": 1})]
            )
            made = client.batches.create(
                input_file_id=file_id,
                endpoint=endpoint,  # type: ignore[arg-type]
                completion_window="24h",
                metadata={"a": "b"},
            )
            batch = ended(client, made)
            assert (batch.status, batch.metadata) == ("completed", {"a": "b"})
            assert batch.request_counts is not None
            assert batch.request_counts.model_dump() == {"completed": 3, "failed": 2, "total": 5}
            live = client.post(endpoint.removeprefix("/v1"), body={"model": "default"} | body, cast_to=dict[str, Any])
            own = {"id", "created", "created_at", "completed_at", "output"}
            for found in results(client, batch.output_file_id).values():
                assert found["status_code"] == 200
                assert {k: v for k, v in found["body"].items() if k not in own} == {
                    k: v for k, v in live.items() if k not in own
                }
            bad = results(client, batch.error_file_id)
            assert [bad[name]["body"]["error"]["param"] for name in ("r3", "r4")] == ["top_p", "speed"]
        assert [each.id for each in client.batches.list(limit=2)] == [each.id for each in client.batches.list()]
        assert len(list(client.batches.list(limit=1))) == 3
        assert all(file.purpose in ("batch", "batch_output") for file in client.files.list())


def test_what_is_no_batch_is_refused_by_field() -> None:
    with FakeTarget() as target, serving(target) as server:  # type: ignore[arg-type]
        client = client_of(server.url)
        file_id = upload(client, [row(0, "/v1/completions", prompt="x", stream=True)])
        good: dict[str, Any] = {"input_file_id": file_id, "endpoint": "/v1/completions", "completion_window": "24h"}
        for name, value in (("endpoint", "/v1/embeddings"), ("completion_window", "1"), ("input_file_id", "file-0")):
            with pytest.raises(openai.BadRequestError) as caught:
                client.batches.create(**good | {name: value})
            assert caught.value.param == name
        batch = ended(client, client.batches.create(**good))
        assert batch.status == "failed"
        assert batch.errors is not None
        assert batch.errors.data is not None
        assert [(each.line, each.param) for each in batch.errors.data] == [(1, "body.stream")]
        for call in (client.batches.retrieve, client.batches.cancel):
            with pytest.raises(openai.NotFoundError):
                call("batch_0")
        with pytest.raises(openai.BadRequestError):
            client.batches.cancel(batch.id)


def test_any_batch_id_and_query_is_answered() -> None:
    rng = Random(11)
    with FakeTarget() as target, serving(target) as server, client_of(server.url) as openai_client:  # type: ignore[arg-type]
        client = HttpClient(server.url)
        row_text = json.dumps(row(0, "/v1/completions", prompt="x"))
        file_ids = [upload(openai_client, [row(0, "/v1/completions", prompt="x")])]
        batch_ids: list[str] = []
        names = ("limit", "after", "order", "purpose", "x")
        for _ in range(sized(4_000, usual=60)):
            some_id = rng.choice(
                [*file_ids[-9:], *batch_ids[-9:], "file-0", "batch_", "%00", "a%2Fb", "é".encode().hex(), "x" * 300]
            )
            values = (some_id, "1", "0", "-1", "1e3", "desc", "batch", "", "%FF", "9" * 30)
            query = "&".join(f"{rng.choice(names)}={rng.choice(values)}" for _ in range(rng.randrange(4)))
            kind = rng.randrange(6)
            if kind == 0:
                body = {"input_file_id": some_id, "endpoint": "/v1/completions", "completion_window": "1h"}
                body |= {"metadata": {"a": "b"}, "output_expires_after": {"anchor": "created_at", "seconds": 3600}}
                data = json.dumps(mutated(body, rng, rng.choice((0, 1, 2)))).encode()
                answer = client.post("/v1/batches", shuffled_bytes(data, rng) if rng.random() < 0.1 else data)
                batch_ids += [answer.json["id"]] if answer.status == 200 else []
            elif kind == 1:
                data = shuffled_bytes(row_text.encode() + b"\n", rng) + row_text.replace("r0", "r1").encode()
                file_ids.append(openai_client.files.create(file=("x", data), purpose="batch").id)
                continue
            elif kind == 2:
                answer = client.request("POST", f"/v1/batches/{some_id}/cancel?{query}")
            elif kind == 3:
                ending = rng.choice(("", "/content"))
                answer = client.request(rng.choice(("GET", "DELETE")), f"/v1/files/{some_id}{ending}?{query}")
            else:
                place = rng.choice(("", "", f"/{some_id}"))
                answer = client.get(f"/v1/{rng.choice(('files', 'batches'))}{place}?{query}")
            assert answer.status < 500, (kind, some_id, query, answer.body)
            if answer.status == 429:
                wait_until(
                    lambda: all(each["status"] in FINAL for each in client.get("/v1/batches?limit=100").json["data"])
                )
        wait_until(lambda: all(each["status"] in FINAL for each in client.get("/v1/batches?limit=100").json["data"]))


def _serve(pipe: Connection, folder: str, log: str) -> None:
    with open(log, "a", encoding="utf-8") as file:

        def script(call: Call) -> str:
            time.sleep(0.001)  # so that the parent can kill it within the batch
            file.write(call.prompt + "\n")
            file.flush()
            return f"[{call.prompt}]"

        with FakeTarget(script) as target, serving(target, files_dir=folder) as server:  # type: ignore[arg-type]
            pipe.send(server.url)
            pipe.poll(None)


@pytest.mark.long  # two processes; test_batches.py of the batch package resumes without them
def test_a_batch_goes_on_after_the_server_was_killed(tmp_path: Path) -> None:
    log = tmp_path / "log"

    def started() -> tuple[Any, OpenAI]:
        pipe, theirs = _CONTEXT.Pipe()
        process = _CONTEXT.Process(target=_serve, args=(theirs, str(tmp_path / "files"), str(log)), daemon=True)
        process.start()
        theirs.close()
        assert pipe.poll(60)
        return (process, pipe), client_of(pipe.recv())

    count = 300
    (process, _), client = started()
    file_id = upload(client, [row(i, "/v1/completions", prompt=f"p{i}") for i in range(count)])
    made = client.batches.create(input_file_id=file_id, endpoint="/v1/completions", completion_window="24h")

    def num_completed() -> int:
        counts = client.batches.retrieve(made.id).request_counts
        return 0 if counts is None else counts.completed

    wait_until(lambda: num_completed() >= 40)
    process.kill()
    process.join()
    first = Counter(log.read_text().splitlines())
    assert len(first) < count
    (process, pipe), client = started()
    batch = ended(client, made)
    assert batch.status == "completed"
    found = results(client, batch.output_file_id)
    assert {name: each["body"]["choices"][0]["text"] for name, each in found.items()} == {
        f"r{i}": f"[p{i}]" for i in range(count)
    }
    asked = Counter(log.read_text().splitlines())
    assert sum(asked.values()) - count <= 64  # only what ran at the kill was run again
    pipe.close()
    process.join(20)
    process.kill()
