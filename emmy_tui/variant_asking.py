"""What is asked of one row of the Variants tab: the command that measures it, and why the search took it."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from textual.app import App

from emmy_tui.best import leaf_of
from emmy_tui.desk import Desk
from emmy_tui.dialogs import Reading
from emmy_tui.outlet import Outlet, command_text
from emmy_tui.variant_detail import command_of, search_command
from emmy_tui.view import View
from emmy_tui.why import why_lines
from engine.store import Candidate, Store
from engine.vocabulary import Schedule


def copy_command(row: Candidate, desk: Desk, outlet: Outlet) -> None:
    """Copy the command that measures exactly this row; where none does, that of its search, called so."""

    def copy(commands: tuple[str, str]) -> None:
        command, search = commands
        if not (command or search):
            outlet.warn("no run says how this row was measured")
            return
        what = "command" if command else "its search's command, as no program of the database runs this kernel,"
        try:
            outlet.copy(command_text(command or search), what)
        except ValueError:
            outlet.warn("the recorded command is none that a shell can be given, so it is not copied")

    desk.ask("command", _read_commands(row), copy, outlet.warn)


def _read_commands(row: Candidate) -> Callable[[Store], tuple[str, str]]:
    return lambda store: (command_of(store, row), search_command(store, row))


def show_why(row: Candidate, view: View, app: App[Any], outlet: Outlet) -> None:
    """Why the search took the row: of its leaf, else of the last branch of the tree on the way to it."""
    leaf = leaf_of(view.snapshot, row.kernel, str(Schedule.of(row.schedule)))
    if leaf:
        lines = why_lines(view, max(30, min(100, app.size.width - 6)), leaf)
        app.push_screen(Reading(view, lines, "Why"))
    else:
        outlet.warn("the shown runs kept no search tree of this kernel")
