"""The clients need environments of their own, which take minutes to build: they run only with `-m clients`."""

from __future__ import annotations

from pathlib import Path

import pytest


def pytest_ignore_collect(collection_path: Path, config: pytest.Config) -> bool | None:
    return True if "clients" not in config.getoption("markexpr") else None
