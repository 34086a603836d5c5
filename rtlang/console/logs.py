"""Log lines of the command: as text, or as one JSON object per line for collectors."""

from __future__ import annotations

import json
import logging
from datetime import UTC, datetime
from enum import StrEnum

from rtlang.contract.log_limit import RepeatFilter

_OWN = frozenset(vars(logging.makeLogRecord({}))) | {"message", "asctime", "taskName"}


class LogFormat(StrEnum):
    """The form of a log line."""

    TEXT = "text"
    JSON = "json"


class JsonFormatter(logging.Formatter):
    """One object per record: time (UTC), level, logger, message, the fields given as `extra`, and the traceback of an exception."""

    def format(self, record: logging.LogRecord) -> str:
        """The line."""
        line: dict[str, object] = {
            "time": datetime.fromtimestamp(record.created, UTC).isoformat(timespec="milliseconds"),
            "level": record.levelname,
            "logger": record.name,
            "message": record.getMessage(),
        }
        line |= {name: value for name, value in vars(record).items() if name not in _OWN and name not in line}
        if record.exc_info:
            line["exception"] = self.formatException(record.exc_info)
        return json.dumps(line, ensure_ascii=False, default=str)


def configure_logs(*, is_verbose: bool, is_json: bool) -> None:
    """Write log records to standard error: warnings and errors, or also information."""
    handler = logging.StreamHandler()
    handler.setFormatter(
        JsonFormatter() if is_json else logging.Formatter("%(asctime)s %(levelname)s %(name)s: %(message)s")
    )
    handler.addFilter(RepeatFilter(burst=20))
    logging.basicConfig(level=logging.INFO if is_verbose else logging.WARNING, handlers=[handler])
