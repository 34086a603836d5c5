"""No request can make the server run code, unpickle, or fetch: read from the sources of everything that a wheel carries.

Constructs that run data as code are used nowhere. Processes, imports by name and fetches are used by commands only, never in the parts
that a request passes through.
"""

from __future__ import annotations

import ast
from collections.abc import Iterator
from functools import cache
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[1]
PACKAGES = [ROOT / "rtlang", ROOT / "kernels" / "rtlang_kernels", ROOT / "grammars" / "rtlang_grammars"]
MODULES = {"pickle", "cPickle", "dill", "cloudpickle", "joblib", "shelve", "marshal", "code", "codeop", "telnetlib"}
FETCHING = {"requests", "urllib.request", "http.client", "aiohttp", "httpx", "ftplib", "smtplib", "xmlrpc"}
CALLS = {"eval", "exec", "compile", "__import__"}
DOTTED = {
    "torch.load",
    "os.system",
    "os.popen",
    "numpy.load",
    "np.load",
    "yaml.load",
    "importlib.import_module",
    "import_module",
    "runpy.run_path",
    "runpy.run_module",
    "jinja2.Environment",
    "Environment",
    "multiprocessing.Process",
    "multiprocessing.Pipe",
    "multiprocessing.Queue",
    "subprocess.Popen",
    "subprocess.run",
    "subprocess.check_output",
    "subprocess.call",
}
LAST_NAMES = {name.rpartition(".")[2] for name in CALLS | DOTTED}
FLAGS = {"shell", "trust_remote_code", "allow_pickle"}
NOWHERE = (
    MODULES
    | CALLS
    | {"torch.load", "os.system", "os.popen", "numpy.load", "np.load", "yaml.load"}
    | {f"{name}=True" for name in FLAGS}
)
REQUEST_PATH = tuple(
    f"rtlang/{part}/" for part in ("cache", "contract", "engine", "model", "protocol", "runtime", "serve")
)


@cache
def uses() -> list[tuple[str, str, int]]:
    """File, construct and line of every use."""
    found = []
    for package in PACKAGES:
        for path in sorted(package.rglob("*.py")):
            tree = ast.parse(path.read_text(encoding="utf-8"))
            name = path.relative_to(ROOT).as_posix()
            found += [(name, construct, line) for construct, line in constructs(tree)]
    return found


def constructs(tree: ast.AST) -> Iterator[tuple[str, int]]:
    """Forbidden constructs in a syntax tree, with their lines."""
    for node in ast.walk(tree):
        if isinstance(node, ast.Import):
            yield from ((alias.name, node.lineno) for alias in node.names if is_forbidden_module(alias.name))
        elif isinstance(node, ast.ImportFrom) and node.module is not None and not node.level:
            whole = [node.module, *(f"{node.module}.{alias.name}" for alias in node.names)]
            yield from ((name, node.lineno) for name in whole if is_forbidden_module(name))
        elif isinstance(node, ast.Call):
            last = node.func.attr if isinstance(node.func, ast.Attribute) else getattr(node.func, "id", "")
            if last in LAST_NAMES and (name := ast.unparse(node.func)) in CALLS | DOTTED:
                yield name, node.lineno
            for keyword in node.keywords:
                is_false = isinstance(keyword.value, ast.Constant) and not keyword.value.value
                if keyword.arg in FLAGS and not is_false:
                    yield f"{keyword.arg}=True", node.lineno


def is_forbidden_module(name: str) -> bool:
    return any(name == each or name.startswith(each + ".") for each in MODULES | FETCHING)


def test_nothing_runs_data_as_code() -> None:
    found = [use for use in uses() if use[1].partition(".")[0] in NOWHERE or use[1] in NOWHERE]
    assert found == []


def test_no_part_that_a_request_passes_starts_processes_or_fetches() -> None:
    ranks = ("rtlang/model/parallel/rank_processes.py", "subprocess.Popen")  # while a model is loaded
    assert [use for use in uses() if use[0].startswith(REQUEST_PATH) and use[:2] != ranks] == []
    fetching = {use[0] for use in uses() if is_forbidden_module(use[1])}
    assert all(
        name.startswith(("rtlang/bench/", "rtlang/client/", "rtlang/console/")) for name in fetching
    )  # they ask a server


def default_pools(source: str) -> list[int]:
    """Lines that run work on a pool which is shared first come, first served."""
    found: list[int] = []
    if not any(word in source for word in ("to_thread", "executor", "PoolExecutor")):
        return found
    for node in ast.walk(ast.parse(source)):
        if isinstance(node, ast.Attribute) and node.attr in ("to_thread", "run_in_executor", "set_default_executor"):
            found.append(node.lineno)
        elif isinstance(node, (ast.Attribute, ast.Name)):
            name = node.attr if isinstance(node, ast.Attribute) else node.id
            found += [node.lineno] if name in ("ThreadPoolExecutor", "ProcessPoolExecutor") else []
    return found


def test_work_of_requests_takes_turns_between_principals() -> None:
    """A server, an engine's process and a runtime run it on a `FairExecutor`: no pool of another kind exists there."""
    for part in ("engine", "fleet", "runtime", "serve"):
        for path in (ROOT / "rtlang" / part).rglob("*.py"):
            assert default_pools(path.read_text(encoding="utf-8")) == [], path
    named = ("asyncio.to_thread(f)", "loop.run_in_executor(None, f)", "pool = ThreadPoolExecutor(2)")
    assert all(default_pools(each) == [1] for each in named)


def test_templates_are_rendered_in_a_sandbox() -> None:
    found = set()
    for path in (path for package in PACKAGES for path in package.rglob("*.py")):
        text = path.read_text(encoding="utf-8")
        for node in ast.walk(ast.parse(text)) if "jinja2" in text else ():
            if isinstance(node, ast.ImportFrom) and (node.module or "").startswith("jinja2"):
                found |= {f"{node.module}.{alias.name}" for alias in node.names if alias.name.endswith("Environment")}
            elif isinstance(node, ast.Attribute) and node.attr.endswith("Environment"):
                found.add(ast.unparse(node))
    assert {name for name in found if "jinja2" in name or "Sandboxed" in name} == {
        "jinja2.sandbox.ImmutableSandboxedEnvironment"
    }


@pytest.mark.parametrize(
    ("source", "construct"),
    [
        ("import pickle", "pickle"),
        ("from pickle import loads", "pickle"),
        ("from urllib import request", "urllib.request"),
        ("import dill.source as d", "dill.source"),
        ("eval(text)", "eval"),
        ("model = torch.load(path)", "torch.load"),
        ("subprocess.run(command, shell=True)", "shell=True"),
        ("AutoModel.from_pretrained(name, trust_remote_code=flag)", "trust_remote_code=True"),
        ("numpy.load(path, allow_pickle=True)", "allow_pickle=True"),
    ],
)
def test_each_construct_is_seen(source: str, construct: str) -> None:
    assert construct in {name for name, _ in constructs(ast.parse(source))}


def test_what_is_harmless_is_not_seen() -> None:
    source = (
        "import re\nre.compile(pattern)\nfrom urllib.parse import urlsplit\nf(shell=False, trust_remote_code=False)"
    )
    assert list(constructs(ast.parse(source))) == []
