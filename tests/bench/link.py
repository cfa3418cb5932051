"""A person at the far end of a slow link: keys and bytes at 100 ms there and back and 256 kbit/s.

    python -m tests.bench.link [--seconds 10] [--columns 80]

Prints each figure beside its budget, never fails. The program runs in a terminal of its own; between it and the person
is a link that holds little, so that the program meets what it meets over ssh: a terminal that takes nothing at times.
An echo is timed until the person's screen shows what the key is for, whatever else changes on it.
"""

from __future__ import annotations

import argparse
import os
import select
import socket
import statistics
import sys
import threading
import time
from collections import deque
from collections.abc import Callable, Iterator, Sequence

from tests.bench.screens_terminal import CHILD, Terminal, told
from tests.emmy_tui.seen import Screen

DELAY_S = 0.05
BYTES_PER_S = 32_000
HOLDS = 16_384
"""Bytes that wait in the link before it takes no more, as a connection's buffers do."""
PIECE = 512
ECHO_MS = 2 * DELAY_S * 1000 + 100
BUDGET_KB = {(80, 24): 8.0, (160, 45): 20.0}
WARM_S = 6.0
PATIENCE_S = 5.0
BETWEEN_S = 0.4


class Link:
    """Carries bytes between a program's terminal and a socket, later and no faster than a line does."""

    def __init__(self, terminal: int, person: socket.socket) -> None:
        self._terminal, self._person = terminal, person
        self._out: deque[tuple[float, bytes]] = deque()
        self._keys: deque[tuple[float, bytes]] = deque()
        self._free_at = 0.0
        self._closing = threading.Event()
        self._thread = threading.Thread(target=self._carry, name="link", daemon=True)
        self._thread.start()

    def _carry(self) -> None:
        while not self._closing.is_set():
            now = time.monotonic()
            waits = max(0.0, self._free_at - now) * BYTES_PER_S
            sources = [self._person.fileno(), *([self._terminal] if waits < HOLDS else [])]
            ready = select.select(sources, [], [], self._sleep(now))[0]
            try:
                self._take(ready)
                self._deliver()
            except OSError:  # one of the ends is closed
                return

    def _sleep(self, now: float) -> float:
        dues = [queue[0][0] for queue in (self._out, self._keys) if queue]
        return max(0.0, min([now + 0.02, *dues]) - now)

    def _take(self, ready: Sequence[int]) -> None:
        now = time.monotonic()
        if self._person.fileno() in ready:
            self._keys.append((now + DELAY_S, self._person.recv(PIECE)))
        if self._terminal in ready:
            data = os.read(self._terminal, PIECE)
            self._free_at = max(now, self._free_at) + len(data) / BYTES_PER_S
            self._out.append((self._free_at + DELAY_S, data))

    def _deliver(self) -> None:
        now = time.monotonic()
        while self._keys and self._keys[0][0] <= now:
            os.write(self._terminal, self._keys.popleft()[1])
        while self._out and self._out[0][0] <= now:
            self._person.sendall(self._out.popleft()[1])

    def close(self) -> None:
        self._closing.set()
        self._thread.join()


class FarTerminal(Terminal):
    """A program whose person is at the other end of a link."""

    def __init__(self, command: Sequence[str], size: tuple[int, int]) -> None:
        super().__init__(command, size)
        self._pty = self.fd
        self._person, self._end = socket.socketpair()
        self.link = Link(self._pty, self._end)
        self.fd = self._person.fileno()
        self.screen = Screen(size)
        self.bytes = 0

    def see(self, seconds: float, until: Callable[[Screen], bool] = lambda screen: False) -> bool:
        """Look at the screen for so long, or until it shows what is awaited; whether it did."""
        ends = time.monotonic() + seconds
        while not until(self.screen):
            left = ends - time.monotonic()
            if left <= 0 or not select.select([self.fd], [], [], left)[0]:
                return False
            data = os.read(self.fd, 1 << 16)
            self.bytes += len(data)
            self.screen.show(data)
        return True

    def echo_ms(self, key: str, until: Callable[[Screen], bool]) -> float:
        """From a key to what it is for; PATIENCE_S where that never came."""
        began = time.monotonic()
        os.write(self.fd, key.encode())
        self.see(PATIENCE_S, until)
        return (time.monotonic() - began) * 1000

    def close(self) -> None:
        self.link.close()
        self.fd = self._pty
        self._person.close()
        self._end.close()
        super().close()


