""".ci/propose: recordings of the GPU runner become a branch and a pull request, and nothing else of its folder does.

`gh` is a stand-in that writes down what it is asked; git is git, with a bare repository as GitHub's.
"""

import os
import shutil
import subprocess
from pathlib import Path

import pytest

OF_X = "recordings/nvidia-h200/a/x.ipynb"
SCRIPT = Path(__file__).resolve().parents[1] / ".ci" / "propose"
GH = """#!/usr/bin/env bash
printf '%s\\n' "$*" >> "$ASKED"
while (($#)); do
  if [[ $1 = --body-file ]]; then cat "$2" > "$ASKED.body"; fi
  shift
done
[[ ! -e "$ASKED.fails" ]] || { echo "Actions may not open pull requests" >&2; exit 1; }
"""


class Checkout:
    """What the job has: a checkout of main, and the folder into which the artifact was unpacked."""

    def __init__(self, root: Path):
        self.root, self.hub = root / "checkout", root / "hub.git"
        self.artifact, self.asked = root / "artifact", root / "asked"
        self.files(self.root, {"examples/a/x.py": "", OF_X: "old", "README.md": "mine"})
        (self.root / ".ci").mkdir()
        shutil.copy(SCRIPT, self.root / ".ci")
        self.files(root, {"bin/gh": GH})
        (root / "bin" / "gh").chmod(0o755)
        self.git("init", "-q", "-b", "main")
        self.git("add", "-A")
        self.git("-c", "user.name=a", "-c", "user.email=a@b", "commit", "-q", "-m", "x")
        subprocess.run(["git", "clone", "-q", "--bare", self.root, self.hub], check=True)
        self.git("remote", "add", "origin", self.hub)
        self.env = os.environ | {
            "PATH": f"{root / 'bin'}{os.pathsep}{os.environ['PATH']}",
            "ASKED": str(self.asked),
            "GITHUB_RUN_ID": "17",
            "GITHUB_RUN_ATTEMPT": "2",
            "GITHUB_SERVER_URL": "https://example.org",
            "GITHUB_REPOSITORY": "a/book",
        }

    def files(self, folder: Path, files: dict[str, str]) -> None:
        for name, text in files.items():
            (folder / name).parent.mkdir(parents=True, exist_ok=True)
            (folder / name).write_text(text)

    def git(self, *arguments: str | Path) -> str:
        command = ["git", "-C", self.root, *arguments]
        return subprocess.run(command, capture_output=True, text=True, check=True).stdout.strip()

    def propose(self, **files: str) -> subprocess.CompletedProcess:
        self.files(self.artifact, {"moved.md": "# What moved\n"} | files)
        return subprocess.run(
            [self.root / ".ci" / "propose", self.artifact],
            env=self.env,
            capture_output=True,
            text=True,
            timeout=60,
        )

    def pushed(self) -> list[str]:
        """The files that the branch changes."""
        listed = self.git("--git-dir", self.hub, "diff", "--name-only", "main", "recordings/17-2")
        return listed.split()


@pytest.fixture
def checkout(tmp_path):
    for program in ("git", "bash"):
        if shutil.which(program) is None:
            pytest.skip(f"no {program}")
    return Checkout(tmp_path)


def test_a_recording_becomes_a_pull_request(checkout):
    done = checkout.propose(**{OF_X: "new"})
    assert done.returncode == 0, done.stderr
    assert checkout.pushed() == [OF_X]
    assert checkout.git("show", f"recordings/17-2:{OF_X}") == "new"
    title = "Recorded on the GPU runner: 1 recording"
    body = checkout.artifact / "body.md"
    assert checkout.asked.read_text().splitlines() == [
        "auth setup-git",
        f"pr create --base main --head recordings/17-2 --title {title} --body-file {body}",
        "workflow run hosted.yml --ref recordings/17-2",
    ]
    told = Path(f"{checkout.asked}.body").read_text()
    assert "https://example.org/a/book/actions/runs/17" in told and "# What moved" in told
    log = checkout.git("log", "-1", "--format=%an %s %b", "recordings/17-2")
    assert log.startswith(f"github-actions[bot] {title} https://example.org/a/book/actions/runs/17")


