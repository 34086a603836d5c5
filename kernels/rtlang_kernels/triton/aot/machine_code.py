"""The order of instructions in the loops of compiled code for sm_90, read from its disassembly."""

from __future__ import annotations

import re
import subprocess
import tempfile
from pathlib import Path

import triton

TOOLS = Path(triton.__file__).parent / "backends" / "nvidia" / "bin"


def run_tool(name: str, option: str, cubin: bytes) -> str:
    """Output of a tool that triton ships, given a binary."""
    with tempfile.NamedTemporaryFile(suffix=".cubin") as file:
        file.write(cubin)
        file.flush()
        done = subprocess.run([str(TOOLS / name), option, file.name], capture_output=True, text=True, check=True)
    return done.stdout + done.stderr


def product_loops(assembly: str) -> list[list[str]]:
    """The events of each innermost loop with asynchronous products of matrices, in order.

    Events are "scores" (both operands in shared memory), "output" (one in registers), "wait N" (until at most N groups of products run)
    and "exp N" (N exponentials in a row).
    """
    lines: list[str] = []
    places: dict[str, int] = {}
    for line in assembly.splitlines():
        if label := re.match(r"\s*\.?(L_x_\d+):", line):
            places[label.group(1)] = len(lines)
        elif instruction := re.match(r"\s*/\*[0-9a-f]+\*/\s+(.*?);", line):
            lines.append(instruction.group(1).strip())
    spans = []
    for end, line in enumerate(lines):
        target = re.search(r"\bBRA\b.*?(L_x_\d+)", line)
        if target and places.get(target.group(1), end + 1) <= end:
            spans.append((places[target.group(1)], end))
    inner = [span for span in spans if not any(span != other and _contains(span, other) for other in spans)]
    found = [_events(lines[first : last + 1]) for first, last in inner]
    return [events for events in found if "output" in events]


def _contains(outer: tuple[int, int], inner: tuple[int, int]) -> bool:
    return outer[0] <= inner[0] and inner[1] <= outer[1]


def _events(lines: list[str]) -> list[str]:
    events: list[str] = []
    num_exponentials = 0
    for line in lines:
        if re.search(r"\bMUFU\.EX2\b", line):
            num_exponentials += 1
            continue
        event = None
        if product := re.search(r"\bHGMMA\S*\s+\w+,\s*(\w+)", line):
            event = "scores" if product.group(1) == "gdesc" else "output"
        elif wait := re.search(r"WARPGROUP\.DEPBAR\.LE\s+gsb0,\s*(0x[0-9a-f]+)", line):
            event = f"wait {int(wait.group(1), 16)}"
        if event is None or (events and event == events[-1] and not num_exponentials):
            continue
        if num_exponentials:
            events.append(f"exp {num_exponentials}")
            num_exponentials = 0
        events.append(event)
    return [*events, *([f"exp {num_exponentials}"] if num_exponentials else [])]
