"""Asking an engine of somebody else's for controls files: generation by generation, and every way it may fail."""

from __future__ import annotations

import ast
from pathlib import Path

import pytest

from engine.measure import GeneratorError, GeneratorRequest
from engine.measure.generator_child import ABSENT

from .fake_compileiq import fake_compileiq

VERSION = "12.8.93"


@pytest.fixture
def package(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    folder = tmp_path / "packages"
    folder.mkdir()
    monkeypatch.setenv("PYTHONPATH", str(folder))
    return folder


def test_generations_are_asked_and_told_in_turns(package: Path) -> None:
    log = fake_compileiq(package)
    with GeneratorRequest(2, pool=6).open(VERSION) as generator:
        first = generator.ask()
        assert first == [b"slower 0", b"other 0", b"ignored 0"] * 2
        generator.tell([3.0, 1.5, None, 3.0, 1.5, None])
        second = generator.ask()
        assert second is not None
        assert second[0] == b"slower 1"
        generator.tell([1.0] * 6)
        assert generator.ask() is None
    told = [ast.literal_eval(line) for line in log.read_text().splitlines()]
    assert told[0][:3] == [("slower 0", 3.0), ("other 0", 1.5), ("ignored 0", "invalid")]
    assert len(told) == 2


def test_a_first_generation_can_be_had_alone(package: Path) -> None:
    fake_compileiq(package)
    assert len(GeneratorRequest(5).sample(VERSION)) == 15


def test_a_search_space_of_ones_own_is_handed_over(package: Path, tmp_path: Path) -> None:
    fake_compileiq(package)
    space = tmp_path / "space.bin"
    space.write_bytes(b"x")
    assert GeneratorRequest(1, 6, space).sample("99.9.1"), "the engine fetches nothing then"
    with pytest.raises(GeneratorError, match="is no file: name the search space"):
        GeneratorRequest(1, 6, tmp_path / "none.bin").sample(VERSION)


@pytest.mark.parametrize(
    ("behaviour", "words"),
    [
        ("raises", "CompileIQ gave up: RuntimeError: the search space is of another ptxas"),
        ("dies", r"CompileIQ ended without candidates \(exit code 3\): licence expired"),
        ("nonsense", "gives candidates that are no controls files"),
    ],
)
def test_an_engine_that_fails_is_one_sentence(package: Path, behaviour: str, words: str) -> None:
    fake_compileiq(package, behaviour)
    with pytest.raises(GeneratorError, match=words):
        GeneratorRequest(1).sample(VERSION)


def test_without_the_package_it_says_how_to_get_it(package: Path) -> None:
    with pytest.raises(GeneratorError) as caught:
        GeneratorRequest(1).sample(VERSION)
    assert str(caught.value) == ABSENT
