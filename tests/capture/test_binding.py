"""A target bound to real tensors runs as it is, and torch.compile takes it whole: the peers are built so."""

from __future__ import annotations

from pathlib import Path

import pytest
import torch

from engine.capture import TargetOptions, parse_target
from engine.capture.binding import bind_target

CODES = (
    "F.gelu(F.linear(torch.randn(8, 16), torch.randn(32, 16), torch.randn(32)))",
    "def twice(x):\n    return F.relu(x) * math.sqrt(2)\ntwice(torch.randn(8, 16))",
    "scale = 3.0\nclass Scaled(nn.Module):\n    def forward(self, x):\n        return F.silu(x) * scale\nm = Scaled()\n"
    "m(torch.randn(4, 8))",
    "layer = nn.Linear(16, 8)\ntorch.softmax(layer(torch.randn(4, 16)), -1)",
    "if __name__ == '__main__':\n    width = 16\ntorch.relu(torch.randn(4, width))",
)


@pytest.mark.parametrize("code", CODES)
def test_torch_compile_takes_the_code_whole(code: str) -> None:
    call = bind_target(parse_target(code), "cpu")
    torch._dynamo.reset()
    compiled = torch.compile(call.function, backend="eager", fullgraph=True, dynamic=False)
    with torch.no_grad():
        torch.testing.assert_close(compiled(*call.args, **call.kwargs), call())


def test_codes_don_t_see_each_others_names() -> None:
    codes = [f"width = {width}\ndef of(x):\n    return x * width\nof(torch.ones(2))" for width in (2, 3)]
    calls = [bind_target(parse_target(code), "cpu") for code in codes]
    torch._dynamo.reset()
    compiled = [torch.compile(call.function, backend="eager", fullgraph=True) for call in calls]
    with torch.no_grad():
        assert [function(*call.args).tolist() for function, call in zip(compiled, calls, strict=True)] == [
            [2.0, 2.0],
            [3.0, 3.0],
        ]


def test_torch_compile_takes_a_files_function_whole(tmp_path: Path) -> None:
    path = tmp_path / "program.py"
    path.write_text(
        "import torch\nimport torch.nn.functional as F\n\ndef inner(x):\n    return F.relu(x)\n\n"
        "def program(x):\n    return inner(x) + 1\n\ndef example_inputs():\n    return (torch.randn(4, 4),)\n"
    )
    call = bind_target(parse_target(f"{path}:program", TargetOptions()), "cpu")
    torch._dynamo.reset()
    compiled = torch.compile(call.function, backend="eager", fullgraph=True)
    with torch.no_grad():
        torch.testing.assert_close(compiled(*call.args, **call.kwargs), call())
