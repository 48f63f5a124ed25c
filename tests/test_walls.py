"""The walls of the house: which room may use which. A contract, read from top to bottom.

What a room uses is read from the syntax of Python, with imports in functions and by `import_module`, from `#include` lines of
CUDA, in strings of Python too, and from the names of kernel files. Figures, and how modules are found, have rules of their own.
"""

import ast
import re
import shutil
import sys
from collections import Counter
from collections.abc import Callable, Iterator
from functools import cache
from graphlib import CycleError, TopologicalSorter
from pathlib import Path
from typing import Any

import pytest

from cudatut.gpu.headers import quoted

ROOT = Path(__file__).resolve().parents[1]

# --- the contract -------------------------------------------------------------------------------------------------------

API = "api"  # `import cudatut as ct`
# A room of the package: what it holds of cudatut/, and which rooms above it may use.
PACKAGE = {
    "ground": ("comments errors failures files image_files overlays finding pairs paths processes sizes tool words wrapping yaml_text", ""),
    "results": ("results schema", "ground"),
    "book": ("agreement alone book catalog certificate fingerprint history instrument recording", "ground results"),
    "reader": ("beside", "ground results book"),
    "gpu": ("gpu", "ground results book"),
    "notebook": ("libraries notebook runs_on to_notebook", "ground book gpu"),
    "exercises": ("exercises", "ground book gpu notebook"),
    "record": ("record", "ground results book gpu notebook"),
    "restamp": ("restamp", "ground results book gpu notebook"),
    "rules": ("rules", "ground book gpu exercises restamp"),
    "status": ("digests made_of provenance status written", "ground results book gpu exercises restamp"),
    "site": ("site", "ground results book notebook exercises rules"),
    "authoring": ("authoring", "ground book exercises rules site"),
    "doctor": ("doctor", "ground gpu"),
    "cli": ("__main__ cli", f"{API} ground results book gpu exercises record restamp status site authoring doctor"),
}  # fmt: skip

# A folder of the examples, and which others it may use. All may use the API, `gpu` and `ground` of the package.
SHARED = "numbers ptx hopper measure rivals cpp"
EXAMPLES = {
    "numbers": "",
    "ptx": "",
    "hopper": "ptx",
    "measure": "",
    "cpp": "",
    "rivals": "",
    "start": SHARED,
    "basics": SHARED,
    "reduction": SHARED,
    "memory": SHARED,
    "primitives": SHARED,
    "gemm": f"{SHARED} published",
    "llm": f"{SHARED} published",
    "tensor": f"{SHARED} published",
    "images": f"{SHARED} published",
    # The door between parts: it says which modules and names of a part others may import, and nothing else.
    "published": "basics gemm llm tensor primitives",
}

# What is used by its name through a wall all the same, and by which room.
NAMED = {
    # Kernels of one part that another one launches.
    "start/programming_model/programming_model.cu": "examples/reduction",
    "basics/ladder/naive_columns.cu": "examples/gemm",
    "basics/ladder/thread_tile.cu": "examples/gemm",
    "basics/ladder/tiled.cu": "examples/gemm",
    "gemm/kernels/transpose.cu": "examples/tensor",
    "gemm/tma/tma_box.cu": "examples/tensor",
    # What the commands `try` and `tune` run.
    "cudatut.book.{part}.{folder}.ladder": "gpu",
    "cudatut.book.{ladder.part}.ladder.autotuning_space": "gpu",
    "cudatut.book.gemm.tuner": "gpu",
}

# What a figure imports besides figures of its part and the standard library; and what would bring in code by another way.
FIGURES = ("cudatut.site.drawing", "cudatut.site.references", "cudatut.site.svg")
OTHER_WAYS = ("importlib", "runpy", "subprocess", "exec", "eval", "compile", "__import__")

MOST = 40  # files in a folder of the examples

# --- what uses what -----------------------------------------------------------------------------------------------------

MODULES = {module: room for room, (holds, _) in PACKAGE.items() for module in holds.split()}
MAY = {room: {room, *uses.split()} for room, (_, uses) in PACKAGE.items()} | {
    f"examples/{room}": {API, "gpu", "ground", *(f"examples/{one}" for one in (room, *uses.split()))}
    for room, uses in EXAMPLES.items()
}  # fmt: skip
MAY[API] = {API}


