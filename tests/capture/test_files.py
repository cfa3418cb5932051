"""Functions and modules of a Python file, with the example inputs beside them."""

from __future__ import annotations

from pathlib import Path

import pytest
import torch

from engine.capture import TargetOptions, parse_target
from engine.capture.errors import CaptureError, TargetMissingError, TargetSyntaxError, UnsupportedOpError, UserCodeError
from engine.capture.trace import trace
from engine.ir.plan import Program
from engine.runtime.reference import evaluate

pytestmark = pytest.mark.filterwarnings("ignore")

FILE = """
import torch
from torch import nn
from neighbour import SCALE

class Block(nn.Module):
    def __init__(self, width=16):
        super().__init__()
        self.up = nn.Linear(width, 32)
        self.drop = nn.Dropout(0.5)

    def forward(self, x, pair=None, flag=True):
        y = self.drop(self.up(x))
        return y + pair[0] * pair[1] if flag and pair else y

block = Block(8)

class Names:
    @staticmethod
    def scaled(x):
        return x * SCALE

def apart(x, y):
    return {"sum": x + y, "none": None, "product": [x * y]}

def example_inputs(batch, dtype, seq_len=3):
    return torch.zeros(batch, seq_len, 16, dtype=dtype, device="cuda:1")
"""


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    (tmp_path / "neighbour.py").write_text("SCALE = 3.0")
    monkeypatch.syspath_prepend(str(tmp_path))
    return tmp_path


def captured(folder: Path, attribute: str, text: str = FILE, name: str = "file", **options: int | str) -> Program:
    path = folder / f"{name}.py"
    path.write_text(text)
    return trace(parse_target(f"{path}:{attribute}", TargetOptions(**options)), "cuda")  # type: ignore[arg-type]


def test_a_module_is_fed_by_the_options_and_named_by_its_parts(folder: Path) -> None:
    program = captured(folder, "Block", batch=2, seq_len=5, dtype="float32")
    assert program.graph.labels == ("up.weight", "up.bias", "x")
    assert program.graph.output_specs()[0].shape == (2, 5, 32)
    assert program.device == "cuda:1"
    weight, bias, x = torch.randn(32, 16), torch.randn(32), torch.randn(2, 5, 16)
    found = evaluate(program.graph, [weight, bias, x], dtype=None)[0]
    torch.testing.assert_close(found, torch.nn.functional.linear(x, weight, bias))


def test_arguments_may_be_named_and_nested(folder: Path) -> None:
    text = FILE.split("def example_inputs")[0] + (
        "def example_inputs():\n"
        "    x, y = torch.empty(4, 8), torch.empty(4, 32)\n"
        "    return {'x': x, 'pair': (y, y + 1), 'flag': True}\n"
    )
    program = captured(folder, "block", text)
    assert set(program.graph.labels) == {"up.weight", "up.bias", "x", "pair.0", "pair.1"}


def test_a_function_gives_the_tensors_among_its_results(folder: Path) -> None:
    text = FILE.split("def example_inputs")[0] + "def example_inputs(): return [torch.empty(4), torch.empty(4)]\n"
    program = captured(folder, "apart", text)
    assert program.graph.labels == ("x", "y")
    found = evaluate(program.graph, [torch.tensor([1.0, 2, 3, 4]), torch.full((4,), 2.0)])
    assert [tensor.tolist() for tensor in found] == [[3, 4, 5, 6], [2, 4, 6, 8]]


def test_dtypes_that_do_not_fit_are_one_sentence(folder: Path) -> None:
    with pytest.raises(UnsupportedOpError, match="matmul of the program is not supported: multiplies bfloat16 by"):
        captured(folder, "Block")


def test_a_buffer_that_changes_has_its_own_name(folder: Path) -> None:
    text = FILE + "\nclass Counted(nn.Module):\n"
    text += (
        "    def __init__(self):\n        super().__init__()\n        self.register_buffer('seen', torch.zeros(16))\n"
    )
    text += "    def forward(self, x):\n        self.seen.add_(1)\n        return x + self.seen\n"
    with pytest.raises(UnsupportedOpError, match="changes the buffer seen:"):
        captured(folder, "Counted", text, dtype="float32")


