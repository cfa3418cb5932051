"""How what Emmy needs besides is installed: in the words of the README, as the name on a public index is another's."""

from __future__ import annotations


def install_text(extra: str) -> str:
    """The command that adds one of the extras (tune, models, acf, cluster), typed in the folder that Emmy came in."""
    return f"pip install '.[{extra}]' in Emmy's folder"
