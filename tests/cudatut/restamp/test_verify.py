"""What can be told of a restamp later: forged ones are refused, by hashes, or by the machine code."""

import json

import pytest

from cudatut import cli, recording
from cudatut.restamp import accept, verify

FIRST = ("a/add.py", "a/helper.py", "a/add.cu", "a/numbers.cuh")
COMMENTED = ("// Adds.", "// Adds one to each.")


@pytest.fixture
def moved(added):
    """A recording with two restamps: comments changed, then the header moved."""
    added.edit("a/add.cu", *COMMENTED)
    assert added.restamp().grounds == ("meaning",)
    added.move("a/numbers.cuh", "b/numbers.cuh")
    added.edit("a/add.cu", '"numbers.cuh"', '"b/numbers.cuh"')
    added.edit("a/helper.py", "What both have.", "What both share.")
    outcome = added.restamp()
    assert outcome.grounds == ("meaning", "moved") and not outcome.refused
    return added


def problems(book, name="a/add"):
    return verify.problems(recording.load(name), book.past)


def test_restamps_that_restamp_made(moved):
    assert problems(moved) == []
    stamps = moved.load().metadata["restamped"]
    grounds = [{name: one["ground"] for name, one in entry["files"].items()} for entry in stamps]
    assert grounds == [
        {"a/add.cu": "meaning"},
        {"a/add.cu": "moved", "a/numbers.cuh": "moved", "a/helper.py": "meaning"},
    ]
    assert stamps[1]["files"]["a/numbers.cuh"]["as"] == "b/numbers.cuh"


def file_of(entry, ground):
    return next(one for one in entry["files"].values() if one["ground"] == ground)


def of_last(change):
    return lambda metadata, notebook: change(metadata["restamped"][-1], metadata)


FORGED = {
    "a hash from before": of_last(lambda e, m: file_of(e, "meaning").update(was="0" * 64)),
    "a hash from after, and the source's": of_last(
        lambda e, m: (
            file_of(e, "meaning").update(now="0" * 64),
            m["sources"].update({"a/helper.py": "0" * 64}),
        )
    ),
    "another ground": of_last(lambda e, m: file_of(e, "moved").update(ground="meaning")),
    "a ground that is none": of_last(lambda e, m: file_of(e, "moved").update(ground="faith")),
    "machine code of a Python file": of_last(
        lambda e, m: e["files"]["a/helper.py"].update(ground="code")
    ),
    "machine code where there is more": of_last(
        lambda e, m: e["files"]["a/add.cu"].update(ground="code")
    ),
    "to a commit that does not exist": of_last(lambda e, m: e.update(to="1" * 40)),
    "from a commit that does not exist": of_last(lambda e, m: e.update({"from": "1" * 40})),
    "from and to exchanged": of_last(lambda e, m: e.update({"from": e["to"], "to": e["from"]})),
    "from a later commit": lambda m, n: m["restamped"][1].update({"from": m["restamped"][1]["to"]}),
    "commits by other names": of_last(lambda e, m: e.update(to="HEAD~1")),
    "moved to another file": of_last(lambda e, m: file_of(e, "moved").update({"as": "b/read.py"})),
    "the first one is gone": lambda m, n: m["restamped"].pop(0),
    "the last one is gone": lambda m, n: m["restamped"].pop(),
    "the first one is another": lambda m, n: m["restamped"][0]["files"].popitem(),
    "one too many": lambda m, n: m["restamped"].append(m["restamped"][-1]),
    "a file is left out": of_last(lambda e, m: e["files"].pop("a/helper.py")),
    "a file that did not change": of_last(
        lambda e, m: e["files"].update(
            {"a/add.py": {"ground": "meaning", "was": "0" * 64, "now": "0" * 64}}
        )
    ),
    "a header that is not included": of_last(lambda e, m: e.update(added=["b/read.py"])),
    "a source that was dropped": lambda m, n: m["sources"].pop("b/numbers.cuh"),
    "a source that was dropped, with its meaning": lambda m, n: (
        m["sources"].pop("b/numbers.cuh"),
        m["meanings"].pop("b/numbers.cuh"),
    ),
    "a source of another text": lambda m, n: m["sources"].update({"a/add.cu": "0" * 64}),
    "a number": lambda m, n: n["cells"][-1]["outputs"][1]["data"][recording.MIME].update(n=4),
    "what was printed": lambda m, n: n["cells"][-1]["outputs"][0].update(text="2000\n"),
    "the GPU": lambda m, n: m["gpu"].update(name="NVIDIA B300"),
    "the date": lambda m, n: m.update(recorded_at="2026-11-21T12:00:00+00:00"),
    "the commit at which it was measured": lambda m, n: m.update(commit=m["restamped"][0]["to"]),
    "the instrument": lambda m, n: m.update(instrument={"numbers": {"timing": 1}, "files": {}}),
    "a form that is none": lambda m, n: m.update(restamped=[{"by": "hand"}]),
    "a list of names": lambda m, n: m.update(restamped=["a/add.cu"]),
    "files that are none": of_last(lambda e, m: e.update(files=["a/add.cu"])),
}


