"""A command's options that name a program become one request, and stand alike before the command's own."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import pytest
import typer
from typer.testing import CliRunner

from engine.cli.application import application
from engine.cli.subject_request import SubjectRequest, takes_subject

Loud = Annotated[bool, typer.Option("--loud", help="Shout.")]


def test_options_arrive_as_a_request_beside_the_commands_own() -> None:
    seen: list[tuple[SubjectRequest, bool]] = []

    def command(subject: SubjectRequest, loud: Loud = False) -> None:
        """Do it."""
        seen.append((subject, loud))

    app = typer.Typer()
    app.command()(takes_subject(command))
    for words in ([], ["m.py:f", "--layer", "2", "--db", "a.db", "--loud"]):
        assert CliRunner().invoke(app, words).exit_code == 0
    assert seen == [
        (SubjectRequest(), False),
        (SubjectRequest(target="m.py:f", layer=2, database=Path("a.db")), True),
    ]


@pytest.mark.parametrize("name", ["tune", "explain", "compile", "run"])
def test_every_command_on_a_program_names_it_alike(name: str) -> None:
    command = typer.main.get_command(application([name])).commands[name]
    assert [parameter.name for parameter in command.params][:8] == list(SubjectRequest.__dataclass_fields__)


@pytest.mark.parametrize(
    ("request_", "wrong"),
    [
        (SubjectRequest(target="a", layer=0), []),
        (SubjectRequest(code="f(x)"), []),
        (SubjectRequest(target="a", code="f(x)"), ["two programs"]),
        (SubjectRequest(code="f(x)", batch=2), ["name one"]),
        (SubjectRequest(layer=0), ["name one"]),
    ],
)
def test_what_cant_be_given_together(request_: SubjectRequest, wrong: list[str]) -> None:
    said = [sentence for was, sentence in request_.contradictions() if was]
    assert len(said) == len(wrong)
    assert all(words in sentence for words, sentence in zip(wrong, said, strict=True))
