"""A whole run, or a batch, in one zip file: its folders are read inside of the file, as if it were unpacked.

``runs/mine.zip/dag`` names the folder ``dag`` in the file ``runs/mine.zip``. Members are not compressed, since chunks are:
nothing in a file can unpack to more than the file has. The list of members is read once, however many folders there are.
"""

from __future__ import annotations

import struct
import zipfile
from functools import lru_cache
from pathlib import Path

from empo_bi.errors import DamagedStoreError
from empo_bi.runtime.ordinary_files import is_plain_name

DEEPEST = 16  # folders inside of folders; ours are six deep at most
_LOCAL_HEADER = 30  # bytes before a member's name, the last four of which are the lengths of its name and extra field


def zip_above(path: Path) -> tuple[Path, str] | None:
    """The zip file that a path leads into, and the name inside of it, which is empty for the file itself."""
    for above in (path, *path.parents):
        if above.suffix.lower() == ".zip" and above.is_file():
            return above, "/".join(path.parts[len(above.parts) :])
    return None


class ZipMembers:
    """The files in a zip file, by name, and what each folder has. Names that lead elsewhere, or very deep, are left out.

    Attributes
    ----------
    files : {name: (where it begins, bytes)}
    folders : {name of a folder: {name in it: whether that is a folder}}
    """

    def __init__(self, path: Path) -> None:
        self.path = path
        self.files: dict[str, tuple[int, int]] = {}
        self.folders: dict[str, dict[str, bool]] = {"": {}}
        for info in checked_members(path, str(path)):
            *above, last = info.filename.split("/")
            if len(above) > DEEPEST or not all(map(is_plain_name, [*above, *([last] if last else [])])):
                continue
            self._add_folders(above)
            if last:
                self.files[info.filename] = info.header_offset, info.file_size
                self.folders["/".join(above)].setdefault(last, False)

    def _add_folders(self, names: list[str]) -> None:
        for depth, name in enumerate(names):
            self.folders["/".join(names[:depth])][name] = True
            self.folders.setdefault("/".join(names[: depth + 1]), {})

    def read(self, name: str, begin: int = 0, end: int | None = None) -> bytes | None:
        """Some bytes of a file, all by default; None if there is no such file."""
        if name not in self.files:
            return None
        offset, nbytes = self.files[name]
        end = nbytes if end is None else min(end, nbytes)
        with self.path.open("rb") as file:
            file.seek(offset)
            header = file.read(_LOCAL_HEADER)
            if len(header) < _LOCAL_HEADER or header[:4] != b"PK\x03\x04":
                raise DamagedStoreError(f"{self.path}: {name!r} is not where the list of members says")
            file.seek(sum(struct.unpack("<HH", header[-4:])) + begin, 1)
            return file.read(max(0, end - begin))


def members_of(path: Path) -> ZipMembers:
    """The members of a zip file as it is now."""
    stat = path.stat()
    return _members(path, (stat.st_ino, stat.st_size, stat.st_mtime_ns))


@lru_cache(maxsize=4)
def _members(path: Path, version: tuple[int, int, int]) -> ZipMembers:
    """Remembered, since every folder asks; ``version`` changes with the file."""
    return ZipMembers(path)


def checked_members(zip_file: Path, name: str) -> list[zipfile.ZipInfo]:
    """The list of members; refuses compressed and encrypted ones. ``name`` is how messages call the file."""
    if not zipfile.is_zipfile(zip_file):
        raise DamagedStoreError(f"{name}: is not a complete zip file; choose another place, or remove it yourself")
    try:
        with zipfile.ZipFile(zip_file) as packed:
            members, size = packed.infolist(), zip_file.stat().st_size
        if any(not 0 <= info.header_offset < size for info in members):
            raise zipfile.BadZipFile("members begin outside of the file")
    except (zipfile.BadZipFile, ValueError, NotImplementedError) as error:
        raise DamagedStoreError(f"{name}: its list of members cannot be read ({error})") from error
    if any(info.flag_bits & 1 for info in members):
        raise DamagedStoreError(f"{name}: is encrypted; unpack it, and pack it without a password (zip -0 -r)")
    squeezed = [info.filename for info in members if info.compress_type != zipfile.ZIP_STORED]
    if squeezed:
        raise DamagedStoreError(
            f"{name}: {len(squeezed):,} of its members are compressed, such as {squeezed[0]!r}; a store "
            "has compressed chunks already, so unpack the file and pack it without compression (zip -0 -r)"
        )
    if sum(info.file_size for info in members) > size:
        raise DamagedStoreError(f"{name}: its members have more bytes than the file, so some of them overlap")
    return members
