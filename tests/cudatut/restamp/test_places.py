"""Recordings lay beside their examples once, those of other GPUs in results/: history is asked for both places."""

import json

import pytest

from cudatut import recording
from cudatut.record import write
from cudatut.restamp import accept, places, verify

COMMENTED = ("# of both arrays", "# of x and y")


@pytest.fixture(params=["whole", "slim"])
def beside(small, request):
    """The recording of a/add where it was kept at first, until it is moved to where it belongs."""
    return Beside(small, request.param == "slim")


class Beside:
    def __init__(self, small, slim: bool):
        self.small, self.slim = small, slim
        root = small.repository.root
        self.place = root / ("results/nvidia-test/a/add.json" if slim else "examples/a/add.ipynb")

    def record(self, **metadata) -> str:
        """Recorded as if at HEAD; the commit that brought it."""
        path = self.small.record("a/add", "a/helper.py", **metadata)
        if self.slim:
            made = json.loads(path.read_text())
            made["cells"] = [cell for cell in made["cells"] if cell["id"] == "check"]
            made["metadata"]["cudatut"] |= {"slim": True, "sanitizers": []}
            path.unlink()
            path = path.with_suffix(".json")
            raw = json.dumps(made).encode()
            made["metadata"]["cudatut"]["digest"] = recording.parse("a/add", path, raw).digest()
            path.write_text(json.dumps(made))
        self.place.parent.mkdir(parents=True, exist_ok=True)
        path.rename(self.place)
        # As if it had never lain elsewhere.
        self.small.repository.git("add", "-A")
        self.small.repository.git("commit", "-q", "--amend", "-m", "x")
        return self.small.repository.git("rev-parse", "HEAD")

    def move(self) -> recording.Recording:
        path = recording.slim_path("NVIDIA Test", "a/add")
        path = path if self.slim else path.with_suffix(".ipynb")
        path.parent.mkdir(parents=True, exist_ok=True)
        self.small.repository.git("mv", self.place, path)
        self.small.commit()
        return self.load()

    def load(self) -> recording.Recording:
        (one,) = recording.every()
        return one

    def sign(self, change) -> None:
        path = self.load().path
        made = json.loads(path.read_text())
        change(made["metadata"]["cudatut"])
        raw = json.dumps(made).encode()
        made["metadata"]["cudatut"]["digest"] = recording.parse("a/add", path, raw).digest()
        path.write_text(json.dumps(made, indent=1))


def test_its_file_at_a_commit(beside):
    brought = beside.record()
    one = beside.move()
    head = beside.small.repository.git("rev-parse", "HEAD")
    assert places.at(one, beside.small.past, brought) == one
    assert places.at(one, beside.small.past, head) == one
    assert places.at(one, beside.small.past, f"{brought}~1") is None
    assert places.changes(one, beside.small.past) == [head, brought]
    assert places.changes(one, beside.small.past, brought) == [brought]


def test_one_that_was_made_from_files_that_no_commit_had(beside):
    """It is compared with the commit that brought it, wherever it lay there."""
    brought = beside.record(commit=f"{'1' * 40}-dirty")
    beside.small.edit("a/add.py", *COMMENTED)
    one = beside.move()
    assert accept.base(one, beside.small.past).commit == brought
    (outcome,) = accept.restamp([one])
    assert (outcome.grounds, outcome.refused) == (("meaning",), ())
    beside.small.commit()
    assert beside.load().metadata["restamped"][0]["from"] == brought
    assert verify.problems(beside.load(), beside.small.past) == []


def test_a_restamp_from_before_the_move(beside):
    beside.record()
    edited = beside.small.edit("a/add.py", *COMMENTED)
    accept.restamp([beside.move()])
    beside.sign(lambda metadata: metadata["restamped"][0].update(to=edited))
    beside.small.commit()
    assert verify.problems(beside.load(), beside.small.past) == []
    # What was measured is compared with what lay there.
    beside.sign(lambda metadata: metadata.update(duration_s=2.0))
    beside.small.commit()
    (problem,) = verify.problems(beside.load(), beside.small.past)[:1]
    assert problem.startswith("its restamp 1 stands beside other results than those of ")


def test_what_counted_by_its_text_when_it_was_recorded_there(beside):
    meanings = recording.meanings(["a/helper.py"])
    beside.record(kernels=[], meanings=recording.meanings(["a/add.py"]))
    beside.small.edit("a/helper.py", "What both have.", "What both share.")
    beside.move()
    beside.sign(lambda metadata: metadata["meanings"].update(meanings))
    beside.small.commit()
    said = verify.problems(beside.load(), beside.small.past)
    assert "a/helper.py counted by its text when it was recorded" in said


def test_a_whole_one_that_became_slim_keeps_its_restamps(small):
    """Another GPU's whole recording took its place: what a restamp started from lies in history as the whole file."""
    whole = small.record("a/add", "a/helper.py")
    small.commit()
    small.edit("a/add.py", *COMMENTED)
    (one,) = recording.every()
    (outcome,) = accept.restamp([one])
    assert not outcome.refused
    small.commit()
    write.slim_down("a/add", whole)
    small.commit()
    (slim,) = recording.every()
    assert slim.slim and len(slim.metadata["restamped"]) == 1
    assert verify.problems(slim, small.past) == []
    made = json.loads(slim.path.read_text())
    made["metadata"]["cudatut"]["duration_s"] = 99.0
    slim.path.write_text(json.dumps(made))
    (changed,) = recording.every()
    (problem,) = verify.problems(changed, small.past)
    assert problem.startswith("its restamp 1 stands beside other results than those of ")
