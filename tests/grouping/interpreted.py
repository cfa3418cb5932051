"""Runs the kernels of rewritten graphs in Triton's interpreter and prints what went wrong, as JSON lines.

Triton decides at import whether it interprets, so this is a program: `python -m tests.grouping.interpreted`.
"""

from __future__ import annotations

import json

from engine.grouping import grouping_space
from engine.runtime.inputs import Draw
from tests.codegen.interpreted import problems, sample
from tests.grouping.rewritable import REWRITABLE

SCHEDULES = 2


def main() -> None:
    seen: set[str] = set()
    for name, graph in REWRITABLE.items():
        checked = 0
        for position in (1, -1):
            space, path = grouping_space(graph()), ()
            while (fork := space.fork(path)) is not None:
                is_rule = fork.name.startswith(("FUSE", "MERGE"))
                path = (*path, fork.options[0 if is_rule else position])
            for key, (kernel, _) in space.grouping(path).kernel_counts().items():
                if key in seen:
                    continue
                seen.add(key)
                for schedule in sample(kernel, name)[:SCHEDULES]:
                    checked += 1
                    for problem in problems(kernel, schedule, Draw.MODEST):
                        print(json.dumps({"graph": name, "schedule": str(schedule), "problem": problem}))
        print(json.dumps({"graph": name, "checked": checked}), flush=True)


if __name__ == "__main__":
    main()
