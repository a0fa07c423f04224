"""How jobs and gates look to people."""

from __future__ import annotations

import json
from typing import Any

from rich.console import Group, RenderableType
from rich.text import Text

from headway.cli.printing import WIDE, facts, number, plain, rows, state, table, word
from headway.cli.times import ago, at_and_ago, clock, rule_words, span

ROOMY = 100  # columns
SPARED = ("lane", "tenant", "upstream")  # what waits says at which of them


# ---------------------------------------------------------------------- jobs


def story(job: dict[str, Any]) -> str:
    """What there is to say about a job on one line: why it waits, how far it is, how it ended."""
    match job["status"]:
        case "running":
            return progress_words(job) or f"for {ago(job['started_at']).removesuffix(' ago')}"
        case "failed" | "cancelled":
            return job["last_error"] or ""
        case "completed":
            return "" if job["run_s"] is None else f"took {span(job['run_s'])}"
    words: str = job["wait_reason"] or ""
    if job["status"] == "pending" and job["last_error"]:
        words = f"{words or 'waits'} after: {job['last_error']}"
    return f"{words}, {start_words(job)}".strip(", ")


def start_words(job: dict[str, Any]) -> str:
    """When a job that waits should start, as far as anybody can tell."""
    at = job["next_attempt_at"] or job["eta"]
    return "" if at is None else ago(at) if ago(at).startswith("in ") else "soon"


def progress_words(job: dict[str, Any]) -> str:
    progress = job["progress"]
    if progress is None:
        return ""
    if progress["percent"] is not None:
        words = f"{progress['percent']:.0f} %"
    else:
        words = number(progress["done"])
    return f"{words} {progress['note']}".strip()


def job_table(answer: dict[str, Any], width: int = WIDE) -> RenderableType:
    """Where there is little room, it is for the story."""
    jobs = answer["items"]
    columns = {
        "id": [str(job["id"]) for job in jobs],
        "type": [job["type"] for job in jobs],
        "status": [state(job["status"]) for job in jobs],
        "lane": [job["lane"] for job in jobs],
        "tenant": [job["tenant"] for job in jobs],
        "upstream": [upstream_words(job) for job in jobs],
        "since": [ago(job["since"]) for job in jobs],
        "story": [story(job).removeprefix("waits at ") for job in jobs],
    }
    if width < ROOMY:
        columns = {name: cells for name, cells in columns.items() if name not in SPARED}
    used = {name: cells for name, cells in columns.items() if any(cells)}  # no empty columns
    found = table(*used, right=("id",), cut=("type", "lane", "tenant", "upstream", "story"))
    shown = rows(found, zip(*used.values(), strict=True), "no jobs")
    seen = (answer.get("page", 1) - 1) * answer.get("size", 0) + len(answer["items"])
    more = answer["total"] - seen
    if more <= 0:
        return shown
    return Group(shown, word(f"and {more} more; see them with --limit or --page", "bright_black"))


def upstream_words(job: dict[str, Any]) -> str:
    return job["upstream"] or ", ".join(job["upstreams"])


def job_facts(job: dict[str, Any]) -> RenderableType:
    what = facts((
        ("job", str(job["id"])), ("type", job["type"]), ("status", state(job["status"])),
        ("story", None if job["last_error"] == story(job) else story(job)),
        ("progress", progress_words(job)),
        ("place in line", job["position"]), ("waits since", at_and_ago(job["wait_since"])),
        ("opens", at_and_ago(job["opens_at"])), ("should start", at_and_ago(job["eta"])),
        ("next attempt", at_and_ago(job["next_attempt_at"])),
        ("asked to", job["stop_requested"]),
        ("lane", job["lane"]), ("upstreams", ", ".join(job["upstreams"])),
        ("went to", job["upstream"]), ("tenant", job["tenant"]), ("key", job["key"]),
        ("priority", f"{job['priority']}{', pinned' if job['pinned'] else ''}"),
        ("labels", ", ".join(f"{name}={value}" for name, value in job["labels"].items())),
        ("about", ", ".join(f"{name}={value}" for name, value in job["about"].items())),
        ("batch", job["batch"]), ("schedule", job["schedule"]),
        ("created", at_and_ago(job["created_at"])), ("started", at_and_ago(job["started_at"])),
        ("finished", at_and_ago(job["finished_at"])), ("deadline", at_and_ago(job["deadline"])),
        ("waited", None if job["waited_s"] is None else span(job["waited_s"])),
        ("took", None if job["run_s"] is None else span(job["run_s"])),
        ("attempts", attempt_words(job)), ("last error", job["last_error"]),
        ("heartbeat", ago(job["heartbeat_at"])),
        ("args", json.dumps(job["args"], ensure_ascii=False) if "args" in job else None),
    ))  # fmt: skip
    attempts = job.get("attempts") or []
    if not attempts:
        return what
    return Group(what, Text(""), attempt_table(attempts))


