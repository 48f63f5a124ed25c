"""On what ground each file of a recording may have changed between two commits."""

import pytest

from cudatut.errors import CudatutError
from cudatut.history import history
from cudatut.restamp.grounds import judge
from cudatut.restamp.trees import tree

SCRIPT = """import cudatut as ct
import helper
from steps import step
from ..b import far

kernel = ct.Kernel("a/k.cu", "k")
print(helper.LENGTH, step(1), far.AWAY)
"""
FILES = {
    "a/main.py": SCRIPT.replace("from ..b import far", 'far = ct.shared("b/far")'),
    "a/helper.py": "LENGTH = 3\n",
    "a/steps.py": "import helper\n\n\ndef step(n):\n    return n + helper.LENGTH\n",
    "b/far.py": "AWAY = 5\n",
    "a/k.cu": '#include "parts.cuh"\nextern "C" __global__ void k(float *x) { x[0] = part(x[1]); }\n',
    "a/parts.cuh": '#include "b/common.cuh"\n__device__ float part(float x) { return x * TWO; }\n',
    "b/common.cuh": "#define TWO 2\n",
    "a/data.txt": "words\n",
    "c/other.py": "",
}
SOURCES = [name for name in FILES if name != "c/other.py"]


class Judged:
    """Two commits of a few files: what a recording of the first is told at the second."""

    def __init__(self, repository):
        self.repository, self.sources = repository, SOURCES
        self.first = repository.commit(**FILES)

    def __call__(self, moves=(), text_counts=(), shows_lines=False, **edits):
        """moves: (was, now). edits: of files, as they are called then, by (was, now) words, or a whole text, or None."""
        for was, now in moves:
            path = self.repository.root / "examples" / now
            path.parent.mkdir(parents=True, exist_ok=True)
            self.repository.git("mv", f"examples/{was}", f"examples/{now}")
        files = {}
        for name, edit in edits.items():
            path = self.repository.root / "examples" / name
            if isinstance(edit, tuple):
                text = path.read_text()
                assert edit[0] in text
                edit = text.replace(*edit)
            files[name] = edit
        second = self.repository.commit(**files)
        then, now = tree(history(), self.first), tree(history(), second)
        meanings = {name: then.meaning(name) for name in self.sources if name not in text_counts}
        metadata = {
            "name": "a/main",
            "sources": {name: then.sha256(name) for name in self.sources},
            "meanings": {name: sha for name, sha in meanings.items() if sha},
        }
        return judge(metadata, shows_lines, then, now)


@pytest.fixture
def judged(repository):
    return Judged(repository)


def test_nothing_changed(judged):
    found = judged(**{"c/other.py": "x = 1\n"})
    assert (found.now, found.grounds, found.refused) == ({}, {}, [])


CELLS = """# %% first
import cudatut as ct
from ..b import far

print(far.AWAY)

# %% second
import helper

helper.LENGTH
"""


@pytest.mark.parametrize(
    ("was", "now"),
    [
        ("print(far.AWAY)", "print(far.AWAY);"),
        ("helper.LENGTH", "helper.LENGTH;"),
        ("from ..b import far\n", "import helper\n"),
        ("from ..b import far\n\nprint(far.AWAY)\n\n# %% second\n", "\nprint(far.AWAY)\n\n# %% second\nfrom ..b import far\n"),
    ],
)  # fmt: skip
def test_cells_that_import_from_the_book(judged, was, now):
    """Imports are compared in any order, and nothing else: what a cell shows, and which cell imports, counts."""
    judged.first = judged.repository.commit(**{"a/main.py": CELLS})
    found = judged(**{"a/main.py": (was, now)})
    assert found.refused == ["a/main.py means something else"]


def test_imports_of_two_cells_are_not_exchanged(judged):
    """Not even where nothing but the mark of a cell stands between them."""
    text = "# %% first\nfrom ..b import far\n# %% second\nimport helper\n\nprint(far, helper)\n"
    other = "# %% first\nimport helper\n# %% second\nfrom ..b import far\n\nprint(far, helper)\n"
    judged.first = judged.repository.commit(**{"a/main.py": text})
    assert judged(**{"a/main.py": other}).refused == ["a/main.py means something else"]


