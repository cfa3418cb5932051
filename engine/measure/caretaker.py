"""What a killed run leaves behind: nothing. A tiny process that outlives the engine by a moment and cleans up after it.

The engine's children die with it (PR_SET_PDEATHSIG), but their children, a ptxas that never ends, would not, and nobody
would remove the temporary folder. This process reads "+pid" and "-pid" lines from the engine. When the pipe ends, for
whatever reason, it kills the process groups that are still listed, removes the folder and exits. It runs as a plain
script on an isolated interpreter and imports nothing of the engine.
"""

import os
import shutil
import signal
import sys


def main(read_fd: int, folder: str) -> None:
    for number in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP):
        signal.signal(number, signal.SIG_IGN)
    groups: set[int] = set()
    with os.fdopen(read_fd) as lines:
        for line in lines:
            change = groups.add if line[0] == "+" else groups.discard
            change(int(line[1:]))
    for group in groups:
        try:
            os.killpg(group, signal.SIGKILL)
        except OSError:
            continue
    for _ in range(3):
        shutil.rmtree(folder, ignore_errors=True)


if __name__ == "__main__":
    main(int(sys.argv[1]), sys.argv[2])