# What has not even the form of a restamp is no recording.
DAMAGED = {
    "commits by other names": "restamped",
    "a form that is none": "restamped",
    "a list of names": "restamped",
    "files that are none": "restamped",
    "a source that was dropped": "which is none of its sources",
}


@pytest.mark.parametrize("name", FORGED)
def test_a_forged_restamp_is_refused(moved, name, capsys):
    if name in DAMAGED:
        with pytest.raises(recording.DamagedRecordingError, match=DAMAGED[name]):
            moved.forge("a/add", FORGED[name])
        return
    moved.forge("a/add", FORGED[name])
    found = problems(moved)
    assert found, "forged, and nothing is told"
    # By `status`, too, whatever is committed then.
    moved.commit()
    assert problems(moved)
    assert cli.main(["status"]) == 1
    assert "recordings/nvidia-test/a/add.ipynb" in capsys.readouterr().out


ONE = {"ground": "meaning", "was": "1", "now": "2"}


@pytest.mark.parametrize(
    ("said", "made", "problems"),
    [
        ({"files": {"x": ONE}}, {"files": {"x": ONE}}, []),
        ({"files": {"x": ONE, "y": ONE}}, {"files": {"y": ONE}}, ["accepts x, which did not change"]),
        ({"files": {"y": ONE}}, {"files": {"x": ONE, "y": ONE}}, ["leaves out x, which changed"]),
        (
            {"files": {"x": ONE}},
            {"files": {"x": ONE | {"ground": "code", "now": "3"}}},
            ["accepts x on the ground 'meaning', which has only 'code'"],
        ),
        (
            {"files": {"x": ONE, "y": ONE | {"as": "z"}}},
            {"files": {"x": ONE | {"now": "3"}, "y": ONE}},
            [f"has other hashes of {one} than git, or another place" for one in "xy"],
        ),
        (
            {"files": {}, "added": ["x"]},
            {"files": {}},
            ["adds ['x'], and its kernels include None besides"],
        ),
        (
            {"files": {}, "added": ["x"]},
            {"files": {}, "added": ["y"]},
            ["adds ['x'], and its kernels include ['y'] besides"],
        ),
    ],
)  # fmt: skip
def test_how_a_restamp_differs_from_one_that_is_made_again(said, made, problems):
    found = list(verify._otherwise("it", {"from": "1"} | said, {"from": "1"} | made))
    assert found == [f"it {problem}" for problem in problems]


def test_a_restamp_of_what_shows_the_numbers_of_lines(small):
    small.record("a/add", *FIRST, text="add.cu:3: a hazard\n")
    head = small.edit("a/add.cu", *COMMENTED)

    def forge(metadata, _):
        was, now = metadata["sources"]["a/add.cu"], recording.hashes(["a/add.cu"])["a/add.cu"]
        files = {"a/add.cu": {"ground": "meaning", "was": was, "now": now}}
        metadata["restamped"] = [{"from": metadata["commit"], "to": head, "files": files}]
        metadata["sources"]["a/add.cu"] = now

    small.forge("a/add", forge)
    found = problems(small)
    assert found[0].startswith("its restamp 1: a/add.cu changed, and outputs show the numbers")


def test_a_restamp_of_what_means_something_else(added):
    head = added.edit("a/helper.py", "1000", "1001")

    def forge(metadata, _):
        was, now = (
            metadata["sources"]["a/helper.py"],
            recording.hashes(["a/helper.py"])["a/helper.py"],
        )
        files = {"a/helper.py": {"ground": "meaning", "was": was, "now": now}}
        metadata["restamped"] = [{"from": metadata["commit"], "to": head, "files": files}]
        metadata["sources"]["a/helper.py"] = now
        metadata["meanings"]["a/helper.py"] = recording.meanings(["a/helper.py"])["a/helper.py"]

    added.forge("a/add", forge)
    added.commit()
    assert added.load().stale() == []
    assert "its restamp 1: a/helper.py means something else" in problems(added)


@pytest.mark.parametrize("newer", [False, True], ids=["older", "newer"])
def test_a_meaning_that_is_written_over(small, newer):
    """Without any restamp: the recording says that the old text meant what the new one means."""
    small.record("a/add", *FIRST, **({"kernels": []} if newer else {}))
    small.edit("a/helper.py", "1000", "1001")
    assert problems(small) == [] and small.load().stale() == ["a/helper.py"]
    now = recording.meanings(["a/helper.py"])
    small.forge("a/add", lambda metadata, _: metadata["meanings"].update(now))
    small.commit()
    assert small.load().stale() == []
    (problem,) = problems(small)
    assert problem.startswith("a/helper.py did not mean at ")