def accepted(found, **grounds):
    assert found.refused == []
    assert found.grounds == grounds


def test_words_and_blanks(judged):
    found = judged(
        **{
            "a/helper.py": "# Three.\nLENGTH=3\n",
            "a/k.cu": ('#include "parts.cuh"\n', '#include "parts.cuh"\n\n/* one */\n'),
        }
    )
    accepted(found, **{"a/helper.py": "meaning", "a/k.cu": "meaning"})


def test_a_text_that_counts(judged):
    found = judged(text_counts=["a/helper.py"], **{"a/helper.py": "# Three.\nLENGTH=3\n"})
    assert found.refused == ["a/helper.py changed, and its text counts: somebody reads it"]
    assert judged(**{"a/data.txt": "other\n"}).refused[-1].startswith("a/data.txt changed")


def test_lines_that_are_shown(judged):
    found = judged(shows_lines=True, **{"a/k.cu": ("\n", "\n\n")})
    assert found.refused == ["a/k.cu changed, and outputs show the numbers of its lines"]
    found = judged(moves=[("a/helper.py", "a/sizes.py")], shows_lines=True)
    assert len(found.refused) == 2


def test_other_python(judged):
    found = judged(**{"a/helper.py": ("3", "4")})
    assert (found.refused, found.grounds) == (["a/helper.py means something else"], {})


def test_other_cuda_has_to_be_compiled(judged):
    found = judged(**{"a/parts.cuh": ("x * TWO", "TWO * x")})
    accepted(found, **{"a/parts.cuh": "code"})
    assert found.code == ["a/parts.cuh"]


def test_a_header_that_became_part_of_another(judged):
    found = judged(
        **{
            "a/parts.cuh": ('#include "b/common.cuh"\n', "#define TWO 2\n"),
            "b/common.cuh": None,
        }
    )
    accepted(found, **{"a/parts.cuh": "code", "b/common.cuh": "code"})
    assert found.now == {"a/parts.cuh": "a/parts.cuh", "b/common.cuh": None}


@pytest.mark.parametrize("name", ["a/helper.py", "a/data.txt", "a/k.cu"])
def test_what_is_gone(judged, name):
    assert judged(**{name: None}).refused == [f"{name} is gone"]


def test_a_module_that_moved(judged):
    found = judged(
        moves=[("a/steps.py", "b/steps.py")],
        **{
            "a/main.py": ("from steps import", "from b.steps import"),
            "b/steps.py": ("import helper", "import a.helper as helper"),
        },
    )
    accepted(found, **{"a/main.py": "moved", "a/steps.py": "moved"})
    assert found.now["a/steps.py"] == "b/steps.py"


def test_a_module_that_was_renamed(judged):
    """With the name by which others call it."""
    found = judged(
        moves=[("a/helper.py", "a/sizes.py")],
        **{
            "a/main.py": ("helper", "sizes"),
            "a/steps.py": ("helper", "sizes"),
        },
    )
    accepted(found, **{"a/helper.py": "moved", "a/main.py": "moved", "a/steps.py": "moved"})


def test_a_module_that_was_renamed_and_whose_comment_changed(judged):
    found = judged(
        moves=[("a/helper.py", "a/sizes.py")],
        **{
            "a/sizes.py": "# Lengths.\nLENGTH = 3\n",
            "a/main.py": ("import helper", "import sizes as helper"),
            "a/steps.py": ("import helper", "import sizes as helper"),
        },
    )
    accepted(found, **{"a/helper.py": "moved", "a/main.py": "moved", "a/steps.py": "moved"})


def test_a_kernel_that_moved_into_a_folder_of_a_folder_and_changed(judged):
    """Its name tells that it is the same."""
    found = judged(
        moves=[("a/k.cu", "b/deep/k.cu")], **{"b/deep/k.cu": ("x[0]", "x[2]"), "a/main.py": ("a/k", "b/deep/k")}
    )  # fmt: skip
    assert found.now["a/k.cu"] == "b/deep/k.cu"


def test_a_shared_module_of_another_part(judged):
    found = judged(
        moves=[("b/far.py", "c/near.py")],
        **{"a/main.py": ('far = ct.shared("b/far")', "from c import near as far")},
    )
    accepted(found, **{"a/main.py": "moved", "b/far.py": "moved"})


