"""Lines of batch files: what is no request is told by its line and field, results are lines that other readers read."""

from __future__ import annotations

import io
import json
from random import Random
from typing import Any

from rtlang.serve.batch.batch_lines import (
    MAX_ERRORS,
    BatchLine,
    FileCheck,
    LineError,
    LineReader,
    LineResult,
    key_of,
    keys_in,
    result_line,
    unrun_line,
)
from tests.support.long_tests import sized
from tests.support.servers.fuzz import mutated, shuffled_bytes

URLS = ("/v1/chat/completions", "/v1/completions")
GOOD = {"custom_id": "a", "method": "POST", "url": URLS[0], "body": {"messages": [{"role": "user", "content": "é\n"}]}}


def read(data: bytes, slice_bytes: int = 50, max_line_bytes: int = 1000) -> list[BatchLine | LineError]:
    reader = LineReader(io.BytesIO(data), URLS, max_line_bytes)
    found: list[BatchLine | LineError] = []
    while lines := reader.slice(slice_bytes):
        found += lines
    return found


def test_lines_are_read_in_slices_of_any_size() -> None:
    rows = [GOOD | {"custom_id": f"r{i}"} for i in range(20)]
    data = b"\n\n \r\n" + b"\r\n".join(json.dumps(row).encode() for row in rows)
    for size in (1, 7, 300, 1 << 20):
        found = read(data, size)
        assert [line.custom_id for line in found if isinstance(line, BatchLine)] == [row["custom_id"] for row in rows]
        assert next(line.number for line in found if isinstance(line, BatchLine)) == 4
        assert all(isinstance(line, BatchLine) and json.loads(line.body) == GOOD["body"] for line in found)
    assert read(b"") == read(b"\n" * 500) == []


def test_a_line_that_is_no_request_is_told_by_field() -> None:
    cases: list[tuple[Any, str | None]] = [
        (GOOD | {"custom_id": None}, "custom_id"),
        ({name: GOOD[name] for name in GOOD if name != "custom_id"}, "custom_id"),
        (GOOD | {"custom_id": ""}, "custom_id"),
        (GOOD | {"custom_id": 5}, "custom_id"),
        (GOOD | {"custom_id": "x" * 513}, "custom_id"),
        (GOOD | {"method": "GET"}, "method"),
        (GOOD | {"url": "/v1/embeddings"}, "url"),
        (GOOD | {"url": ["/v1/completions"]}, "url"),
        (GOOD | {"body": "x"}, "body"),
        (GOOD | {"body": {"stream": True}}, "body.stream"),
        (GOOD | {"body": {"background": True}}, "body.background"),
        (GOOD | {"priority": 1}, "priority"),
        ([GOOD], None),
        (5, None),
    ]
    data = b"\n".join([json.dumps(row).encode() for row, _ in cases] + [b"{", b"\xff\xfe", b"[" * 900])
    found = read(data, max_line_bytes=1 << 20)
    assert [line.param for line in found if isinstance(line, LineError)] == [param for _, param in cases] + [None] * 3
    assert [line.line for line in found if isinstance(line, LineError)] == list(range(1, len(cases) + 4))
    long = read(json.dumps(GOOD | {"body": {"x": "y" * 5000}}).encode() + b"\n" + json.dumps(GOOD).encode())
    assert [type(line) for line in long] == [LineError, BatchLine]


def test_a_file_is_checked_whole_and_its_errors_are_bounded() -> None:
    def checked(rows: list[dict[str, Any]], most: int = 1000) -> FileCheck:
        check = FileCheck(most)
        check.add(read(b"\n".join(json.dumps(row).encode() for row in rows)))
        return check

    rows = [GOOD | {"custom_id": f"r{i}"} for i in range(10)]
    assert (checked(rows).errors, checked(rows).total) == ([], 10)
    (twice,) = checked([*rows, rows[3]]).errors
    assert (twice.line, twice.code) == (11, "duplicate_custom_id")
    (many,) = checked(rows, 9).errors
    assert (many.line, many.code) == (10, "too_many_requests")
    assert len(checked([GOOD | {"method": "PUT"}] * 500).errors) == MAX_ERRORS


def test_results_are_json_lines_and_tell_which_requests_have_one() -> None:
    ids = ["plain", 'quo"te', "li\nne", "é😀", "\ud800"]
    results = [LineResult(200 + 200 * (i % 2), f"req{i}", b'{"a":[1,"\\n"]}') for i in range(len(ids))]
    lines = [result_line(f"l{i}", each, result) for i, (each, result) in enumerate(zip(ids, results, strict=True))]
    assert all(line.count(b"\n") == 1 and line.endswith(b"\n") for line in lines)
    plain = [json.loads(line) for line in lines]
    assert [each["response"]["body"] for each in plain] == [{"a": [1, "\n"]}] * len(ids)
    assert [each["response"]["status_code"] for each in plain] == [result.status for result in results]
    late = unrun_line("x", "late", "batch_expired")
    assert json.loads(late)["error"]["code"] == "batch_expired"
    assert list(keys_in(iter([*lines[:4], b"no\n", b"{}\n", b"[1]\n", late]))) == [
        *map(key_of, ids[:4]),
        key_of("late"),
    ]
    assert len({key_of(each) for each in ids}) == len(ids)


def test_any_bytes_are_lines_or_errors() -> None:
    rng = Random(5)
    for _ in range(sized(100_000, usual=300)):
        row = json.dumps(mutated(GOOD, rng, rng.choice((0, 1, 2)))).encode()
        data = shuffled_bytes(row, rng) if rng.random() < 0.5 else row
        check = FileCheck()
        check.add(read(data + b"\n" + row, rng.choice((1, 40, 4000))))
        assert check.total + len(check.errors) <= data.count(b"\n") + 3
