"""Every Python snippet of the documentation runs as it stands, page by page, on the model that comes with the package.

The blocks of a page share one namespace and run in order. A block that cannot run in a test has the comment
`<!-- not run: REASON -->` on the line above its fence. A `text` block right behind a snippet is what it prints. The server address in
snippets stands for a server that the test starts.
"""

from __future__ import annotations

import re
import sys
from collections.abc import Iterator
from pathlib import Path
from types import ModuleType

import pytest

import rtlang as rt
from rtlang.serve.server import running_server
from tests.support.programs.snippets import PAGES, ROOT, WITH_SNIPPETS, snippets_of

ADDRESSES = ("ws://127.0.0.1:8420", "ws://host:8420")


@pytest.fixture(scope="module")
def address() -> Iterator[str]:
    """A server of the model in the package."""
    with rt.Runtime() as runtime, running_server(runtime) as url:
        yield url


@pytest.mark.parametrize("page", WITH_SNIPPETS, ids=lambda page: page.relative_to(ROOT).as_posix())
def test_the_snippets_of_a_page_run_in_order(
    page: Path, address: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.chdir(tmp_path)
    module = ModuleType("snippets")  # a real module: types look up the names of their annotations there
    monkeypatch.setitem(sys.modules, module.__name__, module)
    namespace = vars(module)
    try:
        for snippet in snippets_of(page):
            if snippet.reason is not None:
                continue
            source = snippet.source
            for written in ADDRESSES:
                source = source.replace(written, address).replace("http" + written[2:], "http" + address[2:])
            # Lines of the page, so that a failure names the line of the page.
            exec(compile("\n" * (snippet.line - 1) + source, str(page), "exec"), namespace)
            printed = capsys.readouterr().out
            assert snippet.printed is None or printed == snippet.printed, f"{page.name}:{snippet.line}"
    finally:
        rt.set_default_runtime(None)
        for value in namespace.values():
            if isinstance(value, rt.Runtime):
                value.close()


def test_a_snippet_that_does_not_run_says_why() -> None:
    unmarked = [
        f"{page.name}:{snippet.line}" for page in PAGES for snippet in snippets_of(page) if snippet.reason == ""
    ]
    assert unmarked == []


def test_every_python_fence_is_found() -> None:
    for page in PAGES:
        num_fences = len(re.findall(r"^ *```python", page.read_text(encoding="utf-8"), re.MULTILINE))
        assert len(snippets_of(page)) == num_fences, page
