"""Headway beside its peers, on one machine, in one run.

    make bench                                  everything, about twenty minutes
    make bench BENCH_FLAGS="--quick"            a smoke run: the figures mean little
    python -m bench.peers --only headway,huey --workloads w1,w2 --repeat 3
    python -m bench.peers --only postgres       Headway and its peers on that store

Every measurement has a process of its own (`measure`), so that no product inherits the threads,
signals or imports of another. The driver (`__main__`) goes workload by workload and, within each,
product by product, again and again; what the machine does meanwhile thus happens to all of them.
The servers that the chosen products need (Redis, PostgreSQL with fsync) are its own.

Headway is there once for each of its stores. Peers on PostgreSQL are compared with Headway on
PostgreSQL, all others with Headway on SQLite; `-open` drains jobs of 20 tenants at 50 upstreams,
`-limits` the same jobs with limits on. A figure is the median of its repeats. A ratio is the median
of the ratios within each repeat, so that a slow moment counts on both sides; figures of two runs
of the benchmark are not comparable.

    w1   enqueue one by one: each call returns before the next is made
    w1b  64 enqueues in flight, for products that can await
    w1c  enqueue in bulk, 1,000 jobs in each call
    w2   drain with one worker process, until every completion is stored
    w3   pick-up: one job each 20 ms, from before the call until the first line of the job
    w4   one at a time per key, over 100 keys: `rr` interleaves the keys, `burst` does not

To add a product, write `adapters/<name>.py` (see `adapters/__init__.py`) and add a line to
`products.py`.
"""
