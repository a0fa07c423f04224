"""What Python programs use: `App`, jobs, handles, slots. Nothing happens at import."""
