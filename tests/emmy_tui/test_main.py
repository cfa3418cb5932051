"""The command line: what it refuses and how, and what works without a screen."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

from emmy_tui import terminal
from emmy_tui.main import BAD_INPUT, arguments_parser, check, main, sibling_command
from engine import __version__
from tests.emmy_tui.recorded import record
from tests.emmy_tui.scripted import search_events

LEAN = """
import sys
sys.argv = ["emmy-tui", *sys.argv[1:]]
from emmy_tui.main import main
try:
    main()
finally:
    heavy = [name for name in ("textual", "rich", "numpy", "sqlite_utils", "engine.session") if name in sys.modules]
    print("heavy:", heavy)
"""


@pytest.mark.parametrize("option", ["--help", "--version"])
def test_help_and_version_import_nothing_heavy(option: str) -> None:
    done = subprocess.run([sys.executable, "-c", LEAN, option], capture_output=True, text=True, check=True)
    assert "heavy: []" in done.stdout
    assert (__version__ if option == "--version" else "emmy-tui --demo") in done.stdout


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        (["x.db", "--demo"], "exclude each other"),
        (["--code", " "], "--code is empty"),
        (["--code", "f(x)", "--read-only"], "leave --read-only away"),
        (["--db", "x.db"], "without --db"),
        (["x.db", "--pace", "1"], "give it with --demo or --replay"),
        *((["--replay", *other], "without --code and --demo") for other in (["--demo"], ["--code", "f(x)"])),
        (["--replay", "x.db", "--db", "y.db"], "without --db"),
        (["--replay", "missing.db", "--once"], "missing.db"),
        (["missing.db"], "missing.db"),
        (["--code", "f(x)", "--once"], "emmy tune --code 'f(x)'"),
        (["missing.db", "--once"], "missing.db"),
    ],
)
def test_bad_input_is_one_sentence(arguments: list[str], words: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(arguments) == BAD_INPUT
    output = capsys.readouterr()
    assert output.out == ""
    assert words in output.err
    assert output.err.count("\n") == 1


def test_once_refuses_a_broken_config(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (tmp_path / "bad.toml").write_text("fps = [")
    assert main(["--once", "--config", str(tmp_path / "bad.toml"), "x.db"]) == BAD_INPUT
    output = capsys.readouterr()
    assert (output.out, output.err.count("\n")) == ("", 1)
    assert "bad.toml is no TOML" in output.err


def test_no_folder_is_made_for_a_log_that_was_named(tmp_path: Path) -> None:
    with pytest.raises(FileNotFoundError):
        terminal.open_log(tmp_path / "none" / "x.log")
    assert not (tmp_path / "none").exists()
    os.close(terminal.open_log(tmp_path / "own" / "x.log", make_folder=True))


def test_a_pipe_that_nobody_reads_is_no_log_and_one_that_is_read_is(tmp_path: Path) -> None:
    os.mkfifo(tmp_path / "pipe")
    with pytest.raises(OSError, match="it is a pipe that nobody reads"):
        terminal.open_log(tmp_path / "pipe")
    reader = os.open(tmp_path / "pipe", os.O_RDONLY | os.O_NONBLOCK)
    log = terminal.open_log(tmp_path / "pipe")
    assert os.get_blocking(log)
    os.write(log, b"said")
    assert os.read(reader, 9) == b"said"
    os.close(log)
    os.close(reader)


def test_a_file_of_another_kind_is_refused(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    path = tmp_path / "notes.txt"
    path.write_text("not a database at all, but long enough to look at " * 20)
    assert main([str(path), "--once"]) == BAD_INPUT
    assert "notes.txt" in capsys.readouterr().err


@pytest.mark.parametrize(
    "arguments",
    [
        *(["--fps", "0"], ["--fps", "99"], ["--fps", "x"], ["--pace", "-1"], ["--pace", "nan"], ["--patience", "0"]),
        *(["--patience", "9" * 20], ["--seed", "-1"], ["--seed", "9" * 20], ["--nonsense"]),
    ],
    ids=" ".join,
)
def test_numbers_out_of_range_are_refused(arguments: list[str], capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit) as ended:
        main(arguments)
    assert ended.value.code == BAD_INPUT
    said = capsys.readouterr().err
    assert arguments[0] in said
    assert said.startswith("emmy-tui: ")
    assert said.endswith("; see `emmy-tui --help`\n")
    assert said.count("\n") == 1


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        (["--patience", "1e3"], "'1e3' is no whole number"),
        (["--seed", "x" * 200], "xx' is no whole number"),
        (["--patience", "9" * 5000], "is no whole number"),
        (["--fps", "fast"], "'fast' is no number"),
        (["--pace", ""], "'' is no number"),
    ],
    ids=lambda given: str(given)[:20],
)
def test_what_is_no_number_is_said_so(arguments: list[str], words: str, capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit):
        main(arguments)
    said = capsys.readouterr().err
    assert words in said
    assert "_" not in said
    assert len(said) < 200


@pytest.mark.parametrize("encoding", ["latin-1", "ascii", "cp1252", "utf-8"])
def test_once_prints_on_what_is_no_utf_8(encoding: str, tmp_path: Path) -> None:
    path = tmp_path / "r\u016fn.db"
    record(path, search_events(), target="softmax(\u2605)")
    done = subprocess.run(
        [sys.executable, "-m", "emmy_tui.main", "--once", str(path)],
        capture_output=True,
        env={**os.environ, "PYTHONIOENCODING": encoding, "PYTHONUTF8": "1"},
    )
    assert done.returncode == 0, done.stderr
    text = done.stdout.decode(encoding)
    assert "kernels" in text
    assert ("\u25cf" in text or "\u03a3" in text) == (encoding == "utf-8")


@pytest.mark.parametrize(
    ("arguments", "command"),
    [
        (["--code", "f(x)"], "emmy tune --code 'f(x)'"),
        (["--code", "f", "--db", "a b.db"], "emmy tune --code f --db 'a b.db'"),
        (["--demo"], "emmy tune --demo"),
        (["--replay", "run.db", "--pace", "1"], "emmy tune --device replay --db run.db"),
        (["run.db", "--replay"], "emmy tune --device replay --db run.db"),
        (["--replay"], "emmy tune --device replay"),
        (["run.db"], "emmy eval variants --db run.db"),
        ([], "emmy eval variants"),
    ],
)
def test_the_command_without_a_screen(arguments: list[str], command: str) -> None:
    options = arguments_parser().parse_args(arguments)
    check(options)
    assert sibling_command(options) == command


def test_without_a_terminal_it_names_the_command_to_use(tmp_path: Path) -> None:
    path = tmp_path / "run.db"
    done = subprocess.run(
        [sys.executable, "-m", "emmy_tui.main", str(path)], capture_output=True, text=True, stdin=subprocess.DEVNULL
    )
    assert done.returncode == BAD_INPUT
    assert done.stdout == ""
    assert "\x1b" not in done.stderr
    assert done.stderr.count("\n") == 1
    assert f"emmy eval variants --db {path}" in done.stderr


@pytest.mark.parametrize("ascii_only", [False, True])
def test_once_prints_a_plain_frame(ascii_only: bool, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    path = tmp_path / "run.db"
    record(path, search_events())
    assert main([str(path), "--once", *(["--ascii"] if ascii_only else [])]) == 0
    text = capsys.readouterr().out
    assert "\x1b" not in text
    for words in (
        "BROWSE  finished",
        "NVIDIA H200",
        "linear_gelu",
        "209.2",
        "measured 147",
        "assembled 7493 us",
        "5/5",
    ):
        assert words in text
    assert text.isascii() == ascii_only


def test_once_without_a_database_says_what_to_do(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setenv("XDG_DATA_HOME", str(tmp_path))
    assert main(["--once"]) == BAD_INPUT
    assert "emmy tune --code" in capsys.readouterr().err


@pytest.mark.skipif(not Path("/dev/full").exists(), reason="this system has no /dev/full")
@pytest.mark.parametrize("option", ["--once", "--print-config"])
def test_output_that_can_not_be_written_is_one_sentence(option: str, tmp_path: Path) -> None:
    path = tmp_path / "run.db"
    record(path, search_events())
    with open("/dev/full", "w") as full:
        command = [sys.executable, "-m", "emmy_tui.main", str(path), option]
        done = subprocess.run(command, stdout=full, stderr=subprocess.PIPE, text=True)
    assert done.returncode == 1
    assert done.stderr == "emmy-tui: stdout can't be written: No space left on device\n"


CLOSED = """
import os, sys
for number in map(int, sys.argv[1].split()):
    os.close(number)
