"""What a person may type as a path: it is in full, or one sentence says what is wrong with it."""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from engine.store import NotResults, StoreError, is_beside_a_database, is_database, read_document, unwritable_because
from engine.store.connection import open_connection, upgrade_file
from engine.store.copies import copy_database
from engine.store.merging import merge_databases
from engine.store.store import Store
from engine.typed_path import BadPath, typed_file, typed_path

NOBODY = "~nosuchuserhere/x.db"
LONG = "x" * 300
two_users = pytest.mark.skipif(os.geteuid() != 0, reason="only root can be another user")


@pytest.fixture
def nowhere(tmp_path: Path) -> Iterator[None]:
    """The working folder is gone."""
    before = Path.cwd()
    folder = tmp_path / "gone"
    folder.mkdir()
    os.chdir(folder)
    folder.rmdir()
    yield
    os.chdir(before)


def test_a_path_is_in_full(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("HOME", str(tmp_path))
    monkeypatch.chdir(tmp_path)
    (tmp_path / "here").write_text("")
    assert typed_path("~/none/yet") == tmp_path / "none" / "yet"
    assert typed_path("here/under-a-file") == tmp_path / "here" / "under-a-file"
    assert typed_file("here") == tmp_path / "here"


@pytest.mark.parametrize(
    ("typed", "words"),
    [
        (NOBODY, "there is no user nosuchuserhere"),
        (LONG, "too long"),
        (f"/tmp/{LONG}/y", "a name in the path is too long"),
        ("/" + "folder/" * 1000, "^the path is too long, 7000 bytes"),
        ("a\0b", "no path holds such a character"),
        ("a\udcffb\0", "no path holds such a character"),
    ],
)
def test_what_can_not_be_meant_is_a_sentence(typed: str, words: str) -> None:
    for ask in (typed_path, typed_file):
        with pytest.raises(BadPath, match=words) as raised:
            ask(typed)
        assert "\n" not in str(raised.value)
        assert len(str(raised.value)) < 200


def test_links_in_a_circle_and_what_is_no_file(tmp_path: Path) -> None:
    (tmp_path / "a").symlink_to(tmp_path / "b")
    (tmp_path / "b").symlink_to(tmp_path / "a")
    with pytest.raises(BadPath, match="in a circle"):
        typed_path(tmp_path / "a")
    with pytest.raises(BadPath, match="is a folder"):
        typed_file(tmp_path)
    with pytest.raises(BadPath, match="is no file"):
        typed_file(tmp_path / "none")


@pytest.mark.usefixtures("nowhere")
def test_a_working_folder_that_is_gone() -> None:
    for ask in (typed_path, typed_file):
        with pytest.raises(BadPath, match="working folder is gone"):
            ask("x.db")
    with pytest.raises(StoreError, match="working folder is gone"):
        Store.open(Path("x.db"))


def test_every_door_of_the_store_says_so(tmp_path: Path) -> None:
    here, bad = tmp_path / "here.db", Path(NOBODY)
    Store.open(here).close()
    for act in (
        lambda: Store.open(bad),
        lambda: Store.open(bad, read_only=True),
        lambda: open_connection(bad, read_only=True, create=False),
        lambda: upgrade_file(bad),
        lambda: copy_database(here, bad),
        lambda: copy_database(bad, here),
        lambda: merge_databases([here, here], bad),
        lambda: read_document(bad),
    ):
        with pytest.raises(StoreError, match="there is no user nosuchuserhere"):
            act()
    with pytest.raises(NotResults):
        read_document(Path(LONG))
    assert not is_database(bad)
    assert not is_beside_a_database(bad)


AS_NOBODY = """
import os, sys
from pathlib import Path
from engine.store import Store, StoreError, unwritable_because
from engine.typed_path import BadPath, typed_file, typed_path

os.setgroups([]); os.setgid(65534); os.setuid(65534)
path = Path(sys.argv[1])
print(unwritable_because(path))
for ask in (typed_path, typed_file, lambda path: Store.open(path, read_only=True)):
    try:
        ask(path)
    except (BadPath, StoreError) as error:
        print(error)
"""


@two_users
def test_a_folder_that_may_not_be_entered(tmp_path: Path) -> None:
    shut = tmp_path / "shut"
    shut.mkdir()
    Store.open(shut / "tune.db").close()
    shut.chmod(0o700)
    asked = [sys.executable, "-c", AS_NOBODY, str(shut / "tune.db")]
    done = subprocess.run(asked, capture_output=True, text=True, check=True, cwd=Path(__file__).parents[1])
    first, *others = done.stdout.splitlines()
    assert first == f"{shut / 'tune.db'} can't be reached (Permission denied)"
    assert len(others) == 3
    assert all("may not be entered" in line and "written" not in line for line in others)


def test_what_can_be_written_has_no_reason(tmp_path: Path) -> None:
    Store.open(tmp_path / "tune.db").close()
    assert unwritable_because(tmp_path / "tune.db") == ""
