"""Pages on disk: they outlive the process, and no damaged or foreign file is ever used. (What every tier keeps to: test_tier.py.)"""

from __future__ import annotations

import logging
import os
import random
import time
from pathlib import Path

import pytest

from rtlang.cache.tiers import disk_tier
from rtlang.cache.tiers.disk_tier import DiskTier

SIZE = 256
DIGESTS = [number.to_bytes(16, "little") for number in range(8)]


def content(number: int) -> bytes:
    return random.Random(number).randbytes(SIZE)


def opened(folder: Path, identity: str = "model", max_bytes: int = 1 << 20, page_bytes: int = SIZE) -> DiskTier:
    tier = DiskTier(folder, identity, page_bytes, max_bytes)
    tier.open()
    return tier


def filled(folder: Path, **settings: int) -> DiskTier:
    tier = opened(folder, **settings)  # type: ignore[arg-type]
    for number, digest in enumerate(DIGESTS):
        tier.put(digest, memoryview(content(number)))
    return tier


def files(folder: Path) -> list[Path]:
    return sorted(path for path in folder.rglob("*") if path.is_file())


def test_pages_are_found_by_the_next_process(tmp_path: Path) -> None:
    filled(tmp_path).close()
    tier = opened(tmp_path)
    assert tier.stats.num_pages == len(DIGESTS)
    for number, digest in enumerate(DIGESTS):
        found = tier.get(digest)
        assert found is not None
        assert bytes(found) == content(number)
    assert all(path.stat().st_mode & 0o777 == 0o600 for path in files(tmp_path))
    assert all(path.stat().st_mode & 0o777 == 0o700 for path in tmp_path.rglob("*") if path.is_dir())


