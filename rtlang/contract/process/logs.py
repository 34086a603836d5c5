"""Log lines of the processes of a command: as text, or as one JSON object per line for collectors."""

from __future__ import annotations

import json
import logging
from collections.abc import Iterator, Mapping
from datetime import UTC, datetime
from enum import StrEnum

from rtlang.contract.process.log_limit import RepeatFilter
from rtlang.contract.process.log_writer import LogWriter

REQUEST_LOGGER = "rtlang.requests"
"""The logger of the one line that a server writes for each request, at level INFO."""
_OWN = frozenset(vars(logging.makeLogRecord({}))) | {"message", "asctime", "taskName"}


class LogFormat(StrEnum):
    """The form of a log line."""

    TEXT = "text"
    JSON = "json"


class JsonFormatter(logging.Formatter):
    """One object per record: time (UTC), level, logger, message, the fields given as `extra`, and the traceback of an exception.

    Args:
        process: the name of a process other than the main one, for a field of this name.
    """

    def __init__(self, process: str | None = None) -> None:
        super().__init__()
        self._fields: dict[str, object] = {} if process is None else {"process": process}

    def format(self, record: logging.LogRecord) -> str:
        """The line."""
        line: dict[str, object] = {
            "time": datetime.fromtimestamp(record.created, UTC).isoformat(timespec="milliseconds"),
            "level": record.levelname,
            "logger": record.name,
            "message": record.getMessage(),
        } | self._fields
        line |= {name: value for name, value in _extra(record).items() if name not in line}
        if record.exc_info:
            line["exception"] = self.formatException(record.exc_info)
        return json.dumps(line, ensure_ascii=False, default=str)


class TextFormatter(logging.Formatter):
    """A line of text for each record; the fields given as `extra` follow the message of a request as `name=value`.

    Args:
        process: the name of a process other than the main one.
    """

    def __init__(self, process: str | None = None) -> None:
        name = "" if process is None else f" [{process}]"
        super().__init__(f"%(asctime)s %(levelname)s %(name)s{name}: %(message)s")

    def format(self, record: logging.LogRecord) -> str:
        """The line."""
        line = super().format(record)
        if record.name != REQUEST_LOGGER:
            return line
        return " ".join([line, *_pairs("", _extra(record))])


def _extra(record: logging.LogRecord) -> dict[str, object]:
    """The fields given as `extra`; a library that is loaded may add some of its own to all records, which begin with an underscore."""
    return {name: value for name, value in vars(record).items() if name not in _OWN and not name.startswith("_")}


def _pairs(prefix: str, fields: Mapping[str, object]) -> Iterator[str]:
    for name, value in fields.items():
        if isinstance(value, Mapping):
            yield from _pairs(f"{prefix}{name}.", value)
        else:
            text = str(value)
            is_plain = text.isascii() and text.isprintable() and not set(text) & set(' "=')
            yield f"{prefix}{name}={text if is_plain else json.dumps(text)}"


class _LineLimit(RepeatFilter):
    """Limits lines that repeat themselves, but for those of requests."""

    def filter(self, record: logging.LogRecord) -> bool:
        """Whether the record is written."""
        return record.name == REQUEST_LOGGER or super().filter(record)


def configure_logs(level: int | str, *, is_json: bool, process: str | None = None) -> None:
    """Write log records from `level` on, and lines of requests, to standard error, with the name of a process other than the main one."""
    handler = LogWriter()
    handler.setFormatter(JsonFormatter(process) if is_json else TextFormatter(process))
    handler.addFilter(_LineLimit(burst=20))
    logging.basicConfig(level=level, handlers=[handler])
    logging.getLogger(REQUEST_LOGGER).setLevel(logging.INFO)


def writes_json() -> bool:
    """Whether this process writes its log records as JSON objects."""
    return any(isinstance(handler.formatter, JsonFormatter) for handler in logging.getLogger().handlers)