def sources(root: Path, *folders: str, kinds: tuple[str, ...] = (".py",)) -> list[Path]:
    """The files of these kinds, or all, below folders of the book; without what tools keep there."""
    found = (path for folder in folders for path in sorted((root / folder).rglob("*.*")))
    kept = re.compile(r"(?:^|/)(?:\.|__pycache__|node_modules)")
    return [
        path
        for path in found
        if (path.suffix in kinds or not kinds) and not kept.search(place(path, root))
    ]


def place(path: Path, root: Path) -> str:
    return path.relative_to(root).as_posix()


def name_of(path: Path, root: Path) -> str:
    """The full name of a module: cudatut.gpu.bench, cudatut.book.gemm.ladder.ladder, figures.gemm.tma."""
    folder, *parts = path.relative_to(root).with_suffix("").parts
    above = {"examples": ["cudatut", "book"], "docs": []}.get(folder, [folder])
    return ".".join([*above, *parts]).removesuffix(".__init__")


def room_of(name: str) -> str | None:
    """The room of a module, or of what is in one, by its full name; None for what is not the book's."""
    top, module, room = [*name.split("."), "", ""][:3]
    if top != "cudatut":
        return None
    return f"examples/{room}" if module == "book" and room else MODULES.get(module, API)


def nodes(path: Path, *kinds: type[ast.AST]) -> Iterator[Any]:
    """The nodes of these kinds in the syntax of a module."""
    return (node for node in _nodes(path.read_text(encoding="utf-8")) if isinstance(node, kinds))


@cache
def _nodes(text: str) -> list[ast.AST]:
    """All of them; each wall looks at every module."""
    return list(ast.walk(ast.parse(text)))


def called(node: ast.Call) -> str:
    """The name of what is called, without what it is of."""
    return getattr(node.func, "attr", getattr(node.func, "id", ""))


def imports(path: Path, root: Path) -> Iterator[tuple[int, str]]:
    """The line and the full name of each thing that a module imports; what only a run knows of a name is in braces."""
    around = name_of(path, root).split(".")[: None if path.stem == "__init__" else -1]
    for node in nodes(path, ast.Import, ast.ImportFrom, ast.Call):
        if isinstance(node, ast.Import):
            yield from ((node.lineno, one.name) for one in node.names)
        elif isinstance(node, ast.ImportFrom):
            above = around[: len(around) - node.level + 1] if node.level else []
            whole = ".".join([*above, *filter(None, [node.module])])
            yield from ((node.lineno, f"{whole}.{one.name}") for one in node.names)
        elif node.args and called(node) in ("import_module", "__import__"):
            text = ast.unparse(node.args[0])
            literal = re.fullmatch(r"""f?(["'])(.*)\1""", text)
            yield node.lineno, literal[2] if literal else f"cudatut.book.{{{text}}}"


def files(path: Path) -> Iterator[tuple[int, str, str]]:
    """(line, "includes" or "launches", file) of each CUDA file that another one names, or that a string of Python does."""
    text = path.read_text(encoding="utf-8")
    if path.suffix != ".py":
        named = enumerate(text.splitlines(), 1)
    else:
        strings = nodes(path, ast.Constant)
        named = ((one.lineno, one.value) for one in strings if isinstance(one.value, str))
    for line, words in named:
        if path.suffix == ".py" and re.fullmatch(r"\w+/[\w/]+\.cu", words):
            yield line, "launches", words
        yield from ((line, "includes", name) for name in quoted(words))


def uses(path: Path, root: Path) -> Iterator[tuple[int, str, str, str]]:
    """(line, how, what, the room that it is of) of all that a file uses of the book."""
    if path.suffix == ".py":
        for line, name in imports(path, root):
            if room := room_of(name):
                yield line, "imports", name, room
    for line, how, file in files(path):
        if (beside := (path.parent / file).resolve()).is_relative_to(root / "examples"):
            file = place(beside, root / "examples") if beside.is_file() else file
        if (room := file.partition("/")[0]) in EXAMPLES:
            yield line, how, file, f"examples/{room}"


