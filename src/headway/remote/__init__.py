"""Headway from afar: all that a program needs that talks to a server instead of a store.

`store` is what an `App("http://…")` asks, `worker` runs its jobs. Both speak through `client`.
"""
