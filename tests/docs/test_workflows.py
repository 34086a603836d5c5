"""The workflows of hosted CI are valid, cover every test and every supported Python, and install what the package declares."""

from __future__ import annotations

import re
import tomllib
from pathlib import Path
from typing import Any

import yaml

ROOT = Path(__file__).parents[2]
PROJECT = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]
JOBS: dict[str, Any] = yaml.safe_load((ROOT / ".github" / "workflows" / "ci.yml").read_text(encoding="utf-8"))["jobs"]


def commands_of(job: str) -> str:
    return "\n".join(step.get("run", "") for step in JOBS[job]["steps"])


def test_there_is_a_job_for_everything_that_must_hold() -> None:
    assert JOBS.keys() == {"lint-and-types", "unit", "slow", "docs", "wheels"}
    assert all(f"\n{tool}" in commands_of("lint-and-types") for tool in ("ruff format --check", "ruff check", "mypy"))
    assert "mkdocs build --strict" in commands_of("docs")


def test_every_test_is_in_exactly_one_part() -> None:
    parts = [part["tests"].split() for part in JOBS["unit"]["strategy"]["matrix"]["part"]]
    named = [path for part in parts for path in part if path.startswith("tests/")]
    (rest,) = (part for part in parts if part[0] == "tests")
    assert sorted(rest[1:]) == sorted(f"--ignore={path}" for path in named)
    assert len(set(named)) == len(named)
    assert [path for path in named if not (ROOT / path).is_dir()] == []
    assert '-m "not slow"' in commands_of("unit")
    assert "-m slow" in commands_of("slow")


def test_every_supported_python_is_tested() -> None:
    low, high = re.fullmatch(r">=3\.(\d+),<3\.(\d+)", PROJECT["requires-python"]).groups()  # type: ignore[union-attr]
    supported = [f"3.{minor}" for minor in range(int(low), int(high))]
    assert JOBS["unit"]["strategy"]["matrix"]["python"] == supported
    assert JOBS["wheels"]["strategy"]["matrix"]["python"] == supported


def test_the_documentation_is_built_with_the_declared_tools() -> None:
    installed = re.findall(r'"([^"]+)"', commands_of("docs"))
    assert installed == PROJECT["optional-dependencies"]["docs"]


def test_every_hook_before_a_commit_is_a_local_tool() -> None:
    hooks = yaml.safe_load((ROOT / ".pre-commit-config.yaml").read_text(encoding="utf-8"))["repos"]
    assert [repo["repo"] for repo in hooks] == ["local"]
    assert all(hook["language"] == "system" for hook in hooks[0]["hooks"])