@pytest.mark.parametrize(
    "body", ["x.copy_(y * 2); return y + 1", "x.add_(1); return x * y", "return x.relu_() + y", "y[0] = x[1]; return x"]
)
def test_a_write_to_an_argument_is_refused(folder: Path, body: str) -> None:
    """Whoever calls the function sees it, and no kernel would write it."""
    text = f"import torch\ndef fill(x, y): {body}\ndef example_inputs(): return torch.ones(8, 16), torch.ones(8, 16)\n"
    with pytest.raises(UnsupportedOpError, match="changes one of its arguments in place"):
        captured(folder, "fill", text)


def test_an_attribute_may_be_dotted_and_neighbours_are_found(folder: Path) -> None:
    program = captured(folder, "Names.scaled", batch=1)
    assert [op.attribute("value") for op in program.graph.ops if op.kind == "constant"] == [3.0]


def test_a_file_that_changed_is_another_target(folder: Path) -> None:
    before = captured(folder, "Block", dtype="float32").target
    after = captured(folder, "Block", FILE + "\n# changed\n", dtype="float32").target
    assert before != after
    with pytest.raises(TargetMissingError, match="has changed"):
        trace(parse_target(before), "cuda")


@pytest.mark.parametrize(
    ("attribute", "text", "error", "sentence"),
    [
        ("missing", FILE, TargetMissingError, "no function or module `missing`"),
        ("SCALE", FILE, TargetMissingError, "no function or module `SCALE`"),
        ("Block", "from torch.nn import Identity as Block", TargetMissingError, r"has no `example_inputs\(\)`"),
        ("f", "def f(x): return x\ndef example_inputs(): return 3", UserCodeError, "returns a int"),
        ("f", "def f(x)", TargetSyntaxError, "doesn't parse"),
        ("f", "TEXT = '\\x4'\ndef f(x): return x", TargetSyntaxError, "doesn't parse: .*unicodeescape"),
        ("f", "def f(x): return x\0", TargetSyntaxError, "doesn't parse"),
        ("f", "import missing_module", UserCodeError, "missing_module"),
        (
            "f",
            "import torch\ndef f(x): return x + gone\ndef example_inputs(): return torch.ones(3)",
            UserCodeError,
            "gone",
        ),
    ],
)
def test_what_a_file_lacks_is_one_sentence(
    folder: Path, attribute: str, text: str, error: type[CaptureError], sentence: str
) -> None:
    with pytest.raises(error, match=sentence) as raised:
        captured(folder, attribute, text, name="lacking")
    assert "\n" not in str(raised.value)


def test_a_file_in_another_encoding_says_so_and_one_that_names_it_is_read(folder: Path) -> None:
    text = "SCALE = 'Maß'\nimport torch\ndef f(x): return x + 1\ndef example_inputs(): return torch.ones(3)\n"
    path = folder / "latin.py"
    path.write_bytes(text.encode("latin-1"))
    with pytest.raises(TargetSyntaxError, match=r"latin\.py is no text in UTF-8"):
        trace(parse_target(f"{path}:f", TargetOptions()), "cuda")
    path.write_bytes(f"# coding: no-such\n{text}".encode())
    with pytest.raises(TargetSyntaxError, match=r"latin\.py is no text in UTF-8"):
        trace(parse_target(f"{path}:f", TargetOptions()), "cuda")
    path.write_bytes(f"# coding: latin-1\n{text}".encode("latin-1"))
    assert trace(parse_target(f"{path}:f", TargetOptions()), "cuda").graph.inputs


def test_a_file_or_folder_alone_is_told_what_else_to_name(folder: Path) -> None:
    path = folder / "alone.py"
    path.write_text("def f(x): return x")
    with pytest.raises(TargetSyntaxError, match=r"alone\.py is a file: name the function .*, as in .*alone\.py:f\.$"):
        parse_target(str(path), TargetOptions())
    with pytest.raises(TargetMissingError, match=r"holds no config\.json: name the folder of"):
        parse_target(str(folder), TargetOptions())
