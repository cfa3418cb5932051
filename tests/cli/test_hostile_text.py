"""Text of a database that would act on a terminal is printed for what it is, and JSON stays JSON."""

from __future__ import annotations

import json
import shutil
import unicodedata
from collections.abc import Callable
from pathlib import Path

import pytest

from engine.cli.application import main
from tests.cli.hostile import TEXTS, fill, with_knobs, with_text

TOLD = (
    *(("eval", "variants"), ("eval", "kernels"), ("eval", "groupings"), ("eval", "failures"), ("eval", "knobs")),
    *(("eval", "acf"), ("pins", "--history"), ("explain",)),
)
DONE = (("export", "--best", "-o", "best.json"), ("pin", "nothing of this name"), ("unpin", "nothing of this name"))
"""These say it in sentences."""
ACTING = ("Cc", "Cf", "Cs")


@pytest.fixture(scope="module")
def base(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return fill(tmp_path_factory.mktemp("hostile") / "base.db")


def said(arguments: tuple[str, ...], capsys: pytest.CaptureFixture[str]) -> tuple[str, str]:
    """Stdout and stderr of a command."""
    with pytest.raises(SystemExit) as left:
        main([*arguments, "--db", "e.db"])
    assert left.value.code in (0, 1, 2, None)
    return capsys.readouterr()


@pytest.mark.parametrize("kind", TEXTS)
@pytest.mark.parametrize("put", [with_text, with_knobs])
def test_nothing_that_is_printed_acts_on_a_terminal(
    base: Path,
    tmp_path: Path,
    put: Callable[[Path, str], None],
    kind: str,
    capsys: pytest.CaptureFixture[str],
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.chdir(tmp_path)
    put(Path(shutil.copy(base, tmp_path / "e.db")), TEXTS[kind])
    for command in (*TOLD, *DONE):
        for text in said(command, capsys):
            acting = [line for line in text.split("\n") if any(unicodedata.category(one) in ACTING for one in line)]
            assert acting == [], command
    for command in TOLD:
        out, _ = said((*command, "--json"), capsys)
        json.loads(out.splitlines()[-1])
