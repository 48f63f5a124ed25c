"""Figures load without a GPU, and what they state of the book's code is what it says. tests/test_walls.py: what they import."""

import ast
import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

from cudatut import catalog, tool
from cudatut.files import write_whole

ROOT = Path(__file__).resolve().parents[2]
FIGURES = ROOT / "docs" / "figures"
FILES = sorted(FIGURES.rglob("*.py"))


def test_all_figures_load_without_a_gpu_module():
    names = [".".join(path.relative_to(FIGURES.parent).with_suffix("").parts) for path in FILES]
    code = (
        "import importlib, sys\n"
        f"for name in {names}: importlib.import_module(name)\n"
        "print(*(name for name in sys.modules if name.startswith(('cudatut.gpu', 'cudatut.record.', 'pycuda'))))"
    )
    env = tool.environment()
    env["PYTHONPATH"] += f"{os.pathsep}{FIGURES.parent}"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, env=env)
    assert (done.returncode, done.stdout.split()) == (0, []), done.stderr


# --- numbers that only code of the examples knows -------------------------------------------------


def left_by_the_rules() -> dict:
    """How many candidates each rule of the chapter on tuning leaves."""
    from cudatut.book.gemm.ladder import autotuning_space as space

    gpus = {"H100": space.H100, "RTX 3090": space.RTX_3090}
    return {name: [list(step) for step in space.prune(gpu)[0]] for name, gpu in gpus.items()}


def chosen_for_shapes() -> dict:
    """Of forty shapes m, n and k, the columns of a tile, and whether blocks share some tiles, on an H100."""
    from cudatut.book.gemm.shapes import shapes
    from cudatut.book.tensor.gemm import gemm

    found = []
    for m, n, k in shapes.SHAPES:
        unaligned = 2 * (m * k * (k % 8 > 0) + k * n * (n % 8 > 0))
        plan = gemm.choose(m, n, k, 132, unaligned)
        found.append([m, n, k, plan.tile.columns, plan.share > 0])
    return {"H100": found}


STATED = {"gemm/autotuning.json": left_by_the_rules, "tensor/scoreboard.json": chosen_for_shapes}


@pytest.mark.parametrize("name", STATED)
def test_what_a_figure_states_is_what_the_code_says(name):
    stated = json.loads((FIGURES / name).read_text(encoding="utf-8"))
    assert stated == STATED[name](), (
        f"docs/figures/{name} differs from the code: run `python tests/site/test_figures.py`, and look at the figure"
    )


def test_no_numbers_are_left_over():
    assert {str(path.relative_to(FIGURES)) for path in FIGURES.rglob("*.json")} == set(STATED)


def room_of_the_chapter():
    """The function `room` of the chapter on occupancy, as its program defines it."""
    program = ast.parse(catalog.cells(catalog.get("basics/occupancy").path)["program"])
    names = {"ct": type("ct", (), {"cdiv": staticmethod(lambda a, b: -(-a // b))})}
    defined = [node for node in program.body if isinstance(node, ast.FunctionDef)]
    exec(compile(ast.Module(defined, []), "basics/occupancy", "exec"), names)
    return names["room"]


def differences(room, other) -> list[tuple]:
    """Launches for which two such functions do not agree, on an SM of two kinds of GPUs."""
    found = []
    for warps, shared_of_sm in ((64, 233472), (48, 102400)):
        sm = {"warps": warps, "blocks": 24, "registers": 65536}
        ours = sm | {"shared memory": shared_of_sm, "reserved per block": 1024}
        theirs = sm | {"shared": shared_of_sm, "reserved": 1024}
        for threads in (1, 32, 33, 128, 672, 1024):
            for registers in (8, 32, 33, 100, 255):
                for shared in (0, 1, 127, 40_000, 101_376):
                    launch = threads, registers, shared
                    if room(ours, *launch) != other(theirs, *launch):
                        found.append(launch)
    return found


def test_the_figure_on_occupancy_computes_as_the_chapter(monkeypatch):
    monkeypatch.syspath_prepend(str(FIGURES.parent))
    from figures.basics import occupancy

    assert differences(occupancy.room, room_of_the_chapter()) == []


def test_another_rule_would_be_noticed():
    def coarser(sm, threads, registers, shared):
        return room_of_the_chapter()(sm, threads, registers // 8 * 8, shared)

    def ours(sm, *launch):
        renamed = {"shared": sm["shared memory"], "reserved": sm["reserved per block"]}
        return room_of_the_chapter()(sm | renamed, *launch)

    assert differences(ours, room_of_the_chapter()) == []
    assert differences(ours, coarser)


def lines_of(value: object, depth: int = 0) -> str:
    """JSON with a line for each item of the outer two levels, so that a difference can be read."""
    if depth == 2 or not isinstance(value, dict | list):
        return json.dumps(value)
    inner = [
        (f"{json.dumps(key)}: " if isinstance(value, dict) else "") + lines_of(one, depth + 1)
        for key, one in (value.items() if isinstance(value, dict) else enumerate(value))
    ]
    pad, (open_, close) = "  " * depth, "{}" if isinstance(value, dict) else "[]"
    return f"{open_}\n{pad}  " + f",\n{pad}  ".join(inner) + f"\n{pad}{close}"


if __name__ == "__main__":
    for name, read in STATED.items():
        write_whole(FIGURES / name, (lines_of(read()) + "\n").encode())
        print(f"docs/figures/{name}", file=sys.stderr)
