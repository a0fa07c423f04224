"""The jobs that bring batches further, as the engine knows them."""

from __future__ import annotations

from collections.abc import Mapping

from headway.api.config import Config
from headway.apps.channels.batches.assembling import Assembler
from headway.apps.channels.batches.cancelling import Canceller
from headway.apps.channels.batches.files import Files
from headway.apps.channels.batches.life import ASSEMBLE, CANCEL, PLAN, TIDY, Batches
from headway.apps.channels.batches.planning import Planner
from headway.apps.channels.batches.tidying import Tidier
from headway.apps.channels.directory import Directory
from headway.core import RetryPolicy
from headway.core.classify import Meaning
from headway.sdk.app import App

# They do nothing but read and write the store, and can be done again at any time. A server that is
# killed again and again must not end somebody's batch.
POLICY = RetryPolicy(timeout_s=3_600, retries=20, delay_s=1, growth=2, max_lost=1_000)
# Whatever goes wrong is wrong with the machine, not with the batch.
MEANINGS: Mapping[type[BaseException], Meaning] = {Exception: Meaning.RETRY}


def register(
    app: App, batches: Batches, files: Files, directory: Directory, config: Config
) -> None:
    planner = Planner(
        app, batches, files, directory,
        max_depth=config.max_depth, max_open=config.max_open_per_tenant,
    )  # fmt: skip
    app.job(type=PLAN, policy=POLICY, meanings=MEANINGS)(planner.plan)
    app.registry.types[PLAN].ended = batches.plan_ended
    app.job(type=CANCEL, policy=POLICY, meanings=MEANINGS)(Canceller(app, batches).cancel)
    app.job(type=ASSEMBLE, policy=POLICY, meanings=MEANINGS)(
        Assembler(app, batches, files).assemble
    )
    for type in (CANCEL, ASSEMBLE):
        app.registry.types[type].ended = batches.step_ended
    app.job(type=TIDY, policy=POLICY, meanings=MEANINGS)(Tidier(app, batches, files).tidy)