def test_nothing_but_recordings_is_taken(checkout, tmp_path):
    """The GPU runner may write nothing: neither may what it hands over."""
    folder = checkout.artifact / "recordings" / "nvidia-h200"
    (folder / "a").mkdir(parents=True)
    (tmp_path / "secret").write_text("secret")
    checkout.files(checkout.root, {"examples/a/link.py": ""})
    (folder / "a" / "link.ipynb").symlink_to(tmp_path / "secret")
    done = checkout.propose(
        **{
            OF_X: "new",
            "examples/a/x.py": "evil",
            "examples/a/x.ipynb": "evil",
            "recordings/x.ipynb": "evil",
            "recordings/nvidia-h200/a/of_no_example.ipynb": "evil",
            "recordings/nvidia-h200/a/x/deep.ipynb": "evil",
            "recordings/nvidia-h200/a/x.json": "evil",
            "recordings/NVIDIA H200/a/x.ipynb": "evil",
            "recordings/.failed/a/x": "reason",
            ".github/workflows/gpu.yml": "evil",
            ".ci/propose": "evil",
            "README.md": "evil",
        }
    )
    assert done.returncode == 0, done.stderr
    assert checkout.pushed() == [OF_X]


@pytest.mark.parametrize("script", ["chapter", "two_words", "words"])
def test_an_example_in_the_folder_of_its_chapter(checkout, script):
    """It has the folder's name, and its own after it but for chapter.py, as `cudatut.catalog.name_in` says."""
    checkout.files(checkout.root, {f"examples/a/some_chapter/{script}.py": ""})
    name = "some_chapter" + f"_{script}" * (script != "chapter")
    new, unknown = (f"recordings/nvidia-h200/a/{one}.ipynb" for one in (name, f"{name}_x"))
    done = checkout.propose(**{new: "new", unknown: "evil"})
    assert done.returncode == 0, done.stderr
    assert checkout.pushed() == [new]


def test_an_example_keeps_one_recording_when_another_gpu_has_recorded_it(checkout):
    other = "recordings/nvidia-b200/a/x"
    checkout.files(checkout.root, {f"{other}.json": "slim", "recordings/nvidia-h100/a/x.json": ""})
    checkout.git("add", "-A")
    checkout.git("-c", "user.name=a", "-c", "user.email=a@b", "commit", "-q", "-m", "slim")
    checkout.git("push", "-q", "origin", "main")
    done = checkout.propose(**{f"{other}.ipynb": "new"})
    assert done.returncode == 0, done.stderr
    assert checkout.pushed() == [f"{other}.ipynb", f"{other}.json", OF_X]
    left = checkout.git("ls-tree", "-r", "--name-only", "recordings/17-2", "recordings/")
    assert left.split() == [f"{other}.ipynb", "recordings/nvidia-h100/a/x.json"]


def test_nothing_new_is_no_pull_request(checkout):
    done = checkout.propose(**{OF_X: "old"})
    assert done.returncode == 1 and "no recording in" in done.stderr
    assert not checkout.asked.exists()


def test_a_pull_request_that_cannot_be_opened(checkout):
    """Actions may be forbidden to open any: the branch is there, and what to do is said."""
    Path(f"{checkout.asked}.fails").touch()
    script = checkout.root / ".ci" / "propose"
    script.write_text(script.read_text().replace("gh auth setup-git\n", ""))
    done = checkout.propose(**{OF_X: "new"})
    assert done.returncode == 1 and checkout.pushed() == [OF_X]
    assert "Actions may not open pull requests" in done.stderr and "allow it" in done.stderr
    assert "workflow run" not in checkout.asked.read_text()
