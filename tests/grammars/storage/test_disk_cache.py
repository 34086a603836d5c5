"""Entries in files: what was stored is found, and nothing that could be wrong with a disk is more than a miss."""

from __future__ import annotations

import errno
import logging
import multiprocessing
import os
import random
import shutil
import subprocess
import sys
import threading
import time
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from rtlang_grammars.storage import disk_cache
from rtlang_grammars.storage.disk_cache import KEY_BYTES, DiskCache, packed, unpacked
from tests.support.waiting import wait_until

ARRAYS = [np.arange(50, dtype=np.int32), np.empty(0, dtype=np.int32), np.array([-(2**31), 2**31 - 1], dtype=np.int32)]
PLAIN: dict[str, Any] = {"a": [1, "ü", None, True], "b": {"c": 0.5}}


def key(number: int) -> bytes:
    return number.to_bytes(KEY_BYTES, "big")


def busy(cache: DiskCache) -> threading.Event:
    """Keep the writer waiting in the entry of key 0 until the event that is returned is set."""
    gate, begun = threading.Event(), threading.Event()

    def wait() -> None:
        begun.set()
        gate.wait()

    cache.offer(key(0), wait)
    begun.wait()
    return gate


def store(cache: DiskCache, number: int, size: int = 50) -> None:
    cache.offer(key(number), lambda: ({"number": number}, [np.full(size, number, dtype=np.int32)]))
    cache.flush()


def files(directory: Path) -> list[Path]:
    return sorted(directory.iterdir())


def test_what_was_stored_is_found_by_this_and_other_caches(tmp_path: Path) -> None:
    cache = DiskCache(tmp_path / "new" / "directory")
    assert cache.get(key(1)) is None
    cache.offer(key(1), lambda: (PLAIN, ARRAYS))
    cache.flush()
    for each in (cache, DiskCache(tmp_path / "new" / "directory")):
        found = each.get(key(1))
        assert found is not None
        assert found[0] == PLAIN
        for array, expected in zip(found[1], ARRAYS, strict=True):
            assert array.dtype == np.int32
            assert np.array_equal(array, expected)
        assert each.get(key(2)) is None
    assert (cache.counts.hits, cache.counts.misses, cache.counts.stored) == (1, 2, 1)
    assert not (tmp_path / "new" / "directory").stat().st_mode & 0o077


def test_every_truncation_and_every_changed_byte_is_seen() -> None:
    content = packed(key(7), PLAIN, ARRAYS)
    assert unpacked(content, key(7)) is not None
    assert unpacked(content, key(8)) is None
    for length in range(len(content)):
        assert unpacked(content[:length], key(7)) is None
    for at in range(len(content)):
        for bit in range(8):
            changed = bytearray(content)
            changed[at] ^= 1 << bit
            assert unpacked(bytes(changed), key(7)) is None
    assert unpacked(content + b"\0", key(7)) is None


@pytest.mark.parametrize("content", [b"", b"x", b"rtlang-grammar0\n" + bytes(200), os.urandom(5000)])
def test_files_that_are_no_entries_are_removed_and_said_once(
    tmp_path: Path, content: bytes, caplog: pytest.LogCaptureFixture
) -> None:
    cache = DiskCache(tmp_path)
    for number in (1, 2):
        store(cache, number)
    for path in files(tmp_path):
        path.write_bytes(content)
    with caplog.at_level(logging.WARNING):
        assert cache.get(key(1)) is None
        assert cache.get(key(2)) is None
    assert not files(tmp_path)
    assert cache.counts.damaged == 2
    assert len(caplog.records) == 1
    store(cache, 1)
    assert cache.get(key(1)) is not None


def test_an_entry_under_another_name_is_not_taken(tmp_path: Path) -> None:
    cache = DiskCache(tmp_path)
    store(cache, 1)
    (path,) = files(tmp_path)
    path.rename(tmp_path / path.name.replace("01.bin", "02.bin"))
    assert cache.get(key(2)) is None
    assert cache.counts.damaged == 1


