"""A deployment as one Python file that needs torch and triton and nothing else: its kernels, and a function to call.

The file's `run` takes the program's inputs in their order. What depends on weights alone is computed at the first call,
or by `prepare`, and again when a weight is another tensor or was written to. Everything else is allocated a call, so
that results are the caller's; a call can be captured in a CUDA graph. A library's call is made through torch.

Names come from positions, texts of a database reach the file only as ASCII comments, and inputs' names are made safe.
"""

from __future__ import annotations

import io
import keyword
import re
import tokenize
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from engine.codegen import GLUON, Argument, KernelSource, acf_of, is_generated, render
from engine.deploy.deployment import Deployment
from engine.deploy.evidence import KernelChoice
from engine.deploy.python_template import HEAD, PROGRAM, TAIL
from engine.deploy.torch_text import dtype_text, graph_lines
from engine.ir.graph import TensorSpec
from engine.ir.placement import passed_to
from engine.ir.plan import BufferView, Grouping, KernelCall, Preparation, Program
from engine.vocabulary import Context

MAX_COMMENT = 300
_IMPORTS = re.compile(r"(?:import|from) [^\n]*")
_INDENT = " " * 8


@dataclass(frozen=True, slots=True)
class ModuleOrigin:
    """What the file says of where it comes from: product version, command that wrote it, commands that tuned it."""

    emmy: str
    command: str
    reproduce: Sequence[str]
    context: Context | None


def python_module(program: Program, chosen: Deployment, origin: ModuleOrigin) -> str:
    """The file's text. Raises KeyError for a grouping whose kernels the deployment has no schedule for."""
    grouping = chosen.grouping
    functions: dict[str, _Function] = {}
    parts: list[str] = []
    for number, item in enumerate(chosen.kernels):
        if is_generated(item.kernel):
            source = render(item.kernel, chosen.schedules[item.kernel.key], chosen.target, pdl=chosen.pdl)
            functions[item.kernel.key] = _Function(f"kernel_{number}", source)
            parts.append(f"{_kernel_comment(item)}\n{_renamed(source, number)}")
    sources = [function.source for function in functions.values()]
    names = input_names(program.graph.labels, len(grouping.input_specs()))
    return "\n".join(
        [
            *_head_lines(program, chosen, origin),
            *("import contextlib", "", *_import_lines(sources), "", ""),
            f"{''.join(parts)}INPUTS = (",
            *(f"    {_input_text(name, spec)}," for name, spec in zip(names, grouping.input_specs(), strict=True)),
            ")",
            f'"""{_INPUTS_NOTE}"""',
            HEAD,
            PROGRAM,
            *_prepare_lines(grouping),
            "",
            *_call_lines(grouping, functions),
            TAIL,
            *_function_lines(grouping, names),
        ]
    )


_GLUON_IMPORTS = (
    "from triton.experimental.gluon.nvidia.hopper import TensorDescriptor as GluonDescriptor",
    "",
    "GLUON_LAYOUT = gl.NVMMASharedLayout(swizzle_byte_width=128, element_bitwidth=16, rank=2)",
)
"""How blocks of 16-bit numbers lie in shared memory in a kernel in Gluon, beside what its own text imports."""


def _import_lines(sources: Sequence[KernelSource]) -> list[str]:
    """What the kernels and their launches take from torch and triton."""
    lines = ["import torch", "import triton", "import triton.language as tl"]
    lines += ["from triton.language.extra import libdevice"] if any("libdevice." in s.text for s in sources) else []
    if any(argument.block for source in sources if source.dialect != GLUON for argument in source.arguments):
        lines.append("from triton.tools.tensor_descriptor import TensorDescriptor")
    own = [line for s in sources if s.dialect == GLUON for line in s.text.splitlines() if _IMPORTS.fullmatch(line)]
    return [*lines, *dict.fromkeys(own), *(_GLUON_IMPORTS if own else ())]


_INPUTS_NOTE = "Name, shape, dtype, strides and storage offset (elements) of every input, in order."


@dataclass(frozen=True, slots=True)
class _Function:
    name: str
    source: KernelSource


