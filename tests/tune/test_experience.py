"""What a search learns of controls: each is tried somewhere, what helped comes first, what computes nonsense last."""

from __future__ import annotations

import math

from engine.search import Path, Scorer
from engine.tune.experience import UNTRIED, USELESS, Experience
from engine.vocabulary import Failure, FailureKind, Measurement, Option, Regime, Schedule, Status, Timing

GOOD, BAD, WRONG = "a" * 64, "b" * 64, "c" * 64
FORK = [Option((("ACF", acf),)) for acf in ("", GOOD, BAD, WRONG)]


def answered(block: int, acf: str, us: float | None) -> Measurement:
    timing = None if us is None else Timing(us, us, us)
    failure = Failure(FailureKind.WRONG_RESULT, "wrong") if us is None else None
    status = Status.FAILED if us is None else Status.OK
    schedule = Schedule.of({"BLOCK": block, "ACF": acf})
    return Measurement("k", schedule, Regime.RANKING, "c", status, timing, failure)


def nobody(path: Path, options: object) -> list[float]:
    return [math.nan] * len(list(options))  # type: ignore[call-overload]


def best_of(scorer: Scorer) -> list[str]:
    """The fork's answers, best first."""
    speeds = scorer((), FORK)
    return [dict(FORK[at].knobs)["ACF"] for at in sorted(range(len(FORK)), key=lambda at: -speeds[at])]  # type: ignore[misc]


def test_none_is_first_and_each_leads_in_turn() -> None:
    scorer = Experience((GOOD, BAD, WRONG)).guiding(nobody)
    led = [best_of(scorer) for _ in range(3)]
    assert [order[0] for order in led] == ["", "", ""]
    assert {order[1] for order in led} == {GOOD, BAD, WRONG}


def test_what_helped_leads_and_what_failed_is_last() -> None:
    experience = Experience((GOOD, BAD, WRONG))
    for block in (1, 2):
        for acf, us in (("", 10.0 * block), (GOOD, 9.0 * block), (BAD, 12.0 * block), (WRONG, None)):
            experience.learn(answered(block, acf, us))
    assert experience.ratio(GOOD) == 0.9
    assert experience.ratio(BAD) == 1.2
    assert experience.ratio(WRONG) == USELESS
    assert best_of(experience.guiding(nobody)) == ["", GOOD, BAD, WRONG]


def test_a_time_without_its_plain_one_says_nothing() -> None:
    experience = Experience((GOOD,))
    experience.learn(answered(1, GOOD, 5.0))
    assert experience.ratio(GOOD) == UNTRIED
    experience.learn(answered(1, "", 10.0))
    assert experience.ratio(GOOD) == 0.5


def test_other_forks_are_the_scorers() -> None:
    scorer = Experience((GOOD,)).guiding(lambda path, options: [7.0 for _ in options])
    assert scorer((), [Option((("BLOCK", 1),)), Option((("BLOCK", 2),))]) == [7.0, 7.0]
    assert Experience(()).guiding(lambda path, options: [7.0 for _ in options])((), FORK) == [7.0] * 4
