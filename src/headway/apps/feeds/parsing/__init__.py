"""From bytes to a feed: what a site sent may be anything, so it is read where it can be killed.

- `pool`: the processes and what is asked of them. `worker`: one of them. `messages`: what they say.
- `reading`: one document from its bytes to a `ParsedFeed`; the only thing a worker really does.
  `charsets`, `prolog`, `xml_feeds`, `json_feed`, `dates` and `text` are its parts.
- `sanitising`: HTML that may be shown.
- `model`: what comes out. `errors`: why nothing does.
"""

from headway.apps.feeds.parsing.errors import (
    EntitiesDeclared,
    FeedTooLarge,
    FeedUnreadable,
    NotAFeed,
    ParserDied,
    ParserOutOfMemory,
    ParserTooSlow,
)
from headway.apps.feeds.parsing.model import Candidate, Enclosure, ParsedEntry, ParsedFeed
from headway.apps.feeds.parsing.pool import FeedParser, Limits

__all__ = [
    "Candidate",
    "Enclosure",
    "EntitiesDeclared",
    "FeedParser",
    "FeedTooLarge",
    "FeedUnreadable",
    "Limits",
    "NotAFeed",
    "ParsedEntry",
    "ParsedFeed",
    "ParserDied",
    "ParserOutOfMemory",
    "ParserTooSlow",
]
