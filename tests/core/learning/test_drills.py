"""The learner and its parts, driven through everything that can happen to them by chance, with a
fixed seed: what they say after each step is what they said when somebody last looked.
`python -m tests.core.learning.test_drills` shows it as it is now.
"""

from __future__ import annotations

from collections.abc import Callable
from hashlib import blake2b
from random import Random
from typing import Any

import pytest

from headway.core.learning.ceiling import Ceiling, Phase, Shape, Sight
from headway.core.learning.concurrency import Cap
from headway.core.learning.counting import Peak, Ring
from headway.core.learning.latency import Guard
from headway.core.learning.learner import Answer, Call, Learner, Said
from headway.core.learning.refusal import Last, Refusal, learn
from headway.core.learning.rule import LearnRule
from headway.core.learning.told import Told
from headway.core.rate_headers import Quota, RateHeaders
from tests.core.learning.course import _even

KNOWN = {
    "learner 0": "d04ff49f66ba7a7506c942b5",
    "learner 1": "2a9ee8f9aa8178eadc1abc61",
    "learner 2": "50444dbf3f63f1def23f069d",
    "learner 3": "2d430f48039ae1880afdf81a",
    "learner 4": "5adc7a85e21f15ee54ad909a",
    "learner 5": "856b11e4defd6cbc0c250b4e",
    "learner 6": "a4979753493cf3ee3f9c586f",
    "learner 7": "ca3004056901d32855e016cd",
    "learner 8": "34ae8a2b0d04df55deb2f357",
    "learner 9": "2aa9f60ec5525e03b35525d1",
    "learner 10": "008320c6bf32e41ae9e37482",
    "learner 11": "f8ea85de592e472f5c4546d3",
    "learner 12": "aca5b634845e9d61611f30ab",
    "learner 13": "5a4a04bb30f94a1ed0a8773c",
    "learner 14": "4aaba2b91711603c73bea0d9",
    "learner 15": "ddc016c71ef7747d9b1a33e0",
    "learner 16": "385e9c8c804bf9c0cc478b69",
    "learner 17": "9b840bfd442ea9eaafbc3b0c",
    "learner 18": "76159c6aa1dca5f843002feb",
    "learner 19": "68b9de97dac17e3e54248904",
    "learner 20": "6d8984ee459af7327e5876a7",
    "learner 21": "253ac10528963e24f5ddacd7",
    "learner 22": "6db1f5cb80290fc094b5def7",
    "learner 23": "9ba0bfd755d7a33440772afc",
    "learner 24": "a5bef7b9bcb121ed53a034b8",
    "learner 25": "29a0a52ca329207501e3202e",
    "learner 26": "a7102ee344378317c3524777",
    "learner 27": "8e0f0556a84141f0ad118e01",
    "learner 28": "072c32fbce90532742dd7fb1",
    "learner 29": "9883e7f7018dedf166a927bb",
    "learner 30": "702860d9e63f483d7f109bbf",
    "learner 31": "9220cfdf71fad216a98c9713",
    "learner 32": "bbb83421c02eb4a9232cc97c",
    "learner 33": "a9ee7f0d5ef1092bd9f48d97",
    "learner 34": "18095d2a6faf36809294c113",
    "learner 35": "ddcee0456fc3f2293894b9ae",
    "learner 36": "17e401c90548a51982f33062",
    "learner 37": "dcd65f030065e1e045a81522",
    "learner 38": "aa8514815af9e0ac73760c6c",
    "learner 39": "f197c3335965e0814f0eaa16",
    "learner 40": "cae7fb2baeb1961adf807509",
    "learner 41": "0da7872b9ee42b14b3c4fd99",
    "learner 42": "b0f155989d36fd1c16fada07",
    "learner 43": "42ab470321bdd4608355b6b4",
    "learner 44": "3aab6fc46be9f38f1f494c25",
    "learner 45": "f5dce8019e1709615246dc3b",
    "learner 46": "1368ee9eeb349e35a2932223",
    "learner 47": "a6eb7d58a9a986eb91ca7773",
    "refusal 0": "9a9f09fef94ecfb398a3869a",
    "refusal 1": "4953c4d255b04594b62b1f3e",
    "refusal 2": "f8de037bead457f36c6cad04",
    "cap 0": "a61c891cf24c1b6c5462789f",
    "cap 1": "e4de5231a64554b2d994635d",
    "cap 2": "1d5d94875e7bde7e613043ab",
    "cap 3": "d5b969ae232759ea0b8efaf5",
    "guard 0": "7b5408b1992d091e163606c7",
    "guard 1": "0cfd32cb7fe85ac1f3cab733",
    "guard 2": "0c801f5f2efc8b3b5d0f57fa",
    "told 0": "c3d0703a896293af65f49a9e",
    "told 1": "c6ee4182596e5ab9a933d640",
    "told 2": "850537fcd40a8d5fc58fb4b0",
    "told 3": "e5f8b5040c450a5ccda6ab7c",
    "told 4": "75fe4ac1b71615146e605ad3",
    "told 5": "6cc126dcf7720393471e6d8c",
    "told 6": "b200aa9e4dd2b7ccff461757",
    "told 7": "a326d40a13b734ee16c0c975",
    "told 8": "69f80d55ddb42fb00db81f43",
    "told 9": "fef5adcb13cd7958ee5076fb",
    "told 10": "e22a6d9cc679a2394dde569f",
    "told 11": "60281faef00fba4934b9c23e",
    "ring 0": "828471bf37d374aee5b705a4",
    "ring 1": "8cbe1dd4f7a8c7a08f55529c",
    "ring 2": "e2a635d1a65ad09671f2800a",
    "ceiling 0": "e6ac8fdc0a88a55d3a7d7232",
    "ceiling 1": "1f7e1b0322d6e9d7bd5e173f",
    "ceiling 2": "243b59e129dd45895bfb2a1b",
    "ceiling 3": "504fb8416d9be6e78accac32",
    "ceiling 4": "67d75db9206ab1fa6284d3a0",
    "ceiling 5": "8cc3674429bbd03fca805e92",
    "ceiling 6": "dc06a8c084ccca0710f90d62",
    "ceiling 7": "eb0217b593519a665e609033",
    "ceiling 8": "034a613b1c2c125e8289e87b",
    "ceiling 9": "400b9cadac2cb38303b124b4",
    "ceiling 10": "fe4e5ec4646d93ddd7ecb37e",
    "ceiling 11": "8ce39d1f3ead5c080a265ad2",
}


