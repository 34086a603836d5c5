"""The table of `rtlang top --fleet`: the replicas behind a frontend."""

from __future__ import annotations

from rich.console import Group, RenderableType
from rich.table import Table
from rich.text import Text

from rtlang.console.server_requests import ServerAddress, ServerError
from rtlang.contract.process.terminal_text import terminal_text
from rtlang.contract.service.fleet_report import FleetReport, ReplicaReport, read_fleet_report

PATH = "/v1/fleet"
_COLUMNS = (
    "replica",
    "state",
    "role",
    "programs",
    "rows",
    "waiting tokens",
    "pages used",
    "hit rate",
    "deaths",
    "moved",
)
_LEFT = ("replica", "state", "role")
_STALE_S = 3.0
"""Engines are asked every second, and a step may take one."""
_STYLES = {
    "ready": "green",
    "draining": "yellow",
    "spare": "blue",
    "loading": "cyan",
    "restarting": "yellow",
    "dead": "red",
}


def fetch_fleet(server: ServerAddress) -> FleetReport:
    """The present state of the fleet behind a server.

    Raises:
        ServerError: the server is not reachable, or runs no fleet.
    """
    plain = server.get(PATH)
    try:
        return read_fleet_report(plain)
    except ValueError as error:
        raise ServerError(f"{server.url}{PATH}: {error}; the server may run another version", 200) from None


def fleet_view(report: FleetReport, notice: str = "") -> RenderableType:
    """The table of a report, and a line at the end."""
    ready = sum(each.state == "ready" for each in report.replicas)
    waiting = sum(each.num_waiting_tokens for each in report.replicas)
    queried = sum(each.num_queried_tokens for each in report.replicas)
    hits = sum(each.num_hit_tokens for each in report.replicas)
    summary = Table.grid(padding=(0, 2))
    summary.add_column(style="bold")
    summary.add_column()
    summary.add_row("model", terminal_text(report.model))
    summary.add_row("replicas", f"{ready} ready of {len(report.replicas)}")
    summary.add_row("programs", f"{report.num_programs:,} running, {report.num_unplaced:,} without a replica")
    summary.add_row("waiting", f"{waiting:,} tokens{_balance(report)}")
    summary.add_row("hit rate", f"{hits / queried if queried else 0:.0%} of {queried:,} prompt tokens since the start")
    table = Table(box=None, padding=(0, 1), header_style="bold")
    for name in _COLUMNS:
        table.add_column(name, justify="left" if name in _LEFT else "right")
    for each in report.replicas:
        table.add_row(*_row(each))
    parts: list[RenderableType] = [summary, "", table]
    if notice:
        parts.append(Text(terminal_text(notice), style="red"))
    return Group(*parts)


def _balance(report: FleetReport) -> str:
    """The waiting work of the busiest replica, as a multiple of the mean of those that are ready."""
    waiting = [each.num_waiting_tokens for each in report.replicas if each.state == "ready"]
    if len(waiting) < 2 or not sum(waiting):
        return ""
    return f", busiest replica {max(waiting) * len(waiting) / sum(waiting):.2f} times the mean"


def _row(replica: ReplicaReport) -> tuple[str | Text, ...]:
    state = replica.state
    if replica.report_age_s is not None and replica.report_age_s > _STALE_S and state in ("ready", "spare", "draining"):
        state += f" (silent for {replica.report_age_s:.0f} s)"
    used = replica.num_pages - replica.num_free_pages
    return (
        terminal_text(replica.name),
        Text(terminal_text(state), style=_STYLES.get(replica.state, "")),
        terminal_text(replica.role),
        f"{replica.num_programs:,}",
        f"{replica.num_running:,}",
        f"{replica.num_waiting_tokens:,}",
        f"{used / replica.num_pages:.0%}" if replica.num_pages else "-",
        f"{replica.hit_rate:.0%}" if replica.num_queried_tokens else "-",
        f"{replica.num_deaths:,}",
        f"{replica.num_moved:,}",
    )
