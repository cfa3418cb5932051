"""One question to a child process that may load torch, compile, hang or die; its answer, or a sentence."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

from engine.measure import ChannelClosed, Message, Nursery, entry_command

START_LIMIT_S = 180.0


class ChildError(Exception):
    """The child gave no answer, or says why it can't; the text is one sentence for a person."""


class MissingError(ChildError):
    """The child says that something is missing which was asked for, as evidence."""


def ask_child(
    module: str,
    request: Message,
    tell: Callable[[str], None] = lambda _: None,
    prepare: Callable[[Path], None] | None = None,
) -> Message:
    """Start `module`.main, send it the request and wait for its answer; nothing of it is left behind afterwards.

    `prepare` fills the folder that the child compiles in, before it starts.

    Before a step that may take long the child sends {"step": text, "limit_s": seconds}, of which `tell` hears. Raises
    ChildError for a child that says {"error": sentence}, dies, or takes longer than it said; with "missing" beside it
    MissingError.
    """
    nursery = Nursery()
    try:
        if prepare is not None:
            prepare(nursery.folder / "sources")
        child = nursery.start(entry_command(module), "child")
        step, limit_s = "start", START_LIMIT_S
        try:
            child.channel.send({**request, "folder": str(nursery.folder / "sources")})
            while True:
                message = child.channel.receive(limit_s)
                if "step" not in message:
                    break
                step, limit_s = str(message["step"]), float(message["limit_s"])
                tell(step)
        except TimeoutError:
            raise ChildError(f"{step} took longer than {limit_s:.0f} s and was stopped") from None
        except ChannelClosed:
            last = child.last_line()
            raise ChildError(f"the process died during {step} ({child.death()}){f': {last}' if last else ''}") from None
        finally:
            nursery.bury(child)
    finally:
        nursery.close()
    if "error" in message:
        raise (MissingError if message.get("missing") else ChildError)(str(message["error"]))
    return message
