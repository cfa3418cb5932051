"""Settings from a file and the environment: what is there counts, what is wrong is said with its place."""

from __future__ import annotations

import os
import tomllib
from pathlib import Path

import pytest

from emmy_tui.actions import ACTIONS
from emmy_tui.config import BadConfig, config_text, default_config_file, read_config
from emmy_tui.key_words import key_name
from emmy_tui.look import LIGHT, TERMINAL
from emmy_tui.main import arguments_parser, main
from emmy_tui.preferences import TABLE, configured, look_of, together


def written(tmp_path: Path, text: str) -> Path:
    path = tmp_path / "emmy-tui.toml"
    path.write_text(text)
    return path


def test_without_a_file_everything_is_the_default(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("XDG_CONFIG_HOME", str(tmp_path))
    assert default_config_file() == tmp_path / "emmy" / "emmy-tui.toml"
    config = read_config(None, {}, TABLE)
    assert config.origins == {}
    look = look_of(config, {})
    assert (look.fps, look.theme, look.ascii, look.read_only, look.keys) == (4.0, "textual-dark", False, False, {})
    assert look_of(config, {"SSH_CONNECTION": "x"}).fps == 2.0


def test_command_line_over_environment_over_file(tmp_path: Path) -> None:
    path = written(tmp_path, 'fps = 8\ntheme = "light"\nascii = true\n[keys]\npin = "f5"\nhelp = ["f8", "?"]\n')
    options = arguments_parser().parse_args(["--config", str(path), "--theme", "terminal"])
    config = configured(options, {"EMMY_TUI_FPS": "10", "EMMY_TUI_THEME": "dark"})
    look = look_of(config, {})
    assert (look.fps, look.theme, look.ascii) == (10.0, TERMINAL, True)
    assert look.keys == {"pin": ("f5",), "help": ("f8", "question_mark")}
    assert config.origins["fps"] == "EMMY_TUI_FPS"
    assert config.origins["theme"] == "the command line"
    assert look_of(configured(arguments_parser().parse_args(["--config", str(path)]), {}), {}).theme == LIGHT


@pytest.mark.parametrize(
    ("text", "sentence"),
    [
        ("fps = [", "is no TOML"),
        ("fps = 99", "fps = 99 is not between 1 and 30"),
        ("fps = true", "fps is a number, not True"),
        ("ascii = 1", "ascii is true or false, not 1"),
        ("theme = 3", "theme is a text in quotes"),
        ('theme = "neon"', "there is no theme 'neon'; the themes are dark, light, terminal"),
        ("colour = 3", "colour is no setting; the settings are fps, theme"),
        ("keys = 3", "[keys] is a table"),
        ('[keys]\nfly = "f"', "[keys] fly is no action"),
        ("[keys]\npin = 3", "[keys] pin is a key or a list of keys"),
        ('[keys]\nhelp = "crtl+x"', '[keys] help: "crtl+x" is no key (is ctrl+x meant?)'),
        ('[keys]\nhelp = "zzz"', '[keys] help: "zzz" is no key; keys are written as in f5, ctrl+x, pageup or ?'),
        ('[keys]\nhelp = "A B"', '[keys] help: "A B" is no key; keys are'),
        ('[keys]\nhelp = "F5"', '[keys] help: "F5" is no key (is f5 meant?)'),
        ('[keys]\nhelp = "ctrl+"', '[keys] help: "ctrl+" is no key'),
        ('[keys]\npin = "f5,q"', '[keys] pin: "f5,q" is no key; several are a list: ["f5", "q"]'),
        ('[keys]\npin = ["f5", "q"]', "[keys] pin and leave would both have the key q"),
        ('[keys]\npin = "shift+r"', "[keys] pin and retune_stale would both have the key R"),
        ('[keys]\npin = "ctrl+i"', "[keys] pin and focus_next_panel would both have the key tab"),
        ('[keys]\npin = "ctrl+P"', "[keys] pin and command_palette would both have the key ctrl+p"),
        ('[keys]\npin = "q"', "[keys] pin and leave would both have the key q"),
        ('[keys]\nhelp = "j"', "[keys] help and down would both have the key j"),
    ],
)
def test_what_is_wrong_is_said_with_its_place(tmp_path: Path, text: str, sentence: str) -> None:
    path = written(tmp_path, text)
    with pytest.raises(BadConfig) as refused:
        configured(arguments_parser().parse_args(["--config", str(path)]), {})
    assert sentence in str(refused.value)
    assert str(path) in str(refused.value)


@pytest.mark.parametrize("content", [b"fps = 8\r\n", b"\xef\xbb\xbffps = 8\n", b"\xef\xbb\xbf# a line\r\nfps = 8"])
def test_line_ends_and_marks_of_other_editors_are_read(content: bytes, tmp_path: Path) -> None:
    (tmp_path / "emmy-tui.toml").write_bytes(content)
    assert read_config(tmp_path / "emmy-tui.toml", {}, {}).fps == 8


@pytest.mark.parametrize("content", ["fps = 8\n".encode("utf-16"), b'theme = "d\xe4rk"\n'])
def test_what_is_no_utf_8_is_said_so(content: bytes, tmp_path: Path) -> None:
    (tmp_path / "emmy-tui.toml").write_bytes(content)
    with pytest.raises(BadConfig, match="is no UTF-8 text"):
        read_config(tmp_path / "emmy-tui.toml", {}, {})


def test_environment_and_missing_files(tmp_path: Path) -> None:
    with pytest.raises(BadConfig, match="EMMY_TUI_FPS: fps is a number, not 'fast'"):
        read_config(written(tmp_path, ""), {"EMMY_TUI_FPS": "fast"}, TABLE)
    for variable in ("EMMY_TUI_FSP", "EMMY_TUI_KEYS", "EMMY_TUI_fps"):
        with pytest.raises(
            BadConfig, match=f"the environment's {variable} is no setting; the variables are EMMY_TUI_FPS"
        ):
            read_config(written(tmp_path, ""), {variable: "10"}, TABLE)
    with pytest.raises(BadConfig, match="there is no config file"):
        read_config(tmp_path / "missing.toml", {}, TABLE)


def test_a_pipe_and_an_endless_file_are_no_config(tmp_path: Path) -> None:
    os.mkfifo(tmp_path / "pipe")
    for path in (tmp_path / "pipe", Path("/dev/zero")):
        with pytest.raises(BadConfig, match=f"the config file {path} can't be read: it is a pipe or a device"):
            read_config(path, {}, TABLE)
    with written(tmp_path, "").open("wb") as file:
        file.truncate(1 << 40)
    with pytest.raises(BadConfig, match="more than 1 MiB, which is the most that is read"):
        read_config(tmp_path / "emmy-tui.toml", {}, TABLE)


def test_the_printed_config_says_the_same_again(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    path = written(tmp_path, 'fps = 8\ntheme = "nord"\n[keys]\npin = ["f5", "P"]\npause = "f6"\nresume = "f6"\n')
    for name in ("EMMY_TUI_FPS", "EMMY_TUI_THEME"):
        monkeypatch.delenv(name, raising=False)
    assert main(["--config", str(path), "--print-config"]) == 0
    printed = capsys.readouterr().out
    assert str(path) in printed
    again = configured(arguments_parser().parse_args(["--config", str(written(tmp_path, printed))]), {})
    assert (again.fps, again.theme, again.keys["pin"]) == (8.0, "nord", ("f5", "P"))
    everything = "\n".join(
        line.removeprefix("# ") for line in printed.splitlines() if " = " in line or "[keys]" in line
    )
    everything = everything.replace("without it 4", "")
    parsed = tomllib.loads("\n".join(line for line in everything.splitlines() if not line.startswith("dark")))
    assert set(parsed["keys"]) == {action.name for action in ACTIONS}


@pytest.mark.parametrize(
    ("written_as", "name"),
    [
        ("?", "question_mark"),
        (",", "comma"),
        ("+", "plus"),
        ("é", "é"),
        ("ctrl++", "ctrl+plus"),
        ("ctrl+X", "ctrl+x"),
        ("shift+a", "A"),
        ("alt+P", "alt+shift+p"),
        ("shift+alt+p", "alt+shift+p"),
        ("ctrl+m", "enter"),
        ("shift+f5", "shift+f5"),
        ("space", "space"),
    ],
)
def test_keys_by_the_names_that_a_terminal_gives_them(written_as: str, name: str) -> None:
    assert key_name(written_as) == name
    assert key_name(name) == name


def test_every_key_of_the_table_is_one() -> None:
    for action in ACTIONS:
        assert tuple(key_name(key) for key in action.keys) == action.keys


def test_a_key_that_is_none_ends_the_program_with_one_sentence(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(["--config", str(written(tmp_path, '[keys]\nhelp = "crtl+x"')), "--print-config"]) == 2
    said = capsys.readouterr().err.strip()
    assert said.count("\n") == 0
    assert "is ctrl+x meant?" in said


def test_actions_that_exclude_each_other_may_share_a_key() -> None:
    by_name = {action.name: action for action in ACTIONS}
    assert "resume" not in together(by_name["pause"])
    assert "sort" not in together(by_name["flip"])
    assert {"down", "pin", "leave"} <= together(by_name["export"])
    assert config_text(read_config(None, {}, TABLE), TABLE).count("[keys]") == 1
