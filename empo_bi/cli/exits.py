"""Exit codes, and the error that each stands for; decided only here."""

from __future__ import annotations

from empo_bi.errors import (
    ClusterError,
    DamagedStoreError,
    EmpoError,
    EmpoOverflowError,
    MemoryLimitError,
    MemoryPressureError,
    StoreError,
    StoreMismatchError,
    StoreNotFoundError,
    TooManyStatesError,
    WorkerDiedError,
)

FINE, NO, WRONG_INPUT, UNFINISHED, INTERRUPTED = 0, 1, 2, 3, 130
DEBUG = "EMPO_BI_DEBUG"

EXIT_CODES = f"""\b
Exit codes:
  {FINE}    success
  {NO}    the answer is no: damage or probable mistakes were found, or nothing fits
  {WRONG_INPUT}    wrong usage or input: an option, a world, a folder with other content
  {UNFINISHED}    a run could not be finished: memory, disk, a damaged or locked store
  {INTERRUPTED}  interrupted by Ctrl-C

With {DEBUG}=1 in the environment, errors come with a traceback."""

# The first match decides.
_CODES: tuple[tuple[type[BaseException], int], ...] = (
    (DamagedStoreError, UNFINISHED),
    (StoreMismatchError, WRONG_INPUT),
    (StoreNotFoundError, WRONG_INPUT),
    (StoreError, UNFINISHED),
    (MemoryLimitError, UNFINISHED),
    (MemoryPressureError, UNFINISHED),
    (TooManyStatesError, UNFINISHED),
    (EmpoOverflowError, UNFINISHED),
    (WorkerDiedError, UNFINISHED),
    (ClusterError, UNFINISHED),
    (EmpoError, WRONG_INPUT),
    (KeyboardInterrupt, INTERRUPTED),
)


def exit_code_of(error: BaseException) -> int:
    """The exit code for an error. (Usage errors are click's, and also end with 2.)"""
    return next((code for kind, code in _CODES if isinstance(error, kind)), UNFINISHED)


def message_of(error: BaseException) -> str:
    """The message that the user reads."""
    if isinstance(error, KeyboardInterrupt) and not isinstance(error, EmpoError):
        return " ".join(["interrupted.", *getattr(error, "__notes__", [])])
    if isinstance(error, EmpoError | OSError) and str(error):
        return str(error)
    if isinstance(error, MemoryError):
        return f"the machine is out of memory ({error}). Set a --memory-limit, or keep results on disk with --out"
    return f"this should not happen ({type(error).__name__}: {error}). Please report it, with the traceback of {DEBUG}=1"