def through_walls(root: Path) -> tuple[list[str], set[str]]:
    """What uses a room that its own may not use, each in words; and what NAMED lets through."""
    wrong, let_through = [], set()
    for path in sources(root, "cudatut", "examples", kinds=(".py", ".cu", ".cuh")):
        own = room_of(name_of(path, root)) or ""
        rooms = MAY.get(own, set())
        for line, how, what, room in sorted(set(uses(path, root))):
            if room in rooms:
                continue
            if NAMED.get(what) == own and how != "includes":
                let_through.add(what)
                continue
            may = ", ".join(sorted(rooms - {own})) or "no other"
            wrong.append(f"{place(path, root)}:{line} {how} {what} of {room}; {own} may use {may}")
    return wrong, let_through


def circle(root: Path) -> list[str]:
    """Modules each of which imports the one before it, the last one the first; empty without such a circle."""
    modules = {name_of(path, root): path for path in sources(root, "cudatut", "examples")}
    used: dict[str, set[str]] = {name: set() for name in modules}
    for name, path in modules.items():
        for _, found in imports(path, root):
            used[name] |= {one for one in (found, found.rpartition(".")[0]) if one in modules}
        used[name] -= {name, name.rpartition(".")[0]}  # a package is imported with what is in it
    try:
        TopologicalSorter(used).prepare()
    except CycleError as error:
        return error.args[1]
    return []


def unlisted(root: Path) -> dict[str, set[str]]:
    """What stands in one only of a table and its folder."""

    def held(folder: str) -> set[str]:
        inside = (
            one for one in (root / folder).iterdir() if one.name[0] not in "._" or one.is_file()
        )
        return {one.stem for one in inside if one.is_dir() or one.suffix == ".py"} - {"__init__"}

    return {"cudatut": held("cudatut") ^ set(MODULES), "examples": held("examples") ^ set(EXAMPLES)}


def no_door(path: Path) -> list[str]:
    """What a module of the door says besides what it publishes."""
    body = ast.parse(path.read_text(encoding="utf-8")).body
    lines = [ast.unparse(node) for node in body[1:] if not isinstance(node, ast.ImportFrom)]
    return [line for line in lines if not line.startswith("__all__ = ")]


# --- the walls ----------------------------------------------------------------------------------------------------------


def test_no_room_uses_what_it_may_not():
    wrong, let_through = through_walls(ROOT)
    assert wrong == []
    assert let_through == set(NAMED), "what nobody uses by its name is to be struck off the list"


def test_a_room_uses_rooms_above_it_alone():
    rooms = [API, *PACKAGE]
    for room, (_, may) in PACKAGE.items():
        assert set(may.split()) <= set(rooms[: rooms.index(room)]), room


def test_no_two_modules_import_each_other():
    assert circle(ROOT) == []


def test_the_tables_name_each_room_and_each_module_once():
    assert unlisted(ROOT) == {"cudatut": set(), "examples": set()}
    assert len(MODULES) == sum(len(holds.split()) for holds, _ in PACKAGE.values())


def test_the_door_is_nothing_else_and_is_used():
    doors = {name_of(path, ROOT): path for path in sources(ROOT, "examples/published")}
    assert {name: said for name, path in doors.items() if (said := no_door(path))} == {}
    parts = [path for path in sources(ROOT, "examples") if path not in doors.values()]
    through = {found.rpartition(".")[0] for path in parts for _, found in imports(path, ROOT)}
    assert set(doors) <= through


@pytest.fixture
def few(tmp_path):
    """Some files of the book, among which all walls stand."""
    for name in (
        "cudatut/errors.py",
        "cudatut/catalog.py",
        "cudatut/gpu/check.py",
        "cudatut/record/outputs.py",
        "cudatut/site/missing.py",
        "docs/figures/gemm/tma.py",
        "examples/basics/indexing/indexing.cu",
        "examples/basics/timing/claims.py",
        "examples/gemm/kernels/sgemm.py",
        "examples/gemm/kernels/skinny.cu",
        "examples/hopper/boxes.cuh",
        "examples/measure/loops.py",
        "examples/published/gemm.py",
        "examples/rivals/sdpa.py",
        "examples/tensor/gemm/tf32_product.py",
        "examples/tensor/gemm/gemm.py",
        "tests/support/needed.py",
    ):
        (tmp_path / name).parent.mkdir(parents=True, exist_ok=True)
        shutil.copy(ROOT / name, tmp_path / name)
    assert (
        through_walls(tmp_path)[0]
        == circle(tmp_path)
        == clashes(tmp_path)
        == crowded(tmp_path)
        == []
    )
    assert not bare(tmp_path) and not any(finding(how, tmp_path) for how in GONE.values())
    return tmp_path


