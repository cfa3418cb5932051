"""The tuner: capture, grouping, code generation, search, measuring, and one SQLite file that keeps it all."""

__version__ = "0.1.0"
