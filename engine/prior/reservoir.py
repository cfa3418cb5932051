"""The bounded sample of training rows that a learned prior is fitted to, and the file that keeps it.

Algorithm R (Vitter 1985): every row ever offered is kept with equal probability. Which row gives way depends on the
seed and on how many rows came before, not on how they were batched. The file is npz without pickled objects, because
opening someone's file must not run code; the model itself is not stored but fitted again from the rows.
"""

from __future__ import annotations

import errno
import os
import tempfile
import zipfile
import zlib
from contextlib import suppress
from pathlib import Path
from tokenize import TokenError
from typing import IO

import numpy as np
from numpy.typing import NDArray

from engine.prior.features import FeatureMatrix
from engine.prior.geometry import Column
from engine.regular_file import open_regular

CAP = 100_000
FORMAT = "emmy-reservoir-1"
GROUP_CHARACTERS = 64
DAMAGE = (
    *(ValueError, EOFError, KeyError, zipfile.BadZipFile, zlib.error),
    *(MemoryError, NotImplementedError, TokenError),
)
"""What reading an npz raises that is damaged, or none."""
_FIELDS = ("format", "names", "values", "log_us", "groups", "seen", "seed", "cap")


class CheckpointError(Exception):
    """A checkpoint that can't be used; the text says why and what happens instead. `is_output`: it can't be written."""

    def __init__(self, text: str, *, is_output: bool = False) -> None:
        super().__init__(text)
        self.is_output = is_output


def cant_be_written(what: str, error: OSError) -> CheckpointError:
    """The error of a file that could not be written, with the way out that its cause leaves."""
    if error.errno in (errno.ENOSPC, errno.EDQUOT):
        sentence = f"{what} can't be written, no space is left on its disk: free some and run it again"
    else:
        sentence = f"{what} can't be written ({error.strerror or error}): make its folder writable"
    return CheckpointError(sentence, is_output=True)