def plant(root: Path, file: str, text: str) -> None:
    (root / file).parent.mkdir(parents=True, exist_ok=True)
    with (root / file).open("a", encoding="utf-8") as opened:
        opened.write(f"\n{text}\n")


PART = "examples/tensor/gemm/tf32_product.py"
IN_CUDA = "examples/basics/indexing/indexing.cu"


@pytest.mark.parametrize(
    ("file", "text", "said"),
    [
        # A part and another part.
        (PART, "from cudatut.book.gemm.kernels.sgemm import sgemm", "imports cudatut.book.gemm.kernels.sgemm.sgemm of examples/gemm"),
        (PART, "from cudatut.book.gemm.kernels import sgemm", "imports cudatut.book.gemm.kernels.sgemm of examples/gemm"),
        (PART, "from cudatut.book import gemm", "imports cudatut.book.gemm of examples/gemm"),
        (PART, "import cudatut.book.llm.kernels.rows as rows", "imports cudatut.book.llm.kernels.rows of examples/llm"),
        (PART, "from ...gemm.kernels import sgemm", "imports cudatut.book.gemm.kernels.sgemm of examples/gemm"),
        (PART, "def late():\n    from cudatut.book.llm.kernels import rows", "imports cudatut.book.llm.kernels.rows of examples/llm"),
        (PART, "importlib.import_module('cudatut.book.llm.chat')", "imports cudatut.book.llm.chat of examples/llm"),
        (PART, "import_module(f'cudatut.book.llm.{name}')", "imports cudatut.book.llm.{name} of examples/llm"),
        (PART, "importlib.import_module(name)", "imports cudatut.book.{name} of examples/{name}"),
        (PART, 'ct.Kernel("gemm/kernels/skinny.cu", "skinny")', "launches gemm/kernels/skinny.cu of examples/gemm"),
        (PART, 'CODE = """\n#include "gemm/kernels/transpose.cu"\n"""', "includes gemm/kernels/transpose.cu of examples/gemm"),
        (IN_CUDA, '#include "hopper/boxes.cuh"\n#include "llm/kernels/rows.cuh"', "includes llm/kernels/rows.cuh of examples/llm"),
        (IN_CUDA, '  #  include "../../gemm/kernels/skinny.cu"', "includes gemm/kernels/skinny.cu of examples/gemm"),
        # The door, and the shared rooms.
        ("examples/basics/timing/claims.py", "from cudatut.book.published import gemm", "imports cudatut.book.published.gemm of examples/published"),
        ("examples/published/gemm.py", "from cudatut.book.reduction.ladder import ladder", "imports cudatut.book.reduction.ladder.ladder of examples/reduction"),
        ("examples/measure/loops.py", "from cudatut.book.gemm.kernels import sgemm", "imports cudatut.book.gemm.kernels.sgemm of examples/gemm"),
        ("examples/rivals/sdpa.py", "from cudatut.book.published import gemm", "imports cudatut.book.published.gemm of examples/published"),
        ("examples/hopper/boxes.cuh", '#include "measure/stamps.cuh"', "includes measure/stamps.cuh of examples/measure"),
        # An example and the package.
        (PART, "from cudatut import catalog", "imports cudatut.catalog of book"),
        (PART, "from cudatut.site.locale import text", "imports cudatut.site.locale.text of site"),
        # Rooms of the package.
        ("cudatut/errors.py", "import cudatut.results", "imports cudatut.results of results"),
        ("cudatut/catalog.py", "def late():\n    from cudatut.gpu import device", "imports cudatut.gpu.device of gpu"),
        ("cudatut/gpu/check.py", "from ..record import write", "imports cudatut.record.write of record"),
        ("cudatut/gpu/check.py", "import cudatut as ct", "imports cudatut of api"),
        ("cudatut/gpu/check.py", "from cudatut.book.gemm.ladder import ladder", "imports cudatut.book.gemm.ladder.ladder of examples/gemm"),
        ("cudatut/record/outputs.py", "from cudatut.site.locale import text", "imports cudatut.site.locale.text of site"),
        ("cudatut/site/missing.py", "from cudatut.record.write import write", "imports cudatut.record.write.write of record"),
        ("cudatut/site/missing.py", "from cudatut.gpu import device", "imports cudatut.gpu.device of gpu"),
    ],
)  # fmt: skip
def test_a_use_through_a_wall_is_noticed(few, file, text, said):
    plant(few, file, text)
    (found,) = through_walls(few)[0]
    assert re.match(rf"{re.escape(file)}:\d+ {re.escape(said)}; \S+ may use ", found), found


