"""An upstream as the providers of language models run them: a real server that pushes back.

    with LlmUpstream(rpm=60, headers="openai", keys=["sk-test"]) as upstream:
        client = OpenAI(base_url=upstream.url, api_key="sk-test")
        ...
        upstream.set(rpm=30, script=[{"status": 500, "times": 3}])
        assert upstream.stats()["refused"] == 0

It is a process of its own on loopback, speaks OpenAI's shapes, and answers with what it was asked.
`python -m headway.testing.llm_upstream --rpm 60` runs one by hand.
"""

from headway.testing.llm_upstream.process import LlmUpstream

__all__ = ["LlmUpstream"]
