"""The state of the innermost running program body."""

from __future__ import annotations

from contextvars import ContextVar
from typing import Any

running: ContextVar[Any] = ContextVar("rtlang_state", default=None)
"""The `State`, in the context of the body; None outside of programs."""
