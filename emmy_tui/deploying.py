"""What each kernel would be built with now, and what says so: the question of `emmy explain`, for the screen."""

from __future__ import annotations

import time
from collections.abc import Callable, Collection, Sequence
from dataclasses import dataclass

from emmy_tui.desk import Desk
from emmy_tui.view import View
from engine.deploy import DeploymentError, Evidence, deploys_now, pin_context
from engine.prior import Prior, steering
from engine.snapshot import KernelRow
from engine.store import Store, StoreError
from engine.vocabulary import KnobValue, Schedule

QUESTION_S = 0.05
"""How long one question is answered for, so that what a person does meanwhile goes between."""


@dataclass(frozen=True, slots=True)
class Deploys:
    """One kernel. `lines` are what was looked at, strongest first, `whole` says that this is all there is: else nothing
    was predicted where something stronger decides. `chosen` is None where nothing is to choose, and `why` says why.
    `prior` names what predicts."""

    kernel: str
    label: str
    shape: str
    context_key: str = ""
    gpu: str = ""
    chosen: Evidence | None = None
    runner_up: Evidence | None = None
    lines: tuple[Evidence, ...] = ()
    prior: str = ""
    why: str = ""
    whole: bool = False

    @property
    def schedule(self) -> Schedule | None:
        return self.chosen.schedule if self.chosen else None

    @property
    def knobs(self) -> dict[str, KnobValue]:
        return self.chosen.schedule.as_dict() if self.chosen else {}


def read_deploys(wanted: Sequence[tuple[KernelRow, str]], *, whole: bool = False) -> Callable[[Store], list[Deploys]]:
    """The question that a desk answers of the first kernels, as many as can be answered in QUESTION_S: each in the
    context that it was measured in last, for the program of its run ("" for none)."""

    def question(store: Store) -> list[Deploys]:
        ends = time.monotonic() + QUESTION_S
        prior = steering(store.path).latest
        gpus = {one.key: one.gpu for one in store.contexts()}
        found: list[Deploys] = []
        for kernel, run in wanted:
            found.append(_read(store, kernel, run, prior, gpus, whole))
            if time.monotonic() > ends:
                break
        return found

    return question


def _read(store: Store, kernel: KernelRow, run: str, prior: Prior, gpus: dict[str, str], whole: bool) -> Deploys:
    key, label, shape = kernel.kernel, kernel.label or kernel.family, kernel.shape
    try:
        context = pin_context(store, key)
        found = deploys_now(store, key, context, prior, run, every_line=whole)
    except (DeploymentError, StoreError) as error:
        return Deploys(key, label, shape, why=str(error), whole=True)
    why = "" if found.chosen else "a library's call: there is no schedule to choose"
    evidence = (found.chosen, found.runner_up, found.lines)
    return Deploys(key, label, shape, context, gpus.get(context, ""), *evidence, prior.version, why, whole)


class Deploying:
    """Asks the desk for all kernels of the snapshot. What is `found`, by structural key, stays until its own answer has
    come; `changed` is called whenever one has. `wanted` counts the kernels, `said` why nothing can be read."""

    def __init__(self, view: View, desk: Desk, changed: Callable[[], None]) -> None:
        self.found: dict[str, Deploys] = {}
        self.wanted = 0
        self.said = ""
        self._view = view
        self._desk = desk
        self._changed = changed
        self._asked = 0
        self._asking = False
        self._queue: dict[str, KernelRow] = {}
        """Kernels that are to be asked for, in this order."""
        self._explained = ""

    def reset(self) -> None:
        self._asked += 1
        self._explained = ""
        self._queue, self.found, self.wanted = {}, {}, 0

    def ask(self) -> None:
        self._asked += 1
        self._explained = ""
        self._queue = dict(self._view.snapshot.kernels)
        self.wanted, self.said = len(self._queue), ""
        self._ask_some(self._asked)

    def ask_first(self, keys: Collection[str]) -> None:
        """These kernels are what a person waits for."""
        kernels = self._view.snapshot.kernels
        first = {key: kernels[key] for key in keys if key in kernels}
        if first:
            self._queue = first | {key: row for key, row in self._queue.items() if key not in first}
            if not self._asking:
                self._ask_some(self._asked)

    def explain(self, one: Deploys | None) -> None:
        """Look at all that there is of a kernel, whose prediction takes a while."""
        row = self._view.snapshot.kernels.get(one.kernel) if one is not None else None
        if one is None or row is None or one.whole or one.kernel == self._explained:
            return
        asked, self._explained = self._asked, one.kernel

        def answered(found: list[Deploys]) -> None:
            if asked == self._asked:
                self._take(found)

        self._desk.ask("evidence", read_deploys([self._with_run(row)], whole=True), answered, lambda sentence: None)

    def _ask_some(self, asked: int) -> None:
        self._asking = asked == self._asked and bool(self._queue)
        if not self._asking:
            return
        wanted, self._queue = self._queue, {}

        def answered(found: list[Deploys]) -> None:
            if asked == self._asked:
                done = {one.kernel for one in found} | self._queue.keys()
                self._queue |= {key: row for key, row in wanted.items() if key not in done}
                self._take(found)
                self._ask_some(asked)

        def failed(sentence: str) -> None:
            self.reset()
            self.said = sentence
            self._changed()

        self._desk.ask("deploys", read_deploys([self._with_run(row) for row in wanted.values()]), answered, failed)

    def _take(self, found: Sequence[Deploys]) -> None:
        self.found |= {one.kernel: one for one in found}
        if any(one.kernel == self._explained and not one.whole for one in found):
            self._explained = ""
        self._changed()

    def _with_run(self, row: KernelRow) -> tuple[KernelRow, str]:
        groupings = self._view.snapshot.groupings.values()
        return row, next((one.run for one in groupings if row.kernel in one.kernels), "")
