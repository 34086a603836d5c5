"""Command-line options that examples share: the model and device, or the server, that a program runs on."""

from __future__ import annotations

import argparse
from contextlib import AbstractContextManager

import rtlang as rt


def parser_of(description: str | None) -> argparse.ArgumentParser:
    """A parser with --model, --device and --connect, to which an example adds its own options."""
    parser = argparse.ArgumentParser(description=description, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--model", default="rtlang:tiny", help="a directory with a model, or owner/name on a hub")
    parser.add_argument("--device", default="cpu", help="cpu or cuda")
    parser.add_argument("--connect", metavar="URL", help="run on a server instead, such as ws://127.0.0.1:8420")
    return parser


def open_runtime(options: argparse.Namespace) -> AbstractContextManager[rt.Target]:
    """The runtime that the options name, for a `with` block."""
    if options.connect is not None:
        return rt.connect(options.connect)
    return rt.Runtime(options.model, device=options.device)