def attempt_words(job: dict[str, Any]) -> str:
    words = [f"{job['failed_attempts']} of {job['max_attempts']} failed"]
    if job["lost_leases"]:
        words.append(f"{job['lost_leases']} lost")
    if job["pushbacks"]:
        words.append(f"{job['pushbacks']} pushed back")
    return ", ".join(words)


def attempt_table(attempts: list[dict[str, Any]]) -> RenderableType:
    found = table("attempt", "started", "took", "outcome", "error", right=("attempt",),
                  cut=("error",))  # fmt: skip
    return rows(
        found,
        (
            (each["number"], at_and_ago(each["started_at"]),
             "" if each["duration_s"] is None else span(each["duration_s"]),
             each["outcome"] or "runs", each["error"] or "")
            for each in attempts
        ),
        "no attempts yet",
    )  # fmt: skip


def explanation(why: dict[str, Any]) -> RenderableType:
    return facts((
        ("status", state(why["status"])), ("why", why["text"]), ("gate", why["gate"]),
        ("since", at_and_ago(why["since"])), ("opens", at_and_ago(why["opens_at"])),
        ("place in line", why["position"]), ("should start", at_and_ago(why["eta"])),
    ))  # fmt: skip


def log_lines(answer: dict[str, Any]) -> RenderableType:
    if not answer["items"]:
        return Text("no lines", style="bright_black")
    return Text("\n").join(
        Text(f"{clock(each['at'])} {plain(each['level']):<7} {plain(each['line'])}")
        for each in answer["items"]
    )


# ---------------------------------------------------------------------- gates


def gate_state(gate: dict[str, Any]) -> Text:
    """Open, or why not and until when."""
    if gate["paused"]:
        return Text("paused", style="yellow")
    if gate["closed_until"] is not None:
        why = f" ({plain(gate['closed_why'])})" if gate["closed_why"] else ""
        return Text(f"closed, opens {ago(gate['closed_until'])}{why}", style="red")
    if not gate["open"]:
        opens = f", opens {ago(gate['opens_at'])}" if gate["opens_at"] else ""
        detail = f" ({plain(gate['detail'])})" if gate["detail"] else ""
        return Text(f"{plain(gate['reason'])}{opens}{detail}", style="yellow")
    return Text("open", style="green")


def settings_words(gate: dict[str, Any]) -> str:
    settings = gate["settings"]
    if settings is None:
        return ""
    words = ", ".join(f"{name}={_value(value)}" for name, value in settings["value"].items())
    return f"{words} (set by an operator)" if settings["overridden"] else words


def _value(value: Any) -> str:
    return value if isinstance(value, str) else json.dumps(value, ensure_ascii=False)


def gate_table(answer: dict[str, Any]) -> RenderableType:
    numbers = ("running", "limit", "waiting")
    found = table("name", *numbers, "state", "settings", right=numbers,
                  cut=("name", "state", "settings"))  # fmt: skip
    return rows(
        found,
        (
            (each["name"], each["running"], number(each["limit"]), number(each["waiting"]),
             gate_state(each), settings_words(each))
            for each in answer["items"]
        ),
        "none yet",
    )  # fmt: skip


def gate_facts(gate: dict[str, Any]) -> RenderableType:
    what = facts((
        (gate["kind"], gate["name"]), ("state", gate_state(gate)),
        ("running", f"{gate['running']} of {number(gate['limit'], 'any number')}"),
        ("cooling", gate["cooling"] or None), ("waiting", number(gate["waiting"], "")),
        ("kept back", gate["reserve"] or None),
        ("closed since", at_and_ago(gate["closed_since"])),
        ("pushed back", f"{gate['pushbacks_in_a_row']} times in a row"
         if gate["pushbacks_in_a_row"] else None),
        ("settings", settings_words(gate)),
        ("from", gate["settings"] and gate["settings"]["declared_as"]),
        ("jobs", ", ".join(f"{many} {name}" for name, many in (gate["counts"] or {}).items())),
    ))  # fmt: skip
    parts: list[RenderableType] = [what]
    if gate["limits"]:
        parts += [Text(""), limit_table(gate["limits"])]
    if gate["holders"]:
        parts += [Text(""), holder_table(gate["holders"])]
    if gate["tenants"]:
        parts += [Text(""), tenant_table(gate["tenants"])]
    return Group(*parts)


def limit_table(limits: list[dict[str, Any]]) -> RenderableType:
    found = table(
        "limit", "allows now", "opens", "settings", right=("allows now",), cut=("settings",)
    )
    shown = (
        "interval_s",
        "burst",
        "jitter",
        "state",
        "heard_of",
        "bad",
        "cooldown_s",
        "min_hold_s",
        "source",
        "phase",
    )
    return rows(
        found,
        (
            (each["name"], number(each["allowed_now"]), ago(each["opens_at"]),
             ", ".join(f"{name} {each[name]}" for name in shown if each.get(name)))
            for each in limits
        ),
        "",
    )  # fmt: skip


