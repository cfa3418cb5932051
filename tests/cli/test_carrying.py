"""`emmy export`, `import` and `merge` from end to end, and the sentences for what can't be carried."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

from engine.cli.application import main
from engine.deploy import Carried, export_schedules
from engine.store import Store
from tests.deploy.samples import HERE, THERE, fill, matmul
from tests.tune.fake_device import CONTEXT, FakeDevice
from tests.tune.rig import linear_gelu_program, tune_with


def leave(*arguments: str | Path) -> int:
    with pytest.raises(SystemExit) as left:
        main([str(argument) for argument in arguments])
    return int(left.value.code or 0)


@pytest.fixture
def database(tmp_path: Path) -> Path:
    return fill(tmp_path / "tune.db")


def test_schedules_travel(database: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    file = tmp_path / "best.json"
    assert leave("export", "--db", database, "--best", "--kernel", "matmul", "-o", file) == 0
    assert capsys.readouterr().out == f"wrote 1 schedule to {file}\n"
    other = fill(tmp_path / "other.db", THERE)
    assert leave("import", file, "--db", other, "--json") == 0
    (record,) = json.loads(capsys.readouterr().out)
    assert (record["suggestions"], record["results"], record["left_out"]) == (1, 0, [])
    assert leave("pins", "--db", other) == 0
    assert "measured on NVIDIA H200, not NVIDIA B200" in capsys.readouterr().out
    assert leave("explain", "--db", other) == 0
    assert "a suggestion decides nothing here: measured on NVIDIA H200, not NVIDIA B200: " in capsys.readouterr().out
    assert leave("explain", "--db", other, "--json") == 0
    (explained,) = json.loads(capsys.readouterr().out)
    assert [one["gpu"] for one in explained["suggestions"]] == ["NVIDIA H200"]
    assert leave("import", file, "--db", database) == 0
    assert "0 new results" in capsys.readouterr().out
    file.write_text(file.read_text().replace('"NUM_WARPS": ', '"NUM_WARPS": 3'))
    assert leave("import", file, "--db", database) == 1
    assert "1 left out" in capsys.readouterr().out


def test_whole_graphs_travel_and_the_program_of_one_is_explained_and_not_run(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    tuned, other, file = tmp_path / "tuned.db", tmp_path / "other.db", tmp_path / "all.json"
    tune_with(tuned, FakeDevice(), linear_gelu_program(64))
    with Store.open(other) as store:
        store.record_context(CONTEXT, FakeDevice().target)
    assert leave("export", "--db", tuned, "-o", file) == 0
    assert " and 1 whole graph to " in capsys.readouterr().out
    assert leave("import", file, "--db", other) == 0
    assert "new results, 1 new whole graph, " in capsys.readouterr().out
    assert leave("import", file, "--db", other, "--json") == 0
    (record,) = json.loads(capsys.readouterr().out)
    assert (record["results"], record["graphs"]) == (0, 0)
    assert leave("explain", "--db", other) == 0
    assert ": as one graph " in capsys.readouterr().out
    assert leave("run", "--db", other) == 2
    assert "holds no program" in capsys.readouterr().err


def test_databases_merge(database: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    other = fill(tmp_path / "other.db", THERE, size=512)
    assert leave("merge", database, other, "-o", tmp_path / "both.db", "--json") == 0
    record = json.loads(capsys.readouterr().out)
    assert [source["new_runs"] for source in record["sources"]] == [1, 1]
    assert leave("merge", tmp_path / "both.db", other) == 0
    said = capsys.readouterr().out
    assert "0 new runs, 0 new kernels, 0 new results, 0 new acts of pinning" in said
    assert said.rstrip().endswith("both.db: 0 pins in force")
    with Store.open(tmp_path / "both.db", read_only=True) as store:
        assert len(store.kernels()) == 3
        assert {context.gpu for context in store.contexts()} == {HERE.gpu, THERE.gpu}
        assert store.best_known(matmul().key, HERE.key).us == 9.5


@pytest.mark.parametrize(
    ("arguments", "sentence", "code"),
    [
        (("merge", "tune.db"), "one database is merged with nothing", 2),
        (("merge", "tune.db", "none.db"), "there is no database at", 2),
        (("merge", "tune.db", "broken.json"), "is no SQLite database", 2),
        (("merge", "tune.db", "tune.db", "-o", "tune.db"), "exists already", 2),
        (("export", "--db", "tune.db", "--pins", "-o", "x"), "nothing is pinned", 2),
        (("export", "--db", "tune.db", "--kernel", "softmax", "-o", "x"), "nothing was measured", 2),
        (("export", "--db", "tune.db", "-o", "no/where"), "can't be written", 1),
        (("export", "--db", "none.db", "-o", "x"), "there is no database at", 2),
        (("export", "--db", "tune.db", "matmul", "-o", "x"), "give --python", 2),
        (("export", "--db", "tune.db", "--python", "--best", "-o", "x"), "leave --kernel", 2),
        (("export", "--db", "tune.db", "--python", "softmax", "-o", "x"), "no run of", 2),
        (("import", "good.json", "--kernel", "x", "--db", "tune.db"), "keeps its names: --kernel is for", 2),
        (("import", "good.json", "--gpu", "x", "--db", "tune.db"), "keeps its names: --gpu is for", 2),
        (("import", "broken.json", "--db", "tune.db"), "no complete JSON", 2),
        (("import", "other.json", "--db", "tune.db"), "of no known format", 2),
        (("import", "newer.json", "--db", "tune.db"), "upgrade emmy-tui", 2),
        (("import", "numbers.json", "--db", "tune.db"), "a value in it is of another kind than it should be", 2),
        (("import", "tune.db", "--db", "other.db"), "`emmy merge` reads those", 2),
        (("export", "--db", "tune.db", "-o", "tune.db"), "is a database, and the output would replace it", 2),
        (("export", "--db", "tune.db", "-o", "tune.db-wal"), "is a database, and the output would replace it", 2),
        (("export", "--db", "tune.db", "-o", "."), "can't be written", 1),
        (("export", "--db", "tune.db", "-o", "none/x.json"), "none/x.json can't be written", 1),
        (("export", "--db", "tune.db", "-o", "-", "--json"), "leave one of them away", 2),
        (("import", "good.json", "--db", "none/deep/y.db"), "none/deep to put y.db in: make it", 2),
        (("merge", "tune.db", "tune.db", "-o", "none/m.db"), "none to put m.db in: make it", 2),
        (("merge", "tune.db", "tune.db", "-o", "-"), "can't be written to stdout", 2),
        (("export", "--db", "tune.db", "-o", ""), "can't be written", 1),
    ],
)
def test_what_cant_be_carried_is_one_sentence(
    database: Path,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
    arguments: tuple[str, ...],
    sentence: str,
    code: int,
) -> None:
    monkeypatch.chdir(tmp_path)
    Path("broken.json").write_text('{"format": "emmy schedules", "version": 1, "kern')
    Path("other.json").write_text("{}")
    Path("newer.json").write_text('{"format": "emmy schedules", "version": 2}')
    write_spoiled(Path("numbers.json"), database)
    assert leave("export", "--db", database, "-o", "good.json") == 0
    capsys.readouterr()
    before = sorted(path.name for path in tmp_path.iterdir())
    assert leave(*arguments) == code
    complaint = capsys.readouterr().err
    assert sentence in complaint
    assert complaint.count("\n") == 1
    after = sorted(path.name for path in tmp_path.iterdir() if not path.name.endswith(("-wal", "-shm")))
    assert set(after) - set(before) <= {"xdg_data_home", "xdg_state_home", "xdg_cache_home"}


def test_schedules_are_written_to_stdout(
    database: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.chdir(tmp_path)
    assert leave("export", "--db", database, "--best", "--kernel", "matmul", "-o", "-") == 0
    said = capsys.readouterr()
    assert json.loads(said.out)["format"] == "emmy schedules"
    assert said.err == "wrote 1 schedule to stdout\n"
    assert not Path("-").exists()


@pytest.mark.parametrize("output", [(), ("-o", "m.db")])
def test_a_merge_without_room_is_a_failure_and_names_what_the_person_knows(
    database: Path, tmp_path: Path, output: tuple[str, ...]
) -> None:
    fill(tmp_path / "other.db", THERE)
    content = database.read_bytes()
    command = ["merge", "tune.db", "other.db", *output]
    work = (
        "import resource\n"
        "resource.setrlimit(resource.RLIMIT_FSIZE, (65536, 65536))\n"
        f"from engine.cli.application import main\nmain({command!r})"
    )
    environ = {**os.environ, "PYTHONPATH": str(Path(__file__).parents[2]), "PYTHONDONTWRITEBYTECODE": "1"}
    done = subprocess.run(
        [sys.executable, "-c", work], cwd=tmp_path, env=environ, capture_output=True, text=True, check=False
    )
    assert (done.returncode, done.stdout) == (1, "")
    assert "copies of the databases can't be written to " in done.stderr
    assert "let TMPDIR name another folder" in done.stderr
    assert "emmy-merge-" not in done.stderr
    assert "--db" not in done.stderr
    assert done.stderr.count("\n") == 1
    assert database.read_bytes() == content
    assert not (tmp_path / "m.db").exists()


def test_a_pipe_is_written_to_and_stays_one(database: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    pipe = tmp_path / "pipe"
    os.mkfifo(pipe)
    reader = os.open(pipe, os.O_RDONLY | os.O_NONBLOCK)
    try:
        assert leave("export", "--db", database, "--best", "--kernel", "matmul", "-o", pipe) == 0
        assert json.loads(os.read(reader, 1 << 16))["format"] == "emmy schedules"
    finally:
        os.close(reader)
    assert pipe.is_fifo()
    said = capsys.readouterr()
    assert (said.out, said.err) == ("", f"wrote 1 schedule to {pipe}\n")


def test_a_link_stays_one(database: Path, tmp_path: Path) -> None:
    kept, link = tmp_path / "kept.json", tmp_path / "link.json"
    kept.write_text("old")
    link.symlink_to(kept)
    assert leave("export", "--db", database, "-o", link) == 0
    assert link.is_symlink()
    assert json.loads(kept.read_text())["format"] == "emmy schedules"


def test_a_program_becomes_a_module(database: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    file = tmp_path / "tuned.py"
    assert leave("export", "--db", database, "--python", "torch.matmul", "-o", file) == 0
    assert capsys.readouterr().out.startswith("wrote 1 kernel of torch.matmul(x, w)")
    text = file.read_text()
    assert "def run(x, w):" in text
    assert "deploy measurement, 9.50 us" in text
    assert "engine" not in text.replace("emmy", "")


def write_spoiled(file: Path, database: Path) -> None:
    """A file of schedules in which a chip is a number."""
    with Store.open(database, read_only=True) as store:
        document = json.loads(export_schedules(store, "", Carried.BEST, "").text)
    for context in document["contexts"].values():
        context["target"] = 3
    file.write_text(json.dumps(document))
