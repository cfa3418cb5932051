"""What a ptxas says of controls before anything runs: accepted, rejected, ignored, crashed on, hung on."""

from __future__ import annotations

from pathlib import Path

import pytest

from engine.measure import Controls, ControlsError, ControlsFile, Judgement, find_assembler, judge
from engine.measure import acceptance as module

from .fake_ptxas import fake_ptxas


def asked(folder: Path, *texts: str, obeys: bool = True, salt: str = "") -> Judgement:
    assembler = find_assembler(fake_ptxas(folder, obeys=obeys, salt=salt))
    return judge(Controls(assembler, tuple(ControlsFile(text, text.encode()) for text in texts)), 90)


def test_accepted_ones_are_offered_and_change_the_code(tmp_path: Path) -> None:
    judgement = asked(tmp_path / "a b", "slower", "ignored", "reject", "crash")
    said = {item.name: (item.accepted, item.changes_code, item.reason) for item in judgement.each}
    assert said["slower"] == (True, True, "")
    assert said["ignored"] == (True, False, "")
    assert said["reject"] == (False, False, "ptxas fatal   : Invalid compiler controls file")
    assert said["crash"][0] is False
    assert "signal 11" in said["crash"][2]
    assert judgement.off_because == ""
    assert len(judgement.offered) == 2
    assert judgement.changing == 1


def test_one_that_ignores_them_all_is_off(tmp_path: Path) -> None:
    judgement = asked(tmp_path, "slower", "other", obeys=False)
    assert judgement.offered == ()
    assert "writes the same code with and without it" in judgement.off_because


def test_a_second_version_that_rejects_is_off(tmp_path: Path) -> None:
    assert asked(tmp_path / "first", "slower").offered
    path = fake_ptxas(tmp_path / "second", version="12.8.99")
    path.write_text(path.read_text().replace("*slower*) set --", "*slower*) exit 255; set --"))
    judgement = judge(Controls(find_assembler(path), (ControlsFile("slower", b"slower"),)), 90)
    assert judgement.offered == ()
    assert "takes none of the 1 files for sm_90a (it ended with exit code 255)" in judgement.off_because


def test_a_hang_costs_one_file(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(module, "ASSEMBLE_LIMIT_S", 2.0)
    judgement = asked(tmp_path, "hang", "slower")
    assert [item.name for item in judgement.each if item.accepted] == ["slower"]
    assert "did not end within 2 s" in next(item.reason for item in judgement.each if item.name == "hang")


def test_a_chip_that_it_does_not_know_is_refused(tmp_path: Path) -> None:
    controls = Controls(find_assembler(fake_ptxas(tmp_path)), (ControlsFile("slower", b"slower"),))
    with pytest.raises(ControlsError, match="assembles nothing for sm_999a"):
        judge(controls, 999)


@pytest.mark.parametrize("capability", [80, 90, 100, 120])
def test_the_probe_assembles_for_every_chip(tmp_path: Path, capability: int) -> None:
    controls = Controls(find_assembler(fake_ptxas(tmp_path)), (ControlsFile("slower", b"slower"),))
    assert judge(controls, capability).changing == 1
