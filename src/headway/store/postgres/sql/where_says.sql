-- Only A to Z have another case here, whatever the language of the database.
strpos(lower(error collate "C"), lower(cast(? as text) collate "C")) > 0