def input_names(labels: Sequence[str], count: int) -> tuple[str, ...]:
    """Names of parameters that people recognize: the labels, made ASCII identifiers that differ from each other."""
    taken = {"PROGRAM", "torch", "run", "prepare", "capture"}
    names = []
    for position in range(count):
        label = labels[position] if position < len(labels) else ""
        name = re.sub(r"\W+", "_", label, flags=re.ASCII).strip("_")[:80] or f"input{position}"
        name = f"x{name}" if not name.isidentifier() or keyword.iskeyword(name) else name
        while name in taken:
            name = f"{name}_{position}"
        taken.add(name)
        names.append(name)
    return tuple(names)


def _head_lines(program: Program, chosen: Deployment, origin: ModuleOrigin) -> list[str]:
    context = origin.context
    facts = [
        f"Written by emmy {origin.emmy}: {origin.command}",
        f"Program: {program.target}",
        *(f"Tuned by: {command}" for command in origin.reproduce[:5]),
    ]
    if context is not None:
        facts.append(
            f"Chosen for {context.gpu} with torch {context.torch}, triton {context.triton}, ptxas {context.ptxas}, "
            f"driver {context.driver}"
        )
    facts += chosen.notes
    if chosen.us is not None:
        facts.append(f"Measured there: {chosen.us:.2f} us as one CUDA graph")
    else:
        facts.append("Not measured as one graph with these schedules")
    if chosen.pdl:
        facts.append("Its kernels start with programmatic dependent launch (compute capability 9.0 and above).")
    lines = ['"""Tuned kernels of one program, and `run`, which calls them: needs torch and triton alone."""', ""]
    return [*lines, *(comment(fact) for fact in facts), ""]


def comment(text: str) -> str:
    """A text as a comment of one ASCII line, whatever it holds."""
    plain = text.encode("unicode_escape", "backslashreplace").decode("ascii")
    return f"# {plain[:MAX_COMMENT]}".rstrip()


def _kernel_comment(item: KernelChoice) -> str:
    line = item.chosen
    said = f"{item.kernel.label or item.kernel.family} {item.kernel.shape_text}, {item.count} calls"
    if line is None:
        return comment(said)
    time = f", {line.us:.2f} us" if line.us is not None else ""
    acf = acf_of(line.schedule)
    note = f"; tuned with the controls file {acf}, which this file doesn't apply" if acf else ""
    return "\n".join((comment(f"{said}: {line.source}{time}{note}"), comment(f"  {line.schedule}")))


def _renamed(source: KernelSource, number: int) -> str:
    """The source's functions under names of this kernel's own, without the imports."""
    defined = set(re.findall(r"^def (\w+)\(", source.text, re.MULTILINE))
    names = {name: f"{name}_of_kernel_{number}" for name in defined} | {source.entry: f"kernel_{number}"}
    lines = [line for line in source.text.splitlines() if not _IMPORTS.fullmatch(line)]
    while lines and not lines[0]:
        lines.pop(0)
    tokens = list(tokenize.generate_tokens(io.StringIO("\n".join(lines) + "\n").readline))
    for before, token in reversed(list(zip([None, *tokens], tokens, strict=False))):
        if token.type == tokenize.NAME and token.string in names and (before is None or before.string != "."):
            row, start = token.start
            line = lines[row - 1]
            lines[row - 1] = line[:start] + names[token.string] + line[start + len(token.string) :]
    return "\n".join([*lines, "", "", ""])


def _input_text(name: str, spec: TensorSpec) -> str:
    return f'("{name}", {tuple(spec.shape)}, {dtype_text(spec.dtype)}, {tuple(spec.strides)}, {int(spec.offset)})'


def _prepare_lines(grouping: Grouping) -> list[str]:
    """The method that computes what depends on weights alone, of flat storages by number, into such."""
    read = sorted({view.buffer for step in grouping.prepared for view in step.arguments})
    inputs = range(len(grouping.input_specs()))
    lines = [
        f"    PREPARED_FROM = {tuple(buffer for buffer in read if buffer in inputs)}",
        "",
        "    def _prepare(self, b, device):",
        '        """Add what depends on weights alone to the storages `b`."""',
    ]
    lines += [f"        self._prepare_{number}(b, device)" for number in range(len(grouping.prepared))]
    lines += [] if grouping.prepared else ["        return"]
    for number, step in enumerate(grouping.prepared):
        lines += ["", f"    def _prepare_{number}(self, b, device):", *_step_lines(grouping, step)]
    return lines


