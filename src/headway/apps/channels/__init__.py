"""LLM channels: a gateway for online calls, and queued work that runs on what those leave over.

A **channel** is one model behind one key at one provider, and an upstream of the same name: its
limits are learned there. Everything that calls it passes the same gate.

- `channel`: what a channel is. `directory`: all of them, and which serve which model. `declared`:
  those of a settings file.
- `tables`: what is stored. `application`: how all of it is put together.
- `calling`: a call to a channel over HTTP, and what the answer means.
- `online`: calls that go at once, and never wait behind queued ones.
- `queue`: calls as jobs. `batches`: many of them, in OpenAI's shapes.
- `money`: one row for each answer that cost something; what a tenant may spend.
- `routes`: all that over HTTP.

Jobs name a model, not a channel: `model:NAME` leads to all channels that serve it and take queued
work (`engine.routes`), and whoever of them has room first gets the job.
"""

from headway.apps.channels.application import Channels

__all__ = ["Channels"]
