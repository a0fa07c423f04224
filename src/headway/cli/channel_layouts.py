"""How channels, costs and budgets look to people."""

from __future__ import annotations

from typing import Any

from rich.console import Group, RenderableType
from rich.text import Text

from headway.cli.learned import sample_table, traffic_words
from headway.cli.printing import facts, number, plain, rows, table
from headway.cli.times import ago, at_and_ago

NOBODY = "-"  # who has no tenant, as the API calls them


def channel_table(answer: dict[str, Any]) -> RenderableType:
    found = table("code", "model", "queue", "price", "key", "state", "leads to",
                  cut=("code", "model", "leads to"))  # fmt: skip
    return rows(
        found,
        (
            (each["code"], each["model"], each["queue_mode"], price_words(each["price"]),
             key_words(each), channel_state(each), each["base_url"])
            for each in answer["items"]
        ),
        "no channels; add one with `headway channels add`",
    )  # fmt: skip


def price_words(price: dict[str, Any]) -> str:
    if not price["input_per_1k"] and not price["output_per_1k"]:
        return "-"
    return f"{number(price['input_per_1k'])}/{number(price['output_per_1k'])} {price['currency']}"


def key_words(channel: dict[str, Any]) -> str:
    if not channel["has_key"]:
        return "none"
    ends = channel["key_ends_with"]
    return "yes" if ends is None else f"…{ends}"


def channel_state(channel: dict[str, Any]) -> Text:
    if channel["trouble"]:
        return Text("in trouble", "red")
    return Text("on", "green") if channel["enabled"] else Text("off", "bright_black")


def channel_facts(each: dict[str, Any]) -> RenderableType:
    price = each["price"]
    paid = price["input_per_1k"] or price["output_per_1k"]
    return facts((
        ("channel", each["code"]), ("state", channel_state(each)), ("trouble", each["trouble"]),
        ("model", each["model"]), ("at the provider", each["upstream_model"]),
        ("leads to", each["base_url"]), ("key", key_words(each)), ("queue", each["queue_mode"]),
        ("price", f"{number(price['input_per_1k'])} in, {number(price['output_per_1k'])} out, "
         f"{price['currency']} for 1,000 tokens" if paid else "none"),
        ("less when queued", _share(each["batch_discount"])),
        ("calls at once", number(each["max_concurrency"], "as learned")),
        ("of one tenant", each["max_concurrency_per_tenant"]),
        ("requests a minute", number(each["rpm"], "as learned")),
        ("tokens a minute", number(each["tpm"], "as learned")),
        ("left unused", _share(each["remaining_threshold"])),
        ("timeout", f"{number(each['timeout_s'])} s"), ("declared by", each["source"]),
        ("changed", at_and_ago(each["updated_at"])),
    ))  # fmt: skip


def _share(value: float) -> str | None:
    return f"{100 * value:g} %" if value else None


def capacity_facts(each: dict[str, Any]) -> RenderableType:
    limit, believed = each["limit_rpm"], each["believed"]
    what = facts((
        ("channel", each["code"]), ("model", each["model"]),
        ("queued work", each["idle_because"] or Text("runs", "green")),
        ("waiting", each["waiting"]), ("phase", each["phase"]),
        ("plain estimate", limit and f"{number(limit)} rpm (by {each['source']})"),
        ("remaining", f"{100 * each['remaining']:.0f} %"),
        ("left unused", _share(each["threshold"])),
        ("requests a minute", number(believed["rpm"])),
        ("tokens a minute", number(believed["tpm"])),
        ("calls at once", number(believed["concurrency"])),
        ("online", traffic_words(each["online"])), ("queued", traffic_words(each["queued"])),
        ("closed until", at_and_ago(each["closed_until"])), ("because", each["closed_why"]),
    ))  # fmt: skip
    parts: list[RenderableType] = [what]
    if each["tenants"]:
        shown = table("tenant", "calls", "waiting", "held", right=("calls", "waiting"),
                      cut=("tenant", "held"))  # fmt: skip
        parts += [Text(""), rows(shown, (
            (row["tenant"] or "(none)", row["concurrent"], row["waiting"], row["closed_why"])
            for row in each["tenants"]
        ), "")]  # fmt: skip
    if each["samples"]:
        parts += [Text(""), sample_table(each["samples"])]
    return Group(*parts)


def cost_table(answer: dict[str, Any], names: list[str]) -> RenderableType:
    numbers = ("calls", "tokens in", "tokens out", "cost")
    found = table(*names, *numbers, "", right=numbers, cut=names)
    shown = rows(
        found,
        (
            (*(each[name] or "(none)" for name in names), *_sums(each))
            for each in answer["items"]
        ),
        "nothing was spent",
    )  # fmt: skip
    if len(answer["items"]) > 1:
        for each in answer["totals"]:
            found.add_row(*(["all"] + [""] * (len(names) - 1)), *map(plain, _sums(each)))
    if not answer["more"]:
        return shown
    return Group(shown, Text("and more; ask for a shorter time, or for fewer groups"))


def _sums(each: dict[str, Any]) -> tuple[str, ...]:
    return (
        f"{each['calls']:,}", f"{each['input_tokens']:,}", f"{each['output_tokens']:,}",
        each["cost"], each["currency"],
    )  # fmt: skip


def budget_table(answer: dict[str, Any]) -> RenderableType:
    numbers = ("amount", "spent", "left")
    found = table("tenant", "period", *numbers, "", "begins anew", "", right=numbers,
                  cut=("tenant",))  # fmt: skip
    return rows(
        found,
        (
            (each["tenant"] or f"{NOBODY} (none)", each["period"], each["amount"], each["spent"],
             each["left"], each["currency"], ago(each["begins_anew_at"]) or "never",
             Text("used up", "red") if each["used_up"] else "")
            for each in answer["items"]
        ),
        "no budgets; set one with `headway budgets set`",
    )  # fmt: skip
