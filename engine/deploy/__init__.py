"""From what was learned to what runs: which evidence decides a kernel's schedule."""

from engine.deploy.evidence import Evidence, Source, choose, explain

__all__ = ["Evidence", "Source", "choose", "explain"]
