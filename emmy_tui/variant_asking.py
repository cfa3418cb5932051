"""What is asked of one row of the Variants tab: the row in full, its machine code, the command that measures it, and
why the search took it."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import Any, ClassVar

from textual.app import App
from textual.binding import Binding, BindingType

from emmy_tui.action import VARIANTS
from emmy_tui.assembling import assembly_lines, compiled, missing_compiler, read_compilable
from emmy_tui.best import leaf_of
from emmy_tui.desk import Desk
from emmy_tui.dialogs import Reading, Text
from emmy_tui.outlet import Outlet, command_text
from emmy_tui.variant_detail import DETAIL_WIDEST, Detail, command_of, detail_lines, search_command
from emmy_tui.view import View
from emmy_tui.why import why_lines
from engine.deploy import Listed
from engine.store import Candidate, Store
from engine.vocabulary import Schedule, Target

CODE = "code"


class VariantReading(Reading):
    """A variant in full, from which its machine code is asked for."""

    BINDINGS: ClassVar[list[BindingType]] = [Binding("a", f"answer('{CODE}')", show=False, id="assemble")]

    def __init__(self, view: View, lines: Text) -> None:
        counts = f"{view.key('assemble')} counts PTX and SASS"
        super().__init__(view, lines, "Variant", f"{counts}  esc closes", DETAIL_WIDEST)


def open_detail(detail: Detail, view: View, app: App[Any], code: Callable[[], None]) -> None:
    """Show the row in full; `code` is called where its machine code is asked for."""

    def answered(word: str | None) -> None:
        if word == CODE:
            code()

    app.push_screen(VariantReading(view, partial(detail_lines, detail, glyphs=view.glyphs)), answered)


def assemble(row: Candidate, view: View, app: App[Any], desk: Desk, outlet: Outlet) -> None:
    """Compile the row on a thread of its own; what comes of it is shown where a person still looks at the tab."""

    def compile_(read: tuple[Listed, Target]) -> None:
        listed, target = read
        if not missing_compiler():
            outlet.say(f"compiling for sm_{target.capability}; this takes some seconds")
        desk.aside(lambda: compiled(listed, target), lambda found: show(found, target), outlet.warn)

    def show(found: Listed, target: Target) -> None:
        if len(app.screen_stack) > 1 or view.tab != VARIANTS:
            key, tab = view.key("assemble"), view.key("tab_variants")
            outlet.say(f"the variant is compiled; {key} on the Variants tab ({tab}) shows it again")
            return
        lines = partial(assembly_lines, found, target, glyphs=view.glyphs)
        app.push_screen(Reading(view, lines, "Machine code", widest=DETAIL_WIDEST))

    desk.ask("assembly", read_compilable(row), compile_, outlet.warn)


def copy_command(row: Candidate, name: str, desk: Desk, outlet: Outlet) -> None:
    """Copy the command that measures exactly this row; where none does, that of its search, called so. `name` is the
    kernel's."""

    def copy(commands: tuple[str, str]) -> None:
        command, search = commands
        if not (command or search):
            outlet.warn("no run says how this row was measured")
            return
        what = f"command of {name}"
        what = what if command else f"its search's {what}, as no program of the database runs this kernel,"
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
        app.push_screen(Reading(view, lambda width: why_lines(view, width, leaf), "Why", widest=100))
    else:
        outlet.warn("the shown runs kept no search tree of this kernel")
