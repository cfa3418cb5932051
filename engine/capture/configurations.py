"""Where a model's configuration comes from: its folder, the few that ship, or Hugging Face's cache and hub.

The shipped ones are facts about well-known small models, so that their lines work without a network.
"""

from __future__ import annotations

import json
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from engine.capture.errors import ModelsMissingError, TargetMissingError
from engine.capture.meta import one_line
from engine.capture.target import folder_named
from engine.extras import install_text

SHIPPED = Path(__file__).resolve().parents[1] / "data" / "models"


@dataclass(frozen=True, slots=True)
class Configured:
    """A transformers configuration, and in words where it comes from."""

    configuration: Any
    origin: str


def configure(name: str) -> Configured:
    """The configuration of a folder or an id. Raises ModelsMissingError or TargetMissingError."""
    try:
        from transformers import AutoConfig
    except ModuleNotFoundError as error:
        if (error.name or "").split(".")[0] != "transformers":
            raise
        raise ModelsMissingError(
            f"Capturing a Hugging Face model needs transformers, which isn't installed: {install_text('models')}."
        ) from None
    folder = folder_named(name)
    shipped = None if folder.is_dir() else shipped_facts(name)
    if shipped is not None:
        facts = dict(shipped)
        kind = facts.pop("model_type")
        return Configured(AutoConfig.for_model(kind, **facts), f"the configuration of {name} that ships with Emmy")
    try:
        found = AutoConfig.from_pretrained(str(folder) if folder.is_dir() else name, trust_remote_code=False)
    except (OSError, ValueError, KeyError) as error:
        known = ", ".join(sorted(model for path in SHIPPED.glob("*.json") for model in _read(path)["ids"][:1]))
        raise TargetMissingError(
            f"No configuration of {name}: {one_line(error)}. Without a network these work: {known}."
        ) from None
    where = f"the configuration in {name}" if folder.is_dir() else f"{name}'s configuration on Hugging Face"
    return Configured(found, where)


def shipped_facts(name: str) -> dict[str, Any] | None:
    """The arguments of a shipped model's configuration, `model_type` among them; None for any other model."""
    for path in sorted(SHIPPED.glob("*.json")):
        data = _read(path)
        if name.lower() in (model.lower() for model in data["ids"]):
            return dict(data["configuration"])
    return None


def _read(path: Path) -> dict[str, Any]:
    data: dict[str, Any] = json.loads(path.read_text(encoding="utf-8"))
    return data
