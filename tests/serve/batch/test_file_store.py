"""Files of principals on the disk: bounded, apart from each other, and found again after a crash at any point."""

from __future__ import annotations

import shutil
import tempfile
from pathlib import Path

import pytest

from rtlang.contract.errors import ConfigError
from rtlang.serve.batch import file_store
from rtlang.serve.batch.file_store import FileQuotaError, FileStore


def put(store: FileStore, owner: str, data: bytes, expires_after_s: int | None = None) -> str:
    writer = store.begin(owner)
    writer.write(data)
    return store.publish(owner, writer, "in.jsonl", "batch", expires_after_s).file_id


def content(store: FileStore, owner: str, file_id: str) -> bytes | None:
    file = store.read(owner, file_id)
    if file is None:
        return None
    with file:
        return file.read()


@pytest.fixture(params=["durable", "temporary"])
def folder(request: pytest.FixtureRequest, tmp_path: Path) -> str | None:
    return str(tmp_path / "files") if request.param == "durable" else None


def test_a_file_belongs_to_its_principal_until_it_is_deleted_or_expires(folder: str | None) -> None:
    now = [1000.0]
    store = FileStore(folder, 1000, now=lambda: now[0])
    first, second = put(store, "ann", b"a\n" * 100), put(store, "ann", b"b", expires_after_s=60)
    assert [each.num_bytes for each in store.files("ann")] == [200, 1]
    assert content(store, "ann", first) == b"a\n" * 100
    for stranger in ("bob", "an", "../ann", ""):
        assert store.get(stranger, first) is None
        assert content(store, stranger, first) is None
        assert not store.delete(stranger, first)
        assert store.files(stranger) == []
    for unknown in ("", "..", "../x", first + "x", first.upper()):
        assert content(store, "ann", unknown) is None
    opened = store.read("ann", first)
    assert opened is not None
    assert store.delete("ann", first)
    assert not store.delete("ann", first)
    assert len(opened.read()) == 200  # a reader that has begun goes on
    opened.close()
    now[0] += 60
    assert store.get("ann", second) is None
    root = store._root
    assert root is not None
    assert all(path.stat().st_mode & 0o077 == 0 for path in (root, *filter(Path.is_dir, root.iterdir())))
    store.close()
    assert root.exists() is store.is_durable


def test_bytes_of_all_files_of_a_principal_are_bounded(folder: str | None, monkeypatch: pytest.MonkeyPatch) -> None:
    now = [0.0]
    store = FileStore(folder, 100, now=lambda: now[0])
    kept = put(store, "ann", b"x" * 60, expires_after_s=10)
    writer = store.begin("ann")
    writer.write(b"x" * 40)
    with pytest.raises(FileQuotaError, match="files_bytes"):
        writer.write(b"x")
    put(store, "bob", b"x" * 100)
    writer.drop()
    writer.drop()
    now[0] = 10  # what has expired makes room
    big = put(store, "ann", b"x" * 100)
    assert [each.file_id for each in store.files("ann")] == [big]
    assert kept != big
    store.delete("ann", big)
    monkeypatch.setattr(file_store, "MAX_FILES", 2)
    for _ in range(2):
        put(store, "ann", b"")
    with pytest.raises(FileQuotaError, match="2 files"):
        store.begin("ann")
    store.close()


def test_a_later_process_finds_what_was_whole(tmp_path: Path) -> None:
    folder = str(tmp_path)
    store = FileStore(folder, 10_000)
    whole = put(store, "ann", b"whole")
    half = store.begin("ann")
    half.write(b"half of an upload")
    output = store.begin("ann", file_store.new_file_id())
    output.write(b"one\ntwo\nthr")
    store.put_record("ann", "batch_1", {"state": 1})
    store.put_record("ann", "batch_1", {"state": 2})
    (path,) = (each for each in tmp_path.iterdir() if each.is_dir())
    (path / "file-0.json").write_text('{"id": "file-0", "by')  # as no version of ours writes it
    with pytest.raises(ConfigError, match="another server"):
        FileStore(folder, 10_000)
    half.release()
    output.release()
    store.close()  # the files themselves stay as a killed process leaves them
    later = FileStore(folder, 10_000)
    assert later.owners() == ["ann"]
    assert [each.file_id for each in later.files("ann")] == [whole]
    assert content(later, "ann", whole) == b"whole"
    assert list(later.records("ann")) == [{"state": 2}]
    assert not list(path.glob("*.part"))
    again = later.begin("ann", output.file_id)
    assert again.num_bytes == 8  # the last line had no end
    again.write(b"three\n")
    assert list(again.lines()) == [b"one\n", b"two\n", b"three\n"]
    stored = later.publish("ann", again, "out", "batch_output", None)
    assert content(later, "ann", stored.file_id) == b"one\ntwo\nthree\n"
    reopened = later.begin("ann", stored.file_id)  # by a batch that does not know that it was published
    assert later.get("ann", stored.file_id) is None
    assert later.publish("ann", reopened, "out", "batch_output", None).num_bytes == stored.num_bytes
    later.drop_record("ann", "batch_1")
    assert list(later.records("ann")) == []
    later.close()


@pytest.mark.parametrize("size", [0, 5, (1 << 16) - 1, 1 << 16, (1 << 16) + 1, 200_000])
def test_a_torn_line_of_any_length_is_cut_off(tmp_path: Path, size: int) -> None:
    store = FileStore(str(tmp_path), 1 << 20)
    for before in (b"", b"line\n", b"\n\n"):
        file_id = file_store.new_file_id()
        writer = store.begin("ann", file_id)
        writer.write(before + b"x" * size)
        writer.release()
        again = store.begin("ann", file_id)
        assert b"".join(again.lines()) == before
        again.drop()
    store.close()


def test_a_folder_that_cannot_be_used_is_named(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("")
    with pytest.raises(ConfigError) as caught:
        FileStore(str(tmp_path / "file"), 1000)
    assert caught.value.field == "files_dir"


def test_temporary_folders_of_killed_servers_are_deleted(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path))
    alive = FileStore(None, 1 << 20)
    writer = alive.begin("ann")
    (used,) = tmp_path.iterdir()
    stale, new, other = (tmp_path / name for name in ("rtlang-files-stale", "rtlang-files-new", "other"))
    for each in (stale, new, other):
        (each / "owner").mkdir(parents=True)
    for each in (stale, other):
        (each / "lock").touch()
    (tmp_path / "rtlang-files-link").symlink_to(other)
    cleaner = FileStore(None, 1 << 20)
    cleaner.begin("ann").release()
    cleaner.close()
    assert {each.name for each in tmp_path.iterdir()} == {used.name, new.name, other.name, "rtlang-files-link"}
    assert (other / "owner").exists()
    writer.write(b"x")
    assert alive.publish("ann", writer, "x", "batch", None).num_bytes == 1
    alive.close()
    assert not used.exists()
    late = FileStore(None, 1 << 20)
    kept, deleted = {*tmp_path.iterdir()}, list[Path]()

    def flock(file: int, operation: int) -> None:  # another server deletes the first folder before it is locked
        for made in {*tmp_path.iterdir()} - kept if not deleted else ():
            deleted.append(made)
            shutil.rmtree(made)

    monkeypatch.setattr(file_store.fcntl, "flock", flock)
    late.begin("ann").release()
    assert len(deleted) == 1
    late.close()
