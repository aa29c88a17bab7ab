"""Where a store is: a folder, a zip file, a URL, a zarr store of the user's own, or a temporary folder.

A zip file cannot be continued once its writer was killed. It is therefore built as a folder beside its place, which can, and
packed at the end.
"""

from __future__ import annotations

import contextlib
import os
import re
import shutil
import tempfile
import zipfile
from pathlib import Path
from typing import Any

from zarr.abc.store import Store
from zarr.storage import FsspecStore, LocalStore, ZipStore

from empo_bi.errors import StoreError, StoreMismatchError, StoreNotFoundError
from empo_bi.runtime.ordinary_files import refuse_link, refuse_links_in
from empo_bi.store.format_names import is_half_a_file
from empo_bi.store.lock import WriterLock
from empo_bi.store.write_errors import opening_url
from empo_bi.store.zipped_run import checked_members, zip_above
from empo_bi.store.zipped_store import ZippedFolder

TEMPORARY_PREFIX = "empo_bi-dag-"
ROOM_NEEDED = 200_000_000  # bytes free before a temporary store is begun
BUILDING = ".building"  # added to the name of a zip file while it is being made


class Place:
    """A place for a store: what zarr writes to, a name for messages, and a lock where the file system has them."""

    def __init__(self, name: str, *, folder: Path | None = None, zip_file: Path | None = None, store: Any = None) -> None:
        self.name = name
        self.folder = folder  # where zarr writes, if on this machine's file system
        self.zip_file = zip_file
        self._given = store
        self._lock: WriterLock | None = None
        self.is_temporary = False
        self.reads_zip_file = False  # what for_reading chose
        self._process = os.getpid()

    @property
    def lock_file(self) -> Path | None:
        """Made before, and removed after, everything else that a writer makes; None where there are no locks."""
        path = self.zip_file or self.folder
        return None if path is None else path.with_name(path.name + ".lock")

    @property
    def is_begun(self) -> bool:
        """Whether somebody writes here, or was killed while writing, perhaps before anything was committed."""
        if self.lock_file is None:
            return False
        return self.lock_file.exists() or (self.zip_file is not None and self.folder is not None and self.folder.is_dir())

    @property
    def exists(self) -> bool:
        return self._given is not None or (self.zip_file or self.folder).exists() or self.folder.exists()  # type: ignore[union-attr]

    def for_reading(self) -> Store:
        """The finished zip file, or else the folder, read-only."""
        if self._given is not None:
            return self._given if self._given.read_only else _read_only(self._given)
        assert self.folder is not None
        self.reads_zip_file = self.zip_file is not None and self.zip_file.exists()
        if self.reads_zip_file:
            assert self.zip_file is not None
            checked_members(self.zip_file, self.name)
            return ZipStore(self.zip_file, mode="r", read_only=True)
        self._refuse_a_file()
        if self.zip_file is not None:
            refuse_link(self.folder)  # whose name nobody has given
        if not self.folder.is_dir():
            what = "folder" if self.zip_file is None else "file"
            raise StoreNotFoundError(f"{self.name}: no such {what}; enumerate_dag(world, store={self.name!r}) makes it")
        refuse_links_in(self.folder)
        return LocalStore(self.folder, read_only=True)

    def _refuse_a_file(self) -> None:
        assert self.folder is not None
        if self.folder.is_file():
            raise StoreMismatchError(f"{self.name}: is a file; a store is a folder, or a file that ends in .zip")

    def for_writing(self) -> Store:
        """Lock the place and make its folder."""
        if self._given is not None:
            if self._given.read_only:
                raise StoreError(f"{self.name}: is read-only; give a store that can be written")
            return self._given
        assert self.folder is not None
        self._refuse_a_file()
        refuse_link(self.folder)  # of a zip file, whose folder nobody has named
        self._hold()
        try:
            self.folder.mkdir(mode=0o700 if self.is_temporary else 0o777, exist_ok=not self.is_temporary)
            refuse_links_in(self.folder)
        except BaseException:
            self.release()
            raise
        return LocalStore(self.folder)

    def _hold(self) -> None:
        assert self.lock_file is not None
        self.lock_file.parent.mkdir(parents=True, exist_ok=True)
        # A temporary place is nobody else's; only a cleaner may look at its lock for a moment.
        self._lock = WriterLock(self.lock_file, patient=self.is_temporary)

    def pack(self) -> None:
        """Turn the finished folder of a zip file into the file: it appears at once, and complete."""
        if self.zip_file is None:
            return
        assert self.folder is not None
        partial = _partial(self.zip_file)
        partial.unlink(missing_ok=True)  # it may be a link
        try:
            with zipfile.ZipFile(partial, "w", compression=zipfile.ZIP_STORED) as packed:  # chunks are compressed already
                for path in sorted(self.folder.rglob("*")):
                    if path.is_file() and not is_half_a_file(path.name):
                        # A fixed date, so that equal content makes equal files.
                        info = zipfile.ZipInfo(path.relative_to(self.folder).as_posix())
                        packed.writestr(info, path.read_bytes())
            os.replace(partial, self.zip_file)
        except OSError:
            partial.unlink(missing_ok=True)
            raise
        shutil.rmtree(self.folder)

    def tidy(self) -> None:
        """Remove what the maker of a finished store left when it was killed: halves of files, a zip file's folder, a lock.

        The file of the lock goes last: as long as anything else is left, it tells.
        """
        if self.folder is None or not (self._leftovers() or self.is_begun):
            return
        with contextlib.suppress(OSError):  # read-only, or somebody is making the store anew
            self._hold()
            for path in self._leftovers():
                shutil.rmtree(path) if path.is_dir() else path.unlink()
        self.release()

    def _leftovers(self) -> list[Path]:
        assert self.folder is not None
        if self.zip_file is not None:
            return [path for path in (self.folder, _partial(self.zip_file)) if self.is_begun and path.exists()]
        return [path for path in self.folder.glob("*.partial") if is_half_a_file(path.name)]

    def release(self) -> None:
        """Let others write."""
        if self._lock is not None:
            self._lock.release()
            self._lock = None

    def abandon(self) -> None:
        """Let others write after a failure. If an old store was being removed, the lock's file stays, and tells."""
        if self._lock is not None and self.folder is not None and self.folder.is_dir():
            names = os.listdir(self.folder)
            if "zarr.json" not in names and any(_is_part_of_a_store(name) for name in names):
                self._lock.let_go()
                self._lock = None
        self.release()

    def remove(self) -> None:
        """Delete a temporary store. A forked child leaves it to its parent."""
        assert self.is_temporary
        assert self.folder is not None
        if os.getpid() != self._process:
            return
        shutil.rmtree(self.folder, ignore_errors=True)
        self.release()


