"""One meaning of best: what deploys, in the snapshot, the tree, Selected, Why, the kernel list and the database."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest

from emmy_tui import format as fmt
from emmy_tui.best import best_path, deploy_text, leaf_of, ordinal, two_bests
from emmy_tui.database_source import recorded_events
from emmy_tui.known import Known, fold
from emmy_tui.recorded import recorded
from emmy_tui.source import Mode
from emmy_tui.text import UNICODE, plain
from emmy_tui.view import View
from emmy_tui.why import why_lines
from emmy_tui.widgets.cluster_list import ClusterList
from emmy_tui.widgets.kernel_list import Columns, KernelOrder, header_line, kernel_line, order_of
from emmy_tui.widgets.prior_panels import missing_model
from emmy_tui.widgets.selected import selected_lines
from emmy_tui.widgets.status import status_line
from emmy_tui.widgets.totals import total_lines
from engine.data import demo_database
from engine.deploy import PriorReport, fastest_deployed, pin_context
from engine.events import (
    Compared,
    Event,
    KernelFinished,
    KernelFound,
    KernelStarted,
    Measured,
    NodeOpened,
    NodeVisited,
    PriorRefit,
    RunState,
)
from engine.snapshot import Snapshot, apply
from engine.store import CandidateQuery, Store
from engine.vocabulary import Regime, Schedule
from tests.emmy_tui.looking import rows, running, screen_text
from tests.emmy_tui.measured import fill, over, press

EMPTY = PriorReport("", "", True, "", None, None, 0, (), (), (), (), ())
RANKED, DEPLOYED = "BLOCK_M=64 NUM_WARPS=4", "BLOCK_M=128 NUM_WARPS=8"


def measured(schedule: str, us: float | None, trial: int, **more: object) -> Measured:
    told = {"status": "ok" if us is not None else "failed", "node": schedule.replace(" ", "/"), "at": float(trial)}
    regime = Regime.RANKING if trial else Regime.DEPLOY
    return Measured(**{"kernel": "k", "schedule": schedule, "regime": regime, "trial": trial, "us": us, **told, **more})  # type: ignore[arg-type]


def finished(schedule: str, us: float | None) -> KernelFinished:
    return KernelFinished(at=9.0, kernel="k", state="done", reason="patience", best_us=us, best_schedule=schedule)


def tree() -> list[Event]:
    """Two leaves: the first is fastest by ranking time, the second by deploy time."""
    nodes = [("root", "", "", 0, 178.3)]
    for schedule, us in ((RANKED, 178.3), (DEPLOYED, 178.9)):
        block, _ = schedule.split()
        nodes += [(block, "root", block, 1, us), (schedule.replace(" ", "/"), block, schedule.split()[1], 2, us)]
    found: list[Event] = [
        KernelFound(at=0.0, kernel="k", label="matmul", family="f", shape="8x8", count=1, flops=1, bytes_moved=1),
        KernelStarted(at=0.0, kernel="k", patience=50),
    ]
    for node, parent, label, depth, us in nodes:
        found.append(NodeOpened(at=0.0, node=node, parent=parent, kernel="k", label=label, prior=1.0, depth=depth))
        found.append(NodeVisited(at=0.0, node=node, visits=1, best_us=us, state="open"))
    return found


SEARCH = (
    measured(RANKED, 178.3, 1, best=True),
    measured(DEPLOYED, 178.9, 2),
    measured(RANKED, 184.0, 0, best=True),
    measured(DEPLOYED, 182.2, 0, best=True),
    finished(DEPLOYED, 182.2),
)


def folded(events: list[Event]) -> Snapshot:
    snapshot = Snapshot()
    for event in events:
        fold(snapshot, event)
    return snapshot


@pytest.fixture
def snapshot() -> Snapshot:
    return folded([*tree(), *SEARCH])


def test_the_best_is_what_deploys_and_the_searchs_own_is_kept_beside_it(snapshot: Snapshot) -> None:
    row = snapshot.kernels["k"]
    assert (row.best_schedule, row.deploy_us, row.chosen_us) == (DEPLOYED, 182.2, 182.2)
    assert (row.ranked_schedule, row.best_us) == (RANKED, 178.3)
    before = folded([*tree(), *SEARCH[:2]]).kernels["k"]
    assert (before.best_schedule, before.chosen_us) == (RANKED, 178.3)


def test_the_star_selected_and_why_are_of_one_variant(snapshot: Snapshot) -> None:
    leaf = best_path(snapshot, "root")[-1]
    assert leaf == DEPLOYED.replace(" ", "/") == leaf_of(snapshot, "k", DEPLOYED)
    view = View(snapshot=snapshot, node=leaf)
    selected = [plain(line) for line in selected_lines(view, 70, 30)]
    assert "★ best" in selected
    assert "deploy      182.2 us, what deploys" in selected
    assert "best below  178.9 us by ranking time" in selected
    why = " ".join(" ".join(plain(line).split()) for line in why_lines(view, 100))
    assert "By deploy time it led to 182.2 us, what deploys." in why
    other = f"By ranking time the search's best is another, 178.3 us, 2nd of 2 by deploy time: {RANKED}."
    assert other in why
    assert two_bests(snapshot.kernels["k"]) == other[:-1]
    ranked = snapshot.nodes[RANKED.replace(" ", "/")]
    assert deploy_text(snapshot, ranked) == "184.0 us, 2nd of 2; what deploys takes 182.2"
    way = [plain(line) for line in why_lines(View(snapshot=snapshot, node="root"), 90)]
    assert any(line.startswith("  NUM_WARPS=8") and line.endswith("178.9") for line in way)


def test_what_was_stopped_says_that_its_numbers_are_so_far(snapshot: Snapshot) -> None:
    view = View(snapshot=snapshot, mode=Mode.REPLAY, state=RunState.STOPPED)
    assert "so far 1/1 kernels" in plain(status_line(view, 120))
    assert "us so far" in plain(total_lines(view, 100)[0])
    view.state = RunState.FINISHED
    assert "so far" not in plain(status_line(view, 120)) + plain(total_lines(view, 100)[0])
    assert plain(total_lines(view, 100)[1]).startswith("  timings: measured 4  cached 0")


def test_a_list_of_the_database_says_in_a_replay_that_it_is_recorded() -> None:
    assert recorded("Variants", View(mode=Mode.REPLAY)) == "Variants (recorded)"
    assert recorded("Variants", View(mode=Mode.BROWSE)) == "Variants"


def test_a_model_that_is_missing_in_a_copy_is_named(snapshot: Snapshot) -> None:
    refit = PriorRefit(
        at=9.0,
        version="learned-2-27694-e0",
        steering="",
        trusted=True,
        rows=1,
        fresh=1,
        kernels=1,
        spearman=0.9,
        reason="trusted",
        wall_s=1.0,
    )
    report = replace(EMPTY, learned="learned-2-17047-67", version="learned-2-17047-67", shipped=True)
    view = View(snapshot=folded([*tree(), refit]), database="/x/d.db")
    assert missing_model(view, report) == "the shipped model is shown: d.db.models.npz with learned-2-27694 is missing"
    assert missing_model(view, replace(report, learned="learned-2-27694-e0")) == ""
    assert missing_model(View(snapshot=snapshot), report) == ""


def test_a_leaf_that_the_tree_lacks_is_reached_by_its_options(snapshot: Snapshot) -> None:
    assert leaf_of(snapshot, "k", "BLOCK_M=64 NUM_WARPS=16") == "BLOCK_M=64"
    assert leaf_of(snapshot, "other", RANKED) == ""


def test_equal_priors_share_a_rank_and_tell_nothing_apart(snapshot: Snapshot) -> None:
    text = " ".join(" ".join(plain(line).split()) for line in why_lines(View(snapshot=snapshot, node="BLOCK_M=64"), 90))
    assert "The prior told nothing apart: all 2 siblings have the same." in text
    assert " =1 " in text


def test_a_candidate_that_two_runs_asked_for_counts_once() -> None:
    again = [measured(one.schedule, one.us, one.trial, cached=True, best=one.best) for one in SEARCH[:4]]
    failed = [measured("BLOCK_M=256 NUM_WARPS=4", None, 3), measured("BLOCK_M=256 NUM_WARPS=4", None, 3, cached=True)]
    events = [*tree(), *SEARCH, failed[0], KernelStarted(at=9.0, kernel="k", patience=50), *again, failed[1]]
    snapshot = folded(events)
    row = snapshot.kernels["k"]
    assert (row.candidates, len(row.points), row.measured, row.cached) == (3, 3, 5, 5)
    assert (snapshot.failures, snapshot.failed) == (1, 2)
    columns = Columns.of(100)
    end = plain(header_line(columns, UNICODE)).index("#") + 1
    assert plain(kernel_line(row, 1, 182.2, False, columns, UNICODE))[end - 4 : end].strip() == "3"
    assert row.best_us == 178.3


def test_a_later_search_that_found_less_leaves_the_best_as_it_is() -> None:
    later = [measured("BLOCK_M=32 NUM_WARPS=4", 200.0, 1, best=True), finished("BLOCK_M=32 NUM_WARPS=4", 201.0)]
    events = [*tree(), *SEARCH, KernelStarted(at=9.0, kernel="k", patience=50), *later]
    row = folded(events).kernels["k"]
    assert (row.best_schedule, row.deploy_us, row.ranked_schedule) == (DEPLOYED, 182.2, RANKED)


def test_finalists_timed_in_turns_decide_over_the_lowest_time() -> None:
    keys = tuple(Schedule.of({"BLOCK_M": m, "NUM_WARPS": w}).key for m, w in ((128, 8), (64, 4)))
    numbers = dict.fromkeys(("ratios", "lows", "highs", "p_values", "effects"), (0.99,))
    told = Compared(
        at=8.0,
        kernel="k",
        schedules=keys,
        chosen=keys[1],
        processes=1,
        noise_share=0.01,
        verdicts=("faster",),
        **numbers,
    )
    row = folded([*tree(), *SEARCH[:-1], told, finished(RANKED, 184.0)]).kernels["k"]
    assert (row.best_schedule, row.deploy_us) == (RANKED, 184.0)
    assert [one.schedule for one in row.deploy_places] == [RANKED, DEPLOYED]


def test_what_a_database_knows_beside_the_runs_decides() -> None:
    known = Known(at=9.0, kernel="k", us=181.0, schedule="BLOCK_M=16 NUM_WARPS=4")
    row = folded([*tree(), *SEARCH, known]).kernels["k"]
    assert (row.best_schedule, row.chosen_us) == ("BLOCK_M=16 NUM_WARPS=4", 181.0)
    row = folded([*tree(), *SEARCH, Known(at=9.0, kernel="k", us=None)]).kernels["k"]
    assert (row.best_schedule, row.chosen_us) == (RANKED, 178.3)
    apply(Snapshot(), tree()[0])


def test_the_sorted_column_means_the_same_at_every_width() -> None:
    for width in (40, 60, 80, 100, 160):
        words = plain(header_line(Columns.of(width), UNICODE)).split()
        assert words.count("us") == 1
        assert "best" not in words
    assert order_of("us") is KernelOrder.TIME
    assert order_of("ranking") is None


def test_the_demo_shows_what_its_database_deploys(tmp_path_factory: pytest.TempPathFactory) -> None:
    """Live's best, the first row of Variants and the evidence of a deployment are one schedule, kernel by kernel; where
    the first row took part when the finalists were timed in turns, it is the one that these chose."""
    path = demo_database(tmp_path_factory.mktemp("demo"))
    snapshot = folded(list(recorded_events(path)))
    differing = chosen_in_turns = 0
    with Store.open(path, read_only=True) as store:
        for key, row in snapshot.kernels.items():
            context = pin_context(store, key)
            numbers = store.candidate_numbers(CandidateQuery(key, context=context))
            if not numbers:
                continue
            listed = store.candidate_rows(numbers)
            by_schedule = {Schedule.of(one.schedule): one for one in listed.values()}
            first = listed[numbers[0]]
            finalists = store.compared(key, context)
            if finalists is not None and Schedule.of(first.schedule).key in finalists.schedules:
                first = by_schedule[Schedule.from_key(finalists.chosen)]
            evidence = fastest_deployed(store.kernel(key), store, context)
            assert row.best_schedule == str(Schedule.of(first.schedule))
            assert row.chosen_us == first.best_us
            assert evidence is None or (str(evidence.schedule), evidence.us) == (row.best_schedule, row.chosen_us)
            assert row.floor_us is not None
            differing += row.best_schedule != row.ranked_schedule
            chosen_in_turns += first is not listed[numbers[0]]
        assert differing > 20
        assert chosen_in_turns
        failed = ClusterList(View(snapshot=snapshot))
        failed.clusters = store.failures()
        assert len(failed.clusters) == 2
        rows_there = sum(cluster.count for cluster in failed.clusters)
        assert plain(failed.note()) == f"{rows_there} rows in 2 clusters, {snapshot.failures} of the shown runs"


async def test_i_on_a_variant_says_why_of_its_leaf_and_the_order_is_said(tmp_path: Path) -> None:
    app = over(fill(tmp_path / "tune.db"))
    async with running(app, (160, 45)) as pilot:
        await press(app, pilot, "2")
        assert "deploy times, then ranking" in rows(app)[2]
        await press(app, pilot, "i")
        text = screen_text(app)
        assert "Why" in text or "no search tree" in app.footer.said


@pytest.mark.parametrize(("number", "word"), [(1, "1st"), (2, "2nd"), (3, "3rd"), (11, "11th"), (22, "22nd")])
def test_places_are_written_as_words(number: int, word: str) -> None:
    assert ordinal(number) == word
    assert fmt.us(182.2) == "182.2"
