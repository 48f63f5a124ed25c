"""Whatever the book was called by before its files moved leads to what it named: files, names, commands, pages, headings.

Before: the last commit at which each part was one folder of files. What it had is read from git.
"""

import json
import re
import subprocess
import sys
from pathlib import Path

import needed
import pytest

import cudatut as ct
from cudatut import catalog, exercises, recording, tool
from cudatut.history import History, NoHistory, of
from cudatut.site import notebooks

ROOT = Path(__file__).resolve().parents[1]
EXAMPLES = ROOT / "examples"
BEFORE = "4c2282ff648b87e8331ad0689a46ae0e35bd9bdc"
LANGUAGES = ("", "zh/")  # folders of the site
# Files and cells that are gone, with the reason: nothing leads to them, and nothing took their place.
GONE = {
    "llm/merge.py": "a launcher that only tests used; chapters launch merge.cu themselves",
    "gemm/attempts_power#watch": "it measures as the other examples do, by measure/sustained.py",
    "basics/divergence_claims#claim-tiles": "no source claims it; `tiles-counted` has the numbers",
    "basics/timing_claims#mean-of-100": "a remark on method, no claim; `mean-of-100-table` has the numbers",
    "reduction/shuffles_claims#always-faster-claim": "it could not come out otherwise; `whole-reduction` has the numbers",
    "llm/paged_attention_claims#claim-several": "tried on a kernel in vLLM's scheme, llm/vllm_kernel_claims#claim-several",
    "gemm/vectorized#resources": "no page showed it",
    "basics/coalescing#bench-strides": "the page's program measures that; `predict-strides` times the same launches",
}

# The commands of a program, each with its options: what its parser would take.
COMMANDS = """
import argparse, json, runpy, sys

def told(parser, *_):
    (commands,) = (one for one in parser._actions if isinstance(one, argparse._SubParsersAction))
    taken = {name: list(one._option_string_actions) for name, one in commands.choices.items()}
    sys.exit(json.dumps(taken))

argparse.ArgumentParser.parse_args = told
runpy.run_module(sys.argv[1], run_name="__main__")
"""


class Before:
    """The book as it was."""

    def __init__(self, past: History, folder: Path):
        self._past = past
        self.root = folder  # where its package lies
        self.examples = [one.removeprefix("examples/") for one in past.files(BEFORE, "examples")]
        self.pages = [one for one in past.files(BEFORE, "docs") if one.endswith(".md")]
        for file, blob in past.files(BEFORE, "cudatut").items():
            (folder / file).parent.mkdir(parents=True, exist_ok=True)
            (folder / file).write_bytes(past.blob(blob))

    def text(self, file: str) -> str:
        return self._past.text(BEFORE, file).decode()

    def names(self) -> dict[str, str]:
        """The text of each example, by its name: its file's without the ending."""
        files = [one for one in self.examples if one.endswith(".py")]
        texts = {one.removesuffix(".py"): self.text(f"examples/{one}") for one in files}
        return {
            name: text
            for name, text in texts.items()
            if text.startswith("# ---\n") and not name.endswith(catalog.EXERCISES)
        }


@pytest.fixture(scope="module")
def before(tmp_path_factory):
    try:
        past = of(ROOT)
    except NoHistory as error:
        needed.missing(f"what the book was called before stands in its history, and {error}")
    found = Before(past, tmp_path_factory.mktemp("before"))
    assert len(found.examples) > 800 and len(found.pages) > 120
    return found


@pytest.fixture(scope="module")
def names(before):
    found = before.names()
    assert len(found) > 190
    return found


def place_of(file: str) -> Path:
    """Where a file of the examples lies now."""
    return EXAMPLES / catalog.moved().get(file, file)


def called(name: str) -> str:
    """What an example or a chapter is called now."""
    return catalog.renamed().get(name, name)


# --- files and names ----------------------------------------------------------------------------------------------------


def test_every_file_of_a_part_is_there_or_said_to_have_moved(before):
    """But for notebooks, which GitHub alone had an address of: they lie in recordings/, and beside exercises."""
    files = [one for one in before.examples if "/" in one and not one.endswith(".ipynb")]
    assert len(files) > 500
    assert [one for one in files if not place_of(one).is_file() and one not in GONE] == []


def test_what_moved_is_there_and_no_more_where_it_was():
    for old, new in catalog.moved().items():
        assert (EXAMPLES / new).is_file() and not (EXAMPLES / old).exists(), (old, new)


def test_every_new_name_is_an_example_and_no_old_one_is():
    for old, new in catalog.renamed().items():
        assert catalog.path_of(new).is_file(), new
        assert not catalog.path_of(old).exists(), old


def test_every_example_is_had_by_its_name_and_by_its_files(before, names):
    for name in names:
        kernel = [f"{name}.cu"] if f"{name}.cu" in before.examples else []
        for typed in (name, f"{name}.py", f"{name}.ipynb", f"./examples/{name}.py", *kernel):
            assert catalog.get(typed).name == called(name), typed


