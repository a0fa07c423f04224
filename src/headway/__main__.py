"""Lets `python -m headway` stand in for the `headway` command."""

from headway.cli import main

if __name__ == "__main__":
    main()
