"""Whoever looks at another user's database leaves nothing beside it, and sees what its owner writes."""

from __future__ import annotations

import os
import sqlite3
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from engine.store import Store, StoreError
from engine.store.errors import StoreReadOnly
from engine.store.guest import is_guest

pytestmark = pytest.mark.skipif(os.geteuid() != 0, reason="only root can be two users")

OWNER, GUEST = 65533, 65534

AS_USER = """
import os, sqlite3, sys
from pathlib import Path
from engine.store import Store, StoreError
user, path, how = int(sys.argv[1]), Path(sys.argv[2]), sys.argv[3]
os.setgroups([]); os.setgid(user); os.setuid(user)
try:
    if how == "plain":
        with sqlite3.connect(f"{path.as_uri()}?mode=ro", uri=True) as look:
            look.execute("SELECT count(*) FROM run").fetchall()
        sys.exit()
    with Store.open(path, read_only=how != "write") as store:
        if how == "write":
            store.forbid({"TRIAL": os.getpid()}, family="f", author="owner")
        print("opened", store.frozen, len(store.runs()), len(store.forbidden()), store.changes(), flush=True)
        for line in sys.stdin if how == "follow" else ():
            print("now", len(store.forbidden()), store.changes(), flush=True)
except StoreError as error:
    print(type(error).__name__, error)
"""


def as_user(user: int, path: Path, how: str) -> str:
    child = subprocess.run([sys.executable, "-c", AS_USER, str(user), str(path), how], capture_output=True, text=True)
    assert child.returncode == 0, child.stderr
    return child.stdout.strip()


@contextmanager
def following(path: Path) -> Iterator[subprocess.Popen[str]]:
    command = [sys.executable, "-c", AS_USER, str(GUEST), str(path), "follow"]
    with subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True) as child:
        yield child
        assert child.stdin is not None
        child.stdin.close()


def asked(child: subprocess.Popen[str]) -> list[str]:
    assert child.stdin is not None
    assert child.stdout is not None
    child.stdin.write("\n")
    child.stdin.flush()
    return child.stdout.readline().split()


@pytest.fixture
def shared(sample) -> Iterator[Path]:
    """A cleanly closed database of OWNER in a folder that everybody may write, where nobody removes another's file."""
    with tempfile.TemporaryDirectory() as name:
        folder = Path(os.path.realpath(name))
        folder.chmod(0o1777)
        path = folder / "a.db"
        with Store.open(path) as store:
            sample.begin(store)
        os.chown(path, OWNER, OWNER)
        path.chmod(0o644)
        reaches = f"import os; os.setgid({GUEST}); os.setuid({GUEST}); os.stat({str(path)!r})"
        if subprocess.run([sys.executable, "-c", reaches], capture_output=True, check=False).returncode:
            pytest.skip("another user can't reach the folder for temporary files")
        yield path


def beside(path: Path) -> dict[str, int]:
    return {file.name: file.stat().st_uid for file in path.parent.iterdir()}


def test_a_guest_leaves_nothing_and_the_owner_writes(shared: Path) -> None:
    assert as_user(GUEST, shared, "read").startswith("opened False 1 0")
    assert beside(shared) == {"a.db": OWNER}
    assert as_user(OWNER, shared, "write").startswith("opened False 1 1")
    assert as_user(GUEST, shared, "read").startswith("opened False 1 1")


def test_a_guest_sees_what_the_owner_writes_meanwhile(shared: Path) -> None:
    with following(shared) as guest:
        assert guest.stdout is not None
        first = guest.stdout.readline().split()
        assert first[:4] == ["opened", "False", "1", "0"]
        assert as_user(OWNER, shared, "write").startswith("opened")
        second = asked(guest)
        assert second[:2] == ["now", "1"]
        assert second[2] != first[4]
        assert asked(guest) == second
        assert as_user(OWNER, shared, "write").startswith("opened")
        assert asked(guest)[2] != second[2]
    assert set(beside(shared).values()) == {OWNER}


def test_a_guest_sees_what_an_open_writer_commits(shared: Path) -> None:
    with Store.open(shared) as writer, following(shared) as guest:
        assert guest.stdout is not None
        assert guest.stdout.readline().split()[:4] == ["opened", "False", "1", "0"]
        for number in range(1, 4):
            writer.forbid({"TRIAL": number}, family="f", author="owner")
            assert asked(guest)[:2] == ["now", str(number)]
    assert set(beside(shared).values()) == {OWNER}
    assert as_user(OWNER, shared, "write").startswith("opened False 1 4")


def test_a_log_without_its_index_is_read_from_a_copy(shared: Path) -> None:
    with Store.open(shared) as writer:
        writer.forbid({"TRIAL": 1}, family="f", author="owner")
        killed = shared.with_name("killed.db")
        for suffix in ("", "-wal"):
            Path(f"{killed}{suffix}").write_bytes(Path(f"{shared}{suffix}").read_bytes())
            os.chown(f"{killed}{suffix}", OWNER, OWNER)
    assert as_user(GUEST, killed, "read").startswith("opened False 1 1")
    assert not Path(f"{killed}-shm").exists()


def test_what_another_user_left_is_named_with_the_way_out(shared: Path) -> None:
    as_user(GUEST, shared, "plain")
    assert beside(shared)["a.db-shm"] == GUEST
    said = as_user(OWNER, shared, "write")
    assert said.startswith(f"{StoreReadOnly.__name__} {shared} can't be written")
    assert all(word in said for word in ("a.db-shm", "a.db-wal", "nobody has the database open", "delete them"))
    assert "make it" not in said
    for suffix in ("-wal", "-shm"):
        Path(f"{shared}{suffix}").unlink()
    assert as_user(OWNER, shared, "write").startswith("opened")


def test_a_database_without_a_log_of_its_own_kind_is_read_in_its_place(shared: Path) -> None:
    plain = sqlite3.connect(shared)
    plain.execute("PRAGMA journal_mode = DELETE")
    plain.close()
    assert as_user(GUEST, shared, "read").startswith("opened False 1 0")
    assert beside(shared) == {"a.db": OWNER}


def test_who_is_no_guest(shared: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    assert not is_guest(shared)  # root
    monkeypatch.setattr(os, "geteuid", lambda: OWNER)
    assert not is_guest(shared)
    monkeypatch.setattr(os, "geteuid", lambda: GUEST)
    assert is_guest(shared)
    monkeypatch.setattr(os, "access", lambda path, mode: False)
    assert not is_guest(shared)


def test_a_file_that_never_holds_still_ends_in_a_sentence(shared: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    states = iter(range(1000))
    monkeypatch.setattr("engine.store.connection.is_guest", lambda path: True)
    monkeypatch.setattr("engine.store.private_copy.seen_now", lambda path: next(states))
    monkeypatch.setattr("engine.store.private_copy.COPY_S", 0.0)
    with pytest.raises(StoreError, match="written all the time"):
        Store.open(shared, read_only=True)