@pytest.mark.parametrize("damage", ["flip", "truncate", "grow", "empty", "swap", "header"])
def test_a_damaged_file_is_reported_removed_and_never_used(
    damage: str, tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    filled(tmp_path)
    generator, paths = random.Random(damage), files(tmp_path)
    before = [path.read_bytes() for path in paths]
    for path, data in zip(paths, before, strict=True):
        changed = bytearray(data)
        match damage:
            case "flip":
                changed[generator.randrange(len(changed))] ^= 1 << generator.randrange(8)
            case "truncate":
                del changed[generator.randrange(1, len(changed)) :]
            case "grow":
                changed += b"x"
            case "empty":
                changed.clear()
            case "swap":  # the file of another digest under this name
                changed[:] = before[paths.index(path) - 1]
            case "header":
                changed[generator.randrange(64)] ^= 255
        path.write_bytes(changed)
    tier = opened(tmp_path)
    with caplog.at_level(logging.WARNING):
        assert [tier.get(digest) for digest in DIGESTS] == [None] * len(DIGESTS)
    assert tier.stats.num_bad == len(DIGESTS)
    assert files(tmp_path) == []
    assert tier.stats.num_bytes == tier.stats.num_pages == 0
    assert "is not used and removed" in caplog.text
    assert len(caplog.records) == disk_tier._MAX_WARNINGS + 1
    tier.put(DIGESTS[0], memoryview(content(0)))
    assert bytes(tier.get(DIGESTS[0]) or b"") == content(0)


def test_a_file_of_another_model_is_not_used(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    filled(tmp_path)
    other = opened(tmp_path, "other")
    assert other.stats.num_pages == 0
    assert not any(map(other.has, DIGESTS))
    assert other.get(DIGESTS[0]) is None
    assert caplog.text == ""
    for path in files(tmp_path):  # even where it lies under the name of this one
        target = tmp_path / other._own / path.parent.name / path.name
        target.parent.mkdir(parents=True, exist_ok=True)
        target.write_bytes(path.read_bytes())
    assert [other.get(digest) for digest in DIGESTS] == [None] * len(DIGESTS)
    assert "it belongs to another model" in caplog.text
    assert opened(tmp_path, page_bytes=SIZE * 2).get(DIGESTS[0]) is None


def test_the_bound_holds_for_files_of_all_models_and_the_oldest_go_first(tmp_path: Path) -> None:
    filled(tmp_path)
    for age, path in enumerate(reversed(files(tmp_path))):
        os.utime(path, (1e9 - age, 1e9 - age))
    oldest = files(tmp_path)[0]
    tier = opened(tmp_path, "other", max_bytes=len(DIGESTS) * (SIZE + 64))
    tier.put(DIGESTS[0], memoryview(content(0)))
    assert tier.stats.num_evicted == 1
    assert not oldest.exists()
    assert len(files(tmp_path)) == len(DIGESTS)
    assert len(files(tmp_path / tier._own)) == 1
    opened(tmp_path, max_bytes=3 * (SIZE + 64))
    assert len(files(tmp_path)) == 3
    assert len(files(tmp_path / tier._own)) == 1


def test_processes_that_share_a_folder_find_and_miss_each_others_files(tmp_path: Path) -> None:
    a, b = opened(tmp_path), opened(tmp_path)
    a.put(DIGESTS[0], memoryview(content(0)))
    assert b.has(DIGESTS[0])
    assert bytes(b.get(DIGESTS[0]) or b"") == content(0)
    assert b.stats.num_pages == 1
    b.clear()
    assert a.get(DIGESTS[0]) is None
    assert a.stats.num_pages == a.stats.num_bytes == 0


def test_unfinished_files_are_neither_used_nor_kept(tmp_path: Path) -> None:
    path = files(filled(tmp_path)._folder)[0]
    unfinished = path.with_name("x.tmp")
    unfinished.write_bytes(b"x")
    opened(tmp_path)
    assert unfinished.exists()  # another process may be writing it
    os.utime(unfinished, (time.time() - 3600,) * 2)
    assert opened(tmp_path).stats.num_pages == len(DIGESTS)
    assert not unfinished.exists()


def test_a_folder_that_cannot_be_written_stores_nothing(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    blocked = tmp_path / "file"
    blocked.write_text("no folder")
    tier = filled(blocked)
    assert tier.stats.num_pages == 0
    assert tier.get(DIGESTS[0]) is None
    assert "cannot be used" in caplog.text


def test_after_a_failed_write_the_tier_pauses(
    tmp_path: Path, caplog: pytest.LogCaptureFixture, monkeypatch: pytest.MonkeyPatch
) -> None:
    tier = opened(tmp_path)
    monkeypatch.setattr(Path, "replace", lambda self, target: (_ for _ in ()).throw(OSError(28, "No space left")))
    for number, digest in enumerate(DIGESTS):
        tier.put(digest, memoryview(content(number)))
    assert len(caplog.records) == 1
    assert "No space left" in caplog.text
    assert files(tmp_path) == []
    assert tier.stats.num_pages == 0


def test_nothing_is_written_after_the_end(tmp_path: Path) -> None:
    tier = opened(tmp_path)
    tier.put(DIGESTS[0], memoryview(content(0)))
    tier.close()
    tier.put(DIGESTS[1], memoryview(content(1)))
    assert len(files(tmp_path)) == 1


def test_states_are_stored_beside_pages_and_other_sizes_are_refused(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    tier = DiskTier(tmp_path, "model", SIZE, 1 << 20, 3 * SIZE)
    tier.open()
    sizes = [SIZE, 3 * SIZE, 2 * SIZE]
    for number, (digest, size) in enumerate(zip(DIGESTS, sizes, strict=False)):
        tier.put(digest, memoryview(random.Random(number).randbytes(size)))
    again = DiskTier(tmp_path, "model", SIZE, 1 << 20, 3 * SIZE)
    again.open()
    assert again.stats.num_bytes == sum(sizes) + 3 * 64
    assert [again.get(digest) for digest in DIGESTS[:2]] == [
        random.Random(number).randbytes(size) for number, size in enumerate(sizes[:2])
    ]
    assert again.get(DIGESTS[2]) is None
    assert f"expected {SIZE + 64} or {3 * SIZE + 64} bytes" in caplog.text
    assert DIGESTS[2].hex() in caplog.text
    assert again.stats.num_bad == 1
