"""What can go wrong, as one family of exceptions. Each message says what to do about it."""

from __future__ import annotations


class HeadwayError(Exception):
    """Something went wrong in Headway, and nothing was half done."""


# ---------------------------------------------------------------------- the store


class StoreError(HeadwayError):
    """The store cannot do this now."""


class StoreUnavailable(StoreError):
    """The store cannot be reached. What is committed is safe; try again when it is back."""


class OutcomeUnknown(StoreUnavailable):
    """The store was lost while it was storing something, and is not back. Perhaps it is stored:
    look for it before you ask again. After every other error, nothing is.
    """


class StoreFull(StoreUnavailable):
    """There is no space left for the store. Free some; work goes on by itself."""


class StoreReadOnly(StoreUnavailable):
    """The store cannot be written. Give the process the right to write it and its directory."""


class StoreBusy(StoreUnavailable):
    """Another process holds the store's write lock for too long."""


class StoreConflict(StoreError):
    """Another session has written the same row at this very moment. Nothing was stored; now that it
    can be seen, the same may be asked again.
    """


class StoreCorrupt(StoreError):
    """The file is damaged or is no Headway store. Restore it from a copy, or name another file."""


class SchemaTooNew(StoreError):
    """The store was written by a newer Headway. Upgrade Headway, or name another store."""


class EngineRunning(StoreError):
    """Another engine runs on this store. One is enough: stop it first, or only enqueue here."""


class StaleBrain(StoreError):
    """Another engine has taken over this store; this one may not write any more."""


# ---------------------------------------------------------------------- asking


class BadJob(HeadwayError, ValueError):
    """The job cannot be taken as it is; nothing was stored."""


class PayloadTooLarge(BadJob):
    """The payload or result is larger than allowed. Store it elsewhere and pass its address."""


class PayloadNoLongerFits(BadJob):
    """The handler has changed since the job was enqueued. Enqueue it again, or change it back."""


class DuplicateJob(HeadwayError):
    """A job with the same unique key is there already; nothing was stored."""

    def __init__(self, message: str, job_id: int) -> None:
        super().__init__(message)
        self.job_id = job_id


class UnknownJob(HeadwayError, KeyError):
    """No job has this id: it never existed, or its record was purged."""

    __str__ = Exception.__str__  # KeyError would show the message in quotes


class ClaimRefused(HeadwayError):
    """The message of this job is void: the job is held by somebody else, or waits again."""


# For a command that works on a store itself, and meets an engine of another process there.
ENGINE_ELSEWHERE = (
    "a server works on this store, and would not hear of it; name it with --server, and with a "
    "token if it wants one"
)


class EngineStopped(HeadwayError):
    """No engine runs in this process. Start one with `app.run()` or `with app.running():`."""


class EngineLost(OutcomeUnknown, EngineStopped):
    """The engine has stopped after it had sent to the store what was asked for. Perhaps it is done:
    look what is there before you ask again.
    """


class JobFailed(HeadwayError):
    """The job whose result was asked for did not complete."""

    def __init__(self, message: str, job_id: int, state: str) -> None:
        super().__init__(message)
        self.job_id = job_id
        self.state = state


class ResultExpired(HeadwayError):
    """The result was kept for the time that was asked for, and is gone. Ask for a longer one."""


class UnknownSlot(HeadwayError, KeyError):
    """Nobody waits for or holds a slot of this number: it was given back, or is forgotten."""

    __str__ = Exception.__str__


class SlotLost(HeadwayError):
    """A slot is not held any more, though its work goes on: its lease is over, or somebody has
    ended it. Another may have its place: stop, and ask for a new one.
    """


# ---------------------------------------------------------------------- serving


class BadSettings(HeadwayError, ValueError):
    """The server cannot start like this; the message says which setting to change."""


class NotAllowed(HeadwayError):
    """The server does not let this in: the token is missing, not valid, or may not do this."""


class SealedElsewhere(HeadwayError):
    """A stored secret cannot be opened here: its key is missing, it belongs to another record, or
    it is damaged. Bring the key back, or enter the secret again.
    """
