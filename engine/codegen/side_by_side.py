"""Products that lie side by side in one grid: the tile's number says whose tile a program computes.

Where their main loops differ in nothing but the matrix that they read, there is one loop, and which matrix it reads is
chosen before it: a loop for each would cost its own compile time, registers and instruction cache. What each does with
its product is a function of its own.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from dataclasses import dataclass

from engine.codegen.module_text import Function

RIGHT = "right"
"""What the one loop calls the matrix that it reads."""
_ARGUMENT = re.compile(r"\b(?:in|out)\d+\b|\b\w+_desc\b")
_NAME = re.compile(r"\b[A-Za-z_]\w*")


@dataclass(frozen=True, slots=True)
class Product:
    """The lines of one product's tile: from the tile's number to its row and column (`raster`), to its elements
    (`place`), the main loop and what is done with its sum. `right` is the argument that only its loop reads."""

    tiles: int
    right: str
    raster: tuple[str, ...]
    place: tuple[str, ...]
    loop: tuple[str, ...]
    epilogue: tuple[str, ...]


def side_by_side(products: Sequence[Product]) -> tuple[list[str], list[Function]]:
    """The entry's lines, and the functions that it calls. All threads of a program agree on the branch."""
    loops = {_with_one_name(product) for product in products}
    batched = any("batch" in line for product in products for line in product.raster)
    alone = all(one.right and not _reads(one.epilogue, one.right) for one in products)
    if len(loops) > 1 or batched or not alone:
        return _apart(products)
    return _together(products, loops.pop())


def _apart(products: Sequence[Product]) -> tuple[list[str], list[Function]]:
    """A function for the whole of each product: its names are its own."""
    functions = []
    for number, one in enumerate(products):
        lines = (*one.raster, *one.place, *one.loop, *one.epilogue)
        functions.append(Function(f"product{number}", ("tile", *_arguments(lines)), lines))

    def call(number: int, start: int) -> list[str]:
        place = f"tile - {start}" if start else "tile"
        return [f"{functions[number].name}({', '.join((place, *functions[number].parameters[1:]))})"]

    return ["    tile = tl.program_id(0)", *_branches(products, "tile", call)], functions


def _together(products: Sequence[Product], loop: tuple[str, ...]) -> tuple[list[str], list[Function]]:
    """One loop between the choice of a product and the function that ends it."""
    functions = []
    for number, one in enumerate(products):
        lines = (*one.place, *one.epilogue)
        functions.append(Function(f"product{number}", ("acc", "tile_m", "tile_n", *_arguments(lines)), lines))

    def choose(number: int, start: int) -> list[str]:
        moved = [f"tile -= {start}"] if start else []
        return [f"{RIGHT} = {products[number].right}", *moved, *(line.strip() for line in products[number].raster)]

    def end(number: int, start: int) -> list[str]:
        return [f"{functions[number].name}({', '.join(functions[number].parameters)})"]

    program = "tl.program_id(0)"
    chosen = [f"    tile = {program}", *_branches(products, program, choose)]
    return [*chosen, *products[0].place, *loop, *_branches(products, program, end)], functions


def _branches(products: Sequence[Product], number_of: str, body: Callable[[int, int], list[str]]) -> list[str]:
    """An if, its elifs and an else; `body` has the lines for a product by its position and its first tile."""
    lines, start = [], 0
    for position, product in enumerate(products):
        end = start + product.tiles
        head = "else:" if position == len(products) - 1 else f"{'elif' if position else 'if'} {number_of} < {end}:"
        lines += [f"    {head}", *(f"        {line}" for line in body(position, start))]
        start = end
    return lines


def _with_one_name(product: Product) -> tuple[str, ...]:
    """The loop with `RIGHT` for its own matrix, and with names for its pointers and tiles that all products share."""
    renamed = {product.right: RIGHT}
    if number := re.fullmatch(r"in(\d+)", product.right):
        renamed |= {f"p{number[1]}": f"{RIGHT}_place", f"x{number[1]}": f"{RIGHT}_value"}
    if number := re.fullmatch(r"right(\d*)_desc", product.right):
        renamed |= {f"right{number[1]}_tile": f"{RIGHT}_tile"}
    return tuple(_NAME.sub(lambda name: renamed.get(name[0], name[0]), line) for line in product.loop)


def _reads(lines: Sequence[str], name: str) -> bool:
    return any(re.search(rf"\b{name}\b", line) for line in lines)


def _arguments(lines: Sequence[str]) -> tuple[str, ...]:
    """The kernel's arguments among the names in the lines: pointers in order, then descriptors."""
    names = {name for line in lines for name in _ARGUMENT.findall(line)}
    return tuple(sorted(names, key=lambda name: (name.endswith("_desc"), name.startswith("out"), len(name), name)))
