"""What a process ran of the book, told by a real process and its children."""

import json
import os
import subprocess
import sys
import textwrap
from pathlib import Path

import pytest

from cudatut import tool
from cudatut.fingerprint import ran


@pytest.fixture
def follow(book, tmp_path):
    """Call it with the code of a script of the examples: what its process reports, which must end well."""
    told = tmp_path / "ran"

    def followed(code: str, *flags: str, name: str = "a/main.py") -> dict:
        told.unlink(missing_ok=True)
        head = "import cudatut as ct, sys, os, subprocess\nfrom pathlib import Path\n"
        head += "from cudatut.fingerprint import ran\n"
        tail = "\nimport json\nprint(json.dumps(ran.report()))\n"
        path = book.file(name, head + textwrap.dedent(code) + tail)
        done = subprocess.run(
            [sys.executable, *flags, str(path)],
            env=tool.environment() | {ran.VARIABLE: str(told)},
            cwd=tmp_path,
            capture_output=True,
            text=True,
        )
        assert done.returncode == 0, done.stderr
        found = json.loads(done.stdout.splitlines()[-1])
        assert found["files"].pop(name) == "meaning"
        return found

    book.file("a/helper.py", '"""What it is for."""\nX = 1\n')
    book.file("a/data.txt", "words\n")
    book.file("b/other.py", "from cudatut.book.b import helper_of_other\n")
    book.file("b/helper_of_other.py", "Y = 2\n")
    book.file("a/unused.py", "Z = 3\n")
    book.file("a/head.cuh", '#include "deep.cuh"\n')
    book.file("a/deep.cuh", "\n")
    book.file("a/program.cu", '#include "head.cuh"\nint main() {}\n')
    return followed


def test_without_being_asked_nobody_listens():
    """In a process of tests, for instance."""
    code = "import cudatut, sys; from cudatut.fingerprint import ran; print(ran.following())"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, env=tool.environment())
    assert done.stdout.split() == [b"False"]


@pytest.mark.parametrize("flags", [(), ("-Xfrozen_modules=off",)], ids=["frozen", "not frozen"])
@pytest.mark.parametrize("compiled", [False, True], ids=["new", "compiled before"])
def test_what_is_imported_counts_by_its_meaning(follow, book, flags, compiled):
    """By its code, not by its text, though Python reads that: a comment in a module makes nothing stale."""
    if compiled:
        subprocess.run([sys.executable, "-m", "compileall", "-q", book.root], check=True)
        assert list(book.root.rglob("*.pyc"))
    code = """
        import helper
        from cudatut.book.b import other
        del sys.modules["helper"]
    """
    assert follow(code, *flags)["files"] == {
        "a/helper.py": "meaning",
        "b/helper_of_other.py": "meaning",
        "b/other.py": "meaning",
    }


def test_what_is_imported_and_fails_counts(follow, book):
    book.file("a/broken.py", "import nothing_of_this_name\n")
    code = "try:\n    import broken\nexcept ImportError:\n    pass"
    assert follow(code)["files"] == {"a/broken.py": "meaning"}


def test_a_file_that_code_of_the_book_reads_counts_by_its_text(follow, book):
    book.file("a/reader.py", "def read(path): return open(path).read()\n")
    code = """
        import reader
        here = Path(__file__).parent
        here.joinpath("data.txt").read_text()
        reader.read(here / "helper.py")
        os.close(os.open(here / "program.cu", os.O_RDONLY))
    """
    assert follow(code)["files"] == {
        "a/data.txt": "text",
        "a/helper.py": "text",
        "a/program.cu": "text",
        "a/reader.py": "meaning",
    }


@pytest.mark.parametrize(
    "read",
    [
        "open('data.txt')",
        "open(b'data.txt', 'rb')",
        "Path('data.txt').read_bytes()",
        "__import__('numpy').fromfile('data.txt', 'u1')",
        "__import__('numpy').memmap('data.txt', 'u1', 'r')",
        "list(__import__('fileinput').input('data.txt'))",
        "exec('open(\"data.txt\")')",
    ],
)
def test_ways_to_read_a_file(follow, read):
    code = f"os.chdir(Path(__file__).parent)\n{read}"
    assert follow(code)["files"] == {"a/data.txt": "text"}


def test_a_cell_of_a_notebook_is_code_of_the_book(follow):
    """IPython gives it a file of its own, in a folder of its process."""
    cell = "exec(compile('open(\"helper.py\")', '/tmp/ipykernel_77/123.py', 'exec'))"
    code = f"os.chdir(Path(__file__).parent)\n{cell}"
    assert follow(code)["files"] == {"a/helper.py": "text"}


def test_what_is_only_looked_at_or_written_does_not_count(follow):
    code = """
        here = Path(__file__).parent
        [path.stat() for path in here.iterdir()]
        (here / "unused.py").exists()
        (here / "new.txt").write_text("x")
        with open(here / "new.txt", "a") as file: file.write("y")
        open("/dev/null").close(), open(here.parent.parent / "elsewhere.txt", "w").close()
    """
    assert follow(code)["files"] == {}


def test_what_the_package_reads_it_tells_itself(follow, book):
    book.example("a/one", "# %% check\nprint(1)\n")
    code = """
        ct.catalog.examples()
        ct.catalog.get("a/one").sources()
        ct.paths.note_read(Path(__file__).with_name("data.txt"))
    """
    assert follow(code)["files"] == {"a/data.txt": "meaning"}


def test_the_source_of_a_function_of_another_file_counts_by_its_text(follow, book):
    book.file("a/shown.py", "def shown():\n    return 1  # one\n")
    code = "import inspect, shown\nprint(inspect.getsource(shown.shown))"
    assert follow(code)["files"] == {"a/shown.py": "text"}


