"""Shows a running program: in a notebook as HTML that is replaced at most ten times a second, elsewhere as text on standard output."""

from __future__ import annotations

import sys
import time
from collections.abc import Callable
from dataclasses import dataclass
from importlib import import_module
from typing import Any, Protocol, TextIO

from rtlang.contract.errors import RtlangError
from rtlang.contract.pictures.page import run_fragment
from rtlang.contract.process.terminal_text import terminal_text
from rtlang.contract.request_graph import Text, choices_of
from rtlang.lang.sessions.session import Session
from rtlang.lang.views.notebook import shell
from rtlang.lang.views.run_records import ended, record_of

INTERVAL_S = 0.1
"""Seconds between two updates in a notebook, at least ..."""

MOST_SHARE = 0.2
"""... and so many more that drawing takes at most this share of the time."""


class LiveDisplay(Protocol):
    """Follows one run. Owned by the code that reads its events."""

    def add(self, node_id: int, choice: int, text: str) -> None:
        """A completion has grown."""

    def end_node(self, node_id: int, error: RtlangError | None = None) -> None:
        """A node has ended."""

    def due_s(self) -> float | None:
        """Seconds until `update` should be called; None if there is nothing new."""

    def update(self) -> None:
        """Show new text."""

    def end(self, error: BaseException | None, value: Any) -> None:
        """Show the end of the run."""


def live_display(session: Session) -> LiveDisplay:
    """A display in the notebook, if this process is one, or else on standard output."""
    display = _notebook()
    return TerminalDisplay(session, sys.stdout) if display is None else NotebookDisplay(session, display)


def _notebook() -> Any:
    """The module `IPython.display`, if code runs in a notebook; a plain IPython terminal has no kernel."""
    return import_module("IPython.display") if hasattr(shell(), "kernel") else None


class NotebookDisplay:
    """Replaces one output of a notebook. `display` is the module `IPython.display`; `clock` returns seconds."""

    def __init__(self, session: Session, display: Any, clock: Callable[[], float] = time.monotonic) -> None:
        self._session, self._display, self._clock = session, display, clock
        self._handle: Any = None
        self._partial: dict[tuple[int, int], str] = {}
        self._is_new = True
        self._next = clock()

    def add(self, node_id: int, choice: int, text: str) -> None:
        """See `LiveDisplay`."""
        key = (node_id, choice)
        self._partial[key] = self._partial.get(key, "") + text
        self._is_new = True

    def end_node(self, node_id: int, error: RtlangError | None = None) -> None:
        """See `LiveDisplay`."""
        self._is_new = True

    def due_s(self) -> float | None:
        """See `LiveDisplay`."""
        return max(0.0, self._next - self._clock()) if self._is_new else None

    def update(self) -> None:
        """See `LiveDisplay`."""
        started = self._clock()
        self._show(run_fragment(record_of(self._session, self._partial)))
        took = self._clock() - started
        self._next = started + max(INTERVAL_S, took / MOST_SHARE)
        self._is_new = False

    def end(self, error: BaseException | None, value: Any) -> None:
        """See `LiveDisplay`."""
        self._show(run_fragment(ended(record_of(self._session, self._partial), error, value)))

    def _show(self, html: str) -> None:
        shown = self._display.HTML(html)
        if self._handle is None:
            self._handle = self._display.display(shown, display_id=True)
        else:
            self._handle.update(shown)


@dataclass(slots=True)
class _Completion:
    text: str = ""
    num_printed: int = 0
    is_done: bool = False


class TerminalDisplay:
    """Prints texts as they come. Where several grow at once, one is printed and the others wait for its end."""

    def __init__(self, session: Session, out: TextIO) -> None:
        self._session, self._out = session, out
        self._open: dict[tuple[int, int], _Completion] = {}
        self._front: tuple[int, int] | None = None

    def add(self, node_id: int, choice: int, text: str) -> None:
        """See `LiveDisplay`."""
        self._open.setdefault((node_id, choice), _Completion()).text += text

    def end_node(self, node_id: int, error: RtlangError | None = None) -> None:
        """See `LiveDisplay`."""
        if error is not None:
            self._open.setdefault((node_id, 0), _Completion()).text += f"[failed: {error.message}]"
        for key, completion in self._open.items():
            if key[0] == node_id:
                completion.is_done = True

    def due_s(self) -> float | None:
        """See `LiveDisplay`."""
        return 0.0 if self._has_news() else None

    def update(self) -> None:
        """See `LiveDisplay`."""
        while self._open:
            if self._front is None:
                self._front = min(self._open)  # in the order of the program
                self._out.write(terminal_text(f"{self._label(*self._front)}: "))
            front = self._open[self._front]
            self._out.write(terminal_text(front.text[front.num_printed :]))
            front.num_printed = len(front.text)
            if not front.is_done:
                break
            self._out.write("\n")
            del self._open[self._front]
            self._front = None
        self._out.flush()

    def end(self, error: BaseException | None, value: Any) -> None:
        """See `LiveDisplay`."""
        for completion in self._open.values():
            completion.is_done = True
        self.update()
        if error is not None:
            self._out.write(terminal_text(f"{type(error).__name__}: {error}\n"))
        self._out.flush()

    def _has_news(self) -> bool:
        if self._front is None:
            return bool(self._open)
        front = self._open[self._front]
        return front.is_done or front.num_printed < len(front.text)

    def _label(self, node_id: int, choice: int) -> str:
        recorded = self._session.recording.nodes
        node = recorded.node(node_id)
        name = None if isinstance(node, Text) else node.name
        if node_id in recorded.names_of_reasoning:
            name = f"reasoning of {recorded.names_of_reasoning[node_id] or '(unnamed)'}"
        elif recorded.checked_at(node_id) != node_id:  # an attempt
            name = recorded.path_at(node_id)
        return (name or "(unnamed)") + (f"[{choice}]" if choices_of(node) > 1 else "")
