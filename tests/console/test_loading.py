"""The bar of the loader's records: there on a terminal, gone afterwards, and the log as it was."""

from __future__ import annotations

import io
import logging
from typing import Any

import pytest
from rich.console import Console

from rtlang.console import loading
from rtlang.console.loading import LOADER, RESUME_S, connected, show_loading
from rtlang.model import loader

logger = logging.getLogger(LOADER)


def make_console(*, is_terminal: bool) -> Console:
    return Console(file=io.StringIO(), force_terminal=is_terminal, width=80, force_interactive=is_terminal)


def written(console: Console) -> str:
    assert isinstance(console.file, io.StringIO)
    return console.file.getvalue()


def load() -> None:
    logger.info("the weights need 3 GiB")
    for percent in range(0, 101, 20):
        logger.info("%d%% loaded", percent, extra={"fraction": percent / 100})


def test_the_bar_listens_to_the_loader() -> None:
    assert loader.logger.name == LOADER


def test_a_terminal_sees_the_bar_move_to_its_end() -> None:
    console = make_console(is_terminal=True)
    with show_loading(console):
        load()
    assert "loading weights" in written(console)
    assert "100%" in written(console)
    assert written(console).endswith("\x1b[2K")  # the bar's line is taken away


def test_a_quick_load_and_a_pipe_see_nothing() -> None:
    for console in (make_console(is_terminal=True), make_console(is_terminal=False)):
        with show_loading(console):
            logger.info("the weights need 3 GiB")
            if not console.is_terminal:
                load()
        assert written(console) == ""


@pytest.mark.parametrize("level", [logging.WARNING, logging.INFO])
def test_the_log_shows_what_it_showed_before(level: int, caplog: pytest.LogCaptureFixture) -> None:
    root = logging.getLogger()
    before = root.level
    root.setLevel(level)
    try:
        with show_loading(make_console(is_terminal=True)):
            load()
        assert bool(caplog.records) == (level == logging.INFO)
        assert (logger.level, logger.propagate, logger.handlers) == (logging.NOTSET, True, [])
    finally:
        root.setLevel(before)


def test_a_load_that_fails_leaves_no_bar() -> None:
    console = make_console(is_terminal=True)

    def fail() -> None:
        with show_loading(console):
            logger.info("half", extra={"fraction": 0.5})
            raise RuntimeError

    with pytest.raises(RuntimeError):
        fail()
    assert logger.handlers == []
    assert written(console).endswith("\x1b[2K")


@pytest.mark.parametrize(("urls", "resume_s"), [(["ray://demo"], None), (["ws://a", "ws://b"], RESUME_S)])
def test_a_fleet_on_ray_is_not_asked_to_resume(
    urls: list[str], resume_s: float | None, monkeypatch: pytest.MonkeyPatch
) -> None:
    given: list[Any] = []
    monkeypatch.setattr(loading, "connect", lambda *args, **options: given.append((args, options)))
    connected(urls, "key")
    assert given == [((urls,), {"api_key": "key", "resume_s": resume_s})]
