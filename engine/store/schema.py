"""The tables of a database, and how Emmy knows its own.

`measurement` holds ranking-regime rows only; deploy-regime rows live on the leaves of `node`. `event` is a run's
journal: what happened, in order, for a reader that wants to see a run as if it were live.
`seq` counts the changes of one run across `event` and `node`, so that a follower reads only what it hasn't seen.
"""

from __future__ import annotations

from sqlite_utils import Database

SCHEMA = 3
"""The schema version that this code reads and writes."""

APPLICATION_ID = 0x454D4D59
"""SQLite's application id of an Emmy database: the letters EMMY."""

TABLES = (
    *("meta", "context", "kernel", "run", "grouping", "grouping_kernel"),
    *("measurement", "node", "event", "pin"),
    *("act", "forbidden", "suggestion"),
    *("acf", "acf_acceptance"),
    "assembly",
)


def create_tables(db: Database) -> None:
    """Schema 1, into an empty database. Times are in us, sizes in bytes, moments in seconds since 1970 (UTC)."""
    db.execute(f"PRAGMA application_id = {APPLICATION_ID}")
    db.table("meta").create({"key": str, "value": str}, pk="key")
    _create_things(db)
    _create_runs(db)
    _create_measurement(db)
    _create_node(db)
    db.table("event").create(
        {"run": str, "seq": int, "at": float, "kind": str, "body": str},
        pk=("run", "seq"),
        foreign_keys=[("run", "run", "id")],
    )
    db.table("pin").create(
        {
            "id": int,
            "kernel_key": str,
            "schedule": str,
            "author": str,
            "at": float,
            "note": str,
            "context_key": str,
            "removed_at": float,
        },
        pk="id",
    )
    db.table("pin").create_index(["kernel_key", "context_key"])


def add_dependent_launches(db: Database) -> None:
    """Schema 2: a grouping's time as one graph with programmatic dependent launch, beside that of plain launches."""
    columns = (("us", float), ("low_us", float), ("high_us", float), ("samples", str), ("error", float))
    for name, kind in (*columns, ("failure_kind", str), ("cause", str)):
        db.table("grouping").add_column(f"pdl_{name}", kind)


def add_steering(db: Database) -> None:
    """Schema 3: what people did to a run (`act`), the knob values that they ruled out together (`forbidden`), and
    schedules that were measured or pinned elsewhere (`suggestion`)."""
    _create_suggestion(db)
    _create_controls(db)
    _create_assembly(db)
    db.table("context").add_column("ceilings", str)
    db.table("act").create(
        {"id": int, "run": str, "at": float, "verb": str, "kernel_key": str, "detail": str, "author": str}, pk="id"
    )
    db.table("act").create_index(["run"])
    db.table("forbidden").create(
        {
            "id": int,
            "kernel_key": str,
            "family": str,
            "knobs": str,
            "author": str,
            "at": float,
            "note": str,
            "removed_at": float,
        },
        pk="id",
    )


def _create_controls(db: Database) -> None:
    """Controls files of ptxas, what was said of them, and the size of the code that a candidate became."""
    db.table("acf").create({"sha256": str, "name": str, "bytes": bytes, "added_at": float}, pk="sha256")
    db.table("acf_acceptance").create(
        {
            "sha256": str,
            "ptxas_sha256": str,
            "capability": int,
            "ptxas": str,
            "accepted": int,
            "reason": str,
            "at": float,
        },
        pk=("sha256", "ptxas_sha256", "capability"),
        foreign_keys=[("sha256", "acf", "sha256")],
    )
    db.table("measurement").add_column("code_bytes", int)
    db.table("node").add_column("deploy_code_bytes", int)


def _create_assembly(db: Database) -> None:
    """Every graph that was put together; `pdl` is 1 for programmatic dependent launch."""
    key = ("plan_key", "context_key", "schedules", "pdl")
    columns = {"us": float, "low_us": float, "high_us": float, "samples": str, "error": float}
    db.table("assembly").create(
        {**dict.fromkeys(key[:3], str), "pdl": int, **columns, "failure_kind": str, "cause": str, "at": float}, pk=key
    )


def _create_suggestion(db: Database) -> None:
    db.table("suggestion").create(
        {
            "kernel_key": str,
            "schedule": str,
            "origin": str,
            "gpu": str,
            "versions": str,
            "reason": str,
            "us": float,
            "regime": str,
            "author": str,
            "note": str,
            "at": float,
        },
        pk=("kernel_key", "schedule", "origin"),
    )


