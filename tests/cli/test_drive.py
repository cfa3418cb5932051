"""A session from start to end, and what Ctrl-C, a second Ctrl-C and a kill make of it."""

from __future__ import annotations

import io
import os
import signal

import pytest

from engine.cli.drive import run_session
from engine.cli.progress import Detail, Progress
from engine.events import Event


def quiet() -> Progress:
    return Progress(Detail.QUIET, io.StringIO(), io.StringIO())


def test_every_event_is_folded(events: list[Event], scripted: type) -> None:
    session = scripted(events)
    snapshot, code = run_session(session, quiet())
    assert session.asked == ["start"]
    assert code == 0
    assert (snapshot.measured, snapshot.cached, snapshot.failed) == (4, 1, 1)
    assert snapshot.finished is events[-2]


def send_on(session: object, sent: dict[int, int]) -> None:
    """Send this process the signals of `sent` when the session is asked for the n-th time whether it has ended."""
    session.on_wait = lambda count: os.kill(os.getpid(), sent[count]) if count in sent else None


@pytest.mark.parametrize(
    ("sent", "asked", "code"),
    [
        ({4: signal.SIGINT}, ["start", "stop"], 130),
        ({4: signal.SIGINT, 5: signal.SIGINT}, ["start", "stop", "abort"], 130),
        ({4: signal.SIGTERM}, ["start", "abort"], 143),
        ({4: signal.SIGHUP}, ["start", "abort"], 129),
    ],
)
def test_signals(
    events: list[Event],
    scripted: type,
    sent: dict[int, int],
    asked: list[str],
    code: int,
    capsys: pytest.CaptureFixture[str],
) -> None:
    session = scripted(events)
    send_on(session, sent)
    former = signal.getsignal(signal.SIGINT)
    snapshot, exit_code = run_session(session, quiet())
    assert (session.asked, exit_code) == (asked, code)
    assert snapshot.run is events[0]
    assert signal.getsignal(signal.SIGINT) is former
    assert ("Ctrl-C again" in capsys.readouterr().err) == ("stop" in asked)


def test_a_stopped_run_still_sums_up(events: list[Event], scripted: type) -> None:
    session = scripted(events)
    send_on(session, {5: signal.SIGINT})
    snapshot, _ = run_session(session, quiet())
    assert snapshot.finished is not None


def test_an_ignored_hangup_stays_ignored(events: list[Event], scripted: type) -> None:
    former = signal.signal(signal.SIGHUP, signal.SIG_IGN)
    try:
        session = scripted(events)
        send_on(session, {3: signal.SIGHUP})
        assert run_session(session, quiet())[1] == 0
        assert session.asked == ["start"]
    finally:
        signal.signal(signal.SIGHUP, former)
