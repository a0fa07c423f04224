"""The routes, one file for each contract."""