def test_every_cell_is_in_its_example_or_in_one_that_its_chapter_did_not_have(names):
    """By its title, which is its address in references."""
    since = [one for one in catalog.examples(drafts=True) if one.name not in names]
    for name, text in names.items():
        path = catalog.get(name).path
        titles = [title for title, kind, _ in catalog.cells_of(text) if kind == "code"]
        for title in set(titles) - set(catalog.cells(path)):
            # Experiments on causes were written anew: nothing moved there, whatever their cells are called.
            beside = [
                one.path
                for one in since
                if one.path.parent == path.parent and one.path.stem != "causes"
            ]
            homes = [one for one in beside if title in catalog.cells(one)]
            assert len(homes) == (f"{name}#{title}" not in GONE), f"{name}#{title}: {homes}"


def test_every_chapters_exercises_are_had_by_its_name_and_their_notebook_is_there(before):
    files = [one for one in before.examples if one.endswith(f"{catalog.EXERCISES}.py")]
    assert len(files) > 50
    for file in files:
        chapter = file.removesuffix(f"{catalog.EXERCISES}.py")
        for typed in (chapter, file, f"examples/{file}"):
            assert exercises.of_chapter(exercises.chapter_of(typed)), typed
        if file.replace(".py", ".ipynb") in before.examples:
            assert place_of(file).with_suffix(".ipynb").is_file(), file


def test_every_name_of_the_package_is_there(before):
    """Of `import cudatut as ct`. `ct.shared` found modules, which are imported now."""
    code = "import cudatut; print(*cudatut.__all__)"
    then = run(before.root, "-c", code).split()
    assert len(then) > 40
    assert set(then) - set(ct.__all__) == {"shared"}


# --- commands -----------------------------------------------------------------------------------------------------------


def run(root: Path, *arguments: str) -> str:
    """What Python says, with the package that lies in this folder."""
    env = tool.environment() | {"PYTHONPATH": str(root), "CUDATUT_EXAMPLES": str(EXAMPLES)}
    command = [sys.executable, *arguments]
    done = subprocess.run(command, capture_output=True, text=True, env=env, cwd=root)
    return done.stdout + done.stderr


@pytest.mark.parametrize("program", ["cudatut", "cudatut.site"])
def test_every_command_takes_what_it_took(before, program):
    then, now = (json.loads(run(root, "-c", COMMANDS, program)) for root in (before.root, ROOT))
    assert len(then) > 3
    for command, options in then.items():
        assert set(options) <= set(now[command]), command


def test_every_ladder_is_had_by_its_name():
    for name, part in {
        "matmul": "basics",
        "reduction": "reduction",
        "gemm": "gemm",
        "tensor": "tensor",
    }.items():
        assert ct.load_ladder(name).part == part


def test_every_target_of_make_is_there(before):
    then, now = (
        set(re.findall(r"^([\w-]+):", text, re.MULTILINE))
        for text in (before.text("Makefile"), (ROOT / "Makefile").read_text(encoding="utf-8"))
    )
    assert len(then) > 10 and then <= now


# --- the site -----------------------------------------------------------------------------------------------------------


def page_of(file: str) -> str:
    """The file of a page now: docs/en/gemm/vectorized.md."""
    docs, language, name = file.removesuffix(".md").split("/", 2)
    return f"{docs}/{language}/{called(name)}.md"


def test_every_page_is_there_with_each_of_its_headings(before):
    heading = re.compile(r"^#+ .*\{[^}]*#([\w-]+)", re.MULTILINE)
    for file in before.pages:
        then = set(heading.findall(before.text(file)))
        page = (ROOT / page_of(file)).read_text(encoding="utf-8")
        # A section that is gone leaves its id where what it told stands now.
        now = {*heading.findall(page), *re.findall(r'<span id="([\w-]+)"></span>', page)}
        assert then <= now, f"{file}: {then - now}"


def test_every_address_of_an_example_leads_to_a_page_and_its_notebook(names, built_site):
    examples = {one.name for one in catalog.examples()}
    longer_ago = [old for old, new in catalog.renamed().items() if new in examples]
    for folder in LANGUAGES:
        for name in [*names, *longer_ago]:
            assert (built_site / folder / "examples" / name / "index.html").is_file(), name
        assert (built_site / folder / "gemm/vectorised/index.html").is_file()
    for name in names:
        assert (built_site / "examples" / f"{called(name)}.ipynb").is_file(), name


def test_files_that_moved_are_at_their_old_addresses_too(built_site):
    """Those that the site offers: sources, not data."""
    offered = {
        file for one in catalog.examples() for file in notebooks.files(recording.load(one.name))
    }
    old = {file: now for file, now in catalog.moved().items() if now in offered}
    assert len(old) > 50
    for file, now in old.items():
        for folder in LANGUAGES:
            there = built_site / folder / "examples" / file
            assert there.read_bytes() == (EXAMPLES / now).read_bytes(), file