def test_the_least_recently_used_go_first_and_the_bound_is_kept(tmp_path: Path) -> None:
    size = len(packed(key(1), {"number": 1}, [np.zeros(5000, dtype=np.int32)]))
    cache = DiskCache(tmp_path, max_bytes=8 * size)
    for number in range(1, 9):
        store(cache, number, 5000)
        path = tmp_path / f"grammar-{key(number).hex()}.bin"
        os.utime(path, (number, number))
    assert cache.get(key(1)) is not None  # which is now the last that was used
    store(cache, 9, 5000)
    kept = {number for number in range(1, 10) if cache.get(key(number)) is not None}
    assert kept >= {1, 8, 9}
    assert not kept & {2, 3}
    assert sum(path.stat().st_size for path in files(tmp_path)) <= 8 * size
    assert cache.counts.evicted == 9 - len(kept)


def test_what_other_processes_wrote_counts_and_what_is_too_large_is_left(tmp_path: Path) -> None:
    first, second = DiskCache(tmp_path, 100_000), DiskCache(tmp_path, 100_000)
    store(first, 1, 100)
    for number in range(2, 9):
        store(second, number, 4000)
    for number in range(9, 15):
        store(first, number, 4000)
    assert sum(path.stat().st_size for path in files(tmp_path)) <= 100_000
    store(first, 20, 20_000)
    assert first.get(key(20)) is None
    assert first.counts.unfit == 1


def test_what_broken_writers_left_is_removed(tmp_path: Path) -> None:
    old, new = tmp_path / ".grammar-old", tmp_path / ".grammar-new"
    for path in (old, new):
        path.write_bytes(b"half")
    os.utime(old, (1, 1))
    (tmp_path / "other").write_bytes(b"not ours")
    store(DiskCache(tmp_path), 1)
    assert not old.exists()
    assert new.exists()
    assert (tmp_path / "other").exists()


