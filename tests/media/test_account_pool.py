"""Which account goes next, and what follows from what a site says to one."""

from __future__ import annotations

from collections import Counter
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from headway.apps.media.accounts.pool import (
    Account,
    Heard,
    Status,
    Word,
    after,
    is_usable,
    pick,
    renewed,
    status_at,
    taken,
    usable_at,
)

SITE = "bilibili.com"
NOW = 1_767_225_600.0
MINUTE, HOUR = 60.0, 3_600.0

OK, TROUBLE = Heard(Word.OK), Heard(Word.TROUBLE)
REFUSED, PUSHBACK = Heard(Word.REFUSED, 403), Heard(Word.PUSHBACK, 412)
VALID, INVALID, UNKNOWN = Heard(Word.VALID), Heard(Word.INVALID), Heard(Word.UNKNOWN)


def account(id: int = 1, **facts: Any) -> Account:
    plain = Account(
        id, f"a{id}", SITE, "sealed", enabled=1, status="healthy", reason="", check_url=None,
        uses=0, failures=0, load=0.0, load_at=NOW, last_used_at=None, cooled_until=0.0, pushbacks=0,
        strikes="[]", checked_at=None, expires_at=None, created_at=NOW, changed_at=NOW,
    )  # fmt: skip
    return plain._replace(**facts)


def picked(*accounts: Account, now: float = NOW, **more: Any) -> int | None:
    found = pick(accounts, SITE, now, more.pop("in_use", {}), **more)
    return None if found is None else found.id


# ---------------------------------------------------------------------- who goes


def test_the_least_used_goes_first() -> None:
    assert picked(account(1, load=5.0), account(2, load=4.0)) == 2
    assert picked(account(1, load=5.0), account(2, load=4.0), in_use={2: 1}) == 1
    assert picked(account(1, load=5.0), account(2, load=4.0), not_these=[2]) == 1


def test_of_two_alike_it_is_the_one_that_was_used_longer_ago() -> None:
    assert picked(account(1, last_used_at=NOW - 1), account(2, last_used_at=NOW - 2)) == 2
    assert picked(account(1, status="unchecked"), account(2)) == 2


@pytest.mark.parametrize(
    "facts",
    [
        {"enabled": 0},
        {"status": "disabled"},
        {"status": "expired"},
        {"status": "cooling", "cooled_until": NOW + 1},
        {"site": "video.example"},
        {"site": "www.bilibili.com"},
    ],
)
def test_who_is_not_fit_does_not_go(facts: dict[str, Any]) -> None:
    assert picked(account(1, **facts)) is None


def test_an_account_serves_all_hosts_of_its_site() -> None:
    one = account()
    assert pick([one], "www.bilibili.com", NOW, {}) is one
    assert pick([one], "notbilibili.com", NOW, {}) is None


def shares(accounts: list[Account], uses: int, every_s: float) -> Counter[int]:
    """How often each goes, if all goes well."""
    rows = {each.id: each for each in accounts}
    found: Counter[int] = Counter()
    now = NOW
    for _ in range(uses):
        chosen = pick(rows.values(), SITE, now, {})
        assert chosen is not None
        found[chosen.id] += 1
        rows[chosen.id] = after(taken(chosen, rows.values(), now), OK, now)
        now += every_s
    return found


def test_a_new_one_does_not_have_all_the_work_until_it_has_caught_up() -> None:
    old = account(1, load=10_000.0, uses=10_000)
    assert shares([old, account(2, status="unchecked")], 20, MINUTE) == {1: 10, 2: 10}


def test_neither_does_one_that_has_rested() -> None:
    busy = account(1, load=500.0)
    rested = account(2, load=10.0, status="cooling", cooled_until=NOW)
    assert shares([busy, rested], 20, MINUTE) == {1: 10, 2: 10}


def test_work_is_shared_for_days_and_old_uses_count_less() -> None:
    found = shares([account(1, load=40.0), account(2), account(3)], 600, 10 * MINUTE)
    assert found[1] > 160
    assert found[2] - found[3] in (-1, 0, 1)


# ---------------------------------------------------------------------- when


def test_when_one_can_be_used() -> None:
    resting = account(1, status="cooling", cooled_until=NOW + 60)
    longer = account(2, status="cooling", cooled_until=NOW + 90)
    gone = account(3, status="expired")
    assert usable_at([resting, account(4)], SITE, NOW) == NOW
    assert usable_at([longer, resting, gone], SITE, NOW) == NOW + 60
    assert usable_at([longer, resting, gone], SITE, NOW + 60) == NOW + 60
    assert usable_at([gone, account(5, enabled=0, cooled_until=NOW + 9)], SITE, NOW) is None
    assert usable_at([], SITE, NOW) is None
    assert status_at(resting, NOW) is Status.COOLING
    assert status_at(resting, NOW + 60) is Status.UNCHECKED


# ---------------------------------------------------------------------- what follows


def test_three_refusals_within_fifteen_minutes_disable() -> None:
    one = after(after(account(), REFUSED, NOW), REFUSED, NOW + 7 * MINUTE)
    assert one.status == "healthy"
    one = after(one, REFUSED, NOW + 15 * MINUTE)
    assert one.status == "disabled"
    assert "403" in one.reason
    assert one.failures == 3


