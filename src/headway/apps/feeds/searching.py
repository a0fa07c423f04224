"""What an article is found by. Chinese, Japanese and Korean have no spaces between words, so each
of their characters is a word of its own here, in what is kept as in what is looked for.
"""

from __future__ import annotations

import re

MAX_WORDS = 100_000  # characters of one article that are searched

# Ideographs with their extensions, kana, hangul, and their compatibility forms.
_LETTER = re.compile(
    "[\u1100-\u11ff\u2e80-\u2fdf\u3005-\u3007\u3040-\u31ff\u3400-\u4dbf\u4e00-\u9fff\ua960-\ua97f"
    "\uac00-\ud7ff\uf900-\ufaff\uff66-\uffdc\U0001f200-\U0001f2ff\U00020000-\U0003ffff]"
)


def spaced(text: str) -> str:
    """With a space around each character that is a word."""
    return _LETTER.sub(r" \g<0> ", text[:MAX_WORDS])
