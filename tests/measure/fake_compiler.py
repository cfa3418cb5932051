"""A compile process without Triton: it fails, dies or hangs as the source's text says."""

from __future__ import annotations

import json
import os
import re
import signal
import subprocess
import sys
import time
from pathlib import Path

from engine.measure.channel import ChannelClosed
from engine.measure.child_side import open_channel


def main() -> None:
    channel = open_channel(*map(int, sys.argv[1:4]))
    try:
        channel.send({"ready": True})
        while True:
            request = channel.receive()
            text = json.loads(request["source"])["text"]
            folder = Path(request["folder"])
            folder.mkdir(exist_ok=True)
            with (folder / "compiled.txt").open("a") as log:
                log.write(text + "\n")
            if "compile-abort" in text:
                os.abort()
            if "compile-hang" in text:
                subprocess.Popen([sys.executable, "-c", f"import time; time.sleep(1000)  # {folder}"])
                time.sleep(1000)
            if "compile-slow" in text:
                time.sleep(0.3)
            dies = re.search(r"compile-dies-while (\S+) exists", text)
            if dies and Path(dies.group(1)).exists():
                os.kill(os.getpid(), signal.SIGBUS)
            full = re.search(r"disk-full-while (\S+) exists", text)
            if full and Path(full.group(1)).exists():
                channel.send({"full": "no space is left in this test"})
            elif "compile-error" in text:
                failure = {"kind": "compile error", "cause": "ptxas: no"}
                channel.send({"failure": failure, "build": {"compile_s": 0.01}})
            else:
                channel.send({"build": {"shared_bytes": 1024, "compile_s": 0.01, "registers": 32}})
    except ChannelClosed:
        return


if __name__ == "__main__":
    main()
