"""The live page in a headless Chromium, on the model of the package: demonstration, playground, key, schemes, widths.

Needs a Python with PySide6: this one, or the one that RTLANG_BROWSER_PYTHON names. RTLANG_PICTURES names a folder for pictures to look at.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

import rtlang as rt
from rtlang.contract.config import ServeConfig
from rtlang.serve.server import running_server
from tests.support.programs.snapshots import WatchedFleet
from tests.support.servers.serving import serving

BROWSER = Path(__file__).parents[2] / "support" / "servers" / "browser.py"
PYTHON = os.environ.get("RTLANG_BROWSER_PYTHON", sys.executable)
KEY = "sesame"


def has_browser() -> bool:
    found = subprocess.run([PYTHON, "-c", "import PySide6.QtWebEngineWidgets"], capture_output=True, check=False)
    return found.returncode == 0


pytestmark = [pytest.mark.slow, pytest.mark.skipif(not has_browser(), reason="needs PySide6 with QtWebEngine")]


@pytest.fixture(scope="module")
def address() -> Iterator[str]:
    with (
        rt.Runtime(num_threads=1, num_pages=100) as runtime,
        running_server(runtime, ServeConfig(port=0, api_key=KEY), metrics=runtime.metrics) as url,
    ):
        yield url.replace("ws://", "http://")


def browse(address: str, name: str, steps: list[str], *, width: int = 1366, is_dark: bool = False) -> None:
    """Run steps on the page; each must become true, and the console must stay empty."""
    pictures = os.environ.get("RTLANG_PICTURES")
    given: dict[str, Any] = {
        "url": address,
        "width": width,
        "height": 1400,
        "is_dark": is_dark,
        "steps": steps,
        "timeout_s": 60,
        "picture": str(Path(pictures) / f"{name}.png") if pictures else None,
    }
    done = subprocess.run(
        [PYTHON, str(BROWSER)], input=json.dumps(given), capture_output=True, text=True, timeout=120, check=False
    )
    found = json.loads(done.stdout.strip().splitlines()[-1])
    # The answer to the first request, without the key.
    console = [each for each in found["console"] if "401" not in each]
    assert (found["failed"], console) == (None, []), done.stderr[-2000:]


FILL = """((pairs, sends) => {
  for (const [id, value] of pairs) {
    const field = document.getElementById(id);
    field.value = value;
    for (const kind of ["input", "change"]) field.dispatchEvent(new Event(kind, { bubbles: true }));
  }
  if (sends) document.getElementById("form").requestSubmit();
  return true;
})"""
"""A function that fills fields of the form, and sends it."""
SIGN_IN = [
    "document.querySelector('#key-dialog').open",
    f"(document.querySelector('#key-input').value = '{KEY}', document.querySelector('#key-use').click(), true)",
    "document.querySelector('#status').textContent === 'live'",
    "!location.href.includes('sesame')",
]
DEMONSTRATION = [
    "(document.querySelector('#demo').click(), true)",
    "document.querySelector('#tree .shared')",
    "/^6 requests asked for [0-9,]+ prompt tokens; [0-9,]+ were computed/.test(document.querySelector('#demo-said').textContent)",
    "[...document.querySelectorAll('#answers small')].filter((each) => /^4[01][0-9] of/.test(each.textContent)).length === 5",
]


@pytest.mark.parametrize(("width", "is_dark"), [(1366, False), (1366, True), (420, False), (420, True)])
def test_the_demonstration(address: str, width: int, is_dark: bool) -> None:
    name = f"demonstration-{width}-{'dark' if is_dark else 'light'}"
    fits = "document.documentElement.scrollWidth <= innerWidth"
    scheme = f"getComputedStyle(document.body).backgroundColor === '{'rgb(20, 22, 26)' if is_dark else 'rgb(246, 246, 244)'}'"
    browse(address, name, [*SIGN_IN, *DEMONSTRATION, fits, scheme], width=width, is_dark=is_dark)


def test_the_playground_with_a_schema_and_a_prompt_from_the_cache(address: str) -> None:
    prompt = "A little fox found a door in the forest and went through it. As JSON: "
    fill = f"{FILL}([['prompt', '{prompt}'], ['kind', 'json_schema']], true)"
    ended = "/ended by stop/.test(document.querySelector('#play-said').textContent)"
    valid = "['calm', 'merry', 'curious'].includes(JSON.parse(document.querySelector('#output .constrained').textContent).mood)"
    again = "(document.querySelector('#form').requestSubmit(), true)"
    cached = "document.querySelector('#output .cached')?.textContent.startsWith('A little fox')"
    browse(address, "playground", [*SIGN_IN, fill, ended, valid, again, cached, ended])


def test_a_schema_that_is_no_json_is_said_by_place_and_not_sent(address: str) -> None:
    fill = f"{FILL}([['kind', 'json_schema'], ['source', '{{\"type\": }}']], false)"
    said = "document.querySelector('#source-problem').textContent === 'Line 1, column 10: expected a value.'"
    send = "(document.querySelector('#form').requestSubmit(), true)"
    refused = "document.querySelector('#play-said').textContent.startsWith('Line 1')"
    browse(address, "schema", [*SIGN_IN, fill, said, send, refused])


def test_escape_cancels_and_arrow_keys_move_between_prefixes(address: str) -> None:
    start = f"{FILL}([['kind', 'regex'], ['source', '[a-z ]{{600,700}}'], ['max_tokens', '800']], true)"
    running = "/^[0-9]+ tokens?$/.test(document.querySelector('#play-said').textContent)"
    press = "document.activeElement.dispatchEvent(new KeyboardEvent('keydown', { key: '%s', bubbles: true }))"
    escape = f"({press % 'Escape'}, true)"
    cancelled = "document.querySelector('#play-said').textContent === 'cancelled'"
    focus = f"(document.querySelector('#tree [tabindex=\"0\"]').focus(), {press % 'Home'}, true)"
    right = f"({press % 'ArrowRight'}, document.activeElement.getAttribute('aria-level') === '2')"
    left = f"({press % 'ArrowLeft'}, document.activeElement.getAttribute('aria-level') === '1')"
    detail = "document.querySelector('#tree-detail').textContent.includes('tokens')"
    browse(address, "keys", [*SIGN_IN, *DEMONSTRATION, start, running, escape, cancelled, focus, right, left, detail])


def test_a_replica_is_chosen_from_the_list() -> None:
    with serving(WatchedFleet("a", "b"), api_key=KEY) as server:
        listed = "[...document.querySelectorAll('#replica option')].map((each) => each.value).join() === ',a,b,old'"
        first, chosen = (f"document.querySelector('#model').textContent === '{name}'" for name in "ab")
        choose = f"{FILL}([['replica', 'b']], false)"
        browse(server.url.replace("ws://", "http://"), "replica", [*SIGN_IN, listed, first, choose, chosen])


def test_a_server_with_one_engine_lists_no_replicas(address: str) -> None:
    shown = "document.querySelector('#model').textContent !== ''"
    browse(address, "no replica", [*SIGN_IN, shown, "document.querySelector('#replica-label').hidden"])
