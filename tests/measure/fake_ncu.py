"""An ncu that profiles nothing: it reads what it was asked to look at and answers as the real one prints."""

from __future__ import annotations

import sys
from pathlib import Path

METRIC = "sm__warps_active.avg.pct_of_peak_sustained_active"

_SCRIPT = """#!{python}
import json, os, sys, time
behaviour, metric = {behaviour!r}, sys.argv[sys.argv.index("--metrics") + 1]
asked = json.load(open(sys.argv[-1]))
with open({log!r}, "a") as log:
    folder = os.path.join(asked["folder"], "acf")
    seen = {{"words": sys.argv[1:-1], "kernel": bool(asked["kernel"])}}
    seen["acf"] = sorted(os.listdir(folder)) if os.path.isdir(folder) else []
    seen["ptxas"] = os.environ.get("TRITON_PTXAS_PATH", "")
    print(json.dumps(seen), file=log)
print("==PROF== Connected to process 1")
if behaviour == "forbidden":
    print("==ERROR== ERR_NVGPUCTRPERM - The user does not have permission to access NVIDIA GPU Performance Counters")
    sys.exit(1)
if behaviour == "unknown":
    print("==ERROR== Failed to find metric " + metric)
    sys.exit(1)
if behaviour == "hangs":
    time.sleep(600)
value = 1234.5
if asked["source"]:
    source = json.loads(asked["source"])
    value = 10.0 * source["num_warps"] + (0.5 if source.get("acf") else 0.0)
text = "n/a" if behaviour == "empty" else format(value, ",")
print("==PROF== Disconnected from process 1")
print('"ID","Kernel Name","Metric Name","Metric Unit","Metric Value"')
print('"0","kernel","%s","%%","%s"' % (metric, text))
"""


def fake_ncu(folder: Path, behaviour: str = "") -> Path:
    """Write it into `folder`, which has to be on PATH; returns the log of what it was asked, one JSON object a line."""
    folder.mkdir(parents=True, exist_ok=True)
    log = folder / "asked.jsonl"
    path = folder / "ncu"
    path.write_text(_SCRIPT.format(python=sys.executable, behaviour=behaviour, log=str(log)))
    path.chmod(0o755)
    return log
