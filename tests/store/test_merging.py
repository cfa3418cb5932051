"""Two databases merged know what both knew, whichever came first, and merging again changes nothing."""

from __future__ import annotations

import itertools
import os
import shutil
import sqlite3
from dataclasses import replace
from pathlib import Path

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from engine.events import Health, Logged, RunState
from engine.store import Store, StoreError, Suggestion, merge_databases
from engine.store.errors import NewerSchema, StoreDamaged, StoreMissing, StoreReadOnly
from engine.vocabulary import Context, Regime

COUNTERS = {"measurement": "id", "pin": "id", "act": "id", "forbidden": "id"}


def contents(path: Path) -> dict[str, list[str]]:
    """Every row of every table as text, sorted, without the numbers that only count."""
    conn = sqlite3.connect(path)
    conn.row_factory = sqlite3.Row
    tables = [row[0] for row in conn.execute("SELECT name FROM sqlite_master WHERE type = 'table'")]
    found = {}
    for table in tables:
        rows = [dict(row) for row in conn.execute(f'SELECT * FROM "{table}"')]
        found[table] = sorted(
            repr({name: value for name, value in row.items() if name != COUNTERS.get(table)}) for row in rows
        )
    conn.close()
    return found


STEPS = st.lists(
    st.tuples(
        st.sampled_from(("ok", "failed", "deploy", "pin", "unpin", "suggest", "run", "log", "grouping", "forbid")),
        st.integers(0, 3),
        st.integers(1, 4),
    ),
    max_size=12,
)


def write(path: Path, sample, steps: list[tuple[str, int, int]], ticks: itertools.count[int]) -> None:
    """Do things to a database, each at a moment of its own."""
    with Store.open(path, clock=lambda: float(next(ticks))) as store:
        run = sample.begin(store)
        for what, which, number in steps:
            if what in ("ok", "deploy"):
                regime = Regime.DEPLOY if what == "deploy" else Regime.RANKING
                store.record_measurement(sample.ok(float(number), regime, BLOCK_M=16 << which), run=run, trial=number)
            elif what == "failed":
                store.record_measurement(sample.failed(BLOCK_M=16 << which), run=run, trial=number)
            elif what == "pin":
                store.record_pin(
                    sample.matmul.key, sample.schedule(BLOCK_M=16 << which), sample.context.key, author="ana"
                )
            elif what == "unpin" and store.pins():
                store.unpin(sample.matmul.key, sample.context.key)
            elif what == "suggest":
                origin = replace(sample.context, gpu=f"GPU {which}")
                store.suggest([Suggestion(sample.matmul.key, sample.schedule(), origin, "there", float(number))])
            elif what == "run":
                store.end_run(run, RunState.FINISHED)
                run = store.start_run(sample.run_info())
            elif what == "log":
                store.record_events(run, [Logged(at=float(next(ticks)), level="info", text=f"{number}")])
            elif what == "grouping":
                store.score_grouping(store.record_grouping(run, sample.grouping), float(number))
            elif what == "forbid":
                store.forbid({"NUM_WARPS": number}, kernel_key=sample.matmul.key, author="ana")


