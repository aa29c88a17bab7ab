"""One file that holds a whole run or batch, to give to others: :func:`pack`."""

from __future__ import annotations

import os
import shutil
import zipfile
from dataclasses import dataclass
from pathlib import Path

import yaml

from empo_bi.batch.manifest import versions
from empo_bi.batch.stores import damaged_manifests, stores_at
from empo_bi.errors import DamagedStoreError, StoreMismatchError, StoreNotFoundError
from empo_bi.runtime.atomic_write import atomic_write, checked_place
from empo_bi.runtime.ordinary_files import is_plain_name, refuse_links_in
from empo_bi.runtime.wording import counted
from empo_bi.solving.run_manifest import read_manifest
from empo_bi.store.dag_store import DagStore
from empo_bi.store.json_states import JsonStates
from empo_bi.store.location import place_of
from empo_bi.store.small_files import Folder
from empo_bi.store.verify import Verification, verify_store

README = "README.txt"
WORLD = "world.yaml"
CITATION = (
    "The empo_bi developers: empo_bi, backward-induction planning for worlds in which several agents act at once, version "
    "{version}; and the work on EMPO whose theory it computes"
)


@dataclass(frozen=True)
class Packed:
    """A file that was packed."""

    path: Path
    n_files: int
    nbytes: int

    def __str__(self) -> str:
        return f"{self.path}: {counted(self.n_files, 'file')}, {self.nbytes / 1e6:,.1f} MB; it opens as it is"


def pack(
    source: str | os.PathLike[str],
    out: str | os.PathLike[str],
    *,
    licence: str | None = None,
    overwrite: bool = False,
    progress: bool = True,
) -> Packed:
    """Write a finished run, or a batch, to one zip file, which opens as it is.

    Everything is verified first. The file also has the world as a world file, where it has one, and a text for people: what
    this is, which versions made it, how to open and cite it, and under which ``licence`` it may be used.

    Parameters
    ----------
    source : the folder of :func:`~empo_bi.solve`, of a run, or of a batch
    out : the file, which ends in .zip

    Raises
    ------
    DamagedStoreError
        If something is wrong with it.
    StoreNotFoundError
        If there is no run, or it is not finished.
    """
    file, folder = Path(out), Path(os.fspath(source)).expanduser()
    if file.suffix.lower() != ".zip":
        raise ValueError(f"out={os.fspath(out)!r}; give the name of a file that ends in .zip")
    file = checked_place(file, overwrite)
    if not folder.is_dir():
        raise StoreNotFoundError(f"{folder}: is not a folder; give that of a run or of a batch")
    refuse_links_in(folder)
    _refuse_half_a_run(folder)
    about = _verified(folder, progress)
    members = sorted(path for path in folder.rglob("*") if path.is_file() and not _is_passing(path))
    for path in members:
        if not all(is_plain_name(part) for part in path.relative_to(folder).parts):
            raise StoreMismatchError(f"{str(path)!a}: has a name that not every system can write; rename or remove it")
    texts = {README: _readme(folder.name, about, licence)}
    if (world := _world_of(folder)) is not None:
        texts[WORLD] = world
    with atomic_write(file) as unfinished, zipfile.ZipFile(unfinished, "w", zipfile.ZIP_STORED) as packed:
        for name, text in texts.items():
            packed.writestr(zipfile.ZipInfo(name), text)  # with a fixed date: equal runs make equal files
        for path in members:
            info = zipfile.ZipInfo(path.relative_to(folder).as_posix())
            with path.open("rb") as content, packed.open(info, "w", force_zip64=True) as member:
                shutil.copyfileobj(content, member)  # in pieces, however large it is
    return Packed(file, len(members) + len(texts), file.stat().st_size)


def _refuse_half_a_run(folder: Path) -> None:
    run = read_manifest(Folder(folder))
    if run is not None and run.get("dag") is not None:
        raise StoreMismatchError(
            f"{folder}: shares its DAG with other runs of its batch; pack the batch, {folder.absolute().parent.parent}"
        )


def _verified(folder: Path, progress: bool) -> list[Verification]:
    """What is in the folder, all of it finished and sound."""
    found = [verify_store(store, progress=progress) for store in stores_at(folder)]
    damage = [line for one in found for line in one.damage] + damaged_manifests(folder)
    if damage:
        raise DamagedStoreError("\n".join(damage))
    for one in found:
        if not one.is_finished:
            raise StoreNotFoundError(f"{one.name}: is not finished; run the same command again, then pack it")
    return found


def _is_passing(path: Path) -> bool:
    """Locks, halves of files of killed processes, and texts that are written anew."""
    return path.name.endswith((".lock", ".partial")) or path.name in (README, WORLD)


def _world_of(folder: Path) -> str | None:
    """The world of a run as a world file; None for a batch, or for a world in Python."""
    if not (folder / "dag" / "zarr.json").is_file():
        return None
    world = DagStore.open(place_of(folder / "dag"), JsonStates(None)).manifest["world"]
    return None if world is None else yaml.safe_dump(world, sort_keys=False, allow_unicode=True)


def _readme(name: str, about: list[Verification], licence: str | None) -> str:
    made_by = ", ".join(f"{package} {version}" for package, version in versions().items())
    titles = list(dict.fromkeys(one.title for one in about))
    return "\n".join([
        f"{name}: packed by empo_bi",
        "",
        *[f"- {title}" for title in titles[:20]],
        *([f"- and {len(titles) - 20} more"] if len(titles) > 20 else []),
        "",
        "To open it: pip install empo_bi, then empo-bi show FILE, or in Python empo_bi.open_solution(FILE).",
        "Arrays are zarr stores, which other programs can read, too; docs/format.md of empo_bi describes them.",
        "",
        f"Packed with: {made_by}",
        f"Licence: {licence or 'none was given; ask whoever gave you this file'}",
        f"To cite: {CITATION.format(version=versions()['empo_bi'])}",
        "",
    ])  # fmt: skip
