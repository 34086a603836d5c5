"""Checks any server of `rtlang.v1` against docs/protocol-v1.md: `python -m rtlang_bench.conformance URL`.

Uses websockets and msgpack only."""
