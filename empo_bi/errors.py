"""The errors and warnings of empo_bi.

Each message says what was found, what was expected and what to do next. Every class also derives from the builtin that
a caller would expect, so ``except ValueError`` keeps working.
"""

from __future__ import annotations

__all__ = [
    "AdviceWarning",
    "BatchFileError",
    "ClusterError",
    "DamagedStoreError",
    "EmpoError",
    "EmpoOverflowError",
    "GoalError",
    "InvalidActionError",
    "InvalidStateError",
    "InvalidWorldError",
    "MemoryLimitError",
    "MemoryPressureError",
    "MetricError",
    "MissingAgentError",
    "StoreError",
    "StoreLockedError",
    "StoreMismatchError",
    "StoreNotFoundError",
    "StoreVersionError",
    "TooManyStatesError",
    "TranslationError",
    "WorkerDiedError",
    "WorldFileError",
    "WorldNotFoundError",
    "WorldTooLargeError",
    "WorldWarning",
]


class EmpoError(Exception):
    """Base of all errors that empo_bi raises on purpose."""


class WorldFileError(EmpoError, ValueError):
    """A world's text cannot be read, or does not describe a valid world."""


class WorldNotFoundError(EmpoError, FileNotFoundError):
    """No file and no shipped world of that name."""

    def __str__(self) -> str:  # OSError would print errno and file name instead of the message
        return str(self.args[0]) if self.args else ""


class BatchFileError(EmpoError, ValueError):
    """A batch file cannot be read, or has an invalid value."""


class MetricError(EmpoError, ValueError):
    """A user's metric cannot be found, fails, or returns something that does not fit a table."""


class ClusterError(EmpoError, RuntimeError):
    """A cluster cannot be reached, or its software is not installed."""


class WorkerDiedError(EmpoError, RuntimeError):
    """A worker process died while it was working on a run."""


class InvalidStateError(EmpoError, ValueError):
    """A state tuple that cannot occur in the world it was given to."""


class InvalidActionError(EmpoError, ValueError):
    """An action profile of the wrong length, or an action outside the action set."""


class MissingAgentError(EmpoError, ValueError):
    """A human or a robot is needed and the world has none."""


class WorldTooLargeError(EmpoError, ValueError):
    """A world has too many action profiles, or a step too many outcomes, to list them."""


class InvalidWorldError(EmpoError, ValueError):
    """A world written in Python is inconsistent; the message shows the state and the profile."""


class TranslationError(EmpoError, ValueError):
    """An environment cannot be translated to a compiled gridworld; the message is the reason."""


class GoalError(EmpoError, ValueError):
    """In some state, a human has no goal, none that can be attained, or a goal with an invalid weight."""


class EmpoOverflowError(EmpoError, OverflowError, ValueError):
    """A value is beyond the range of floating-point numbers."""


class MemoryPressureError(EmpoError, KeyboardInterrupt):
    """Memory stayed low, so work was stopped; finished levels are kept. Scripts expect a KeyboardInterrupt."""


class TooManyStatesError(EmpoError, RuntimeError):
    """An enumeration found more states than were allowed."""


class MemoryLimitError(EmpoError, MemoryError):
    """The memory limit is too low for the work."""


class StoreError(EmpoError, OSError):
    """A slice store cannot be written or read; what was committed before stays usable."""


class StoreLockedError(StoreError):
    """Another process is writing to the same store."""


class StoreMismatchError(StoreError, ValueError):
    """A store has other content than expected: another world, horizon, precision or format."""


class StoreVersionError(StoreMismatchError):
    """A store of another version of the format."""


class DamagedStoreError(StoreError, ValueError):
    """A slice is missing, truncated or altered; the message names level and array."""


class StoreNotFoundError(StoreError, FileNotFoundError):
    """There is no store at this place."""


class WorldWarning(UserWarning):
    """Something in a world file is probably a mistake; with ``strict=True`` it is a :class:`WorldFileError`."""


class AdviceWarning(UserWarning):
    """What was solved is probably not what was meant; ``empo_bi.advise`` and ``empo-bi check`` say more."""