def test_a_kernel_that_was_renamed(judged):
    found = judged(moves=[("a/k.cu", "a/kernel.cu")], **{"a/main.py": ("a/k.cu", "a/kernel.cu")})
    accepted(found, **{"a/main.py": "moved", "a/k.cu": "moved"})


def test_a_header_that_moved(judged):
    found = judged(
        moves=[("b/common.cuh", "c/common.cuh")],
        **{"a/parts.cuh": ("b/common.cuh", "c/common.cuh")},
    )
    accepted(found, **{"a/parts.cuh": "moved", "b/common.cuh": "moved"})


@pytest.mark.parametrize(
    ("was", "now", "astray"),
    [
        ("a/helper.py", "a/sizes.py", "a/steps.py names a file that is elsewhere now"),
        ("b/far.py", "c/far.py", "a/main.py names a file that is elsewhere now"),
        ("a/k.cu", "a/kernel.cu", "a/main.py names a file that is elsewhere now"),
    ],
)
def test_what_moved_under_somebody_who_still_names_the_old_place(judged, was, now, astray):
    assert astray in judged(moves=[(was, now)]).refused


def test_of_two_that_moved_one_is_named_at_the_old_place(judged):
    found = judged(moves=[("b/far.py", "c/far.py"), ("a/data.txt", "b/data.txt")])
    assert "a/main.py names a file that is elsewhere now" in found.refused


def test_a_header_that_moved_under_one_that_still_includes_it(judged):
    """Then the compiler tells whether it finds another."""
    accepted(judged(moves=[("b/common.cuh", "c/common.cuh")]), **{"b/common.cuh": "code"})


def test_a_header_that_means_others_where_it_lies_now(judged):
    """The text is the same, and includes the file of another folder."""
    found = judged(
        moves=[("a/k.cu", "b/k.cu")],
        **{
            "a/main.py": ("a/k.cu", "b/k.cu"),
            "b/parts.cuh": "__device__ float part(float x) { return x; }\n",
        },
    )
    accepted(found, **{"a/main.py": "moved", "a/k.cu": "code"})


def test_a_module_that_means_others_where_it_lies_now(judged):
    found = judged(
        moves=[("a/steps.py", "b/steps.py")],
        **{
            "a/main.py": ("from steps import", "from b.steps import"),
            "b/helper.py": "LENGTH = 4\n",
        },
    )
    assert found.refused == ["a/steps.py means something else"]


def test_data_that_moved_and_that_nobody_names_by_its_path(judged):
    """Whoever opens it does not find it."""
    found = judged(moves=[("a/data.txt", "b/data.txt")])
    assert found.refused == ["a/data.txt moved, and no source names it"]


@pytest.mark.parametrize(
    ("name", "text", "reason"),
    [
        ("a/helper.py", "LENGTH = len(__file__)\n", "moved, and looks at its own place"),
        ("a/k.cu", "// @rung 3 kernel=k\n", "moved, and is called otherwise now"),
        ("a/parts.cuh", "// of __FILE__\n", "moved, and looks at its own place"),
    ],
)
def test_what_knows_its_place_stays_there(repository, name, text, reason):
    judged = Judged(repository)
    judged.first = repository.commit(**{name: text})
    assert f"{name} {reason}" in judged(moves=[(name, f"c/{name[2:]}")]).refused


@pytest.mark.parametrize(
    ("target", "accepts"), [("c/k.cu", True), ("c/kernel.cu", False), ("a/ladder/k.cu", True)]
)
def test_a_program_that_says_where_its_lines_are(judged, target, accepts):
    """nvcc calls what it is given by its name in its folder, so that is what `__FILE__` is."""
    judged.first = judged.repository.commit(**{"a/k.cu": "// __FILE__\n"})
    found = judged(moves=[("a/k.cu", target)], **{"a/main.py": ("a/k.cu", target)})
    assert found.refused == ([] if accepts else ["a/k.cu moved, and looks at its own place"])


# --- what is called by a name that does not tell its folder -------------------------------------------


