"""The official Python client: files and batches of each route, with errors, paging and cancellation."""

from __future__ import annotations

import json
import time

import openai
from address import KEY, MESSAGES, MODEL, QUESTION, URL

client = openai.OpenAI(base_url=URL, api_key=KEY, max_retries=0)
BODIES = {
    "/v1/chat/completions": {"messages": MESSAGES, "max_tokens": 8, "temperature": 0},
    "/v1/completions": {"prompt": "The sun is", "max_tokens": 8, "temperature": 0},
    "/v1/responses": {"input": QUESTION, "max_output_tokens": 8, "temperature": 0},
}
FINAL = ("completed", "failed", "expired", "cancelled")


def upload(rows: list[dict]) -> str:
    data = "\n".join(map(json.dumps, rows)).encode()
    return client.files.create(file=("requests.jsonl", data), purpose="batch").id


def row(number: int, url: str, **body: object) -> dict:
    return {"custom_id": f"r{number}", "method": "POST", "url": url, "body": {"model": MODEL, **body}}


def ended(batch: openai.types.Batch) -> openai.types.Batch:
    until = time.monotonic() + 120
    while batch.status not in FINAL:
        assert time.monotonic() < until, batch
        time.sleep(0.05)
        batch = client.batches.retrieve(batch.id)
    return batch


def results(file_id: str) -> dict[str, dict]:
    rows = [json.loads(line) for line in client.files.content(file_id).text.splitlines()]
    return {each["custom_id"]: each["response"] for each in rows}


def run() -> None:
    for endpoint, body in BODIES.items():
        rows = [row(i, endpoint, **body) for i in range(40)] + [row(40, endpoint, **body | {"top_p": 7})]
        made = client.batches.create(
            input_file_id=upload(rows), endpoint=endpoint, completion_window="24h", metadata={"run": "1"}
        )
        batch = ended(made)
        assert batch.status == "completed", batch
        assert (batch.request_counts.completed, batch.request_counts.failed) == (40, 1)
        found = results(batch.output_file_id)
        assert set(found) == {f"r{i}" for i in range(40)}
        assert results(batch.error_file_id)["r40"]["body"]["error"]["param"] == "top_p"
    text = client.completions.create(model=MODEL, **BODIES["/v1/completions"]).choices[0].text
    (same,) = {each["body"]["choices"][0]["text"] for each in results(by_endpoint("/v1/completions")).values()}
    assert same == text
    assert len(list(client.batches.list(limit=1))) >= len(BODIES)


def by_endpoint(endpoint: str) -> str:
    return next(each.output_file_id for each in client.batches.list() if each.endpoint == endpoint)


def stop() -> None:
    long = [row(i, "/v1/completions", prompt="The sun is", max_tokens=400, ignore_eos=True) for i in range(500)]
    batch = client.batches.create(input_file_id=upload(long), endpoint="/v1/completions", completion_window="24h")
    assert client.batches.cancel(batch.id).status in ("cancelling", "cancelled")
    assert ended(batch).status == "cancelled"
    bad = client.batches.create(
        input_file_id=upload([row(0, "/v1/completions", prompt="x"), row(0, "/v1/completions", prompt="x")]),
        endpoint="/v1/completions",
        completion_window="24h",
    )
    assert [(each.code, each.line) for each in ended(bad).errors.data] == [("duplicate_custom_id", 2)]
    for file in client.files.list():
        client.files.delete(file.id)
    assert not list(client.files.list())


run()
stop()
