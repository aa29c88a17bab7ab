"""A folder in a zip file as a zarr store, read-only."""

from __future__ import annotations

from collections.abc import AsyncIterator, Iterable
from pathlib import Path
from typing import TYPE_CHECKING

from zarr.abc.store import ByteRequest, OffsetByteRequest, RangeByteRequest, Store, SuffixByteRequest

from empo_bi.errors import StoreError
from empo_bi.store.zipped_run import members_of

if TYPE_CHECKING:
    from zarr.abc.buffer import Buffer, BufferPrototype


class ZippedFolder(Store):
    """The files in a folder of a zip file, whose list of members is read once for all folders."""

    supports_writes = False
    supports_deletes = False
    supports_listing = True

    def __init__(self, zip_file: Path, folder: str) -> None:
        super().__init__(read_only=True)
        self._members, self._folder = members_of(zip_file), folder.rstrip("/")

    def __str__(self) -> str:
        return f"{self._members.path}/{self._folder}"

    def __repr__(self) -> str:
        return f"ZippedFolder({str(self)!r})"

    def __eq__(self, other: object) -> bool:
        return isinstance(other, ZippedFolder) and str(self) == str(other)

    async def get(self, key: str, prototype: BufferPrototype, byte_range: ByteRequest | None = None) -> Buffer | None:
        data = self._members.read(self._inside(key), *self._stretch(key, byte_range))
        return None if data is None else prototype.buffer.from_bytes(data)

    def _stretch(self, key: str, byte_range: ByteRequest | None) -> tuple[int, int | None]:
        if isinstance(byte_range, RangeByteRequest):
            return byte_range.start, byte_range.end
        if isinstance(byte_range, OffsetByteRequest):
            return byte_range.offset, None
        if isinstance(byte_range, SuffixByteRequest):
            return max(0, self._members.files.get(self._inside(key), (0, 0))[1] - byte_range.suffix), None
        return 0, None

    async def get_partial_values(
        self, prototype: BufferPrototype, key_ranges: Iterable[tuple[str, ByteRequest | None]]
    ) -> list[Buffer | None]:
        return [await self.get(key, prototype, byte_range) for key, byte_range in key_ranges]

    async def exists(self, key: str) -> bool:
        return self._inside(key) in self._members.files

    async def list(self) -> AsyncIterator[str]:
        async for key in self.list_prefix(""):
            yield key

    async def list_prefix(self, prefix: str) -> AsyncIterator[str]:
        folder = prefix.rpartition("/")[0]
        for name in self._members.folders.get(self._inside(folder), {}):
            key = f"{folder}/{name}".lstrip("/")
            if not key.startswith(prefix):
                continue
            if self._inside(key) in self._members.files:
                yield key
            async for inside in self.list_prefix(f"{key}/"):
                yield inside

    async def list_dir(self, prefix: str) -> AsyncIterator[str]:
        for name in self._members.folders.get(self._inside(prefix.rstrip("/")), {}):
            yield name

    async def set(self, key: str, value: Buffer) -> None:
        raise StoreError(f"{self}: is in a zip file, which is never written to")

    async def delete(self, key: str) -> None:
        raise StoreError(f"{self}: is in a zip file, which is never written to")

    def _inside(self, key: str) -> str:
        return "/".join(part for part in (self._folder, key) if part)