def test_a_circle_is_noticed(few):
    plant(few, "cudatut/errors.py", "def late():\n    from cudatut import catalog")
    assert set(circle(few)) == {"cudatut.errors", "cudatut.catalog"}


def test_a_room_without_a_row_is_noticed(few):
    before = unlisted(few)
    plant(few, "cudatut/helpers.py", "")
    plant(few, "examples/utils/chapter.py", "")
    (few / "cudatut/errors.py").unlink()
    after = unlisted(few)
    assert after["cudatut"] ^ before["cudatut"] == {"helpers", "errors"}
    assert after["examples"] ^ before["examples"] == {"utils"}


def test_a_door_that_does_something_is_noticed(few):
    door = few / "examples/published/gemm.py"
    assert no_door(door) == []
    plant(few, "examples/published/gemm.py", "SIZES = ladder.sizes()")
    assert no_door(door) == ["SIZES = ladder.sizes()"]


# --- figures ------------------------------------------------------------------------------------------------------------


def foreign(path: Path, root: Path) -> list[str]:
    """What a figure imports, or runs, that it must not, each with its line."""
    own = ".".join(name_of(path, root).split(".")[:2])
    found = [(line, name) for line, name in imports(path, root) if not _drawn_with(name, own)]
    names = nodes(path, ast.Name)
    found += [(node.lineno, node.id) for node in names if node.id in OTHER_WAYS]
    return [f"{place(path, root)}:{line} {name}" for line, name in sorted(found)]


def _drawn_with(name: str, own: str) -> bool:
    top = name.partition(".")[0]
    if top in sys.stdlib_module_names:
        return top not in OTHER_WAYS
    return any(f"{name}.".startswith(f"{one}.") for one in (own, *FIGURES))


def test_a_figure_imports_helpers_and_references_alone():
    figures = sources(ROOT, "docs/figures")
    assert figures
    assert [line for path in figures for line in foreign(path, ROOT)] == []


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("import math\nimport cudatut as ct", ["cudatut"]),
        ("from cudatut.book.gemm.ladder import ladder", ["cudatut.book.gemm.ladder.ladder"]),
        ("from cudatut.gpu.ladder import Ladder", ["cudatut.gpu.ladder.Ladder"]),
        ("from cudatut.site import locale, references", ["cudatut.site.locale"]),
        ("from cudatut.site import *", ["cudatut.site.*"]),
        ("def f():\n    from cudatut import catalog", ["cudatut.catalog"]),
        ("from figures.reduction.naive import tree", ["figures.reduction.naive.tree"]),
        ("from ..reduction import naive", ["figures.reduction.naive"]),
        ("import numpy", ["numpy"]),
        ("import importlib\nexec('1')", ["importlib", "exec"]),
        ("from figures.gemm.tma import box\nfrom cudatut.site.drawing import Grid\nimport json", []),
        ("from cudatut.site import references\nimport cudatut.site.svg", []),
    ],
)  # fmt: skip
def test_what_a_figure_may_import(few, text, said):
    plant(few, "docs/figures/gemm/other.py", text)
    found = foreign(few / "docs/figures/gemm/other.py", few)
    assert [line.rpartition(" ")[2] for line in found] == said


# --- how modules are found ----------------------------------------------------------------------------------------------


def clashes(root: Path) -> list[str]:
    """Full names that two modules have, or a module and a folder, on a system that does not tell letters' cases apart; and names
    of what tests share, which pytest puts on the path, of which there is one more.
    """
    book = [path for path in sources(root, "examples", "cudatut") if path.stem != "__init__"]
    folders = {parent for path in book for parent in path.parents}
    names = [name_of(path, root) for path in book]
    names += [name_of(folder, root) for folder in folders if folder not in (root, *root.parents)]
    names += [path.stem for path in helpers(root)]
    counted = Counter(map(str.casefold, [*names, *sys.stdlib_module_names]))
    return sorted(name for name in names if counted[name.casefold()] > 1)


def helpers(root: Path) -> list[Path]:
    """What the tests of several files share."""
    tests = sources(root, "tests")
    return [path for path in tests if not re.match(r"test_|conftest\.|__init__\.", path.name)]