def _create_things(db: Database) -> None:
    db.table("context").create(
        {
            "key": str,
            "gpu": str,
            "capability": str,
            "driver": str,
            "torch": str,
            "triton": str,
            "ptxas": str,
            "cold_l2": int,
            "target": str,
        },
        pk="key",
    )
    db.table("kernel").create(
        {"key": str, "family": str, "label": str, "body": str, "shape": str, "flops": int, "bytes": int}, pk="key"
    )


def _create_runs(db: Database) -> None:
    db.table("run").create(
        {
            "id": str,
            "target": str,
            "program": str,
            "device": str,
            "gpu": str,
            "context_key": str,
            "seed": int,
            "patience": int,
            "prior": str,
            "command": str,
            "author": str,
            "version": str,
            "started_at": float,
            "ended_at": float,
            "state": str,
            "reason": str,
            "summary": str,
        },
        pk="id",
        foreign_keys=[("context_key", "context", "key")],
    )
    db.table("grouping").create(
        {
            "id": str,
            "run": str,
            "position": int,
            "decisions": str,
            "plan": str,
            "plan_key": str,
            "sum_us": float,
            "reason": str,
            "schedules": str,
            "assembled_us": float,
            "assembled_low_us": float,
            "assembled_high_us": float,
            "assembled_samples": str,
            "error": float,
            "failure_kind": str,
            "cause": str,
        },
        pk="id",
        foreign_keys=[("run", "run", "id")],
    )
    db.table("grouping").create_index(["run", "position"], unique=True)
    db.table("grouping").create_index(["plan_key"])
    db.table("grouping_kernel").create(
        {"grouping": str, "kernel_key": str, "count": int},
        pk=("grouping", "kernel_key"),
        foreign_keys=[("grouping", "grouping", "id"), ("kernel_key", "kernel", "key")],
    )


def _create_measurement(db: Database) -> None:
    db.table("measurement").create(
        {
            "id": int,
            "kernel_key": str,
            "schedule": str,
            "context_key": str,
            "status": str,
            "median_us": float,
            "low_us": float,
            "high_us": float,
            "samples": str,
            "failure_kind": str,
            "cause": str,
            "normalized_cause": str,
            "registers": int,
            "spills": int,
            "shared_bytes": int,
            "compile_s": float,
            "run_s": float,
            "error": float,
            "run": str,
            "trial": int,
            "measured_at": float,
        },
        pk="id",
        not_null=("kernel_key", "schedule", "context_key", "status"),
        foreign_keys=[("kernel_key", "kernel", "key"), ("context_key", "context", "key"), ("run", "run", "id")],
    )
    measurement = db.table("measurement")
    measurement.create_index(["kernel_key", "context_key", "schedule"], unique=True)
    measurement.create_index(["kernel_key", "context_key", "status", "median_us"])
    db.execute("CREATE INDEX measurement_failed ON measurement (kernel_key, normalized_cause) WHERE status = 'failed'")


def _create_node(db: Database) -> None:
    db.table("node").create(
        {
            "key": str,
            "parent": str,
            "run": str,
            "context_key": str,
            "kernel_key": str,
            "knobs": str,
            "label": str,
            "depth": int,
            "prior": float,
            "visits": int,
            "best_us": float,
            "state": str,
            "is_leaf": int,
            "opened": int,
            "seq": int,
            "updated_at": float,
            "schedule": str,
            "deploy_status": str,
            "deploy_us": float,
            "deploy_low_us": float,
            "deploy_high_us": float,
            "deploy_samples": str,
            "deploy_failure": str,
            "deploy_cause": str,
            "deploy_normalized_cause": str,
            "deploy_registers": int,
            "deploy_spills": int,
            "deploy_shared_bytes": int,
            "deploy_compile_s": float,
            "deploy_run_s": float,
            "deploy_error": float,
            "deploy_at": float,
        },
        pk="key",
        foreign_keys=[("run", "run", "id"), ("context_key", "context", "key")],
    )
    db.table("node").create_index(["run", "seq"])
    db.execute("CREATE INDEX node_deploy ON node (kernel_key, context_key, schedule) WHERE deploy_status IS NOT NULL")
