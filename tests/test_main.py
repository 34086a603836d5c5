"""The command line from outside: what is printed where, and with which exit code."""

from __future__ import annotations

import json
import os
import re
import signal
import subprocess
import sys
import urllib.request
from pathlib import Path

import jsonschema
import pytest
from typer.testing import CliRunner

import rtlang
from rtlang.__main__ import CHECK_SCHEMA, app
from rtlang.serve.server import running_server
from tests.support.models.tiny_models import make_checkpoint
from tests.support.programs.fake_target import FakeTarget, by_name
from tests.support.servers.free_port import free_port

ROOT = Path(__file__).parents[1]
PROGRAMS = """
import rtlang as rt

@rt.program
def portrait(s, name: str, count: int = 2):
    s += "About " + name + ": "
    forks = s.fork(count)
    for fork in forks:
        fork += rt.gen("trait", max_tokens=4)
    forks.join()
    s += rt.gen("sheet", schema={"type": "object", "properties": {"age": {"type": "integer", "minimum": 0, "maximum": 99}},
        "required": ["age"], "additionalProperties": False}, max_tokens=24)
    s += rt.select("best", ["first", "second"])
    return ["best", s["best"]]

@rt.program
def too_long(s):
    s += rt.gen("start", max_tokens=2)
    s += "x" * 1000
    s += rt.gen("rest", max_tokens=4)

@rt.program
def broken(s):
    s += rt.gen("start", max_tokens=2)
    return 1 // len(s.text("start")[:0])

def plain(s):
    return None
"""


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder with programs.py and a tiny random model."""
    folder = tmp_path_factory.mktemp("cli")
    (folder / "programs.py").write_text(PROGRAMS)
    make_checkpoint(folder / "model")
    return folder


def invoke(folder: Path, *arguments: str) -> tuple[int, str, str]:
    """Exit code, standard output and standard error of a command on the folder's model."""
    settings = ["--model", str(folder / "model"), "--num-pages", "200", "--threads", "1"]
    with_model = arguments[0] in ("run", "check") and "--url" not in arguments and "--model" not in arguments
    result = CliRunner().invoke(app, [*arguments, *(settings if with_model else [])])
    if result.exception is not None and not isinstance(result.exception, SystemExit):
        raise result.exception
    return result.exit_code, result.stdout, result.stderr


def python(*arguments: str, **options: object) -> subprocess.Popen[str]:
    path = ":".join(str(ROOT / part) for part in ("", "kernels", "kernels/benchmarks", "grammars"))
    environment = {**os.environ, "PYTHONPATH": path, "OMP_NUM_THREADS": "1"}
    return subprocess.Popen(
        [sys.executable, *arguments],
        env=environment,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        **options,  # type: ignore[call-overload]
    )


def test_help_and_version_load_nothing_heavy() -> None:
    program = (
        "import contextlib, io, sys; from rtlang.__main__ import main\n"
        "for arguments in (['--help'], ['run', '--help'], ['bench', '--help'], ['--version']):\n"
        "    sys.argv = ['rtlang', *arguments]\n"
        "    with contextlib.redirect_stdout(io.StringIO()) as shown, contextlib.suppress(SystemExit):\n"
        "        main()\n"
        "    assert shown.getvalue().startswith(('Usage: ', 'rtlang ')), shown.getvalue()\n"
        "print([name for name in ('torch', 'transformers', 'numba', 'outlines', 'uvicorn') if name in sys.modules])\n"
    )
    process = python("-c", program)
    output, errors = process.communicate()
    assert (process.returncode, output.strip()) == (0, "[]"), errors


def test_version_is_printed() -> None:
    result = CliRunner().invoke(app, ["--version"])
    assert (result.exit_code, result.output.strip()) == (0, f"rtlang {rtlang.__version__}")


def test_run_shows_every_text_then_the_values_and_what_they_cost(folder: Path) -> None:
    code, output, errors = invoke(
        folder, "run", f"{folder}/programs.py:portrait", "--arg", "name=Ada", "--arg", "count=3"
    )
    assert code == 0, errors
    assert "\x1b" not in output
    texts, values = output.split("\n{", 1)
    assert {"trait[0]:", "trait[1]:", "trait[2]:", "sheet:", "best:"} <= set(re.findall(r"^[\w\[\]]+:", texts, re.M))
    values, _, rest = ("{" + values).partition("\n}\n")
    shown = json.loads(values + "\n}")
    assert len(shown["trait"]) == 3
    assert 0 <= shown["sheet"]["age"] <= 99
    assert shown["best"] in ("first", "second")
    assert rest.splitlines()[0] == f'returned ["best", "{shown["best"]}"]'
    assert re.search(r"^\d+ prompt tokens \(\d+ cached\), \d+ generated in [\d.]+ s, \d+ tok/s$", rest, re.M)