@settings(max_examples=12, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(common=STEPS, left=STEPS, right=STEPS)
@pytest.mark.slow
def test_merging_loses_nothing_and_doubles_nothing(tmp_path_factory, sample, common, left, right) -> None:
    """Two copies of one database go on apart, and are merged."""
    folder = tmp_path_factory.mktemp("merge")
    a, b = folder / "a.db", folder / "b.db"
    ticks = itertools.count(1)
    write(a, sample, common, ticks)
    shutil.copy(a, b)
    write(a, sample, left, ticks)
    write(b, sample, right, ticks)
    merge_databases([a, b], folder / "ab.db")
    merge_databases([b, a], folder / "ba.db")
    both = contents(folder / "ab.db")
    assert both == contents(folder / "ba.db")
    for source in (a, b):
        merge_databases([folder / "ab.db", source])
        assert contents(folder / "ab.db") == both
        assert_holds(folder / "ab.db", source)


def assert_holds(whole: Path, part: Path) -> None:
    """Whatever a part names is in the whole; of what has a time, a time."""
    conn = sqlite3.connect(whole)
    conn.execute("ATTACH ? AS part", (str(part),))
    for table, key in {
        "context": "key",
        "kernel": "key",
        "run": "id",
        "grouping": "run, plan_key",
        "grouping_kernel": "grouping, kernel_key, count",
        "measurement": "kernel_key, context_key, schedule",
        "node": "key",
        "event": "run, at, kind, body",
        "pin": "kernel_key, context_key, schedule, author, at, note",
        "forbidden": "kernel_key, knobs, author, at",
        "suggestion": "kernel_key, schedule, origin",
    }.items():
        lost = conn.execute(f"SELECT {key} FROM part.{table} EXCEPT SELECT {key} FROM main.{table}").fetchall()
        assert lost == [], table
        doubled = conn.execute(f"SELECT {key}, count(*) FROM main.{table} GROUP BY {key} HAVING count(*) > 1")
        assert table in ("grouping", "grouping_kernel", "event") or doubled.fetchall() == [], table
    ok = "SELECT kernel_key, schedule FROM {}.measurement WHERE status = 'ok'"
    assert conn.execute(f"{ok.format('part')} EXCEPT {ok.format('main')}").fetchall() == []
    in_force = "SELECT 1 FROM pin WHERE removed_at IS NULL GROUP BY kernel_key, context_key HAVING count(*) > 1"
    assert conn.execute(in_force).fetchall() == []
    conn.close()


def health(at: float) -> Health:
    return Health(at=at, search_share=0.1, gpu_idle_share=0.1, compiling=0, respawns=0)


def test_a_run_that_was_copied_half_way_is_whole_again(tmp_path: Path, sample) -> None:
    early, late = tmp_path / "early.db", tmp_path / "late.db"
    with Store.open(late) as store:
        run = sample.begin(store)
        store.record_events(run, [Logged(at=1.0, level="info", text="one"), health(1.0)])
        grouping = store.record_grouping(run, sample.grouping)
    shutil.copy(late, early)
    with Store.open(late) as store:
        store.record_events(run, [Logged(at=2.0, level="info", text="two"), health(2.0)])
        store.score_grouping(grouping, 12.0)
        store.end_run(run, RunState.FINISHED)
    before = contents(late)
    for order in ([late, early], [early, late]):
        into = tmp_path / f"{order[0].stem}.merged.db"
        (merged, *_) = merge_databases(order, into)
        assert merged.runs == 1
        assert contents(into) == before


def test_an_edited_body_yields_to_a_sound_one(tmp_path: Path, sample) -> None:
    good, bad = tmp_path / "good.db", tmp_path / "bad.db"
    with Store.open(good) as store:
        sample.begin(store)
    shutil.copy(good, bad)
    conn = sqlite3.connect(bad)
    conn.execute("UPDATE kernel SET body = '!' || body")
    conn.commit()
    conn.close()
    for order in ([good, bad], [bad, good]):
        into = tmp_path / f"{order[0].stem}.merged.db"
        merge_databases(order, into)
        with Store.open(into, read_only=True) as store:
            assert len(store.kernels()) == 2


@pytest.mark.parametrize("old", sorted((Path(__file__).parent / "old").glob("schema_*.db")), ids=lambda p: p.stem)
def test_an_old_schema_is_upgraded_in_a_copy(tmp_path: Path, sample, old: Path) -> None:
    source = Path(shutil.copy(old, tmp_path / "old.db"))
    source.chmod(0o444)
    before = source.read_bytes()
    with Store.open(tmp_path / "new.db") as store:
        sample.begin(store)
    merge_databases([tmp_path / "new.db", source], tmp_path / "both.db")
    assert source.read_bytes() == before
    with Store.open(tmp_path / "both.db", read_only=True) as store:
        assert len(store.runs()) == 2
        assert store.variants("matmul")[0].ok == 2


@pytest.mark.parametrize("damaged", [0, 1])
@pytest.mark.parametrize("into", [None, "c.db"])
def test_a_damaged_source_is_named_as_it_was_given(tmp_path: Path, sample, damaged: int, into: str | None) -> None:
    sources = [tmp_path / "a.db", tmp_path / "b.db"]
    for source in sources:
        with Store.open(source) as store:
            sample.begin(store)
    data = sources[damaged].read_bytes()
    sources[damaged].write_bytes(data[:-4096] + b"\xa5" * 4096)
    before = [source.read_bytes() for source in sources]
    with pytest.raises(StoreDamaged) as refused:
        merge_databases(sources, tmp_path / into if into else None)
    assert str(refused.value).startswith(f"{sources[damaged]} is damaged (")
    assert "emmy-merge-" not in str(refused.value)
    assert [source.read_bytes() for source in sources] == before
    assert not (tmp_path / "c.db").exists()


def test_what_cant_be_merged_is_one_sentence_and_nothing_changes(tmp_path: Path, sample, monkeypatch) -> None:
    with Store.open(tmp_path / "a.db") as store:
        sample.begin(store)
    before = contents(tmp_path / "a.db")
    shutil.copy(tmp_path / "a.db", tmp_path / "newer.db")
    conn = sqlite3.connect(tmp_path / "newer.db")
    conn.execute("UPDATE meta SET value = '999' WHERE key = 'schema'")
    conn.commit()
    conn.close()
    with pytest.raises(NewerSchema, match=r"newer\.db was written by a newer Emmy"):
        merge_databases([tmp_path / "a.db", tmp_path / "newer.db"])
    with pytest.raises(StoreMissing):
        merge_databases([tmp_path / "a.db", tmp_path / "none.db"], tmp_path / "c.db")
    with pytest.raises(StoreError, match="exists already"):
        merge_databases([tmp_path / "a.db", tmp_path / "a.db"], tmp_path / "a.db")
    shutil.copy(tmp_path / "a.db", tmp_path / "b.db")
    with Store.open(tmp_path / "b.db") as store:
        store.record_context(Context("B200", "10.0", "", "", "", ""))
    monkeypatch.setattr("engine.store.connection.os.access", lambda path, mode: mode != os.W_OK)
    with pytest.raises(StoreReadOnly):
        merge_databases([tmp_path / "a.db", tmp_path / "b.db"])
    assert contents(tmp_path / "a.db") == before
    assert not (tmp_path / "c.db").exists()
