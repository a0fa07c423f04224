"""The API that Google Reader had, which reader apps still speak: Reeder, NetNewsWire, FeedMe,
ReadKit, Fluent Reader, NewsFlash and others. Its server is called `https://host/api/greader`.

Nobody has ever specified it; what is here follows the notes of mihaip/google-reader-api, what
FreshRSS, The Old Reader and Inoreader say of theirs, and what the clients send. In its words:

- an *item* is one of our entries: an article as one tenant has it, with its marks;
- a *stream* is a list of items: all of them, those with a mark, a feed, or a folder;
- a *label* is one of our folders. A feed is in one at most, and the path `a/b` is one label.

`ids` knows how all of these are written, `asking` reads a request, `streams` finds items,
`subscriptions` and `labels` change what a tenant reads, and the routes are in `login`, `reading`
and `editing`. What goes wrong is said in plain text (`errors`), as it always was.
"""
