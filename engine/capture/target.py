"""What `--code` may say, checked as text: Python whose last statement is a call. No torch needed."""

from __future__ import annotations

import ast
from dataclasses import dataclass

from engine.capture.errors import NotACallError, TargetSyntaxError


@dataclass(frozen=True, slots=True)
class ParsedTarget:
    """`statements` run first, `call` is what is tuned; `text` is what was typed."""

    text: str
    statements: str
    call: str


def parse_target(text: str) -> ParsedTarget:
    """Split a target into statements and the final call. Raises TargetSyntaxError or NotACallError."""
    try:
        body = ast.parse(text.strip()).body
    except (SyntaxError, ValueError) as error:
        where = f" at line {error.lineno}" if isinstance(error, SyntaxError) and error.lineno else ""
        cause = error.msg if isinstance(error, SyntaxError) else str(error)
        raise TargetSyntaxError(f"The code doesn't parse{where}: {cause}.") from None
    if not body:
        raise NotACallError("The code is empty: give an expression that calls something, e.g. torch.mm(a, b).")
    last = body[-1]
    if not isinstance(last, ast.Expr) or not isinstance(last.value, ast.Call):
        found = ast.unparse(last).splitlines()[0][:60]
        raise NotACallError(f"The last statement must be a call, and it is `{found}`: end with e.g. torch.mm(a, b).")
    return ParsedTarget(text, "\n".join(ast.unparse(node) for node in body[:-1]), ast.unparse(last.value))
