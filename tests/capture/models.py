"""Small models with random weights: each as a graph, and as torch runs it."""

from __future__ import annotations

import json
from dataclasses import dataclass
from functools import cache
from typing import Any

import torch
from torch import nn
from transformers import AutoConfig, AutoModel

from engine.capture.configurations import Configured
from engine.capture.feeding import Feed
from engine.capture.models import arguments_of, build_model, feed_model, graph_of, layer_of, model_inputs
from engine.capture.target import TargetOptions
from engine.ir import Graph

_DECODER = {
    **{"hidden_size": 64, "intermediate_size": 96, "num_hidden_layers": 2, "num_attention_heads": 4},
    **{"num_key_value_heads": 2, "head_dim": 16, "vocab_size": 50},
}
_ENCODER = {"hidden_size": 64, "intermediate_size": 96, "num_hidden_layers": 2, "num_attention_heads": 4}
_LLAMA3 = {
    **{"rope_type": "llama3", "rope_theta": 500000.0, "factor": 32.0, "low_freq_factor": 1.0},
    **{"high_freq_factor": 4.0, "original_max_position_embeddings": 64},
}
SMALL: dict[str, tuple[str, dict[str, Any]]] = {
    "qwen3": ("qwen3", _DECODER),
    "llama": ("llama", {**_DECODER, "rope_parameters": _LLAMA3}),
    "bert": ("bert", {**_ENCODER, "vocab_size": 50, "max_position_embeddings": 32}),
    "gpt2": ("gpt2", {"n_embd": 64, "n_layer": 2, "n_head": 4, "vocab_size": 50, "n_positions": 32}),
    "vit": ("vit", {**_ENCODER, "image_size": 32, "patch_size": 8}),
    "whisper": (
        "whisper",
        {
            **{"d_model": 64, "encoder_layers": 2, "encoder_attention_heads": 4, "encoder_ffn_dim": 96},
            **{"decoder_layers": 1, "decoder_attention_heads": 4, "decoder_ffn_dim": 96, "num_mel_bins": 20},
            **{"max_source_positions": 16, "vocab_size": 50, "pad_token_id": 1, "bos_token_id": 1},
            **{"eos_token_id": 1, "decoder_start_token_id": 1},
        },
    ),
    "mistral": ("mistral", {**_DECODER, "sliding_window": 5, "num_key_value_heads": 1}),
}
"""The shipped models' kinds; two heads share a key in the first two, and the last looks back over a window."""


@dataclass(frozen=True, slots=True)
class Held:
    """A graph, the tensors it reads in order, and what torch makes of them."""

    graph: Graph
    tensors: list[torch.Tensor]
    wanted: list[torch.Tensor]

    def place(self, label: str) -> int:
        return self.graph.labels.index(label)


def configuration(kind: str, **others: Any) -> Any:
    name, facts = SMALL[kind]
    return AutoConfig.for_model(name, **{**facts, **others})


def captured(kind: str, options: TargetOptions, **others: Any) -> Graph:
    """`others` stand in for facts of the configuration. What was captured once is remembered."""
    return _captured(kind, options, json.dumps(others, sort_keys=True))


@cache
def _captured(kind: str, options: TargetOptions, others: str) -> Graph:
    model, _ = build_model(Configured(configuration(kind, **json.loads(others)), "a test"), options)
    return graph_of(feed_model(model, options))


@cache
def hold(kind: str, options: TargetOptions) -> Held:
    """The same model captured without memory and run by torch with its own eager attention."""
    graph = captured(kind, options)
    torch.manual_seed(0)
    model = AutoModel.from_config(configuration(kind), attn_implementation="eager", dtype=getattr(torch, options.dtype))
    model = model.get_encoder() if kind == "whisper" else model
    model.eval()
    model.config.use_cache = False
    with torch.no_grad():
        for name, parameter in model.named_parameters():
            parameter.normal_(1.0 if "norm" in name or "ln_" in name else 0.0, 0.15)
        inputs = {name: _filled(value) for name, value in model_inputs(model, options).items()}
        called: nn.Module = model if options.layer is None else layer_of(model, options.layer)
        args, kwargs = arguments_of(called, lambda: model(**inputs))
        returned = called(*args, **kwargs)
    held = {**dict(called.named_parameters()), **dict(called.named_buffers())}
    held.update(Feed.of(called, args, kwargs).named().values())
    tensors = [held[label].detach() for label in graph.labels]
    leaves = torch.utils._pytree.tree_leaves(returned)
    return Held(graph, tensors, [leaf for leaf in leaves if isinstance(leaf, torch.Tensor)])


def _filled(value: torch.Tensor) -> torch.Tensor:
    if not value.is_floating_point():
        return torch.randint(0, 2, value.shape) if value.shape == (1, 1) else torch.randint_like(value, 0, 2)
    return torch.randn_like(value)
