"""The ledger of the instrument: a changed file needs a raise or a reason, and a raise makes stale what used it."""

import re

import pytest
import yaml

from cudatut import instrument
from cudatut.errors import CudatutError
from cudatut.fingerprint.meaning import meaning_hash

CHECK = "def check(a, b):\n    return abs(a - b) <= 1e-5  # the tolerance\n"
TIMING = "from cudatut import errors\nfrom cudatut.gpu.check import check\nimport numpy\n\ndef time(): pass\n"


class Ledger:
    """A package of two files that measure, and its ledger."""

    def __init__(self, root, monkeypatch):
        self.root, self.path = root, root / "instrument.yml"
        monkeypatch.setattr(instrument, "LEDGER", self.path)
        (root / "gpu").mkdir()
        self.file("errors.py", "")
        self.file("gpu/check.py", CHECK)
        self.file("gpu/timing.py", TIMING)
        self.numbers = {"timing": 1, "checking": 1, "profiling": 1}
        self.files = {
            "gpu/check.py": {"of": ["checking", "timing"], "meaning": self.meaning("gpu/check.py")},
            "gpu/timing.py": {"of": ["timing"], "meaning": self.meaning("gpu/timing.py")},
        }
        self.same, self.apart = [], {"errors.py": "kinds of errors"}
        self.write()

    def file(self, name, text):
        (self.root / name).write_text(text)

    def meaning(self, name):
        return meaning_hash(name, (self.root / name).read_bytes())

    def write(self):
        what = {name: getattr(self, name) for name in ("numbers", "files", "same", "apart")}
        self.path.write_text(yaml.safe_dump(what))
        instrument.ledger.cache_clear()


@pytest.fixture
def ledger(tmp_path, monkeypatch):
    yield Ledger(tmp_path, monkeypatch)
    instrument.ledger.cache_clear()


def test_the_books_instrument_is_as_its_ledger_says():
    assert list(instrument.problems()) == []
    assert set(instrument.files()) >= {instrument.LEDGER}
    assert all(path.is_file() for path in instrument.files())


def test_a_comment_in_the_instrument_is_no_change(ledger):
    ledger.file("gpu/check.py", CHECK.replace("# the tolerance", "# how near"))
    assert list(instrument.problems()) == []


def test_a_changed_file_needs_a_raise_or_a_reason(ledger):
    ledger.file("gpu/check.py", CHECK.replace("1e-5", "1e5"))
    (problem,) = instrument.problems()
    assert problem.startswith("cudatut/gpu/check.py means something else than when")
    assert "raise checking and timing in cudatut/instrument.yml" in problem
    # What it says to do is what mends it: an entry with the meaning that it names ...
    (now,) = re.findall(r"meaning: (\w{64})", problem)
    entry = {"file": "gpu/check.py", "meaning": now, "why": "the tolerance is written otherwise"}
    ledger.same = [entry]
    ledger.write()
    assert list(instrument.problems()) == []
    # ... or a raise, with the meaning in place of the old one.
    ledger.same, ledger.numbers["checking"] = [], 2
    ledger.files["gpu/check.py"]["meaning"] = now
    ledger.write()
    assert list(instrument.problems()) == []


def test_the_last_entry_counts(ledger):
    was = ledger.meaning("gpu/check.py")
    ledger.file("gpu/check.py", CHECK.replace("1e-5", "1e-6"))
    entry = {"file": "gpu/check.py", "meaning": ledger.meaning("gpu/check.py"), "why": "unused"}
    ledger.same = [entry]
    ledger.write()
    ledger.file("gpu/check.py", CHECK)
    assert len(list(instrument.problems())) == 1
    ledger.same.append({"file": "gpu/check.py", "meaning": was, "why": "as it was"})
    ledger.write()
    assert list(instrument.problems()) == []


