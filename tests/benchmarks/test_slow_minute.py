"""The key that makes a minute slow is named by log lines alone and by metrics alone."""

from __future__ import annotations

import json
import logging
from collections.abc import Iterator

import pytest

from rtlang.contract.config import ServeConfig
from rtlang.contract.process.logs import REQUEST_LOGGER, JsonFormatter
from rtlang.runtime.runtime import Runtime
from rtlang.serve.server import TokenizerInfo, running_server
from rtlang_bench.slow_minute import CAUSES, judge_lines, judge_metrics, keys_text, play, play_all


def line(principal: str, **work_s: float) -> str:
    return json.dumps({"logger": "rtlang.requests", "principal": principal, "work_s": work_s})


def test_lines_add_up_and_other_lines_do_not_count() -> None:
    lines = [
        line("a", steps=1.0),
        line("b", steps=0.4),
        line("b", tokenize=0.8),
        "no JSON",
        '{"logger": "other"}',
        "[]",
    ]
    assert judge_lines(lines) == ("b", "tokenize")
    assert judge_lines([line("a")]) is None


def test_only_what_was_added_between_two_readings_counts() -> None:
    name = "rtlang_engine_principal_work_seconds_total"
    before = f'{name}{{kind="steps",principal="a"}} 100\n'
    after = before.replace("100", "101") + f'{name}{{kind="constraint",principal="b"}} 2\n'
    assert judge_metrics(before, after) == ("b", "constraint")
    assert judge_metrics(after, after) is None


class Server(logging.Handler):
    """A server in this process, and the lines of its requests."""

    def __init__(self, url: str) -> None:
        super().__init__()
        self.http_url, self.lines = url.replace("ws", "http", 1), list[str]()

    def emit(self, record: logging.LogRecord) -> None:
        self.lines.append(JsonFormatter().format(record))


@pytest.fixture(scope="module")
def server() -> Iterator[Server]:
    logger = logging.getLogger(REQUEST_LOGGER)
    level = logger.level
    with (
        Runtime(dtype="float32", num_pages=300) as runtime,
        running_server(
            runtime, ServeConfig(port=0, keys=keys_text()), TokenizerInfo("tiny"), metrics=runtime.metrics
        ) as url,
    ):
        server = Server(url)
        logger.addHandler(server)
        logger.setLevel(logging.INFO)
        yield server
        logger.removeHandler(server)
        logger.setLevel(level)


@pytest.mark.parametrize("cause", ["tokenization", "values"])
def test_the_guilty_key_is_found(server: Server, cause: str) -> None:
    verdict = play(server, cause, "cleo", 0.5)
    assert verdict.is_right, str(verdict)


@pytest.mark.long
def test_the_guilty_key_of_each_cause_is_found_over_processes() -> None:
    verdicts = list(play_all(5.0, 7))
    assert [str(verdict) for verdict in verdicts if not verdict.is_right] == []
    assert len(verdicts) == len(CAUSES)
