"""What an unfinished path is worth before anything was tried below it: what its first completion costs."""

from __future__ import annotations

from collections.abc import Callable

from engine.search.space import Path, Space


class FirstCompletion:
    """The cost of the finished path that the first option of every fork after a path leads to.

    `cost` is asked once for each finished path; a path that ends in a fork without options costs `dead_end`.
    """

    def __init__(self, space: Space, cost: Callable[[Path], float], dead_end: float) -> None:
        self._space = space
        self._cost = cost
        self._dead_end = dead_end
        self._known: dict[Path, float] = {}

    def __call__(self, path: Path) -> float:
        walked = [path]
        while path not in self._known:
            fork = self._space.fork(path)
            if fork is None:
                self._known[path] = self._cost(path)
            elif fork.options:
                path = (*path, fork.options[0])
                walked.append(path)
            else:
                self._known[path] = self._dead_end
        self._known.update(dict.fromkeys(walked, self._known[path]))
        return self._known[path]
