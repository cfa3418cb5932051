"""What a person has set once: a TOML file in the user's config folder, the environment, and the command line, in turn.

The later says over the earlier. A setting that isn't known or can't be is refused with its place, because one that is
quietly ignored costs more than an error.
"""

from __future__ import annotations

import json
import tomllib
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import platformdirs

from engine.regular_file import read_regular

PREFIX = "EMMY_TUI_"
LARGEST_BYTES = 1 << 20
MIN_FPS, MAX_FPS = 1.0, 30.0


class BadConfig(Exception):
    """One sentence for a person: where the setting stands, what is wrong, what to write."""


@dataclass(frozen=True, slots=True)
class Config:
    """`origins` says of every setting that is not the default's where it comes from."""

    fps: float | None = None
    theme: str = "dark"
    ascii: bool = False
    read_only: bool = False
    log_file: str = ""
    export_folder: str = ""
    copy_file: str = ""
    keys: Mapping[str, tuple[str, ...]] = field(default_factory=dict)
    origins: Mapping[str, str] = field(default_factory=dict)


_KINDS: dict[str, type] = {
    "fps": float,
    "theme": str,
    "ascii": bool,
    "read_only": bool,
    "log_file": str,
    "export_folder": str,
    "copy_file": str,
}
_MEANINGS = {
    "fps": "redraws a second, 1 to 30; without it 4, over SSH 2",
    "theme": 'dark, light, terminal (its own colours), or the name of a Textual theme such as "nord"',
    "ascii": "draw with ASCII only",
    "read_only": "never write to a database",
    "log_file": 'where the log goes; "" for the usual place',
    "export_folder": 'where exports and pictures are written; "" for the folder that emmy-tui was started in',
    "copy_file": 'where what is copied is written too; "" for the usual place',
}


def default_config_file() -> Path:
    """$XDG_CONFIG_HOME/emmy/emmy-tui.toml, or what the platform has in its place."""
    return platformdirs.user_config_path("emmy", appauthor=False) / "emmy-tui.toml"


def read_config(path: Path | None, environ: Mapping[str, str], actions: Mapping[str, tuple[str, ...]]) -> Config:
    """The settings of the file and the environment. `actions` are the names and keys that `[keys]` may change.

    `path` None means the default file, which may be missing. Raises BadConfig.
    """
    file = path or default_config_file()
    values: dict[str, Any] = {}
    origins: dict[str, str] = {}
    keys: dict[str, tuple[str, ...]] = {}
    data = _read(file, must_exist=path is not None)
    for name, value in data.items():
        if name == "keys":
            keys = _keys(value, file, actions)
            origins["keys"] = str(file)
        else:
            values[name] = _value(name, value, str(file))
            origins[name] = str(file)
    for variable in sorted(one for one in environ if one.startswith(PREFIX)):
        name = variable.removeprefix(PREFIX).lower()
        if name not in _KINDS or variable != PREFIX + name.upper():
            known = ", ".join(PREFIX + one.upper() for one in _KINDS)
            raise BadConfig(f"the environment's {variable} is no setting; the variables are {known}")
        values[name] = _value(name, _typed(name, environ[variable]), variable)
        origins[name] = variable
    return Config(**values, keys=keys, origins=origins)


def _read(file: Path, *, must_exist: bool) -> dict[str, Any]:
    try:
        return tomllib.loads(read_regular(file, LARGEST_BYTES).decode("utf-8-sig"))  # some editors put a mark before it
    except FileNotFoundError:
        if must_exist:
            raise BadConfig(f"there is no config file {file}; --print-config writes one to begin with") from None
        return {}
    except OSError as error:
        raise BadConfig(f"the config file {file} can't be read: {error.strerror or error}") from None
    except UnicodeDecodeError:
        raise BadConfig(f"the config file {file} is no UTF-8 text, which TOML is: save it as that") from None
    except tomllib.TOMLDecodeError as error:
        raise BadConfig(f"the config file {file} is no TOML: {error}") from None


def _typed(name: str, text: str) -> object:
    if _KINDS[name] is bool:
        return {"1": True, "true": True, "yes": True, "0": False, "false": False, "no": False, "": False}.get(
            text.lower(), text
        )
    if _KINDS[name] is float:
        try:
            return float(text)
        except ValueError:
            return text
    return text


def _value(name: str, value: object, where: str) -> object:
    if name not in _KINDS:
        raise BadConfig(f"{where}: {name} is no setting; the settings are {', '.join(_KINDS)}, and the table [keys]")
    kind = _KINDS[name]
    if kind is float and isinstance(value, int | float) and not isinstance(value, bool):
        if not MIN_FPS <= value <= MAX_FPS:
            raise BadConfig(f"{where}: {name} = {value} is not between {MIN_FPS:.0f} and {MAX_FPS:.0f}")
        return float(value)
    if kind is float or not isinstance(value, kind):
        said = {float: "a number", bool: "true or false", str: "a text in quotes"}[kind]
        raise BadConfig(f"{where}: {name} is {said}, not {value!r}")
    return value


def _keys(value: object, file: Path, actions: Mapping[str, tuple[str, ...]]) -> dict[str, tuple[str, ...]]:
    """Keys by action. A key belongs to one action, except where the table gives it to two that exclude each other."""
    if not isinstance(value, dict):
        raise BadConfig(f'{file}: [keys] is a table, as in [keys] and below it: pin = "f5"')
    keys: dict[str, tuple[str, ...]] = {}
    for name, given in value.items():
        if name not in actions:
            raise BadConfig(f"{file}: [keys] {name} is no action; --print-config lists them all")
        wanted = [given] if isinstance(given, str) else given
        if not isinstance(wanted, list) or not all(isinstance(key, str) and key.strip() for key in wanted):
            raise BadConfig(f'{file}: [keys] {name} is a key or a list of keys, as in {name} = "f5"')
        keys[name] = tuple(key.strip() for key in wanted)
    return keys


def colliding_keys(
    keys: Mapping[str, tuple[str, ...]],
    actions: Mapping[str, tuple[str, ...]],
    together: Mapping[str, frozenset[str]],
) -> str:
    """A sentence about the first changed key that two actions would share, or "".

    `together` says of an action which others can work at the same time.
    """
    merged = {**actions, **keys}
    for name, own in keys.items():
        for other in sorted(together.get(name, frozenset())):
            shared = [key for key in own if key in merged[other]]
            if shared:
                return f"[keys] {name} and {other} would both have the key {shared[0]}; give one of them another"
    return ""


def config_text(config: Config, actions: Mapping[str, tuple[str, ...]]) -> str:
    """The settings as they are, as a config file; what is the default's is a comment."""
    lines = ["# Settings of emmy-tui; lines that begin with # say the default.", ""]
    for name, kind in _KINDS.items():
        value = getattr(config, name)
        origin = config.origins.get(name)
        lines.append(f"# {_MEANINGS[name]}" + (f"  [from {origin}]" if origin else ""))
        shown = 4.0 if value is None else value
        text = str(shown).lower() if kind is bool else json.dumps(shown, ensure_ascii=False)
        lines += [f"{'' if origin else '# '}{name} = {text}", ""]
    lines += ["# keys of actions; a list gives an action several, an empty one none", "[keys]"]
    for name, own in actions.items():
        given = config.keys.get(name)
        shown_keys = json.dumps(list(own if given is None else given))
        lines.append(f"{'# ' if given is None else ''}{name} = {shown_keys}")
    return "\n".join(lines) + "\n"
