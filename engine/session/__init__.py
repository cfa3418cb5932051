"""One tuning session behind thread-safe verbs and a stream of events: in this process, or in one of its own."""

from engine.session.engine_process import EngineProcess
from engine.session.separate import SeparateSession
from engine.session.serving import serve
from engine.session.tuning import STOP_S, TuningSession

__all__ = ["STOP_S", "EngineProcess", "SeparateSession", "TuningSession", "serve"]
