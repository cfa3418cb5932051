"""What the palette finds beside the actions: every kernel by its name, on two tabs, and the runs of the database."""

from __future__ import annotations

import asyncio
import re
from collections.abc import Callable, Iterator, Sequence
from typing import TYPE_CHECKING, cast

from textual.app import SystemCommand
from textual.command import DiscoveryHit, Hit, Hits, Provider
from textual.content import Content
from textual.system_commands import SystemCommandsProvider

from emmy_tui import format as fmt
from emmy_tui.action import LIVE, VARIANTS
from emmy_tui.actions import ACTIONS, Keys
from emmy_tui.comparison import listed_runs
from emmy_tui.pressing import NOT_NOW, palette_title
from emmy_tui.text import clean
from emmy_tui.widgets.kernel_name import told_apart
from engine.store import StoredRun

if TYPE_CHECKING:
    from emmy_tui.app import EmmyApp

Found = tuple[str, str, Callable[[], None]]
"""What is searched, what choosing it does in words, and the doing."""
WORDS = 10.0
"""What words that are in a name are worth more than letters that are scattered over it."""
LEAST = 3
"""Letters from which a query is looked for in what actions mean: fewer begin a word of every other one."""
MEANT = 5.0
"""What words of an action's meaning are worth: less than those of a name, more than scattered letters."""
ACTION, NOT_NOW_ACTION, FOUND = 3.0, 2.0, 1.0
"""What comes before what, where it matches alike: actions that work, those that don't now, kernels and runs."""
PATIENCE_S = 2.0
"""How long the palette waits for the database, whose runs are found from then on only if it answered."""


def ranked(rank: float, query: str, text: str, score: float) -> float:
    """Where a hit stands: words before scattered letters, then by its rank, then by Textual's score (above 0)."""
    return (WORDS if has_words(query, text) else 0.0) + rank + score / (1.0 + score)


def has_words(query: str, text: str) -> bool:
    """Whether the query is how a word of the text and those behind it begin, whatever stands between them."""
    wanted = "".join(re.findall(r"\w+", query.casefold()))
    words = re.findall(r"\w+", text.casefold())
    return bool(wanted) and any("".join(words[start:]).startswith(wanted) for start in range(len(words)))


def meanings_of(keys: Keys) -> dict[str, str]:
    """What the actions mean, by their titles here; those of one title together."""
    meanings: dict[str, str] = {}
    for action in ACTIONS:
        title = palette_title(action, keys)
        meanings[title] = f"{meanings.get(title, '')} {action.meaning}"
    return meanings


class Commands(SystemCommandsProvider):
    """The actions of the table: those that work now by their names, then those that don't."""

    def _commands(self) -> list[SystemCommand]:
        every = self.app.get_system_commands(self.screen)
        return sorted(every, key=lambda command: (command.help.startswith(NOT_NOW), command.title))

    async def discover(self) -> Hits:
        for command in self._commands():
            yield DiscoveryHit(command.title, command.callback, help=command.help)

    async def search(self, query: str) -> Hits:
        matcher = self.matcher(query)
        meanings = meanings_of(cast("EmmyApp", self.app).view.keys)
        for command in self._commands():
            score = matcher.match(command.title)
            meant = MEANT if len(query) >= LEAST and has_words(query, meanings.get(command.title, "")) else 0.0
            if score > 0 or meant:
                rank = NOT_NOW_ACTION if command.help.startswith(NOT_NOW) else ACTION
                yield Hit(
                    max(ranked(rank, query, command.title, score), rank + meant),
                    matcher.highlight(command.title),
                    command.callback,
                    help=command.help,
                )


class Findings(Provider):
    """Found by typing alone: a list of hundreds of kernels would bury the actions."""

    _runs: Sequence[tuple[StoredRun, str]] = ()

    @property
    def _emmy(self) -> EmmyApp:
        return cast("EmmyApp", self.app)

    async def startup(self) -> None:
        """Ask the database for its runs."""
        app = self._emmy
        if app.source is None or app.source.locate is None:
            return
        answer: asyncio.Future[list[tuple[StoredRun, str]]] = asyncio.get_running_loop().create_future()

        def answered(runs: list[tuple[StoredRun, str]]) -> None:
            if not answer.done():
                answer.set_result(runs)

        now, followed, lost = app.view.now, app.view.followed, app.view.lost
        app.desk.ask(
            "palette",
            lambda store: listed_runs(store, now, followed, lost=lost),
            answered,
            lambda sentence: answered([]),
        )
        try:
            self._runs = await asyncio.wait_for(answer, PATIENCE_S)
        except TimeoutError:
            self._runs = ()

    async def search(self, query: str) -> Hits:
        matcher = self.matcher(query)
        for text, help_, act in (*self._kernels(), *self._stored_runs()):
            if (score := matcher.match(text)) > 0:
                yield Hit(ranked(FOUND, query, text, score), Content(text), act, text, help_)

    def _kernels(self) -> Iterator[Found]:
        app = self._emmy
        rows = app.view.snapshot.kernels.values()
        names = {row.kernel: f"{row.label or row.family} {row.shape}" for row in rows}
        apart = told_apart(names.items())
        for row in rows:
            name = clean(f"{names[row.kernel]} {apart[row.kernel]}".rstrip(), app.view.glyphs)
            yield f"Kernel: {name}", "Show it on the Live tab", self._shown(row.kernel, LIVE)
            yield f"Variants: {name}", "Every measurement of this kernel", self._shown(row.kernel, VARIANTS)

    def _shown(self, kernel: str, tab: str) -> Callable[[], None]:
        return lambda: self._emmy.jump_to_kernel(kernel, tab)

    def _stored_runs(self) -> Iterator[Found]:
        for run, state in self._runs:
            text = f"Load run: {run.id[:8]} {fmt.moment(run.started_at)} {run.target}"
            help_ = f"{state}, {run.gpu}; {self._emmy.view.key('earlier')} comes back"
            yield clean(text, self._emmy.view.glyphs), clean(help_, self._emmy.view.glyphs), self._loaded(run)

    def _loaded(self, run: StoredRun) -> Callable[[], None]:
        return lambda: self._emmy.load_run(run)
