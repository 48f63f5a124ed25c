"""What older recordings depend on, read off their sources: which of these were read as text, and what the others meant."""

import pytest

from cudatut.fingerprint.meaning import meaning_hash
from cudatut.history import history
from cudatut.restamp import older
from cudatut.restamp.trees import tree

FILES = {
    "a/k.cu": '#include "parts.cuh"\n__global__ void k() {}\n',
    "a/parts.cuh": "// one\n",
    "a/other.cu": "__global__ void other() {}\n",
    "a/module.py": "X = 1\n",
    "b/example.py": "# ---\n# ---\n# %% one\nprint(1)\n",
}


@pytest.fixture
def read(repository):
    """Call it with the code of a script: which of the files it reads as text."""

    def found(code: str) -> set[str]:
        commit = repository.commit(**FILES | {"a/main.py": code})
        names = [*FILES, "a/main.py"]
        return older.read(names, tree(history(), commit))

    return found


@pytest.mark.parametrize(
    ("code", "files"),
    [
        ('ct.Kernel("a/k.cu", "k")', set()),
        ('ct.Kernel("a/k.cu", "k").resources()', set()),
        # What the expression itself names, with what that includes; "a/k.cu" below is only compiled.
        ('(root / "a/k.cu").read_text()', {"a/k.cu", "a/parts.cuh"}),
        ('ct.Kernel("a/k.cu", "k")\nopen("a/other.cu").read()', {"a/other.cu"}),
        ('Path("a/other.cu").read_bytes()', {"a/other.cu"}),
        ('open("a/other.cu", "r")', {"a/other.cu"}),
        ('ct.catalog.get("b/example").path.read_text()', {"b/example.py"}),
        # Where it names none, all that the script names, or else every kernel.
        ('FILE = "a/other.cu"\nopen(FILE)', {"a/other.cu"}),
        ('k = ct.Kernel("a/k.cu", "k")\nk.source.replace("x", "y")', {"a/k.cu", "a/parts.cuh"}),
        ("for path in paths:\n    path.read_text()", {"a/k.cu", "a/parts.cuh", "a/other.cu"}),
        ("inspect.getsource(f)", {"a/k.cu", "a/parts.cuh", "a/other.cu"}),
        # Files elsewhere, and those that are no text.
        ('open("/proc/self/maps")', set()),
        ('open("weights.gguf", "rb")', set()),
        ('path.with_suffix(".ptx").read_text()', set()),
        ('words = "read_text"', set()),
    ],
)
def test_what_a_script_reads_as_text(read, code, files):
    assert read(code) == files


def test_what_the_sources_meant(repository):
    commit = repository.commit(**FILES | {"a/main.py": 'open("a/other.cu").read()\n'})
    then = tree(history(), commit)
    sources = {name: then.sha256(name) for name in (*FILES, "a/main.py")}
    sources["a/module.py"] = "0" * 64  # it was another one
    found = older.meanings({"sources": sources}, then, list(sources))
    # Not what is read as text, nor an example that has no header, nor a file of another text.
    assert found == {
        name: meaning_hash(name, FILES.get(name, 'open("a/other.cu").read()\n').encode())
        for name in ("a/k.cu", "a/parts.cuh", "a/main.py")
    }
    assert older.meanings({"sources": sources}, then, ["a/k.cu"]) == {"a/k.cu": found["a/k.cu"]}


def test_a_newer_recording_says_itself_of_what_the_meaning_counts(repository):
    commit = repository.commit(**FILES)
    then = tree(history(), commit)
    sources = {name: then.sha256(name) for name in FILES}
    metadata = {"sources": sources, "kernels": [], "meanings": {"a/k.cu": "as it was told then"}}
    assert older.meanings(metadata, then, list(sources)) == {"a/k.cu": then.meaning("a/k.cu")}
    assert older.meanings({"sources": sources, "kernels": []}, then, list(sources)) == {}
