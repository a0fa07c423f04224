"""What was spent, from the rows of the ledger: summed up, one by one, and as a table for others.

Amounts are kept in billionths and leave as decimal text, so nothing is ever rounded.
"""

from __future__ import annotations

import csv
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from datetime import UTC, date, datetime
from decimal import Decimal
from io import StringIO
from typing import Any

from headway.api.views import moment
from headway.apps.channels.channel import NANO
from headway.apps.channels.money.billing import Bill
from headway.store import Store

DAY_S = 86_400
GROUPS = {
    "tenant": "tenant",
    "channel": "channel",
    "model": "model",
    "kind": "kind",
    "day": f"floor(at / {DAY_S})",
}
MOST_ROWS = 10_000  # of one sum; who needs more asks for a shorter time, or for the rows
CHUNK = 1_000  # rows of an export that are in memory at once
DECIMALS = 9
SUMS = (
    "cast(count(*) as bigint), cast(sum(estimated) as bigint), cast(sum(input_tokens) as bigint), "
    "cast(sum(output_tokens) as bigint), cast(sum(cost_nano) as bigint), currency"
)
COLUMNS = ", ".join(Bill._fields)
# A table that begins a cell so may run it.
FORMULA = ("=", "+", "-", "@", "\t", "\r")


def money(nano: int) -> str:
    """`50.00`, `0.000125`: all of it, with two decimals at least."""
    whole, rest = divmod(abs(nano), NANO)
    decimals = f"{rest:0{DECIMALS}d}".rstrip("0").ljust(2, "0")
    return f"{'-' if nano < 0 else ''}{whole}.{decimals}"


def nano_of(amount: str | float) -> int:
    """ValueError: there is no such amount."""
    try:
        nano = Decimal(str(amount)) * NANO
        is_whole = 0 <= nano < 2**63 and nano == nano.to_integral_value()
    except ArithmeticError:  # it is no number at all
        is_whole = False
    if not is_whole:
        raise ValueError(f"an amount is 0 or more, with at most {DECIMALS} decimals, not {amount}")
    return int(nano)


def time_of(text: str, *, end: bool = False) -> float:
    """Seconds since 1970 of a time or a date. The end of a span that is a date is its last moment.
    ValueError: it is neither.
    """
    try:
        day = date.fromisoformat(text)
        at = datetime(day.year, day.month, day.day, tzinfo=UTC)
        return at.timestamp() + (DAY_S if end else 0.0)
    except ValueError:
        # In an address a plus sign means a blank, which no time has after its T.
        head, letter, tail = text.upper().partition("T")
        at = datetime.fromisoformat(head + letter + tail.replace(" ", "+"))
        at = at if at.tzinfo is not None else at.replace(tzinfo=UTC)
    return at.timestamp()


@dataclass(frozen=True, slots=True)
class Wanted:
    """Which rows: from this time on, and before that one. None: all."""

    begin: float | None = None
    end: float | None = None
    tenant: str | None = None
    channel: str | None = None
    model: str | None = None

    def where(self, *more: tuple[str, Sequence[Any]]) -> tuple[str, list[Any]]:
        """A condition in SQL, and its values."""
        parts, values = ["1 = 1"], list[Any]()
        for text, value in (
            ("at >= ?", self.begin), ("at < ?", self.end), ("tenant = ?", self.tenant),
            ("channel = ?", self.channel), ("model = ?", self.model),
        ):  # fmt: skip
            if value is not None:
                parts.append(text)
                values.append(value)
        for text, others in more:
            parts.append(text)
            values += others
        return " and ".join(parts), values


# ---------------------------------------------------------------------- sums


def summed(
    store: Store, wanted: Wanted, groups: Sequence[str]
) -> tuple[list[dict[str, Any]], bool]:
    """A row for each group and currency, in order; whether there are more than are given."""
    where, values = wanted.where()
    keys = [GROUPS[group] for group in groups]
    named = ", ".join((*keys, "currency"))
    chosen = ", ".join((*keys, SUMS))
    found = store.rows(
        f"select {chosen} from llm_bills where {where} group by {named} order by {named} "
        f"limit {MOST_ROWS + 1}",
        values,
    )
    rows = [_sum(groups, row) for row in found[:MOST_ROWS]]
    return rows, len(found) > MOST_ROWS


def totals(store: Store, wanted: Wanted) -> list[dict[str, Any]]:
    """One for each currency."""
    return summed(store, wanted, ())[0]


def _sum(groups: Sequence[str], row: tuple[Any, ...]) -> dict[str, Any]:
    calls, estimated, asked, answered, cost, currency = row[len(groups) :]
    said = dict.fromkeys(GROUPS) | dict(zip(groups, row, strict=False))
    if said["day"] is not None:
        said["day"] = datetime.fromtimestamp(int(said["day"]) * DAY_S, UTC).date().isoformat()
    return {
        **({} if not groups else said),
        "calls": calls,
        "estimated": estimated,
        "input_tokens": asked,
        "output_tokens": answered,
        "cost": money(cost),
        "currency": currency,
    }


# ---------------------------------------------------------------------- rows


def count_bills(store: Store, wanted: Wanted) -> int:
    where, values = wanted.where()
    return int(store.rows(f"select count(*) from llm_bills where {where}", values)[0][0])


def bills(store: Store, wanted: Wanted, limit: int, offset: int) -> list[Bill]:
    """The newest first."""
    where, values = wanted.where()
    found = store.rows(
        f"select {COLUMNS} from llm_bills where {where} order by at desc, id desc limit ? offset ?",
        [*values, limit, offset],
    )
    return [Bill(*row) for row in found]


def all_bills(store: Store, wanted: Wanted) -> Iterator[list[Bill]]:
    """The oldest first, some at a time, each in a query of its own."""
    after: tuple[str, Sequence[Any]] = ("1 = 1", ())
    while True:
        where, values = wanted.where(after)
        found = store.rows(
            f"select {COLUMNS} from llm_bills where {where} order by at, id limit {CHUNK}", values
        )
        if found:
            yield [Bill(*row) for row in found]
        if len(found) < CHUNK:
            return
        last = Bill(*found[-1])
        after = ("(at > ? or (at = ? and id > ?))", (last.at, last.at, last.id))


def bill_view(bill: Bill) -> dict[str, Any]:
    view = {
        **bill._asdict(),
        "at": moment(bill.at),
        "estimated": bool(bill.estimated),
        "cost": money(bill.cost_nano),
    }
    del view["cost_nano"]
    return view


def as_csv(store: Store, wanted: Wanted) -> Iterator[str]:
    """All rows with a head, in pieces."""
    yield _lines([COLUMNS.replace("cost_nano, currency", "currency, cost").split(", ")])
    for some in all_bills(store, wanted):
        yield _lines([[_cell(value) for value in bill_view(bill).values()] for bill in some])


def _lines(rows: Sequence[Sequence[Any]]) -> str:
    text = StringIO()
    csv.writer(text, lineterminator="\r\n").writerows(rows)
    return text.getvalue()


def _cell(value: Any) -> Any:
    """Text that a spreadsheet would run is shown as text instead."""
    if value is None:
        return ""
    return f"'{value}" if isinstance(value, str) and value.startswith(FORMULA) else value
