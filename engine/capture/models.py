"""A Hugging Face model, or one of its layers, with random weights and fed as the model feeds it.

The model is built from its configuration on tensors without memory: what is tuned depends on shapes, not on weights.
A layer's arguments are those that reach it when the whole model runs, so its hidden states, rotary cosines and sines
are inputs, which vary, and nothing of them folds away. Attention goes through an implementation of our own, the one
place where transformers lets a mask be computed where it is used, from positions, instead of being held in memory.
"""

from __future__ import annotations

import logging
from collections.abc import Callable
from typing import Any

import torch
from torch import nn

from engine.capture.configurations import Configured, configure
from engine.capture.convert import convert
from engine.capture.errors import TargetMissingError, TargetOptionError, UnsupportedOpError, UnsupportedTensorError
from engine.capture.export import export
from engine.capture.feeding import Fed, Feed
from engine.capture.meta import user_code
from engine.capture.target import ModelTarget, TargetOptions, source_digest
from engine.ir.graph import Graph
from engine.ir.plan import Program

ATTENTION = "emmy"
"""Our attention's name in transformers' registry. It has no mask function there: a model then makes no mask."""
_TOKEN_KINDS = "token_type_ids"
_LAYER_TYPES = {"full_attention", "sliding_attention"}


def trace_model(target: ModelTarget, device: str) -> Program:
    """Build the model without memory, export it or its layer, and convert it. Raises CaptureError."""
    if target.source and target.source != source_digest(target.name):
        raise TargetMissingError(f"The configuration of {target.name} has changed since this target was named.")
    configured = configure(target.name)
    with torch.no_grad(), user_code():
        model, notes = build_model(configured, target.options)
        fed = feed_model(model, target.options)
    weights = (
        f"The weights are random, in the shapes of {configured.origin}: tuning needs shapes, and no trained weights"
        " are read."
    )
    return Program(graph_of(fed), target.text, device, (weights, *notes))


def graph_of(fed: Fed) -> Graph:
    """The graph of a call; inputs that it doesn't read are left out."""
    return convert(export(fed, fed.feed.tensors), fed.feed.named(), allow_tf32=False, keep_unread=False)


def build_model(configured: Configured, options: TargetOptions, device: str = "meta") -> tuple[nn.Module, list[str]]:
    """The model without a head (of an encoder and decoder, the encoder), and what is to be said of it."""
    import transformers

    logging.getLogger("transformers").setLevel(logging.ERROR)
    transformers.AttentionInterface.register(ATTENTION, attend)
    configuration = configured.configuration
    _check(configuration, options)
    configuration.use_cache = False
    with torch.device(device):
        model: Any = transformers.AutoModel.from_config(
            configuration, attn_implementation=ATTENTION, dtype=getattr(torch, options.dtype)
        )
    notes = []
    if getattr(configuration, "is_encoder_decoder", False):
        model = model.get_encoder()
        notes.append("The model has an encoder and a decoder: this is the encoder.")
    if model.main_input_name != "input_ids":
        notes.append(f"--seq-len doesn't apply: the size of {model.main_input_name} is the configuration's.")
    model.eval()
    return model, notes


def feed_model(model: nn.Module, options: TargetOptions) -> Fed:
    """The whole model with its main input, or one layer with the arguments that the model gives it."""
    inputs = model_inputs(model, options)
    if options.layer is None:
        return Fed(model, Feed.of(model, (), inputs))
    layer = layer_of(model, options.layer)
    args, kwargs = arguments_of(layer, lambda: model(**inputs))
    return Fed(layer, Feed.of(layer, args, kwargs))


