"""What a trial changed is put back by the container's own kind, whatever a subclass makes of its methods."""

from __future__ import annotations

from typing import Any

import pytest

from engine.deploy.restoring import Holder, Saved


class Odd(dict[Any, Any]):
    """Methods of the usual names with other meanings, as registries of libraries have them."""

    def get(self, key: Any) -> Any:  # type: ignore[override]
        return super().get(str(key)) or {}

    def __setitem__(self, key: Any, value: Any) -> None:
        super().__setitem__(str(key), value)

    def __delitem__(self, key: Any) -> None:
        raise KeyError("entries stay")

    def items(self) -> Any:
        return ()


@pytest.mark.parametrize("kind", [dict, Odd])
def test_a_dictionary_is_put_back(kind: type[dict[Any, Any]]) -> None:
    held = kind()
    for key, value in ((1, "one"), ("two", 2)):
        dict.__setitem__(held, key, value)
    saved = Saved([Holder("held", held, dict(dict.items(held)))])
    assert saved.restore() == []
    dict.__setitem__(held, 1, "changed")
    dict.__setitem__(held, "new", 3)
    dict.__delitem__(held, "two")
    assert sorted(saved.restore()) == ["1", "new", "two"]
    assert dict(dict.items(held)) == {1: "one", "two": 2}
    assert saved.restore() == []
