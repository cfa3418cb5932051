from __future__ import annotations

import os
from pathlib import Path

import pytest

from engine.capture import CaptureError, TargetOptions, parse_target, target_text
from engine.capture.errors import NotACallError, TargetMissingError, TargetOptionError, TargetSyntaxError
from engine.capture.target import FileTarget, ModelTarget, ParsedTarget


def test_the_last_statement_is_the_call() -> None:
    parsed = parse_target("w = torch.randn(4, 4)\ny = 2; torch.mm(w, w)")
    assert parsed.statements == "w = torch.randn(4, 4)\ny = 2"
    assert parsed.call == "torch.mm(w, w)"


@pytest.mark.parametrize(
    ("text", "error", "sentence"),
    [
        ("torch.mm(", TargetSyntaxError, "doesn't parse at line 1"),
        ("x = 1\n  y = 2", TargetSyntaxError, "at line 2"),
        ("torch.mm(a, b)\0", TargetSyntaxError, "doesn't parse"),
        ("", NotACallError, "empty"),
        ("x = torch.mm(a, b)", NotACallError, "`x = torch.mm(a, b)`"),
        ("f(x)\nx", NotACallError, "`x`"),
        ("def f(): pass", NotACallError, "must be a call"),
    ],
)
def test_what_is_no_target_is_one_sentence(text: str, error: type[CaptureError], sentence: str) -> None:
    with pytest.raises(error) as raised:
        parse_target(text)
    assert sentence in str(raised.value)
    assert "\n" not in str(raised.value)


LINE = "Qwen/Qwen3-0.6B --layer 3 --dtype float16 --seq-len 32 --batch 2"


def test_a_model_is_one_line_and_the_line_is_the_model() -> None:
    options = TargetOptions(3, "float16", 32, 2)
    assert target_text("Qwen/Qwen3-0.6B", options) == LINE
    parsed = parse_target("Qwen/Qwen3-0.6B", options)
    assert parsed == ModelTarget(LINE, "Qwen/Qwen3-0.6B", options)
    assert parse_target(LINE) == parsed
    assert TargetOptions(dtype="fp16", batch=2).difference_text() == " --dtype float16 --batch 2"
    assert target_text("gpt2", TargetOptions()) == "gpt2 --dtype bfloat16 --seq-len 512 --batch 1"
    assert TargetOptions(dtype="bf16") == TargetOptions()


def test_a_file_is_known_by_its_text(tmp_path: Path) -> None:
    path = tmp_path / "my file.py"
    path.write_text("def f(): pass")
    parsed = parse_target(f"{path}:Outer.f", TargetOptions())
    assert isinstance(parsed, FileTarget)
    assert (parsed.path, parsed.attribute) == (str(path), "Outer.f")
    assert parse_target(parsed.text) == parsed
    path.write_text("def f(): ...")
    assert parse_target(f"{path}:Outer.f", TargetOptions()).text != parsed.text


def test_a_pipe_is_not_waited_for(tmp_path: Path) -> None:
    os.mkfifo(tmp_path / "pipe.py")
    os.mkfifo(tmp_path / "config.json")
    for name in (f"{tmp_path / 'pipe.py'}:f", str(tmp_path)):
        with pytest.raises(CaptureError, match=r"can't be read \(it is a pipe or a device, and no file\)"):
            target_text(name, TargetOptions())


def test_code_stays_code_even_with_a_comment_that_looks_like_options() -> None:
    text = "f(x)  # --dtype float16 --seq-len 32 --batch 2"
    assert isinstance(parse_target(text), ParsedTarget)
    with pytest.raises(NotACallError):
        parse_target("gpt2")


@pytest.mark.parametrize(
    ("name", "options", "error", "sentence"),
    [
        ("torch.mm(a, b)", {}, TargetSyntaxError, "for code, give --code"),
        ("a/b/c", {}, TargetSyntaxError, "no model's id, no folder"),
        ("", {}, TargetSyntaxError, "no model's id"),
        (LINE, {}, TargetSyntaxError, "is said by --layer"),
        ("gpt2\x1b", {}, TargetSyntaxError, "is said by --layer"),
        ("missing.py:f", {}, TargetMissingError, "missing.py can't be read (No such file"),
        ("missing.py:f", {"layer": 0}, TargetOptionError, "name the layer itself"),
        ("gpt2", {"dtype": "int8"}, TargetOptionError, "bfloat16, float16, float32"),
        ("gpt2", {"seq_len": 0}, TargetOptionError, "from 1 to"),
        ("gpt2", {"batch": 0}, TargetOptionError, "from 1 to"),
        ("gpt2", {"layer": -1}, TargetOptionError, "counted from 0"),
    ],
)
def test_what_can_not_be_named_is_one_sentence(
    name: str, options: dict[str, int], error: type[CaptureError], sentence: str
) -> None:
    with pytest.raises(error) as raised:
        parse_target(name, TargetOptions(**options))  # type: ignore[arg-type]
    assert sentence in str(raised.value)
    assert "\n" not in str(raised.value)
