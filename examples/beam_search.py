"""A beam search as forks, and a view of it that is made from the events of the stream alone.

    python examples/beam_search.py
    python examples/beam_search.py --html search.html

The program continues its best texts by forks of forks. A fork of the text `fork[1]` that writes `step` has the path `fork[1]/fork[0]/step`:
the path alone says which text it continues, so the view needs nothing of the program. On a terminal the tree is drawn again with every
event; otherwise it is printed at the end.
"""

from __future__ import annotations

import argparse
import html
import sys
from dataclasses import dataclass, field
from pathlib import Path

import rtlang as rt

BEAMS, WIDTH, DEPTH = 2, 3, 3


@rt.program
def search(s: rt.State, about: str, beams: int = BEAMS, width: int = WIDTH, depth: int = DEPTH) -> str:
    """The likeliest continuation after `depth` steps, of which the best `beams` go on after each."""
    s += rt.user("Write a short story about ", about, ".")
    with s.assistant():
        kept: list[tuple[float, rt.State]] = [(0.0, s)]
        for _ in range(depth):
            tried = []
            for score, text in kept:
                for branch in text.fork(width):
                    branch += rt.gen("step", max_tokens=8, temperature=1.0, logprobs=0)
                    tried.append((score, branch))
            scored = [(score + logprob(branch.meta("step")), branch) for score, branch in tried]  # waits for the steps
            kept = sorted(scored, key=lambda each: -each[0])[:beams]
        return str(kept[0][1].messages()[-1]["content"])


def logprob(meta: rt.Meta) -> float:
    """The log-probability of a text, whose `meta` is waited for here."""
    return sum(token.logprob for token in meta.logprobs or ())


@dataclass
class Branch:
    """One fork as far as its events have told: its text, and its log-probability once it has ended."""

    text: str = ""
    logprob: float | None = None
    children: dict[str, Branch] = field(default_factory=dict)


@dataclass
class View:
    """The tree of a search."""

    root: Branch = field(default_factory=Branch)

    def take(self, event: object) -> None:
        """Note an event: new text of a fork, or its end."""
        match event:
            case rt.TextEvent(path=path, text=text):
                self.branch(path).text += text
            case rt.ValueEvent(path=path, meta=meta):
                self.branch(path).logprob = logprob(meta)

    def branch(self, path: str) -> Branch:
        """The fork in which the node with this path is."""
        found = self.root
        for place in path.split("/")[:-1]:
            found = found.children.setdefault(place, Branch())
        return found

    def lines(self) -> list[tuple[int, float, Branch]]:
        """All forks with their depth and the log-probability of their whole text, each before its continuations."""
        found = []
        todo = [(0, 0.0, branch) for branch in reversed(self.root.children.values())]
        while todo:
            depth, before, branch = todo.pop()
            total = before + (branch.logprob or 0.0)
            found.append((depth, total, branch))
            todo.extend((depth + 1, total, child) for child in reversed(branch.children.values()))
        return found

    def as_text(self) -> str:
        """The tree as lines; `>` marks the forks that were continued."""
        shown = []
        for depth, total, branch in self.lines():
            mark = ">" if branch.children else " " if branch.logprob is not None else "…"
            shown.append(f"{total:7.2f} {mark} {'    ' * depth}{branch.text.strip()!r:.100}")
        return "\n".join(shown)

    def as_html(self) -> str:
        """The tree as a page."""
        rows = "".join(
            f'<div style="margin-left:{3 * depth}em;opacity:{1 if branch.children else 0.6}">'
            f"<small>{total:.2f}</small> {html.escape(branch.text)}</div>"
            for depth, total, branch in self.lines()
        )
        return f'<!DOCTYPE html><html lang="en"><meta charset="utf-8"><title>Beam search</title><body>{rows}</body></html>\n'


def main() -> None:
    parser = argparse.ArgumentParser(description="A beam search and its view from events.")
    parser.add_argument("about", nargs="?", default="a shy fox")
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--html", type=Path, metavar="OUT")
    arguments = parser.parse_args()
    view, num_drawn, best = View(), 0, ""
    with rt.Runtime() as runtime, search.stream(arguments.about, runtime=runtime, seed=arguments.seed) as events:
        for event in events:
            view.take(event)
            if isinstance(event, rt.EndEvent):
                best = event.result.value
            if sys.stdout.isatty():
                print(f"\x1b[{num_drawn}F\x1b[J" if num_drawn else "", view.as_text(), sep="", flush=True)
                num_drawn = len(view.lines())
    if not sys.stdout.isatty():
        print(view.as_text())
    print("=>", best.strip())
    if arguments.html is not None:
        arguments.html.write_text(view.as_html(), encoding="utf-8")


if __name__ == "__main__":
    main()
