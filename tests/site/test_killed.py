"""A build that is killed: its children end with it, and what it left is removed, if not by itself, by the next one."""

import os
import shutil
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest

from cudatut.site import workplace

ROOT = Path(__file__).resolve().parents[2]
SOON, END = 60, 20  # seconds, on a busy machine; a whole build takes longer than the second

needs_proc = pytest.mark.skipif(
    not Path("/proc/self/environ").exists(), reason="this system does not say who its processes are"
)


def waited_for(what, seconds=SOON):
    """What `what()` gives once it is true."""
    last = time.monotonic() + seconds
    while not (found := what()):
        assert time.monotonic() < last, "it did not happen"
        time.sleep(0.02)
    return found


def children(folder: Path) -> list[str]:
    """Processes of MkDocs that write into this folder."""
    found = []
    for process in Path("/proc").glob("[0-9]*"):
        try:
            command = (process / "cmdline").read_bytes()
            state = (process / "stat").read_text().rpartition(")")[2].split()[0]
        except OSError:
            continue
        if os.fsencode(folder) in command and b"--site-dir" in command and state != "Z":
            found.append(process.name)
    return found


@needs_proc
@pytest.mark.parametrize("number", [signal.SIGKILL, signal.SIGTERM], ids=["kill -9", "SIGTERM"])
def test_a_killed_build_leaves_no_process_and_no_folder(tmp_path, number):
    out = tmp_path / "site"
    command = [sys.executable, "-m", "cudatut.site", "build", "--out", str(out)]
    build = subprocess.Popen(command, cwd=ROOT, stdout=subprocess.PIPE, stderr=subprocess.STDOUT)
    waited_for(lambda: len(children(tmp_path)) == 2)
    (left,) = [mark.parent for mark in tmp_path.glob(f".site-*/{workplace.MARK}")]
    assert workplace.sweep(out) == []  # it is alive
    build.send_signal(number)
    said = build.communicate(timeout=SOON)[0].decode()
    waited_for(lambda: not children(tmp_path), END)
    if number == signal.SIGTERM:
        assert build.returncode == 128 + signal.SIGTERM and "Traceback" not in said, said
    else:
        assert left.is_dir() and workplace.sweep(out) == [left]
    assert not list(tmp_path.iterdir())


def test_a_build_sweeps_before_it_begins(tmp_path):
    out = tmp_path / "site"
    dead = tmp_path / ".site-12345678"
    dead.mkdir()
    (dead / workplace.MARK).touch()
    of_others = [tmp_path / ".site-packages", tmp_path / ".other-12345678"]
    for folder in of_others:
        folder.mkdir()
    (of_others[1] / workplace.MARK).touch()
    with workplace.folder(out) as one, workplace.folder(out) as other:
        assert not dead.exists() and one.is_dir() and other.is_dir() and one != other
        (one / "site").mkdir()
    assert sorted(tmp_path.iterdir()) == sorted(of_others)


def test_what_children_put_aside_lies_in_the_folder(tmp_path):
    with workplace.folder(tmp_path / "site") as work:
        code = "import tempfile; print(tempfile.mkdtemp())"
        done = subprocess.run(
            [sys.executable, "-c", code],
            env=os.environ | workplace.environment(work),
            capture_output=True,
            text=True,
        )
        assert Path(done.stdout.strip()).is_relative_to(work), done.stderr
    assert not list(tmp_path.iterdir())


def test_make_clean_removes_what_killed_builds_left(tmp_path, missing):
    if not shutil.which("make"):
        missing("make is not installed")
    shutil.copy(ROOT / "Makefile", tmp_path)
    for name in (".site-1/x", ".site-packages/x", "site/x", "docs/x"):
        (tmp_path / name).mkdir(parents=True)
    (tmp_path / ".site-1" / workplace.MARK).touch()
    done = subprocess.run(["make", "clean"], cwd=tmp_path, capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    left = {path.name for path in tmp_path.iterdir()}
    assert left == {"Makefile", ".site-packages", "docs"}
