"""Several files in one process that a tool watches."""

import subprocess
import sys

from cudatut import tool


def test_a_watched_process_runs_each_file_as_if_it_were_alone(book):
    for part in "ab":
        book.file(f"{part}/beside.py", f"WHERE = '{part}'\n")
        book.file(
            f"{part}/one.py",
            "import sys, gc, beside\n"
            "print(__name__, sys.argv, beside.WHERE, sum(type(o).__name__ == 'Mine' for o in gc.get_objects()))\n"
            "class Mine: pass\n"
            "kept = Mine(); kept.itself = kept\n"
            "sys.exit()\n",
        )
    book.file("b/bad.py", "raise SystemExit('stop')\n")
    files = [str(book.root / name) for name in ("a/one.py", "b/one.py", "b/bad.py", "a/one.py")]
    code = (
        f"from cudatut.gpu import watched; watched.activate = lambda: None; watched.main({files!r})"
    )
    done = subprocess.run(
        [sys.executable, "-c", code], capture_output=True, text=True, env=tool.environment()
    )
    said = [f"__main__ [{files[0]!r}] a 0", f"__main__ [{files[1]!r}] b 0"]
    assert done.stdout.splitlines() == said and done.stderr.strip() == "stop"
    assert done.returncode == 1
