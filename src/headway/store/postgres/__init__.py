"""PostgreSQL, for those who outgrow one machine or have one running already."""

from headway.store.postgres.store import PostgresStore

__all__ = ["PostgresStore"]
