"""The words of the demo. Nobody and nothing in it exists: names end in `example`."""

from __future__ import annotations

from random import Random

# Whose jobs, slots and calls they are. The last one wants more than all others together.
TENANTS = (
    "aurora", "birch", "cobalt", "delta", "ember", "fjord", "glacier", "harbour", "indigo",
    "magpie",
)  # fmt: skip
PROJECTS = ("atlas", "beacon", "catalogue", "ledger")
REGIONS = ("north coast", "old town", "river delta", "islands", "highlands")

_PLACES = ("the harbour", "the night train", "the lighthouse", "the old mill", "the north coast",
           "the observatory", "the market hall", "the ferry", "the salt works")  # fmt: skip
_THINGS = ("A morning at {}", "How {} works", "Behind the scenes of {}", "{} in winter",
           "A short history of {}", "Repairing {}", "Sounds of {}", "An hour at {}")  # fmt: skip
_FILES = ("basemap", "catalogue", "dataset", "firmware", "mirror", "snapshot", "weather")
_ENDS = ("tar.zst", "iso", "parquet", "img", "zip")

_NEWS = ("{} opens again after the storm", "What changed at {} this week", "New timetable for {}",
         "Volunteers count birds near {}", "{} gets a second crane", "Letters about {}",
         "Fog closes {} for an hour", "Numbers: {} in five charts")  # fmt: skip
_SENTENCES = (
    "The work began before sunrise and went on until the tide turned.",
    "Nobody expected the numbers to hold, and yet they did.",
    "A second measurement a week later gave the same result.",
    "Most of the visitors came by boat, and some of them twice.",
    "The old machine still runs, a little slower than the new one.",
    "It took three attempts, each of them well documented.",
    "What remains to be done fits on a single page.",
)
_NEWS_ZH = ("港口的清晨", "夜行列车时刻表更新", "灯塔本周开放", "北岸观鸟记录", "旧磨坊修复完成",
            "集市大厅的新屋顶")  # fmt: skip
_SENTENCES_ZH = ("工作从日出之前开始,一直持续到潮水转向。", "一周后的第二次测量得到了相同的结果。",
                 "旧机器仍在运转,只是稍慢一些。")  # fmt: skip

QUESTIONS = (
    "Summarise the minutes of the last meeting in two sentences.",
    "Which of these three titles is the clearest?",
    "Translate the sign at the ferry into plain English.",
    "Name five questions that a visitor to the lighthouse may ask.",
    "Write a caption for a picture of a crane in fog.",
    "Is this review friendly, neutral or angry?",
)


def _capital(text: str) -> str:
    return text[:1].upper() + text[1:]


def video_title(chance: Random) -> str:
    return _capital(chance.choice(_THINGS).format(chance.choice(_PLACES)))


def file_name(chance: Random) -> str:
    return f"{chance.choice(_FILES)}-{chance.randint(100, 999)}.{chance.choice(_ENDS)}"


def headline(chance: Random, chinese: bool = False) -> str:
    if chinese:
        return chance.choice(_NEWS_ZH)
    return _capital(chance.choice(_NEWS).format(chance.choice(_PLACES)))


def story(chance: Random, chinese: bool = False) -> str:
    """Some paragraphs of HTML."""
    sentences = _SENTENCES_ZH if chinese else _SENTENCES
    between = "" if chinese else " "
    some = (between.join(chance.sample(sentences, 3)) for _ in range(chance.randint(2, 4)))
    return "".join(f"<p>{paragraph}</p>" for paragraph in some)