class Notes:
    def __init__(self) -> None:
        self._digest = blake2b(digest_size=12)

    def add(self, *said: Any) -> None:
        self._digest.update(repr(_even(said)).encode())

    def text(self) -> str:
        return self._digest.hexdigest()


# ---------------------------------------------------------------------- the whole of it


def rule_for(rng: Random) -> LearnRule | None:
    return rng.choice([
        None, LearnRule(hint_rpm=120), LearnRule(hint_rpm=600, max_rpm=700, min_rpm=20),
        LearnRule(hint_tpm=20_000), LearnRule(hint_concurrency=6, max_concurrency=20),
        LearnRule(remaining_threshold=0.2), LearnRule(pin_rpm=90), LearnRule(pin_tpm=9_000),
        LearnRule(pin_concurrency=3, min_concurrency=2),
    ])  # fmt: skip


def rates_for(rng: Random, limit: float) -> RateHeaders:
    left = rng.uniform(0.0, limit)
    quota = Quota(limit, left, rng.choice([1.0, 20.0, 60.0]), rng.choice([60.0, 3600.0]))
    if rng.random() < 0.3:
        return RateHeaders(tokens=Quota(limit * 100, left * 100, 30.0))
    return RateHeaders(requests=quota)


def learner_drill(seed: int) -> str:
    rng = Random(seed)
    learner, notes = Learner(rule := rule_for(rng)), Notes()
    talks, costly = rng.random() < 0.3, rng.random() < 0.5
    now, bears, flying = 0.0, rng.choice([0.9, 0.97, 0.999]), list[Call]()
    for step in range(500):
        now += rng.choice([0.001, 0.05, 0.3, 1.0, 5.0, 45.0]) * rng.random()
        if learner.changes_at <= now or rng.random() < 0.2:
            learner.look(now)
        may_go = learner.opens_at <= now and learner.in_flight < learner.places
        if may_go or rng.random() < 0.1:
            cost = rng.choice([1.0, 80.0, 900.0]) if costly else 1.0
            flying.append(learner.sent(now, online=not may_go, cost=cost))
        if flying and rng.random() < 0.6:
            call = flying.pop(rng.randrange(len(flying)))
            if rng.random() < 0.03:
                learner.returned(now, call)
            else:
                learner.answered(now, call, answer_for(rng, now, call, bears, talks))
        if step % 125 == 124:
            bears = rng.choice([0.6, 0.9, 0.99])
        if step == 300:
            learner.reset(now)
        notes.add(learner.opens_at - now, learner.places, learner.changes_at - now)
        if step % 10 == 0:
            notes.add(learner.dump(), learner.beliefs(), learner.capacity(now))
        if step % 100 == 99:
            fresh = Learner(rule)
            if (kept := learner.dump()) is not None:
                fresh.load(kept)
            fresh.look(now)
            notes.add(fresh.dump(), fresh.beliefs(), fresh.opens_at - now, fresh.places)
    return notes.text()


