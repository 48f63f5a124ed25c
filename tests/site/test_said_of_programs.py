"""What a page says that a program prints, or an engine does, beside the recording or the code."""

import ast
import json
import re
from pathlib import Path

import pytest

from cudatut import recording
from cudatut.paths import examples_dir

DOCS = Path(__file__).resolve().parents[2] / "docs"
LANGS = ("en", "zh")


def page(lang, name):
    return (DOCS / lang / f"{name}.md").read_text(encoding="utf-8")


def printed(example, cell):
    """The lines that a recorded cell printed."""
    notebook = json.loads(recording.whole_path(example).read_text(encoding="utf-8"))
    (found,) = (c for c in notebook["cells"] if c["metadata"].get("title") == cell)
    streams = (o["text"] for o in found["outputs"] if o["output_type"] == "stream")
    return "".join("".join(text) for text in streams).splitlines()


def asked(markdown):
    """Rows of the first table under 'Predict', and how many cells each leaves empty."""
    below = markdown.partition("{ #predict }")[2]
    rows = re.search(r"^\|[-|]+\|\n((?:\|.*\n)+)", below, re.M)[1].splitlines()
    cells = [[cell.strip() for cell in row.strip("|").split("|")] for row in rows]
    return [[cell for cell in row if cell] for row in cells], {row.count("") for row in cells}


@pytest.mark.parametrize("lang", LANGS)
def test_occupancy_asks_what_its_program_prints(lang):
    rows, empty = asked(page(lang, "basics/occupancy"))
    _, *lines = printed("basics/occupancy", "program")
    shown = [line.split() for line in lines]
    wanted = [[re.sub(r"[, B]", "", cell) for cell in row] for row in rows]
    assert wanted == [line[:2] for line in shown]
    assert empty == {1}  # the program prints one number, twice: predicted, and by the driver


def test_asked_reads_a_table():
    table = "## P { #predict }\n\n| a | b | c |\n|---|---|---|\n| 1 | | |\n| 2 B | x | |\n\n"
    assert asked(table) == ([["1"], ["2 B", "x"]], {2, 1})


@pytest.mark.parametrize("lang", LANGS)
@pytest.mark.parametrize(
    "example, of_k",
    [
        ("basics/shared_memory", lambda k: [2 * k, k / 16]),
        ("basics/thread_tile", lambda k: [k / 32, 9 * k / 8, k / 32]),
    ],
)
def test_a_page_asks_for_the_k_of_its_program(lang, example, of_k):
    predict = page(lang, example).partition("{ #predict }")[2].partition("\n## ")[0]
    (k,) = set(re.findall(r"\bK = (\d+)", predict))
    _, head, *lines = printed(example, "program")
    assert f"K = {k}" in head
    assert [int(line.split()[-1]) for line in lines] == of_k(int(k))


def counted(source):
    """How often a backend's step sends arrays, starts a list of launches, fetches results."""
    (backend,) = (node for node in ast.parse(source).body if isinstance(node, ast.ClassDef))
    steps = [f for f in backend.body if getattr(f, "name", "") in ("run", "sample")]
    called = [
        ast.unparse(node.func)
        for step in steps
        for node in ast.walk(step)
        if isinstance(node, ast.Call)
    ]
    return {
        name: sum(bool(re.search(name, call)) for call in called)
        for name in (r"\.send$", r"\._launch$", "memcpy_dtoh")
    }


STEP = {r"\.send$": 2, r"\._launch$": 2, "memcpy_dtoh": 1}


@pytest.mark.parametrize(
    "lang, says",
    [
        ("en", ("two graphs", "second copy", "a third brings the tokens back")),
        (
            "zh",
            ("两个 CUDA graph", "采样参数接着再复制一次", "词元也用一次复制传回主机，前后一共三次"),
        ),
    ],
)
def test_a_step_is_what_the_engines_page_says(lang, says):
    source = (examples_dir() / "llm/backends/gpu_backend.py").read_text(encoding="utf-8")
    assert counted(source) == STEP, "a step has changed: docs/*/llm/serving.md tells its copies"
    assert all(part in page(lang, "llm/serving") for part in says)


def test_a_step_of_one_graph_would_be_seen():
    source = """class Backend:
    def run(self, batch):
        self.step.send(batch)
        self._launch(1, lambda: None)
    def sample(self, logits, draws):
        memcpy_dtoh_async(1, 2)
"""
    assert counted(source) == {r"\.send$": 1, r"\._launch$": 1, "memcpy_dtoh": 1} != STEP
