"""The report as one file of HTML: nothing is loaded, nothing runs, and every word is escaped."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from html import escape
from importlib.resources import files

from headway.simulation import sentences
from headway.simulation.comparing import verdict
from headway.simulation.drawing import Chart, Line, drawn, span_bar
from headway.simulation.report import GateRow, Report, Waits
from headway.simulation.wording import duration, percent, rate, whole

MOST_TENANTS = 30
MOST_GATES = 6
POLICY = "default-src 'none'; style-src 'unsafe-inline'"


def document(reports: list[Report], title: str, notes: list[str]) -> str:
    style = files("headway.simulation").joinpath("document.css").read_text("utf-8")
    lines = [line for other in reports[1:] for line in verdict(reports[0], other)]
    lines += [f"{run.name}: {sentences.ended(run)}" for run in reports if run.stopped]
    body = [
        f"<h1>{escape(title)}</h1>",
        f'<p class="soft">{escape(_about(reports))}</p>',
        _listed(lines, "verdict"),
        _section("In numbers", [_numbers(reports)]),
        *_charts(reports),
        _beside("Waits by tenant", reports, _tenants, sentences.waits),
    ]
    if any(len(run.priorities) > 1 for run in reports):
        body.append(_beside("Waits by priority", reports, _priorities, _priority_words))
    if any(len(run.tenants) > 1 for run in reports):
        body.append(_beside("Fairness", reports, _shares, sentences.fairness))
    if any(run.recorded is not None for run in reports):
        body.append(_beside("Beside what was recorded", reports, lambda _: "", sentences.recorded))
    footer = " ".join([*notes, f"Made by `headway simulate`, seed {reports[0].seed}."])
    return (
        '<!DOCTYPE html>\n<html lang="en"><head><meta charset="utf-8"/>'
        f'<meta http-equiv="Content-Security-Policy" content="{escape(POLICY)}"/>'
        '<meta name="viewport" content="width=device-width, initial-scale=1"/>'
        f"<title>{escape(title)}</title><style>{style}</style></head>\n<body><main>"
        + "\n".join(part for part in body if part)
        + f"<footer>{escape(footer)}</footer></main></body></html>\n"
    )


def _about(reports: list[Report]) -> str:
    first = reports[0]
    took = [run.took_s for run in reports if run.took_s is not None]
    said = f"{duration(first.duration_s)} in which {whole(first.came)} jobs and calls come"
    return f"{said}, simulated in {duration(sum(took))}." if took else f"{said}."


def _listed(lines: Iterable[str], kind: str) -> str:
    items = "".join(f"<li>{escape(line)}</li>" for line in lines)
    return f'<div class="{kind}"><ul>{items}</ul></div>' if items else ""


def _section(title: str, cards: list[str]) -> str:
    inside = "".join(f'<div class="card">{card}</div>' for card in cards)
    return f'<section><h2>{escape(title)}</h2><div class="beside">{inside}</div></section>'


def _beside(
    title: str, reports: list[Report], shown: Callable[[Report], str],
    said: Callable[[Report], str],
) -> str:  # fmt: skip
    cards = [
        f'<h3>{escape(run.name)}</h3>{shown(run)}<p class="soft">{escape(said(run))}</p>'
        for run in reports
    ]
    return _section(title, cards)


# ---------------------------------------------------------------------- numbers

FIGURES: tuple[tuple[str, Callable[[Report], str]], ...] = (
    ("came", lambda run: whole(run.came)),
    ("completed", lambda run: whole(run.completed)),
    ("failed", lambda run: whole(run.failed)),
    ("not done", lambda run: whole(run.left)),
    ("all done after", lambda run: duration(run.finished_after_s)),
    ("calls", lambda run: whole(run.calls)),
    ("refused", lambda run: whole(run.refused)),
    ("while banned", lambda run: whole(run.banned)),
    ("errors", lambda run: whole(run.unwell)),
    (
        "online calls, of which failed",
        lambda run: f"{whole(run.online)}, {whole(run.online_failed)}",
    ),
    ("turned away by Headway", lambda run: whole(run.turned_away)),
    ("true limit", lambda run: rate(run.limit_per_minute)),
    ("use of it while work waits", lambda run: percent(run.use)),
    ("median wait", lambda run: duration(run.waits.p50_s)),
    ("wait at 95 %", lambda run: duration(run.waits.p95_s)),
    ("wait at 99 %", lambda run: duration(run.waits.p99_s)),
    ("longest wait", lambda run: duration(run.waits.longest_s)),
    ("fairness, 1 is best", lambda run: "-" if run.fairness is None else f"{run.fairness:.3f}"),
)
NOTHING = ("0", "-", "0, 0")


def _numbers(reports: list[Report]) -> str:
    rows = []
    for label, column in FIGURES:
        values = [column(run) for run in reports]
        if any(value not in NOTHING for value in values) or label == "refused":
            rows.append((label, *values))
    return _table(("", *(run.name for run in reports)), rows)


def _table(heads: tuple[str, ...], rows: Iterable[tuple[str, ...]], bar: bool = False) -> str:
    """`bar`: the last cell of each row is a drawing."""
    head = "".join(f'<th scope="col">{escape(each)}</th>' for each in heads)
    if bar:
        head += '<th scope="col" class="bar">median to 99 %</th>'
    body = ""
    for label, *cells in rows:
        last = f'<td class="bar">{cells.pop()}</td>' if bar else ""
        inside = "".join(f"<td>{escape(each)}</td>" for each in cells)
        body += f'<tr><th scope="row">{escape(label)}</th>{inside}{last}</tr>'
    inside = f"<thead><tr>{head}</tr></thead><tbody>{body}</tbody>"
    return f'<div class="scroll"><table>{inside}</table></div>'


def _wait_cells(waits: Waits, most: float) -> tuple[str, ...]:
    return (
        whole(waits.many), duration(waits.p50_s), duration(waits.p95_s), duration(waits.longest_s),
        span_bar(waits.p50_s, waits.p95_s, waits.p99_s, most),
    )  # fmt: skip


def _tenants(run: Report) -> str:
    by_wait = sorted(run.tenants, key=lambda row: -row.waits.longest_s)[:MOST_TENANTS]
    most = max((row.waits.p99_s for row in by_wait), default=0.0)
    heads = ("tenant", "jobs", "median", "95 %", "longest")
    shown = [
        (row.name or "-", *_wait_cells(row.waits, most))
        for row in sorted(by_wait, key=lambda row: row.name)
    ]
    more = len(run.tenants) - len(by_wait)
    said = f'<p class="soft">{more} who waited less are not listed.</p>' if more else ""
    return _table(heads, shown, bar=True) + said


def _priorities(run: Report) -> str:
    most = max((row.waits.p99_s for row in run.priorities), default=0.0)
    heads = ("priority", "jobs", "median", "95 %", "longest")
    return _table(
        heads, ((str(row.priority), *_wait_cells(row.waits, most)) for row in run.priorities),
        bar=True,
    )  # fmt: skip


def _priority_words(run: Report) -> str:
    return sentences.priorities(run.priorities) if run.priorities else ""


def _shares(run: Report) -> str:
    shared = [row for row in run.tenants if row.share is not None]
    if not shared:
        return ""
    ends = sorted(shared, key=lambda row: row.share or 0.0)
    some = ends if len(ends) <= MOST_TENANTS else [*ends[:5], *ends[-5:]]
    return _table(("tenant", "got of what it was due"),
                  ((row.name or "-", percent(row.share)) for row in some))  # fmt: skip


# ---------------------------------------------------------------------- charts


def _charts(reports: list[Report]) -> list[str]:
    """Each figure for all runs, on one scale."""
    found = [
        _figure("Throughput against the limit", reports, [_throughput(run) for run in reports])
    ]
    if any(run.refused or run.banned or run.unwell for run in reports):
        found.append(_figure("Refusals and errors", reports, [_refusals(run) for run in reports]))
    found.append(_figure("The line", reports, [_line(run) for run in reports]))
    names = list(dict.fromkeys((gate.kind, gate.name) for run in reports for gate in run.gates))
    for kind, name in names[:MOST_GATES]:
        gates = [_gate_of(run, kind, name) for run in reports]
        charts = [_gate(run, gate) for run, gate in zip(reports, gates, strict=True)]
        found.append(_figure(f"{kind} {name}".strip(), reports, charts))
    return found


def _gate_of(run: Report, kind: str, name: str) -> GateRow | None:
    return next((each for each in run.gates if (each.kind, each.name) == (kind, name)), None)


def _figure(title: str, reports: list[Report], charts: list[list[Chart]]) -> str:
    tops: dict[str, float] = {}
    many = max((len(run.series.taken) for run in reports), default=1)  # the same time for all
    for some in charts:
        for chart in some:
            tops[chart.title] = max(tops.get(chart.title, 0.0), chart.highest)
    cards = [
        f"<h3>{escape(run.name)}</h3>"
        + "".join(drawn(chart, tops[chart.title], many) for chart in some)
        for run, some in zip(reports, charts, strict=True)
    ]
    return _section(title, cards)


def _throughput(run: Report) -> list[Chart]:
    series = run.series
    lines = (
        Line("calls that were taken", series.taken, "taken", "area"),
        Line("asked for", series.came, "came"),
        Line("limit", series.limit, "limit", "step"),
    )
    # What comes all at once would leave nothing of the scale to see the rest on.
    top = max((*series.taken, *(each for each in series.limit if each is not None)), default=0.0)
    clipped = [min(each, 1.5 * top) for each in series.came]
    shown = (lines[0], Line("asked for", clipped, "came"), lines[2])
    return [Chart("Calls a minute", shown, series.span_s, sentences.throughput(run))]


def _refusals(run: Report) -> list[Chart]:
    series = run.series
    lines = (
        Line("refused", series.refused, "bad", "bars"),
        Line("errors", series.failed, "unwell"),
    )
    return [Chart("Refusals and errors a minute", lines, series.span_s, sentences.refusals(run))]


def _line(run: Report) -> list[Chart]:
    lines = (Line("waiting", run.series.waiting, "wait", "area"),)
    return [Chart("Jobs in line", lines, run.series.span_s, sentences.line(run))]


def _gate(run: Report, gate: GateRow | None) -> list[Chart]:
    if gate is None:
        return []
    span_s = run.series.span_s
    inside = [Line("in use", gate.inside, "pool", "area")]
    if gate.cap is not None:
        inside.append(Line("cap", [gate.cap] * len(gate.inside), "limit", "step"))
    charts = [
        Chart("Places in use", tuple(inside), span_s, sentences.occupancy(gate), gate.closed_in)
    ]
    if gate.learns:
        lines = (
            Line("learned limit", gate.believed, "learned"),
            Line("true limit", run.series.limit, "limit", "step"),
            Line("calls that were taken", run.series.taken, "taken"),
        )
        learned = sentences.learned(gate)
        charts.append(
            Chart("Learned limit, calls a minute", lines, span_s, learned, gate.closed_in)
        )
    return charts