def attend(
    module: nn.Module,
    query: torch.Tensor,
    key: torch.Tensor,
    value: torch.Tensor,
    attention_mask: torch.Tensor | None,
    scaling: float | None = None,
    is_causal: bool | None = None,
    sliding_window: int | None = None,
    **options: Any,
) -> tuple[torch.Tensor, None]:
    """Attention as transformers' registry asks for it: [batch, heads, tokens, head size] in, tokens first out.

    Without a mask from the model it is causal when the module is, and looks back over `sliding_window` tokens.
    """
    refused = [name for name in ("softcap", "s_aux", "position_bias") if options.get(name) is not None]
    causal = bool(getattr(module, "is_causal", True) if is_causal is None else is_causal)
    rows, columns = query.shape[-2], key.shape[-2]
    window = sliding_window if sliding_window is not None and sliding_window < columns else None
    if window is not None and not causal:
        refused.append("sliding_window without a causal mask")
    if refused:
        raise UnsupportedOpError(f"Attention with {', '.join(refused)} is not supported.")
    causal = causal and attention_mask is None and rows > 1
    if window is not None and attention_mask is None:
        row = torch.arange(rows, device=query.device)[:, None]
        column = torch.arange(columns, device=query.device)[None, :]
        attention_mask, causal = (column <= row) & (column > row - window), False
    done = nn.functional.scaled_dot_product_attention(
        query,
        key,
        value,
        attn_mask=attention_mask,
        is_causal=causal,
        scale=scaling,
        enable_gqa=query.shape[1] != key.shape[1],
    )
    return done.transpose(1, 2).contiguous(), None


def _check(configuration: Any, options: TargetOptions) -> None:
    unknown = set(getattr(configuration, "layer_types", None) or ()) - _LAYER_TYPES
    if unknown:
        raise UnsupportedOpError(f"The model has layers of type {', '.join(sorted(unknown))}, which are not supported.")
    positions = getattr(configuration, "max_position_embeddings", None)
    if isinstance(positions, int) and options.seq_len > positions:
        raise TargetOptionError(f"--seq-len {options.seq_len}: the model has {positions} positions.")


def model_inputs(model: Any, options: TargetOptions) -> dict[str, torch.Tensor]:
    """What the whole model reads, by name; sizes of images and sounds are the configuration's.

    Kinds of tokens are fed where the model would look them up in a buffer of its own.
    """
    name, tensor = _main_input(model, options)
    inputs = {name: tensor}
    if any(buffer.split(".")[-1] == _TOKEN_KINDS for buffer, _ in model.named_buffers()):
        inputs[_TOKEN_KINDS] = torch.zeros_like(tensor)
    return inputs


def _main_input(model: Any, options: TargetOptions) -> tuple[str, torch.Tensor]:
    name, configuration = str(model.main_input_name), model.config
    place = next(model.parameters()).device
    dtype = getattr(torch, options.dtype)
    if name == "input_ids":
        return name, torch.zeros(options.batch, options.seq_len, dtype=torch.int64, device=place)
    if name == "pixel_values":
        size = configuration.image_size
        height, width = size if isinstance(size, list | tuple) else (size, size)
        image = (options.batch, int(configuration.num_channels), int(height), int(width))
        return name, torch.zeros(image, dtype=dtype, device=place)
    if name == "input_features" and hasattr(configuration, "max_source_positions"):
        # The encoder's second convolution halves the number of frames.
        sound = (options.batch, int(configuration.num_mel_bins), 2 * int(configuration.max_source_positions))
        return name, torch.zeros(sound, dtype=dtype, device=place)
    raise UnsupportedTensorError(f"A model that reads {name} can't be fed yet: name one of its layers in a file.py.")


def layer_of(model: nn.Module, number: int) -> nn.Module:
    """A layer from the longest list of modules, which is what every model calls its layers, whatever the name."""
    lists = [module for module in model.modules() if isinstance(module, nn.ModuleList)]
    if not lists:
        raise TargetOptionError("--layer: the model has no list of layers.")
    layers = max(lists, key=len)
    if number >= len(layers):
        raise TargetOptionError(f"--layer {number}: the model has the layers 0 to {len(layers) - 1}.")
    return layers[number]


class _Reached(Exception):
    """The model has called the layer."""


def arguments_of(layer: nn.Module, run: Callable[[], object]) -> tuple[tuple[Any, ...], dict[str, Any]]:
    """What the layer is called with when the model runs; the run ends there."""
    seen: list[tuple[tuple[Any, ...], dict[str, Any]]] = []

    def note(_: nn.Module, args: tuple[Any, ...], kwargs: dict[str, Any]) -> None:
        seen.append((args, kwargs))
        raise _Reached

    handle = layer.register_forward_pre_hook(note, with_kwargs=True)
    try:
        run()
    except _Reached:
        return seen[0]
    finally:
        handle.remove()
    raise TargetOptionError("--layer: the model doesn't call this layer when it reads its main input.")
