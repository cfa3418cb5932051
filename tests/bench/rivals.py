"""Optuna's and Kernel Tuner's strategies over a recorded landscape, where these packages are installed."""

from __future__ import annotations

import contextlib
import io
import json
import random
import tempfile
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import numpy as np

from engine.vocabulary import Schedule
from tests.bench.landscape import Landscape, Ledger
from tests.bench.strategies import Strategy

KERNEL_TUNER = {
    "KT genetic": "genetic_algorithm",
    "KT greywolf": "adaptive_tabu_greywolf",
    "KT VNDX": "hybrid_vndx",
    "KT PSO": "pso",
    "KT diff. evo.": "diff_evo",
}
TRIALS = 1500
"""Optuna proposes combinations that nobody recorded; they are pruned, and a run ends after so many proposals."""


def rivals() -> tuple[dict[str, Strategy], list[str]]:
    """Strategies by name, and a sentence for each package that isn't installed."""
    found: dict[str, Strategy] = {}
    skipped = []
    if find_spec("optuna"):
        found["Optuna TPE"] = optuna_tpe
    else:
        skipped.append("Optuna TPE (optuna is not installed)")
    if find_spec("kernel_tuner"):
        found |= {name: kernel_tuner(strategy) for name, strategy in KERNEL_TUNER.items()}
    else:
        skipped.append(f"{', '.join(KERNEL_TUNER)} (kernel_tuner is not installed)")
    return found, skipped


def optuna_tpe(ledger: Ledger, seed: int) -> None:
    """TPE over the full product of recorded values; unrecorded and failed ones are pruned, repeats told again."""
    import optuna

    optuna.logging.set_verbosity(optuna.logging.ERROR)
    land = ledger.landscape
    rows = {Schedule.of(knobs).key: row for row, knobs in enumerate(land.candidates)}
    study = optuna.create_study(sampler=optuna.samplers.TPESampler(seed=seed))
    for _ in range(TRIALS):
        trial = study.ask()
        knobs = {name: trial.suggest_categorical(name, values) for name, values in land.table.values.items()}
        row = rows.get(Schedule.of(knobs).key)
        us = None if row is None else ledger.measure(row)
        if us is None:
            study.tell(trial, state=optuna.trial.TrialState.PRUNED)
        else:
            study.tell(trial, float(np.log(us)))


def kernel_tuner(strategy: str) -> Strategy:
    """One of Kernel Tuner's strategies with its default options, in simulation mode over a cache of the landscape."""

    def run(ledger: Ledger, seed: int) -> None:
        import constraint
        import kernel_tuner

        land = ledger.landscape
        random.seed(seed)
        np.random.seed(seed)
        names = list(land.table.names)
        recorded = {tuple(knobs[name] for name in names): row for row, knobs in enumerate(land.candidates)}
        with tempfile.TemporaryDirectory() as folder, contextlib.redirect_stdout(io.StringIO()):
            cache = Path(folder) / "cache.json"
            cache.write_text(json.dumps(_cache(land, names)))
            results, _ = kernel_tuner.tune_kernel(
                "landscape",
                "__global__ void landscape() {}",
                1,
                [],
                {name: list(land.table.values[name]) for name in names},
                restrictions=[constraint.FunctionConstraint(lambda *values: values in recorded)],
                strategy=strategy,
                strategy_options={"max_fevals": ledger.budget},
                simulation_mode=True,
                cache=str(cache),
                lang="CUDA",
                verbose=False,
            )
        for result in results:
            ledger.measure(recorded[tuple(result[name] for name in names)])

    return run


def _cache(land: Landscape, names: list[str]) -> dict[str, Any]:
    entries = {}
    for knobs, us in zip(land.candidates, land.us.tolist(), strict=True):
        values = {name: knobs[name] for name in names}
        time: Any = us / 1000 if us == us else "RuntimeFailedConfig"
        zero = dict.fromkeys(("compile_time", "verification_time", "benchmark_time", "strategy_time"), 0)
        stamp = "2000-01-01 00:00:00+00:00"
        entry = {**values, "time": time, "times": [time], **zero, "framework_time": 0, "timestamp": stamp}
        entries[",".join(str(value) for value in values.values())] = entry
    return {
        "device_name": "Simulation",
        "kernel_name": "landscape",
        "problem_size": 1,
        "tune_params_keys": names,
        "tune_params": {name: list(land.table.values[name]) for name in names},
        "objective": "time",
        "cache": entries,
    }
