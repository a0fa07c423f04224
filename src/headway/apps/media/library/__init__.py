"""The library: the directory in which videos are kept, and all that knows about files and names.

- `naming`: what a file is called. `legal_names`: what a name may be on any file system.
- `metadata`: what is read of yt-dlp's information, however strange it is. `nfo` and `info_files`:
  the two files that are made from it.
- `publishing`: a finished download becomes four files of one name. `claiming`: whose a name is.
  `moving`: how files get there, step by step. `kinds`: which are kept at all.
- `root`: the library itself: its marker, its free space, the private place for unfinished work.
- `surveying`: what is on disk, compared with what should be there; `walking` goes through it.

Nothing here knows of the store, of jobs or of HTTP.
"""

from __future__ import annotations
