"""Knobs are spelled one way, and stand in one order, whichever command prints them."""

from __future__ import annotations

import re
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from engine.cli.application import main
from engine.cli.knob_text import knob_word, names_in_order, schedule_line
from engine.knobs import KNOB_ORDER, KNOBS
from engine.vocabulary import KnobValue, Schedule

KNOB_VALUES = st.sampled_from([(knob.name, value) for knob in KNOBS.values() for value in (*knob.values, knob.off)])


@given(st.lists(KNOB_VALUES, unique_by=lambda knob: knob[0], max_size=len(KNOBS)))
def test_a_schedule_keeps_its_words_and_gets_the_canonical_order(knobs: list[tuple[str, KnobValue]]) -> None:
    line = schedule_line(str(Schedule.of(dict(knobs))))
    ordered = sorted(knobs, key=lambda knob: KNOB_ORDER[knob[0]])
    assert line == " ".join(knob_word(name, value) for name, value in ordered)


def test_unknown_knobs_come_last_by_name() -> None:
    assert names_in_order(["tile_x", "NUM_STAGES", "block_size", "BLOCK_M"]) == [
        "BLOCK_M",
        "NUM_STAGES",
        "block_size",
        "tile_x",
    ]


@pytest.mark.parametrize("text", ["", "layout=row major vector=4", "EVICTION= NUM_WARPS=4", "no knobs at all"])
def test_no_text_is_lost(text: str) -> None:
    assert sorted(schedule_line(text).split()) == sorted(text.split())


def words(said: str) -> set[str]:
    return set(re.findall(r"PERSISTENT=\S*", said))


def leave(*arguments: str) -> None:
    with pytest.raises(SystemExit) as left:
        main(list(arguments))
    assert not left.value.code


def test_all_commands_spell_a_knob_alike(switched: Path, capsys: pytest.CaptureFixture[str]) -> None:
    leave("eval", "variants", "--db", str(switched), "--kernel", "relu")
    assert words(capsys.readouterr().out) == {"PERSISTENT=False"}
    leave("eval", "variants", "--db", str(switched), "--kernel", "matmul")
    table = capsys.readouterr().out.splitlines()
    assert {word for line in table[4:] for word in line.split()} >= {"False", "True"}
    leave("eval", "failures", "--db", str(switched))
    assert words(capsys.readouterr().out) == {"PERSISTENT=True"}
    for detail in ((), ("-v",)):
        leave("tune", "--device", "replay", "--db", str(switched), *detail)
        assert words(capsys.readouterr().out) <= {"PERSISTENT=False", "PERSISTENT=True"}
