"""LLM channels: a gateway for online calls, and queued work that runs on what those leave over.

A **channel** is one model behind one key at one provider, and an upstream of the same name: its
limits are learned there. Everything that calls it passes the same gate.

- `channel`: what a channel is. `directory`: all of them, and which serve which model.
- `tables`: what is stored. `application`: how all of it is put together.
- `calling`: a call to a channel over HTTP, and what the answer means.
- `gateway`: online calls, which never wait behind queued ones.
- `queued`: calls as jobs. `batches`, `files`: many of them at once, in OpenAI's shapes.
- `billing`: one row for each answer that cost something. `budgets`: what a tenant may spend.
- `callbacks`: telling somebody that a call has ended.
- `routes`: all that over HTTP.

Jobs name a model, not a channel: `model:NAME` leads to all channels that serve it and take queued
work (`engine.routes`), and whoever of them has room first gets the job.
"""

from headway.apps.channels.application import Channels

__all__ = ["Channels"]
