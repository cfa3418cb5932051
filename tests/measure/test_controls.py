"""Controls files are known by their bytes: names, manifests and folders are how a person finds them, no more."""

from __future__ import annotations

import hashlib
import json
import os
from dataclasses import replace
from pathlib import Path

import pytest

from engine.codegen import CONTROLS_FOLDER
from engine.measure import NO_OPTIMIZATION, Controls, ControlsError, find_assembler, option_sha256, read_controls
from engine.measure import controls as module
from engine.measure.controls import context_with
from engine.vocabulary import Context

from .fake_ptxas import fake_ptxas
from .rig import open_fake, processes_about


def write(path: Path, text: str) -> Path:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(text)
    return path


def sha256(text: str) -> str:
    return hashlib.sha256(text.encode()).hexdigest()


def test_files_and_folders_are_read_each_bytes_once(tmp_path: Path) -> None:
    folder = tmp_path / "a pack"
    write(folder / "one.acf", "one")
    write(folder / "again.acf", "one")
    write(folder / "notes.txt", "no controls")
    single = write(tmp_path / "two.acf", "two")
    found = read_controls([folder, single, single])
    assert [file.sha256 for file in found] == sorted([sha256("one"), sha256("two")])


def test_other_bytes_under_one_name_are_another_file(tmp_path: Path) -> None:
    path = write(tmp_path / "x.acf", "before")
    before = read_controls([path])[0]
    write(path, "after")
    after = read_controls([path])[0]
    assert before.name == after.name
    assert before.sha256 != after.sha256


@pytest.mark.parametrize("shape", ["list", "object"])
def test_a_manifest_is_held_against_the_bytes(tmp_path: Path, shape: str) -> None:
    write(tmp_path / "one.acf", "one")
    write(tmp_path / "two.acf", "two")
    entries = [{"name": "one", "sha256": sha256("one")}, {"file": "acfs/two.acf", "sha256": sha256("two").upper()}]
    told = entries if shape == "list" else {"note": "made up", "base": {"x": 1}, "acfs": entries}
    manifest = write(tmp_path / "manifest.json", json.dumps(told))
    assert len(read_controls([tmp_path])) == 2
    write(tmp_path / "two.acf", "changed")
    with pytest.raises(ControlsError, match=r"two\.acf is not what .*manifest\.json says"):
        read_controls([tmp_path])
    manifest.write_text("{")
    with pytest.raises(ControlsError, match="no readable JSON"):
        read_controls([tmp_path])


def test_what_can_be_no_controls_is_refused(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    for given, words in (
        ([], "no controls file was given"),
        ([tmp_path], r"holds no \.acf file"),
        ([tmp_path / "none.acf"], "can't be read: No such file"),
        ([write(tmp_path / "e" / "empty.acf", "")], "is empty"),
    ):
        with pytest.raises(ControlsError, match=words):
            read_controls(given)
    os.mkfifo(tmp_path / "pipe.acf")
    with pytest.raises(ControlsError, match=r"pipe\.acf can't be read: it is a pipe or a device, and no file"):
        read_controls([tmp_path / "pipe.acf"])
    monkeypatch.setattr(module, "LARGEST_BYTES", 2)
    with pytest.raises(ControlsError, match="larger than any"):
        read_controls([write(tmp_path / "l" / "large.acf", "long")])


def test_they_are_laid_out_under_their_hashes(tmp_path: Path) -> None:
    files = read_controls([write(tmp_path / "a b" / "x y.acf", "one")])
    Controls(find_assembler(fake_ptxas(tmp_path)), files).lay_out(tmp_path / "sources")
    names = {path.name for path in (tmp_path / "sources" / CONTROLS_FOLDER).iterdir()}
    assert names == {f"{sha256('one')}.acf", f"{option_sha256(NO_OPTIMIZATION)}.options"}


def test_the_context_names_the_binary(tmp_path: Path) -> None:
    context = Context("GPU", "9.0", "1", "2", "3", "12.8.93")
    assert context_with(None, context) is context
    first, second = (
        context_with(Controls(find_assembler(fake_ptxas(tmp_path / salt, salt=salt)), ()), context) for salt in "ab"
    )
    assert replace(first, ptxas="") == replace(second, ptxas="")
    assert len({context.key, first.key, second.key}) == 3


def test_a_device_works_with_them_from_its_first_child(tmp_path: Path) -> None:
    files = read_controls([write(tmp_path / "one.acf", "one")])
    controls = Controls(find_assembler(fake_ptxas(tmp_path / "the tools")), files)
    with open_fake(controls=controls) as device, open_fake() as plain:
        assert device.context.ptxas == controls.assembler.identity
        assert device.context.key != plain.context.key
        seen = {line for pid in processes_about(tmp_path / "the tools") for line in environment_of(pid)}
    wanted = {f"{name}={path}" for name, path in controls.assembler.environment.items()}
    assert wanted <= seen


def environment_of(pid: int) -> list[str]:
    try:
        return Path(f"/proc/{pid}/environ").read_bytes().decode(errors="replace").split("\0")
    except OSError:
        return []
