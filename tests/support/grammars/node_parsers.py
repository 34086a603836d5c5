"""Parsers of npm packages in node. `RTLANG_NODE_MODULES` names a `node_modules` folder with `typescript` (5), `mermaid` and `jsdom`."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
from pathlib import Path

import pytest

_READ = """
import {createInterface} from "readline";
const folder = process.env.RTLANG_NODE_MODULES;
%s
for await (const line of createInterface({input: process.stdin})) console.log(JSON.stringify(await check(JSON.parse(line))));
"""
_TYPESCRIPT = (
    _READ
    % """
const ts = (await import(folder + "/typescript/lib/typescript.js")).default;
const check = (text) => ts.createSourceFile("a.ts", text, ts.ScriptTarget.Latest).parseDiagnostics
  .map((each) => ts.flattenDiagnosticMessageText(each.messageText, " ")).join("; ");
"""
)
_MERMAID = (
    _READ
    % """
const {JSDOM} = (await import(folder + "/jsdom/lib/api.js")).default;
globalThis.window = new JSDOM("<body></body>").window;
globalThis.document = window.document;
const mermaid = (await import(folder + "/mermaid/dist/mermaid.core.mjs")).default;
const check = (text) => mermaid.parse(text).then(() => "", (error) => String(error));
"""
)


def typescript_errors(texts: list[str]) -> list[str]:
    """The syntax errors of each text, "" for none; skips the test without node and the package."""
    return _run("typescript", _TYPESCRIPT, texts)


def mermaid_errors(texts: list[str]) -> list[str]:
    """As `typescript_errors`."""
    return _run("mermaid", _MERMAID, texts)


def _run(package: str, program: str, texts: list[str]) -> list[str]:
    folder = os.environ.get("RTLANG_NODE_MODULES", "")
    if not shutil.which("node") or not (Path(folder) / package).is_dir():
        pytest.skip(f"needs node, and RTLANG_NODE_MODULES with {package}")
    found = subprocess.run(
        ["node", "--input-type=module", "-e", program],
        input="\n".join(map(json.dumps, texts)),
        capture_output=True,
        text=True,
        timeout=300,
        check=True,
    )
    return [json.loads(line) for line in found.stdout.splitlines()]
