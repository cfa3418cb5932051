"""Controls files of ptxas as a database keeps them: the bytes once, under their sha256, and who accepted them.

A row of `acf_acceptance` says what one ptxas binary said of one file for one kind of GPU. Nothing else makes a file
usable: another ptxas, even one with the same version text, or another GPU has to be asked first.
"""

from __future__ import annotations

import hashlib
from collections.abc import Sequence
from dataclasses import dataclass

from engine.store.connection import Connection, Row
from engine.store.errors import StoreError
from engine.store.rows import RowName, named_row, text

SHOWN = 12


@dataclass(frozen=True, slots=True)
class StoredControls:
    """One file. `name` is what the first person who brought it called it."""

    sha256: str
    name: str
    data: bytes


@dataclass(frozen=True, slots=True)
class AcceptanceRow:
    """What one ptxas (version text and sha256 of the binary) said of a file for a compute capability (90 is 9.0)."""

    sha256: str
    ptxas_sha256: str
    ptxas: str
    capability: int
    accepted: bool
    reason: str = ""


def record_controls(
    connection: Connection, files: Sequence[tuple[str, bytes]], said: Sequence[AcceptanceRow], at: float
) -> None:
    """Keep files (name and bytes) and what was said of them; what is there stays, a newer word replaces an older."""
    with connection.transaction() as db:
        for name, data in files:
            db.table("acf").insert(
                {"sha256": hashlib.sha256(data).hexdigest(), "name": text(name), "bytes": data, "added_at": at},
                pk="sha256",
                ignore=True,
            )
        for row in said:
            db.table("acf_acceptance").upsert(
                {
                    "sha256": row.sha256,
                    "ptxas_sha256": row.ptxas_sha256,
                    "capability": row.capability,
                    "ptxas": text(row.ptxas),
                    "accepted": int(row.accepted),
                    "reason": text(row.reason),
                    "at": at,
                },
                pk=("sha256", "ptxas_sha256", "capability"),
            )


def stored_controls(connection: Connection) -> tuple[StoredControls, ...]:
    """Every file, by sha256. Raises StoreError for bytes that aren't what they are filed under."""
    return tuple(_controls(row) for row in connection.rows("SELECT * FROM acf ORDER BY sha256", ()))


def controls_file(connection: Connection, sha256: str) -> StoredControls | None:
    """The file of this hash, if it is kept. Raises StoreError for bytes that aren't what they are filed under."""
    row = connection.first("SELECT * FROM acf WHERE sha256 = ?", (sha256,))
    return _controls(row) if row is not None else None


def acceptances(connection: Connection, sha256: str) -> tuple[AcceptanceRow, ...]:
    """What was said of a file, the newest last."""
    sql = "SELECT * FROM acf_acceptance WHERE sha256 = ? ORDER BY at, ptxas_sha256"
    return tuple(connection.readable(connection.rows(sql, (sha256,)), _acceptance))


def unusable_because(connection: Connection, sha256: str, ptxas: str, capability: str) -> str | None:
    """A sentence why controls can't be applied in a context, or None; asked before anything is built.

    `ptxas` and `capability` are those of the context: only one that names its ptxas's binary ("13.3.73+<sha256>") can
    apply controls at all. Controls "" always fit.
    """
    if not sha256:
        return None
    if connection.first("SELECT sha256 FROM acf WHERE sha256 = ?", (sha256,)) is None:
        missing = f"The controls file {sha256[:SHOWN]} is not in this database"
        return f"{missing}: tune with `emmy tune --acf` and that file first."
    version, _, digest = ptxas.partition("+")
    chip = int(capability.replace(".", "") or 0)
    said = acceptances(connection, sha256)
    fitting = [row for row in said if digest and row.capability == chip and row.ptxas_sha256.startswith(digest)]
    if fitting and fitting[-1].accepted:
        return None
    if fitting:
        return f"ptxas {version} does not take the controls file {sha256[:SHOWN]}: {fitting[-1].reason}."
    where = sorted({f"ptxas {row.ptxas} for sm_{row.capability}" for row in said if row.accepted})
    known = f"accepted by {', '.join(where)}" if where else "accepted by none so far"
    asked = f"ptxas {version or '?'} for sm_{chip}"
    return f"The controls file {sha256[:SHOWN]} is {known}, not by {asked}: tune with `emmy tune --acf`."


def _controls(row: Row) -> StoredControls:
    with named_row(RowName("acf", row["sha256"])):
        data = bytes(row["bytes"])
        found = StoredControls(str(row["sha256"]), row["name"] or "", data)
    if hashlib.sha256(data).hexdigest() != found.sha256:
        raise StoreError(f"the controls file {found.sha256[:SHOWN]} of this database has other bytes: it is damaged")
    return found


def _acceptance(row: Row) -> AcceptanceRow:
    with named_row(f"a row of table acf_acceptance (of controls file {row['sha256']})"):
        return AcceptanceRow(
            *(str(row["sha256"]), str(row["ptxas_sha256"]), row["ptxas"] or "", int(row["capability"])),
            *(bool(row["accepted"]), row["reason"] or ""),
        )
