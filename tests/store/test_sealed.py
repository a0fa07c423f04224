"""Every column that has sealed secrets is known to those who seal them again and back them up."""

from __future__ import annotations

from headway.apps.stored import migrations, sealed
from headway.net.sealing import Vault, new_key
from headway.store import Store


def test_no_column_with_secrets_is_forgotten(store: Store) -> None:
    for app, texts in migrations().items():
        store.install(app, texts)
    if store.dialect == "sqlite":
        query = (
            "select m.name, c.name from sqlite_master as m join pragma_table_info(m.name) as c "
            "where m.type = 'table' and c.name like '%sealed%'"
        )
    else:
        query = (
            "select cast(table_name as text), cast(column_name as text) "
            "from information_schema.columns where table_schema = current_schema() "
            "and column_name like '%sealed%'"
        )
    assert sorted(store.rows(query)) == sorted((each.table, each.column) for each in sealed())
    for each in sealed():
        assert store.rows(each.counts) == []
        assert store.rows(each.old, ("x", each.before_all, 1)) == []


def test_a_secret_that_was_entered_meanwhile_stays(store: Store) -> None:
    for app, texts in migrations().items():
        store.install(app, texts)
    vault = Vault([new_key()], "here")
    for each in sealed():
        key = 7 if each.kind == "bigint" else "name"
        assert vault.unseal(vault.seal("x", each.about(key)), each.about(key)) == "x"
        store.write([(each.replaced, [(key, "hw1.old", "hw1.new")])])  # of a row that is not there
        assert store.rows(each.counts) == []
