"""One run, a file a step: outer search, kernel search, finish, assembled check; live on a device, or replayed."""

from engine.tune.control import Control
from engine.tune.live import Host, LiveRequest, tune_live
from engine.tune.replay import ReplayRequest, tune_replay
from engine.tune.settings import Settings

__all__ = ["Control", "Host", "LiveRequest", "ReplayRequest", "Settings", "tune_live", "tune_replay"]
