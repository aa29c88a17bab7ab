"""A folder of small files, on disk or at a URL: JSON that appears at once and complete, and logs."""

from __future__ import annotations

import json
import os
import shutil
import time
from pathlib import Path
from typing import Any

from empo_bi.runtime.json_text import parse_json
from empo_bi.runtime.ordinary_files import is_plain_name, open_without_links, path_inside
from empo_bi.runtime.printable import printable
from empo_bi.store.solution_folders import inside, is_url, trimmed_url
from empo_bi.store.write_errors import opening_url, reporting
from empo_bi.store.zipped_run import members_of, zip_above
from empo_bi.types import Json

MOST_BYTES = 1 << 26  # of a file that is read: a table of a million runs, or a manifest, takes less
MOST_DEPTH = 50  # of JSON


class Folder:
    """A folder, or what lies below a URL. Nothing is made before something is written."""

    def __init__(self, place: Any) -> None:
        # Absolute, since workers may be in other folders.
        self.place: Any = (
            trimmed_url(place) if is_url(place) else Path(str(place).removeprefix("file://")).expanduser().absolute()
        )

    def __str__(self) -> str:
        return str(self.place)

    def __truediv__(self, name: str) -> Folder:
        return Folder(inside(self.place, name))

    @property
    def name(self) -> str:
        return str(self.place.rstrip("/").rpartition("/")[2] if is_url(self.place) else self.place.name)

    @property
    def exists(self) -> bool:
        """Whether something is there, for all that can be told: what a URL has shows when it is opened."""
        return is_url(self.place) or self.place.exists() or (self._zipped is not None and bool(self.names()))

    @property
    def _zipped(self) -> tuple[Path, str] | None:
        """The zip file that this folder is in, or is, and its name there."""
        return None if is_url(self.place) else zip_above(self.place)

    def _remote(self) -> tuple[Any, str]:
        with opening_url(str(self)):
            import fsspec

            return fsspec.core.url_to_fs(self.place)

    def read_bytes(self, name: str) -> bytes | None:
        """None if there is no such file. Of one that is too large, a byte more than :data:`MOST_BYTES`."""
        try:
            if is_url(self.place):
                system, path = self._remote()
                return bytes(system.cat_file(f"{path}/{name}", end=MOST_BYTES + 1))
            if (zipped := self._zipped) is not None:
                zip_file, folder = zipped
                return members_of(zip_file).read(f"{folder}/{name}".lstrip("/"), 0, MOST_BYTES + 1)
            with path_inside(self.place, name).open("rb") as file:
                return file.read(MOST_BYTES + 1)
        except (FileNotFoundError, NotADirectoryError, IsADirectoryError):
            return None

    def write_bytes(self, name: str, data: bytes) -> None:
        """A reader, or a run after a kill, finds the old file or the new one, never a part."""
        with reporting(str(self)):
            self._write_bytes(name, data)

    def _write_bytes(self, name: str, data: bytes) -> None:
        if is_url(self.place):
            system, path = self._remote()
            system.makedirs(path, exist_ok=True)
            system.pipe_file(f"{path}/{name}", data)
            return
        self.place.mkdir(parents=True, exist_ok=True)
        partial = self._partial(name)
        try:
            with open_without_links(partial, "wb") as file:
                file.write(data)
            os.replace(partial, self.place / name)
        except BaseException:
            partial.unlink(missing_ok=True)
            raise

    def _partial(self, name: str) -> Path:
        """What is called so while only a part of it may be there; :func:`remove_rests` knows such names."""
        return Path(self.place / f".{name}.{os.getpid()}.partial")

    def read_json(self, name: str) -> Json | None:
        """None if there is no such file, or it is not JSON, or too large to be one of ours."""
        data = self.read_bytes(name)
        if data is None or len(data) > MOST_BYTES:
            return None
        try:
            found = parse_json(data)
        except (ValueError, RecursionError):  # not JSON, or nested deeper than Python goes
            return None
        return found if isinstance(found, dict) and _is_shallow(found) else None

    def write_json(self, name: str, content: Json) -> None:
        self.write_bytes(name, json.dumps(content, indent=1, default=str).encode())

    def log(self, text: str) -> None:
        """Add lines to ``log.txt``, with the time before each."""
        now = time.strftime("%Y-%m-%d %H:%M:%S")
        lines = "".join(f"{now} {line}\n" for line in printable(text).rstrip().splitlines())  # somebody will print it
        if is_url(self.place):
            self.write_bytes("log.txt", (self.read_bytes("log.txt") or b"") + lines.encode())
            return
        with reporting(str(self)):
            self.place.mkdir(parents=True, exist_ok=True)
            with open_without_links(self.place / "log.txt", "a") as file:
                file.write(lines)

    def names(self, prefix: str = "") -> list[str]:
        """What is there and begins so, in alphabetical order; files of locks do not count."""
        return sorted(name for name in self._are_folders() if name.startswith(prefix) and not name.endswith(".lock"))

    def folders(self) -> list[Folder]:
        """Those inside."""
        return [self / name for name, is_folder in sorted(self._are_folders().items()) if is_folder]

    def _are_folders(self) -> dict[str, bool]:
        """What is there, and whether that is a folder."""
        if is_url(self.place):
            system, path = self._remote()
            found = system.ls(path, detail=True) if system.exists(path) else []
            kinds = {about["name"].rstrip("/").rpartition("/")[2]: about["type"] == "directory" for about in found}
        elif (zipped := self._zipped) is not None:
            zip_file, folder = zipped
            kinds = members_of(zip_file).folders.get(folder, {})
        else:
            kinds = (
                {path.name: path.is_dir() and not path.is_symlink() for path in self.place.iterdir()}
                if self.place.is_dir()
                else {}
            )
        return {name: is_folder for name, is_folder in kinds.items() if is_plain_name(name)}

    def remove(self, prefix: str, *, but: str = "") -> None:
        """Remove files and folders whose names begin so, except one. Half of a folder is never found under its name."""
        for name in self.names(prefix):
            if name == but:
                continue
            if is_url(self.place):
                system, path = self._remote()
                system.rm(f"{path}/{name}", recursive=True)
            elif (self.place / name).is_dir():
                going = self._partial(name)
                shutil.rmtree(going, ignore_errors=True)
                os.replace(self.place / name, going)
                shutil.rmtree(going, ignore_errors=True)
            else:
                (self.place / name).unlink(missing_ok=True)


def _is_shallow(thing: Any) -> bool:
    """Whether JSON is nested no deeper than ours ever is; what goes through it later is written in Python."""
    level = [thing]
    for _ in range(MOST_DEPTH):
        inside = [list(part.values()) if isinstance(part, dict) else part for part in level if isinstance(part, dict | list)]
        if not inside:
            return True
        level = [part for parts in inside for part in parts]
    return False
