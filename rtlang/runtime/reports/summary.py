"""The model, the device and the load of a runtime for a notebook."""

from __future__ import annotations

from collections.abc import Mapping

from rtlang.contract.pictures.page import table_fragment


def summary_table(model: str, device: str, state: str, stats: Mapping[str, int] | None) -> str:
    """HTML of a runtime; `stats` are its counters, None if nothing runs."""
    title, caption = f"Runtime {model}", f"on {device}, {state}"
    if stats is None:
        return table_fragment(title, (), (), caption)
    num_asked, num_cached = stats["num_prompt_tokens"], stats["num_cached_tokens"]
    share = f" ({num_cached / num_asked:.0%})" if num_asked else ""
    rows = (
        (
            "pages",
            f"{stats['num_pages_in_use']} in use, {stats['num_pages_cached']} cached, of {stats['num_pages']}",
        ),
        ("requests", f"{stats['num_requests_running']} running, {stats['num_requests_waiting']} waiting"),
        ("graphs", f"{stats['num_graphs']} open"),
        ("prompt tokens", f"{num_asked}, of them {num_cached} from the cache{share}"),
        ("generated tokens", str(stats["num_generated_tokens"])),
    )
    return table_fragment(title, (), rows, caption)
