"""The tables of clients and agents in docs/serving.md: what each was seen to do with the server.

    python -m tests.clients.clients_table [NAME ...]

runs all clients and agents, or those that are named (or whose names begin so, for agents), and notes their versions and results between
the markers of the page. Rows of others keep their results; the other columns come from `CLIENTS` and from the agents.
"""

from __future__ import annotations

import re
import sys
from collections.abc import Mapping, Sequence
from pathlib import Path

from tests.clients.agents.harness import agents, run
from tests.clients.agents.task import TURNS
from tests.clients.environments import CLIENTS, FAILED, PASSED, ROOT, num_failed, run_clients

PAGE = ROOT / "docs" / "serving.md"
MARKERS = tuple(
    (f"<!-- {name}: made by tests.clients.clients_table -->", f"<!-- end of {name} -->")
    for name in ("clients", "agents")
)
"""Around the table of clients, and around that of agents."""
NOT_RUN = "not run"
_HEADERS = (
    ("| client | versions | APIs | exercised | result |", "|---|---|---|---|---|"),
    ("| agent | versions | API | exercised | result |", "|---|---|---|---|---|"),
)
_ROW = re.compile(r"\| `(?P<name>[^`]+)` \| (?P<versions>[^|]*) \| [^|]* \| [^|]* \| (?P<result>[^|]*) \|")

Results = Mapping[str, tuple[str, str]]
"""Versions and result by name."""


def results_on(page: str) -> tuple[dict[str, tuple[str, str]], dict[str, tuple[str, str]]]:
    """The results on a page: of clients, and of agents.

    Raises:
        ValueError: the page does not have each marker once, in order.
    """
    clients, named = (
        {each["name"]: (each["versions"], each["result"]) for each in map(_ROW.fullmatch, lines) if each is not None}
        for lines in (_section(page, *markers).splitlines() for markers in MARKERS)
    )
    return clients, named


def page_with(page: str, clients: Results, of_agents: Results) -> str:
    """The page with the tables of these results.

    Raises:
        ValueError: as `results_on`.
    """
    known = {agent.name: agent.door for agent in agents()}
    rows = [
        [_row(each.name, *clients.get(each.name, ("", NOT_RUN)), ", ".join(each.doors), each.does) for each in CLIENTS],
        [_row(name, *of_agents[name], f"`{door}`", _TASK) for name, door in known.items() if name in of_agents],
    ]
    for (begin, end), header, lines in zip(MARKERS, _HEADERS, rows, strict=True):
        _section(page, begin, end)
        before, _, rest = page.partition(begin)
        page = "\n".join((before + begin, "", *header, *lines, "", "")) + end + rest.partition(end)[2]
    return page


def note_results(clients: Results, of_agents: Results, path: Path = PAGE) -> None:
    """Write results into the page; clients and agents that are not among them keep theirs."""
    page = path.read_text(encoding="utf-8")
    known = results_on(page)
    path.write_text(page_with(page, known[0] | dict(clients), known[1] | dict(of_agents)), encoding="utf-8")


_TASK = f"a task of {len(TURNS)} turns in a repository, without a network"


def _section(page: str, begin: str, end: str) -> str:
    before, found_begin, rest = page.partition(begin)
    inner, found_end, _ = rest.partition(end)
    if not found_begin or not found_end or begin in rest or end in before:
        raise ValueError(f"expected {begin} and {end} in the page, once each")
    return inner


def _row(name: str, versions: str, result: str, doors: str, does: str) -> str:
    return f"| `{name}` | {versions} | {doors} | {does} | {result} |"


def main(names: Sequence[str]) -> int:
    """Run clients and agents and write the page; the exit status is the number of failures."""
    clients: dict[str, tuple[str, str]] = {}
    of_agents: dict[str, tuple[str, str]] = {}
    if not names or any(client.name in names for client in CLIENTS):
        clients = run_clients(names)
        note_results(clients, {})
    chosen = agents(names)
    for agent in chosen:
        outcome = run(agent)
        of_agents[agent.name] = f"{agent.package} {outcome.version}", PASSED if outcome.is_right else FAILED
        print(f"{agent.name:18} {of_agents[agent.name][1]:7} {outcome.seconds:6.1f} s  {outcome.version}", flush=True)
        note_results({}, of_agents)
    return num_failed(clients) + num_failed(of_agents)


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