def answer_for(rng: Random, now: float, call: Call, bears: float, talks: bool) -> Answer:
    said = Said.WELL
    if rng.random() > bears:
        said = rng.choices(list(Said), [0, 10, 1, 4, 1])[0]
    told_s = rng.choice([None, None, 0.5, 3.0, 40.0]) if said is not Said.WELL else None
    if said is Said.BANNED and rng.random() < 0.5:
        told_s = 700.0
    rates = rates_for(rng, 60.0) if talks and rng.random() < 0.5 else None
    latency_s = rng.choice([None, now - call.sent_at + 0.01])
    cost = call.cost * rng.choice([0.5, 1.0, 1.7]) if rng.random() < 0.2 else None
    return Answer(said, told_s, rates, latency_s, cost)


# ---------------------------------------------------------------------- its parts


def refusal_drill(seed: int) -> str:
    rng, notes = Random(seed), Notes()
    for _ in range(400):
        ceiling = Ceiling(rng.choice([1.0, 100.0]))
        ceiling.phase, ceiling.shape = rng.choice(list(Phase)), rng.choice(list(Shape))
        ceiling.top = rng.choice([None, 0.05, 1.0, 8.0])
        ceiling.low = rng.uniform(0.0, 4.0)
        ceiling.risen_from = rng.choice([None, 0.9, 2.0])
        ceiling.confirmed = rng.randrange(4)
        now = 1_000.0
        last = Last(now - rng.choice([2.0, 20.0, 30.0, 30.5, 60.0, 61.0, 900.0]),
                    rng.uniform(0.0, 300.0), 100.0, rng.choice(list(Phase)),
                    rng.choice([0.0, 0.8, 1.0, 6.4]))  # fmt: skip
        total = 100.0 + rng.choice([0.0, 4.0, 5.0, 6.0, 200.0]) * ceiling.piece
        refusal = Refusal(now, rng.uniform(0.0, 500.0), rng.choice([0.1, 1.0, 8.0]), total,
                          rng.random() < 0.1, rng.random() < 0.4)  # fmt: skip
        why = learn(refusal, last, ceiling, rng.randrange(3))
        notes.add(str(why), ceiling.top, ceiling.low, ceiling.rate, ceiling.confirmed,
                  str(ceiling.phase), str(ceiling.shape), ceiling.margin)  # fmt: skip
    return notes.text()


