"""How files get to their places: step by step, each of which may be the last before a power cut.

Directories are held open, and names are looked up in them: what is swapped for a symlink meanwhile
leads nowhere else. Nothing that is there already is overwritten, unless that is asked for.
"""

from __future__ import annotations

import errno
import fcntl
import os
import shutil
import stat
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path, PurePosixPath

from headway.apps.media.library.errors import (
    LibraryFull,
    LibraryGone,
    LibraryReadOnly,
    UnsafePath,
)

PRIVATE = ".headway"  # what is ours alone, below the root
MARKER = ".headway-archive"  # says that this is a library, and which

_DIRECTORY = os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC
_NO_LINKS = frozenset(
    {errno.EPERM, errno.ENOTSUP, errno.EOPNOTSUPP, errno.ENOSYS, errno.EMLINK, errno.EINVAL}
)
_NO_LOCKS = frozenset({errno.ENOLCK, errno.ENOTSUP, errno.EOPNOTSUPP, errno.ENOSYS, errno.EINVAL})
_AWAY = frozenset({errno.ENOTCONN, errno.ESTALE, errno.EIO, errno.ENODEV, errno.ENXIO})

_one_at_a_time = threading.Lock()


def sync(fd: int) -> None:
    """Until it returns, a power cut may undo what was written to this file or directory."""
    try:
        if hasattr(fcntl, "F_FULLFSYNC"):  # macOS: fsync alone leaves it in the drive's memory
            fcntl.fcntl(fd, fcntl.F_FULLFSYNC)
        else:
            os.fsync(fd)
    except OSError as error:
        if error.errno not in (errno.EINVAL, errno.ENOTSUP, errno.EOPNOTSUPP):
            raise  # those say that this disk cannot be asked, as with directories over SMB


# ---------------------------------------------------------------------- directories


@contextmanager
def open_root(root: Path) -> Iterator[int]:
    """The library's own directory, which may be a symlink. It must carry its marker: below an
    empty mount point nothing is ever written.
    """
    with plain_errors(root):
        try:
            fd = os.open(root, _DIRECTORY)
        except (FileNotFoundError, NotADirectoryError) as error:
            raise LibraryGone(f"{root} is not there; its mount is probably away.") from error
        try:
            if not exists(MARKER, fd):
                raise LibraryGone(f"{root} has no {MARKER}: its mount is probably away.")
            yield fd
        finally:
            os.close(fd)


@contextmanager
def plain_errors(root: Path) -> Iterator[None]:
    """Says in our words what a disk says in numbers."""
    try:
        yield
    except OSError as error:
        if error.errno in (errno.ENOSPC, errno.EDQUOT):
            raise LibraryFull(f"There is no space left in {root}. Free some.") from error
        if error.errno == errno.EROFS:
            raise LibraryReadOnly(f"{root} is mounted read-only; mount it writable.") from error
        if error.errno == errno.EACCES:
            raise LibraryReadOnly(f"This process lacks a right in {root} ({error}).") from error
        if error.errno in _AWAY:
            raise LibraryGone(f"{root} cannot be reached ({error.strerror}).") from error
        raise


@contextmanager
def open_below(root_fd: int, directory: PurePosixPath, *, make: bool = False) -> Iterator[int]:
    """A directory below the root, made if need be, never through a symlink."""
    check_relative(directory)
    fd = os.dup(root_fd)
    try:
        for name in directory.parts:
            if make:
                _make(fd, name)
            inner = _enter(fd, name, directory)
            os.close(fd)
            fd = inner
        yield fd
    finally:
        os.close(fd)


def make_private(root_fd: int, directory: PurePosixPath) -> None:
    """Directories below the root that nobody else may look into."""
    for end in range(1, len(directory.parts) + 1):
        path = PurePosixPath(*directory.parts[:end])
        with open_below(root_fd, path.parent) as fd:
            _make(fd, path.name, 0o700)
    with open_below(root_fd, directory):  # it is no symlink
        return


def check_relative(path: PurePosixPath) -> None:
    if path.is_absolute() or ".." in path.parts or "\0" in str(path):
        raise UnsafePath(f"{str(path)!r} leads out of the library.")


def _make(fd: int, name: str, mode: int = 0o755) -> None:
    try:
        os.mkdir(name, mode, dir_fd=fd)
    except FileExistsError:
        return
    sync(fd)


