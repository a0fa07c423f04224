"""One module for each product; all of them look the same to `measure`.

    def reset() -> None                 empty the store
    def pending() -> int                jobs whose completion is not stored yet; may be a coroutine
    def worker(workload) -> list[str]   the command of ONE worker process
    class Client:
        enqueue(i)                      one job that does nothing but record(i); may be a coroutine
        enqueue_in_flight(i)            the awaitable form, where `enqueue` is not one
        enqueue_bulk([i, ...])          where the product has such a call; may be a coroutine
        enqueue_keyed(i, key)           where the product can run one at a time per key
        enqueue_keyed_bulk([(i, key)])  the same, all at once
        close()                         may be a coroutine

A keyed job records its start, yields once and records its end. `pending` is asked only after every
job has recorded itself. The driver tells everything else through the environment: `surroundings`.
On PostgreSQL, `reset` begins with `surroundings.new_database()`.
"""
