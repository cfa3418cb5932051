"""Controls files in a database: kept once by their bytes, usable only where that ptxas accepted them for that GPU."""

from __future__ import annotations

import hashlib
import sqlite3
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from engine.store import AcceptanceRow, Store, StoreError, pareto_front
from engine.vocabulary import Context

DATA = b"made up"
SHA = hashlib.sha256(DATA).hexdigest()
PTXAS = "ab" * 32
CONTEXT = Context("GPU", "9.0", "580", "2.11", "3.6.0", f"13.3.73+{PTXAS[:12]}")


def said(accepted: bool = True, reason: str = "", ptxas: str = PTXAS, capability: int = 90) -> AcceptanceRow:
    return AcceptanceRow(SHA, ptxas, "13.3.73", capability, accepted, reason)


def context(ptxas: str = CONTEXT.ptxas, capability: str = "9.0") -> Context:
    return Context("GPU", capability, "580", "2.11", "3.6.0", ptxas)


def test_bytes_are_kept_once_under_the_first_name(tmp_path: Path) -> None:
    path = tmp_path / "t.db"
    with Store.open(path) as store:
        store.record_controls([("first", DATA), ("other", b"other bytes")], [said()])
        store.record_controls([("second name", DATA), ("first", b"changed bytes")], [said()])
        kept = {file.sha256: (file.name, file.data) for file in store.controls()}
    assert kept[SHA] == ("first", DATA)
    assert sorted(name for name, _ in kept.values()) == ["first", "first", "other"]
    with Store.open(path, read_only=True) as store:
        assert len(store.controls()) == 3


def test_they_fit_where_they_were_accepted_and_nowhere_else(tmp_path: Path) -> None:
    with Store.open(tmp_path / "t.db") as store:
        store.record_controls([("one", DATA)], [said()])
        assert store.controls_unusable_because("", context("12.8.93")) is None
        assert store.controls_unusable_because(SHA, CONTEXT) is None
        for where, words in (
            (context("12.8.93"), "not by ptxas 12.8.93 for sm_90"),
            (context("13.3.73"), "not by ptxas 13.3.73 for sm_90"),
            (context(f"13.3.73+{'cd' * 6}"), "accepted by ptxas 13.3.73 for sm_90, not by ptxas 13.3.73"),
            (context(capability="10.0"), "for sm_100"),
        ):
            assert words in (store.controls_unusable_because(SHA, where) or "")
        assert "is not in this database" in (store.controls_unusable_because("0" * 64, CONTEXT) or "")


def test_a_newer_word_replaces_an_older(tmp_path: Path) -> None:
    with Store.open(tmp_path / "t.db") as store:
        store.record_controls([("one", DATA)], [said()])
        store.record_controls([], [said(accepted=False, reason="Invalid compiler controls file")])
        assert "does not take the controls file" in (store.controls_unusable_because(SHA, CONTEXT) or "")


def test_damaged_bytes_are_refused(tmp_path: Path) -> None:
    path = tmp_path / "t.db"
    with Store.open(path) as store:
        store.record_controls([("one", DATA)], [said()])
    with sqlite3.connect(path) as db:
        db.execute("UPDATE acf SET bytes = ?", (b"tampered",))
    with Store.open(path) as store, pytest.raises(StoreError, match="has other bytes: it is damaged"):
        store.controls()


def test_a_front_of_times_and_registers() -> None:
    assert pareto_front([(3.0, 10), (1.0, 30), (2.0, 20), (2.5, 20), (1.0, 31)]) == (1, 2, 0)
    assert pareto_front([(1.0, 1), (1.0, 1)]) == (0,)
    assert pareto_front([]) == ()


@given(st.lists(st.tuples(st.integers(0, 9), st.integers(0, 9), st.integers(0, 9)), max_size=30))
def test_the_front_is_what_nothing_beats(points: list[tuple[int, int, int]]) -> None:
    front = [points[at] for at in pareto_front(points)]
    for point in points:
        assert any(all(a <= b for a, b in zip(kept, point, strict=True)) for kept in front)
    for one in front:
        assert not any(other != one and all(a <= b for a, b in zip(other, one, strict=True)) for other in points)
    assert len(front) == len(set(front))
