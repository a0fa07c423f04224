"""What each figure of a report shows, in a sentence."""

from __future__ import annotations

from headway.simulation.comparing import count
from headway.simulation.report import GateRow, PriorityRow, Report, TenantRow
from headway.simulation.wording import duration, percent, rate, whole

STOPPED = {
    "time": "It was stopped while work still waited.",
    "calls": "It was stopped after as many calls as are allowed.",
    "asked": "It was stopped after as much time as is allowed.",
}


def throughput(report: Report) -> str:
    most = max(report.series.taken, default=0.0)
    said = f"{whole(report.taken)} calls were taken, at most {rate(most)}"
    if report.limit_per_minute is None:
        return f"{said}; the upstream has no limit."
    said += f", where the limit is {rate(report.limit_per_minute)} on average"
    if report.use is None:
        return f"{said}. Work never waited for long."
    return f"{said}. While work waited, {percent(report.use)} of the limit was used."


def refusals(report: Report) -> str:
    if not report.refused and not report.banned and not report.unwell:
        return "The upstream refused nothing."
    parts = [count(report.refused, "refusal")]
    if report.banned:
        parts.append(f"{count(report.banned, 'call')} while it was banned")
    if report.unwell:
        parts.append(count(report.unwell, "error"))
    share = (report.refused + report.banned + report.unwell) / max(1, report.calls)
    return f"{', '.join(parts)}: {percent(share)} of all calls."


def line(report: Report) -> str:
    longest = max(report.series.waiting, default=0.0)
    if longest < 0.5:
        return "Nobody stood in line for long."
    span_s = report.series.span_s
    at = report.series.waiting.index(longest) * span_s
    said = f"The line was longest after {duration(at)}: {whole(longest)} waited."
    if report.left:
        return (
            f"{said} {count(report.left, 'job')} {'was' if report.left == 1 else 'were'} not done."
        )
    if report.finished_after_s is not None:
        return f"{said} All was done after {duration(report.finished_after_s)}."
    return said


def learned(gate: GateRow) -> str:
    known = [each for each in gate.believed if each is not None]
    if not known:
        return "It never learned a rate: nothing pushed back."
    said = f"It believed {rate(known[0])} at first and {rate(known[-1])} at the end"
    if gate.closed:
        return f"{said}; for {percent(gate.closed)} of the time it held back after a refusal."
    return f"{said}, and never had to hold back."


def occupancy(gate: GateRow) -> str:
    if gate.cap is None:
        return f"No cap; {gate.mean:.1f} at once on average, {gate.peak} at most."
    share = gate.mean / gate.cap if gate.cap else 0.0
    return f"{percent(share)} of {gate.cap:g} places in use on average, {gate.peak} at most."


def waits(report: Report) -> str:
    all_ = report.waits
    if not all_.many:
        return "Nothing had to wait."
    return (
        f"Half waited {duration(all_.p50_s)} or less, 95 % {duration(all_.p95_s)} or less; "
        f"the longest wait was {duration(all_.longest_s)}."
    )


def fairness(report: Report) -> str:
    if report.fairness is None:
        return "Nobody had to share: there were never two tenants who wanted more all the time."
    shared = [row for row in report.tenants if row.share is not None]
    said = f"Jain's index is {report.fairness:.3f}"
    if not shared:
        return f"{said}."
    least = min(shared, key=_share)
    most = max(shared, key=_share)
    return (
        f"{said}: {least.name or '(none)'} got {percent(least.share)} of what it was due, "
        f"{most.name or '(none)'} {percent(most.share)}."
    )


def _share(row: TenantRow) -> float:
    return row.share or 0.0


def priorities(rows: list[PriorityRow]) -> str:
    first, last = rows[0], rows[-1]
    return (
        f"Priority {first.priority} waited {duration(first.waits.p95_s)} at the 95th percentile, "
        f"priority {last.priority} {duration(last.waits.p95_s)}."
    )


def recorded(report: Report) -> str:
    seen = report.recorded
    if seen is None:
        return ""
    return (
        f"Of {whole(seen.many)} recorded jobs half waited {duration(seen.p50_s)} then and would "
        f"wait {duration(seen.would_p50_s)}; 95 %: {duration(seen.p95_s)} then, "
        f"{duration(seen.would_p95_s)} with this policy."
    )


def ended(report: Report) -> str:
    """What people should know of how the run ended; empty when there is nothing to say."""
    return STOPPED.get(report.stopped, "")
