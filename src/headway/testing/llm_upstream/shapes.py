"""What OpenAI's API says, in its shapes: questions in, answers, chunks, errors and headers out.

Everything follows from the question: the answer repeats its last user message, and a token is
four characters.
"""

from __future__ import annotations

import base64
import binascii
import math
import struct
from collections.abc import Iterator
from dataclasses import dataclass
from datetime import UTC, datetime
from itertools import pairwise
from typing import Any

import msgspec

from headway.testing.llm_upstream.limits import Refusal, Standing
from headway.testing.llm_upstream.settings import Settings, Style

CHAT = "/v1/chat/completions"
EMBEDDINGS = "/v1/embeddings"
MODELS = "/v1/models"
TOKEN_LENGTH = 4  # characters
MESSAGE_TOKENS = 3  # each message costs these too
FILLER = " and so on"
KNOWN_MODEL = "test-model"
DONE = b"data: [DONE]\n\n"

encode = msgspec.json.encode


class BadQuestion(Exception):
    """It cannot be answered: the status and the body that say why."""

    def __init__(self, status: int, message: str, code: str | None, param: str | None) -> None:
        super().__init__(message)
        self.status = status
        self.body = error_body(message, "invalid_request_error", code, param)


@dataclass(slots=True)
class Question:
    model: str
    asked: str  # the last user message, or the first input
    answer: str
    prompt_tokens: int
    completion_tokens: int
    finish: str = "stop"
    stream: bool = False
    include_usage: bool = False
    inputs: list[str] | None = None  # of embeddings
    dimensions: int = 0
    as_base64: bool = False

    @property
    def tokens(self) -> int:
        return self.prompt_tokens + self.completion_tokens

    def usage(self) -> dict[str, int]:
        usage = {"prompt_tokens": self.prompt_tokens, "total_tokens": self.tokens}
        if self.inputs is None:
            usage["completion_tokens"] = self.completion_tokens
        return usage


def tokens_of(text: str) -> int:
    return math.ceil(len(text) / TOKEN_LENGTH)


# ---------------------------------------------------------------------- questions


def read_question(path: str, body: bytes, settings: Settings) -> Question:
    try:
        asked = msgspec.json.decode(body)
    except msgspec.DecodeError:
        asked = None
    if not isinstance(asked, dict):
        message = "We could not parse the JSON body of your request. It must be a JSON object."
        raise BadQuestion(400, message, None, None)
    model = asked.get("model")
    if not isinstance(model, str) or not model:
        raise _missing("model")
    if settings.models and model not in settings.models:
        message = f"The model `{model}` does not exist or you do not have access to it."
        raise BadQuestion(404, message, "model_not_found", None)
    if path == CHAT:
        return _chat_question(asked, model, settings)
    return _embeddings_question(asked, model, settings)


def _missing(param: str) -> BadQuestion:
    message = f"Missing required parameter: '{param}'."
    return BadQuestion(400, message, "missing_required_parameter", param)


def _chat_question(asked: dict[str, Any], model: str, settings: Settings) -> Question:
    messages = asked.get("messages")
    if not isinstance(messages, list) or not messages:
        raise _missing("messages")
    last, prompt_tokens = "", 0
    for message in messages:
        if not isinstance(message, dict):
            raise BadQuestion(400, "Each message must be an object.", "invalid_type", "messages")
        text = _text_of(message.get("content"))
        prompt_tokens += MESSAGE_TOKENS + tokens_of(text)
        if message.get("role") == "user":
            last = text
    answer, finish = last, "stop"
    if settings.answer_tokens is not None:
        missing = settings.answer_tokens * TOKEN_LENGTH - len(answer)
        answer += (FILLER * math.ceil(missing / len(FILLER)))[: max(0, missing)]
    most = asked.get("max_completion_tokens") or asked.get("max_tokens")
    if isinstance(most, int) and tokens_of(answer) > most:
        answer, finish = answer[: most * TOKEN_LENGTH], "length"
    options = asked.get("stream_options")
    include_usage = isinstance(options, dict) and options.get("include_usage") is True
    return Question(
        model, last, answer, prompt_tokens, tokens_of(answer), finish,
        stream=asked.get("stream") is True, include_usage=include_usage,
    )  # fmt: skip


def _text_of(content: object) -> str:
    """Of a text, or of the parts of a message that are text."""
    if isinstance(content, str):
        return content
    parts = content if isinstance(content, list) else []
    return "".join(str(part.get("text", "")) for part in parts if isinstance(part, dict))


def _embeddings_question(asked: dict[str, Any], model: str, settings: Settings) -> Question:
    given = asked.get("input")
    if given is None or given in ("", []):
        raise _missing("input")
    several = isinstance(given, list) and not isinstance(given[0], int)  # numbers are tokens
    inputs = [
        each if isinstance(each, str) else str(each) for each in (given if several else [given])
    ]
    dimensions = asked.get("dimensions")
    return Question(
        model, inputs[0], "", sum(map(tokens_of, inputs)), 0, inputs=inputs,
        dimensions=dimensions if isinstance(dimensions, int) else settings.dimensions,
        as_base64=asked.get("encoding_format") == "base64",
    )  # fmt: skip


# ---------------------------------------------------------------------- answers


def answer_body(question: Question, id: str, now: float) -> bytes:
    if question.inputs is not None:
        return _embeddings_body(question)
    message = {"role": "assistant", "content": question.answer, "refusal": None}
    choice = {
        "index": 0, "message": message, "logprobs": None, "finish_reason": question.finish,
    }  # fmt: skip
    return encode(
        {
            "id": f"chatcmpl-{id}",
            "object": "chat.completion",
            "created": int(now),
            "model": question.model,
            "choices": [choice],
            "usage": question.usage(),
        }
    )


