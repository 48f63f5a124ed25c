"""On what ground each file of a recording may have changed between two commits."""

import pytest

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
        self.repository = repository
        self.first = repository.commit(**FILES)

    def __call__(self, moves=(), text_counts=(), shows_lines=False, **edits):
        """moves: (was, now). edits: of files, as they are called then, by (was, now) words, or a whole text, or None."""
        for was, now in moves:
            path = self.repository.root / "examples" / now
            path.parent.mkdir(exist_ok=True)
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
        meanings = {name: then.meaning(name) for name in SOURCES if name not in text_counts}
        metadata = {
            "sources": {name: then.sha256(name) for name in SOURCES},
            "meanings": {name: sha for name, sha in meanings.items() if sha},
        }
        return judge(metadata, shows_lines, then, now)


@pytest.fixture
def judged(repository):
    return Judged(repository)


def test_nothing_changed(judged):
    found = judged(**{"c/other.py": "x = 1\n"})
    assert (found.now, found.grounds, found.refused) == ({}, {}, [])


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
        ("a/k.cu", "// @rung 3 kernel=k\n", "moved, and its ladder knows it by its name"),
    ],
)
def test_what_knows_its_place_stays_there(repository, name, text, reason):
    judged = Judged(repository)
    judged.first = repository.commit(**{name: text})
    assert f"{name} {reason}" in judged(moves=[(name, f"c/{name[2:]}")]).refused


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
    metadata = {"sources": {"a/helper.py": "0" * 64}, "meanings": {}}
    assert judge(metadata, False, then, now).refused == [
        "a/helper.py was another file at the commit named"
    ]
