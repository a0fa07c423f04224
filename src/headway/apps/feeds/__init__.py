"""Feeds: subscribe, refresh for ever, read, and never hammer a site.

- `fetching`: one polite request. `pacing`: when the next one is due.
- `parsing`: from bytes to a feed and its entries, in a process that can be killed.
- `identity`: which entry is which. `discovery`: from a page to its feeds. `opml`: lists of feeds.

Importing this package imports nothing else, since each parsing process does so when it starts.
"""
