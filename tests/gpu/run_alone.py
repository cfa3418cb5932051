"""Runs an exported module where this package can't be imported; `test_round_trip` starts it with `python -I -S`.

The argument is JSON: a folder with `tuned.py` and `call.pt`, and the folders to import torch and triton from. It prints
JSON: relative errors against the saved outputs, whether they are equal bit by bit, and us a call, timed as `emmy run`
does it: a CUDA graph of as many calls as fill 2 ms, 30 times, after 60 ms of warming up.
"""

from __future__ import annotations

import json
import statistics
import sys
from typing import Any

OURS = ("engine", "emmy_tui")
WINDOW_US, WINDOWS, WARM_UP, MOST_CALLS = 2000.0, 30, 30, 300


def importable(name: str) -> bool:
    """Whether there is such a package; one that fails for another reason is there."""
    try:
        __import__(name)
    except ModuleNotFoundError as error:
        return error.name != name
    return True


def main(place: str, folders: list[str]) -> None:
    sys.path += folders
    found = [name for name in OURS if importable(name)]
    if found:
        sys.exit(f"{' and '.join(found)} can be imported here, so this says nothing: {sys.path}")
    import torch

    sys.path.insert(0, place)
    import tuned  # type: ignore[import-not-found]

    given = torch.load(f"{place}/call.pt", map_location="cuda")
    inputs, wanted = given["inputs"], given["outputs"]
    plain = tensors(tuned.run(*inputs))
    captured, again = tuned.capture(*inputs)
    captured.replay()
    torch.cuda.synchronize()
    answer = {
        "errors": [error(a, b) for some in (plain, tensors(again)) for a, b in zip(some, wanted, strict=True)],
        "alike": all(torch.equal(a, b) for a, b in zip(plain, wanted, strict=True)),
        "same_form": [(a.shape, a.dtype) for a in plain] == [(b.shape, b.dtype) for b in wanted],
        "us": us_a_call(torch, lambda: tuned.run(*inputs)),
    }
    if {name.partition(".")[0] for name in sys.modules} & set(OURS):
        sys.exit("the exported module imported this package")
    print(json.dumps(answer))


def tensors(found: Any) -> list[Any]:
    return list(found) if isinstance(found, tuple) else [found]


def error(found: Any, wanted: Any) -> float:
    """The norm of the difference over that of what is wanted."""
    return float((found.double() - wanted.double()).norm() / wanted.double().norm().clamp(min=1e-30))


def us_a_call(torch: Any, call: Any) -> float:
    rough = window_us(torch, graph_of(torch, call, 16), 4) / 16
    calls = min(MOST_CALLS, max(1, round(WINDOW_US / rough)))
    graph = graph_of(torch, call, calls)
    window_us(torch, graph, WARM_UP)
    samples = []
    for _ in range(WINDOWS):
        graph.replay()
        samples.append(window_us(torch, graph, 1) / calls)
    return statistics.median(samples)


def graph_of(torch: Any, call: Any, calls: int) -> Any:
    graph = torch.cuda.CUDAGraph()
    with torch.no_grad(), torch.cuda.graph(graph):
        for _ in range(calls):
            call()
    graph.replay()
    return graph


def window_us(torch: Any, graph: Any, replays: int) -> float:
    begin, end = (torch.cuda.Event(enable_timing=True) for _ in range(2))
    begin.record()
    for _ in range(replays):
        graph.replay()
    end.record()
    torch.cuda.synchronize()
    return float(begin.elapsed_time(end)) * 1000 / replays


if __name__ == "__main__":
    main(*json.loads(sys.argv[1]))
