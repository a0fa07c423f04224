"""The keys of stored secrets: which there are, what each has sealed, how one follows another."""