@pytest.mark.parametrize("target", ["a/main/chapter.py", "a/mai/n.py"])
def test_the_script_of_an_example_is_called_by_the_examples_name(judged, target):
    imports = {
        "import helper": "from cudatut.book.a import helper",
        "from steps": "from cudatut.book.a.steps",
    }
    text = FILES["a/main.py"]
    for was, now in imports.items():
        text = text.replace(was, now)
    listed = {"moved.yml": f"a/main.py: {target}\n"}
    found = judged(moves=[("a/main.py", target)], **{target: text} | listed)
    if target == "a/main/chapter.py":
        accepted(found, **{"a/main.py": "moved"})
        assert found.now == {"a/main.py": target}
    else:  # the example would have another name
        assert found.refused == ["a/main.py moved, and no source names it"]


def test_a_script_in_a_folder_that_does_not_find_its_modules(judged):
    found = judged(moves=[("a/main.py", "a/main/chapter.py")])
    assert found.refused == ["a/main.py means something else"]


def test_an_example_that_another_calls_by_its_name(judged):
    script = 'print(ct.profile("a/second", "k"))\n'
    judged.first = judged.repository.commit(**{"a/main.py": script, "a/second.py": "x = 1\n"})
    judged.sources = [*SOURCES, "a/second.py"]
    found = judged(moves=[("a/second.py", "a/second/chapter.py")])
    accepted(found, **{"a/second.py": "moved"})


@pytest.mark.parametrize(
    ("name", "target", "accepts"),
    [
        ("a/k.cu", "a/ladder/k.cu", True),
        ("a/k.cu", "a/ladder/k2.cu", False),
        ("a/k.cu", "a/main/k.cu", False),
        ("a/k.cu", "c/ladder/k.cu", False),
        ("a/ladder.py", "a/ladder/ladder.py", True),
        ("a/ladder.py", "c/ladder.py", False),
        ("a/autotuning_space.py", "a/ladder/autotuning_space.py", True),
        ("a/autotuning_space.py", "a/main/autotuning_space.py", False),
    ],
)
def test_a_rung_and_its_ladder_are_found_in_the_ladders_folder(judged, name, target, accepts):
    """By the package, whoever names them or does not."""
    text = "// @rung 3 kernel=k\n" if name.endswith(".cu") else "LADDER = 1\n"
    judged.first = judged.repository.commit(**{name: text, "a/main.py": "print(1)\n"})
    judged.sources = [*SOURCES, name] if name not in SOURCES else SOURCES
    found = judged(moves=[(name, target)])
    if accepts:
        accepted(found, **{name: "moved"})
    else:
        assert found.refused == [f"{name} moved, and is called otherwise now"]


# --- moved.yml ----------------------------------------------------------------------------------------

LENGTHS = {"c/sizes.py": "# Three.\nLENGTH = 3\n", "c/alike.py": "# 3.\nLENGTH = 3\n"}


def of_the_helper(judged, listed, **files):
    """The helper is gone, two files that mean the same are new, and its users name one of them."""
    named = dict.fromkeys(
        ("a/main.py", "a/steps.py"), ("import helper", "import c.sizes as helper")
    )
    return judged(**{"a/helper.py": None, **LENGTHS, **named, **files} | listed)


def test_of_two_that_can_be_it_the_list_says_which(judged):
    found = of_the_helper(judged, {})
    assert "a/helper.py is gone" in found.refused


def test_what_the_list_says(judged):
    found = of_the_helper(judged, {"moved.yml": "a/helper.py: c/sizes.py\n"})
    accepted(found, **{"a/helper.py": "moved", "a/main.py": "moved", "a/steps.py": "moved"})
    assert found.now["a/helper.py"] == "c/sizes.py"


def test_the_list_is_not_believed_where_it_means_something_else(judged):
    found = of_the_helper(
        judged, {"moved.yml": "a/helper.py: c/sizes.py\n"}, **{"c/sizes.py": "LENGTH = 4\n"}
    )
    assert "a/helper.py means something else" in found.refused


def test_a_list_that_names_a_file_which_is_not_there(judged):
    found = of_the_helper(judged, {"moved.yml": "a/helper.py: c/gone.py\n"})
    assert "a/helper.py is gone" in found.refused


