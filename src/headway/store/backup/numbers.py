"""Numbers that a restored store goes on with: above all that the store it was copied from has given
since. Whoever holds a fence of before holds nothing here, and an engine of before may not commit.
"""

from __future__ import annotations

from datetime import UTC, datetime

# At twenty thousand grants a second it takes a year and a half from the backup to get there, and
# some thousand restores until a number is too large for a page to show it exactly.
FENCES = 1 << 40
TERMS = 1 << 20
# For people's sake smaller: jobs and events that were made since the backup are not there, and what
# asks for one of them should rather find nothing than another one.
JOBS = EVENTS = 1_000_000

# What ran goes on to run in the books, until the engine finds that nobody holds it.
STALE = f"""
update jobs set fence = fence + {FENCES} where state = 'running';
update slots set fence = fence + {FENCES} where fence > 0;
update brain set fence = fence + {FENCES}, term = term + {TERMS};
delete from processes;
"""
EVENT = "restored"
WHO = "headway restore"


def said_of(made_at: float) -> str:
    """For the trail."""
    made = datetime.fromtimestamp(made_at, UTC).strftime("%Y-%m-%d %H:%M:%S UTC")
    return f"from a backup of {made}; what happened after that is not here"