def test_run_with_json_prints_the_values_alone(folder: Path) -> None:
    code, output, _ = invoke(folder, "run", f"{folder}/programs.py:portrait", "-a", "name=Ada", "--json")
    assert code == 0
    assert set(json.loads(output)) == {"trait", "sheet", "best"}


def test_a_journaled_run_is_continued_and_a_finished_one_replayed_without_a_model(
    folder: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    journal = tmp_path / "journal"
    options = ["run", f"{folder}/programs.py:portrait", "-a", "name=Ada", "--json", "--journal", str(journal)]
    code, output, errors = invoke(folder, *options)
    assert code == 0, errors
    data = journal.read_bytes()
    journal.write_bytes(data[: 2 * len(data) // 3])  # what a killed process may leave
    assert invoke(folder, *options) == (0, output, "")
    monkeypatch.setattr("rtlang.__main__.started", lambda config: pytest.fail("a finished journal needs no model"))
    assert invoke(folder, *options) == (0, output, "")
    code, _, errors = invoke(folder, *(each.replace("Ada", "Eve") for each in options))
    assert code == 1
    assert 'arguments: {"name": "Ada"} in the journal, {"name": "Eve"} now' in errors
    code, _, errors = invoke(folder, *options[:-1], str(tmp_path / "no" / "journal"))
    assert (code, "No such file or directory" in errors) == (1, True)


@pytest.mark.parametrize(
    ("arguments", "told"),
    [
        (["{}/missing.py:portrait"], "file not found"),
        (["{}/programs.py:nobody"], "no program 'nobody'; it has portrait, too_long, broken"),
        (["{}/programs.py:plain"], "is not a program"),
        (["{}/programs.py:portrait"], "portrait requires name"),
        (["{}/programs.py:portrait", "--arg", "name"], "expected name=value"),
        (["{}/programs.py:portrait", "--arg", "name=a", "--arg", "size=3"], "unknown argument"),
        (["{}/programs.py:portrait", "--arg", "name=a", "--arg", "count=many"], "expected int"),
        (["{}/programs.py:portrait", "--arg", "name=a", "--model", "{}/nowhere"], "cannot load the model at"),
        (["{}/programs.py:portrait", "--arg", "name=a", "--dtype", "int3"], "dtype = 'int3': expected one of"),
        (["{}/programs.py:portrait", "--arg", "name=a", "--page-size", "0"], "page_size = 0"),
        (["{}/programs.py:portrait", "--arg", "name=a", "--url", "ftp://x"], "url = 'ftp://x'"),
        (
            ["{}/programs.py:portrait", "--arg", "name=a", "--url", "ws://x", "--dtype", "auto"],
            "--dtype: runtime options",
        ),
        (["{}/programs.py:too_long"], "the context length is 512"),
        (["{}/programs.py:broken"], "programs.py:25: ZeroDivisionError"),
    ],
)
def test_a_mistake_ends_in_one_line_and_exit_code_one(folder: Path, arguments: list[str], told: str) -> None:
    code, _, errors = invoke(folder, "run", *(argument.format(folder) for argument in arguments))
    assert code == 1
    (line,) = errors.splitlines()
    assert line.startswith("error: ")
    assert told in line


def test_what_was_made_before_a_failure_is_still_shown(folder: Path) -> None:
    code, output, _ = invoke(folder, "run", f"{folder}/programs.py:too_long")
    assert code == 1
    assert output.startswith("start: ")
    assert '"start":' in output


def test_run_writes_a_page_even_if_the_run_fails(folder: Path) -> None:
    code, _, _ = invoke(
        folder, "run", f"{folder}/programs.py:portrait", "-a", "name=Ada", "--html", f"{folder}/run.html"
    )
    assert code == 0
    page = (folder / "run.html").read_text(encoding="utf-8")
    assert "<title>portrait</title>" in page
    assert "Timeline" in page
    code, _, _ = invoke(folder, "run", f"{folder}/programs.py:too_long", "--html", f"{folder}/failed.html")
    assert code == 1
    assert "rt-error" in (folder / "failed.html").read_text(encoding="utf-8").partition("<body")[2]
    code, _, errors = invoke(folder, "run", f"{folder}/programs.py:portrait", "--html", f"{folder}/none/x.html")
    assert (code, errors.count("\n"), "parent folder" in errors) == (1, 1, True)


@pytest.mark.parametrize("others", [0, 1])
def test_a_program_runs_on_the_first_server_that_answers(folder: Path, others: int) -> None:
    texts = {"trait": "brave", "sheet": '{"age": 36}', "best": "first"}
    with FakeTarget(by_name(texts)) as target, running_server(target) as url:
        urls = [f"ws://127.0.0.1:{free_port()}"] * others + [url]
        options = [word for each in urls for word in ("--url", each)]
        code, output, errors = invoke(
            folder, "run", f"{folder}/programs.py:portrait", "--arg", "name=Ada", *options, "--json"
        )
    assert code == 0, errors
    assert json.loads(output) == {"trait": ["brave", "brave"], "sheet": {"age": 36}, "best": "first"}


def test_check_lists_what_is_there_and_generates_a_valid_value(folder: Path) -> None:
    code, output, errors = invoke(folder, "check", "--kv-dtype", "int8")
    assert code == 0, errors
    for fact in (
        "torch",
        "processor",
        "grammars    native code compiled",
        str(folder / "model"),
        "1 threads",
        "KV pages of 16 tokens in int8",
        "kernels     linear layers, ",
        "all checks passed",
    ):
        assert fact in output
    generated = next(line.split(None, 1)[1] for line in output.splitlines() if line.startswith("generated"))
    jsonschema.validate(json.loads(generated), CHECK_SCHEMA)


def test_check_fails_where_the_model_is_missing(folder: Path) -> None:
    code, output, errors = invoke(folder, "check", "--model", str(folder / "nowhere"))
    assert code == 1
    assert "all checks passed" not in output
    assert "nowhere" in errors


def test_explain_lists_breaks_and_passes(folder: Path) -> None:
    program = folder / "explained.py"
    program.write_text(
        "import rtlang as rt\n\n\n@rt.program\ndef looks(s, word, times: int):\n"
        "    s += word * times + rt.gen('x', max_tokens=2)\n    if s['x'] == '':\n        return\n"
        "    s += rt.gen('y', max_tokens=2)\n\n\n@rt.program\ndef straight(s):\n    s += 'a' + rt.gen('x')\n"
    )
    settings = ("--model", str(folder / "model"), "--num-pages", "200", "--threads", "1")
    arguments = ("--args", '{"word": "c", "times": 9}', "-a", "times=2", *settings)
    code, told, _ = invoke(folder, "explain", f"{program}:looks", *arguments)
    assert code == 0
    assert "1 graph break(s)" in told
    assert f"{program}:7: needs 'x'" in told
    assert "measured: " in told
    assert "merge: " in told
    code, told, _ = invoke(folder, "explain", f"{program}:straight", "--passes", "-merge", *settings)
    assert (code, "no graph break" in told, "merge: " in told) == (0, True, False)


@pytest.mark.parametrize(
    ("arguments", "told"),
    [
        (["--args", "[1]"], "expected a JSON object"),
        (["--args", "{"], "not JSON"),
        (["--args", '{"name": "x", "other": 1}'], "other"),
        (["--passes", "inline", "-a", "name=x"], "passes = 'inline'"),
    ],
)
def test_explain_refuses_what_it_cannot_read(folder: Path, arguments: list[str], told: str) -> None:
    program = folder / "named.py"
    program.write_text("import rtlang as rt\n\n\n@rt.program\ndef one(s, name):\n    s += name + rt.gen('x')\n")
    code, _, errors = invoke(folder, "explain", str(program), *arguments)
    assert (code, errors.count("\n")) == (1, 1)
    assert told in errors


def test_graph_draws_a_program_without_a_model(folder: Path) -> None:
    program = folder / "drawn.py"
    program.write_text(
        "import rtlang as rt\n\n\n@rt.program\ndef one(s, name, times: int = 2):\n"
        "    s += rt.user('Hello ' * times, name) + rt.assistant(rt.gen('x'))\n\n\n"
        "@rt.program\ndef breaks(s):\n    s += rt.gen('y')\n    s += str(s['y'])\n"
    )
    code, told, _ = invoke(folder, "graph", f"{program}:one", "-a", "times=3")
    assert code == 0
    assert told.startswith("flowchart TD\n")
    assert "Hello Hello Hello #123;name#125;" in told
    assert invoke(folder, "graph", f"{program}:one", "-a", "times=3", "--mermaid", "--passes", "fold")[1].count("n") > 5
    code, told, _ = invoke(folder, "graph", f"{program}:one", "-a", "name=<b>", "--html", f"{folder}/one.html")
    assert (code, told) == (0, "")
    page = (folder / "one.html").read_text(encoding="utf-8")
    assert "<title>one</title>" in page
    assert "Hello Hello &lt;b&gt;" in page
    for arguments, wrong in (
        ([f"{program}:breaks"], "drawn.py:12"),
        ([f"{program}:breaks"], "--html OUT` draws a run"),
        ([f"{program}:one", "--html", f"{folder}/none/x.html"], "parent folder"),
        ([f"{program}:one", "--html", str(folder)], "--html"),
        ([f"{program}:one", "--html", "x", "--mermaid"], "cannot be combined with --mermaid"),
        ([f"{program}:one", "-a", "other=1"], "unknown argument"),
        ([f"{program}:one", "--passes", "x"], "passes = 'x'"),
    ):
        code, _, errors = invoke(folder, "graph", *arguments)
        assert (code, errors.count("\n")) == (1, 1), errors
        assert wrong in errors


def test_diff_compares_saved_runs_and_journals(folder: Path) -> None:
    program = folder / "compared.py"
    files = []
    for number, prompt in enumerate(("Say one.", "Say three.")):
        program.write_text(
            "import rtlang as rt\n\n\n@rt.program\ndef say(s, name):\n"
            "    s += rt.user('Hello ', name) + rt.assistant(rt.gen('greeting', 4))\n"
            f"    s += rt.user({prompt!r}) + rt.assistant(rt.gen('more', 8))\n"
        )
        option = "--save" if number else "--journal"
        files.append(f"{folder}/run{number}")
        code, _, errors = invoke(
            folder,
            "run",
            f"{program}:say",
            "-a",
            "name=Ada",
            "--model",
            str(folder / "model"),
            "--json",
            option,
            files[-1],
        )
        assert code == 0, errors
    code, told, errors = invoke(folder, "diff", *files)
    assert (code, errors) == (1, "")
    assert told.startswith("2 nodes: 1 same, 1 changed; 2 computed")
    assert "~ more (computed)\n    - " in told
    code, told, _ = invoke(folder, "diff", files[1], files[1], "--json", "--html", f"{folder}/diff.html")
    assert code == 0
    assert [(node["path"], node["change"]) for node in json.loads(told)] == [("greeting", "same"), ("more", "same")]
    assert "<title>run1 → run1</title>" in (folder / "diff.html").read_text(encoding="utf-8")
    for arguments, wrong in (
        ([files[0], f"{folder}/none"], "none: No such file"),
        ([files[0], str(program)], "expected a file of rtlang run --save or --journal"),
        ([*files, "--html", f"{folder}/none/x.html"], "parent folder"),
    ):
        code, _, errors = invoke(folder, "diff", *arguments)
        assert (code, errors.count("\n")) == (1, 1), errors
        assert wrong in errors


def test_serve_announces_its_address_serves_and_ends_on_a_signal(folder: Path) -> None:
    process = python(
        "-m", "rtlang", "serve", "--port", "0", "--model", str(folder / "model"), "--num-pages", "200", "--threads", "1"
    )
    try:
        assert process.stdout is not None
        line = process.stdout.readline()
        found = re.search(r"at (ws://127\.0\.0\.1:\d+)", line)
        assert found is not None, line + (process.stderr.read() if process.stderr else "")
        code, output, errors = invoke(
            folder, "run", f"{folder}/programs.py:portrait", "--arg", "name=Ada", "--url", found[1], "--json"
        )
        assert code == 0, errors
        assert 0 <= json.loads(output)["sheet"]["age"] <= 99
        with urllib.request.urlopen(found[1].replace("ws://", "http://") + "/metrics", timeout=60) as answer:
            generated = re.search(rb"^rtlang_generation_tokens_total (\S+)", answer.read(), re.M)
        assert generated is not None
        assert float(generated[1]) >= 8
        process.send_signal(signal.SIGTERM)
        _, errors = process.communicate(timeout=60)
        assert process.returncode == 0, errors
    finally:
        if process.poll() is None:
            process.kill()
            process.communicate()


@pytest.mark.parametrize(
    ("arguments", "told"),
    [
        (["--host", "0.0.0.0"], "host = '0.0.0.0'"),
        (["--port", "70000"], "port = 70000"),
        (["--max-rows", "0"], "max_rows"),
    ],
)
def test_serve_refuses_wrong_settings_before_it_loads_a_model(folder: Path, arguments: list[str], told: str) -> None:
    code, _, errors = invoke(folder, "serve", *arguments)
    assert code == 1
    assert told in errors
