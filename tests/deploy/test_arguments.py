"""What engine.compile is given: what is wrong with it is one sentence, at once."""

from __future__ import annotations

import sqlite3
from pathlib import Path
from typing import Any

import pytest
import torch
from torch import nn

import engine
from engine.deploy.arguments import Settings, call_of, settings_of
from engine.store import Store, StoreError

X = torch.zeros(2, 2)


@pytest.mark.parametrize("what", [None, X, "text", 3, nn.Linear])
def test_what_is_no_function_is_refused(what: Any) -> None:
    with pytest.raises(TypeError, match="takes a module or a function, not"):
        engine.compile(what)


@pytest.mark.parametrize("example", [3, "text", {X}, {1: X}, (X, X), {"z": X}, ()])
def test_what_is_no_call_of_the_function_is_refused(example: Any) -> None:
    with pytest.raises(TypeError, match="example_inputs"):
        engine.compile(lambda x: x + 1.0, example)


def test_a_tensor_arguments_and_names_are_calls() -> None:
    def function(x: torch.Tensor, scale: float = 1.0) -> torch.Tensor:
        return x * scale

    assert call_of(function, X) == ((X,), {})
    assert call_of(function, [X, 2.0]) == ((X, 2.0), {})
    assert call_of(function, {"x": X}) == ((), {"x": X})
    assert call_of(torch.sin, (X,)) == ((X,), {})


@pytest.mark.parametrize(("name", "given"), [("db", 3), ("db", b"t.db"), ("db", {}), ("ptxas", 3)])
def test_what_is_no_path_is_refused(name: str, given: Any) -> None:
    with pytest.raises(TypeError, match=f"{name}= is a path, not something of the type"):
        engine.compile(torch.sin, **{name: given})


def test_other_settings_are_checked() -> None:
    with pytest.raises(TypeError, match="True or False"):
        settings_of(None, "no", None)
    with pytest.raises(ValueError, match="is no path"):
        settings_of("a\0b", False, None)
    with pytest.raises(ValueError, match="is no file"):
        settings_of(None, False, "no such ptxas")


def test_who_asks_in_python_is_advised_in_python(tmp_path: Path) -> None:
    with pytest.raises(StoreError) as missing:
        settings_of(tmp_path / "none.db", False, None)
    assert str(missing.value).endswith("; `emmy tune` writes one")
    damaged = tmp_path / "damaged.db"
    Store.open(damaged).close()
    connection = sqlite3.connect(damaged)
    connection.execute("DROP TABLE pin")
    connection.close()
    with pytest.raises(StoreError, match=r"lacks the table 'pin'; name another database$"):
        Store.open(damaged)
    with pytest.raises(StoreError, match=r"lacks the table 'pin'; name another database with db=$"):
        settings_of(damaged, False, None)
    assert settings_of(None, True, None) == Settings(None, True, None)