def _embeddings_body(question: Question) -> bytes:
    data = []
    for index, text in enumerate(question.inputs or ()):
        numbers = vector(text, question.dimensions)
        shown: object = numbers
        if question.as_base64:
            shown = base64.b64encode(struct.pack(f"<{len(numbers)}f", *numbers)).decode()
        data.append({"object": "embedding", "index": index, "embedding": shown})
    return encode(
        {"object": "list", "data": data, "model": question.model, "usage": question.usage()}
    )


def vector(text: str, dimensions: int) -> list[float]:
    """The same for the same text, and the same in 32 bits as in 64."""
    seed = binascii.crc32(text.encode())
    return [(seed * (2 * place + 1) >> 7) % 2048 / 1024 - 1 for place in range(dimensions)]


def models_body(settings: Settings, now: float) -> bytes:
    models = [
        {"id": model, "object": "model", "created": int(now), "owned_by": "headway"}
        for model in settings.models or (KNOWN_MODEL,)
    ]
    return encode({"object": "list", "data": models})


def pieces_of(text: str, count: int | None) -> list[str]:
    """The text in this many parts, or word by word; together they are the text again."""
    if count is None:
        words = text.split(" ")
        return [word + " " for word in words[:-1]] + words[-1:]
    ends = [len(text) * place // count for place in range(count + 1)]
    return [text[start:end] for start, end in pairwise(ends)]


def chunks_of(question: Question, count: int | None, id: str, now: float) -> Iterator[bytes]:
    """The events of a stream before `[DONE]`; a role, the pieces, why it ended, and the usage."""
    common = {
        "id": f"chatcmpl-{id}", "object": "chat.completion.chunk", "created": int(now),
        "model": question.model,
    }  # fmt: skip
    if question.include_usage:
        common["usage"] = None

    def event(delta: dict[str, str], finish: str | None = None) -> bytes:
        choice = {"index": 0, "delta": delta, "logprobs": None, "finish_reason": finish}
        return b"data: " + encode({**common, "choices": [choice]}) + b"\n\n"

    first = {"role": "assistant"}
    for piece in pieces_of(question.answer, count):
        yield event({**first, "content": piece})
        first = {}
    yield event({}, question.finish)
    if question.include_usage:
        last = {**common, "choices": [], "usage": question.usage()}
        yield b"data: " + encode(last) + b"\n\n"


# ---------------------------------------------------------------------- refusals


def error_body(message: str, type: str, code: str | None = None, param: str | None = None) -> bytes:
    return encode({"error": {"message": message, "type": type, "param": param, "code": code}})


WRONG_KEY = error_body(
    "Incorrect API key provided.", "invalid_request_error", code="invalid_api_key"
)
BANNED = error_body(
    "Your access was suspended after too many refused requests.",
    "access_terminated",
    code="access_suspended",
)


def refusal_body(model: str, refusal: Refusal) -> bytes:
    return error_body(
        f"Rate limit reached for {model} on {refusal.unit} ({refusal.by}): "
        f"Limit {refusal.limit:g}, Used {refusal.used:g}, Requested {refusal.asked:g}. "
        f"Please try again in {span(refusal.wait_s)}.",
        refusal.unit,
        code="rate_limit_exceeded",
    )


def scripted_body(status: int, model: str, message: str | None) -> bytes:
    if status == 429:
        message = message or f"Rate limit reached for {model}."
        return error_body(message, "requests", code="rate_limit_exceeded")
    if status >= 500:
        return error_body(message or "The server had an error, sorry about that.", "server_error")
    return error_body(message or "This cannot be answered.", "invalid_request_error")


# ---------------------------------------------------------------------- headers


def span(seconds: float) -> str:
    """`20ms`, `1.2s`, `6m0s`, `1h0m0s`."""
    ms = math.ceil(seconds * 1000)
    if ms < 1000:
        return f"{ms}ms" if ms else "0s"
    minutes, ms = divmod(ms, 60_000)
    hours, minutes = divmod(minutes, 60)
    text = f"{ms / 1000:g}s"
    if hours:
        return f"{hours}h{minutes}m{text}"
    return f"{minutes}m{text}" if minutes else text


def rate_headers(
    style: Style, requests: Standing | None, tokens: Standing | None, now: float
) -> str:
    """Lines of a head, each with its end."""
    if style == "none":
        return ""
    lines = []
    for unit, standing in (("requests", requests), ("tokens", tokens)):
        if standing is None:
            continue
        limit, remaining = round(standing.limit), math.floor(standing.remaining)
        if style == "openai":
            lines += [
                f"x-ratelimit-limit-{unit}: {limit}\r\n",
                f"x-ratelimit-remaining-{unit}: {remaining}\r\n",
                f"x-ratelimit-reset-{unit}: {span(standing.reset_s)}\r\n",
            ]
        else:
            at = datetime.fromtimestamp(math.ceil(now + standing.reset_s), UTC)
            lines += [
                f"anthropic-ratelimit-{unit}-limit: {limit}\r\n",
                f"anthropic-ratelimit-{unit}-remaining: {remaining}\r\n",
                f"anthropic-ratelimit-{unit}-reset: {at:%Y-%m-%dT%H:%M:%SZ}\r\n",
            ]
    return "".join(lines)
