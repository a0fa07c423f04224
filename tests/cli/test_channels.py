"""Channels, costs and budgets, by a server and without one."""

from __future__ import annotations

import io
from contextlib import closing
from time import time
from uuid import uuid4

import pytest

from headway.apps.channels.money.billing import Bill
from headway.apps.channels.tables import ADD_BILL
from headway.store import open_store
from tests.cli.kit import Cli

KEY = "sk-secret-of-a-provider-4711"
URL = "https://llm.example.com/v1"


def new_name() -> str:
    return f"n{uuid4().hex[:12]}"


def add(cli: Cli, *more: str) -> str:
    code = new_name()
    said = cli("channels", "add", code, "--model", f"m-{code}", "--base-url", URL, *more)
    assert said.code == 0, said.err
    return code


def bill(tenant: str, cost_nano: int, currency: str = "USD", model: str = "m") -> Bill:
    return Bill(new_name(), time(), tenant, "fast", model, "queued", "/v1/embeddings", 1, None,
                1_200, 34, 0, 0.5, 1.5, 0.0, cost_nano, currency)  # fmt: skip


# ---------------------------------------------------------------------- channels


def test_a_channel_is_added_listed_changed_and_removed(cli: Cli) -> None:
    code = add(cli, "price.input_per_1k=0.5", "queue_mode=both", "rpm=60")
    shown = cli("channels", "show", code).out
    assert f"m-{code}" in shown
    assert "0.5 in, 0 out, USD for 1,000 tokens" in shown
    assert code in cli("channels").out
    assert code in cli("channels", "ls").out
    changed = cli.json(
        "channels", "set", code, "price.output_per_1k=2", "rpm=null", "enabled=false"
    )
    assert changed["price"] == {"input_per_1k": 0.5, "output_per_1k": 2.0, "currency": "USD"}
    assert (changed["rpm"], changed["enabled"], changed["queue_mode"]) == (None, False, "both")
    assert cli("channels", "rm", code).out == f"channel {code} is removed\n"
    assert f"there is no channel '{code}'" in cli.refuses("channels", "show", code)
    assert f"there is no channel '{code}'" in cli.refuses("channels", "rm", code)


def test_a_key_comes_from_a_variable_or_from_stdin(
    cli: Cli, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("PROVIDER_KEY", KEY)
    code = add(cli, "--key-env", "PROVIDER_KEY")
    assert "…4711" in cli("channels", "show", code).out
    monkeypatch.setattr("sys.stdin", io.StringIO("sk-another-key-of-it-9999\n"))
    assert cli.json("channels", "set", code, "--key-stdin")["key_ends_with"] == "9999"
    assert "NOT_SET is not set" in cli.refuses("channels", "set", code, "--key-env", "NOT_SET")
    monkeypatch.setattr("sys.stdin", io.StringIO(""))
    assert "no key came" in cli.refuses("channels", "set", code, "--key-stdin")
    assert not any(KEY in said.out + said.err for said in cli.seen)
    cli("channels", "rm", code)


@pytest.mark.parametrize(
    "words",
    [("api_key=sk-1",), ("rpm",), ("--key-env", "A", "--key-stdin"), ()],
)
def test_what_cannot_be_meant_is_refused_before_anybody_is_asked(
    bare: Cli, words: tuple[str, ...]
) -> None:
    assert bare("channels", "set", "some", *words).code == 2


def test_a_setting_that_is_not_there_is_refused_by_name(cli: Cli) -> None:
    code = add(cli)
    assert "colour" in cli.refuses("channels", "set", code, "colour=red")
    assert "rpm" in cli.refuses("channels", "set", code, "rpm=0")
    cli("channels", "rm", code)


def test_capacity_says_what_goes_there_and_why_nothing_does(cli: Cli) -> None:
    code = add(cli)
    said = cli("channels", "capacity", code).out
    assert "0 in the last minute, 0 on their way" in said
    if cli.served:
        assert f"nothing is queued for m-{code}" in said
    else:
        assert "nothing runs while no server does" in said
    assert cli.json("channels", "capacity", code)["source"] == "open"
    cli("channels", "rm", code)


def test_it_fits_into_80_columns(cli: Cli, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("COLUMNS", "80")
    code = add(cli, "price.input_per_1k=0.00025", "price.output_per_1k=0.002")
    for words in (("channels",), ("channels", "show", code), ("channels", "capacity", code)):
        assert max(map(len, cli(*words).out.splitlines())) <= 80
    cli("channels", "rm", code)


# ---------------------------------------------------------------------- costs and budgets


def test_nothing_was_spent_where_nobody_called(direct: Cli) -> None:
    assert direct("costs").out == "nothing was spent\n"
    assert direct("channels").out.startswith("no channels; add one with")
    assert direct("budgets").out.startswith("no budgets; set one with")


def test_costs_by_group(direct: Cli) -> None:
    direct("costs")  # which makes the tables
    bills = [bill("acme", 1_500_000), bill("acme", 250, model="other"), bill("", 5, "EUR")]
    with closing(open_store(direct.store_url)) as store:
        store.write([(ADD_BILL, [tuple(each) for each in bills])])
    lines = direct("costs").out.splitlines()
    assert lines[0].split() == ["tenant", "calls", "tokens", "in", "tokens", "out", "cost"]
    assert ["acme", "2", "2,400", "68", "0.00150025", "USD"] in [each.split() for each in lines]
    assert ["(none)", "1", "1,200", "34", "0.000000005", "EUR"] in [e.split() for e in lines]
    assert [each.split()[0] for each in lines[-2:]] == ["all", "all"]
    found = direct.json("costs", "--group", "model,kind", "--tenant", "acme")
    assert {(row["model"], row["kind"]) for row in found["items"]} == {
        ("m", "queued"), ("other", "queued")}  # fmt: skip
    assert direct("costs", "--to", "2020-01-01").out == "nothing was spent\n"
    assert "from and to are times" in direct.refuses("costs", "--from", "soon")
    assert "group is one or more of" in direct.refuses("costs", "--group", "colour")


def test_budgets_are_set_shown_and_removed(cli: Cli) -> None:
    tenant = new_name()
    said = cli("budgets", "set", tenant, "50", "USD", "--period", "month").out
    assert f"{tenant}  month" in said
    assert "50.00" in said
    cli("budgets", "set", tenant, "0", "EUR", "--period", "total")
    assert "used up" in cli("budgets").out
    cli("budgets", "rm", tenant, "--period", "total", "--currency", "EUR")
    (left,) = (each for each in cli.json("budgets")["items"] if each["tenant"] == tenant)
    assert (left["amount"], left["period"]) == ("50.00", "month")
    assert cli("budgets", "rm", tenant).code == 0
    assert "there is no such budget" in cli.refuses("budgets", "rm", tenant)
    assert cli.refuses("budgets", "set", tenant, "much")
    assert cli.refuses("budgets", "set", tenant, "5", "USD", "--period", "week")
