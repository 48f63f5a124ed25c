"""What is attested: digests of what was measured, which stay when a recording is restamped, and of files."""

import hashlib
import json

import pytest

from cudatut import cli, digests, recording
from cudatut.results import MIME


@pytest.fixture
def recorded(book):
    """Call it with a change of the notebook (JSON): its recording as it is read."""
    book.example("a/x", "# %% setup\n# %% bench\n")

    def read(change=lambda notebook, metadata: None):
        notebook = book.notebook("a/x")
        change(notebook, notebook["metadata"]["cudatut"])
        for other in recording.whole_paths("a/x"):
            other.unlink()
        book.recorded("a/x", notebook, agree=False)
        return recording.load("a/x")

    return read


def _restamped(notebook, metadata):
    metadata["restamped"] = [{"from": "0" * 40, "to": "1" * 40, "files": {}}]
    metadata["sources"]["a/y.cu"] = "0" * 64
    metadata["meanings"] = {"a/x.py": "1" * 64}
    metadata["title"] = {"en": "Another", "zh": "另一个"}
    metadata["requires"] = "sm_80"
    notebook["cells"][2]["source"] = "import os  # another comment"
    notebook["cells"][1]["source"] = "Another sentence."


def _rendered(notebook, metadata):
    notebook["cells"][3]["outputs"][0]["data"]["text/plain"] = "as today's code words it"
    notebook["cells"][3]["execution_count"] = 7


@pytest.mark.parametrize("change", [_restamped, _rendered])
def test_what_is_no_measurement_changes_nothing(recorded, change):
    before, after = recorded(), recorded(change)
    assert before.measured() == after.measured()
    assert before.digest() != after.digest()


def _value(key, value):
    return lambda notebook, metadata: metadata.update({key: value})


def _result(key, value):
    def change(notebook, metadata):
        notebook["cells"][3]["outputs"][1]["data"][MIME]["rows"][0][key] = value

    return change


def _swapped(notebook, metadata):
    cells = notebook["cells"]
    cells[2]["outputs"], cells[3]["outputs"] = cells[3]["outputs"], cells[2]["outputs"]


def _typed(notebook, metadata):
    notebook["cells"][2]["outputs"][0]["text"] = ["hello\n", "World\n"]


def _removed(notebook, metadata):
    del notebook["cells"][3]["outputs"][0]


@pytest.mark.parametrize(
    "change",
    [
        _value("gpu", {"name": "NVIDIA B300", "compute_capability": "10.3", "memory_bytes": 1, "sm_count": 1, "driver": "1"}),
        _value("recorded_at", "2026-11-21T12:00:00+00:00"),
        _value("commit", "1" * 40),
        _value("duration_s", 1.6),
        _value("toolchain", {"cuda": "12.9"}),
        _value("rivals", {"cuBLAS": "13"}),
        _value("launched", {"cuBLAS": ["gemm"]}),
        _value("instrument", {"numbers": {"timing": 2}, "files": {}}),
        _value("kernels", [{"name": "add", "defines": [], "options": [], "arch": "sm_90", "code": "0" * 64}]),
        _value("sanitizers", []),
        _result("median_us", 1.9),
        _result("value", 4.1),
        _swapped,
        _typed,
        _removed,
    ],
)  # fmt: skip
def test_what_was_measured_cannot_change_unnoticed(recorded, change):
    assert recorded().measured() != recorded(change).measured()


def test_the_lines_are_those_of_sha256sum(recorded, book):
    one = recorded()
    book.slim("a/x")
    lines = list(digests.lines(recording.every()))
    raw = one.path.read_bytes()
    assert lines[:2] == [
        f"{hashlib.sha256(one.measured()).hexdigest()}  a/x",
        f"{hashlib.sha256(raw).hexdigest()}  recordings/nvidia-test/a/x.ipynb",
    ]
    assert [line.partition("  ")[2] for line in lines[2:]] == [
        "nvidia-other/a/x",
        "recordings/nvidia-other/a/x.json",
    ]


# --- the command -------------------------------------------------------------------------------------


def test_the_command_prints_them(recorded, book, capsys):
    recorded()
    book.example("a/other")
    book.recorded("a/other")
    assert cli.main(["digests"]) == 0
    names = [line.split("  ")[1] for line in capsys.readouterr().out.splitlines()]
    assert names == [
        "a/other",
        "recordings/nvidia-test/a/other.ipynb",
        "a/x",
        "recordings/nvidia-test/a/x.ipynb",
    ]
    assert cli.main(["digests", "a/x"]) == 0
    assert capsys.readouterr().out.count("\n") == 2


def test_only_what_was_measured_at_a_commit(recorded, capsys):
    """A job attests what it has measured itself, and none of what lay there already."""
    recorded()
    assert cli.main(["digests", "--commit", "0" * 40]) == 0
    assert "a/x" in capsys.readouterr().out
    for other in ("1" * 40, f"{'0' * 40}-dirty"):
        assert cli.main(["digests", "--commit", other]) == 2
        said = capsys.readouterr()
        assert said.out == "" and f"no recording that was measured at {other}" in said.err


def test_uncommitted_files_are_not_measured_at_a_commit(recorded, capsys):
    recorded(_value("commit", f"{'0' * 40}-dirty"))
    assert cli.main(["digests", "--commit", "0" * 40]) == 2


def test_what_was_measured_is_written_as_its_digest_says(recorded, tmp_path, capsys):
    recorded()
    file = tmp_path / "measured.json"
    assert cli.main(["digests", "a/x", "--measured", str(file)]) == 0
    digest = capsys.readouterr().out.partition("  ")[0]
    assert hashlib.sha256(file.read_bytes()).hexdigest() == digest
    run, outputs = json.loads(file.read_bytes())
    assert run["gpu"]["name"] == "NVIDIA Test"
    assert outputs["bench"][1]["data"][MIME]["rows"][0]["value"] == 4.0
    assert "Vector add" not in file.read_text()


@pytest.mark.parametrize("names", [[], ["a"], ["a/other"]])
def test_one_recording_at_a_time_is_written(recorded, book, tmp_path, capsys, names):
    recorded()
    book.example("a/other")
    assert cli.main(["digests", *names, "--measured", str(tmp_path / "x")]) == 2
    assert len(capsys.readouterr().err.splitlines()) == 1 and not (tmp_path / "x").exists()


def test_a_place_that_cannot_be_written_is_named(recorded, tmp_path, capsys):
    recorded()
    place = str(tmp_path / "nowhere" / "x")
    assert cli.main(["digests", "a/x", "--measured", place]) == 2
    assert f"cannot write {place}" in capsys.readouterr().err
