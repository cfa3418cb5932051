"""What an open database answers: everything that is asked of it, and nothing that changes it."""

from __future__ import annotations

from array import array
from collections.abc import Callable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import TypeVar

from engine.events import Compared, ComparedInPlace, ControlsChecked, Event, GroupingsExplored
from engine.ir.kernel import Kernel
from engine.ir.plan import Grouping, Program
from engine.ir.roofline import Ceilings
from engine.store import acf, candidates, forbidden, pins, reads, sampled
from engine.store.acf import StoredControls
from engine.store.acts import LATEST, StoredAct, acts
from engine.store.candidates import Candidate, CandidateQuery
from engine.store.comparisons import LatestComparisons, comparison_in_place, comparisons_in_place, controls_checked
from engine.store.connection import Connection
from engine.store.errors import BadRow
from engine.store.failures import FailureCluster, failure_clusters
from engine.store.follow import events_of_run, follow_run, groupings_explored
from engine.store.forbidden import ForbiddenCorner
from engine.store.graphs import TimedGraph, fastest_graph
from engine.store.matching import matching_kernels
from engine.store.pairs import regime_pairs
from engine.store.pins import Judge, PinStanding, StoredPin
from engine.store.queries import KernelVariants, kernel_variants, launching_runs
from engine.store.records import RecordedAssembly, RecordedGrouping, StoredRun
from engine.store.run_results import KernelResult, context_noise_share, noise_share, run_results
from engine.store.sampled import Sampled
from engine.store.suggestions import Suggestion, suggestions
from engine.vocabulary import Context, Measurement, Regime, Schedule, Target, Timing

T = TypeVar("T")


