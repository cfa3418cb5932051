"""A benchmark process without a GPU: it does to itself what the candidate's text says."""

from __future__ import annotations

import os
import re
import signal
import subprocess
import sys
import time
from dataclasses import asdict
from pathlib import Path

from engine.measure.channel import ChannelClosed
from engine.measure.child_side import open_channel
from engine.vocabulary import Context, Target

CONTEXT = Context("Fake GPU", "9.0", "1", "2", "3", "4")


def main(*numbers: int) -> None:
    channel = open_channel(*(numbers or map(int, sys.argv[1:4])))
    broken = False
    try:
        channel.send({"ready": True})
        channel.receive()
        channel.send({"context": asdict(CONTEXT), "target": asdict(Target())})
        while True:
            request = channel.receive()
            text = str(request.get("source", "")) + str(request.get("sources", ""))
            channel.send({"step": "first launch", "limit_s": 60.0 if "run-hang-long" in text else 0.5})
            op = request.get("op")
            paired = op in ("noise", "compare", "compare graphs") and "run-" not in text
            answer = _windows(request) if paired else _answer(text, broken)
            broken = broken or bool(answer.get("broken_context"))
            channel.send({**answer, "id": request["id"], "run_s": 0.01, "pid": os.getpid()})
            if answer.get("broken"):
                os._exit(0)
    except ChannelClosed:
        return


def _windows(request: dict[str, object]) -> dict[str, object]:
    """Of the noise floor two equal candidates; of a comparison, candidate c takes 10 + c us."""
    if request["op"] == "noise":
        return {"windows": [[10.0, 10.1, 9.9, 10.0], [10.0, 10.0, 10.0, 10.1]]}
    sources = request["sources"]
    assert isinstance(sources, list)
    return {"windows": [[10.0 + c, 10.1 + c, 9.9 + c] for c, _ in enumerate(sources)]}


def _answer(text: str, broken: bool) -> dict[str, object]:
    if broken:
        return {"failure": {"kind": "illegal access", "cause": "the context was broken before"}}
    dies = re.search(r"run-dies-while (\S+) exists", text)
    if dies and Path(dies.group(1)).exists():
        os.kill(os.getpid(), signal.SIGBUS)
    _do(text)
    if "run-illegal" in text:
        failure = {"kind": "illegal access", "cause": "an illegal memory access was encountered"}
        return {"failure": failure, "broken": True, "broken_context": True}
    if "run-oom" in text:
        return {"failure": {"kind": "out of memory", "cause": "CUDA out of memory"}}
    if "run-wrong" in text:
        return {"failure": {"kind": "wrong result", "cause": "relative error 4.2e-01"}, "error": 0.42}
    if "run-nan" in text:
        return {"failure": {"kind": "wrong result", "cause": "NaN"}, "error": float("nan")}
    timing = {"median_us": 10.0, "low_us": 9.0, "high_us": 11.0, "samples": [9.0, 10.0, 11.0]}
    return {"timing": timing, "error": 1e-7, "build": {"registers": 40, "spills": 8}}


def _do(text: str) -> None:
    """What a candidate does to the process that runs it."""
    if "run-abort" in text:
        os.abort()
    if "run-exit" in text:
        os._exit(3)
    if "run-with-a-child" in text:
        subprocess.Popen([sys.executable, "-c", "import time; time.sleep(1000)"])
    if "run-hang" in text:
        time.sleep(1000)
    if "run-slowly" in text:
        time.sleep(0.3)
    if "run-noise" in text:
        os.write(1, b"{not a message}\n" * 100)
        os.write(2, b"driver noise\n" * 100)


if __name__ == "__main__":
    main()
