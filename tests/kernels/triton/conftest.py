"""These tests need triton, which some platforms lack; they need no GPU."""

from __future__ import annotations

from importlib.util import find_spec

collect_ignore_glob = [] if find_spec("triton") else ["test_*.py"]