class Reservoir:
    """Rows of features (float64 [n, f], NaN = undecided), their best ln us, and the kernel each belongs to."""

    def __init__(self, names: tuple[str, ...], *, cap: int = CAP, seed: int = 0) -> None:
        if cap < 1:
            raise ValueError(f"a reservoir holds at least 1 row, not {cap}")
        self.names = names
        self.cap = cap
        self.seed = seed
        self.seen = 0
        self._values: NDArray[np.float64] = np.empty((0, len(names)))
        self._log_us: Column = np.empty(0)
        self._groups: NDArray[np.str_] = np.empty(0, dtype=f"U{GROUP_CHARACTERS}")

    def __len__(self) -> int:
        return len(self._log_us)

    @property
    def matrix(self) -> FeatureMatrix:
        return FeatureMatrix(self._values, self.names)

    @property
    def log_us(self) -> Column:
        return self._log_us

    @property
    def groups(self) -> NDArray[np.str_]:
        """The kernel of each row: what is held out together."""
        return self._groups

    def offer(self, matrix: FeatureMatrix, log_us: Column, group: str) -> None:
        """Rows of one kernel. A row without a finite label (a failure) is no training row and is passed over.

        Columns are matched by name: what the reservoir has and `matrix` lacks is NaN.
        """
        values = aligned(matrix, self.names)
        usable = np.isfinite(log_us) & ~np.isinf(values).any(axis=1)
        rows, labels = values[usable], log_us[usable]
        room = min(self.cap - len(self), len(rows))
        if room:
            self._values = np.concatenate([self._values, rows[:room]])
            self._log_us = np.concatenate([self._log_us, labels[:room]])
            named = np.full(room, group, dtype=self._groups.dtype)
            self._groups = np.concatenate([self._groups, named])
            self.seen += room
        for row, label in zip(rows[room:], labels[room:], strict=True):
            self.seen += 1
            place = _mixed(self.seed, self.seen) % self.seen
            if place < self.cap:
                self._values[place], self._log_us[place], self._groups[place] = row, label, group

    def replace(self, matrix: FeatureMatrix, log_us: Column, group: str) -> bool:
        """Offer a kernel's rows in place of those it has here; False if they are the ones it has already."""
        here = self._groups == group[:GROUP_CHARACTERS]
        usable = np.isfinite(log_us)
        same = (
            int(here.sum()) == int(usable.sum())
            and np.array_equal(self._log_us[here], log_us[usable])
            and np.array_equal(self._values[here], aligned(matrix, self.names)[usable], equal_nan=True)
        )
        if same:
            return False
        self._values, self._log_us, self._groups = self._values[~here], self._log_us[~here], self._groups[~here]
        self.seen -= int(here.sum())
        self.offer(matrix, log_us, group)
        return True

    def with_columns(self, names: tuple[str, ...], values: NDArray[np.float64]) -> Reservoir:
        """The same rows told in other columns, `values` being float64 [n, len(names)]."""
        told = Reservoir(names, cap=self.cap, seed=self.seed)
        told.seen, told._values, told._log_us, told._groups = self.seen, values, self._log_us, self._groups
        return told

    def save(self, path: Path) -> None:
        """Whole or not at all. Raises CheckpointError if the file can't be written."""
        try:
            path.parent.mkdir(parents=True, exist_ok=True)
            descriptor, part = tempfile.mkstemp(dir=path.parent, prefix=f"{path.name}.")
            try:
                with os.fdopen(descriptor, "wb") as file:
                    self._write(file)
                os.replace(part, path)
            finally:
                with suppress(FileNotFoundError):
                    os.unlink(part)
        except OSError as error:
            raise cant_be_written(f"the checkpoint {path}", error) from error

    @classmethod
    def load(cls, path: Path) -> Reservoir:
        """Raises CheckpointError: no file, another program's, another version's, cut off, or of impossible shape."""
        try:
            with open_regular(path) as file, np.load(file, allow_pickle=False) as stored:
                if not isinstance(stored, np.lib.npyio.NpzFile) or not set(_FIELDS) <= set(stored.files):
                    raise CheckpointError(f"{path} is no checkpoint of a prior; the cold model answers")
                found = {name: stored[name] for name in _FIELDS}
        except FileNotFoundError:
            raise CheckpointError(f"there is no checkpoint {path}; the cold model answers") from None
        except OSError as error:
            raise CheckpointError(
                f"the checkpoint {path} can't be read: {error.strerror or error}; the cold model answers"
            ) from None
        except DAMAGE:
            raise CheckpointError(f"the checkpoint {path} is damaged; the cold model answers") from None
        return cls._from_fields(path, found)

    @classmethod
    def _from_fields(cls, path: Path, found: dict[str, NDArray[np.generic]]) -> Reservoir:
        if str(found["format"]) != FORMAT:
            raise CheckpointError(f"{path} was written by another version of Emmy; the cold model answers")
        values, log_us, groups = found["values"], found["log_us"], found["groups"]
        numbers = [found[name] for name in ("seen", "seed", "cap")]
        sound = (
            values.dtype == np.float64
            and log_us.dtype == np.float64
            and all(found[name].dtype.kind == "U" and found[name].ndim == 1 for name in ("groups", "names"))
            and all(number.dtype.kind == "i" and number.ndim == 0 for number in numbers)
            and values.shape == (len(groups), len(found["names"]))
            and log_us.shape == groups.shape
        )
        if not sound:
            raise CheckpointError(f"the checkpoint {path} is damaged; the cold model answers")
        seen, seed, cap = (int(number) for number in numbers)
        if not (0 <= len(log_us) <= min(seen, cap) and np.isfinite(log_us).all() and not np.isinf(values).any()):
            raise CheckpointError(f"the checkpoint {path} holds impossible numbers; the cold model answers")
        reservoir = cls(tuple(str(name) for name in found["names"]), cap=cap, seed=seed)
        reservoir.seen = seen
        reservoir._values, reservoir._log_us = np.array(values, dtype=np.float64), np.array(log_us, dtype=np.float64)
        reservoir._groups = groups.astype(f"U{GROUP_CHARACTERS}")
        return reservoir

    def _write(self, file: IO[bytes]) -> None:
        np.savez_compressed(
            file,
            format=np.array(FORMAT),
            names=np.array(self.names, dtype=np.str_),
            values=self._values,
            log_us=self._log_us,
            groups=self._groups,
            seen=np.array(self.seen),
            seed=np.array(self.seed),
            cap=np.array(self.cap),
        )


def aligned(matrix: FeatureMatrix, names: tuple[str, ...]) -> NDArray[np.float64]:
    """The columns of `names`, in their order; one that `matrix` lacks is NaN."""
    if matrix.names == names:
        return matrix.values
    values = np.full((len(matrix), len(names)), np.nan)
    for position, name in enumerate(names):
        if name in matrix.names:
            values[:, position] = matrix.column(name)
    return values


def _mixed(seed: int, count: int) -> int:
    """64 even bits of two numbers (splitmix64: Steele, Lea, Flood 2014)."""
    z = (seed * 0x9E3779B97F4A7C15 + count * 0xBF58476D1CE4E5B9) & (2**64 - 1)
    z = ((z ^ (z >> 30)) * 0xBF58476D1CE4E5B9) & (2**64 - 1)
    z = ((z ^ (z >> 27)) * 0x94D049BB133111EB) & (2**64 - 1)
    return z ^ (z >> 31)
