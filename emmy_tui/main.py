"""The `emmy-tui` command: its options, what it refuses, and how it gives the terminal back.

`--help`, `--version` and a refusal answer at once: what loads Textual (half a second) or the engine's rooms (SQL and
numpy, a quarter) is imported by the function that needs it, when it is known that there will be a screen or a frame.
`emmy_tui.opening` holds what is made of the options then.
"""

from __future__ import annotations

import argparse
import contextlib
import dataclasses
import logging
import os
import shlex
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, NoReturn

from emmy_tui import terminal
from emmy_tui.config import BadConfig
from emmy_tui.refusal import BadInput
from emmy_tui.supervising import outlived, supervise
from engine import __version__

if TYPE_CHECKING:
    from emmy_tui.config import Config
    from emmy_tui.source import Source

FAILED = 1
BAD_INPUT = 2
CLOSE_S, TOLD_TO_LEAVE_CLOSE_S = 3.0, 0.4
"""How long the engine may take to end. Who sends a signal, or has closed the terminal, waits for the processes to be
gone: what they started is ended by its caretaker then."""

LARGEST = 2**31 - 1
"""The largest count or seed: what a database and every random generator can hold."""

PACE_HELP = "seconds that a candidate of --demo or --replay takes (default: 0.12)"
PATIENCE_HELP = "candidates without a new best that end a kernel's search (default: 50)"
SEED_HELP = "0 follows the prior as it is; another number takes another path, always the same one (default: 0)"
EXAMPLES = """\
ways in:
  emmy-tui --demo             replay a recorded search; no GPU needed
  emmy-tui --replay FILE.db   replay the searches that a database recorded; no GPU needed
  emmy-tui FILE.db            look through a database, or watch the run that writes it
  emmy-tui --code "torch.softmax(torch.randn(4096, 4096, device='cuda'), -1)"
                              tune a PyTorch expression on the GPU of this machine
"""


class _Parser(argparse.ArgumentParser):
    """What can't be understood is one sentence, as every other refusal is."""

    def error(self, message: str) -> NoReturn:
        _tell(f"{message}; see `{self.prog} --help`")
        raise SystemExit(BAD_INPUT)