class Answers:
    """The questions that a `Store` answers.

    A row that can't be read is left out of what several rows answer, and `left_out` has a sentence about it; asked for
    alone, it raises BadRow.
    """

    def __init__(self, connection: Connection) -> None:
        self._connection = connection
        self._known_plans: set[bytes] = set()
        self._comparisons = LatestComparisons(connection)

    @property
    def path(self) -> Path:
        return self._connection.path

    @property
    def frozen(self) -> bool:
        """True if what another process writes from now on can't be seen through this store."""
        return bool(self._connection.frozen_because)

    @property
    def frozen_because(self) -> str:
        """Why it is frozen, in a few words; "" where it isn't."""
        return self._connection.frozen_because

    @property
    def thaws(self) -> bool:
        """Whether what froze it is over, so that a store that is opened now sees what is written."""
        return self._connection.thaws()

    @property
    def left_out(self) -> tuple[str, ...]:
        """A sentence about each row that was met so far and can't be read: the answers are without it."""
        return tuple(self._connection.left_out)

    @property
    def bad_rows(self) -> tuple[BadRow, ...]:
        """The errors behind `left_out`, one a sentence."""
        return tuple(self._connection.left_out.values())

    def forget_bad_rows(self, table: str = "") -> None:
        """Let go of those of a table, or of all, which is read anew: one that was mended isn't met again."""
        met = self._connection.left_out
        for sentence in [sentence for sentence, error in met.items() if table in ("", error.alike[0])]:
            del met[sentence]

    def leave_out(self, error: BadRow) -> None:
        """Go on without a row that can't be read."""
        self._connection.leave_out(error)

    def controls(self) -> tuple[StoredControls, ...]:
        """Every controls file that is kept, by sha256."""
        return acf.stored_controls(self._connection)

    def controls_file(self, sha256: str) -> StoredControls | None:
        """The file of this hash, if it is kept. Raises StoreError for other bytes."""
        return acf.controls_file(self._connection, sha256)

    def controls_unusable_because(self, sha256: str, context: Context) -> str | None:
        """A sentence why a schedule's controls can't be applied in a context, or None; "" always can."""
        return acf.unusable_because(self._connection, sha256, context.ptxas, context.capability)

    def ranking(self, kernel_key: str, schedule: Schedule, context_key: str) -> Measurement | None:
        return reads.measurement(self._connection, kernel_key, schedule, context_key, Regime.RANKING)

    def deploy(self, kernel_key: str, schedule: Schedule, context_key: str) -> Measurement | None:
        return reads.measurement(self._connection, kernel_key, schedule, context_key, Regime.DEPLOY)

    def measured_at(self, kernel_key: str, schedule: Schedule, context_key: str, regime: Regime) -> float | None:
        """When the candidate's time in the regime was taken, in seconds since 1970; None where there is none."""
        return reads.measured_at(self._connection, kernel_key, schedule, context_key, regime)

    def compared(self, kernel_key: str, context_key: str) -> Compared | None:
        """How the kernel's finalists compared when they were last timed in turns in this context."""
        return self._comparisons.of(kernel_key, context_key)

    def compared_in_place(self, graphs: str, context_key: str) -> ComparedInPlace | None:
        """How whole graphs that differ in one kernel's schedule compared, when these were last timed in turns."""
        return comparison_in_place(self._connection, graphs, context_key)

    def tried_in_place(self, run: str) -> tuple[ComparedInPlace, ...]:
        """What the run tried in whole graphs, in order."""
        return comparisons_in_place(self._connection, run)

    def controls_checked(self, run: str) -> ControlsChecked | None:
        """What proved ptxas controls in the run, or turned them off; None for a run that searched none."""
        return controls_checked(self._connection, run)

    def fastest_of(self, kernel_key: str, schedule: Schedule, context_key: str, regime: Regime) -> Timing | None:
        """The fastest time of one schedule in a regime, with its samples; None where it has no time."""
        return reads.fastest_of(self._connection, kernel_key, schedule, context_key, regime)

    def best(self, kernel_key: str, context_key: str, regime: Regime) -> Measurement | None:
        """The fastest ok candidate; ties break by canonical knob order."""
        return reads.best(self._connection, kernel_key, context_key, regime)

    def best_without_controls(self, kernel_key: str, context_key: str, regime: Regime) -> Measurement | None:
        """The fastest ok candidate that ptxas assembled without a controls file."""
        return reads.best(self._connection, kernel_key, context_key, regime, reads.WITHOUT_CONTROLS)

    def second_best(self, kernel_key: str, context_key: str, regime: Regime, schedule: Schedule) -> Measurement | None:
        """The fastest ok candidate other than `schedule`."""
        return reads.second_best(self._connection, kernel_key, context_key, regime, schedule)

    def best_known(self, kernel_key: str, context_key: str) -> Measurement | None:
        """The fastest ok candidate of the deploy regime, else of the ranking regime."""
        return self.best(kernel_key, context_key, Regime.DEPLOY) or self.best(kernel_key, context_key, Regime.RANKING)

    def schedules(self, kernel_key: str, context_key: str) -> tuple[Schedule, ...]:
        """Every schedule with a ranking row, ok or failed, in the order of recording."""
        return reads.schedules(self._connection, kernel_key, context_key)

    def timed(self, kernel_key: str, context_key: str) -> dict[Schedule, float]:
        """Every candidate that was timed: its deploy time where there is one, else its ranking time, in us."""
        return reads.timed(self._connection, kernel_key, context_key)

    def timed_count(self, kernel_key: str, context_key: str) -> int:
        """How many rows have a time, in either regime."""
        return sampled.timed_count(self._connection, (kernel_key, context_key))

    def timed_sample(self, kernel_key: str, context_key: str, fastest: int, others: int) -> dict[Schedule, float]:
        """`timed`, but of more than `fastest` + `others` candidates the fastest so many, and so many others, evenly
        spread in the order of their keys."""
        return sampled.timed_sample(self._connection, (kernel_key, context_key), fastest, others)

    def timed_evenly(self, kernel_key: str, context_key: str, most: int) -> Sampled:
        """`timed`, but of more than `most` candidates so many, evenly spread over all in the order of their times."""
        return sampled.timed_evenly(self._connection, (kernel_key, context_key), most)

    def contexts(self) -> tuple[Context, ...]:
        return reads.contexts(self._connection)

    def context(self, key: str) -> Context | None:
        return next((context for context in self.contexts() if context.key == key), None)

    def target(self, context_key: str) -> Target:
        return reads.target(self._connection, context_key)

    def regime_pairs(self, context_key: str) -> dict[str, list[tuple[float, float]]]:
        """(ranking us, deploy us) of each candidate of a context that has both, by the kernel's structural key."""
        return regime_pairs(self._connection, context_key)

    def ceilings(self, context_key: str) -> Ceilings | None:
        """What the GPU of a context reaches at its best; None where it was not measured."""
        return reads.ceilings(self._connection, context_key)

    def kernels(self) -> tuple[Kernel, ...]:
        """All kernels, but for those whose bodies can't be read: `left_out` has a sentence about each."""
        return reads.kernels(self._connection)

    def kernel(self, key: str) -> Kernel:
        """Raises StoreError if it isn't there, BadRow if its body is not a verified kernel with this key."""
        return reads.kernel(self._connection, key)

    def readable_kernel(self, key: str) -> Kernel | None:
        """None for one whose body can't be read, which is left out. Raises StoreError if it isn't there."""
        return self._readable(self.kernel, key)

    def readable_program(self, run: str) -> Program | None:
        """None for one that can't be read, which is left out. Raises StoreError if there is no such run."""
        return self._readable(self.program, run)

    def _readable(self, read: Callable[[str], T], key: str) -> T | None:
        return next(self._connection.readable((key,), read), None)

    def runs(self) -> tuple[StoredRun, ...]:
        """Oldest first."""
        return reads.runs(self._connection)

    def last_heard(self, run: str) -> float | None:
        """When a run wrote its last event, in seconds since 1970; None if it wrote none."""
        return reads.last_heard(self._connection, run)

    def latest_run(self) -> StoredRun | None:
        return reads.latest_run(self._connection)

    def program(self, run: str) -> Program:
        return reads.program(self._connection, run)

    def recorded_groupings(self, run: str) -> tuple[RecordedGrouping, ...]:
        """In the order in which the run entered them."""
        return reads.recorded_groupings(self._connection, run)

    def recorded_grouping(self, grouping: str) -> RecordedGrouping | None:
        """The one of this id; None where it isn't there or can't be read."""
        return reads.recorded_grouping(self._connection, grouping)

    def fastest_graph(self, run: str, kernel_key: str) -> TimedGraph | None:
        """The run's fastest whole graph with the kernel in it, "" for any; None where it timed none."""
        return fastest_graph(self._connection, run, kernel_key, self._known_plans)

    def assembled(
        self,
        grouping: Grouping | str,
        context_key: str,
        schedules: Mapping[str, Schedule] | None = None,
        *,
        pdl: bool = False,
    ) -> RecordedAssembly | None:
        """The newest assembly of an equal plan (with exactly these schedules, if given), with or without `pdl`; the
        plan may be named by a recorded grouping's id."""
        return reads.assembled(self._connection, grouping, context_key, schedules, pdl)

    def pins(self, *, history: bool = False) -> tuple[StoredPin, ...]:
        """The pins in force, oldest first; with `history` the ended ones too."""
        return pins.pins(self._connection, history=history)

    def forbidden(self, *, history: bool = False) -> tuple[ForbiddenCorner, ...]:
        """The forbidden corners in force, oldest first; with `history` the ended ones too."""
        return forbidden.forbidden(self._connection, history=history)

    def suggestions(self, kernel_key: str | None = None) -> tuple[Suggestion, ...]:
        """Schedules from elsewhere for a kernel, or for all: the fastest there first."""
        return suggestions(self._connection, kernel_key)

    def kernel_keys(self, kernel_text: str = "") -> tuple[str, ...]:
        """Keys of the kernels whose label, family, shape or key holds the text, in the order of recording."""
        return tuple(matching_kernels(self._connection, kernel_text))

    def acts(self, run: str | None = None, limit: int = LATEST) -> tuple[StoredAct, ...]:
        """How people steered a run (None: every run), the newest first."""
        return acts(self._connection, run, limit)

    def variants(self, kernel_text: str = "", top: int = 20) -> tuple[KernelVariants, ...]:
        """What was measured, best first, per kernel and context; `kernel_text` matches label, family, shape or key."""
        return kernel_variants(self._connection, kernel_text, top)

    def launching_runs(self, kernel_key: str, context_key: str) -> dict[str, str]:
        """The newest run of each target whose best grouping launches the kernel, by target, the newest first."""
        return launching_runs(self._connection, kernel_key, context_key)

    def failures(self, kernel_text: str = "") -> tuple[FailureCluster, ...]:
        """Failed candidates by cause, the largest cluster first, with the knob values that set them apart."""
        return failure_clusters(self._connection, kernel_text)

    def pin_standings(self, judge: Judge) -> tuple[PinStanding, ...]:
        """Every pin in force beside the best that is known of its kernel; `judge` tells the two times apart."""
        return pins.pin_standings(self._connection, judge)

    def candidate_numbers(self, query: CandidateQuery) -> array[int]:
        """Every candidate that the query finds, as numbers in its order; `candidate_rows` gives the rows of a page."""
        return candidates.candidate_numbers(self._connection, query)

    def candidate_rows(self, numbers: Sequence[int]) -> dict[int, Candidate]:
        return candidates.candidate_rows(self._connection, numbers)

    def knob_names(self, kernel_key: str) -> frozenset[str]:
        return candidates.knob_names(self._connection, kernel_key)

    def kernel_contexts(self, kernel_key: str) -> tuple[tuple[str, str, int], ...]:
        """Key, GPU name and row count of each context the kernel was measured in, the newest measured first."""
        return candidates.context_keys(self._connection, kernel_key)

    def changes(self) -> int:
        """A number that differs from the last one when another process has written meanwhile; takes microseconds."""
        return self._connection.data_version()

    def run(self, run: str) -> StoredRun:
        return reads.run(self._connection, run)

    def run_results(self, run: str) -> tuple[KernelResult, ...]:
        """What the run came to, kernel by kernel, each with its best time in each regime."""
        return run_results(self._connection, run)

    def noise_share(self, run: str) -> float | None:
        """The noise floor that the run measured, as a share of a time; None where it says nothing of it."""
        return noise_share(self._connection, run)

    def context_noise_share(self, context_key: str) -> float | None:
        """The noise floor that the context's newest run measured; None where the last ones say nothing of it."""
        return context_noise_share(self._connection, context_key)

    def explored(self, run: str) -> GroupingsExplored | None:
        """How the run's outer search ended; None where it did not, or the recording doesn't say."""
        return groupings_explored(self._connection, run)

    def events_of(self, run: str) -> Iterator[Event]:
        """What happened in a run so far, in order."""
        return events_of_run(self._connection, run)

    def follow(self, run: str | None = None, *, poll_s: float = 0.5, stop: Callable[[], bool]) -> Iterator[Event]:
        """What happened in a run and what happens next, until it ends or `stop()`; None waits for the latest run."""
        return follow_run(self._connection, run, poll_s=poll_s, stop=stop)
