from __future__ import annotations

from pathlib import Path

import pytest

from engine.cli.application import main
from engine.events import RunFinished, RunState
from engine.snapshot import Snapshot, apply
from engine.store import Recording, Store, StoreError, read_results
from engine.vocabulary import Regime, Schedule, Status
from tests.store.importing.files import POINTS, cache, t4, written


@pytest.fixture
def database(tmp_path: Path) -> Path:
    return tmp_path / "emmy.db"


def imported(database: Path, *files: Path) -> list[int]:
    with Store.open(database) as store:
        return [one.new for one in store.import_results([read_results(file) for file in files])]


def counts(database: Path) -> list[int]:
    with Store.open(database, read_only=True) as store:
        events = [event for run in store.runs() for event in store.events_of(run.id)]
        rows = [len(store.schedules(one.kernel, one.context)) for one in store.variants()]
        return [len(store.runs()), len(store.kernels()), len(store.contexts()), len(events), *rows]


def test_what_is_imported_reads_like_a_run(database: Path, tmp_path: Path) -> None:
    assert imported(database, written(tmp_path / "a.json", cache())) == [5]
    with Store.open(database, read_only=True) as store:
        (found,) = store.variants()
        assert (found.label, found.family, found.shape, found.gpu) == (
            "stencil",
            "foreign",
            "128x64",
            "NVIDIA RTX A4000",
        )
        assert (found.ok, found.failed, found.rows[0].us) == (2, 3, 1500.0)
        assert found.rows[0].schedule == {"block": 32, "unroll": True, "ratio": "0.5", "layout": "NHWC"}
        clusters = {cluster.cause: cluster for cluster in store.failures()}
        assert set(clusters) == {"RuntimeFailedConfig", "CompilationFailedConfig", "InvalidConfig"}
        (run,) = store.runs()
        (grouping,) = store.recorded_groupings(run.id)
        assert (run.state, grouping.sum_us) == (RunState.FINISHED, 1500.0)
        assert store.program(run.id).target == "stencil 128x64"
        snapshot = Snapshot()
        for event in store.events_of(run.id):
            apply(snapshot, event)
    assert isinstance(snapshot.finished, RunFinished)
    assert (snapshot.measured, snapshot.failed, snapshot.finished.best_us) == (5, 3, 1500.0)
    (kernel,) = snapshot.kernels.values()
    assert (kernel.best_us, len(kernel.points)) == (1500.0, 5)


def test_a_recording_answers_from_it(database: Path, tmp_path: Path) -> None:
    imported(database, written(tmp_path / "a.json", cache()))
    with Store.open(database, read_only=True) as store:
        recording = Recording(store)
        (kernel,) = store.kernels()
        answers = [
            recording.measurement(kernel.key, schedule, Regime.RANKING)
            for schedule in store.schedules(kernel.key, recording.context.key)
        ]
        assert [answer.status for answer in answers if answer] == [Status.OK] * 2 + [Status.FAILED] * 3
        assert recording.measurement(kernel.key, Schedule.of({"block": 1}), Regime.RANKING) is None


def test_importing_twice_doubles_nothing(database: Path, tmp_path: Path) -> None:
    files = [written(tmp_path / "a.json", cache()), written(tmp_path / "b_T4.json.gz", t4())]
    assert imported(database, *files) == [5, 5]
    before = counts(database)
    assert imported(database, *files) == [0, 0]
    assert imported(database, files[0], files[0]) == [0, 0]
    assert counts(database) == before == [2, 2, 2, *before[3:]]


def test_a_file_that_grew_adds_what_is_new(database: Path, tmp_path: Path) -> None:
    assert imported(database, written(tmp_path / "a.json", cache(POINTS[:1] + POINTS[2:3]))) == [2]
    healed = [*POINTS, (POINTS[2][0], 1.0)]
    assert imported(database, written(tmp_path / "a.json", cache(healed))) == [4]
    with Store.open(database, read_only=True) as store:
        (found,) = store.variants()
        assert (found.ok, found.failed, found.rows[0].us) == (3, 2, 1000.0)
        (run,) = store.runs()
        finished = [event for event in store.events_of(run.id) if isinstance(event, RunFinished)]
    assert [(end.measured, end.failed, end.best_us) for end in finished] == [(5, 2, 1000.0)]


def test_another_gpu_is_another_context_of_the_kernel(database: Path, tmp_path: Path) -> None:
    imported(database, written(tmp_path / "a.json", cache()))
    imported(database, written(tmp_path / "b.json", {**cache(), "device_name": "H200"}))
    assert counts(database)[:3] == [2, 1, 2]


def test_nothing_is_left_of_an_import_that_fails(database: Path, tmp_path: Path) -> None:
    good = read_results(written(tmp_path / "a.json", cache()))
    imported(database, written(tmp_path / "b.json", t4()))
    before = counts(database)
    with Store.open(database) as store:
        store._connection.db.execute(
            "CREATE TEMP TRIGGER full BEFORE INSERT ON event WHEN (SELECT count(*) FROM event) > 12 "
            "BEGIN SELECT RAISE(ABORT, 'no'); END"
        )
        with pytest.raises(StoreError):
            store.import_results([good])
    assert counts(database) == before


def test_the_command(database: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    good, bad = written(tmp_path / "a.json", cache()), written(tmp_path / "bad.json", {"cache": 1})
    with pytest.raises(SystemExit) as left:
        main(["import", str(good), str(bad), "--db", str(database)])
    assert left.value.code == 2
    assert capsys.readouterr().err.startswith(f"emmy: {bad} is of no known format")
    assert not database.exists()
    for new in (5, 0):
        with pytest.raises(SystemExit) as left:
            main(["import", str(good), "--db", str(database)])
        assert not left.value.code
        said = capsys.readouterr().out
        assert said == f"stencil 128x64 on NVIDIA RTX A4000 (Kernel Tuner cache): 5 points, 3 failed, {new} new\n"
    with pytest.raises(SystemExit) as left:
        main(["tune", "--device", "replay", "--db", str(database), "--json"])
    assert not left.value.code
    assert "1500" in capsys.readouterr().out.splitlines()[-1]
