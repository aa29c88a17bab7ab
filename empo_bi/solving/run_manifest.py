"""What a run of a batch says of itself, ``manifest.json``, read by everybody who opens runs."""

from __future__ import annotations

import json
import math

from empo_bi.errors import DamagedStoreError, StoreVersionError
from empo_bi.runtime.digests import checksum_of_json
from empo_bi.runtime.wording import short_repr
from empo_bi.solving.run_manifest_rules import problem_of
from empo_bi.store.small_files import MOST_BYTES, Folder
from empo_bi.store.solution_folders import is_url
from empo_bi.types import Json

FILE = "manifest.json"
FORMAT, VERSION = "empo_bi run", 1
REMEDY = "Run its batch again, which does this run again"
RUNNING, FINISHED, FAILED = "running", "finished", "failed"


def read_manifest(folder: Folder) -> Json | None:
    """What a run says of itself, checked, since its folder may be somebody else's; None if there is no such file.

    Raises
    ------
    DamagedStoreError, StoreVersionError
        If it is not as this version writes it.
    """
    found = folder.read_json(FILE)
    if found is None:
        if FILE not in folder.names(FILE):
            return None
        raise DamagedStoreError(f"{folder}/{FILE}: is not JSON, or far too large. {REMEDY}")
    if found.get("format") != FORMAT:
        return None
    if found.get("version") != VERSION:
        raise StoreVersionError(
            f"{folder}/{FILE}: has version {short_repr(found.get('version'), 20)} of the format, this empo_bi reads "
            f"{VERSION}; use the empo_bi that wrote it"
        )
    checksum = found.pop("crc32", None)  # earlier versions wrote none
    if checksum not in (None, checksum_of_json(found)):
        raise DamagedStoreError(f"{folder}/{FILE}: its checksum differs, so it was changed. {REMEDY}")
    problem = problem_of(found)
    if problem is not None:
        raise DamagedStoreError(f"{folder}/{FILE}: {problem}, which no batch writes. {REMEDY}")
    return found


def is_half_written(folder: Folder) -> bool:
    """Whether a manifest at a URL is a part of one, all that a killed writer left; its batch does this run again.

    On disk, files appear at once and complete.
    """
    data = folder.read_bytes(FILE) if is_url(folder.place) else None
    if data is None:
        return False
    try:
        json.loads(data)
    except ValueError:
        return len(data) <= MOST_BYTES
    return False


def has_checksum(folder: Folder) -> bool:
    """Whether a manifest has one; those of version 0.1 have none, and may have been changed by accident."""
    return "crc32" in (folder.read_json(FILE) or {})


def write_manifest(folder: Folder, manifest: Json) -> None:
    """With a checksum: a number that somebody changes by accident is not taken for a result."""
    plain = json.loads(json.dumps(manifest, default=str))
    folder.write_json(FILE, {**plain, "crc32": checksum_of_json(plain)})


def openable(manifest: Json) -> Json | None:
    """The manifest of a solution that can be opened: this one, or that of an earlier attempt."""
    return manifest if manifest["status"] == FINISHED or manifest.get("store") is not None else manifest.get("before")


def is_about(said: object, found: object) -> bool:
    """Whether a number of a manifest is the one that was found, but for rounding on another machine."""
    if isinstance(found, float) and math.isnan(found):
        return said is None or (isinstance(said, float) and math.isnan(said))
    if isinstance(said, float) and isinstance(found, float):
        return math.isclose(said, found, rel_tol=1e-6, abs_tol=1e-9)
    return type(said) is type(found) and said == found