def keys_of(screen: Screen, *, stored: bool) -> Iterator[tuple[str, Callable[[Screen], bool]]]:
    """What a person presses in turn, and what then is to be seen. The variants are listed of what is `stored`."""
    while True:
        tab, lists = ("2", "jjkk") if stored else ("3", "")
        yield tab, shows(f"[{tab} ")
        for key in lists:
            yield key, moved_from(screen.cursor)
        yield "1", shows("[1 ")
        for key in "" if stored else "jk":
            yield key, moved_from(screen.cursor)
        yield "?", shows("Keys of emmy-tui")
        yield "\x1b", lambda seen: "Keys of emmy-tui" not in seen.text


def moved_from(line: int) -> Callable[[Screen], bool]:
    return lambda seen: seen.cursor not in (line, -1)


def shows(words: str) -> Callable[[Screen], bool]:
    return lambda seen: words in seen.text


def over_the_link(name: str, command: Sequence[str], size: tuple[int, int], seconds: float) -> None:
    terminal = FarTerminal(command, size)
    try:
        terminal.see(20.0, shows("Search tree"))
        terminal.see(WARM_S)
        before, began = terminal.bytes, time.monotonic()
        terminal.see(seconds)
        rate = (terminal.bytes - before) / (time.monotonic() - began) / 1024
        echoes: dict[str, list[float]] = {}
        ends, keys = time.monotonic() + 2 * seconds, keys_of(terminal.screen, stored=name == "demo")
        while time.monotonic() < ends:
            key, until = next(keys)
            echoes.setdefault(key, []).append(terminal.echo_ms(key, until))
            terminal.see(BETWEEN_S + len(echoes[key]) % 5 / 10)
        report(f"{name}, {size[0]}x{size[1]}", size, rate, echoes)
    finally:
        terminal.close()


def report(name: str, size: tuple[int, int], rate: float, echoes: dict[str, list[float]]) -> None:
    told(f"{name}: to the terminal", rate, "KB/s", BUDGET_KB[size])
    every = sorted(one for times in echoes.values() for one in times)
    told(f"  echo of {len(every)} keys, p95", every[len(every) * 95 // 100], "ms", ECHO_MS)
    print(f"{'  median':<58} {statistics.median(every):9.1f} ms")
    medians = (f"{'esc' if key == chr(27) else key} {statistics.median(times):.0f}" for key, times in echoes.items())
    print(f"  median by key, ms: {', '.join(medians)}")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--seconds", type=float, default=10.0, help="how long each is only looked at; keys take twice")
    parser.add_argument("--columns", type=int, choices=(80, 160), help="only at this width")
    options = parser.parse_args()
    ways = {"demo": [sys.executable, "-m", "emmy_tui.main", "--demo"]}
    for rate in (20, 1000):
        ways[f"{rate:,} events/s"] = [*CHILD, str(rate), "600", os.devnull]
    for over_ssh in (True, False):
        os.environ.pop("SSH_CONNECTION", None)
        if over_ssh:
            os.environ["SSH_CONNECTION"] = "a link"
        print("with SSH_CONNECTION" if over_ssh else "without SSH_CONNECTION")
        for size in BUDGET_KB:
            if options.columns in (None, size[0]):
                for name, command in ways.items():
                    over_the_link(name, command, size, options.seconds)


if __name__ == "__main__":
    main()
