"""The configurations that ship, at their full size and without memory, and those of a folder."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from engine.capture import TargetOptions, parse_target
from engine.capture.configurations import SHIPPED, configure, shipped_facts
from engine.capture.errors import TargetMissingError
from engine.capture.trace import trace
from engine.ir import verify
from engine.ir.measures import count_flops
from tests.capture.models import SMALL

pytestmark = pytest.mark.filterwarnings("ignore")

PARAMETERS = {
    "Qwen/Qwen3-0.6B": (128, "hidden_states", 15_730_944),
    "Qwen/Qwen3-Embedding-0.6B": (128, "hidden_states", 15_730_944),
    "meta-llama/Llama-3.2-1B": (128, "hidden_states", 60_821_504),
    "google-bert/bert-base-uncased": (128, "hidden_states", 7_087_872),
    "openai-community/gpt2": (128, "hidden_states", 7_087_872),
    "google/vit-base-patch16-224": (197, "hidden_states", 7_087_872),
    "openai/whisper-tiny": (1500, "hidden_states", 1_774_080),
}
"""Tokens at --seq-len 128, and the published number of parameters of one layer."""


def test_every_shipped_configuration_is_a_model_of_the_list() -> None:
    ids = [name for path in SHIPPED.glob("*.json") for name in json.loads(path.read_text())["ids"]]
    assert len(ids) == len(set(ids))
    assert set(PARAMETERS) <= set(ids)
    assert {"gpt2", "bert-base-uncased"} <= set(ids)
    assert shipped_facts("QWEN/qwen3-0.6b") == shipped_facts("Qwen/Qwen3-0.6B")
    assert shipped_facts("Qwen/Qwen3-32B") is None


@pytest.mark.parametrize("name", PARAMETERS)
def test_layer_0_of_every_shipped_model_is_captured_at_full_size(name: str) -> None:
    tokens, label, parameters = PARAMETERS[name]
    program = trace(parse_target(name, TargetOptions(layer=0, seq_len=128)), "cuda")
    graph = verify(program.graph)
    hidden = graph.input_specs()[graph.labels.index(label)]
    assert hidden.shape[:2] == (1, tokens)
    assert graph.output_specs()[0].shape == hidden.shape
    weights = [
        spec for spec, text in zip(graph.input_specs(), graph.labels, strict=True) if text.endswith(("weight", "bias"))
    ]
    assert sum(spec.numel for spec in weights) == parameters
    assert {spec.dtype for spec in weights} == {"bfloat16"}
    assert count_flops(graph) > 2 * tokens * 0.9 * parameters
    assert program.target == f"{name} --layer 0 --dtype bfloat16 --seq-len 128 --batch 1"
    assert "ships with Emmy" in program.notes[0]
    assert "random" in program.notes[0]


def test_a_folder_gives_its_own_configuration(tmp_path: Path) -> None:
    kind, facts = SMALL["bert"]
    path = tmp_path / "config.json"
    path.write_text(json.dumps({"model_type": kind, **facts}))
    target = parse_target(str(tmp_path), TargetOptions(layer=1, seq_len=8, dtype="fp32", batch=3))
    program = trace(target, "cuda")
    assert program.graph.output_specs()[0].shape == (3, 8, 64)
    assert f"the configuration in {tmp_path}" in program.notes[0]
    path.write_text(json.dumps({"model_type": kind, **facts, "num_hidden_layers": 3}))
    with pytest.raises(TargetMissingError, match="has changed"):
        trace(target, "cuda")
    with pytest.raises(TargetMissingError, match=r"holds no config.json: name the folder"):
        parse_target(str(tmp_path.parent), TargetOptions())


def test_what_no_one_knows_is_one_sentence_with_what_works() -> None:
    with pytest.raises(TargetMissingError, match="No configuration of nobody/no--model") as raised:
        configure("nobody/no--model")
    assert "\n" not in str(raised.value)
    assert "openai-community/gpt2" in str(raised.value)


def test_notes_say_what_is_not_the_whole_and_what_does_not_apply() -> None:
    program = trace(parse_target("openai/whisper-tiny", TargetOptions(layer=0)), "cuda")
    assert any("this is the encoder" in note for note in program.notes)
    assert any("--seq-len doesn't apply" in note for note in program.notes)
