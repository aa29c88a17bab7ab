"""A folder in a zip file as a zarr store."""

from __future__ import annotations

from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

from zarr.storage import ZipStore

from empo_bi.store.zipped_run import check_members


class ZippedFolder(ZipStore):
    """A folder in a zip file as a store of its own, read-only."""

    def __init__(self, zip_file: Path, folder: str) -> None:
        check_members(zip_file, str(zip_file))
        super().__init__(zip_file, mode="r", read_only=True)
        self.folder = folder.rstrip("/")

    def __str__(self) -> str:
        return f"{self.path}/{self.folder}"

    def __eq__(self, other: object) -> bool:
        return isinstance(other, ZippedFolder) and (self.path, self.folder) == (other.path, other.folder)

    async def get(self, key: str, *args: Any, **options: Any) -> Any:
        return await super().get(self._inside(key), *args, **options)

    async def exists(self, key: str) -> bool:
        return await super().exists(self._inside(key))

    async def list(self) -> AsyncIterator[str]:
        async for key in self.list_prefix(""):
            yield key

    async def list_prefix(self, prefix: str) -> AsyncIterator[str]:
        async for key in super().list_prefix(self._inside(prefix)):
            yield key.removeprefix(f"{self.folder}/")

    async def list_dir(self, prefix: str) -> AsyncIterator[str]:
        async for name in super().list_dir(self._inside(prefix)):
            yield name

    def _inside(self, key: str) -> str:
        return f"{self.folder}/{key}"
