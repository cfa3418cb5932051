"""What the command refuses: an exception whose text is the one sentence that a person reads."""

from __future__ import annotations

TO_LOOK, TO_WRITE = "emmy-tui DB", "--db"
"""How another database is named: one to look through, and the one that --code writes."""


class BadInput(Exception):
    """One sentence for a person: what is wrong and what to do."""
