"""What the system says while something is written, turned into what the user should do."""

from __future__ import annotations

import contextlib
import errno
from collections.abc import Iterator

from empo_bi.errors import StoreError


@contextlib.contextmanager
def reporting(name: str, t: int | None = None) -> Iterator[None]:
    """Turn what the system says while writing into what the user should do."""
    try:
        yield
    except StoreError:
        raise
    except OSError as error:
        doing = f"{name}: " + ("cannot be written" if t is None else f"level {t} cannot be written")
        kept = "Levels that were committed are kept: run the same command again to continue"
        if error.errno in (errno.ENOSPC, errno.EDQUOT):
            raise StoreError(f"{doing}: the disk is full ({error}). {kept} when there is room") from error
        if error.errno in (errno.EROFS, errno.EACCES, errno.EPERM):
            raise StoreError(f"{doing}: no permission ({error}). Choose a place that you may write to") from error
        raise StoreError(f"{doing}: {error}. {kept}") from error