@pytest.mark.parametrize("text", ["", "- a\n", "a: {\n"])
def test_a_list_that_is_none(judged, text):
    with pytest.raises(CudatutError, match="examples/moved.yml"):
        of_the_helper(judged, {"moved.yml": text})


# --- lines that are shown -----------------------------------------------------------------------------

TWO_PARTS = (
    FILES["a/main.py"]
    .replace("import helper", "import a.helper as helper")
    .replace("from steps", "from a.steps")
)


@pytest.mark.parametrize(
    ("text", "stay"),
    [
        (TWO_PARTS, True),
        ("\n" + TWO_PARTS, False),
        (TWO_PARTS.replace("\n\n", "\n") + "\n", False),  # as many lines, and others
        (TWO_PARTS.replace("\n\n", "\n# Why.\n"), True),
    ],
)
def test_the_lines_of_a_script_that_moved(judged, text, stay):
    target = "a/main/chapter.py"
    listed = {"moved.yml": f"a/main.py: {target}\n"}
    found = judged(moves=[("a/main.py", target)], shows_lines=True, **{target: text} | listed)
    if stay:
        accepted(found, **{"a/main.py": "moved"})
    else:
        reason = "a/main.py changed, and outputs show the numbers of its lines"
        assert found.refused == [reason]


@pytest.mark.parametrize(
    ("name", "target", "stay"),
    [
        ("a/k.cu", "c/k.cu", True),
        ("a/k.cu", "c/kernel.cu", False),
        ("b/far.py", "c/far.py", True),
        ("b/far.py", "c/near.py", False),
    ],
)
def test_lines_stay_where_a_file_keeps_its_name(judged, name, target, stay):
    files = {"a/k.cu": "// of no use\n", "a/main.py": f'x = "{name}"\n'}
    judged.first = judged.repository.commit(**files)
    found = judged(moves=[(name, target)], shows_lines=True, **{"a/main.py": (name, target)})
    reason = "changed, and outputs show the numbers of its lines"
    # What names it has another text, and did not move.
    assert found.refused == [f"{one} {reason}" for one in ("a/main.py", name)[: 2 - stay]]


def test_the_lines_of_a_kernel_that_moved_and_changed(judged):
    target = "a/main/k.cu"
    edit = {
        "a/main.py": ("a/k.cu", target),
        target: ('#include "parts.cuh"', '#include "a/parts.cuh"'),
    }
    found = judged(moves=[("a/k.cu", target)], shows_lines=True, **edit)
    reason = "changed, and outputs show the numbers of its lines"
    assert found.refused == [f"{name} {reason}" for name in ("a/main.py", "a/k.cu")]


@pytest.mark.parametrize(
    ("was", "now"),
    [
        ('extern "C" __global__ void k(float *x)', 'extern "C" __global__ void k(int *x)'),
        ('extern "C" __global__ void k(float *x)', 'extern "C" __global__ void k(float *x, int n)'),
        ("#include", "// @rung 3 kernel=k block=256\n#include"),
        ("#include", "// requires: sm_90\n#include"),
        ("void k(", "void other("),
        ("#include", 'extern "C" int main() { return 1; }\n#include'),
    ],
)
def test_what_machine_code_does_not_tell(judged, was, now):
    """Python reads parameters and some comments of a kernel's file, and a host runs `main`."""
    assert judged(**{"a/k.cu": (was, now)}).refused == ["a/k.cu means something else"]


def test_a_name_of_a_parameter_is_nobodys(judged):
    found = judged(**{"a/k.cu": ("float *x) { x[0] = part(x[1])", "float *y) { y[0] = part(y[1])")})
    accepted(found, **{"a/k.cu": "code"})


def test_other_sources_than_the_commit_had(judged):
    judged.first = judged.repository.commit(**{"a/helper.py": "LENGTH = 7\n"})
    second = judged.repository.commit(**{"a/helper.py": "LENGTH = 8\n"})
    then, now = tree(history(), judged.first), tree(history(), second)
    metadata = {"name": "a/main", "sources": {"a/helper.py": "0" * 64}, "meanings": {}}
    assert judge(metadata, False, then, now).refused == [
        "a/helper.py was another file at the commit named"
    ]
