"""Files of object code: those that come with the package, and those that this machine compiled.

A file is named by a digest of the sources it was compiled from. It is written to the first of these folders that can be written to:

- $NUMBA_CACHE_DIR, where it is set;
- the folder of this package, so that code compiled when an image is built serves all users of the image;
- rtlang/code in the user's cache directory;
- a folder of the user's own among the temporary files.
"""

from __future__ import annotations

import contextlib
import os
import stat
import tempfile
import time
from collections.abc import Iterator
from pathlib import Path

from rtlang_grammars.machine.native.object_code import ObjectCode

try:
    import fcntl
except ImportError:  # Windows
    fcntl = None  # type: ignore[assignment]

SHIPPED = Path(__file__).parent / "code"
"""Where wheels have code for common processors."""
_CACHED = Path(__file__).parent / "__pycache__"
_NUM_KEPT = 8
"""Files of one group in a folder; older ones are removed."""
_LONGEST_WAIT_S = 120.0
_TURN_INTERVAL_S = 0.05


def find(group: str, digest: str, cpu: str = "*") -> ObjectCode | None:
    """The code of a group that was compiled from the same sources and runs on this processor; None if there is none.

    Args:
        cpu: the processors that it was compiled for; "*": any.
    """
    for folder in (SHIPPED, *_folders()):
        for path in sorted(_files(folder, f"{group}-{digest}-{cpu}.code")):
            with contextlib.suppress(OSError):
                if (
                    _is_trusted(folder)
                    and _is_trusted(path)
                    and (code := ObjectCode.unpacked(path.read_bytes()))
                    and code.runs_here()
                ):
                    return code
    return None


def keep(group: str, digest: str, code: ObjectCode) -> Path | None:
    """Write code to a file; None if no folder can be written to."""
    for folder in _folders():
        with contextlib.suppress(OSError):
            return write(folder, group, digest, code)
    return None


def write(folder: Path, group: str, digest: str, code: ObjectCode) -> Path:
    """Write code to a file of a folder, and remove the oldest files of the group.

    Raises:
        OSError: the folder cannot be written to.
    """
    path = _made(folder) / f"{group}-{digest}-{code.cpu}.code"
    handle, name = tempfile.mkstemp(prefix=".code-", dir=folder)
    try:
        with os.fdopen(handle, "wb") as file:
            file.write(code.packed())
        os.chmod(name, 0o644)
        os.replace(name, path)
    except BaseException:
        with contextlib.suppress(OSError):
            os.unlink(name)
        raise
    with contextlib.suppress(OSError):
        for old in sorted(_files(folder, f"{group}-*.code"), key=lambda each: -each.stat().st_mtime)[_NUM_KEPT:]:
            old.unlink(missing_ok=True)
    return path


@contextlib.contextmanager
def turn() -> Iterator[None]:
    """Wait until no other process of this user compiles, for two minutes at most; do not wait where files cannot be locked."""
    with contextlib.ExitStack() as stack:
        file = None
        for folder in _folders():
            with contextlib.suppress(OSError):
                file = stack.enter_context(open(_made(folder) / "rtlang-code.lock", "ab"))
                break
        deadline = time.monotonic() + _LONGEST_WAIT_S
        while fcntl is not None and file is not None and time.monotonic() < deadline:
            try:
                fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
                break
            except OSError:
                time.sleep(_TURN_INTERVAL_S)
        yield


def _folders() -> Iterator[Path]:
    given = os.environ.get("NUMBA_CACHE_DIR")
    if given:
        yield Path(given)
        return
    yield _CACHED
    base = os.environ.get("RTLANG_CACHE_DIR")
    if not base:
        cache = os.environ.get("XDG_CACHE_HOME") or os.path.join(os.path.expanduser("~"), ".cache")
        base = os.path.join(cache, "rtlang")
    if os.path.isabs(base):  # a user without a home has the home "~"
        yield Path(base) / "code"
    user = os.geteuid() if hasattr(os, "geteuid") else ""
    yield Path(tempfile.gettempdir()) / f"rtlang-code-{user}"


def _files(folder: Path, pattern: str) -> list[Path]:
    with contextlib.suppress(OSError):
        return list(folder.glob(pattern))
    return []


def _made(folder: Path) -> Path:
    """The folder, made if it is missing.

    Raises:
        OSError: it cannot be made, or others may write to it.
    """
    folder.mkdir(mode=0o755, parents=True, exist_ok=True)
    if not _is_trusted(folder):
        raise PermissionError(f"others may write to {folder}")
    return folder


def _is_trusted(path: Path) -> bool:
    """Whether nobody but this user, root and the owner of this package can have written a file, or exchanged a file in a folder."""
    if os.name != "posix":
        return True
    status, owners = path.stat(), {0, os.geteuid(), os.stat(__file__).st_uid}
    return status.st_uid in owners and (not status.st_mode & stat.S_IWOTH or bool(status.st_mode & stat.S_ISVTX))
