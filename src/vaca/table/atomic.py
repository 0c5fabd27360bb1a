"""Files and folders that appear under their names only when they are complete.

Until then they have hidden names next to the final one, which say which process is writing. What a
killed process leaves behind is removed by the next one that writes the same name; a folder whose
writer was killed between two renames is put back by the next one that reads or writes it.
"""

from __future__ import annotations

import contextlib
import ctypes
import hashlib
import os
import shutil
import socket
import tempfile
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path

from vaca.errors import VacaError
from vaca.graph.parts import check_path

#: The flag of Linux's renameat2 that swaps two names at once.
_EXCHANGE = 2
_AT_FDCWD = -100


@contextmanager
def complete(path: str | Path) -> Iterator[Path]:
    """Give a temporary path for a file; it becomes `path` when the block ends without an error.

    Whatever happens inside, `path` holds either what it held before or the whole new file.
    """
    path = check_path(path)
    folder = None
    try:
        clean(path)
        folder = _hidden(path)
        part = folder / path.name
        yield part
        os.replace(part, path)
    except OSError as error:
        why = error.strerror or " ".join(str(error).split())
        raise VacaError(
            f"{path} could not be written: {why}; nothing was changed. "
            "Free some space or choose another place"
        ) from None
    finally:
        if folder is not None:
            shutil.rmtree(folder, ignore_errors=True)


@contextmanager
def work_folder(name: str) -> Iterator[Path]:
    """A temporary folder; what killed processes left of that name is removed first."""
    path = Path(tempfile.gettempdir()) / name
    clean(path)
    folder = _hidden(path)
    try:
        yield folder
    finally:
        shutil.rmtree(folder, ignore_errors=True)


def write_folder(path: Path, files: Mapping[str, bytes]) -> None:
    """Make `path` a folder of these files, in place of what is there, at once."""
    path.parent.mkdir(parents=True, exist_ok=True)
    clean(path)
    fresh = _hidden(path)
    try:
        for name, content in files.items():
            (fresh / name).write_bytes(content)
        fresh.chmod(0o777 & ~_umask())
        if not path.exists():
            os.replace(fresh, path)
        elif not _exchange(fresh, path):
            # Two renames: `recover` mends what a kill between them leaves.
            old = _hidden(path, "old")
            os.replace(path, old)
            try:
                os.replace(fresh, path)
            except OSError:
                os.replace(old, path)
                raise
            shutil.rmtree(old, ignore_errors=True)
    finally:
        shutil.rmtree(fresh, ignore_errors=True)  # after an exchange: what was there before


def try_to_write(path: Path) -> None:
    """Raise an `OSError` now, and not after all the work, if `path` cannot be written."""
    os.rmdir(_hidden(path.absolute()))


def recover(path: Path) -> None:
    """Put back a folder whose writer was killed after moving the old one away."""
    with contextlib.suppress(OSError):
        if not path.exists():
            for old in _left_behind(path, "old"):
                if any(old.iterdir()):
                    os.replace(old, path)
                    return


def clean(path: Path) -> None:
    """Remove what killed processes left beside `path`; what a living one still writes stays."""
    recover(path)
    for kind in ("new", "old"):
        for left in _left_behind(path, kind):
            shutil.rmtree(left, ignore_errors=True)


# ---------------------------------------------------------------------- hidden names


def _hidden(path: Path, kind: str = "new") -> Path:
    """A hidden folder beside `path`, with a name that says what it is for and who made it."""
    return Path(
        tempfile.mkdtemp(prefix=f"{_stem(path)}{kind}-{_host()}-{os.getpid()}-", dir=path.parent)
    )


def _stem(path: Path) -> str:
    raw = os.fsencode(path.name)
    # A name may have 255 bytes: a long one is cut, with a digest to tell it from others.
    name = path.name if len(raw) <= 120 else hashlib.sha256(raw).hexdigest()[:40]
    return f".{name}."


def _host() -> str:
    return hashlib.sha256(socket.gethostname().encode(errors="replace")).hexdigest()[:8]


def _left_behind(path: Path, kind: str) -> list[Path]:
    """Hidden folders of `path` whose makers, on this machine, are dead; oldest first."""
    start = f"{_stem(path)}{kind}-{_host()}-"
    try:
        names = [name for name in os.listdir(path.parent) if name.startswith(start)]
    except OSError:
        return []
    found = [path.parent / n for n in names if not _alive(n[len(start) :].partition("-")[0])]
    return sorted(found, key=lambda left: left.stat().st_mtime if left.exists() else 0.0)


def _alive(number: str) -> bool:
    if not number.isdecimal():
        return True
    try:
        os.kill(int(number), 0)
    except ProcessLookupError:
        return False
    except (OSError, OverflowError):
        return True  # somebody else's
    return True


def _exchange(one: Path, other: Path) -> bool:
    """Swap two folders at once, where the system can (Linux, most file systems)."""
    try:
        rename = ctypes.CDLL(None, use_errno=True).renameat2
    except (OSError, AttributeError, TypeError):
        return False
    names = os.fsencode(one), os.fsencode(other)
    return rename(_AT_FDCWD, names[0], _AT_FDCWD, names[1], _EXCHANGE) == 0


def _umask() -> int:
    mask = os.umask(0)
    os.umask(mask)
    return mask
