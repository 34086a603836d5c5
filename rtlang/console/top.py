"""`rtlang top`: a live table of a server: load, prefix cache, memory, principals and requests; or of the replicas of a fleet."""

from __future__ import annotations

import sys
import time
from collections.abc import Iterable, Mapping
from contextlib import suppress
from dataclasses import dataclass, field
from typing import Annotated, Any, Protocol
from urllib.parse import quote

import typer
from rich.console import Console, Group, RenderableType
from rich.live import Live
from rich.table import Table
from rich.text import Text

from rtlang.console.fleet_view import fetch_fleet, fleet_view
from rtlang.console.one_line_errors import one_line_errors
from rtlang.console.server_requests import ServerAddress, ServerError
from rtlang.console.show import PIPED_WIDTH, to_json
from rtlang.contract.process.terminal_text import terminal_text
from rtlang.contract.service.fleet_report import plain_fleet_report
from rtlang.contract.service.principal_loads import PrincipalLoad, largest, loads_between, read_loads
from rtlang.contract.service.snapshot import EngineSnapshot, WatchedRequest, plain_snapshot, read_snapshot

PATH = "/v1/engine/snapshot"
Loads = Mapping[str, PrincipalLoad]
"""By the name of the principal."""
_BAR_WIDTH = 30


def top(
    url: Annotated[str, typer.Argument(help="Address of the server, such as http://127.0.0.1:8420.")],
    api_key: Annotated[str | None, typer.Option(help="API key for that server.", envvar="RTLANG_API_KEY")] = None,
    interval_s: Annotated[
        float, typer.Option("--interval", min=0.1, max=3600, help="Seconds between two updates.")
    ] = 1.0,
    rows: Annotated[int, typer.Option(min=0, help="Requests shown; 0 shows none.")] = 20,
    once: Annotated[bool, typer.Option("--once", help="Print the table once and exit.")] = False,
    as_json: Annotated[bool, typer.Option("--json", help="Print one snapshot as JSON and exit.")] = False,
    of_fleet: Annotated[bool, typer.Option("--fleet", help="Show the replicas behind the server.")] = False,
    replica: Annotated[str | None, typer.Option(help="Show the engine of this replica.")] = None,
) -> None:
    """Watch a server: running and waiting requests, hit rate, principals, pages; or its replicas. Ctrl-C ends."""
    console = Console(highlight=False, markup=False, emoji=False)
    if not console.is_terminal:
        console.width = PIPED_WIDTH
    if of_fleet and replica is not None:
        raise typer.BadParameter("shows one engine, and --fleet all replicas", param_hint="--replica")
    with one_line_errors():
        server = ServerAddress(url, api_key)
        table: LiveTable = FleetTable(server) if of_fleet else EngineTable(server, rows, replica)
        if as_json:
            typer.echo(to_json(table.plain()))
        elif once or not sys.stdout.isatty():
            console.print(table.view())
        else:
            with suppress(KeyboardInterrupt):  # the usual end
                _watch(table, console, interval_s)


class LiveTable(Protocol):
    """The state of a server, which was fetched once when the table was made."""

    def fetch(self) -> None:
        """Fetch the present state. Raises ServerError, and then keeps the one before."""

    def plain(self) -> dict[str, Any]:
        """The state as plain values."""

    def view(self, notice: str = "") -> RenderableType:
        """The table, with a line at the end."""


class EngineTable:
    """The engine of a server.

    Args:
        num_rows: maximum number of requests.
        replica: the name of a replica behind the server; None for its engine, or the first that is ready.
    """

    def __init__(self, server: ServerAddress, num_rows: int, replica: str | None = None) -> None:
        self._server, self._num_rows, self._replica = server, num_rows, replica
        self._before: EngineSnapshot | None = None
        self._now = fetch(server, replica)
        self._loads_before: Loads | None = None
        self._loads = fetch_loads(server)

    def fetch(self) -> None:
        """See `LiveTable`."""
        self._before = self._loads_before = None
        self._before, self._now = self._now, fetch(self._server, self._replica)
        self._loads_before, self._loads = self._loads, fetch_loads(self._server)

    def plain(self) -> dict[str, Any]:
        """See `LiveTable`."""
        return plain_snapshot(self._now) | {"principals": {name: load.to_plain() for name, load in self._loads.items()}}

    def view(self, notice: str = "") -> RenderableType:
        """See `LiveTable`; with rates if the last two snapshots were fetched one after the other."""
        rates = None if self._before is None else rates_between(self._before, self._now)
        return view(self._now, rates, self._num_rows, notice, self._principals())

    def _principals(self) -> PrincipalRows:
        if self._before is None or self._loads_before is None or self._now.taken_s <= self._before.taken_s:
            return PrincipalRows(self._loads)
        return PrincipalRows(loads_between(self._loads_before, self._loads), self._now.taken_s - self._before.taken_s)


