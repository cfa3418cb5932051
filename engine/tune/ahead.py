"""What a repeated run needs of its program is made while the device opens, which takes seconds and is spent waiting.

An earlier run of the same text says what to expect: the program, the chip, and the kernels that were tuned. Their
spaces, and what the prior expects of them, depend on nothing else: they are the same whether they were made before or
are made when they are needed.
A guess that turns out wrong, as on another chip, costs nothing but the wait that it filled.
"""

from __future__ import annotations

import threading
from contextlib import suppress
from pathlib import Path
from types import TracebackType

from engine.prior import ColdModel, load_libraries
from engine.search import Search
from engine.store import Store, StoredRun
from engine.tune.grouping_scoring import GroupingScorer
from engine.tune.learn import chosen_prior
from engine.tune.problem import CapturedProblem
from engine.tune.scoring import kernel_surrogate
from engine.tune.settings import Settings
from engine.tune.walkers import Walkers, walkers_for
from engine.vocabulary import Target


class Ahead:
    """Prepares a problem in a thread of its own while the context lasts; leaving it ends that at the next step.

    With `walk` it also begins walkers for a run that repeats one; whoever leaves the context closes them.
    """

    def __init__(self, code: str, database: Path, settings: Settings, *, walk: bool = False) -> None:
        self._code = code
        self._database = database
        self._settings = settings
        self._walk = walk
        self.walkers: Walkers | None = None
        self._enough = threading.Event()
        self._made: tuple[str, Target, CapturedProblem] | None = None
        self._thread = threading.Thread(target=self._prepare, name="ahead", daemon=True)

    def __enter__(self) -> Ahead:
        self._thread.start()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._enough.set()
        self._thread.join()

    def problem(self, run: str, target: Target) -> CapturedProblem | None:
        """The problem of the program that `run` captured, prepared as far as the time was enough; None where another
        was expected. After the context."""
        if self._made is not None and self._made[:2] == (run, target):
            return self._made[2]
        return None

    def _prepare(self) -> None:
        """Whatever is wrong with the database is met again, and told, by the run itself."""
        if not self._database.exists():
            return self._load_libraries()
        with suppress(Exception), Store.open(self._database, read_only=True) as store:
            run = next((one for one in reversed(store.runs()) if one.target == self._code), None)
            if run is not None and self._walk:
                self.walkers = walkers_for(self._database, run, self._settings)
            if self.walkers is None:
                self._load_libraries()
            if run is None:
                return
            target = store.target(run.context_key)
            problem = CapturedProblem(store.program(run.id), target)
            self._made = (run.id, target, problem)
            self._enter_first(problem, target)
            self._begin_kernels(store, run, problem, target)

    def _load_libraries(self) -> None:
        """What growing a surrogate takes; while the device and the capture start in processes, this one waits."""
        if self._settings.surrogate:
            threading.Thread(target=load_libraries, name="libraries", daemon=True).start()

    def _enter_first(self, problem: CapturedProblem, target: Target) -> None:
        """Ask for the grouping that a search enters first: what the space is asked for on the way, it remembers."""
        space = problem.outer_space()
        Search(space, GroupingScorer(ColdModel(), problem, space, target)).ask()

    def _begin_kernels(self, store: Store, run: StoredRun, problem: CapturedProblem, target: Target) -> None:
        """List the schedules of the kernels that the run tuned, in its order, and expect of them what a search will."""
        prior = chosen_prior(store, self._settings.prior, run.target, run.context_key)
        seed = self._settings.seed
        seen: set[str] = set()
        for recorded in store.recorded_groupings(run.id):
            if recorded.sum_us is None:  # of one that can't win nothing was tuned
                continue
            for key, (kernel, _) in recorded.grouping.kernel_counts().items():
                if self._enough.is_set():
                    return
                if key not in seen and problem.declined_because(kernel) is None:
                    seen.add(key)
                    problem.candidates(kernel)
                    if self._settings.surrogate and self.walkers is None:
                        begun = kernel_surrogate(prior, problem, kernel, target, seed)
                        problem.keep_surrogate(kernel, prior, seed, begun)
