"""When the garbage collector looks at what: what stays is not looked at twice, and no garbage stays."""

from __future__ import annotations

import gc
import weakref
from collections.abc import Iterator
from typing import Any

import pytest
from textual.screen import Screen

from emmy_tui import collecting
from tests.emmy_tui.looking import running, showing
from tests.emmy_tui.scripted import search_events


class Holder:
    """Holds itself, where it is told to."""

    held: Holder


@pytest.fixture
def begun() -> Iterator[None]:
    before = gc.get_threshold()
    collecting.begin()
    yield
    gc.set_threshold(*before)
    gc.unfreeze()


def let_them_stay() -> None:
    """What lives now has been looked at as the youngest, and is among those that stayed."""
    for _ in range(collecting.LOOKS):
        gc.collect(1)


def test_many_that_have_stayed_are_not_looked_at_again(begun: None) -> None:
    before = gc.get_freeze_count()
    rows = [[number] for number in range(collecting.MANY)]
    let_them_stay()
    collecting.look(covered=False)
    assert gc.get_freeze_count() >= before + collecting.MANY
    frozen = gc.get_freeze_count()
    del rows
    assert gc.get_freeze_count() <= frozen - collecting.MANY, "they go as soon as nobody holds them"


def test_all_are_looked_at_on_a_pulse_alone(begun: None) -> None:
    generations: list[int] = []
    gc.callbacks.append(lambda phase, info: generations.append(info["generation"]))
    try:
        rows = [[number] for number in range(50 * collecting.YOUNG * collecting.MIDDLE)]
        assert max(generations) == 1
        collecting.look(covered=False)
        assert generations[-1] == 2
    finally:
        gc.callbacks.pop()
    assert rows


@pytest.mark.parametrize("many", [False, True])
def test_what_holds_itself_goes(many: bool, begun: None) -> None:
    one = Holder()
    one.held, gone = one, weakref.ref(one)
    rows = [[number] for number in range(collecting.MANY if many else 0)]
    gc.collect(1)
    del one
    let_them_stay()
    collecting.look(covered=False)
    assert gone() is None
    del rows


async def test_a_dialog_that_was_closed_goes(begun: None) -> None:
    """Also where many came that stay, while it was open."""
    app = showing(search_events()[:200])
    async with running(app) as pilot:
        shown: list[weakref.ref[Screen[Any]]] = []
        rows: list[list[int]] = []
        for _ in range(3):
            await pilot.press("question_mark")
            shown.append(weakref.ref(app.screen))
            rows += [[number] for number in range(collecting.MANY)]
            let_them_stay()
            app.tick()
            await pilot.press("escape")
        await pilot.press("j")
        let_them_stay()
        app.tick()
        assert [one() for one in shown] == [None] * 3