def bare(root: Path) -> set[str]:
    """Files that import a module of the examples by its bare name."""
    modules = {path.stem for path in sources(root, "examples")} - sys.stdlib_module_names
    of_tests = modules - {path.stem for path in helpers(root)}
    return {
        place(path, root)
        for folder, known in (("cudatut", modules), ("examples", modules), ("docs", modules), ("tests", of_tests))
        for path in sources(root, folder)
        if any(name.partition(".")[0] in known for _, name in imports(path, root))
    }  # fmt: skip


def by_path(path: Path, root: Path) -> bool:
    """Whether a file says where modules are to be looked for, or has a program that does."""
    return re.search(r"sys\.path\b", path.read_text(encoding="utf-8")) is not None


def by_part(path: Path, root: Path) -> bool:
    """Whether a file has a module by `ct.shared`; what quotes an old text does not."""
    if "shared" not in path.read_text(encoding="utf-8"):
        return False
    names = {ast.unparse(node) for node in nodes(path, ast.Attribute) if node.attr == "shared"}
    names |= {name for _, name in imports(path, root)}
    former = {"ct.shared", "ladder.shared", "cudatut.shared", "cudatut.gpu.ladder.shared"}
    return not names.isdisjoint(former)


GONE = {"sys.path": by_path, "ct.shared": by_part}


def finding(how: Callable[[Path, Path], bool], root: Path) -> set[str]:
    """Files of examples and tests that find modules so; but for this one, which has to say it."""
    found = (
        path for path in sources(root, "examples", "tests") if path.name != Path(__file__).name
    )
    return {place(path, root) for path in found if how(path, root)}


def crowded(root: Path) -> list[str]:
    """Folders of the examples with more files than a reader takes in."""
    counted = Counter(path.parent for path in sources(root, "examples", kinds=()))
    return [place(folder, root) for folder, count in counted.items() if count > MOST]


def test_no_two_modules_have_one_name():
    assert clashes(ROOT) == []


def test_no_module_is_found_by_its_bare_name():
    assert bare(ROOT) == set()


@pytest.mark.parametrize("what", GONE)
def test_how_modules_were_found_before_is_gone(what):
    assert finding(GONE[what], ROOT) == set()


def test_no_folder_of_the_examples_is_crowded():
    assert crowded(ROOT) == []


@pytest.mark.parametrize(
    ("file", "said"),
    [
        ("examples/tensor/gemm/gemm/shapes.py", ["cudatut.book.tensor.gemm.gemm"] * 2),
        ("examples/tensor/gemm/Gemm.py", ["cudatut.book.tensor.gemm.Gemm", "cudatut.book.tensor.gemm.gemm"]),
        ("cudatut/gpu.py", ["cudatut.gpu"] * 2),
        ("tests/tensor/needed.py", ["needed"] * 2),
        ("tests/tensor/profile.py", ["profile"]),
    ],
)  # fmt: skip
def test_two_modules_of_one_name_are_noticed(few, file, said):
    plant(few, file, "")
    assert clashes(few) == said


@pytest.mark.parametrize(
    "folder", ["cudatut/gpu", "examples/tensor/gemm", "docs/figures/gemm", "tests/gpu"]
)
@pytest.mark.parametrize("text", ["import sgemm", "def late():\n    from sgemm import Config"])
def test_a_bare_name_is_noticed(few, folder, text):
    plant(few, f"{folder}/test_planted.py", f"import numbers, needed\n{text}")
    assert bare(few) == {f"{folder}/test_planted.py"}


@pytest.mark.parametrize("folder", ["examples/tensor/gemm", "tests/gpu"])
@pytest.mark.parametrize(
    ("what", "text"),
    [
        ("sys.path", "import sys\nsys.path.insert(0, str(HERE))"),
        ("ct.shared", 'bf16 = ct.shared("llm/bf16")'),
        ("ct.shared", "from cudatut.gpu.ladder import shared"),
    ],
)
def test_an_old_way_to_find_modules_is_noticed(few, folder, what, text):
    plant(few, f"{folder}/test_planted.py", text)
    assert finding(GONE[what], few) == {f"{folder}/test_planted.py"}


def test_a_crowded_folder_is_noticed(few):
    for number in range(MOST):
        plant(few, f"examples/measure/more_{number}.cu", "")
    assert crowded(few) == ["examples/measure"]
