"""What a database's prior is worth. Loaded on the desk's thread, since it brings the prior's own modules along."""

from __future__ import annotations

from engine.deploy import PriorReport, prior_report
from engine.store import Store


def read_report(store: Store) -> PriorReport:
    """Raises StoreError."""
    return prior_report(store)
