"""The media archive: collections and uploaders are subscribed to, listed and downloaded through
yt-dlp, and no site sees us misbehave.

`register` has the subscriptions and what is to be done for them, `listing`, `counting` and
`downloading` are the jobs that talk to sites, each as one program that `fetcher` is.
`accounts` has the cookies, `library` the files. Nothing here knows of limits: lanes, paces, mutexes
and cool-downs are the engine's.
"""
