"""restamp accepts what changed without effect, refuses what did not, and writes nothing by halves."""

import json
import os
import subprocess
import sys

import pytest

from cudatut import recording, tool
from cudatut.errors import CudatutError
from cudatut.restamp import accept, verify
from cudatut.restamp.accept import restamp


def test_nothing_to_do(added):
    before = added.load().path.read_bytes()
    assert restamp([added.load()]) == []
    assert added.load().path.read_bytes() == before


def test_a_comment(added):
    """The text of the notebook is today's, what was measured is untouched, and the recording says what happened."""
    was, before = added.repository.git("rev-parse", "HEAD"), added.load()
    head = added.edit("a/add.py", "# of both arrays", "# of x and y")
    assert added.load().rewritten() == ["a/add.py"] and added.load().stale() == []
    outcome = added.restamp()
    assert (outcome.grounds, outcome.refused) == (("meaning",), ())
    after = added.load()
    assert after.rewritten() == [] and not after.edited()
    assert "# of x and y" in after.cell("setup").source
    assert after.measurement() == before.measurement()
    assert after.cells[-1].outputs == before.cells[-1].outputs
    (entry,) = after.metadata["restamped"]
    assert (entry["from"], entry["to"]) == (before.metadata["commit"], head) != (was, head)
    assert entry["files"] == {
        "a/add.py": {
            "ground": "meaning",
            "was": before.metadata["sources"]["a/add.py"],
            "now": after.metadata["sources"]["a/add.py"],
        }
    }
    assert verify.problems(after, added.past) == []
    # The next one goes on from there.
    added.edit("a/helper.py", "What both have.", "What both share.")
    assert added.restamp().grounds == ("meaning",)
    assert [one["from"] for one in added.load().metadata["restamped"]] == [entry["from"], head]
    assert verify.problems(added.load(), added.past) == []


def test_a_comment_and_back(added):
    """The text is as it was, but the recording has told of the other one."""
    text = (added.root / "a/add.py").read_text()
    added.edit("a/add.py", "# of both arrays", "# of x and y")
    added.restamp()
    added.commit(**{"a/add.py": text})
    assert added.restamp().grounds == ("meaning",)
    assert verify.problems(added.load(), added.past) == []


def test_title_and_prose(added):
    added.edit("a/add.py", 'en: "Add"', 'en: "Sum"')
    added.edit("a/add.py", "One idea.", "Another thought.\n\n# %% [markdown]\n# Two.")
    assert added.restamp().grounds == ("meaning",)
    after = added.load()
    assert after.metadata["title"]["en"] == "Sum"
    assert [cell.source for cell in after.cells[1:3]] == ["Another thought.", "Two."]
    assert [cell.executed for cell in after.cells] == [False, False, False, True, True, True]


def test_a_comment_in_a_kernel_that_is_a_string(small):
    """It makes nothing stale; the page shows it once restamp has written it."""
    kernel = 'source = """\n// One.\n__global__ void k() {}\n"""\nk = ct.Kernel(source, "k")\n'
    script = (small.root / "b/read.py").read_text()
    small.commit(**{"b/read.py": script.replace("print(open('a/words.txt').read())", kernel)})
    small.record("b/read")
    small.edit("b/read.py", "// One.\n", "// Of no use.\n\n")
    one = recording.require_good("b/read")
    assert one.rewritten() and "// One." in one.cell("check").source
    assert small.restamp("b/read")["b/read"].grounds == ("meaning",)
    assert "// Of no use." in recording.require_good("b/read").cell("check").source


@pytest.mark.parametrize(
    ("name", "was", "now"),
    [
        ("a/add.py", "add(n)", "add(n + 1)"),
        ("a/add.py", '"add")\n', '"add", options=["-O1"])\n'),
        ("a/add.py", "# %% check\n", "# %% other\n"),
        ("a/helper.py", "1000", "1001"),
    ],
)
def test_what_python_does_otherwise(added, name, was, now):
    before = added.load().path.read_bytes()
    added.edit(name, was, now)
    assert added.load().stale() == [name]
    assert added.restamp().refused == (f"{name} means something else",)
    assert added.load().path.read_bytes() == before