def holder_table(holders: list[dict[str, Any]]) -> RenderableType:
    found = table("holder", "type", "tenant", "held for", "lease ends", right=("holder",),
                  cut=("type", "tenant"))  # fmt: skip
    return rows(
        found,
        (
            (each["id"], each["type"], each["tenant"], span(each["held_s"]),
             ago(each["lease_ends_at"]))
            for each in holders
        ),
        "",
    )  # fmt: skip


def tenant_table(tenants: list[dict[str, Any]]) -> RenderableType:
    found = table("tenant", "running", "waiting", "weight", "opens",
                  right=("running", "waiting", "weight"), cut=("tenant",))  # fmt: skip
    return rows(
        found,
        (
            (each["tenant"] or "(none)", each["running"], each["waiting"],
             number(each["weight"]), ago(each["closed_until"]))
            for each in tenants
        ),
        "",
    )  # fmt: skip


# ---------------------------------------------------------------------- the rest


def schedule_table(answer: dict[str, Any]) -> RenderableType:
    found = table("name", "type", "rule", "next", "last", "missed", "", right=("missed",),
                  cut=("name", "type", "rule"))  # fmt: skip
    return rows(
        found,
        (
            (each["name"], each["type"], rule_words(each["rule"]),
             "" if each["paused"] else ago(each["next_due_at"]), ago(each["last_due_at"]),
             each["missed"] or "", Text("paused", "yellow") if each["paused"] else "")
            for each in answer["items"]
        ),
        "no schedules",
    )  # fmt: skip


def schedule_facts(each: dict[str, Any]) -> RenderableType:
    return facts((
        ("schedule", each["name"]), ("type", each["type"]), ("rule", rule_words(each["rule"])),
        ("paused", "yes" if each["paused"] else None),
        ("next", None if each["paused"] else at_and_ago(each["next_due_at"])),
        ("last", at_and_ago(each["last_due_at"])), ("missed", each["missed"] or None),
        ("failed in a row", each["strikes"] or None),
        ("args", json.dumps(each["args"], ensure_ascii=False)),
        ("lane", each["lane"]), ("upstreams", ", ".join(each["upstreams"])),
        ("tenant", each["tenant"]), ("key", each["key"]), ("priority", each["priority"]),
        ("made by", each["source"]), ("created", at_and_ago(each["created_at"])),
    ))  # fmt: skip


def batch_table(answer: dict[str, Any]) -> RenderableType:
    found = table("id", "label", "tenant", "jobs", "by state", "created", right=("id", "jobs"),
                  cut=("label", "tenant", "by state"))  # fmt: skip
    return rows(
        found,
        (
            (each["id"], each["label"], each["tenant"], each["total"], counts_words(each),
             ago(each["created_at"]))
            for each in answer["items"]
        ),
        "no batches",
    )  # fmt: skip


def counts_words(batch: dict[str, Any]) -> str:
    return ", ".join(f"{many} {name}" for name, many in batch["counts"].items())


def batch_facts(batch: dict[str, Any]) -> RenderableType:
    return facts((
        ("batch", batch["id"]), ("label", batch["label"]), ("tenant", batch["tenant"]),
        ("created", at_and_ago(batch["created_at"])), ("jobs", batch["total"]),
        ("by state", counts_words(batch)), ("all ended", "yes" if batch["done"] else "not yet"),
    ))  # fmt: skip


def token_table(answer: dict[str, Any]) -> RenderableType:
    found = table("id", "name", "scopes", "tenant", "created", "last used", "valid",
                  cut=("name", "scopes", "tenant"))  # fmt: skip
    return rows(
        found,
        (
            (each["id"], each["name"], ", ".join(each["scopes"]),
             "all" if each["tenant"] is None else each["tenant"] or "(none)",
             ago(each["created_at"]), ago(each["last_used_at"]) or "never", token_state(each))
            for each in answer["items"]
        ),
        "no tokens; make one with `headway tokens create`",
    )  # fmt: skip


def token_state(token: dict[str, Any]) -> Text:
    if token["revoked_at"] is not None:
        return Text(f"revoked {ago(token['revoked_at'])}", "bright_black")
    if token["expires_at"] is None:
        return Text("yes", "green")
    over = ago(token["expires_at"])
    return Text(f"expires {over}", "green") if over.startswith("in ") else Text("expired", "red")


def event_row(event: dict[str, Any]) -> Text:
    """One event on one line."""
    subject = f"job {event['job']}" if event["job"] is not None else event["subject"] or ""
    line = Text(f"{clock(event['at'])} ", style="bright_black")
    line.append(f"{plain(event['event']):<12} ", style="bold")
    line.append(f"{plain(subject)} {plain(event.get('type') or '')}".strip(), style="")
    if event["after"] is not None:
        line.append(" ").append_text(state(event["after"]))
    if event["detail"]:
        line.append(f"  {plain(event['detail'])}", style="")
    if event["who"]:
        line.append(f"  by {plain(event['who'])}", style="bright_black")
    return line


def event_lines(answer: dict[str, Any]) -> RenderableType:
    if not answer["items"]:
        return Text("nothing has happened", style="bright_black")
    return Text("\n").join(event_row(each) for each in answer["items"])