@pytest.mark.parametrize("newer", [False, True], ids=["older", "newer"])
@pytest.mark.parametrize("restamped", [False, True], ids=["as it is", "restamped"])
def test_a_meaning_of_what_is_read_as_text(small, newer, restamped):
    """A program that reads a file as text sees its comments."""
    small.edit(
        "a/add.py", "add(n)", "add(n)\nprint(ct.paths.resolve_source('a/add.cu').read_text())"
    )
    small.record("a/add", *FIRST, **({"kernels": []} if newer else {}))
    read = lambda metadata, _: metadata["meanings"].pop("a/add.cu")  # noqa: E731
    small.forge("a/add", read)
    small.repository.git("add", "-A")
    small.repository.git("commit", "-q", "--amend", "-m", "x")
    meanings = recording.meanings(["a/add.cu"])
    small.edit("a/add.cu", *COMMENTED)
    assert small.load().stale() == ["a/add.cu"]
    assert small.restamp().refused[0].startswith("a/add.cu changed, and its text counts")
    small.forge("a/add", lambda metadata, _: metadata["meanings"].update(meanings))
    small.commit()
    assert small.load().stale() == []
    if restamped and newer:
        assert small.restamp().grounds == ("meaning",)
    assert any("its text" in problem for problem in problems(small))


def test_a_source_that_moved_has_meant_what_it_means_under_its_old_name(small):
    """The recording said nothing of the new one when it was made; that is no text that somebody reads."""
    small.record("a/add", *FIRST, kernels=[])
    small.move("a/helper.py", "b/helper.py")
    small.edit("a/add.py", "import helper\n", 'helper = ct.shared("b/helper")\n')
    outcome = small.restamp()
    assert outcome.grounds and not outcome.refused
    assert problems(small) == []


def test_restamps_of_a_squashed_branch(added):
    """The commit that a restamp names has to be there: whoever squashes restamps again."""
    before = added.repository.git("rev-parse", "HEAD")
    added.edit("a/add.cu", *COMMENTED)
    added.restamp()
    added.repository.git("reset", "-q", "--soft", before)
    added.commit()
    (problem,) = problems(added)
    assert "which is no commit before today's" in problem


def test_without_history_nothing_is_told(moved, tmp_path, monkeypatch, capsys):
    clone = tmp_path / "clone"
    moved.forge("a/add", FORGED["another ground"])
    moved.commit()
    moved.repository.git("clone", "-q", "--depth", "1", f"file://{moved.repository.root}", clone)
    monkeypatch.setenv("CUDATUT_EXAMPLES", str(clone / "examples"))
    accept.history.cache_clear()
    assert cli.main(["status"]) == 1
    out = capsys.readouterr().out
    assert "restamp" not in out.replace("`python -m cudatut restamp`", "") and "is shallow" in out


# --- by the machine code -------------------------------------------------------------------------------


@pytest.fixture
def inlined(added, compiler):
    """A recording whose kernel was rewritten: the header is gone, and the machine code is the same."""
    added.edit("a/add.cu", '#include "numbers.cuh"\n', "")
    added.edit("a/add.cu", "plus(x[i])", "1.0f + x[i]")
    added.commit(**{"a/numbers.cuh": None})
    outcome = added.restamp()
    assert outcome.grounds == ("code",), outcome
    return added


def test_the_same_machine_code(inlined):
    said = []
    assert problems(inlined) == []
    assert verify.compiled([inlined.load()], inlined.past, said.append) == []
    assert said == ["1: recordings/nvidia-test/a/add.ipynb: the same code"]
    assert verify.compiled([inlined.load()], inlined.past, said.append, seconds=-1) == []
    assert said[-1].startswith("0 restamps were compared, drawn by the seed 0; 1 were not")


def test_with_a_limit_of_time_only_what_is_compared_is_compiled(inlined, monkeypatch):
    expected = []
    monkeypatch.setattr(
        verify, "_expect", lambda compiler, steps: expected.append(len(list(steps)))
    )
    verify.compiled([inlined.load()], inlined.past, lambda line: None, seconds=-1)
    assert expected == []
    verify.compiled([inlined.load()], inlined.past, lambda line: None, seconds=60)
    assert expected == [1], "a commit's kernels, when their turn comes"
    verify.compiled([inlined.load()], inlined.past, lambda line: None)
    assert expected == [1, 1, 1], "all of them at once, and then each commit's"


def test_another_machine_code_is_told_by_the_compiler_alone(inlined, monkeypatch, capsys):
    """Who forges such a restamp, by a restamp without its compiler, passes the hashes."""
    inlined.edit("a/add.cu", "1.0f", "2.0f")
    refused = inlined.restamp().refused
    assert refused == ("a/add.cu: the code of 1 kernels is another, such as add",)
    monkeypatch.setattr(accept.machine_code, "differences", lambda *parts: [])
    assert inlined.restamp().grounds == ("code",)
    monkeypatch.undo()
    monkeypatch.setenv("CUDATUT_EXAMPLES", str(inlined.root))
    assert problems(inlined) == []
    inlined.commit(**{"b/read.py": None})
    assert cli.main(["status"]) == 0
    assert cli.main(["status", "--compile"]) == 1
    out = capsys.readouterr().out
    assert (
        "recordings/nvidia-test/a/add.ipynb: its restamp 2: a/add.cu: the code of 1 kernels is another"
        in out
    )


def test_a_recording_is_read_as_json_alone(inlined):
    """Indented otherwise it is the same recording."""
    path = inlined.load().path
    path.write_text(json.dumps(json.loads(path.read_text())))
    assert problems(inlined) == []
