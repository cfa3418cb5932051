"""One sentence on stderr, the traceback in a file."""

from __future__ import annotations

import logging
from pathlib import Path

import pytest
import typer

from engine.cli import errors
from engine.prior import CheckpointError
from engine.store import StoreError
from engine.store.errors import StoreDamaged, StoreReadOnly


def fail(text: str) -> Exception:
    try:
        raise RuntimeError(text)
    except RuntimeError as error:
        return error


def test_a_complaint_is_one_line(capsys: pytest.CaptureFixture[str]) -> None:
    errors.complain("two\nlines, and \x1b[2J")
    assert capsys.readouterr().err == "emmy: two lines, and \\x1b[2J\n"


def test_bad_input_leaves_with_2(capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(typer.Exit) as left, errors.refusing(ValueError):
        raise ValueError("patience must be at least 1, not 0")
    assert left.value.exit_code == 2
    assert capsys.readouterr().err == "emmy: patience must be at least 1, not 0\n"


@pytest.mark.parametrize(
    "error", [StoreReadOnly("t.db can't be written"), CheckpointError("it can't be written", is_output=True)]
)
def test_an_output_that_cant_be_written_leaves_with_1(error: Exception, capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(typer.Exit) as left, errors.refusing(StoreError, CheckpointError):
        raise error
    assert left.value.exit_code == 1
    assert capsys.readouterr().err == f"emmy: {error}\n"


def test_other_errors_pass() -> None:
    with pytest.raises(KeyError), errors.refusing(ValueError):
        raise KeyError("x")


def test_a_traceback_goes_to_the_log(capsys: pytest.CaptureFixture[str], tmp_path: Path) -> None:
    errors.report_unexpected(fail("the cause"))
    said = capsys.readouterr().err
    assert said == f"emmy: unexpected RuntimeError: the cause; the traceback is in {errors.log_path()}\n"
    assert errors.log_path().is_relative_to(tmp_path)
    log = errors.log_path().read_text()
    assert "Traceback" in log
    assert "RuntimeError: the cause" in log


def test_the_log_grows_and_starts_afresh_when_it_is_long() -> None:
    errors.append_to_log("first")
    errors.append_to_log("second")
    assert "first" in errors.log_path().read_text()
    errors.append_to_log("x" * errors.LOG_BYTES)
    errors.append_to_log("last")
    assert errors.log_path().read_text().endswith("last\n")
    assert errors.log_path().stat().st_size < 100


def test_a_log_that_cannot_be_written_is_said(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (tmp_path / "xdg_state_home").write_text("a file in the way")
    errors.report_unexpected(fail("the cause"))
    assert "the cause; its traceback could not be written" in capsys.readouterr().err


def test_what_the_engine_logs_goes_to_the_file(capsys: pytest.CaptureFixture[str]) -> None:
    logger = logging.getLogger("engine.test_errors")
    handler = errors.LogFile()
    logger.addHandler(handler)
    try:
        logger.error("the engine thread failed", exc_info=fail("deep inside"))
    finally:
        logger.removeHandler(handler)
    assert "RuntimeError: deep inside" in errors.log_path().read_text()
    assert capsys.readouterr().err == ""


def test_a_damaged_database_is_bad_input_to_a_command_that_can_fail(capsys: pytest.CaptureFixture[str]) -> None:
    for error, code in ((StoreDamaged("x.db is damaged"), 2), (StoreError("nothing was measured"), 1)):
        with pytest.raises(typer.Exit) as left, errors.failing(StoreError):
            raise error
        assert left.value.exit_code == code
        assert capsys.readouterr().err == f"emmy: {error}\n"
