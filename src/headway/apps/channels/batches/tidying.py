"""What nobody needs any more: files whose time is over, answers that stand in files now, and
answers of calls whose jobs are not kept any longer.
"""

from __future__ import annotations

from headway.apps.channels.batches.files import Files
from headway.apps.channels.batches.life import OVER, Batches
from headway.apps.channels.tables import ANSWERS
from headway.engine.hands.context import job
from headway.sdk.app import App

AT_ONCE = 1_000
_OVER = ", ".join(f"'{status.value}'" for status in sorted(OVER))
DONE_WITH = (
    "select job from llm_answers join llm_batches on llm_batches.id = llm_answers.batch "
    f"where llm_batches.status in ({_OVER}) limit ?"
)
LEFT_OVER = (
    "select job from llm_answers where batch is null "
    "and not exists (select 1 from jobs where jobs.id = llm_answers.job) limit ?"
)


class Tidier:
    def __init__(self, app: App, batches: Batches, files: Files) -> None:
        self._app = app
        self._batches = batches
        self._files = files

    def tidy(self) -> None:
        """The job `llm.tidy`: each day on which anything is kept, and when a batch is over."""
        store = self._app.store
        for query in (DONE_WITH, LEFT_OVER):
            while rows := store.rows(query, (AT_ONCE,)):
                store.write([(ANSWERS.drop(), rows)])
                job.check()
        self._files.drop_old(self._app.now(), self._batches.turn(self._batches.in_use))
        self._batches.turn(self._batches.go_on)
        if self._batches.anything_kept():
            self._batches.turn(self._batches.tidy_tomorrow)