def _step_lines(grouping: Grouping, step: Preparation | KernelCall) -> list[str]:
    """A body run by torch: its results go to the storages of the plan."""
    body = step.body if isinstance(step, Preparation) else step.kernel.body
    lines = [f"x{place} = {_view_text(view)}" for place, view in enumerate(step.arguments)]
    statements, outputs = graph_lines(body, [f"x{place}" for place in range(len(step.arguments))], "device")
    lines += statements
    for buffer, value in zip(step.results, outputs, strict=True):
        lines.append(_empty_text(grouping, buffer))
        lines.append(f"{_view_text(BufferView(buffer, grouping.buffers[buffer]))}.copy_({value})")
    return [_INDENT + line for line in lines]


def _call_lines(grouping: Grouping, functions: Mapping[str, _Function]) -> list[str]:
    lines = ["    def _launch(self, b, device):", '        """Start every kernel in order; the outputs."""']
    others = []
    for number, call in enumerate(grouping.launches()):
        function = functions.get(call.kernel.key)
        if function is None:
            lines.append(f"{_INDENT}self._call_{number}(b, device)")
            others += ["", f"    def _call_{number}(self, b, device):", *_step_lines(grouping, call)]
            continue
        lines += [_INDENT + _empty_text(grouping, buffer) for buffer in call.results]
        source = function.source
        words = [_argument_text(argument, call, source.dialect) for argument in source.arguments]
        words += [f"num_warps={source.num_warps}", f"num_stages={source.num_stages}"]
        words += ["launch_pdl=True"] if source.pdl else []
        lines.append(f"{_INDENT}{function.name}[{tuple(source.grid)}]({', '.join(words)})")
    outputs = ", ".join(_view_text(view) for view in grouping.outputs)
    lines.append(f"{_INDENT}return {outputs if len(grouping.outputs) == 1 else f'({outputs})'}")
    return [*lines, *others]


def _argument_text(argument: Argument, call: KernelCall, dialect: str) -> str:
    if argument.kind == "input":
        buffer, start = call.arguments[argument.index].buffer, passed_to(call.arguments[argument.index].spec)
    else:
        buffer, start = call.results[argument.index], 0
    if not argument.block:
        return f"b[{buffer}][{int(start)}:]" if start else f"b[{buffer}]"
    shape, strides, block = (list(values) for values in (argument.shape, argument.strides, argument.block))
    view = f"_view(b[{buffer}], {tuple(argument.shape)}, {tuple(argument.strides)}, {int(start + argument.offset)})"
    if dialect == GLUON:
        return f"GluonDescriptor({view}, {shape}, {strides}, {block}, GLUON_LAYOUT)"
    return f"TensorDescriptor({view}, {shape}, {strides}, {block})"


def _view_text(view: BufferView) -> str:
    spec = view.spec
    return f"_view(b[{view.buffer}], {tuple(spec.shape)}, {tuple(spec.strides)}, {int(spec.offset)})"


def _empty_text(grouping: Grouping, buffer: int) -> str:
    spec = grouping.buffers[buffer]
    elements = max(spec.storage_elements, 1)
    return f"b[{buffer}] = torch.empty({elements}, dtype={dtype_text(spec.dtype)}, device=device)"


def _function_lines(grouping: Grouping, names: Sequence[str]) -> list[str]:
    given = ", ".join(names)
    lines = [
        f"def run({given}):",
        '    """The program: every input in order, weights among them. A tensor, or a tuple of several."""',
        f"    return PROGRAM({given})",
        "",
    ]
    inputs = range(len(names))
    weights = sorted({view.buffer for step in grouping.prepared for view in step.arguments if view.buffer in inputs})
    if weights:
        words = ", ".join(names[weight] for weight in weights)
        lines += [
            "",
            f"def prepare({words}):",
            '    """Compute what depends on weights alone now, before the first `run`."""',
            f"    PROGRAM.prepare({{{', '.join(f'{weight}: {names[weight]}' for weight in weights)}}})",
            "",
        ]
    lines += [
        "",
        f"def capture({given}):",
        '    """A CUDA graph of one call, and its outputs: `graph.replay()` runs it again on the same tensors."""',
        f"    return PROGRAM.capture({given})",
        "",
    ]
    return lines
