"""The tables of clients and agents in docs/serving.md: made by the suite, with a row for each client."""

from __future__ import annotations

import pytest

from tests.clients.clients_table import NOT_RUN, PAGE, page_with, results_on
from tests.clients.environments import CLIENTS, DOORS, FAILED, PASSED


def test_the_tables_list_every_client_and_the_agents_with_their_results() -> None:
    page = PAGE.read_text(encoding="utf-8")
    clients, of_agents = results_on(page)
    assert list(clients) == [client.name for client in CLIENTS]
    assert page == page_with(page, clients, of_agents), "run: python -m tests.clients.clients_table"
    shows = {client.name: client.shows[0] for client in CLIENTS}
    for name, (versions, result) in (clients | of_agents).items():
        assert result in (PASSED, FAILED, NOT_RUN), name
        assert result == NOT_RUN or versions.startswith(shows.get(name, "")), name
        assert bool(versions) == (result != NOT_RUN), name


def test_clients_say_what_their_programs_do() -> None:
    for client in CLIENTS:
        assert set(client.doors) <= set(DOORS), client.name
        assert client.does, client.name
        assert client.shows, client.name


def test_new_results_replace_those_of_the_same_client_only() -> None:
    page = PAGE.read_text(encoding="utf-8")
    clients, of_agents = results_on(page)
    changed = clients | {"haystack": ("haystack-ai 99", PASSED)}
    assert results_on(page_with(page, changed, of_agents)) == (changed, of_agents)
    with pytest.raises(ValueError, match="once each"):
        page_with("a page without markers", {}, {})
