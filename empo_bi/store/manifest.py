"""What a store says of itself in its root group, and whose files are in its folder."""

from __future__ import annotations

from collections.abc import Callable, Iterable

from empo_bi.errors import DamagedStoreError, StoreMismatchError, StoreNotFoundError, StoreVersionError
from empo_bi.runtime.wording import short_repr
from empo_bi.store.format_names import ROOT, StoreKind, spoken
from empo_bi.store.records import shown
from empo_bi.store.zarr_files import ZarrFiles
from empo_bi.types import Json


class RootlessStoreError(StoreNotFoundError, DamagedStoreError):
    """Levels of which nobody can tell what they belong to. For a writer nothing is there, for a reader it is damaged."""


def read_manifest(files: ZarrFiles, kind: StoreKind, check: Callable[[Json], None]) -> Json:
    """What the root group says of a store, checked; ``check`` raises :class:`FormatError`. The file is read once."""
    manifest = files.raw_record(ROOT)
    if manifest is None and any(name.startswith("level_") for name in files.names()):
        raise RootlessStoreError(
            f"{files.name}: has levels, but its own record, the file zarr.json, is missing. {kind.remedy}"
        )
    if manifest is None:
        raise StoreNotFoundError(f"{files.name}: no {kind.noun} is there; {kind.maker} makes one")
    _check_format(files.name, kind, manifest)
    checked = files.checked_record(ROOT, manifest)
    with files.naming_damage(f"the metadata of {spoken(ROOT)}: "):
        check(checked)
    return checked


def _check_format(name: str, kind: StoreKind, manifest: Json) -> None:
    version = shown(manifest.get("version"))
    if manifest.get("format") != kind.format:
        has = f"format {shown(manifest['format'])}, version {version}" if "format" in manifest else "none"
        raise StoreMismatchError(
            f"{name}: is a zarr group, but not a {kind.noun} of empo_bi: expected format {kind.format!r}, version "
            f"{kind.version}, found {has}; choose another place"
        )
    if manifest.get("version") != kind.version:
        raise StoreVersionError(
            f"{name}: has version {version} of the format, this empo_bi reads version {kind.version}; make it anew with "
            "overwrite=True, or use the empo_bi that made it"
        )


def refuse_other_content(name: str, holds: str, there: Json, here: Json, parts: Iterable[str], hint: str = "") -> None:
    """Complain of the parts in which the content that is there differs from that which is asked for."""
    details = "; ".join(
        "world: another map, or another source of its file, global values or attributes"
        if part == "world"
        else f"{part}: there {short_repr(there.get(part), 44)}, here {short_repr(here.get(part), 44)}"
        for part in parts
    )
    raise StoreMismatchError(
        f"{name}: holds {holds}, which differs in {', '.join(parts)} from what is asked for ({details}). Choose another "
        f"place, or replace it with overwrite=True (--overwrite){hint}"
    )


def refuse_strangers(name: str, kind: StoreKind, names: Iterable[str]) -> None:
    """Never write among, or over, what is not ours."""
    strangers = sorted(name for name in names if not kind.is_our_name(name))
    if strangers:
        raise StoreMismatchError(
            f"{name}: is not a {kind.noun}; it contains {short_repr(strangers[:5])}; choose an empty or new place"
        )
