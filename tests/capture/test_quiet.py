"""What torch says while it follows a call stays with us, in this thread alone; its errors speak the user's names."""

from __future__ import annotations

import logging
import sys
import threading
import warnings
from collections.abc import Callable
from typing import Any

import pytest
import torch
from torch import nn

from engine.capture import CaptureError
from engine.capture.live import capture_call
from engine.capture.quiet import quiet


def test_only_this_threads_words_are_dropped(capsys: pytest.CaptureFixture[str]) -> None:
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        with quiet():
            print("ours", file=sys.stderr)
            warnings.warn("ours", stacklevel=1)
            other = threading.Thread(target=lambda: print("theirs", file=sys.stderr))
            other.start()
            other.join()
        print("after", file=sys.stderr)
    assert capsys.readouterr().err == "theirs\nafter\n"
    assert not caught
    assert not any(handler.filters for handler in logging.getLogger("torch.export").handlers)


class Counted(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.register_buffer("seen", torch.zeros(4))

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        self.seen += 1.0
        return x + self.seen


CALLS: dict[str, tuple[Callable[..., Any], Any, str]] = {
    "an empty argument": (lambda weight: weight + 1.0, torch.zeros(0, 4), "weight of shape (0, 4)"),
    "a complex argument": (lambda weight: weight + 1.0, torch.zeros(4, dtype=torch.complex64), "weight has dtype"),
    "a number of a tensor": (lambda x: x.sum().item(), torch.zeros(4), "asks for the values of a tensor"),
    "a branch on a value": (lambda x: x + 1 if x.sum() > 0 else x, torch.zeros(4), "asks for the values of a tensor"),
    "a buffer that changes": (Counted(), torch.zeros(4), "changes the buffer seen:"),
}


@pytest.mark.parametrize("what", CALLS)
def test_an_error_speaks_the_users_names_and_nothing_else_is_said(what: str, capfd: pytest.CaptureFixture[str]) -> None:
    function, argument, words = CALLS[what]
    with warnings.catch_warnings(), torch.no_grad():
        warnings.simplefilter("error")
        with pytest.raises(CaptureError) as raised:
            capture_call(function, (argument,), {})
    said = str(raised.value)
    assert words in said
    assert not any(name in said for name in ("_called", "tensors_", "lifted", "Sym"))
    assert capfd.readouterr().err == ""


class Hearing(logging.Handler):
    def __init__(self) -> None:
        super().__init__()
        self.heard: list[str] = []

    def emit(self, record: logging.LogRecord) -> None:
        self.heard.append(f"{record.name}: {record.getMessage()}")


@pytest.mark.parametrize("name", ["torch", "torch._subclasses.fake_tensor", "torch.export", "torch.not_there_yet"])
def test_no_logger_of_torchs_is_heard_meanwhile_and_the_users_are(name: str) -> None:
    hearing, users = Hearing(), logging.getLogger("tests.capture.quiet")
    heard_at = (logging.root, logging.getLogger("torch"), logging.getLogger(name))
    for logger in heard_at:
        logger.addHandler(hearing)
    try:
        with quiet():
            logging.getLogger(name).error("ours")
            users.error("theirs")
        logging.getLogger(name).error("after")
    finally:
        for logger in heard_at:
            logger.removeHandler(hearing)
    assert list(dict.fromkeys(hearing.heard)) == ["tests.capture.quiet: theirs", f"{name}: after"]


@pytest.mark.parametrize("other", [torch.zeros(4, dtype=torch.bool), torch.zeros(3, dtype=torch.bool)])
def test_what_torch_refuses_is_one_sentence(other: torch.Tensor, capfd: pytest.CaptureFixture[str]) -> None:
    with torch.no_grad(), pytest.raises(CaptureError):
        capture_call(lambda a, b: a - b, (torch.zeros(4, dtype=torch.bool), other), {})
    assert capfd.readouterr().err == ""
