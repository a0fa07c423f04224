"""`headway simulate`: a day in seconds, under one policy or several."""

from __future__ import annotations

import json
from pathlib import Path
from time import monotonic
from typing import TYPE_CHECKING, Annotated

import typer

from headway.cli.client import CommandFailed
from headway.cli.printing import Output
from headway.cli.progressing import progress_bar
from headway.cli.times import seconds_of
from headway.cli.words import value_of

if TYPE_CHECKING:
    from headway.engine.settings import Settings
    from headway.simulation.report import Report
    from headway.simulation.scenario import Models, Scenario

USUAL_UPSTREAM, USUAL_LOAD = "window", "office"

Policies = Annotated[
    list[str] | None,
    typer.Argument(metavar="POLICY...", help="Settings as TOML, as for `headway serve --config`."),
]
UpstreamModel = Annotated[
    str | None,
    typer.Option("--upstream", "-u", metavar="MODEL", help="What it bears: a name, or a file."),
]
LoadModel = Annotated[
    str | None, typer.Option("--load", "-l", metavar="MODEL", help="Who asks: a name, or a file.")
]
Replay = Annotated[
    str | None,
    typer.Option(metavar="FILE", help="Instead of a load: what `headway events --record` wrote."),
]
Sets = Annotated[
    list[str] | None,
    typer.Option("--set", metavar="KIND:NAME:FIELD=VALUE",
                 help="What if: the first policy once more, with upstream:api.example:limit=4."),
]  # fmt: skip


def simulate(
    policies: Policies = None,
    upstream: UpstreamModel = None,
    load: LoadModel = None,
    replay: Replay = None,
    what_if: Sets = None,
    duration: Annotated[
        str | None, typer.Option(metavar="DURATION", help="Instead of the load's own, such as 1d.")
    ] = None,
    seed: Annotated[int, typer.Option(metavar="N", help="Another one, another chance.")] = 1,
    fifo: Annotated[
        bool, typer.Option("--fifo", help="Also as if all tenants were one: first come, first.")
    ] = False,
    html: Annotated[
        Path | None, typer.Option(metavar="FILE", help="Write the report as one page, too.")
    ] = None,
    as_json: Annotated[
        bool, typer.Option("--json", help="Plain JSON on stdout, and nothing else.")
    ] = False,
    models: Annotated[bool, typer.Option("--list", help="The models that have a name.")] = False,
) -> None:
    """Try settings before they are used: the real core, a modelled upstream, a day in seconds."""
    # Half of the core and the engine's settings: no other command should wait for them.
    from headway.cli import simulate_layouts as layouts  # noqa: PLC0415
    from headway.simulation.comparing import comparison  # noqa: PLC0415
    from headway.simulation.document import document  # noqa: PLC0415

    out = Output(as_json)
    if models:
        out.console.print(layouts.known_models())
        return
    if not policies:
        raise typer.BadParameter(
            "name a policy: a TOML file such as `headway serve --config` reads"
        )
    if html is not None and not html.parent.is_dir():  # said before the long work, not after it
        raise CommandFailed(f"{html} cannot be written: there is no directory {html.parent}")
    plan = Plan(upstream, load, replay, duration, seed)
    made = [plan.scenario(_stem(path, policies), plan.read(path)) for path in policies]
    if what_if:
        changed = plan.read(policies[0])
        for each in what_if:
            change(changed, each)
        made.append(plan.scenario(plan.name_of(what_if), changed))
    if fifo:
        made.append(
            plan.scenario(f"{made[0].name}, first come", plan.read(policies[0]), fair=False)
        )
    reports = [run(each) for each in made]
    if as_json:
        print(json.dumps({"title": plan.title, "notes": plan.notes, **comparison(reports)},
                         ensure_ascii=False, indent=2))  # fmt: skip
    else:
        out.console.print(layouts.whole_report(reports, plan.title, plan.notes, out.console.width))
    if html is not None:  # last: what was simulated for long is not lost if this fails
        _write(html, document(reports, plan.title, plan.notes))
        if not as_json:
            out.say(f"The page is in {html}.")


