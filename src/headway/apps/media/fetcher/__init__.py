"""The program that calls yt-dlp, in a process of its own, and nothing else.

It needs the standard library and yt-dlp only and imports nothing of Headway, so an operator may
name another interpreter (3.11 or later) with a newer yt-dlp. The server writes an order to its
standard input and reads lines of JSON from its output (`protocol`), so no text of a user and no
secret is ever a word of a command line. `guard` says what the program may do, `watching` sees all
its requests.

The server imports `protocol` and `filters` from here; what needs yt-dlp is imported by `main`.
"""