def test_a_module_that_is_gone(added):
    added.edit("a/add.py", "import helper\n", "import a.helper2 as helper\n")
    added.move("a/helper.py", "a/helper2.py")
    added.commit(**{"a/helper2.py": "LENGTH = 1001\n"})
    refused = added.restamp().refused
    assert any(reason.startswith("a/helper.py is gone") for reason in refused)


def test_what_shows_the_numbers_of_lines_stays_as_it_is(small):
    """A comment moves the lines below it."""
    small.record("a/add", "a/helper.py", text="add.cu(12): error: expected a ;\n")
    small.edit("a/add.py", "# of both arrays", "# of x and y")
    assert small.load().stale() == ["a/add.py"]
    reason = "a/add.py changed, and outputs show the numbers of its lines"
    assert small.restamp().refused == (reason,)


def test_what_the_program_reads_as_text(small):
    small.record("b/read", "a/words.txt")
    small.commit(**{"a/words.txt": "two\n"})
    outcome = small.restamp("b/read")["b/read"]
    assert outcome.refused == ("a/words.txt changed, and its text counts: somebody reads it",)


def test_an_older_recording_without_meanings(added):
    """Made before a recording said what its sources mean: git knows them as they were."""
    added.forge("a/add", lambda metadata, _: metadata.pop("meanings"))
    added.commit()
    assert added.restamp().grounds == ("what its sources mean is written down",)
    said = added.load().metadata["meanings"]
    assert said == recording.meanings(added.load().metadata["sources"])
    assert "restamped" not in added.load().metadata
    # And where a comment has changed meanwhile.
    added.forge("a/add", lambda metadata, _: metadata.pop("meanings"))
    added.edit("a/helper.py", "What both have.", "What both share.")
    assert added.load().stale() == ["a/helper.py"]
    assert added.restamp().grounds == ("meaning",)
    assert added.load().stale() == [] and verify.problems(added.load(), added.past) == []


def test_a_recording_of_files_that_no_commit_had(small):
    """It is compared with the commit that brought it, which has its sources."""
    small.record("a/add", "a/helper.py", commit=f"{'1' * 40}-dirty")
    brought = small.repository.git("rev-parse", "HEAD")
    small.edit("a/add.py", "# of both arrays", "# of x and y")
    assert small.restamp().grounds == ("meaning",)
    assert small.load().metadata["restamped"][0]["from"] == brought
    assert small.load().metadata["commit"].endswith("-dirty")
    assert verify.problems(small.load(), small.past) == []


def test_a_recording_of_files_that_nobody_has(small):
    text = (small.root / "a/helper.py").read_text()
    (small.root / "a/helper.py").write_text("LENGTH = 7\n")
    notebook = small.notebook("a/add", "a/helper.py", text="x", commit="unknown")
    (small.root / "a/helper.py").write_text(text)
    small.write("a/add", notebook)
    small.commit()
    reason = "it was recorded at unknown, and no commit has its sources as they were then"
    assert small.restamp().refused == (reason,)


def test_an_edited_recording(added):
    path = added.load().path
    path.write_text(path.read_text().replace("13.0.88", "13.0.99"))
    added.edit("a/add.py", "# of both arrays", "# of x and y")
    before = path.read_bytes()
    assert added.restamp().refused == ("it was edited: its digest differs",)
    assert path.read_bytes() == before


def test_what_is_not_committed_is_named(added):
    before = added.load().path.read_bytes()
    (added.root / "a/add.py").write_text("x")
    (added.root / "a/new file.cu").write_text("x")
    with pytest.raises(CudatutError, match=r"commit first .*: examples/a/add\.py, examples/a/new"):
        restamp([added.load()])
    for n in range(4):
        (added.root / f"a/more{n}.py").write_text("x")
        with pytest.raises(CudatutError, match=r"and 1 more$" if n == 3 else r"\.(py|cu)$"):
            restamp([added.load()])
    assert added.load().path.read_bytes() == before