def _enter(fd: int, name: str, directory: PurePosixPath) -> int:
    try:
        return os.open(name, _DIRECTORY | os.O_NOFOLLOW, dir_fd=fd)
    except OSError as error:
        if error.errno not in (errno.ELOOP, errno.ENOTDIR):
            raise
        if not stat.S_ISLNK(os.lstat(name, dir_fd=fd).st_mode):
            raise
        raise UnsafePath(
            f"{name!r} in {str(directory)!r} is a symlink. The library writes to no place but its "
            "own: put a directory there, or mount the other place over it."
        ) from error


@contextmanager
def locked(root_fd: int) -> Iterator[None]:
    """One at a time changes names: of this process, and of all others where the disk can lock."""
    with _one_at_a_time:
        _make(root_fd, PRIVATE, 0o700)
        with open_below(root_fd, PurePosixPath(PRIVATE)) as private:
            flags = os.O_RDWR | os.O_CREAT | os.O_NOFOLLOW | os.O_CLOEXEC
            fd = os.open("lock", flags, 0o600, dir_fd=private)
        try:
            try:
                fcntl.flock(fd, fcntl.LOCK_EX)
            except OSError as error:
                if error.errno not in _NO_LOCKS:
                    raise
            yield
        finally:
            os.close(fd)


# ---------------------------------------------------------------------- files


def exists(name: str, fd: int) -> bool:
    try:
        os.lstat(name, dir_fd=fd)
    except FileNotFoundError:
        return False
    return True


def write_new(name: str, content: bytes, fd: int) -> int:
    """A file with this content, in place of any before. Returns the mode that others may have of
    it: 0644, less what the umask takes away.
    """
    remove(name, fd)
    flags = os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC
    with open(os.open(name, flags, 0o644, dir_fd=fd), "wb") as file:
        file.write(content)
        file.flush()
        sync(file.fileno())
        return stat.S_IMODE(os.fstat(file.fileno()).st_mode)


def settle(name: str, mode: int, fd: int) -> int:
    """Makes a plain file safe against a power cut, and readable. Returns its size."""
    if not stat.S_ISREG(os.lstat(name, dir_fd=fd).st_mode):
        raise UnsafePath(f"{name!r} is no plain file.")
    file = os.open(name, os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC, dir_fd=fd)
    try:
        about = os.fstat(file)
        try:
            os.fchmod(file, mode)
        except OSError as error:  # some network disks know no modes
            if error.errno not in (errno.EPERM, errno.ENOTSUP):
                raise
        sync(file)
        return about.st_size
    finally:
        os.close(file)


def place(source: str, source_fd: int, name: str, fd: int, *, spare: str, replace: bool) -> None:
    """Moves a file to another directory. FileExistsError: the name is taken, unless it may be
    replaced. `spare` is a hidden name that may be used on the way.
    """
    move = _move_over if replace else _move_new
    try:
        move(source, source_fd, name, fd)
    except OSError as error:
        if error.errno != errno.EXDEV:
            raise
        _copy(source, source_fd, spare, fd)
        move(spare, fd, name, fd)
        remove(source, source_fd)


def remove(name: str, fd: int) -> None:
    try:
        os.unlink(name, dir_fd=fd)
    except FileNotFoundError:
        return


def _move_over(source: str, source_fd: int, name: str, fd: int) -> None:
    os.rename(source, name, src_dir_fd=source_fd, dst_dir_fd=fd)


def _move_new(source: str, source_fd: int, name: str, fd: int) -> None:
    """A link fails when there is such a name already, which a rename would not."""
    try:
        os.link(source, name, src_dir_fd=source_fd, dst_dir_fd=fd, follow_symlinks=False)
    except OSError as error:
        if error.errno not in _NO_LINKS:
            raise
        # No links here (exFAT, some network disks): take the name first, then fill it.
        taken = os.open(name, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o644, dir_fd=fd)
        os.close(taken)
        _move_over(source, source_fd, name, fd)
    else:
        os.unlink(source, dir_fd=source_fd)


def _copy(source: str, source_fd: int, name: str, fd: int) -> None:
    remove(name, fd)
    flags = os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC
    with (
        open(os.open(source, os.O_RDONLY | os.O_NOFOLLOW, dir_fd=source_fd), "rb") as old,
        open(os.open(name, flags, 0o600, dir_fd=fd), "wb") as new,
    ):
        shutil.copyfileobj(old, new, 1024**2)
        new.flush()
        os.fchmod(new.fileno(), stat.S_IMODE(os.fstat(old.fileno()).st_mode))
        sync(new.fileno())
