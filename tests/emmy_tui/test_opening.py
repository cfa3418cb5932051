"""What is refused before a screen is drawn."""

from __future__ import annotations

import time
from contextlib import closing
from pathlib import Path

import pytest

from emmy_tui import opening
from emmy_tui.main import arguments_parser
from emmy_tui.opening import check_run, demo_path, open_source
from emmy_tui.refusal import BadInput
from emmy_tui.source import Mode
from engine.data import demo_database
from engine.events import Event, RunFinished, RunStarted
from engine.extras import install_text
from engine.store import Store
from tests.emmy_tui.measured import fill

CODE = "torch.mm(torch.ones(3, 3), torch.ones(3, 3))"


@pytest.fixture
def equipped(monkeypatch: pytest.MonkeyPatch) -> None:
    """A machine with packages and driver, as far as is looked at."""
    monkeypatch.setattr(opening, "find_spec", lambda name: name)
    monkeypatch.setattr(opening, "has_driver", lambda: True)


def refused(code: str, database: Path, device: str = "cuda:0") -> str:
    with pytest.raises(BadInput) as refusal:
        check_run(code, database, device)
    return str(refusal.value)


@pytest.mark.usefixtures("equipped")
def test_what_can_be_run_is_let_through(tmp_path: Path) -> None:
    check_run(CODE, tmp_path / "new" / "tune.db", "cuda:0")
    assert not (tmp_path / "new").exists()


@pytest.mark.usefixtures("equipped")
def test_code_that_does_not_parse_is_refused(tmp_path: Path) -> None:
    assert "doesn't parse" in refused("torch.mm((", tmp_path / "tune.db")
    options = arguments_parser().parse_args(["--code", "torch.mm((", "--db", str(tmp_path / "tune.db")])
    with pytest.raises(BadInput, match="doesn't parse"):
        open_source(options)


@pytest.mark.usefixtures("equipped")
def test_a_device_without_a_gpu_is_refused(tmp_path: Path) -> None:
    assert "cuda:0" in refused(CODE, tmp_path / "tune.db", "cpu")


def test_missing_packages_are_named(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(opening, "find_spec", lambda name: None if name == "triton" else name)
    assert refused(CODE, tmp_path / "tune.db").startswith(f"triton is not installed; {install_text('tune')}")


def test_a_machine_without_a_driver_is_refused(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(opening, "find_spec", lambda name: name)
    monkeypatch.setattr(opening, "find_library", lambda name: None)
    monkeypatch.setattr(opening, "DRIVER_FILES", (tmp_path / "version",))
    assert "no NVIDIA driver" in refused(CODE, tmp_path / "tune.db")
    (tmp_path / "version").touch()
    check_run(CODE, tmp_path / "tune.db", "cuda:0")


@pytest.mark.usefixtures("equipped")
def test_a_database_that_can_not_be_written_is_refused(tmp_path: Path) -> None:
    other = tmp_path / "notes.txt"
    other.write_text("not a database at all, but long enough to look at " * 20)
    assert "can't be written" in refused(CODE, other / "tune.db")
    assert "notes.txt" in refused(CODE, other)


def test_a_demo_that_can_not_be_unpacked_is_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("XDG_DATA_HOME", "/proc/none")
    with pytest.raises(BadInput, match="set XDG_DATA_HOME"):
        demo_path()
    with pytest.raises(BadInput, match="set XDG_DATA_HOME"):
        open_source(arguments_parser().parse_args(["--demo"]))


@pytest.mark.parametrize("order", [["--replay", "DB"], ["DB", "--replay"]], ids=" ".join)
def test_a_recorded_database_is_replayed_as_the_demo_is(order: list[str], tmp_path: Path) -> None:
    path = demo_database(tmp_path)
    words = [str(path) if word == "DB" else word for word in order]
    source = open_source(arguments_parser().parse_args([*words, "--pace", "0", "--patience", "1"]))
    assert source is not None
    events: list[Event] = []
    with closing(source):
        assert (source.mode, source.title, source.database) == (Mode.REPLAY, path.name, str(path))
        ends = time.monotonic() + 60
        while not any(isinstance(event, RunFinished) for event in events):
            assert time.monotonic() < ends
            events += source.drain(5000)
    started = next(event for event in events if isinstance(event, RunStarted))
    assert (started.device, started.database) == ("replay", str(path))


def without_rows(path: Path) -> Path:
    Store.open(path).close()
    return path


@pytest.mark.parametrize("made", [without_rows, fill], ids=["empty", "no program to the end"])
def test_a_database_without_a_recorded_program_is_not_replayed(made: object, tmp_path: Path) -> None:
    path = made(tmp_path / "a b.db")  # type: ignore[operator]
    with pytest.raises(BadInput, match=r"holds no measured program to replay; .* emmy-tui '.*a b\.db'$"):
        open_source(arguments_parser().parse_args(["--replay", str(path)]))


def test_a_replay_without_any_database_is_refused(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("XDG_DATA_HOME", str(tmp_path))
    with pytest.raises(BadInput, match="no database yet to replay: name one, or watch the demo"):
        open_source(arguments_parser().parse_args(["--replay"]))
