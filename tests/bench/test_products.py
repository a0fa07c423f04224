"""The benchmark beside the peers: who is measured, and what with."""

import re
import sqlite3
from contextlib import closing
from importlib.resources import files
from importlib.util import find_spec
from pathlib import Path

import pytest

from bench.peers import raw, raw_postgres
from bench.peers.products import (
    HEADWAY,
    HEADWAY_LIMITS,
    HEADWAY_PG,
    HEADWAY_PG_LIMITS,
    PEERS,
    POSTGRES,
    PRODUCTS,
    RAW,
    RAW_PG,
    STORES,
    WORKLOADS,
    Product,
    chosen_products,
    chosen_workloads,
    compared_with,
)
from headway import App
from headway.store.sqlite.connection import sql


def columns(definition: str) -> list[str]:
    """The names of a table's columns, from what stands in its parentheses."""
    inside = definition.partition("(")[2].partition("\n)")[0]
    return [part.split()[0] for part in inside.split(",")]


def names(*only: str) -> list[str]:
    return [product.name for product in chosen_products(only)]


def test_products_are_chosen_by_name_or_by_its_first_part() -> None:
    assert names("headway", "pgqueuer") == [
        RAW.name,
        RAW_PG.name,
        "headway",
        "pgqueuer-100",
        "pgqueuer-1000",
    ]
    assert chosen_products([]) == list(PRODUCTS.values())


def test_products_are_chosen_by_store() -> None:
    chosen = chosen_products([POSTGRES])

    assert {product.store for product in chosen} == {POSTGRES}
    assert all(each in chosen for each in (RAW_PG, HEADWAY_PG, HEADWAY_PG_LIMITS))


def test_a_whole_name_means_that_product_alone() -> None:
    assert names("headway-pg") == [RAW_PG.name, "headway-pg"]
    assert names("huey-sqlite") == [RAW.name, "huey-sqlite"]


def test_the_raw_limits_of_the_chosen_stores_come_along() -> None:
    assert names("rq") == ["rq"]
    assert names("rq", "litequeue", "chancy") == [
        RAW.name,
        RAW_PG.name,
        "litequeue",
        "rq",
        "chancy",
    ]


def test_redis_peers_are_compared_with_headway_on_sqlite() -> None:
    assert compared_with(PRODUCTS["rq"]) is HEADWAY
    assert compared_with(PRODUCTS["litequeue"]) is HEADWAY
    assert compared_with(HEADWAY_LIMITS) is HEADWAY
    assert compared_with(PRODUCTS["chancy"]) is HEADWAY_PG
    assert compared_with(HEADWAY_PG_LIMITS) is HEADWAY_PG


@pytest.mark.parametrize("limited", [HEADWAY_LIMITS, HEADWAY_PG_LIMITS])
def test_headway_with_limits_drains_as_many_jobs(limited: Product) -> None:
    plain = compared_with(limited)

    assert limited.jobs["w2"] == plain.jobs["w2"]


def test_both_orders_of_keys_are_one_choice() -> None:
    assert chosen_workloads(["w4", "w1"]) == ["w1", "w4-rr", "w4-burst"]
    assert chosen_workloads([]) == list(WORKLOADS)


def test_a_misspelt_choice_says_what_there_is() -> None:
    with pytest.raises(ValueError, match=r"'hury'; there are: .*huey-sqlite"):
        chosen_products(["hury"])
    with pytest.raises(ValueError, match="'w9'; there are: w1"):
        chosen_workloads(["w9"])


@pytest.mark.parametrize("headway", [HEADWAY, HEADWAY_PG])
def test_every_workload_has_headway_and_a_peer(headway: Product) -> None:
    peers = [peer for peer in PEERS if compared_with(peer) is headway]

    assert set(headway.workloads) == set(WORKLOADS)
    for workload in WORKLOADS:
        assert any(workload in peer.workloads for peer in peers)


@pytest.mark.parametrize("product", PRODUCTS.values(), ids=PRODUCTS)
def test_every_product_has_an_adapter_and_a_known_store(product: Product) -> None:
    package = "bench.peers" if product.headroom else "bench.peers.adapters"

    assert find_spec(f"{package}.{product.adapter}") is not None
    assert product.store in STORES


def test_a_quick_run_has_fewer_jobs() -> None:
    assert HEADWAY.job_count("w2", quick=True) == 2_000
    assert HEADWAY.job_count("w2", quick=False) == 20_000
    for product in PRODUCTS.values():
        for workload in product.workloads:
            assert 25 <= product.job_count(workload, quick=True) <= 10_000


def test_the_raw_limit_writes_the_rows_that_headway_writes(tmp_path: Path) -> None:
    app = App(f"sqlite:///{tmp_path / 'jobs.db'}")

    @app.job(type="noop")
    async def noop(i: int) -> None: ...

    noop.enqueue(1)
    app.close()

    columns = sql("insert_job").partition("(id, ")[2].partition(")")[0]
    with closing(sqlite3.connect(tmp_path / "jobs.db")) as db:
        [stored] = db.execute(f"select {columns} from jobs")
    assert stored == raw.row(stored[-2])


def test_the_raw_limit_of_postgres_has_the_columns_that_headway_writes() -> None:
    def words(text: str) -> list[str]:
        return re.findall(r"\w+", text)

    written = sql("insert_job").partition("(")[2].partition(")")[0]
    migrations = files("headway.store.sqlite") / "migrations"
    table = (migrations / "0001_initial.sql").read_text("utf-8").partition("create table jobs")[2]

    assert words(raw_postgres.COLUMNS) == words(written)
    assert columns(raw_postgres.TABLE.partition("create table jobs")[2]) == columns(table)
