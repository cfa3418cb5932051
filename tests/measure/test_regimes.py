"""The two regimes differ where they should, and what they are is text that can be recorded and read back."""

from __future__ import annotations

import json

from engine.measure import REGIMES, RegimeSettings
from engine.measure.regimes import FINALIST
from engine.vocabulary import Regime


def test_deploy_checks_more_and_times_longer() -> None:
    ranking, deploy = REGIMES[Regime.RANKING], REGIMES[Regime.DEPLOY]
    assert ranking.checks == 1
    assert deploy.checks > 1
    assert FINALIST.checks >= 10
    assert ranking.windows * ranking.window_ms <= 5
    assert deploy.windows * deploy.window_ms >= 5 * ranking.windows * ranking.window_ms


def test_the_text_holds_every_setting() -> None:
    for settings in REGIMES.values():
        assert RegimeSettings.from_data(json.loads(settings.text)) == settings
