"""A batch on what online calls leave over, with the official OpenAI client.

    pip install openai
    python examples/llm_batch.py

Nothing leaves this machine: the provider is one for tests, with a limit of 600 calls a minute that
nobody has declared. Headway reads it from its headers, and online calls go on meanwhile.
"""

from __future__ import annotations

import json
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from contextlib import contextmanager

from openai import OpenAI

from headway.testing import LlmUpstream

LINES = 30
SETTINGS = """
[channel.demo]
model = "echo"
base_url = "{url}"
price = {{input_per_1k = 0.5, output_per_1k = 1.5}}
batch_discount = 0.5
"""


@contextmanager
def headway(provider: str) -> Iterator[str]:
    """A server of its own, with one channel."""
    with tempfile.TemporaryDirectory() as directory:
        settings = f"{directory}/headway.toml"
        with open(settings, "w", encoding="utf-8") as file:
            file.write(SETTINGS.format(url=provider))
        command = [sys.executable, "-m", "headway", "serve", "--port", "0", "--config", settings]
        command += ["--data", f"{directory}/data", "--log-level", "warning"]
        server = subprocess.Popen(command, stdout=subprocess.PIPE, text=True)
        assert server.stdout is not None
        try:
            yield server.stdout.readline().split()[-1]  # "Headway is at http://..."
        finally:
            server.terminate()
            server.wait()
            server.stdout.close()


def line(number: int) -> str:
    body = {"model": "echo", "messages": [{"role": "user", "content": f"line {number}"}]}
    return json.dumps(
        {"custom_id": str(number), "method": "POST", "url": "/v1/chat/completions", "body": body}
    )


def main() -> None:
    with LlmUpstream(rpm=600, headers="openai") as provider, headway(provider.url) as address:
        client = OpenAI(base_url=f"{address}/v1", api_key="unused", max_retries=0)
        lines = "\n".join(map(line, range(LINES))).encode()
        file = client.files.create(file=("lines.jsonl", lines), purpose="batch")
        batch = client.batches.create(
            input_file_id=file.id, endpoint="/v1/chat/completions", completion_window="24h"
        )
        online = 0
        while batch.status not in ("completed", "failed", "expired", "cancelled"):
            said = client.chat.completions.create(
                model="echo", messages=[{"role": "user", "content": "and you?"}]
            )
            online += said.choices[0].message.content == "and you?"
            time.sleep(0.5)
            batch = client.batches.retrieve(batch.id)
        assert batch.output_file_id is not None
        answers = client.files.content(batch.output_file_id).text.splitlines()
        stats = provider.stats()
        client.close()
    print(f"batch {batch.status}: {len(answers)} of {LINES} lines answered")
    print(f"online calls meanwhile: {online}, all answered at once")
    print(f"refused by the provider: {stats['refused']} of {stats['calls']} calls")


if __name__ == "__main__":
    main()
