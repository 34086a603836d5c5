"""Reads one file and a few short fields from a multipart form, in bounded memory and on threads; the file is written as it arrives."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from functools import partial
from typing import Any

from python_multipart.exceptions import FormParserError
from python_multipart.multipart import MultipartParser, parse_options_header
from starlette.requests import Request

from rtlang.contract.errors import ParameterError
from rtlang.serve.http.errors import HttpError

FILE = "file"
"""The name of the part that is the file."""
_MAX_PARTS = 16
_MAX_VALUE = 1024
_MAX_HEADER = 4096
_BUFFER_BYTES = 1 << 20


class FormUpload:
    """The form of one request.

    Attributes:
        fields: texts by name.
        filename: of the file; None before it has come.
    """

    def __init__(self) -> None:
        self.fields: dict[str, str] = {}
        self.filename: str | None = None
        self._buffer: list[bytes] = []
        self._num_bytes = self._num_parts = 0
        self._header, self._value = b"", b""
        self._headers: dict[bytes, bytes] = {}
        self._part: str | None = None
        self._text = b""
        self._is_whole = False

    async def read(
        self,
        request: Request,
        limit: int,
        write: Callable[[bytes], object],
        run: Callable[[Callable[[], None]], Awaitable[object]],
    ) -> None:
        """Read the body of a request.

        Args:
            limit: bytes of the file.
            write: takes the next bytes of the file, on a thread.
            run: runs a part of the work on a thread.
        Raises:
            HttpError: it is not a multipart form (415, 400), or the file is too long (413).
            ParameterError: a field is too long or comes twice; names it.
            starlette.requests.ClientDisconnect: the client left.
        """
        kind, options = parse_options_header(request.headers.get("content-type", ""))
        if kind != b"multipart/form-data" or not options.get(b"boundary"):
            message = "expected Content-Type: multipart/form-data with a boundary"
            raise HttpError(415, message, code="content_type", param=FILE)
        declared = request.headers.get("content-length", "0")
        if declared.isdecimal() and int(declared) > limit + _MAX_PARTS * (_MAX_VALUE + 2 * _MAX_HEADER):
            raise _too_long(limit)
        try:
            parser = MultipartParser(options[b"boundary"], self._callbacks())
        except FormParserError as error:
            raise _malformed(error) from None
        chunks: list[bytes] = []
        num_waiting = 0
        async for chunk in request.stream():
            chunks.append(chunk)
            num_waiting += len(chunk)
            if num_waiting >= _BUFFER_BYTES:
                await run(partial(self._parse, parser, chunks, limit, write))
                chunks, num_waiting = [], 0
        await run(partial(self._parse, parser, chunks, limit, write, is_end=True))

    def _parse(
        self,
        parser: MultipartParser,
        chunks: list[bytes],
        limit: int,
        write: Callable[[bytes], object],
        *,
        is_end: bool = False,
    ) -> None:
        """Parse the next bytes of the form, and write the bytes of the file."""
        try:
            parser.write(b"".join(chunks))
            if is_end:
                parser.finalize()
        except FormParserError as error:
            raise _malformed(error) from None
        if is_end and not self._is_whole:
            raise _malformed("its end is missing")
        data = b"".join(self._buffer)
        self._buffer.clear()
        self._num_bytes += len(data)
        if self._num_bytes > limit:
            raise _too_long(limit)
        if data:
            write(data)

    def _callbacks(self) -> Any:
        return {
            "on_part_begin": self._begin_part,
            "on_header_field": self._header_field,
            "on_header_value": self._header_value,
            "on_header_end": self._end_header,
            "on_headers_finished": self._end_headers,
            "on_part_data": self._part_data,
            "on_part_end": self._end_part,
            "on_end": self._end,
        }

    def _begin_part(self) -> None:
        self._num_parts += 1
        if self._num_parts > _MAX_PARTS:
            raise FormParserError(f"expected at most {_MAX_PARTS} parts")
        self._headers, self._header, self._value = {}, b"", b""
        self._part, self._text = None, b""

    def _header_field(self, data: bytes, start: int, end: int) -> None:
        self._header = _grown(self._header, data[start:end], _MAX_HEADER)

    def _header_value(self, data: bytes, start: int, end: int) -> None:
        self._value = _grown(self._value, data[start:end], _MAX_HEADER)

    def _end_header(self) -> None:
        self._headers[self._header.lower()] = self._value
        self._header, self._value = b"", b""

    def _end_headers(self) -> None:
        kind, options = parse_options_header(self._headers.get(b"content-disposition", b""))
        name = options.get(b"name", b"").decode("utf-8", "replace")
        if kind != b"form-data" or not name:
            raise FormParserError("a part has no name")
        if name in self.fields or (name == FILE and self.filename is not None):
            raise ParameterError(name[:80], "...", "given twice")
        self._part = name
        if name == FILE:
            if b"filename" not in options:
                raise ParameterError(FILE, "...", "expected a file with a filename, not text")
            self.filename = options[b"filename"].decode("utf-8", "replace")

    def _part_data(self, data: bytes, start: int, end: int) -> None:
        piece = data[start:end]
        if self._part == FILE:
            self._buffer.append(piece)
        elif len(self._text) + len(piece) > _MAX_VALUE:
            raise ParameterError((self._part or "")[:80], "...", f"expected at most {_MAX_VALUE} bytes")
        else:
            self._text += piece

    def _end_part(self) -> None:
        if self._part is not None and self._part != FILE:
            self.fields[self._part] = self._text.decode("utf-8", "replace")

    def _end(self) -> None:
        self._is_whole = True


def _grown(before: bytes, piece: bytes, limit: int) -> bytes:
    if len(before) + len(piece) > limit:
        raise FormParserError(f"a header of a part is longer than {limit} bytes")
    return before + piece


def _malformed(reason: object) -> HttpError:
    return HttpError(400, f"the form is malformed: {reason}", code="form", param=FILE)


def _too_long(limit: int) -> HttpError:
    return HttpError(413, f"the file is longer than {limit} bytes", code="body_too_large", param=FILE)