def test_a_file_that_is_gone(ledger):
    (ledger.root / "gpu/timing.py").unlink()
    (problem,) = instrument.problems()
    assert "gpu/timing.py" in problem and "meaning: None" in problem


@pytest.mark.parametrize(
    "line",
    [
        "import cudatut.gpu.flush",
        "from cudatut.gpu import flush",
        "from cudatut.gpu.flush import flush",
        "def later():\n    from cudatut.gpu.flush import flush",
    ],
)
def test_a_part_that_moves_out_of_the_instrument_stays_of_it(ledger, line):
    """Else its next change would be nobody's."""
    ledger.file("gpu/flush.py", "def flush(): pass\n")
    ledger.file("gpu/timing.py", f"{TIMING}{line}\n")
    ledger.files["gpu/timing.py"]["meaning"] = ledger.meaning("gpu/timing.py")
    ledger.write()
    (problem,) = instrument.problems()
    assert problem.startswith(
        "cudatut/gpu/timing.py imports cudatut/gpu/flush.py, and cudatut/inst"
    )
    ledger.files["gpu/flush.py"] = {"of": ["timing"], "meaning": ledger.meaning("gpu/flush.py")}
    ledger.write()
    assert list(instrument.problems()) == []


def test_what_lies_beside_the_instrument_is_told(ledger):
    """A kernel of a probe, or a module that examples call."""
    ledger.file("gpu/__init__.py", "")
    ledger.file("gpu/probe.cu", "__global__ void probe() {}\n")
    (problem,) = instrument.problems()
    assert problem.startswith("cudatut/gpu/probe.cu lies beside the instrument, and cudatut/inst")
    ledger.apart["gpu/probe.cu"] = "nobody launches it"
    ledger.write()
    assert list(instrument.problems()) == []


def test_what_a_recording_carries(ledger):
    assert instrument.used([]) == {"numbers": {}, "files": {}}
    check = {"gpu/check.py": ledger.meaning("gpu/check.py")}
    assert instrument.used(["checking"]) == {"numbers": {"checking": 1}, "files": check}
    both = instrument.used(["timing", "checking", "timing"])
    assert both["numbers"] == {"checking": 1, "timing": 1}
    assert both["files"] == check | {"gpu/timing.py": ledger.meaning("gpu/timing.py")}


def test_a_raise_makes_stale_what_used_it(ledger):
    checked, timed = instrument.used(["checking"]), instrument.used(["timing"])
    assert (instrument.outdated(checked), instrument.outdated(timed)) == ([], [])
    ledger.numbers["timing"] = 2
    ledger.write()
    assert instrument.outdated(checked) == []
    assert instrument.outdated(timed) == ["timing 1, now 2"]
    assert instrument.outdated({}) == []  # of an older recording it is not known


def test_who_writes_over_a_meaning_instead_of_raising_is_found_out(ledger):
    """The recordings carry the meaning that a file had when it measured."""
    checked = instrument.used(["checking"])
    ledger.file("gpu/check.py", CHECK.replace("1e-5", "1e5"))
    ledger.files["gpu/check.py"]["meaning"] = ledger.meaning("gpu/check.py")
    ledger.write()
    assert list(instrument.problems()) == []
    (problem,) = instrument.outdated(checked)
    assert problem.startswith("gpu/check.py, of which instrument.yml does not know")
    # An entry for what the file meant before is a reason, too.
    entry = {"file": "gpu/check.py", "meaning": checked["files"]["gpu/check.py"], "why": "x"}
    ledger.same = [entry]
    ledger.write()
    assert instrument.outdated(checked) == []


def test_a_file_that_left_the_ledger_is_not_known(ledger):
    timed = instrument.used(["timing"])
    del ledger.files["gpu/check.py"]
    ledger.write()
    assert instrument.outdated(timed)[0].startswith("gpu/check.py")


def test_a_file_may_be_of_every_aspect(ledger):
    ledger.files["gpu/check.py"]["of"] = ["timing", "checking", "profiling"]
    ledger.write()
    assert instrument.ledger()["files"] == ledger.files