def _stem(path: str, among: list[str]) -> str:
    """What a policy is called: its file, with as much of its way as tells it from the others."""
    stem = Path(path).stem
    return stem if sum(Path(each).stem == stem for each in among) == 1 else path


class Plan:
    """What all runs have in common: the upstream, the load or the recording, the seed."""

    def __init__(
        self, upstream: str | None, load: str | None, replay: str | None, duration: str | None,
        seed: int,
    ) -> None:  # fmt: skip
        from headway.simulation import reading  # noqa: PLC0415
        from headway.simulation.replay import read_recording  # noqa: PLC0415

        if replay is not None and (load is not None or duration is not None):
            raise typer.BadParameter("a recording says itself what comes; leave out --load")
        self._reading = reading
        self.seed = seed
        self.notes: list[str] = []
        self._recording = None if replay is None else read_recording(replay)
        self._models: Models
        if self._recording is not None:
            self._models = self._replayed(upstream)
            self.title = f"A replay of {replay}"
            self.notes += self._recording.notes
            self._load = None
            return
        upstream = upstream or USUAL_UPSTREAM
        self._models = reading.models_named(upstream)
        if load is None:
            load = upstream if _says_load(upstream) else USUAL_LOAD
        self._load = reading.load_named(load)
        if duration is not None:
            self._load = reading.lasting(self._load, seconds_of(duration))
        same = self._load.name == self._models.name
        self.title = self._load.name if same else f"{self._load.name} at {self._models.name}"

    def _replayed(self, upstream: str | None) -> Models:
        from headway.simulation.scenario import Models  # noqa: PLC0415

        if upstream is not None:
            return self._reading.models_named(upstream)
        self.notes.append(
            "Each attempt takes as long and ends as it was recorded: the log does not know what "
            "the upstream would have said at another time. `--upstream MODEL` answers instead."
        )
        return Models({}, "as recorded")

    def name_of(self, what_if: list[str]) -> str:
        """What a changed policy is called: the one change, or `what if` where there are more."""
        if len(what_if) == 1:
            return what_if[0].rpartition(":")[2]
        self.notes.append(f"what if: {', '.join(what_if)}")
        return "what if"

    def read(self, path: str) -> Settings:
        return self._reading.read_policy(path)

    def scenario(self, name: str, settings: Settings, *, fair: bool = True) -> Scenario:
        from headway.simulation.scenario import replayed, scenario  # noqa: PLC0415

        if self._recording is not None:
            return replayed(
                name, settings, self._models, self._recording, seed=self.seed, fair=fair
            )
        assert self._load is not None
        return scenario(name, settings, self._models, self._load, seed=self.seed, fair=fair)


def _says_load(upstream: str) -> bool:
    from headway.simulation.reading import read_toml  # noqa: PLC0415

    return upstream.endswith(".toml") and "load" in read_toml(upstream)


def change(settings: Settings, said: str) -> None:
    """`upstream:api.example:limit=4` on top of what the file says."""
    where, equals, value = said.partition("=")
    kind, _, rest = where.partition(":")
    name, colon, field = rest.rpartition(":")
    if not equals or not colon or not name:
        raise typer.BadParameter(f"write --set upstream:api.example:limit=4, not {said!r}")
    try:
        settings.declare("operator", kind, name, {field: value_of(value)})
    except ValueError as error:
        raise CommandFailed(f"--set {said}: {error}") from error


def run(scenario: Scenario) -> Report:
    """One run, with a bar for whoever watches, and how long it took."""
    from headway.simulation import simulate as run_it  # noqa: PLC0415

    began = monotonic()
    with progress_bar() as tell:

        def watched(share: float, calls: int) -> bool:
            if tell is not None:
                tell(f"{scenario.name}: {calls:,d} calls", share, 1.0)
            return True

        report = run_it(scenario, watched)
    report.took_s = round(monotonic() - began, 3)
    return report


def _write(path: Path, text: str) -> None:
    try:
        path.write_text(text, "utf-8")
    except OSError as error:
        raise CommandFailed(f"{path} cannot be written: {error.strerror}") from error
