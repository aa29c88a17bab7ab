"""A whole run, or a batch, in one zip file: its folders are read inside of the file, as if it were unpacked.

``runs/mine.zip/dag`` names the folder ``dag`` in the file ``runs/mine.zip``. Members are not compressed, since chunks are:
nothing in a file can unpack to more than the file has.
"""

from __future__ import annotations

import zipfile
from pathlib import Path

from empo_bi.errors import DamagedStoreError


def zip_above(path: Path) -> tuple[Path, str] | None:
    """The zip file that a path leads into, and the name inside of it, which is empty for the file itself."""
    for above in (path, *path.parents):
        if above.suffix.lower() == ".zip" and above.is_file():
            return above, "/".join(path.parts[len(above.parts) :])
    return None


def names_in(zip_file: Path, folder: str) -> dict[str, bool]:
    """What is in a folder of a zip file, and whether that is a folder itself."""
    head = f"{folder}/" if folder else ""
    found: dict[str, bool] = {}
    with _opened(zip_file) as packed:
        for name in packed.namelist():
            if name.startswith(head) and name != head:
                first, slash, _ = name[len(head) :].partition("/")
                found[first] = found.get(first, False) or bool(slash)
    return found


def read_member(zip_file: Path, name: str, most_bytes: int) -> bytes | None:
    """The first bytes of a file in a zip file; None if there is no such file."""
    with _opened(zip_file) as packed:
        if name not in packed.namelist():
            return None
        with packed.open(name) as member:
            return member.read(most_bytes)


def _opened(zip_file: Path) -> zipfile.ZipFile:
    check_members(zip_file, str(zip_file))
    return zipfile.ZipFile(zip_file)


def check_members(zip_file: Path, name: str) -> None:
    """Refuse compressed members, and a list of members that cannot be; ``name`` is how messages call the file."""
    if not zipfile.is_zipfile(zip_file):
        raise DamagedStoreError(f"{name}: is not a complete zip file; choose another place, or remove it yourself")
    try:
        with zipfile.ZipFile(zip_file) as packed:
            members, size = packed.infolist(), zip_file.stat().st_size
            squeezed = [info for info in members if info.compress_type != zipfile.ZIP_STORED]
            if any(not 0 <= info.header_offset < size for info in members):
                raise zipfile.BadZipFile("members begin outside of the file")
    except (zipfile.BadZipFile, ValueError, NotImplementedError) as error:
        raise DamagedStoreError(f"{name}: its list of members cannot be read ({error})") from error
    if squeezed:
        raise DamagedStoreError(
            f"{name}: {len(squeezed):,} of its members are compressed, such as {squeezed[0].filename!r}; a store "
            "has compressed chunks already, so unpack the file and pack it without compression (zip -0 -r)"
        )
