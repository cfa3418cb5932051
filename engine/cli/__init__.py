"""The command line, `emmy`: a thin shell over the rooms below, one file a command."""

from engine.cli.entry import main

__all__ = ["main"]
