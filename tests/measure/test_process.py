"""Children start with nothing of the user's in the way, die as a group, and say how they died."""

from __future__ import annotations

import os
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from engine.measure.channel import ChannelClosed
from engine.measure.process import LOG_LIMIT_BYTES, Nursery, entry_command
from tests.measure.rig import settled


@pytest.fixture
def nursery() -> Iterator[Nursery]:
    opened = Nursery()
    yield opened
    opened.close()


def python(code: str) -> tuple[str, ...]:
    return (sys.executable, "-c", code)


@pytest.mark.parametrize(
    ("code", "death"),
    [
        ("import os; os.abort()", "SIGABRT"),
        ("import ctypes; ctypes.string_at(0)", "SIGSEGV"),
        ("raise SystemExit(3)", "exit code 3"),
        ("pass", "exit code 0"),
    ],
)
def test_how_a_child_died(nursery: Nursery, code: str, death: str) -> None:
    child = nursery.start(python(code), "child")
    with pytest.raises(ChannelClosed):
        child.channel.receive(10)
    assert child.death() == death
    nursery.bury(child)


def test_a_dead_leader_takes_its_group_along(nursery: Nursery) -> None:
    code = "import subprocess, sys; subprocess.Popen([sys.executable, '-c', 'import time; time.sleep(1000)'])"
    child = nursery.start(python(code), "child")
    with pytest.raises(ChannelClosed):
        child.channel.receive(10)
    assert child.death() == "exit code 0"
    nursery.bury(child)
    assert settled(nursery.folder, 1), "the caretaker"


def test_what_a_child_prints_is_kept_for_a_message_and_bounded(nursery: Nursery) -> None:
    child = nursery.start(python("print('first'); print('the reason')"), "child")
    child.death()
    assert child.last_line() == "the reason"
    log = nursery.folder / "child.log"
    with log.open("ab") as file:
        file.truncate(LOG_LIMIT_BYTES + 1)
    child.trim_log()
    assert log.stat().st_size == 0
    assert child.last_line() == ""
    nursery.bury(child)


def test_a_child_prints_where_it_is_told_to_in_the_environment_that_it_is_given(
    nursery: Nursery, tmp_path: Path
) -> None:
    code = "import os; print(sorted(name for name in os.environ if name.startswith('TRITON')), os.environ['MINE'])"
    with (tmp_path / "log").open("w") as log:
        environment = {"MINE": "kept", "TRITON_DEBUG": "1"}
        child = nursery.start(python(code), "child", output=log.fileno(), environment=environment)
        assert child.death() == "exit code 0"
    nursery.bury(child)
    assert (tmp_path / "log").read_text() == "['TRITON_DEBUG'] kept\n"
    assert child.last_line() == ""


def test_a_folder_with_an_engine_of_its_own_does_not_get_in_the_way(
    nursery: Nursery, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "engine.py").write_text("raise SystemExit('the wrong engine')")
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("PYTHONPATH", str(tmp_path))
    child = nursery.start(entry_command("engine.measure.compile_worker"), "child")
    assert child.channel.receive(60) == {"ready": True}
    nursery.bury(child)


def test_a_command_that_is_not_there_is_an_error_and_leaks_nothing(nursery: Nursery) -> None:
    before = len(os.listdir("/proc/self/fd"))
    with pytest.raises(OSError, match="no-such-program"):
        nursery.start(("/no-such-program",), "child")
    assert len(os.listdir("/proc/self/fd")) == before


def test_closing_removes_the_folder_and_what_was_forgotten() -> None:
    nursery = Nursery()
    nursery.start(python("import time; time.sleep(1000)"), "forgotten")
    nursery.close()
    nursery.close()
    assert settled(nursery.folder)
    assert not nursery.folder.exists()
