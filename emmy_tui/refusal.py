"""What the command refuses: an exception whose text is the one sentence that a person reads."""

from __future__ import annotations


class BadInput(Exception):
    """One sentence for a person: what is wrong and what to do."""