def test_a_recording_that_is_not_committed(small):
    commit = small.repository.git("rev-parse", "HEAD")
    small.write("a/add", small.notebook("a/add", "a/helper.py", text="x", commit=commit))
    small.edit("a/add.py", "# of both arrays", "# of x and y")
    small.repository.git("rm", "-q", "--cached", "recordings/nvidia-test/a/add.ipynb")
    small.repository.git("commit", "-q", "-m", "x")
    (outcome,) = restamp([small.load()])
    assert outcome.refused[0].startswith(
        "commit recordings/nvidia-test/a/add.ipynb first, so that its restamp"
    )
    small.commit()
    assert small.restamp().grounds == ("meaning",)


@pytest.mark.parametrize("commit", ["0" * 40, "unknown"])
def test_a_commit_that_is_none(small, commit):
    """Then the commits that brought the recording are looked at; here the first had its sources."""
    small.record("a/add", "a/helper.py", commit=commit)
    small.edit("a/add.py", "# of both arrays", "# of x and y")
    assert small.restamp().grounds == ("meaning",)


def test_a_commit_that_has_other_sources(small):
    first = small.repository.git("rev-parse", "HEAD")
    small.edit("a/helper.py", "1000", "2000")
    small.record("a/add", "a/helper.py", commit=first)
    small.edit("a/add.py", "# of both arrays", "# of x and y")
    (reason,) = small.restamp().refused
    assert reason == f"it was recorded at {first}, and no commit has its sources as they were then"


def test_without_history(added, tmp_path, monkeypatch):
    clone = tmp_path / "clone"
    added.edit("a/add.py", "# of both arrays", "# of x and y")
    added.repository.git("clone", "-q", "--depth", "1", f"file://{added.repository.root}", clone)
    monkeypatch.setenv("CUDATUT_EXAMPLES", str(clone / "examples"))
    accept.history.cache_clear()
    with pytest.raises(CudatutError, match=r"restamp compares .* shallow .*--unshallow"):
        restamp([recording.load("a/add")])


@pytest.mark.skipif(os.getuid() == 0, reason="root writes everywhere")
def test_where_nothing_can_be_written(added):
    added.edit("a/add.py", "# of both arrays", "# of x and y")
    folder = added.root / "a"
    folder.chmod(0o555)
    try:
        outcome = added.restamp()
    finally:
        folder.chmod(0o755)
    assert outcome.refused == (
        "recordings/nvidia-test/a/add.ipynb cannot be written: Permission denied",
    )


def test_a_disk_that_is_full(added, monkeypatch):
    added.edit("a/add.py", "# of both arrays", "# of x and y")
    before = added.load().path.read_bytes()

    def full(path, raw):
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(accept, "write_whole", full)
    reason = "recordings/nvidia-test/a/add.ipynb cannot be written: No space left on device"
    assert added.restamp().refused == (reason,)
    assert added.load().path.read_bytes() == before


def test_what_was_measured_cannot_be_touched(added, monkeypatch):
    """Were there a fault in it, restamp would rather refuse."""
    added.edit("a/add.py", "# of both arrays", "# of x and y")
    before = added.load().path.read_bytes()
    renew = accept.todays.renew

    def faulty(one, notebook):
        renew(one, notebook)
        notebook["cells"][-1]["outputs"].pop()

    monkeypatch.setattr(accept.todays, "renew", faulty)
    assert "would say otherwise what was measured" in added.restamp().refused[0]
    assert added.load().path.read_bytes() == before