def arguments_parser() -> argparse.ArgumentParser:
    parser = _Parser(
        prog="emmy-tui",
        description="Watch a kernel search: live, replayed, or from its database.",
        epilog=EXAMPLES,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    parser.add_argument("database", nargs="?", type=Path, metavar="DB", help="database to look through or to watch")
    parser.add_argument("--code", metavar="TEXT", help="Python text to tune here: its last statement is a call")
    parser.add_argument("--demo", action="store_true", help="replay the recorded demo search")
    parser.add_argument("--replay", action="store_true", help="search again in what DB recorded (default: the user's)")
    parser.add_argument("--db", type=Path, metavar="PATH", help="database that --code writes (default: the user's)")
    parser.add_argument("--device", default="cuda:0", metavar="NAME", help="device of --code (default: cuda:0)")
    parser.add_argument("--pace", type=_not_negative, metavar="S", help=PACE_HELP)
    parser.add_argument("--patience", type=_at_least_one, default=50, metavar="N", help=PATIENCE_HELP)
    parser.add_argument("--seed", type=_seed, default=0, metavar="N", help=SEED_HELP)
    parser.add_argument("--read-only", action="store_true", help="never write to the database")
    parser.add_argument("--fps", type=_frames, metavar="N", help="redraws a second, 1 to 30 (default: 4, over SSH 2)")
    parser.add_argument("--ascii", action="store_true", help="draw with ASCII only")
    parser.add_argument("--theme", metavar="NAME", help="dark, light, terminal (its own colours), or a Textual theme")
    parser.add_argument("--light", action="store_true", help="colors for a light terminal; the same as --theme light")
    parser.add_argument("--once", action="store_true", help="print one plain frame and exit")
    parser.add_argument("--log-file", type=Path, metavar="PATH", help="where the log and stray output go")
    parser.add_argument(
        "--config", type=Path, metavar="PATH", help="config file (default: in the user's config folder)"
    )
    parser.add_argument("--print-config", action="store_true", help="print the settings as a config file and exit")
    parser.set_defaults(log=None)  # the fd of the log, once that is open
    parser.add_argument("--version", action="version", version=f"emmy-tui {__version__}")
    return parser


def _number(text: str) -> float:
    try:
        return float(text)
    except ValueError:
        raise argparse.ArgumentTypeError(f"{text[:40]!r} is no number") from None


def _whole_number(text: str) -> int:
    try:
        return int(text)
    except ValueError:
        raise argparse.ArgumentTypeError(f"{text[:40]!r} is no whole number, written out as 1000 is") from None


def _not_negative(text: str) -> float:
    value = _number(text)
    if not 0 <= value <= 3600:
        raise argparse.ArgumentTypeError(f"{text} is not between 0 and 3600 seconds")
    return value


def _at_least_one(text: str) -> int:
    value = _whole_number(text)
    if not 1 <= value <= LARGEST:
        raise argparse.ArgumentTypeError(f"{text} is not between 1 and {LARGEST}")
    return value


def _seed(text: str) -> int:
    value = _whole_number(text)
    if not 0 <= value <= LARGEST:
        raise argparse.ArgumentTypeError(f"{text} is not between 0 and {LARGEST}")
    return value


def _frames(text: str) -> float:
    value = _number(text)
    if not 1 <= value <= 30:
        raise argparse.ArgumentTypeError(f"{text} is not between 1 and 30")
    return value


def main(arguments: Sequence[str] | None = None) -> int:
    """Run the command; returns the exit status: 0 ok, 1 failed, 2 bad input, 128 + n after a signal."""
    options = arguments_parser().parse_args(arguments)
    try:
        check(options)
        if options.print_config:
            from emmy_tui.preferences import printed

            return put_out(printed(_configured(options)))
        return print_once(options) if options.once else run(options)
    except BadInput as refused:
        _tell(str(refused))
        return BAD_INPUT
    except KeyboardInterrupt:
        return 130


def _tell(sentence: str) -> None:
    """One sentence on stderr, or on stdout where that was closed; where its terminal has gone nobody can read it."""
    stream = sys.stderr if sys.stderr is not None else sys.stdout
    if stream is not None:
        with contextlib.suppress(OSError, ValueError):
            print(f"emmy-tui: {sentence}", file=stream, flush=True)


def _configured(options: argparse.Namespace) -> Config:
    from emmy_tui.preferences import configured

    try:
        return configured(options, os.environ)
    except BadConfig as error:
        raise BadInput(str(error)) from None


def check(options: argparse.Namespace) -> None:
    """Raise BadInput for options that contradict each other."""
    ways = [name for name in ("database", "code", "demo") if getattr(options, name)]
    if len(ways) > 1:
        raise BadInput("DB, --code and --demo exclude each other: give one of them")
    if options.replay and (options.code is not None or options.demo):
        raise BadInput("--replay searches again over what DB recorded: give it without --code and --demo")
    if options.code is not None and not options.code.strip():
        raise BadInput("--code is empty: give an expression such as torch.softmax(torch.randn(64, 64), -1)")
    if options.theme and options.light:
        raise BadInput("--theme and --light exclude each other: give one of them")
    if options.read_only and options.code:
        raise BadInput("--code writes what it measures: leave --read-only away, or open a database instead")
    if options.db is not None and not options.code:
        raise BadInput("--db names the database that --code writes; to look through one, give it without --db")
    if options.pace is not None and not (options.demo or options.replay):
        raise BadInput("--pace slows a replay down: give it with --demo or --replay")


def sibling_command(options: argparse.Namespace) -> str:
    """The command line that does the same without a screen."""
    if options.code:
        database = ["--db", str(options.db)] if options.db else []
        return shlex.join(["emmy", "tune", "--code", options.code, *database])
    if options.demo:
        return "emmy tune --demo"
    database = ["--db", str(options.database)] if options.database else []
    verb = ["tune", "--device", "replay"] if options.replay else ["eval", "variants"]
    return shlex.join(["emmy", *verb, *database])


def print_once(options: argparse.Namespace) -> int:
    """Print what the database says now, as plain text."""
    if options.code:
        raise BadInput(f"--once shows a database and starts no run; use {sibling_command(options)}")
    from emmy_tui.opening import frame_of

    options.ascii = _configured(options).ascii or not _prints_glyphs()

    return put_out(frame_of(options))


def put_out(text: str) -> int:
    """Write to stdout; returns the exit status. A reader that has gone wants no sentence, a full disk does.

    Raises BadInput where stdout was closed by whoever started this.
    """
    if sys.stdout is None:
        raise BadInput("stdout is closed, and what you ask for is printed there")
    try:
        sys.stdout.write(_printable(text, sys.stdout.encoding or "utf-8"))
        sys.stdout.flush()
    except OSError as error:
        with contextlib.suppress(OSError, ValueError):  # else the interpreter tries again as it ends
            os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        if not isinstance(error, BrokenPipeError):
            _tell(f"stdout can't be written: {error.strerror or error}")
        return FAILED
    return 0


def _prints_glyphs() -> bool:
    """Whether what the frame draws with can be written to stdout as it is."""
    from emmy_tui.text import UNICODE

    drawn = "".join(str(one) for one in dataclasses.astuple(UNICODE))
    encoding = sys.stdout.encoding if sys.stdout is not None else None
    return _printable(drawn, encoding or "utf-8") == drawn


def _printable(text: str, encoding: str) -> str:
    """With an escape in place of each character that the encoding of stdout doesn't have."""
    return text.encode(encoding, "backslashreplace").decode(encoding)


def open_source(options: argparse.Namespace) -> Source | None:
    """What the options ask for, or BadInput where it can be known beforehand that it can't be had."""
    from emmy_tui import opening

    return opening.open_source(options)


def run(options: argparse.Namespace) -> int:
    """Open the source, draw the screen, and give the terminal back; all of it in a process of its own, whose end the
    first one waits for."""
    reason = terminal.refuse_because(os.environ)
    if reason is not None:
        raise BadInput(f"{reason}; use {sibling_command(options)} or emmy-tui --once")
    config = _configured(options)
    options.read_only = config.read_only
    if config.read_only and options.code:
        raise BadInput("--code writes what it measures: take read_only out of the config, or open a database instead")
    log_file = Path(config.log_file) if config.log_file else terminal.default_log_file()
    if config.log_file and _is_database(log_file):
        raise BadInput(f"the log file {log_file} is a database, which a log would spoil; name another file")
    try:
        log = terminal.open_log(log_file, make_folder=not config.log_file)
    except OSError as error:
        if config.log_file:
            raise BadInput(f"the log file {log_file} can't be written: {error.strerror}") from None
        log = os.open(os.devnull, os.O_WRONLY)
    early, first = terminal.EarlySignals(log), os.getpid()
    ended = supervise(log, log_file)
    if ended is not None:
        return ended
    terminal.log_to(log)
    terminal.forget_size(os.environ)
    options.log = log
    source = open_source(options)
    with terminal.quiet_descriptors(log):
        status, crash, failure, unstored = _draw(source, options, config, early)
    for what in unstored:
        _tell(f"not stored, as the database could not be written in time: {what}")
    if failure:
        _tell(" ".join(failure.split()))
    if crash is not None:
        _tell(f"internal error: {crash}; the details are in {log_file}")
    if outlived(first):
        _tell("ended, since the process above it was killed; press enter for the shell's prompt")
    if _told_to_leave(status):
        os._exit(status)  # taking a large tree apart, or waiting for a thread, may take seconds
    return status


def _told_to_leave(status: int) -> bool:
    return status - 128 in terminal.LEAVING_SIGNALS


def _is_database(path: Path) -> bool:
    from engine.store import is_database

    return is_database(path)


def _draw(
    source: Source | None, options: argparse.Namespace, config: Config, early: terminal.EarlySignals
) -> tuple[int, str | None, str, tuple[str, ...]]:
    from emmy_tui import collecting
    from emmy_tui.app import EmmyApp
    from emmy_tui.driver import TerminalDriver
    from emmy_tui.opening import demo_source, replay_of, retune_source
    from emmy_tui.preferences import look_of
    from emmy_tui.text import clean

    look = look_of(config, os.environ)
    app = EmmyApp(
        source,
        look,
        demo=lambda: demo_source(options),
        launch=lambda path, wanted: retune_source(options, path, wanted),
        replays=lambda path, wanted: replay_of(options, path, wanted),
        early=early.kept,
    )
    early.hold()
    collecting.begin()
    app.run()
    status = app.return_code or 0
    if app.source is not None:
        terminal.within(TOLD_TO_LEAVE_CLOSE_S if _told_to_leave(status) else CLOSE_S, app.source.close)
    unstored = tuple(clean(what) for what in app.unstored)
    status = status or (FAILED if unstored else 0)
    if isinstance(app._driver, TerminalDriver) and app._driver.stuck:
        _leave_unsaid(status, unstored)
    return status, app.crash, clean(app.own_failure), unstored


def _leave_unsaid(status: int, unstored: Sequence[str]) -> NoReturn:
    """A terminal that takes nothing holds whoever writes there or closes it: what is to be said goes to the log."""
    for what in (*(f"not stored: {what}" for what in unstored), "the terminal takes nothing: it is left as it is"):
        logging.getLogger("emmy_tui").warning(what)
    os._exit(status)


if __name__ == "__main__":
    sys.exit(main())
