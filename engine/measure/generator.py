"""Controls files from an engine that a person installed: asked for a generation, told how each of it did, asked again.

The engine is CompileIQ, whose licence is its user's to accept. It runs in a process of its own, and all that is known
of its files is their bytes. What is measured, and how, is decided here and not there.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

from engine.measure.assembler import ControlsError
from engine.measure.channel import ChannelClosed, Message
from engine.measure.process import Child, Nursery, entry_command
from engine.typed_path import BadPath, typed_file

ANSWER_LIMIT_S = 300.0
POOL = 15
LEAST_POOL = 6
"""The smallest generation that the engine takes."""


class GeneratorError(ControlsError):
    """The engine gives no candidates; the text is one sentence for a person."""


@dataclass(frozen=True, slots=True)
class GeneratorRequest:
    """`generations` of `pool` files each. `space` is the engine's description of a ptxas's controls; None leaves it to
    the engine to fetch the one of the ptxas."""

    generations: int
    pool: int = POOL
    space: Path | None = None

    @contextmanager
    def open(self, ptxas: str, generations: int | None = None) -> Iterator[Generator]:
        """An engine for files of this ptxas version; gone after the block. Raises GeneratorError, also in the block."""
        try:
            space = str(typed_file(self.space)) if self.space is not None else ""
        except BadPath as error:
            raise GeneratorError(f"{error}: name the search space of CompileIQ with --search-space") from None
        nursery = Nursery()
        child = nursery.start(entry_command("engine.measure.generator_child"), "generator")
        try:
            yield Generator(
                child,
                {
                    "space": space,
                    "ptxas": ".".join(ptxas.split(".")[:2]),
                    "generations": generations or self.generations,
                    "pool": max(self.pool, LEAST_POOL),
                },
            )
        finally:
            nursery.bury(child)
            nursery.close()

    def sample(self, ptxas: str) -> list[bytes]:
        """A first generation, of which nothing is told back. Raises GeneratorError."""
        with self.open(ptxas, 1) as generator:
            return generator.ask() or []


class Generator:
    """One search of the engine's own. `ask` and `tell` take turns."""

    def __init__(self, child: Child, request: Message) -> None:
        self._child = child
        self._request: Message | None = request

    def ask(self) -> list[bytes] | None:
        """The next generation's files, or None once there is none. Raises GeneratorError."""
        if self._request is not None:
            self._send(self._request)
            self._request = None
        message = self._receive()
        if "error" in message:
            raise GeneratorError(str(message["error"]))
        if "pool" not in message:
            return None
        try:
            return [bytes.fromhex(text) for text in message["pool"]]
        except (TypeError, ValueError):
            raise GeneratorError("CompileIQ gives candidates that are no controls files of ptxas") from None

    def tell(self, scores: Sequence[float | None]) -> None:
        """What each file of the last generation came to, in its order: less is better, None for a failure."""
        self._send({"scores": list(scores)})

    def _send(self, message: Message) -> None:
        try:
            self._child.channel.send(message)
        except ChannelClosed:
            raise GeneratorError(self._ended()) from None

    def _receive(self) -> Message:
        try:
            return self._child.channel.receive(ANSWER_LIMIT_S)
        except TimeoutError:
            raise GeneratorError(f"CompileIQ gave no candidates within {ANSWER_LIMIT_S:.0f} s") from None
        except ChannelClosed:
            raise GeneratorError(self._ended()) from None

    def _ended(self) -> str:
        last = self._child.last_line()
        return f"CompileIQ ended without candidates ({self._child.death()}){f': {last}' if last else ''}"
