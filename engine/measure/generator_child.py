"""The process that runs CompileIQ: its worker hands each generation to the parent and waits for what that measured.

The engine asks its worker to score a pool of candidates, so a worker that asks somebody else turns the engine into one
that is asked and told (its documentation of custom workers).
"""

from __future__ import annotations

import importlib
from pathlib import Path
from typing import Any

from engine.measure.channel import Channel, ChannelClosed, Message
from engine.measure.child_side import open_channel

ABSENT = "no CompileIQ is installed to generate controls: `pip install compileiq` and accept its licence, or use --acf"
SHOWN = 200


def main(read_fd: int, write_fd: int, parent: int) -> None:
    """Search once, as {"space", "ptxas", "generations", "pool"} says; {"pool": [hex]} asks for {"scores": [...]}."""
    channel = open_channel(read_fd, write_fd, parent)
    try:
        channel.send(_answer(channel, channel.receive()))
    except ChannelClosed:
        return


def _answer(channel: Channel, request: Message) -> Message:
    try:
        _search(channel, request)
    except ModuleNotFoundError as error:
        name = (error.name or "").partition(".")[0]
        return {"error": ABSENT if name == "compileiq" else f"CompileIQ can't run here: it misses {name}"}
    except ChannelClosed:
        raise
    except Exception as error:  # an engine of somebody else's may raise anything
        text = " ".join(str(error).split())[:SHOWN]
        return {"error": f"CompileIQ gave up: {type(error).__name__}: {text}"}
    return {"done": True}


def _search(channel: Channel, request: Message) -> None:
    engine: Any = importlib.import_module("compileiq.ciq")
    types: Any = importlib.import_module("compileiq.types")
    spaces: Any = importlib.import_module("compileiq.search_spaces.compilers")
    space = request["space"]
    search = engine.Search(
        objective_function=_measured_elsewhere,
        search_space=Path(space) if space else spaces.PtxasSearchSpace(version=request["ptxas"]),
        search_config=types.SearchConfiguration(
            problem_type="min", generations=int(request["generations"]), pool_size=int(request["pool"])
        ),
        worker_type=_worker(channel, types),
        disable_progress_bar=True,
        exit_on_failure=False,
    )
    search.start()


def _worker(channel: Channel, types: Any) -> type:
    """A worker class of the engine's that measures nothing itself."""

    def create(cls: Any, cache_folder: Any, normalize: bool, tracker: Any) -> Any:
        return cls(cache_folder=cache_folder, normalize=normalize, tracker=tracker)

    def run(self: Any, *, params_pool: Any, params_ids: Any, **rest: Any) -> list[Any]:
        channel.send({"pool": [str(candidate) for candidate in params_pool]})
        scores = channel.receive()["scores"]
        return [
            types.Score(
                score=types.INVALID_SCORE if score is None else float(score),
                param_id=number,
                params=candidate,
                num_objectives=1,
            )
            for score, number, candidate in zip(scores, params_ids, params_pool, strict=True)
        ]

    return type("ParentsWorker", (types.Worker,), {"create": classmethod(create), "run": run})


def _measured_elsewhere(candidate: Any) -> float:
    raise RuntimeError("candidates are measured by the parent process")