class FleetTable:
    """The replicas behind a server."""

    def __init__(self, server: ServerAddress) -> None:
        self._server = server
        self._now = fetch_fleet(server)

    def fetch(self) -> None:
        """See `LiveTable`."""
        self._now = fetch_fleet(self._server)

    def plain(self) -> dict[str, Any]:
        """See `LiveTable`."""
        return plain_fleet_report(self._now)

    def view(self, notice: str = "") -> RenderableType:
        """See `LiveTable`."""
        return fleet_view(self._now, notice)


def fetch(server: ServerAddress, replica: str | None = None) -> EngineSnapshot:
    """The present snapshot of a server, or of a replica behind it.

    Raises:
        ServerError: the server is not reachable or shows no engine.
    """
    plain = server.get(PATH if replica is None else f"{PATH}?replica={quote(replica, safe='')}")
    try:
        return read_snapshot(plain)
    except ValueError as error:
        raise ServerError(f"{server.url}{PATH}: {error}; the server may run another version", 200) from None


def fetch_loads(server: ServerAddress) -> Loads:
    """The sums of each principal that the key may see, from the metrics of a server; empty if they cannot be read."""
    try:
        return read_loads(server.get_bytes("/metrics").decode())
    except (ServerError, ValueError):
        return {}


@dataclass(frozen=True, slots=True)
class PrincipalRows:
    """The loads of principals for the table.

    Attributes:
        loads: since the start of the server, or between two readings.
        seconds: between the two readings; None since the start.
    """

    loads: Loads = field(default_factory=dict)
    seconds: float | None = None


@dataclass(frozen=True, slots=True)
class Rates:
    """Differences between two snapshots: per second, and the share of looked-up tokens that was cached (None if none was looked up)."""

    steps: float
    tokens: float
    hit_rate: float | None


def rates_between(before: EngineSnapshot, now: EngineSnapshot) -> Rates | None:
    """The rates; None without a time between the two, or if they are of different engines."""
    seconds = now.taken_s - before.taken_s
    if seconds <= 0 or now.num_steps < before.num_steps:
        return None
    num_queried = now.num_queried_tokens - before.num_queried_tokens
    return Rates(
        (now.num_steps - before.num_steps) / seconds,
        (now.num_generated_tokens - before.num_generated_tokens) / seconds,
        (now.num_hit_tokens - before.num_hit_tokens) / num_queried if num_queried > 0 else None,
    )


def view(
    snapshot: EngineSnapshot,
    rates: Rates | None,
    num_rows: int,
    notice: str = "",
    rows: PrincipalRows | None = None,
) -> RenderableType:
    """The table of a snapshot.

    Args:
        num_rows: maximum number of requests.
        notice: a line at the end.
        rows: the loads of principals.
    """
    parts: list[RenderableType] = [_summary(snapshot, rates), ""]
    principals = _principals(snapshot.requests, rows or PrincipalRows())
    if principals is not None:
        parts += [principals, ""]
    if num_rows and snapshot.requests:
        parts.append(_requests(snapshot, num_rows))
    if num_rows and snapshot.sessions:
        parts += ["", _sessions(snapshot, num_rows)]
    if notice:
        parts.append(Text(terminal_text(notice), style="red"))
    return Group(*parts)


def _watch(table: LiveTable, console: Console, interval_s: float) -> None:
    with Live(table.view(), console=console, screen=True, auto_refresh=False) as live:
        while True:
            time.sleep(interval_s)
            notice = ""
            try:
                table.fetch()
            except ServerError as error:
                if error.status in (401, 403, 404):
                    raise
                notice = f"{error}; trying again"
            live.update(table.view(notice), refresh=True)


def _summary(snapshot: EngineSnapshot, rates: Rates | None) -> Table:
    table = Table.grid(padding=(0, 2))
    table.add_column(style="bold")
    table.add_column()
    waiting = snapshot.num_requests - snapshot.num_running
    total = f"{snapshot.hit_rate:.0%} of {snapshot.num_queried_tokens:,} prompt tokens since the start"
    recent = "" if rates is None or rates.hit_rate is None else f", {rates.hit_rate:.0%} now"
    speed = "" if rates is None else f"{rates.tokens:,.0f} tokens/s, {rates.steps:,.0f} steps/s, "
    table.add_row("model", terminal_text(snapshot.model))
    table.add_row(
        "rows",
        f"{snapshot.num_running} running (at most {snapshot.max_rows}), {waiting} waiting, {snapshot.num_preemptions} preemptions",
    )
    table.add_row("speed", f"{speed}{snapshot.num_generated_tokens:,} tokens generated since the start")
    table.add_row("hit rate", total + recent)
    used, cached, count = snapshot.num_used_pages, snapshot.num_cached_pages, snapshot.num_pages
    pages = f"{used:,} in use, {cached:,} cached, {snapshot.num_free_pages:,} free of {count:,}"
    table.add_row("pages", Text.assemble(_bar(used, cached, count), f" {pages}"))
    table.add_row(
        "prefixes",
        f"{snapshot.num_prefixes:,} stored, {snapshot.num_held_pages:,} pages held, {snapshot.num_evicted_pages:,} evicted",
    )
    if snapshot.num_states:
        table.add_row(
            "states",
            f"{snapshot.num_used_states:,} in use, {snapshot.num_kept_states:,} kept of {snapshot.num_states:,}, "
            f"{snapshot.num_evicted_states:,} evicted, {snapshot.num_replayed_tokens:,} tokens replayed",
        )
    if snapshot.num_returning_tokens:
        table.add_row(
            "sessions",
            f"{snapshot.returning_hit_rate:.1%} of {snapshot.num_returning_tokens:,} returning tokens cached, "
            f"{snapshot.num_suspended_sessions:,} times suspended",
        )
    if snapshot.process_bytes:
        table.add_row("memory", f"{snapshot.process_bytes / (1 << 20):,.0f} MiB in the process of the engine")
    return table


