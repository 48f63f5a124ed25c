"""The examples as a package: a module has one name, and is one module, by whichever way it comes."""

import subprocess
import sys
from pathlib import Path

import cudatut as ct
import cudatut.book
from cudatut import paths, tool
from cudatut.fingerprint import ran


def test_a_module_is_the_same_by_each_way():
    from cudatut.book.basics.ladder import ladder

    assert Path(ladder.__file__) == paths.examples_dir() / "basics/ladder/ladder.py"
    assert ct.load_ladder("matmul") is ladder.LADDER
    assert "basics/ladder/ladder.py" in ran.report()["files"]  # a recording of its user names it


def test_it_is_where_the_examples_are(tmp_path):
    (tmp_path / "a/b").mkdir(parents=True)
    (tmp_path / "a/b/c.py").write_text("X = 7\n")
    code = "import cudatut.book.a.b.c as c; print(c.X, c.__file__)"
    env = tool.environment() | {"CUDATUT_EXAMPLES": str(tmp_path)}
    command = [sys.executable, "-c", code]
    done = subprocess.run(command, capture_output=True, text=True, env=env)
    assert done.stdout == f"7 {tmp_path / 'a/b/c.py'}\n", done.stderr
    assert list(cudatut.book.__path__) == [str(paths.examples_dir())]
