"""What the system says while something is written or a URL is opened, turned into what the user should do."""

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


@contextlib.contextmanager
def opening_url(url: str) -> Iterator[None]:
    """Turn what fsspec says of a URL into what the user should do."""
    try:
        yield
    except ImportError as error:
        needed = "the package fsspec, and one for the kind of place: pip install 'empo-bi[remote]'"
        raise StoreError(f"{url}: URLs need {needed} ({error})") from error
    except Exception as error:  # of any file system that fsspec knows
        raise StoreError(f"{url}: cannot be opened ({type(error).__name__}: {error})") from error
