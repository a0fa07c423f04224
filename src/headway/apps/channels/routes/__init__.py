"""The routes of the channels, one file for each contract."""