def test_two_and_a_third_much_later_do_not() -> None:
    one = after(after(account(), REFUSED, NOW), REFUSED, NOW + 1)
    one = after(one, REFUSED, NOW + 15 * MINUTE + 2)
    assert one.status == "healthy"


def test_a_use_that_goes_well_clears_them() -> None:
    one = account(status="unchecked")
    for at, heard in enumerate([REFUSED, REFUSED, OK, REFUSED, REFUSED]):
        one = after(one, heard, NOW + at)
    assert one.status == "healthy"


def test_lesson_13_a_network_error_says_nothing_about_a_cookie() -> None:
    for heard in (TROUBLE, UNKNOWN):
        assert after(account(), heard, NOW) == account()


def test_a_pushback_is_rested_from_and_longer_each_time() -> None:
    one, now, rests = account(), NOW, []
    for _ in range(7):
        one = after(one, PUSHBACK, now)
        assert one.status == "cooling"
        rests.append((one.cooled_until - now) / MINUTE)
        now = one.cooled_until
    assert rests == [10, 20, 40, 80, 120, 120, 120]
    one = after(one, OK, now)
    assert (one.status, one.reason) == ("healthy", "")
    assert after(one, PUSHBACK, now).cooled_until == now + 10 * MINUTE


def test_the_site_may_ask_for_a_longer_rest() -> None:
    told = Heard(Word.PUSHBACK, 429, retry_after_s=3 * HOUR)
    assert after(account(), told, NOW).cooled_until == NOW + 3 * HOUR
    short = Heard(Word.PUSHBACK, 429, retry_after_s=5.0)
    assert after(account(), short, NOW).cooled_until == NOW + 10 * MINUTE


def test_pushbacks_at_once_are_one() -> None:
    one = after(after(account(), PUSHBACK, NOW), PUSHBACK, NOW + 1)
    assert one.pushbacks == 1
    assert one.cooled_until == NOW + 1 + 10 * MINUTE


def test_what_goes_well_meanwhile_does_not_end_the_rest() -> None:
    one = after(account(), PUSHBACK, NOW)
    for heard in (OK, VALID):
        assert not is_usable(after(one, heard, NOW + 1), NOW + 1)
        assert after(one, heard, NOW + 1).status == "cooling"


def test_a_check_heals_what_was_disabled_and_not_what_its_operator_disabled() -> None:
    one = account(status="disabled", reason="refused", strikes=f"[{NOW}]")
    healed = after(one, VALID, NOW + 1)
    assert (healed.status, healed.reason, healed.strikes) == ("healthy", "", "[]")
    assert healed.checked_at == NOW + 1
    assert not is_usable(after(one._replace(enabled=0), VALID, NOW), NOW)
    assert after(one, OK, NOW) == one  # of a use that began before


def test_who_is_not_logged_in_has_expired() -> None:
    gone = after(account(), INVALID, NOW)
    assert gone.status == "expired"
    assert "replace its cookies" in gone.reason
    assert after(gone, UNKNOWN, NOW + 1) == gone
    assert after(gone, REFUSED, NOW + 1).status == "expired"


def test_an_operator_vouches_for_one() -> None:
    assert renewed(account(status="expired", reason="gone"), NOW).status == "unchecked"
    resting = after(account(), PUSHBACK, NOW)
    assert renewed(resting, NOW + 1).status == "cooling"


# ---------------------------------------------------------------------- any history

STEPS = st.lists(
    st.tuples(
        st.sampled_from([OK, REFUSED, PUSHBACK, TROUBLE, VALID, INVALID, UNKNOWN]),
        st.floats(0.0, 2_000.0),
        st.integers(1, 3),
    ),
    max_size=60,
)


@given(STEPS)
def test_no_history_lets_one_go_that_may_not(steps: list[tuple[Heard, float, int]]) -> None:
    rows = {id: account(id) for id in (1, 2, 3)}
    now = NOW
    for heard, wait_s, id in steps:
        now += wait_s
        before = rows[id]
        rows[id] = row = after(before, heard, now)
        if heard.word in (Word.TROUBLE, Word.UNKNOWN):
            assert row == before
        chosen = pick(rows.values(), SITE, now, {})
        at = usable_at(rows.values(), SITE, now)
        assert (chosen is not None) == (at == now)
        if chosen is not None:
            assert chosen.enabled
            assert chosen.status not in ("disabled", "expired")
            assert chosen.cooled_until <= now
            rows[chosen.id] = taken(chosen, rows.values(), now)
        if at is not None and at > now:
            assert pick(rows.values(), SITE, at, {}) is not None


@given(st.lists(st.tuples(st.sampled_from([REFUSED, TROUBLE, UNKNOWN]), st.floats(0.0, 1_200.0)),
                max_size=40))  # fmt: skip
def test_it_is_disabled_by_three_refusals_within_fifteen_minutes_and_by_nothing_else(
    steps: list[tuple[Heard, float]],
) -> None:
    row, now, refused = account(), NOW, []
    for heard, wait_s in steps:
        now += wait_s
        if heard is REFUSED:
            refused.append(now)
        row = after(row, heard, now)
        three = any(
            late - early <= 900.0 for early, late in zip(refused, refused[2:], strict=False)
        )
        assert (row.status == "disabled") == three
