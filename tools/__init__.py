"""Programs for those who work on Headway."""