def cap_drill(seed: int) -> str:
    rng, notes = Random(seed), Notes()
    cap = Cap(least=rng.choice([1, 2]), most=rng.choice([float("inf"), 15.0]))
    now = 0.0
    for _ in range(400):
        now += rng.choice([0.5, 5.0, 60.0])
        flying = rng.randrange(12)
        blame = cap.blame(flying, rng.uniform(0.0, 8.0), rate_at_peak=rng.random() < 0.5,
                          moving=rng.random() < 0.5)  # fmt: skip
        notes.add(str(blame), cap.probes_at(now), cap.allowed, cap.believed, cap.firm)
        match rng.randrange(6):
            case 0:
                cap.refused_at(now, max(1, flying), sure=rng.random() < 0.6)
            case 1:
                cap.soften(now, rng.uniform(2.0, 10.0))
                cap.sane = rng.random() < 0.5
            case 2 if cap.limit < float("inf") and cap.probes_at(now) <= now:
                cap.probe(now, rng.choice([0.2, 3.0]))
            case 3 if cap.dump() is not None:
                other = Cap(least=cap.least, most=cap.most)
                other.load(cap.dump() or {})
                notes.add(other.dump(), other.allowed, other.believed)
    return notes.text()


def guard_drill(seed: int) -> str:
    """An upstream that is slower the more it has to do, more or less."""
    rng, notes, guard = Random(seed), Notes(), Guard()
    now, slow = 0.0, rng.choice([0.0, 0.02, 0.1])
    for step in range(4_000):
        now += rng.choice([0.05, 0.2, 1.0])
        flying = max(1, int(10 + 9 * ((step // 400) % 3 - 1) + rng.choice([-2, 0, 2])))
        latency_s = 0.4 * (1 + slow * flying) * rng.choice([0.9, 1.0, 1.1])
        softer, well = guard.hear(now, latency_s, flying, try_fewer=rng.random() < 0.8)
        guard.pass_time(now)
        notes.add(softer, well, guard.trial, guard.usual_s, guard.trial_ends_at() - now)
    return notes.text()


def told_drill(seed: int) -> str:
    """Headers of a limit that is a window, rolls, or is a bucket; others call there too."""
    rng, notes, told, ring = Random(seed), Notes(), Told(), Ring()
    kind, limit = rng.choice(["fixed", "rolling", "bucket"]), rng.choice([60.0, 600.0])
    others, now, level, sent = rng.choice([0.0, 0.2, 2.0]), 1_000.0, limit, list[float]()
    for step in range(600):
        passed_s = rng.choice([0.05, 0.5, 2.0, 30.0]) * rng.random()
        now += passed_s
        told.pass_time(passed_s)
        ring.advance(now)
        level = min(limit, level + passed_s * limit / 60.0) - others * passed_s
        if rng.random() < 0.7:
            ring.add(now)
            sent.append(now)
            level -= 1.0
        used = sum(at > now - 60.0 for at in sent) + others * 60.0
        if kind == "fixed":
            used = sum(at > now // 60.0 * 60.0 for at in sent) + others * (now % 60.0)
        left = max(0.0, level if kind == "bucket" else limit - used)
        reset_s = (limit - left) * 60.0 / limit if kind == "bucket" else 60.0 - now % 60.0
        quota = Quota(limit, float(int(left)), reset_s)
        if step % 3 == 0:
            told.hear(quota, now - rng.choice([0.0, 0.0, 1.0]), ring)
        if rng.random() < 0.02:
            told.refused(rng.choice([None, quota, Quota(limit, 1.0, 5.0), Quota(limit, 0.5, 5.0)]))
        notes.add(told.trust, told.others, told.fresh(now), str(told.kind), ring.minute, ring.quick)
        if told.quota is not None:
            brim, places = rng.choice([1.0, 3.0]), rng.choice([0.0, 4.0])
            notes.add(told.left(now, ring), told.kept(places), told.rate(now, ring, 0.3))
            notes.add(told.opens_at(now, ring, brim, places) - now)
    return notes.text()


def ring_drill(seed: int) -> str:
    rng, notes, ring, peak, now = Random(seed), Notes(), Ring(), Peak(), 500.0
    for _ in range(600):
        now += rng.choice([0.01, 0.3, 4.0, 70.0]) * rng.random()
        match rng.randrange(5):
            case 0:
                ring.forget(now - rng.choice([0.0, 1.0, 30.0, 90.0]), rng.choice([1.0, 5.0]))
            case 1:
                ring.forget(now)
            case _:
                ring.add(now, rng.choice([1.0, 5.0]))
        peak.add(now, ring.quick_mean)
        notes.add(ring.minute, ring.quick, ring.total, ring.mean, ring.since(now - 7.0))
        notes.add(ring.falls_to(3.0) - now, peak.value)
    return notes.text()


def ceiling_drill(seed: int) -> str:
    """A curve that is seen from all sides: little and much traffic, limited by it or not."""
    rng, notes = Random(seed), Notes()
    ceiling, now, hinted = Ceiling(rng.choice([1.0, 50.0])), 0.0, rng.random() < 0.4
    if hinted:
        ceiling.begin_at(5.0 * ceiling.piece)
    last = Last()
    for _ in range(500):
        passed_s = rng.choice([0.1, 1.0, 20.0, 400.0])
        now += passed_s
        rate = ceiling.rate * rng.choice([0.1, 0.9, 1.0])
        online = rng.choice([0.0, 0.1, 2.0])
        sight = Sight(now, rng.choice([0.0, passed_s]), rate, rate * rng.choice([0.5, 1.2]), online,
                      online * 0.8, online * 3, online, rng.choice([0.0, 1.0]))  # fmt: skip
        ceiling.pass_time(sight, passed_s)
        match rng.randrange(40):
            case 0 | 1 | 2:
                refusal = Refusal(now, rate * 60.0, rate, now, False, online > 0)
                notes.add(str(learn(refusal, last, ceiling, 0)))
                last = Last(now, rate * 60.0, now - 20.0, ceiling.phase, ceiling.low)
            case 3:
                ceiling.banned()
            case 4:
                ceiling.proved(rate * 1.5)
            case 5 if ceiling.dump() is not None:
                ceiling.load(ceiling.dump() or {})
        notes.add(ceiling.rate, ceiling.top, ceiling.low, str(ceiling.phase), str(ceiling.shape))
        if ceiling.top is not None:
            notes.add(ceiling.target, ceiling.quiet_s(sight))
        notes.add(ceiling.speed(1.0, 0.5, 9.0, online), ceiling.dump(), ceiling.age_s)
    return notes.text()


DRILLS: dict[str, Callable[[int], str]] = {
    "learner": learner_drill,
    "refusal": refusal_drill,
    "cap": cap_drill,
    "guard": guard_drill,
    "told": told_drill,
    "ring": ring_drill,
    "ceiling": ceiling_drill,
}
SEEDS = {"learner": range(48), "refusal": range(3), "cap": range(4), "guard": range(3)}
SEEDS |= {"told": range(12), "ring": range(3), "ceiling": range(12)}


def names() -> list[tuple[str, int]]:
    return [(drill, seed) for drill in DRILLS for seed in SEEDS[drill]]


@pytest.mark.parametrize(("drill", "seed"), names())
def test_the_drill_is_the_one_that_was_looked_at(drill: str, seed: int) -> None:
    found = DRILLS[drill](seed)
    assert found == KNOWN[f"{drill} {seed}"], "if you mean it: see the top of this file"


if __name__ == "__main__":
    for each, number in names():
        print(f'    "{each} {number}": "{DRILLS[each](number)}",')
