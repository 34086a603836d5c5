"""`rtlang keys`: the key it prints opens a server with the entry it writes."""

from __future__ import annotations

import stat
from pathlib import Path

from typer.testing import CliRunner

from rtlang.__main__ import app
from rtlang.contract.config import ServeConfig
from rtlang.serve.network.key_table import KeyTable


def key_in(output: str) -> str:
    return output.splitlines()[0].rsplit(" ", 1)[1]


def test_keys_are_appended_to_a_file_that_others_cannot_read(tmp_path: Path) -> None:
    path = tmp_path / "keys.toml"
    found = [CliRunner().invoke(app, ["keys", name, "--keys-file", str(path)]) for name in ("ana", "bo")]
    assert [each.exit_code for each in found] == [0, 0]
    assert stat.S_IMODE(path.stat().st_mode) == 0o600
    keys = [key_in(each.output) for each in found]
    assert not any(key in path.read_text() for key in keys)
    table = KeyTable(ServeConfig(keys_file=str(path)))
    principals = [table.principal_of(key) for key in keys]
    assert [each and each.name for each in principals] == ["ana", "bo"]


def test_without_a_file_the_entry_is_printed() -> None:
    found = CliRunner().invoke(app, ["keys", "ana"])
    first, _, entry = found.output.partition("\n")
    principal = KeyTable(ServeConfig(keys=entry)).principal_of(key_in(first))
    assert principal is not None
    assert principal.name == "ana"


def test_a_bad_name_and_a_bad_path_are_one_line(tmp_path: Path) -> None:
    for arguments in (["keys", "x" * 65], ["keys", "ana", "--keys-file", str(tmp_path / "no" / "keys.toml")]):
        found = CliRunner().invoke(app, arguments)
        assert found.exit_code == 1
        assert len(found.output.splitlines()) == 1
