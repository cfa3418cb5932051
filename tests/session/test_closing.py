"""A run that is closed in the middle is no failure, whatever its work runs into then."""

from __future__ import annotations

import logging
import time

import pytest

from engine.events import RunFinished, RunState
from engine.session import TuningSession
from engine.tune import Host, Settings


def runs_into_its_end(host: Host) -> list[RunFinished]:
    while not host.control.aborted:
        time.sleep(0.01)
    raise RuntimeError("cannot schedule new futures after shutdown")


def test_closing_is_no_failure_and_no_trace_is_logged(caplog: pytest.LogCaptureFixture) -> None:
    session = TuningSession(runs_into_its_end, Settings())
    with caplog.at_level(logging.INFO):
        session.start()
        session.close()
    assert (session.state, session.failure) == (RunState.STOPPED, None)
    (record,) = [one for one in caplog.records if one.name == "engine.session.tuning"]
    assert record.levelno == logging.INFO
    assert record.exc_info is None
