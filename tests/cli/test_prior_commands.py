"""`emmy fit`, `emmy eval prior` and `emmy eval knobs` from the command line to the last line of JSON."""

from __future__ import annotations

import json
import sqlite3
from pathlib import Path

import pytest

from engine.cli.application import main
from engine.prior import models_path, rows_path
from engine.store import Store
from tests.tune.fake_device import FakeDevice
from tests.tune.rig import matmul_program, tune_with


def told(capsys: pytest.CaptureFixture[str], *arguments: str) -> tuple[int, str, str]:
    with pytest.raises(SystemExit) as left:
        main(list(arguments))
    said = capsys.readouterr()
    return int(left.value.code or 0), said.out, said.err


@pytest.fixture(scope="module")
def database(tmp_path_factory: pytest.TempPathFactory) -> Path:
    path = tmp_path_factory.mktemp("tuned") / "t.db"
    tune_with(path, FakeDevice(), matmul_program())
    return path


def test_fit_then_eval(database: Path, capsys: pytest.CaptureFixture[str]) -> None:
    code, out, err = told(capsys, "fit", "--db", str(database), "--json")
    assert (code, err) == (0, "")
    fitted = json.loads(out.splitlines()[-1])
    assert rows_path(database).exists()
    assert models_path(database).exists()
    code, out, _ = told(capsys, "eval", "prior", "--db", str(database), "--json")
    report = json.loads(out.splitlines()[-1])
    assert (code, report["learned"], report["trusted"]) == (0, fitted["version"], fitted["trusted"])
    code, out, _ = told(capsys, "eval", "prior", "--db", str(database))
    assert code == 0
    assert f"steers the next run: {fitted['steering']}" in out


def test_knobs(database: Path, capsys: pytest.CaptureFixture[str]) -> None:
    code, out, _ = told(capsys, "eval", "knobs", "--db", str(database), "--json")
    (report,) = json.loads(out.splitlines()[-1])
    assert code == 0
    assert {"BLOCK_M", "NUM_WARPS"} <= {knob["knob"] for knob in report["knobs"]}
    code, out, _ = told(capsys, "eval", "knobs", "--db", str(database))
    assert "values, the best first" in out
    code, out, err = told(capsys, "eval", "knobs", "--db", str(database), "--kernel", "nothing", "--json")
    assert (code, out.strip()) == (2, "[]")
    assert "no timed kernel" in err


@pytest.mark.usefixtures("short_fits")
def test_a_kernel_that_cant_be_read_is_left_out_with_a_sentence(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    path = tmp_path / "broken.db"
    tune_with(path, FakeDevice(), matmul_program())
    with Store.open(path) as store:
        (key,) = store.kernel_keys("")[:1]
    connection = sqlite3.connect(path)
    row = connection.execute("SELECT * FROM kernel WHERE key = ?", (key,))
    names = [column[0] for column in row.description]
    values = dict(zip(names, row.fetchone(), strict=True)) | {"key": "0" * 24, "body": '{"ops": 3}'}
    marks = ", ".join("?" for _ in names)
    connection.execute(f"INSERT INTO kernel ({', '.join(names)}) VALUES ({marks})", [values[name] for name in names])
    connection.commit()
    connection.close()
    for command in (("fit",), ("eval", "prior"), ("eval", "kernels")):
        code, out, err = told(capsys, *command, "--db", str(path))
        assert code == 0, err
        assert out
        assert err.count("emmy: left out: row 000000000000000000000000 of table kernel can't be read") == 1
        assert "object is not" not in err


def test_nothing_to_fit(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    Store.open(tmp_path / "empty.db").close()
    code, out, err = told(capsys, "fit", "--db", str(tmp_path / "empty.db"))
    assert (code, out) == (2, "")
    assert "no timed candidate" in err
