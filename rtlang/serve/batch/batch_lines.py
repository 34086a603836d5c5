"""The lines of a batch: requests of the input file, results of the output file and of the error file, in the shapes of the OpenAI API.

{"custom_id": "a", "method": "POST", "url": "/v1/chat/completions", "body": {...}}
{"id": "batch_req_...", "custom_id": "a", "response": {"status_code": 200, "request_id": "...", "body": {...}}, "error": null}
{"id": "batch_req_...", "custom_id": "a", "response": null, "error": {"code": "batch_expired", "message": "..."}}
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any, BinaryIO, Literal

from rtlang.serve.json_parts import json_bytes, json_text

ENDPOINTS = ("/v1/chat/completions", "/v1/completions", "/v1/responses", "/v1/messages")
"""The routes that requests may name, if the server has them."""
MAX_LINES = 50_000
MAX_ERRORS = 100
"""Errors of one file that are reported."""
MAX_CUSTOM_ID = 512
_NAMES = ("custom_id", "method", "url", "body")
_UNRUN = {
    "batch_expired": "This request could not be executed before the completion window expired.",
    "batch_cancelled": "This request was not executed because this batch was cancelled.",
}
UnrunCode = Literal["batch_expired", "batch_cancelled"]
"""Why a request has no response."""


class LineError(Exception):
    """A line of a batch file is not a request."""

    def __init__(self, line: int, code: str, message: str, param: str | None = None) -> None:
        super().__init__(f"line {line}: {message}")
        self.line, self.code, self.message, self.param = line, code, message, param

    def to_plain(self) -> dict[str, Any]:
        """The error in the `errors` of a batch."""
        return {"code": self.code, "line": self.line, "message": self.message, "param": self.param}


@dataclass(frozen=True, slots=True)
class BatchLine:
    """A request.

    Attributes:
        number: of the line, from 1.
        body: of the request, as JSON text.
        num_choices: how many texts the request asks for, as far as its fields tell.
    """

    number: int
    custom_id: str
    url: str
    body: bytes
    num_choices: int = 1

    @property
    def key(self) -> bytes:
        """Identifies the line in its file."""
        return key_of(self.custom_id)


@dataclass(frozen=True, slots=True)
class LineResult:
    """The response to a line.

    Attributes:
        body: JSON text without line breaks.
        retry_after_s: when the server asks to try again; None if it does not.
    """

    status: int
    request_id: str
    body: bytes
    retry_after_s: float | None = None

    @property
    def is_success(self) -> bool:
        """Whether it belongs to the output file."""
        return 200 <= self.status < 300


def key_of(custom_id: str) -> bytes:
    """A digest of bounded length."""
    return hashlib.blake2b(custom_id.encode(errors="surrogatepass"), digest_size=16).digest()


def read_line(number: int, data: bytes, urls: tuple[str, ...]) -> BatchLine:
    """Read a line.

    Args:
        urls: the routes that a request may name.
    Raises:
        LineError: it is not a request for one of them; names the field.
    """
    try:
        plain = json.loads(data)
    except (ValueError, RecursionError):
        raise LineError(number, "invalid_json_line", "expected a JSON object on one line") from None
    if not isinstance(plain, Mapping):
        raise LineError(number, "invalid_json_line", f"expected a JSON object, not {type(plain).__name__}")
    for name in plain:
        if name not in _NAMES:
            raise LineError(number, "invalid_request", f"{name[:80]}: expected only {', '.join(_NAMES)}", name[:80])
    custom_id, body, url = plain.get("custom_id"), plain.get("body"), plain.get("url")
    if not isinstance(custom_id, str) or not 1 <= len(custom_id) <= MAX_CUSTOM_ID:
        message = f"custom_id: expected text of 1 to {MAX_CUSTOM_ID} characters"
        raise LineError(
            number, "missing_required_parameter" if custom_id is None else "invalid_custom_id", message, "custom_id"
        )
    if plain.get("method") != "POST":
        raise LineError(number, "invalid_method", 'method: expected "POST"', "method")
    if url not in urls:
        raise LineError(number, "invalid_url", f"url: expected {' or '.join(urls)}", "url")
    if not isinstance(body, Mapping):
        raise LineError(number, "missing_required_parameter", "body: expected an object", "body")
    for name in ("stream", "background"):
        if body.get(name) not in (None, False):
            raise LineError(
                number, "invalid_request", f"body.{name}: a request of a batch cannot have it", f"body.{name}"
            )
    n = body.get("n")
    return BatchLine(number, custom_id, str(url), json_bytes(body), n if isinstance(n, int) and n > 0 else 1)


class LineReader:
    """Reads the requests of a file in slices, so that others have turns between them.

    Args:
        file: closed by the caller.
    """

    def __init__(self, file: BinaryIO, urls: tuple[str, ...], max_line_bytes: int) -> None:
        self._file, self._urls, self._max_line_bytes = file, urls, max_line_bytes
        self._number = 0

    def slice(self, num_bytes: int) -> list[BatchLine | LineError]:
        """The next lines, of about so many bytes together; empty at the end. Blank lines are passed over."""
        found: list[BatchLine | LineError] = []
        size = 0
        while size < num_bytes:
            data = self._file.readline(self._max_line_bytes + 1)
            if not data:
                break
            self._number += 1
            size += len(data)
            if len(data) > self._max_line_bytes:
                size += self._pass_line()
                message = f"the line is longer than {self._max_line_bytes} bytes"
                found.append(LineError(self._number, "line_too_long", message))
            elif data.strip():
                try:
                    found.append(read_line(self._number, data, self._urls))
                except LineError as error:
                    found.append(error)
            elif size >= num_bytes and not found:
                size = 0  # blank lines only: an empty slice would mean the end
        return found

    def _pass_line(self) -> int:
        size = 0
        while data := self._file.readline(1 << 20):
            size += len(data)
            if data.endswith(b"\n"):
                break
        return size


class FileCheck:
    """Checks all lines of a file: each is a request, no custom_id comes twice, and there are not too many.

    Attributes:
        errors: the first `MAX_ERRORS` errors.
        total: number of requests.
    """

    def __init__(self, max_lines: int = MAX_LINES) -> None:
        self.errors: list[LineError] = []
        self.total = 0
        self._max_lines = max_lines
        self._seen: set[bytes] = set()

    @property
    def is_over(self) -> bool:
        """Whether enough errors are known to refuse the file."""
        return len(self.errors) >= MAX_ERRORS or self.total > self._max_lines

    def add(self, lines: list[BatchLine | LineError]) -> None:
        """Check the next lines."""
        for line in lines:
            if self.is_over:
                return
            if isinstance(line, LineError):
                self.errors.append(line)
                continue
            self.total += 1
            if self.total > self._max_lines:
                message = f"expected at most {self._max_lines} requests"
                self.errors.append(LineError(line.number, "too_many_requests", message))
            elif line.key in self._seen:
                message = f"custom_id {line.custom_id[:80]!r} was used by an earlier line"
                self.errors.append(LineError(line.number, "duplicate_custom_id", message, "custom_id"))
            self._seen.add(line.key)


def result_line(line_id: str, custom_id: str, result: LineResult) -> bytes:
    """The line for a response."""
    before = json_text({"id": line_id, "custom_id": custom_id})[:-1]
    response = json_text({"status_code": result.status, "request_id": result.request_id})[:-1]
    return (
        f'{before},"response":{response},"body":'.encode(errors="replace")
        + (result.body or b"null")
        + b'},"error":null}\n'
    )


def unrun_line(line_id: str, custom_id: str, code: UnrunCode) -> bytes:
    """The line for a request that was not run."""
    error = {"code": code, "message": _UNRUN[code]}
    return json_bytes({"id": line_id, "custom_id": custom_id, "response": None, "error": error}) + b"\n"


def keys_in(lines: Iterator[bytes]) -> Iterator[bytes]:
    """The keys of the requests that have a result in these lines; a line of another form is passed over."""
    return (key for key, _ in results_in(lines))


def results_in(lines: Iterator[bytes]) -> Iterator[tuple[bytes, object]]:
    """The key of each request that has a result in these lines, and the body of its response; None without a response."""
    for data in lines:
        try:
            plain = json.loads(data)
            response = plain.get("response")
            yield key_of(plain["custom_id"]), response.get("body") if isinstance(response, Mapping) else None
        except (ValueError, KeyError, TypeError, AttributeError, RecursionError):
            continue