def _bar(used: int, cached: int, count: int) -> Text:
    first = round(_BAR_WIDTH * used / count)
    second = round(_BAR_WIDTH * (used + cached) / count) - first
    return Text.assemble(("#" * first, "blue"), ("=" * second, "cyan"), ("." * (_BAR_WIDTH - first - second), "dim"))


def _principals(requests: Iterable[WatchedRequest], rows: PrincipalRows) -> Table | None:
    """Principals by their work: requests and pages of the snapshot, and tokens, waits and work; None if no principal is named.

    Tokens are per second, and waits and work seconds per second, between two readings; else they are sums since the start.
    """
    by_name: dict[str, list[WatchedRequest]] = {name: [] for name in rows.loads}
    for request in requests:
        by_name.setdefault(request.principal, []).append(request)
    if not set(by_name) - {""}:
        return None
    unit = "" if rows.seconds is None else "/s"
    columns = ("running", "waiting", "open", f"prompt{unit}", f"cached{unit}", f"output{unit}", "pages")
    table = _table("principal", *columns, f"work s{unit}", "most work", f"waits s{unit}", "most waits")
    loads = {name: rows.loads.get(name, PrincipalLoad()) for name in by_name}
    for name in sorted(by_name, key=lambda each: (-loads[each].busy_s, -len(by_name[each]), each)):
        own, load, seconds = by_name[name], loads[name], rows.seconds or 1.0
        running = sum(each.state == "running" for each in own)
        table.add_row(
            terminal_text(name) or "(others)",
            str(running),
            str(len(own) - running),
            str(load.num_open),
            *(f"{load.tokens.get(kind, 0.0) / seconds:,.0f}" for kind in ("prompt", "cached", "output")),
            f"{sum(each.num_pages for each in own):,}",
            f"{load.busy_s / seconds:,.2f}",
            largest(load.work_s),
            f"{sum(load.waits_s.values()) / seconds:,.2f}",
            largest(load.waits_s),
        )
    return table


def _requests(snapshot: EngineSnapshot, num_rows: int) -> Table:
    table = _table(
        "request", "state", "principal", "prompt", "cached", "generated", "at most", "pages", "age s", "", "id"
    )
    for each in snapshot.requests[:num_rows]:
        table.add_row(
            str(each.request_id),
            each.state,
            terminal_text(each.principal),
            f"{each.num_prompt_tokens:,}",
            f"{each.num_cached_tokens:,}",
            f"{each.num_output_tokens:,}",
            f"{each.max_tokens:,}",
            f"{each.num_pages:,}",
            f"{each.age_s:.1f}",
            "constrained" if each.is_constrained else "",
            terminal_text(each.door_request_id),
        )
    hidden = snapshot.num_requests - min(num_rows, len(snapshot.requests))
    if hidden > 0:
        table.caption = f"{hidden:,} more"
    return table


def _sessions(snapshot: EngineSnapshot, num_rows: int) -> Table:
    table = _table(
        "session",
        "state",
        "principal",
        "of",
        "turns",
        "forks",
        "tokens",
        "cached",
        "last miss",
        "seen s",
        "kept",
        "key",
    )
    for each in snapshot.sessions[:num_rows]:
        share = each.num_cached_tokens / each.num_returning_tokens if each.num_returning_tokens else None
        table.add_row(
            str(each.session_id),
            each.state,
            terminal_text(each.principal),
            "" if each.parent_id is None else str(each.parent_id),
            f"{each.num_turns:,}",
            f"{each.num_forks:,}",
            f"{each.num_tokens:,}",
            "" if share is None else f"{share:.0%}",
            terminal_text(each.last_miss),
            f"{max(0.0, snapshot.taken_s - each.last_seen_s):.1f}",
            "yes" if each.is_held else "",
            terminal_text(each.key_digest),
        )
    hidden = len(snapshot.sessions) - num_rows
    if hidden > 0:
        table.caption = f"{hidden:,} more"
    return table


def _table(*columns: str) -> Table:
    table = Table(box=None, padding=(0, 1), header_style="bold", caption_justify="left")
    for name in columns:
        is_text = name in ("state", "principal", "", "id", "most work", "most waits", "last miss", "kept", "key")
        table.add_column(name, justify="left" if is_text else "right")
    return table