os.execv(sys.executable, [sys.executable, "-m", "emmy_tui.main", *sys.argv[2:]])
"""


def with_closed(streams: str, arguments: list[str]) -> subprocess.CompletedProcess[str]:
    command = [sys.executable, "-c", CLOSED, streams, *arguments]
    return subprocess.run(command, stdin=subprocess.DEVNULL, capture_output=True, text=True, timeout=60)


@pytest.mark.parametrize("streams", ["0", "1", "2", "0 1"])
@pytest.mark.parametrize("arguments", [["--demo"], ["DB"], ["--code", "torch.relu(torch.randn(4))"]])
def test_a_screen_is_refused_where_a_stream_is_closed(streams: str, arguments: list[str], tmp_path: Path) -> None:
    done = with_closed(streams, [argument.replace("DB", str(tmp_path / "run.db")) for argument in arguments])
    assert done.returncode == BAD_INPUT
    said = done.stdout if "2" in streams else done.stderr
    assert said.startswith("emmy-tui: emmy-tui needs a terminal; use ")
    assert said.count("\n") == 1


def test_where_every_stream_is_closed_the_status_tells() -> None:
    done = with_closed("0 1 2", ["--demo"])
    assert (done.returncode, done.stdout, done.stderr) == (BAD_INPUT, "", "")


@pytest.mark.parametrize("option", ["--once", "--print-config"])
def test_what_is_printed_needs_stdout_alone(option: str, tmp_path: Path) -> None:
    path = tmp_path / "run.db"
    record(path, search_events())
    refused = with_closed("1", [str(path), option])
    assert refused.returncode == BAD_INPUT
    assert refused.stderr == "emmy-tui: stdout is closed, and what you ask for is printed there\n"
    for streams in ("0", "2"):
        done = with_closed(streams, [str(path), option])
        assert (done.returncode, done.stderr) == (0, "")
        assert done.stdout


def test_a_misspelt_option_is_told_where_stderr_is_closed() -> None:
    done = with_closed("2", ["--nonsense"])
    assert done.returncode == BAD_INPUT
    assert done.stdout == "emmy-tui: unrecognized arguments: --nonsense; see `emmy-tui --help`\n"


def test_the_help_says_what_a_seed_does() -> None:
    text = " ".join(arguments_parser().format_help().split())
    assert "0 follows the prior as it is; another number takes another path, always the same one" in text
