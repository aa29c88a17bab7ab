"""What a DAG's store says of itself, and whether that is what somebody asks for."""

from __future__ import annotations

from empo_bi.errors import DamagedStoreError, StoreMismatchError
from empo_bi.runtime.printable import one_line
from empo_bi.store.format_names import DAG_KIND, FINISHED, spoken
from empo_bi.store.manifest import refuse_other_content
from empo_bi.store.records import shown
from empo_bi.store.zarr_files import ZarrFiles
from empo_bi.types import Json

_IF_EQUAL = ". If the worlds are equal for you, give them the same content_key, a text or a method that returns one"


def check_content(name: str, asked: Json, found: Json, *, is_finished: bool) -> None:
    """Whether a store holds what is asked for: by name, all that its arrays depend on.

    The DAG of a finished store does not depend on goals, whose bits can be computed anew when they are read.
    """
    parts = ["world", "horizon", "levels", "precision", "start", "stop", *(() if is_finished else ("goals",))]
    other = [part for part in parts if asked["content"].get(part) != found["content"].get(part)]
    if other:
        hint = _IF_EQUAL if "world" in other and found["world"] is None else ""
        refuse_other_content(name, f"the DAG of {one_line(found['title'])}", found["content"], asked["content"], other, hint)
    for part in ("start", "stop"):
        if asked["content"].get(part, "none") is None:
            raise StoreMismatchError(
                f"{name}: cannot tell whether this store was made with the same {part}; give states that are tuples of "
                "numbers and texts, one of empo_bi.events, or a function that a module defines, or pass overwrite=True"
            )
    if asked["content"]["world"] is None:
        raise StoreMismatchError(
            f"{name}: cannot tell whether this store was made for the same world; give the world an attribute or "
            "method content_key, a text that is the same only for equal worlds, or pass overwrite=True"
        )


UNFINISHED = "unfinished: run the same command again to continue"
END_IS_MISSING = (
    "unfinished: all levels are there, but the record of the end, the file finished/zarr.json, is missing: run the same "
    "command again (enumerate_dag, solve or empo-bi solve), which writes it anew and computes nothing"
)


def read_end(files: ZarrFiles, *, mends: bool) -> list[Json] | None:
    """The commit markers that the record of a finished store has; None without one, or with a damaged one who ``mends``."""
    try:
        finished = files.read_record(FINISHED)
        found = None if finished is None else finished.get("levels")
        if finished is not None and not isinstance(found, list):
            raise files.damaged(f"the metadata of {spoken(FINISHED)}: field 'levels' is {shown(found)}; expected a list")
        return found
    except DamagedStoreError as error:
        if mends:
            return None
        raise DamagedStoreError(
            f"{str(error).removesuffix(DAG_KIND.remedy)}The levels have records of their own: run the same command again, "
            "which writes finished/zarr.json anew from these"
        ) from None
