"""Policies, models and loads in files: what can be said, and what is said about mistakes."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from headway.simulation.errors import BadModel
from headway.simulation.presets import LOADS, UPSTREAMS
from headway.simulation.reading import load_named, models_named, read_policy
from headway.simulation.scenario import scenario

EXAMPLES = Path(__file__).parents[2] / "examples" / "policies"


def file(at: Path, text: str, name: str = "model.toml") -> str:
    (at / name).write_text(text, "utf-8")
    return str(at / name)


@pytest.mark.parametrize("path", sorted(EXAMPLES.glob("*.toml")), ids=lambda path: path.stem)
def test_the_examples_can_be_read(path: Path) -> None:
    model = EXAMPLES / "models" / f"{path.stem.removesuffix('-fixed')}.toml"
    made = scenario(path.stem, read_policy(str(path)), models_named(str(model)),
                    load_named(str(model)))  # fmt: skip
    assert made.limit_per_minute(0.0, 3600.0) > 0


@pytest.mark.parametrize("name", UPSTREAMS)
def test_every_upstream_that_has_a_name_is_told_about(name: str) -> None:
    assert UPSTREAMS[name].about
    assert models_named(name).of("any.example") is UPSTREAMS[name]


@pytest.mark.parametrize("name", LOADS)
def test_every_load_that_has_a_name_fits_any_limit(name: str) -> None:
    assert LOADS[name].about
    policy = read_policy(str(EXAMPLES / "llm-channel.toml"))
    made = scenario("", policy, models_named("window"), load_named(name))
    assert made.upstreams() == ["llm.example"]
    assert all(each.process.per_hour > 0 for each in made.load.tenants)


def test_the_guide_shows_files_that_can_be_read(tmp_path: Path) -> None:
    guide = (EXAMPLES.parents[1] / "docs" / "guides" / "simulate.md").read_text("utf-8")
    model, load = re.findall(r"^```toml\n(.*?)^```", guide, re.MULTILINE | re.DOTALL)
    found = models_named(file(tmp_path, model))
    assert set(found.found) == {"api.example", "*"}
    assert load_named(file(tmp_path, load)).tenants[0].count == 3


def test_a_model_is_found_by_its_name_or_the_longest_pattern(tmp_path: Path) -> None:
    path = file(tmp_path, """
        [upstream."*"]
        like = "open"
        [upstream."*.example"]
        limit = {kind = "gcra", limit = 10, burst = 2}
        [upstream."one.example"]
        limit = [{kind = "concurrency", limit = 3}, {kind = "token-bucket", limit = 60, burst = 9}]
        latency = {median = "2s", spread = 0}
        ban = {after = 2, within = "10s", for = "1m"}
        outage = {at = "1h", for = "10m"}
        slowdown = {above = 4, by = 0.5}
        """)  # fmt: skip
    models = models_named(path)
    one, pattern, rest = (models.of(name) for name in ("one.example", "two.example", "x"))
    assert one is not None
    assert [limit.kind for limit in one.limits] == ["concurrency", "token-bucket"]
    assert (one.outages, one.knee) == (((3600.0, 4200.0),), 4)
    assert pattern is not None
    assert pattern.limits[0].burst == 2
    assert rest is not None
    assert rest.limits == ()


WRONG_MODELS = [
    ('limit = {kind = "windy", limit = 3}', "limit[0].kind"),
    ("limit = {limit = -1}", "limit"),
    ('limit = {limit = "many"}', "limit"),
    ('limit = {limit = [{at = "1h", to = 3}]}', "must begin at 0"),
    ("limit = {limit = 3, windw = 4}", "windw is not known here; known are"),
    ("limit = {limit = 1e300}", "limit must be a number from 0 to 1e+09"),
    ('latency = {median = "3"}', "latency.median"),
    ('latency = {median = "0s"}', "latency.median must be longer than 0"),
    ("errors = 2", "errors must be from 0 to 1"),
    ("refusal = 200", "refusal"),
    ('ban = {after = 0}', "ban.after"),
    ('like = "nothing"', "like is 'nothing'; known are window"),
    ('[upstream."x"]\nlatency = 3', 'upstream."x".latency must be a table'),
    ("errors = ", "is not a TOML file"),
]  # fmt: skip


@pytest.mark.parametrize(("text", "said"), WRONG_MODELS, ids=[text for text, _ in WRONG_MODELS])
def test_what_is_wrong_with_a_model_is_said_with_its_file_and_key(
    tmp_path: Path, text: str, said: str
) -> None:
    path = file(tmp_path, text)
    with pytest.raises(BadModel) as wrong:
        models_named(path)
    assert path in str(wrong.value)
    assert said.replace("limit[0]", "limit") in str(wrong.value)


WRONG_LOADS = [
    ("duration = 5", "duration"),
    ('duration = "99d"', "duration must be from 1s to 31d"),
    ('duration = "1h"', "tenant is missing"),
    ('[[tenant]]\narrivals = {kind = "sometimes"}', "tenant[0].arrivals.kind"),
    ('[[tenant]]\nname = "a"\npriority = "high"', "tenant[0].priority"),
    ('[[tenant]]\nname = "a"\nonline = 7', "tenant[0].online"),
    ('[[tenant]]\nname = "a"\ncolour = "red"', "tenant[0].colour is not known here"),
    ('[[tenant]]\nname = "a"\nweight = 0', "tenant[0].weight"),
    ('[[tenant]]\nname = "a"\nupstream = 3', "tenant[0].upstream"),
    ('[[tenant]]\nname = "a"\nupstream = ["x", "x"]', "tenant[0].upstream names 'x' twice"),
    ('[[tenant]]\nname = "a"\narrivals = {every = "0s"}', "tenant[0].arrivals.every"),
]  # fmt: skip


@pytest.mark.parametrize(("text", "said"), WRONG_LOADS, ids=[said for _, said in WRONG_LOADS])
def test_what_is_wrong_with_a_load_is_said_with_its_file_and_key(
    tmp_path: Path, text: str, said: str
) -> None:
    path = file(tmp_path, text)
    with pytest.raises(BadModel) as wrong:
        load_named(path)
    assert path in str(wrong.value)
    assert said in str(wrong.value)


@pytest.mark.parametrize(
    ("text", "said"),
    [("[upstream.x]\nlimit = -1", "cap must be"), ("[upstrem.x]", "[upstrem]"), ("limit", "TOML")],
)
def test_what_is_wrong_with_a_policy_is_said_with_its_file(
    tmp_path: Path, text: str, said: str
) -> None:
    path = file(tmp_path, text, "policy.toml")
    with pytest.raises(BadModel) as wrong:
        read_policy(path)
    assert path in str(wrong.value)
    assert said in str(wrong.value)


def test_a_name_that_nobody_knows_is_answered_with_those_that_are_known() -> None:
    with pytest.raises(BadModel, match="known are window"):
        models_named("windo")
    with pytest.raises(BadModel, match="known are office"):
        load_named("offic")
    with pytest.raises(BadModel, match=r"missing\.toml cannot be read"):
        load_named("missing.toml")