def test_lines_for_a_traceback_do_not_count_where_a_library_reads_them(follow, book):
    """IPython does, to show an error: the file is told by its meaning."""
    book.file("a/raises.py", "def f():\n    raise ValueError('x')\n")
    code = """
        import raises, logging
        import pytest  # a library
        try:
            raises.f()
        except ValueError as error:
            repr(pytest.ExceptionInfo.from_exception(error).getrepr())
    """
    assert follow(code)["files"] == {"a/raises.py": "meaning"}


def test_children_report_too(follow, book):
    book.file(
        "a/child.py",
        "import cudatut\nimport helper\nopen(__file__.replace('child.py', 'data.txt'))\n",
    )
    code = "subprocess.run([sys.executable, Path(__file__).with_name('child.py')], check=True)"
    assert follow(code)["files"] == {
        "a/child.py": "meaning",
        "a/data.txt": "text",
        "a/helper.py": "meaning",
    }


def test_a_child_that_is_killed_has_told_what_it_ran(follow, book):
    book.file("a/child.py", "import cudatut, os, helper\nos.kill(os.getpid(), 9)\n")
    code = """
        child = subprocess.run([sys.executable, Path(__file__).with_name("child.py")])
        assert child.returncode == -9
    """
    assert set(follow(code)["files"]) == {"a/child.py", "a/helper.py"}


def test_a_program_of_another_language_is_given_a_file_and_what_it_includes(follow):
    """As nvcc is: `main` and headers are part of what ran, though no Python reads them."""
    code = """
        here = Path(__file__).parent
        subprocess.run(["cat", "program.cu"], cwd=here, stdout=subprocess.DEVNULL)
        subprocess.run(f"cat {here / 'unused.py'}", shell=True, stdout=subprocess.DEVNULL)
    """
    # What a shell is told is a text to us: whoever uses one says what it reads by `paths.note_read`.
    assert follow(code)["files"] == {
        "a/deep.cuh": "meaning",
        "a/head.cuh": "meaning",
        "a/program.cu": "meaning",
    }


def test_kernels_from_threads_and_processes_are_told_once_and_in_one_order(follow, book):
    """Each line is written in one piece, however long: 8 processes with 8 threads, and the same kernels in each."""
    book.file("a/k.cu", "")
    book.file(
        "a/child.py",
        """
import sys, threading
import cudatut
from cudatut import paths
from cudatut.fingerprint import ran

def compile(first):
    for n in range(first, first + 40):
        n %= 40
        name, path = f"k{n:02}", paths.examples_dir() / "a/k.cu"
        ran.kernel([path], file="a/k.cu", name=name, options=["-D" + "x" * 20000], code=str(n))
        ran.use("timing" if n % 2 else "checking")

threads = [threading.Thread(target=compile, args=[5 * i]) for i in range(8)]
[thread.start() for thread in threads]
[thread.join() for thread in threads]
""",
    )
    code = """
        child = [sys.executable, str(Path(__file__).with_name("child.py"))]
        children = [subprocess.Popen(child) for _ in range(8)]
        assert [child.wait() for child in children] == [0] * 8
    """
    found = follow(code)
    assert found["used"] == ["checking", "timing"]
    assert [one["name"] for one in found["kernels"]] == [f"k{n:02}" for n in range(40)]
    assert found["files"] == {"a/child.py": "meaning", "a/k.cu": "meaning"}


def test_a_kernels_file_is_called_by_its_place_in_the_book(follow, book, tmp_path):
    (tmp_path / "mine.cu").write_text("")
    book.file("a/k.cu", "")
    code = """
        mine = Path("mine.cu").resolve()
        for path in ("a/k.cu", ct.paths.examples_dir() / "a/k.cu", mine, "mine.cu"):
            ran.kernel([ct.paths.resolve_source(path)], file=str(path), name="k")
    """
    found = follow(code)
    assert found["kernels"] == [{"file": "a/k.cu", "name": "k"}, {"file": "mine.cu", "name": "k"}]
    assert list(found["files"]) == ["a/k.cu"]


def test_what_listens_disturbs_nobody(follow, book):
    """Names that are none, files that are gone, a report that cannot be written: what the program does goes on."""
    code = """
        for strange in ("", "\\0", "/", "x" * 5000, 10**6, b"\\xff"):
            try:
                open(strange)
            except (OSError, ValueError):
                pass
        subprocess.run(["true", "\\udcff", "x" * 5000], check=True)
        os.environ[ran.VARIABLE] = "/nowhere/at/all"
        open(Path(__file__).with_name("data.txt")).close()
    """
    assert follow(code)["files"] == {"a/data.txt": "text"}


def test_a_link_is_the_file_that_it_leads_to(follow, book, tmp_path):
    (tmp_path / "link.txt").symlink_to(book.root / "a/data.txt")
    assert follow("open('link.txt')")["files"] == {"a/data.txt": "text"}
    assert Path(os.path.realpath(tmp_path / "link.txt")) == book.root / "a/data.txt"


def test_whoever_times_or_checks_has_used_the_instrument(follow):
    """A recording then carries its numbers; here without a GPU, where only a check of host arrays can end well."""
    assert follow("pass")["used"] == []
    code = """
        import numpy as np
        ct.check(np.zeros(3), np.zeros(3))
    """
    assert follow(code)["used"] == ["checking"]
    for time in ("time_once", "time_once_bare", "time_hidden"):
        code = f"""
            try:
                ct.{time}(lambda: None)
            except (ImportError, ct.CudatutError):
                pass
        """
        assert follow(code)["used"] == ["timing"], time
