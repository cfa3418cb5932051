"""A package under the name of CompileIQ that breeds made-up files, as far as its documentation says what it is asked.

Nothing of the real one is in it: a generation's candidates are texts, and what the parent said of them is logged.
"""

from __future__ import annotations

from pathlib import Path

_TYPES = """
class Worker:
    def __init__(self, cache_folder, normalize=False, tracker=None):
        self.normalize = normalize

INVALID_SCORE = "invalid"

class Score:
    def __init__(self, *, score, param_id, params, num_objectives):
        self.score, self.param_id, self.params = score, param_id, params

class SearchConfiguration:
    def __init__(self, *, problem_type, generations, pool_size):
        assert problem_type == "min" and pool_size > 5
        self.generations, self.pool_size = generations, pool_size
"""

_CIQ = """
import os, pathlib
BEHAVIOUR = "{behaviour}"

class Search:
    def __init__(self, *, objective_function, search_space, search_config, worker_type, **rest):
        self.space, self.config = search_space, search_config
        self.worker = worker_type.create(cache_folder=None, normalize=False, tracker=None)

    def start(self):
        if BEHAVIOUR == "raises":
            raise RuntimeError("the search space\\nis of another ptxas")
        if BEHAVIOUR == "dies":
            print("licence expired", flush=True)
            os._exit(3)
        seen = pathlib.Path({log!r})
        for number in range(self.config.generations):
            texts = [f"{{word}} {{number}}" for word in ({words}) * 9][: self.config.pool_size]
            pool = ["not hex"] if BEHAVIOUR == "nonsense" else [text.encode().hex() for text in texts]
            scores = self.worker.run(
                function=None, params_pool=pool, params_ids=[*range(len(pool))], num_function_returns=1, num_workers=1
            )
            with seen.open("a") as log:
                log.write(repr([(bytes.fromhex(one.params).decode(), one.score) for one in scores]) + "\\n")
"""

_COMPILERS = """
class PtxasSearchSpace:
    def __init__(self, version):
        assert version == "12.8", version
"""


def fake_compileiq(folder: Path, behaviour: str = "", words: str = '"slower", "other", "ignored"') -> Path:
    """Write it under `folder`, which has to be on PYTHONPATH; returns the log of what it was told."""
    package = folder / "compileiq"
    (package / "search_spaces").mkdir(parents=True)
    log = folder / "told.txt"
    for name, text in {
        "__init__.py": "",
        "types.py": _TYPES,
        "ciq.py": _CIQ.format(behaviour=behaviour, log=str(log), words=words),
        "search_spaces/__init__.py": "",
        "search_spaces/compilers.py": _COMPILERS,
    }.items():
        (package / name).write_text(text)
    return log
