"""The files of a chapter: short enough to read, and with a kernel that is launched in the reader's sight."""

import ast

import pytest

from cudatut import catalog, paths
from cudatut.site import contents

MOST_LINES = 400  # of an example; a longer one is split by its topics
# What waits until its part is recorded anew: moved cells need recordings of their own.
LONGER = {
    "basics/occupancy",
    # Claims are mostly words in two languages.
    "basics/shared_memory_claims",
    "basics/timing",
    "llm/continuous_batching_claims",
    "llm/flash_principle_claims",
    "llm/reading_vllm_claims",
    "reduction/histogram",
    "reduction/one_launch",
    "reduction/scoreboard",
    "start/programming_model",
    "start/your_gpu",
}
WITHOUT_LAUNCH: set[str] = set()
BESIDE = ("_claims", catalog.EXERCISES, catalog.SOLUTIONS)
EXAMPLES = {example.name: example.path for example in catalog.examples(drafts=True)}


def launches(source: str) -> bool:
    """Whether something is called with a grid: `kernel(x, out, n, grid=..., block=...)`."""
    return any(
        isinstance(node, ast.Call) and any(word.arg == "grid" for word in node.keywords)
        for node in ast.walk(ast.parse(source))
    )


def only_compiles(source: str) -> bool:
    """Whether every kernel is made with load=False, for GPUs that this book has not run on."""
    made = [
        node
        for node in ast.walk(ast.parse(source))
        if isinstance(node, ast.Call) and ast.unparse(node.func) == "ct.Kernel"
    ]
    return bool(made) and all("load=False" in ast.unparse(node) for node in made)


def of_chapter(name: str) -> list[str]:
    """The text of its example, and of those of its topics."""
    return [
        path.read_text(encoding="utf-8")
        for example, path in EXAMPLES.items()
        if path.parent == paths.examples_dir() / name and not example.endswith(BESIDE)
    ]


PARTS = contents.load(paths.examples_dir().parent / "docs/contents.yml")
CHAPTERS = [chapter.name for chapter in contents.chapters(PARTS) if of_chapter(chapter.name)]


@pytest.mark.parametrize("name", sorted(EXAMPLES))
def test_an_example_is_short(name):
    lines = len(EXAMPLES[name].read_text(encoding="utf-8").splitlines())
    if name in LONGER:
        assert lines > MOST_LINES, f"{name} is short now: take it from LONGER"
    else:
        assert lines <= MOST_LINES, (
            f"{EXAMPLES[name]} has {lines} lines, {MOST_LINES} at most: move the cells of a topic that only folds show "
            f"into <topic>.py beside it"
        )


@pytest.mark.parametrize("name", CHAPTERS)
def test_a_chapter_launches_a_kernel_in_the_open(name):
    texts = of_chapter(name)
    seen = any(map(launches, texts)) or any(map(only_compiles, texts))
    if name in WITHOUT_LAUNCH:
        assert not seen, f"{name} has a launch now: take it from WITHOUT_LAUNCH"
    else:
        assert seen, (
            f"{name}: no cell launches a kernel with grid=...; add one that shows how, and ct.check"
        )


@pytest.mark.parametrize(
    "source, found",
    [
        ("kernel(x, out, n, grid=4, block=128)", True),
        ("def run():\n    kernel(x, grid=grid, block=256, shared=99)", True),
        ("run = prepare(a, b)\nrun()", False),
        ("text = 'kernel(x, grid=4, block=128)'  # kernel(x, grid=4)", False),
        ("grid = 4\nprint(grid)", False),
    ],
)
def test_what_a_launch_is(source, found):
    assert launches(source) is found


@pytest.mark.parametrize(
    "source, found",
    [
        ("k = ct.Kernel('a.cu', 'k', arch=arch, load=False)", True),
        ("k = ct.Kernel('a.cu', 'k', load=False)\nl = ct.Kernel('a.cu', 'l')", False),
        ("x = 1", False),
    ],
)
def test_what_only_compiling_is(source, found):
    assert only_compiles(source) is found
