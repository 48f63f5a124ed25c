"""A recording is written whole and good, or not at all."""

import os

import pytest

from cudatut import history, recording
from cudatut.record import write
from cudatut.results import Sanitizer
from cudatut.to_notebook import RecordingFailed
from cudatut.tool import SANITIZERS

FOUR = [Sanitizer(tool, 0) for tool in SANITIZERS]


def test_write(executed):
    write.write(executed, FOUR)
    recording.require_good("a/add")
    write.write(executed, FOUR)  # over the one that is there
    assert os.stat(recording.whole_path("a/add")).st_mode & 0o444 == 0o444


def test_an_example_has_one_whole_recording(executed, monkeypatch):
    """Another GPU's gets slim, and what this GPU had of it as a slim one is gone."""
    monkeypatch.setenv("CUDATUT_COMMIT", "1" * 40)
    write.write(executed, FOUR)
    before = recording.whole_path("a/add")
    second = recording.own_path(
        "NVIDIA H100", "a/add"
    )  # as two branches leave it when they are merged
    second.parent.mkdir(parents=True)
    second.write_bytes(before.read_bytes())
    executed.session["gpu"]["name"] = "NVIDIA H200"
    write.write_slim(executed)
    (slim,) = recording.on_other_gpus("a/add")
    write.write(executed, FOUR)
    assert recording.whole_path("a/add") == recording.own_path("NVIDIA H200", "a/add")
    assert recording.require_good("a/add").metadata["gpu"]["name"] == "NVIDIA H200"
    assert not before.exists() and not second.exists() and not slim.path.exists()
    (other,) = recording.on_other_gpus("a/add")  # not the one that lay in another GPU's folder
    assert other.gpu == "G" and other.slim and not other.edited()


@pytest.mark.parametrize("why", ["stale", "dirty", "edited"])
def test_of_another_gpus_whole_recording_nothing_stays_that_no_page_may_show(
    executed, why, monkeypatch
):
    monkeypatch.setenv("CUDATUT_COMMIT", "1" * 40 + "-dirty" * (why == "dirty"))
    write.write(executed, FOUR)
    path = recording.whole_path("a/add")
    if why == "stale":
        path.write_text(path.read_text().replace(executed.sources["a/add.py"], "0" * 64))
    elif why == "edited":
        path.write_text(path.read_text().replace('"duration_s": ', '"duration_s": 1'))
    executed.session["gpu"]["name"] = "NVIDIA H200"
    write.write(executed, FOUR)
    assert not path.exists() and recording.on_other_gpus("a/add") == []
    assert not recording.slim_path("G", "a/add").exists()


def test_a_slim_one_that_cannot_be_written_leaves_the_whole_one(executed, monkeypatch):
    monkeypatch.setenv("CUDATUT_COMMIT", "1" * 40)
    write.write(executed, FOUR)
    before = recording.whole_path("a/add")
    executed.session["gpu"]["name"] = "NVIDIA H200"
    real = write.write_whole

    def full(path, data):
        if path.suffix == ".json":
            raise OSError(28, "No space left on device")
        real(path, data)

    monkeypatch.setattr(write, "write_whole", full)
    with pytest.raises(write.UnwritableError, match="No space left on device"):
        write.write(executed, FOUR)
    assert before.is_file() and recording.own_path("NVIDIA H200", "a/add").is_file()


@pytest.mark.parametrize(
    ("change", "reason"),
    [
        (lambda e: e.session.update(gpu=None), "its kernel saw no GPU"),
        (
            lambda e: e.example.path.write_text("changed"),
            "a/add.py changed while it was being recorded",
        ),
        (
            lambda e: e.notebook.cells[0].update(execution_count=None),
            "cell 'check' was not executed",
        ),
    ],
)
def test_what_is_not_good_is_not_written(executed, change, reason):
    path = recording.own_path("G", "a/add")
    path.parent.mkdir(parents=True)
    path.write_text("old")
    change(executed)
    with pytest.raises(RecordingFailed, match=reason):
        write.write(executed, FOUR)
    assert path.read_text() == "old"
    assert os.listdir(path.parent) == ["add.ipynb"]
    assert os.listdir(executed.example.path.parent) == ["add.py"]


def test_what_is_not_whole_is_not_written(executed):
    with pytest.raises(RecordingFailed, match="synccheck was not run"):
        write.write(executed, FOUR[:3])
    assert recording.whole_path("a/add") is None


def test_commit(tmp_path, monkeypatch):
    git = history.git
    root = tmp_path / "checkout"
    (root / "examples").mkdir(parents=True)
    monkeypatch.setattr(write.paths, "repo_root", lambda: root)
    monkeypatch.setenv("CUDATUT_EXAMPLES", str(root / "examples"))
    monkeypatch.delenv("CUDATUT_COMMIT", raising=False)
    check = root / "cudatut" / "check.py"
    check.parent.mkdir()
    check.write_text("tolerance = 1e-5\n")
    monkeypatch.setattr(write.instrument, "files", lambda: [check])
    source = root / "examples" / "x.py"
    source.write_text("1\n")
    assert write.commit(["x.py"]) == "unknown"
    if git(root, "init", "-q") is None:
        pytest.skip("no git")
    git(root, "add", "examples/x.py", "cudatut/check.py")
    author = ("-c", "user.name=a", "-c", "user.email=a@b")
    assert git(root, *author, "commit", "-q", "-m", "x") is not None
    head = git(root, "rev-parse", "HEAD")
    (root / "other").write_text("untracked")
    assert write.commit(["x.py"]) == head
    check.write_text("tolerance = 1e5\n")  # what checks is no less a source
    assert write.commit(["x.py"]) == f"{head}-dirty"
    check.write_text("tolerance = 1e-5\n")
    source.write_text("2\n")
    assert write.commit(["x.py"]) == f"{head}-dirty"
    monkeypatch.setenv("CUDATUT_COMMIT", "abc")  # the .git of a copy may be an old one
    assert write.commit(["x.py"]) == "abc"
