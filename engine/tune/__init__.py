"""One run, a file a step: outer search, kernel search, finish, assembled check; live on a device, or replayed."""

from engine.tune.control import Control, Retune, Verb
from engine.tune.controlled import ControlsRequest
from engine.tune.learn import fit_database
from engine.tune.live import Host, LiveRequest, tune_live
from engine.tune.replay import ReplayRequest, tune_replay
from engine.tune.retune import RetuneRequest, tune_again, tune_queue
from engine.tune.settings import CounterObjective, Objective, Settings, objective_named
from engine.tune.sweeping import pairs_of_kinds
from engine.tune.walkers import packed, unpacked

__all__ = [
    "Control",
    "ControlsRequest",
    "CounterObjective",
    "Host",
    "LiveRequest",
    "Objective",
    "ReplayRequest",
    "Retune",
    "RetuneRequest",
    "Settings",
    "Verb",
    "fit_database",
    "objective_named",
    "packed",
    "pairs_of_kinds",
    "tune_again",
    "tune_live",
    "tune_queue",
    "tune_replay",
    "unpacked",
]
