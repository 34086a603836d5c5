"""Clients of other servers run against `rtlang serve` as they are, each in an environment of its own (environments.py)."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from tests.clients.environments import CLIENTS, Client, environment, run_program, running_servers

pytestmark = pytest.mark.clients


@pytest.fixture(scope="module")
def urls() -> Iterator[tuple[str, str]]:
    with running_servers() as urls:
        yield urls


@pytest.mark.parametrize("client", CLIENTS, ids=lambda client: client.name)
def test_a_client_runs_unmodified(client: Client, urls: tuple[str, str]) -> None:
    run_program(client, environment(client), *urls)
