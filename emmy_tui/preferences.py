"""From settings and options to how the screen looks: the theme by its name, the keys checked against each other."""

from __future__ import annotations

import argparse
from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path

from textual.theme import BUILTIN_THEMES

from emmy_tui.action import Action
from emmy_tui.actions import ACTIONS, BY_NAME
from emmy_tui.config import BadConfig, Config, colliding_keys, config_text, read_config
from emmy_tui.key_words import NoKey, key_name
from emmy_tui.look import DARK, LIGHT, TERMINAL, Look
from engine.typed_path import BadPath, typed_path

NAMED_THEMES = {"dark": DARK, "light": LIGHT, "terminal": TERMINAL}
TABLE = {action.name: action.keys for action in ACTIONS}
FPS, FPS_OVER_SSH = 4.0, 2.0


def configured(options: argparse.Namespace, environ: Mapping[str, str]) -> Config:
    """What file, environment and command line say together, its paths in full. Raises BadConfig."""
    config = read_config(options.config, environ, TABLE)
    keys = {name: tuple(_key_name(key, name, config) for key in given) for name, given in config.keys.items()}
    collision = colliding_keys(keys, TABLE, {name: together(BY_NAME[name]) for name in keys})
    if collision:
        raise BadConfig(f"{config.origins['keys']}: {collision}")
    said = {
        "fps": options.fps,
        "theme": options.theme or ("light" if options.light else None),
        "ascii": options.ascii or None,
        "read_only": options.read_only or None,
        "log_file": str(options.log_file) if options.log_file else None,
    }
    given = {name: value for name, value in said.items() if value is not None}
    origins = {**config.origins, **dict.fromkeys(given, "the command line")}
    merged = replace(config, **given, keys=keys, origins=origins)
    merged = replace(
        merged,
        log_file=_full_path("log_file", merged),
        export_folder=_full_path("export_folder", merged),
        copy_file=_full_path("copy_file", merged),
    )
    if merged.theme not in NAMED_THEMES and merged.theme not in BUILTIN_THEMES:
        names = ", ".join([*NAMED_THEMES, *sorted(BUILTIN_THEMES)])
        raise BadConfig(f"{origins.get('theme', '')}: there is no theme {merged.theme!r}; the themes are {names}")
    return merged


def _full_path(name: str, config: Config) -> str:
    """The setting as a path in full; "" where nothing is set. Raises BadConfig."""
    named = str(getattr(config, name) or "")
    try:
        return str(typed_path(named)) if named else ""
    except BadPath as error:
        raise BadConfig(f"{config.origins.get(name, '')}: {name}: {error}") from None


def _key_name(key: str, action: str, config: Config) -> str:
    """A key of an action as Textual names it. Raises BadConfig."""
    try:
        return key_name(key)
    except NoKey as error:
        raise BadConfig(f"{config.origins['keys']}: [keys] {action}: {error}") from None


def together(action: Action) -> frozenset[str]:
    """The actions that can work while this one does; two that share a key in the table exclude each other."""
    return frozenset(
        other.name
        for other in ACTIONS
        if other is not action
        and not set(other.keys) & set(action.keys)
        and (not other.tabs or not action.tabs or set(other.tabs) & set(action.tabs))
    )


def look_of(config: Config, environ: Mapping[str, str]) -> Look:
    """How the screen looks with these settings."""
    return Look(
        fps=config.fps or (FPS_OVER_SSH if "SSH_CONNECTION" in environ else FPS),
        ascii=config.ascii,
        theme=NAMED_THEMES.get(config.theme, config.theme),
        read_only=config.read_only,
        no_color=bool(environ.get("NO_COLOR")),
        keys=config.keys,
        export_folder=Path(config.export_folder) if config.export_folder else None,
        copy_file=Path(config.copy_file) if config.copy_file else None,
    )


def printed(config: Config) -> str:
    """What `--print-config` prints."""
    return config_text(config, TABLE)