def test_a_directory_that_cannot_be_made_or_read_is_said_once(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    (tmp_path / "file").write_bytes(b"")
    with caplog.at_level(logging.WARNING):
        cache = DiskCache(tmp_path / "file" / "below")
        for number in (1, 2):
            store(cache, number)
            assert cache.get(key(number)) is None
    assert cache.counts.failures == 1
    assert cache.counts.stored == 0
    assert len(caplog.records) == 1


@pytest.mark.parametrize("code", [errno.EACCES, errno.EROFS, errno.ENOSPC, errno.EDQUOT])
def test_a_disk_that_refuses_to_be_written_is_left_alone_after_a_while(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture, code: int
) -> None:
    def refuse(*_: object, **__: object) -> Any:
        raise OSError(code, os.strerror(code))

    cache = DiskCache(tmp_path)
    store(cache, 1)
    monkeypatch.setattr(disk_cache.tempfile, "mkstemp", refuse)
    made: list[int] = []
    with caplog.at_level(logging.WARNING):
        for number in range(2, 9):
            cache.offer(key(number), lambda number=number: made.append(number) or (PLAIN, ARRAYS))  # type: ignore[misc, func-returns-value]
            cache.flush()
    assert cache.counts.failures == 3
    assert made == [2, 3, 4]
    assert len(caplog.records) == 1
    assert cache.get(key(1)) is not None  # reading goes on


def test_a_write_that_fails_half_way_leaves_nothing(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def refuse(*_: object) -> None:
        raise OSError(errno.ENOSPC, "no space")

    cache = DiskCache(tmp_path)
    monkeypatch.setattr(disk_cache.os, "replace", refuse)
    store(cache, 1)
    assert not files(tmp_path)
    assert cache.counts.failures == 1


@pytest.mark.parametrize("name", ["a\0b", "\ud800", "x" * 300])
def test_a_directory_whose_name_no_file_can_have_is_said_once(tmp_path: Path, name: str) -> None:
    cache = DiskCache(tmp_path / name)
    store(cache, 1)
    assert cache.get(key(1)) is None
    assert cache.counts.failures == 1


def entry_path(directory: Path, number: int) -> Path:
    return directory / f"grammar-{key(number).hex()}.bin"


def test_a_file_larger_than_all_may_be_is_removed_unread(tmp_path: Path) -> None:
    cache = DiskCache(tmp_path, 100_000)
    store(cache, 1)
    with entry_path(tmp_path, 1).open("r+b") as file:
        file.truncate(1 << 42)  # more than fits in memory; no blocks of a disk
    assert cache.get(key(1)) is None
    assert cache.counts.damaged == 1
    assert not files(tmp_path)
    store(cache, 1)
    assert cache.get(key(1)) is not None


def test_where_memory_runs_out_nothing_is_found(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def fail(status: os.stat_result) -> bool:
        raise MemoryError

    cache = DiskCache(tmp_path)
    store(cache, 1)
    with monkeypatch.context() as patch:
        patch.setattr(disk_cache, "_is_own", fail)
        assert cache.get(key(1)) is None
    assert cache.get(key(1)) is not None


@pytest.mark.skipif(not hasattr(os, "mkfifo"), reason="pipes of POSIX")
def test_a_pipe_and_a_directory_in_place_of_a_file_are_misses(tmp_path: Path) -> None:
    cache = DiskCache(tmp_path)
    os.mkfifo(entry_path(tmp_path, 1))
    entry_path(tmp_path, 2).mkdir()
    for number in (1, 2):
        assert cache.get(key(number)) is None
        store(cache, number)
    assert cache.counts.failures == 2
    assert cache.counts.stored == 0
    store(cache, 3)
    assert cache.get(key(3)) is not None


@pytest.mark.skipif(not Path("/dev/fd").is_dir(), reason="nothing says which files are open")
def test_what_is_no_file_is_not_left_open(tmp_path: Path) -> None:
    cache = DiskCache(tmp_path)
    entry_path(tmp_path, 1).mkdir()
    before = len(os.listdir("/dev/fd"))
    assert [cache.get(key(1)) for _ in range(20)] == [None] * 20
    assert len(os.listdir("/dev/fd")) < before + 20


def test_a_directory_that_is_removed_is_made_again(tmp_path: Path) -> None:
    cache = DiskCache(tmp_path / "cache")
    store(cache, 1)
    shutil.rmtree(tmp_path / "cache")
    assert cache.get(key(1)) is None
    store(cache, 2)
    assert cache.get(key(2)) is not None
    assert cache.counts.failures == 0
    shutil.rmtree(tmp_path / "cache")
    (tmp_path / "cache").write_bytes(b"")
    store(cache, 3)
    assert cache.get(key(3)) is None


def test_a_relative_directory_stays_where_it_was(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "elsewhere").mkdir()
    monkeypatch.chdir(tmp_path)
    cache = DiskCache(Path("cache"))
    store(cache, 1)
    monkeypatch.chdir(tmp_path / "elsewhere")
    assert cache.get(key(1)) is not None
    store(cache, 2)
    assert entry_path(tmp_path / "cache", 2).exists()


def test_what_a_clock_that_was_set_back_left_goes_first(tmp_path: Path) -> None:
    size = len(packed(key(1), {"number": 1}, [np.zeros(5000, dtype=np.int32)]))
    cache = DiskCache(tmp_path, max_bytes=8 * size)
    later = time.time() + 1e8
    for number in range(1, 5):
        store(cache, number, 5000)
        os.utime(entry_path(tmp_path, number), (later, later))
    broken = tmp_path / ".grammar-broken"
    broken.write_bytes(b"half")
    os.utime(broken, (later, later))
    for number in range(5, 10):
        store(cache, number, 5000)
    assert all(cache.get(key(number)) is not None for number in range(5, 10))
    assert cache.counts.evicted == 2
    assert not broken.exists()


def test_what_cannot_be_removed_counts_and_what_is_no_file_does_not(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    size = len(packed(key(1), {"number": 1}, [np.zeros(5000, dtype=np.int32)]))
    (tmp_path / "grammar-x.bin").mkdir()
    cache = DiskCache(tmp_path, max_bytes=8 * size)
    for number in range(1, 9):
        store(cache, number, 5000)
    kept, unlink = entry_path(tmp_path, 1), Path.unlink
    os.utime(kept, (1, 1))

    def refuse(path: Path) -> None:
        if path == kept:
            raise PermissionError(errno.EPERM, "no")
        unlink(path)

    monkeypatch.setattr(Path, "unlink", refuse)
    store(cache, 9, 5000)
    sizes = [path.stat().st_size for path in files(tmp_path) if path.is_file()]
    assert kept.exists()
    assert sum(sizes) <= 8 * size
    assert cache.counts.evicted == 9 - len(sizes)


@pytest.mark.skipif(not hasattr(os, "fork"), reason="there are no forks")
@pytest.mark.filterwarnings("ignore:.*fork:DeprecationWarning")
def test_a_fork_has_a_writer_of_its_own(tmp_path: Path) -> None:
    cache = DiskCache(tmp_path)
    gate = busy(cache)
    cache.offer(key(1), lambda: (PLAIN, ARRAYS))  # waits for its turn, and goes on waiting in the parent alone
    child = os.fork()
    if not child:
        store(cache, 2)
        os._exit(0 if cache.get(key(2)) is not None and cache.get(key(1)) is None else 1)
    assert os.waitpid(child, 0)[1] == 0
    gate.set()
    cache.flush()
    assert all(cache.get(key(number)) is not None for number in (1, 2))


_WRITER = """
import sys
from pathlib import Path
import numpy as np
from rtlang_grammars.storage.disk_cache import KEY_BYTES, DiskCache
cache = DiskCache(Path(sys.argv[1]), 4_000_000)
print("begun", flush=True)
for number in range(10**9):
    array = np.full(60_000, number % 7, dtype=np.int32)
    cache.offer((number % 7).to_bytes(KEY_BYTES, "big"), lambda: ({"number": number % 7}, [array]))
    cache.flush()
    for path in Path(sys.argv[1]).glob("grammar-*"):
        path.unlink(missing_ok=True)
"""


@pytest.mark.skipif(os.name != "posix", reason="signals of POSIX")
def test_a_writer_that_is_killed_leaves_nothing_that_is_taken_for_an_entry(tmp_path: Path) -> None:
    environment = {**os.environ, "PYTHONPATH": os.pathsep.join(each for each in sys.path if each)}
    reader = DiskCache(tmp_path, 4_000_000)
    for _ in range(3):
        command = [sys.executable, "-c", _WRITER, str(tmp_path)]
        with subprocess.Popen(command, env=environment, stdout=subprocess.PIPE) as writer:
            assert writer.stdout is not None
            assert writer.stdout.readline() == b"begun\n"
            for _ in range(60):  # it writes and removes meanwhile
                for number in range(7):
                    found = reader.get(key(number))
                    assert found is None or np.array_equal(found[1][0], np.full(60_000, number))
            writer.kill()
        for number in range(7):
            found = reader.get(key(number))
            assert found is None or np.array_equal(found[1][0], np.full(60_000, number))
    assert reader.counts.damaged == reader.counts.failures == 0


@pytest.mark.skipif(os.name != "posix" or os.geteuid() == 0, reason="root may read everything")
def test_files_without_permission_are_misses(tmp_path: Path) -> None:
    cache = DiskCache(tmp_path)
    store(cache, 1)
    (path,) = files(tmp_path)
    path.chmod(0)
    assert cache.get(key(1)) is None
    assert cache.counts.failures == 1
    tmp_path.chmod(0o500)
    store(cache, 2)
    tmp_path.chmod(0o700)
    assert cache.counts.failures == 2


@pytest.mark.skipif(os.name != "posix", reason="modes of POSIX")
def test_what_others_may_write_is_not_read(tmp_path: Path) -> None:
    cache = DiskCache(tmp_path)
    store(cache, 1)
    (path,) = files(tmp_path)
    path.chmod(0o666)
    assert cache.get(key(1)) is None
    path.chmod(0o600)
    assert cache.get(key(1)) is not None
    tmp_path.chmod(0o777)
    assert DiskCache(tmp_path).get(key(1)) is None
    tmp_path.chmod(0o700)


def test_what_cannot_be_made_is_counted_and_the_next_is_written(tmp_path: Path) -> None:
    def fail() -> None:
        raise ValueError("no")

    cache = DiskCache(tmp_path)
    cache.offer(key(1), fail)
    cache.offer(key(2), lambda: None)
    store(cache, 3)
    assert (cache.counts.unfit, cache.counts.stored) == (2, 1)


def test_what_comes_faster_than_it_is_written_is_dropped(tmp_path: Path) -> None:
    cache = DiskCache(tmp_path)
    gate = busy(cache)
    for number in range(1, 40):
        cache.offer(key(number), lambda: (PLAIN, ARRAYS))
    gate.set()
    cache.flush()
    assert cache.counts.stored + cache.counts.dropped == 39
    assert cache.counts.stored == 16
    assert len(files(tmp_path)) == 16


def _hammer(directory: Path, seed: int) -> int:
    """Write and read for a while in one process; the number of wrong answers."""
    rng, cache = random.Random(seed), DiskCache(directory, 60_000)
    wrong = 0
    for _ in range(60):
        number = rng.randrange(12)
        if rng.random() < 0.5:
            store(cache, number, 1000 + number)
        found = cache.get(key(number))
        if found is not None:
            wrong += found[0] != {"number": number} or not np.array_equal(found[1][0], np.full(1000 + number, number))
    return wrong + cache.counts.damaged + cache.counts.failures


def test_an_idle_cache_has_no_thread(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(disk_cache, "_IDLE_S", 0.001)
    cache, before = DiskCache(tmp_path), set(threading.enumerate())
    for number in range(50):  # some come while the thread is about to end
        cache.offer(key(number), lambda: (PLAIN, ARRAYS))
        if number % 10 == 0:
            cache.flush()
            wait_until(lambda: set(threading.enumerate()) <= before)
        time.sleep(0.001)
    cache.flush()
    assert all(cache.get(key(number)) is not None for number in range(50))


def test_processes_may_share_a_directory(tmp_path: Path) -> None:
    with multiprocessing.get_context("spawn").Pool(2) as pool:
        assert pool.starmap(_hammer, [(tmp_path, seed) for seed in range(2)]) == [0, 0]
    assert not [path for path in files(tmp_path) if path.name.startswith(".")]


def test_threads_may_share_a_cache(tmp_path: Path) -> None:
    cache = DiskCache(tmp_path)

    def work(seed: int) -> None:
        rng = random.Random(seed)
        for _ in range(100):
            number = rng.randrange(8)
            cache.offer(key(number), lambda number=number: ({"number": number}, []))  # type: ignore[misc]
            found = cache.get(key(number))
            assert found is None or found[0] == {"number": number}

    errors: list[BaseException] = []

    def guarded(seed: int) -> None:
        try:
            work(seed)
        except BaseException as error:
            errors.append(error)

    threads = [threading.Thread(target=guarded, args=(seed,)) for seed in range(4)]
    for each in threads:
        each.start()
    for each in threads:
        each.join()
    cache.flush()
    assert not errors
    assert cache.counts.damaged == cache.counts.failures == 0
    for number in range(8):  # what was dropped
        store(cache, number)
    assert all(cache.get(key(number)) is not None for number in range(8))
