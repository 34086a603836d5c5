"""`rtlang batch` with a model in its process and against a server: the same results, exit codes, and errors on one line."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

from typer.testing import CliRunner

from rtlang.__main__ import app
from tests.support.programs.fake_target import FakeTarget
from tests.support.servers.serving import serving


def written(path: Path, count: int, **more: Any) -> Path:
    rows = [
        {
            "custom_id": f"r{i}",
            "method": "POST",
            "url": "/v1/completions",
            "body": {"prompt": f"p{i}", "max_tokens": 2} | more,
        }
        for i in range(count)
    ]
    path.write_text("\n".join(map(json.dumps, rows)))
    return path


def ran(*arguments: object) -> tuple[int, str]:
    result = CliRunner().invoke(app, ["batch", *map(str, arguments)])
    return result.exit_code, result.output


def texts(path: Path) -> dict[str, str]:
    rows = [json.loads(line) for line in path.read_text().splitlines()]
    return {row["custom_id"]: row["response"]["body"]["choices"][0]["text"] for row in rows}


def test_a_file_runs_against_a_server_and_goes_on(tmp_path: Path) -> None:
    source, out = written(tmp_path / "in", 30), tmp_path / "out"
    with FakeTarget(lambda call: f"[{call.prompt}]") as target, serving(target, api_key="k" * 20) as server:  # type: ignore[arg-type]
        assert ran(source, out, "--url", server.url, "--api-key", "k" * 20) == (
            0,
            "30 requests: 0 done before, 30 completed, 0 failed\n",
        )
        assert texts(out) == {f"r{i}": f"[p{i}]" for i in range(30)}
        lines = out.read_text().splitlines(keepends=True)
        out.write_text("".join(lines[:10]) + lines[10][:20])
        assert "10 done before, 20 completed" in ran(source, out, "--url", server.url, "--api-key", "k" * 20)[1]
        assert len(texts(out)) == 30
        bad = written(tmp_path / "bad", 2, top_p=7)
        code, shown = ran(bad, tmp_path / "bad-out", "--url", server.url, "--api-key", "k" * 20)
        assert (code, "2 requests failed" in shown) == (1, True)
        assert (tmp_path / "bad-out.errors.jsonl").read_text().count('"param":"top_p"') == 2


def test_mistakes_are_one_line(tmp_path: Path) -> None:
    written(tmp_path / "in", 1)
    (tmp_path / "broken").write_text("{}")
    for arguments, message in (
        (("in", "in"), "three different files"),
        (("in", "out", "--url", "ws://127.0.0.1:9", "--num-pages", "5"), "cannot be combined"),
        (("in", "out", "--url", "ws://127.0.0.1:9"), "not reachable"),
        (("none", "out", "--url", "ws://127.0.0.1:9"), "No such file"),
        (("broken", "out", "--url", "ws://127.0.0.1:9"), "line 1"),
    ):
        code, shown = ran(*(tmp_path / each if each in ("in", "out", "none", "broken") else each for each in arguments))
        assert code == 1
        assert message in " ".join(shown.split())


def test_a_file_runs_with_a_model_in_the_process(tmp_path: Path) -> None:
    source, out = written(tmp_path / "in", 6, temperature=0), tmp_path / "out"
    assert ran(source, out, "--num-pages", "200") == (0, "6 requests: 0 done before, 6 completed, 0 failed\n")
    assert set(texts(out)) == {f"r{i}" for i in range(6)}
