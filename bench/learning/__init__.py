"""Upstreams that hide their limits, in virtual time: what the learner is measured against."""