def test_one_that_is_refused_stops_no_other(added):
    added.record("b/read", "a/words.txt")
    added.commit(**{"a/words.txt": "two\n"})
    added.edit("a/add.py", "# of both arrays", "# of x and y")
    said = []
    outcomes = restamp([recording.load(name) for name in ("b/read", "a/add")], said.append)
    assert [bool(one.refused) for one in outcomes] == [True, False]
    assert said[0].startswith("b/read: a/words.txt changed") and said[1] == "a/add: meaning"


def test_words_of_results_that_are_told_otherwise_today(added):
    """The JSON stays; what it says in words is said as today."""

    def older(metadata, notebook):
        data = notebook["cells"][-1]["outputs"][1]["data"]
        data["text/plain"] = "check sum: it passed, by and large"

    added.forge("a/add", older)
    added.commit()
    before = added.load()
    assert added.restamp().grounds == ("its results are told in today's words",)
    after = added.load()
    shown = [one.cell("check").outputs[1]["data"] for one in (before, after)]
    assert shown[1].pop("text/plain").startswith("check sum: passed")
    shown[0].pop("text/plain")
    assert shown[0] == shown[1] and after.measurement() == before.measurement()
    assert restamp([added.load()]) == []


def test_the_order_of_lines_is_no_word(added):
    """A notebook's file sorts the keys of its JSON; the text has kept the order in which they were shown."""

    def turned(metadata, notebook):
        data = notebook["cells"][-1]["outputs"][1]["data"]
        data["text/plain"] = " ".join(reversed(data["text/plain"].split()))

    added.forge("a/add", turned)
    added.commit()
    assert restamp([added.load()]) == []


def test_results_of_another_gpu(added):
    slim = json.loads(added.load().path.read_text())
    slim["cells"] = [cell for cell in slim["cells"] if cell["id"] == "check"]
    metadata = slim["metadata"]["cudatut"]
    metadata |= {"slim": True, "sanitizers": []}
    path = recording.slim_path("NVIDIA Test", "a/add")
    made = recording.parse("a/add", path, json.dumps(slim).encode())
    metadata["digest"] = made.digest()
    path.write_text(json.dumps(slim))
    added.edit("a/add.py", "# of both arrays", "# of x and y")
    before = recording.parse("a/add", path, path.read_bytes())
    (outcome,) = restamp([before])
    assert (outcome.path, outcome.grounds) == (path, ("meaning",))
    after = recording.parse("a/add", path, path.read_bytes())
    assert after.cells == before.cells and after.rewritten() == []
    added.commit()
    assert verify.problems(after, added.past) == []


def test_the_command(added):
    added.edit("a/add.py", "# of both arrays", "# of x and y")

    def run(*arguments):
        command = [sys.executable, "-m", "cudatut", *arguments]
        done = subprocess.run(command, capture_output=True, text=True, env=tool.environment())
        return done.returncode, done.stdout, done.stderr

    assert run("restamp") == (0, "a/add: meaning\n1 restamped, 0 need a GPU\n", "")
    added.edit("a/helper.py", "1000", "1001")  # which commits the recording, too
    status, out, _ = run("restamp", "a")
    assert status == 1 and out.endswith("0 restamped, 1 need a GPU\n")
    (added.root / "a/add.py").write_text("x")
    status, out, said = run("restamp")
    assert (status, out) == (2, "") and said.startswith("cudatut: commit first what you changed")


def test_what_a_notebook_asks_colab_for_is_as_today(added):
    """Older ones ask for a T4, whatever they require; no digest covers it."""

    def older(metadata, notebook):
        notebook["metadata"]["colab"] = {"gpuType": "T4"}

    added.forge("a/add", older)
    added.commit()
    before = added.load()
    assert before.colab == "T4" and not before.edited()
    said = ("its notebook asks Colab for H100, and no more for T4",)
    assert added.restamp().grounds == said
    after = added.load()
    assert after.colab == "H100" and after.digest() == before.digest() and not after.edited()
    assert after.metadata == before.metadata
    assert restamp([added.load()]) == []
