"""Scripts run as `python FILE` runs them; why one failed is said briefly."""

import subprocess
import sys

import pytest


def run(path, text, *arguments):
    path.write_text(text, encoding="utf-8")
    command = [sys.executable, "-m", "cudatut.gpu.running", str(path), *arguments]
    return subprocess.run(command, capture_output=True, text=True, cwd=path.parent)


@pytest.mark.parametrize(
    ("text", "status", "said"),
    [
        ("import sys; print(sys.argv[1:])", 0, ""),
        ("raise SystemExit", 0, ""),
        ("import sys; sys.exit(0)", 0, ""),
        ("import sys; sys.exit(3)", 3, ""),
        ("import sys; sys.exit('no such file')", 1, "no such file\n"),
    ],
)
def test_the_status_is_the_scripts_own(tmp_path, text, status, said):
    done = run(tmp_path / "a.py", text, "x", "2")
    assert (done.returncode, done.stderr) == (status, said)
    assert done.stdout == ("['x', '2']\n" if "argv" in text else "")


def test_an_error_shows_the_lines_of_the_script_alone(tmp_path):
    done = run(tmp_path / "a.py", "def f():\n    raise ValueError('odd')\n\n\nf()\n")
    assert done.returncode == 1 and done.stderr.endswith("ValueError: odd\n")
    assert done.stderr.count("File ") == 2 and "runpy" not in done.stderr
