"""Log lines of the processes of a command: as text, or as one JSON object per line for collectors."""

from __future__ import annotations

import json
import logging
from datetime import UTC, datetime
from enum import StrEnum

from rtlang.contract.process.log_limit import RepeatFilter

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
        line |= {name: value for name, value in vars(record).items() if name not in _OWN and name not in line}
        if record.exc_info:
            line["exception"] = self.formatException(record.exc_info)
        return json.dumps(line, ensure_ascii=False, default=str)


def configure_logs(level: int | str, *, is_json: bool, process: str | None = None) -> None:
    """Write log records from `level` on to standard error, with the name of a process other than the main one."""
    handler = logging.StreamHandler()
    name = "" if process is None else f" [{process}]"
    text = logging.Formatter(f"%(asctime)s %(levelname)s %(name)s{name}: %(message)s")
    handler.setFormatter(JsonFormatter(process) if is_json else text)
    handler.addFilter(RepeatFilter(burst=20))
    logging.basicConfig(level=level, handlers=[handler])


def writes_json() -> bool:
    """Whether this process writes its log records as JSON objects."""
    return any(isinstance(handler.formatter, JsonFormatter) for handler in logging.getLogger().handlers)
