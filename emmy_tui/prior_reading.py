"""What a database's prior is worth. Loaded on the desk's thread, since it brings the prior's own modules along."""

from __future__ import annotations

import time
from collections.abc import Iterator

from engine.deploy import PriorReport, report_steps
from engine.store import Store

AT_ONCE_S = 0.2
"""How long a reading goes on before it gives way to other questions."""


class PriorReading:
    """One report, read in pieces: other questions to the database are answered between them."""

    def __init__(self) -> None:
        self._steps: Iterator[PriorReport | None] | None = None
        self._store: Store | None = None

    def go_on(self, store: Store) -> PriorReport | None:
        """The report, or None where there is more to read; it begins anew with another store. Raises StoreError."""
        if self._steps is None or self._store is not store:
            self._steps, self._store = report_steps(store), store
        steps, self._steps = self._steps, None
        until = time.monotonic() + AT_ONCE_S
        for report in steps:
            if report is not None:
                return report
            if time.monotonic() >= until:
                break
        self._steps = steps
        return None