@pytest.mark.parametrize(
    "damage",
    [
        lambda one: one.numbers.pop("timing"),
        lambda one: one.numbers.update(speed=1),
        lambda one: one.numbers.update(timing=0),
        lambda one: one.numbers.update(timing="1"),
        lambda one: one.files["gpu/check.py"].update(of=["speed"]),
        lambda one: one.files["gpu/check.py"].update(meaning=""),
        lambda one: one.same.append({"file": "gpu/check.py", "meaning": "0", "why": "  "}),
        lambda one: one.same.append({"file": "gpu/check.py", "meaning": "0"}),
        lambda one: one.same.append("gpu/check.py"),
        lambda one: one.apart.update({"paths.py": ""}),
    ],
)
def test_what_is_no_ledger_is_refused(ledger, damage):
    damage(ledger)
    ledger.write()
    with pytest.raises(CudatutError, match=r"instrument\.yml is no ledger of the instrument"):
        instrument.ledger()


def test_of_which_aspects_a_recording_says_too_little(ledger):
    """It has to name one file behind each aspect."""
    check, timing = {"gpu/check.py": "a"}, {"gpu/timing.py": "a"}
    says = "it does not say which files were behind"
    asked = {"numbers": {"timing": 1, "checking": 1}}
    assert list(instrument.unsaid({})) == []
    assert list(instrument.unsaid(asked | {"files": check})) == []
    assert list(instrument.unsaid(asked | {"files": timing})) == [f"{says} checking"]
    assert list(instrument.unsaid(asked | {"files": {}})) == [f"{says} timing", f"{says} checking"]


def test_all_raises_are_told_and_then_no_file(ledger):
    used = instrument.used(["timing", "checking"])
    ledger.numbers |= {"timing": 2, "checking": 3}
    ledger.file("gpu/check.py", CHECK.replace("1e-5", "1e5"))
    ledger.write()
    assert instrument.outdated(used) == ["checking 1, now 3", "timing 1, now 2"]
    assert instrument.outdated({"numbers": {"gone": 1}, "files": {}}) == ["gone 1, now None"]


def test_what_two_files_import_is_told_once(ledger):
    for name in ("gpu/check.py", "gpu/timing.py"):
        text = (ledger.root / name).read_text()
        ledger.file(name, f"{text}import cudatut.words\nimport cudatut\nfrom . import x\n")
        ledger.files[name]["meaning"] = ledger.meaning(name)
    ledger.file("words.py", "")
    ledger.write()
    (problem,) = instrument.problems()
    assert problem.startswith("cudatut/gpu/check.py imports cudatut/words.py, and")
    assert "List it under 'files', or under 'apart' with the reason" in problem


@pytest.mark.parametrize(
    ("name", "text", "told"),
    [
        ("gpu/more.py", "x = 1\n", True),
        ("gpu/more.py", "\n", False),
        ("gpu/more.py", "xy", True),
        ("gpu/more.txt", "words\n", False),
        ("more.py", "x = 1\n", False),
    ],
)
def test_which_files_lie_beside_the_instrument(ledger, name, text, told):
    ledger.file(name, text)
    found = [problem.partition(" lies")[0] for problem in instrument.problems()]
    assert found == ([f"cudatut/{name}"] if told else [])


def test_the_files_of_the_instrument_and_what_they_mean(ledger):
    names = ["gpu/check.py", "gpu/timing.py"]
    assert instrument.files() == [ledger.path, *(ledger.root / name for name in names)]
    assert instrument.meaning("gpu/check.py") == ledger.meaning("gpu/check.py")
    assert instrument.meaning("gpu/gone.py") is None
    assert list(instrument.used(["timing"])["files"]) == names
    assert list(instrument.used(["timing", "checking"])["numbers"]) == ["checking", "timing"]
