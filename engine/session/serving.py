"""The engine's side of a session whose screen is another process: events go out in batches, requests come in.

A batch is packed every `PUMP_S`, whatever the search does meanwhile: what it costs the search threads is what packing
holds the interpreter, and not how many events there were or how fast they are read. A reader that hangs blocks the pump
alone: events wait in the session's inbox, which is bounded.
"""

from __future__ import annotations

import logging
import threading
from collections import deque
from typing import Any

from engine.measure import ChannelClosed, Message
from engine.measure.channel import Channel
from engine.session.event_batch import pack_events
from engine.session.tuning import TuningSession
from engine.tune import packed, unpacked

PUMP_S = 0.1
"""A screen draws four times a second."""
BATCH = 2000
VERBS = frozenset({"pause", "resume", "stop", "skip", "set_patience", "kill_compile", "enqueue", "abort"})
_LOG = logging.getLogger(__name__)


def serve(channel: Channel, session: TuningSession) -> None:
    """Start a session and run it to its end for a `SeparateSession` at the other end of the channel.

    Where that end is gone, the session is aborted.
    """
    _Service(channel, session).run()


class _Service:
    """Its own thread hears requests, which are obeyed also while the pump waits for its reader."""

    def __init__(self, channel: Channel, session: TuningSession) -> None:
        self._channel = channel
        self._session = session
        self._answers: deque[tuple[int, Any, str]] = deque()
        self._asked = threading.Event()
        self._told: tuple[object, ...] = ()

    def run(self) -> None:
        self._session.start()
        ears = threading.Thread(target=self._hear, name="emmy-requests", daemon=True)
        ears.start()
        try:
            while not self._session.wait(0):
                self._tell()
                self._asked.wait(PUMP_S)
                self._asked.clear()
            self._tell()
            self._channel.send({"over": {"failure": self._session.failure, "summary": packed(self._session.summary)}})
            ears.join()
        except ChannelClosed:
            self._session.close()

    def _tell(self) -> None:
        """All that there is to tell, a message a batch."""
        more = True
        while more:
            events = self._session.drain(BATCH)
            more = len(events) == BATCH
            session = self._session
            # after the events: a screen that sees the state of an end has what came before it
            said = (session.state, sorted(session.capabilities), session.dropped)
            answers = [self._answers.popleft() for _ in range(len(self._answers))]
            if not events and not answers and said == self._told:
                return
            message: Message = {"state": said[0], "verbs": said[1], "dropped": said[2]}
            if events:
                message["events"] = pack_events(events)
            if answers:
                message["answers"] = answers
            self._channel.send(message)
            self._told = said

    def _hear(self) -> None:
        try:
            while "heard" not in (message := self._channel.receive()):
                self._obey(message)
                self._asked.set()
        except ChannelClosed:
            self._session.abort()

    def _obey(self, message: Message) -> None:
        value, refusal = None, ""
        try:
            if message["verb"] not in VERBS:
                raise ValueError(f"{message['verb']} is nothing that a session does")
            value = getattr(self._session, message["verb"])(*unpacked(message["given"]))
        except ValueError as error:
            refusal = str(error)
        except Exception as error:
            _LOG.exception("%s failed", message["verb"])
            refusal = f"internal error: {type(error).__name__}: {error}"
        self._answers.append((message["call"], value, refusal))