def _is_part_of_a_store(name: str) -> bool:
    return re.fullmatch(r"finished|(level|frontier|carry)_\d{5,}", name) is not None


def _partial(zip_file: Path) -> Path:
    """Where a zip file is packed."""
    return zip_file.with_name(zip_file.name + ".partial")


def place_of(store: Any, name: str = "store") -> Place:
    """What the user's ``store`` means: ``True`` is a temporary folder, a text or path a folder, zip file or URL.

    ``name`` is what the caller calls it.

    Raises
    ------
    StoreError
        For a URL that cannot be opened, or a disk without room for a temporary store.
    TypeError
        For anything else.
    """
    if store is True:
        return temporary_place()
    if isinstance(store, Store):
        return Place(str(store), store=store)
    if isinstance(store, str) and "://" in store and not store.startswith("file://"):
        return Place(store, store=_remote(store))
    if isinstance(store, str | os.PathLike) and os.fspath(store):
        given = os.fspath(store).removeprefix("file://")
        path = Path(given).expanduser().resolve()  # so that links lead to one lock
        if path.name.lower().endswith(f".zip{BUILDING}"):
            path = path.with_name(path.name[: -len(BUILDING)])
        if (zipped := zip_above(path)) is not None and zipped[1]:
            return Place(given, store=ZippedFolder(*zipped))
        if path.suffix.lower() == ".zip":
            return Place(given, folder=path.with_name(path.name + BUILDING), zip_file=path)
        return Place(given, folder=path)
    raise TypeError(
        f"{name}={store!r}; give a folder, a .zip file, a URL, a zarr store, True for a temporary folder, or None for memory"
    )


def _remote(url: str) -> Store:
    with opening_url(url):
        # Only a disk has folders that have to be made.
        return FsspecStore.from_url(url, storage_options={"auto_mkdir": True} if url.startswith("local://") else None)


def _read_only(store: Store) -> Store:
    try:
        return store.with_read_only(True)
    except NotImplementedError:
        return store


def temporary_place(parent: Path | None = None) -> Place:
    """A new folder of its own in the system's place for temporary files (``TMPDIR`` chooses), with room checked first.

    Folders that killed processes left behind are removed on the way.
    """
    parent = Path(tempfile.gettempdir()) if parent is None else parent
    reclaim(parent)
    free = shutil.disk_usage(parent).free
    if free < ROOM_NEEDED:
        raise StoreError(
            f"{parent}: {free / 1e6:,.0f} MB free, a temporary store wants {ROOM_NEEDED / 1e6:,.0f} MB; free some room, set "
            "TMPDIR to another disk, or give the store a place of its own (store=PATH)"
        )
    name = f"{TEMPORARY_PREFIX}{os.getpid()}-{os.urandom(8).hex()}"
    place = Place(str(parent / name), folder=parent / name)
    place.is_temporary = True
    return place


def reclaim(parent: Path) -> list[Path]:
    """Remove temporary stores whose process has died; returns them. Others' folders and those in use are left alone."""
    removed = []
    for lock_file in parent.glob(f"{TEMPORARY_PREFIX}*.lock"):  # made before the folder, so it is always there
        if not re.fullmatch(rf"{TEMPORARY_PREFIX}\d+-[0-9a-f]{{16}}\.lock", lock_file.name):
            continue
        with contextlib.suppress(OSError):  # in use, or somebody else's
            lock = WriterLock(lock_file)
            folder = lock_file.with_suffix("")
            shutil.rmtree(folder, ignore_errors=True)
            lock.release()
            removed.append(folder)
    return removed


def nbytes_of(place: Place) -> int | None:
    """Bytes on disk, None where finding out would be slow."""
    if place.zip_file is not None and place.zip_file.exists():
        return place.zip_file.stat().st_size
    if place.folder is None:
        return None
    return sum(path.stat().st_size for path in place.folder.rglob("*") if path.is_file())


def bytes_by_array(place: Place) -> dict[str, int] | None:
    """Bytes on disk of all arrays of a name, ``level_00003/NAME/...``; None where finding out would be slow."""
    if place.zip_file is not None and place.zip_file.exists():
        with zipfile.ZipFile(place.zip_file) as packed:
            files = [(info.filename, info.compress_size) for info in packed.infolist()]
    elif place.folder is not None:
        paths = (path for path in place.folder.rglob("*") if path.is_file())
        files = [(path.relative_to(place.folder).as_posix(), path.stat().st_size) for path in paths]
    else:
        return None
    found: dict[str, int] = {}
    for name, nbytes in files:
        parts = name.split("/")
        if len(parts) > 2:
            found[parts[1]] = found.get(parts[1], 0) + nbytes
    return found
