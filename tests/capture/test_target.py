from __future__ import annotations

import pytest

from engine.capture import CaptureError, parse_target
from engine.capture.errors import NotACallError, TargetSyntaxError


def test_the_last_statement_is_the_call() -> None:
    parsed = parse_target("w = torch.randn(4, 4)\ny = 2; torch.mm(w, w)")
    assert parsed.statements == "w = torch.randn(4, 4)\ny = 2"
    assert parsed.call == "torch.mm(w, w)"


@pytest.mark.parametrize(
    ("text", "error", "sentence"),
    [
        ("torch.mm(", TargetSyntaxError, "doesn't parse at line 1"),
        ("x = 1\n  y = 2", TargetSyntaxError, "at line 2"),
        ("torch.mm(a, b)\0", TargetSyntaxError, "doesn't parse"),
        ("", NotACallError, "empty"),
        ("x = torch.mm(a, b)", NotACallError, "`x = torch.mm(a, b)`"),
        ("f(x)\nx", NotACallError, "`x`"),
        ("def f(): pass", NotACallError, "must be a call"),
    ],
)
def test_what_is_no_target_is_one_sentence(text: str, error: type[CaptureError], sentence: str) -> None:
    with pytest.raises(error) as raised:
        parse_target(text)
    assert sentence in str(raised.value)
    assert "\n" not in str(raised.value)
