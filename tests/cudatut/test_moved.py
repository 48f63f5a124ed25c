"""`python -m cudatut moved`: which numbers new recordings changed, and which sentences say so."""

import json
import math
import shutil

import pytest

from cudatut import cli, failures
from cudatut.errors import CudatutError
from cudatut.recording import MissingRecordingError
from cudatut.results import MIME
from cudatut.site import state
from cudatut.site.moved import citations, numbers, report
from cudatut.site.moved.report import moved
from cudatut.site.moved.section import Section
from cudatut.site.moved.snapshot import Snapshot, name_of

PAGE = """---
title: Add
---

# Add

It has one thread. It reaches {{ start/add#bench["one thread"].value :.1f }} GB/s, or {{ 2 * start/add#bench.1["one thread"].median_us :.0f }} µs. Then more.

`{{ start/add#bench["one thread"].value :.3f }}` is how it is written.

```example
start/add#bench
```
"""
FIGURE = """def draw():
    return references.value('start/add#bench["one thread"].value')
"""
ADD = ("start/add", "# %% setup\n# %% bench\n")


class Made:
    """A checkout with a book of one example and its pages, committed once."""

    def __init__(self, repository, book):
        self.repository, self.book = repository, book
        book.example(*ADD)
        for path, text in {
            "docs/en/start/add.md": PAGE,
            "docs/zh/start/add.md": PAGE.replace("It has one thread. ", "只有一个线程。"),
            "docs/figures/start/add.py": FIGURE,
        }.items():
            (repository.root / path).parent.mkdir(parents=True, exist_ok=True)
            (repository.root / path).write_text(text, encoding="utf-8")
        self.record()
        repository.commit()

    def record(self, change=lambda cell, metadata: None, name="start/add"):
        """A recording as it was, but for what `change` does to its cell `bench` and its metadata."""
        notebook = self.book.notebook(name)
        change(notebook["cells"][3], notebook["metadata"]["cudatut"])
        return self.book.recorded(name, notebook, agree=False)

    def told(self, least=0.02, most=None, names=()):
        return moved("HEAD", None, frozenset(names), least, most)


@pytest.fixture
def made(repository, book, monkeypatch):
    book.root = repository.root / "examples"
    monkeypatch.setenv("CUDATUT_EXAMPLES", str(book.root))
    return Made(repository, book)


def row(**values):
    """A change of the one row of the benchmark."""
    return lambda cell, metadata: cell["outputs"][1]["data"][MIME]["rows"][0].update(values)


def shows(*results):
    """A change: the cell shows these before what it showed."""

    def change(cell, metadata):
        outputs = [
            {"output_type": "display_data", "metadata": {}, "data": {MIME: r}} for r in results
        ]
        cell["outputs"] = outputs + cell["outputs"]

    return change


def rows(text, of="start/add#bench"):
    return [line for line in text.splitlines() if line.startswith("| `") and of in line]


def facts(name, **values):
    found = [{"name": key, "value": value, "unit": None} for key, value in values.items()]
    return {"kind": "facts", "title": name, "rows": found}


def test_a_sentence_that_reads_otherwise(made):
    made.record(row(value=5.0, median_us=1.6))
    text = made.told()
    assert "Recordings: 1 measured anew." in text
    rate, time, figure, table = rows(text)
    assert '| `start/add#bench["one thread"].value :.1f` | 4.0 → 5.0 | 1.250× |' in rate
    assert "docs/en/start/add.md:7, docs/zh/start/add.md:7" in rate
    assert rate.endswith("| It reaches ~~4.0~~ **5.0** GB/s, or 3 µs. |")  # this sentence alone
    assert figure.endswith("| 4 → 5 | 1.250× | docs/figures/start/add.py:2 |  |")  # no sentence
    assert "| 4 → 3 | 0.800× |" in time and "or ~~4~~ **3** µs. |" in time
    # The table that the page shows: its rate, not the time beside it.
    assert table.endswith("| 4 → 5 | 1.250× | docs/en/start/add.md:12, docs/zh/start/add.md:12 |")
    assert "take 3 numbers from these recordings; 3 of them read otherwise" in text


def test_what_reads_the_same_is_counted(made):
    made.record(row(value=4.01, median_us=2.01))
    text = made.told()
    assert "take 3 numbers from these recordings; 1 of them read otherwise" in text
    (figure,) = rows(text)
    assert "docs/figures" in figure and "4 → 4.01" in figure
    assert len(rows(made.told(least=0.001))) == 2  # the table's, too


def test_what_was_not_measured_anew_is_not_told(made):
    def restamp(cell, metadata):
        metadata["title"] = {"en": "Other", "zh": "其他"}
        metadata["sources"]["start/add.cu"] = "0" * 64

    assert made.record(restamp).read_bytes() != b""
    assert made.told() == "# What moved\n\nRecordings: none was measured anew.\n"


def test_a_result_is_found_by_its_name(made):
    """One that came before it makes no other move."""
    made.record(shows(facts("sizes", n=3)))
    sentence, new = rows(made.told())
    assert "`start/add#bench (facts sizes)` | – → there |" in new
    # What a sentence asks for by its number is no longer there.
    assert "`2 * start/add#bench.1" in sentence and "| 4 → – |" in sentence
    made.record(shows(facts("first", n=3)))
    made.repository.commit()
    made.record(shows(facts("other", n=4)))
    assert [line.split("|")[1:3] for line in rows(made.told())] == [
        [" `start/add#bench (facts other)` ", " – → there "],
        [" `start/add#bench (facts first)` ", " there → – "],
    ]


def test_results_of_one_name(made):
    made.record(shows(facts("found", n=3), facts("found", n=5)))
    made.repository.commit()
    made.record(shows(facts("found", n=4), facts("found", n=5)))
    (one,) = rows(made.told())
    assert '`start/add#bench["n"].value` | 3 → 4 |' in one


def test_a_sentence_may_begin_and_end_with_its_number():
    line = "It ends. {{ a/b#c.d }} µs remain. Of these are {{ a/b#c.e }}. That is all."
    assert [one.sentence for one in citations._cited(line, "p:1")] == [
        "{{ a/b#c.d }} µs remain.",
        "Of these are {{ a/b#c.e }}.",
    ]
    (one,) = citations._cited("{{ a/b#c.d }}", "p:1")  # and so may a line
    assert one == citations.Citation("a/b#c.d", "p:1", "{{ a/b#c.d }}")


def test_only_what_is_in_code_is_no_citation():
    def cited(line):
        return [one.body for one in citations._cited(line, "p:1")]

    assert cited("`n`{{ a/b#c.d }}`m`") == ["a/b#c.d"]
    assert cited("`{{ a/b#c.d }}`") == cited("{{ 2 * 3 }}") == []
    assert cited("`{{ a/b#c.d }}` is {{ a/b#c.e }}") == ["a/b#c.e"]


def test_while_a_snapshot_is_read_the_build_waits(made):
    outside = state.current()
    with pytest.raises(ZeroDivisionError), citations.reading(Snapshot("HEAD")):
        assert state.current() is not outside
        _ = 1 / 0
    assert state.current() is outside


def test_a_full_stop_between_braces_ends_no_sentence(made):
    page = made.repository.root / "docs" / "en" / "start" / "add.md"
    one, two = (f'{{{{ start/add#bench["no. {n}"].value }}}}' for n in (1, 2))
    page.write_text(f"First. Kernel {one} wins over {two}. Last.", "utf-8")
    made.record(shows(facts("found", **{"no. 1": 3, "no. 2": 5})))
    made.repository.commit()
    made.record(shows(facts("found", **{"no. 1": 4, "no. 2": 6})))
    text = made.told()
    assert "| docs/en/start/add.md:1 | Kernel ~~3~~ **4** wins over 6. |" in text
    assert "| docs/en/start/add.md:1 | Kernel 4 wins over ~~5~~ **6**. |" in text


def test_words_always_and_of_a_line_the_farthest_point(made):
    def sweep(one, two):
        axis = {"name": "n", "unit": "1"}
        lines = {"a": [[1, one], [2, two]], "b": [[1, 5.0]]}
        title = {"kind": "series", "title": "s", "limit": None, "lines": lines}
        return title | {"x": axis, "y": axis, "foreground": None}

    made.record(shows(facts("found", word="slow <b>", n=100), sweep(10.0, 10.0)))
    made.repository.commit()
    made.record(shows(facts("found", word="fast", n=101), sweep(20.0, 11.0)))
    assert [line.split("|")[1:4] for line in rows(made.told())] == [
        [' `start/add#bench["word"].value` ', " slow &lt;b&gt; → fast ", "  "],
        [' `start/add#bench.lines["a"] at 1` ', " 10 → 20 ", " 2.000× "],
    ]


def test_new_gone_failed_and_unreadable(made):
    for name in ("start/new", "start/old", "start/cut"):
        made.book.example(name, ADD[1])
    cut, old = made.record(name="start/cut"), made.record(name="start/old")
    made.book.file("start/add_exercises.ipynb", "{}")  # a notebook, and no recording
    made.repository.commit()
    made.record(name="start/new")
    old.unlink()
    cut.write_text(cut.read_text()[:100])
    made.book.file("start/add_exercises.ipynb", '{"cells": []}')
    failures.keep("start/add", "a traceback\nstart/add: cell 'bench' raised ValueError")
    text = made.told()
    assert "Recordings: 1 new, 1 gone." in text
    assert "## New\n\n- start/new\n" in text and "## Gone\n\n- start/old\n" in text
    assert "## Could not be recorded\n\n- start/add: start/add: cell 'bench' raised" in text
    assert "## Cannot be read\n\n- recordings/nvidia-test/start/cut.ipynb is no recording" in text
    assert "exercises" not in text
    assert "Could not be recorded" not in moved("HEAD", "HEAD", frozenset(), 0.02, None)


def test_another_machine_is_told(made):
    made.record(lambda cell, metadata: metadata["gpu"].update(driver="590.2"))
    told = "| NVIDIA Test, driver 580.1, CUDA 13.0 | NVIDIA Test, driver 590.2, CUDA 13.0 | start/add |"
    assert told in made.told()
    made.record(row(value=5.0))
    assert "Measured on something else" not in made.told()


def test_another_gpu(made):
    made.book.slim("start/add")
    made.repository.commit()
    notebook = made.book.notebook("start/add")
    row(value=8.0)(notebook["cells"][3], None)
    made.book.slim("start/add", notebook=notebook)
    (table,) = rows(made.told(), "nvidia-other/start/add#bench")
    assert "| 4 → 8 | 2.000× | docs/en/start/add.md:12" in table
    assert "read again" not in made.told()  # sentences have the book's own numbers
    for name in ("start/add", "nvidia-other/start/add"):  # as an example, and as a recording
        assert rows(made.told(names=[name]), "nvidia-other/start/add#bench") == [table]


def test_recordings_lay_elsewhere_before(made):
    """Beside their examples, or in results/: at a commit of that time they are the same recordings."""
    made.record(row(value=5.0))
    root, today = made.repository.root, made.book.whole("start/add")
    slim = made.book.slim("start/add")
    made.repository.commit()
    before = {today: "examples/start/add.ipynb", slim: "results/nvidia-other/start/add.json"}
    for path, place in before.items():
        (root / place).parent.mkdir(parents=True, exist_ok=True)
        path.rename(root / place)
    old = made.repository.commit()
    for path, place in before.items():
        path.parent.mkdir(parents=True, exist_ok=True)
        (root / place).rename(path)
    assert moved(old, None, frozenset(), 0.02, None) == moved(old, old, frozenset(), 0.02, None)
    made.record(row(value=6.0))
    assert "5.0 → 6.0" in moved(old, None, frozenset(), 0.02, None)
    today.unlink()
    slim.unlink()
    gone = "## Gone\n\n- nvidia-other/start/add\n- start/add\n"
    assert gone in moved(old, None, frozenset(), 0.02, None)


def test_a_recording_on_another_gpu_is_of_the_same_example(made):
    path = made.record()
    made.record(lambda cell, metadata: metadata["gpu"].update(name="NVIDIA Z1"))
    path.unlink()
    assert "| NVIDIA Test, driver 580.1, CUDA 13.0 | NVIDIA Z1, driver" in made.told()


def test_names(made):
    made.book.example("start/two", ADD[1])
    made.record(name="start/two")
    made.record(row(value=5.0))
    assert "start/two" in made.told() and "start/two" not in made.told(names=["start/add"])


@pytest.mark.parametrize("most", [400, 1200, 2000])
def test_a_report_of_a_limited_length(made, most):
    """A pull request holds 65,536 characters."""
    values = {f"number {i}": 1 for i in range(40)}
    made.record(shows(facts("many", **values)))
    made.repository.commit()
    made.record(shows(facts("many", **dict.fromkeys(values, 2))))
    whole, cut = made.told(), made.told(most=most)
    assert len(cut) <= most < len(whole)
    shown = len(rows(cut))
    assert shown == 0 if most < 500 else 0 < shown < 40
    assert (f"{40 - shown} more: `python" if shown else "1 more sections: `python") in cut
    assert set(cut.splitlines()) - set(whole.splitlines()) <= {
        line for line in cut.splitlines() if "prints all" in line
    }
    assert cut.count("<details>") == cut.count("</details>")
    assert made.told(most=len(whole) + 500) == whole


def test_a_list_that_is_too_long(made):
    """What cannot be cut by rows is left out, and counted."""
    for number in range(30):
        made.book.example(f"start/new_{number}", ADD[1])
        made.record(name=f"start/new_{number}")
    assert made.told().count("start/new_") == 30
    assert made.told(most=400).splitlines()[2:] == [
        "Recordings: 30 new.",
        "",
        "1 more sections: `python -m cudatut moved` prints all.",
    ]


def test_two_commits(made):
    was = made.repository.git("rev-parse", "HEAD")
    made.record(row(value=5.0))
    now = made.repository.commit()
    made.record(row(value=9.0))
    text = moved(was, now, frozenset(), 0.02, None)
    assert "4.0 → 5.0" in text and "9.0" not in text


def test_no_commit_to_compare_with(made, tmp_path):
    with pytest.raises(CudatutError, match="nonsense is no commit here; give a hash"):
        moved("nonsense", None, frozenset(), 0.02, None)
    shutil.rmtree(made.repository.root / ".git")
    with pytest.raises(CudatutError, match="no commit to compare with: this is no clone"):
        made.told()


def test_the_command(made, capsys):
    made.record(row(value=4.2))
    outside = state.current()
    assert cli.main(["moved", "start", "--least", "10"]) == 0
    assert "4.0 → 4.2" in (said := capsys.readouterr().out) and "<details>" not in said
    assert cli.main(["moved", "start/add"]) == 0
    assert "<details><summary>start/add: 1 value moved by more than 2 %" in capsys.readouterr().out
    assert state.current() is outside
    assert cli.main(["moved", "--before", "nonsense"]) == 2
    assert json.dumps(capsys.readouterr().err).count("\\n") == 1


@pytest.mark.parametrize(
    ("before", "after", "ratio", "far"),
    [
        (4.0, 5.0, 1.25, 1.25),
        (4, 2, 0.5, 2.0),
        (2, 2, 1.0, 1.0),
        (-2, -4, 2.0, 2.0),
        (-2, 4, -2.0, math.inf),
        (0, 4, None, math.inf),
        (4, 0, 0.0, math.inf),
        (True, 4, None, math.inf),
        (4, False, None, math.inf),
        ("a", 4, None, math.inf),
        (None, 4, None, math.inf),
    ],
)
def test_how_far_a_value_moved(before, after, ratio, far):
    move = numbers.Move("a/b#c", "a/b#c.d", before, after)
    assert (move.ratio, move.far) == (ratio, far)


def test_the_least_that_is_told_is_more_than_so_much():
    at = [numbers._Place(at) for at in (".same", ".just", ".more", ".new", ".gone")]
    old = dict(zip(at[:3], (4, 4, 4))) | {at[4]: 1}
    new = dict(zip(at[:4], (4, 5, 6, 1)))
    found = numbers._moves("a/b#c", old, new, 0.25)
    assert {one.label: one.text() for one in found} == {
        "a/b#c.more": "4 → 6",
        "a/b#c.new": "– → 1",
        "a/b#c.gone": "1 → –",
    }


def test_of_points_that_moved_as_far_the_first_is_told():
    points = [numbers._Place('.lines["a"]', x) for x in (1, 2, 3)]
    old, new = dict.fromkeys(points, 2), dict(zip(points, (2, 4, 1)))
    (one,) = numbers._moves("a/b#c", old, new, 0.02)
    assert (one.label, one.cell) == ('a/b#c.lines["a"] at 2', "a/b#c")


def test_what_a_table_shows_beside_its_number_is_not_told():
    row = {"name": "r", "median_us": 2.0, "p20_us": 1.0, "of_peak": 0.5, "value": 4.0}
    rate = {"kind": "benchmark", "name": "b", "unit": "GB/s", "peak": 8.0, "rows": [row]}
    assert '["r"].value' in (told := {one.at for one in numbers._values(rate)})
    assert not [at for at in told if at.endswith(("median_us", "p20_us", "of_peak"))]
    row["value"] = None
    assert '["r"].median_us' in {one.at for one in numbers._values(rate)}
    claim = {"kind": "claim", "name": "c", "measured": [1, 2]}
    assert numbers._values(claim)[numbers._Place(".measured")] == (1, 2)


def test_a_section_is_cut_at_whole_rows():
    rows = [(str(n), "x" * 20) for n in range(5)]
    made = Section("Title", ["A line."], rows, ("n", "what"))
    table = "| n | what |\n| --- | --- |\n"
    shown = [f"| {n} | {'x' * 20} |" for n in range(5)]
    whole = f"## Title\n\nA line.\n\n{table}" + "\n".join(shown) + "\n"
    assert made.markdown() == whole == made.markdown(10_000)
    head = sum(map(len, ("A line.", "Title", "| n | what |", "n", "what")))
    for fit in range(6):
        room = 100 + head + fit * (len(shown[0]) + 1)
        assert len(rows_in(made.markdown(room))) == fit
        assert fit == 0 or len(rows_in(made.markdown(room - 1))) == fit - 1
        assert (f"\n\n{5 - fit} more: `python -m" in made.markdown(room)) == (fit < 5)
    assert "| n |" not in made.markdown(100)  # without rows it has no head
    folded = Section("Title", [], [("a|b", "c")], ("n", "what"), folded=True).markdown()
    assert folded == (f"<details><summary>Title</summary>\n\n{table}| a\\|b | c |\n\n</details>\n")


def rows_in(markdown):
    return [line for line in markdown.splitlines() if "xxx" in line]


@pytest.mark.parametrize(
    ("path", "name"),
    [
        ("recordings/nvidia-test/start/add.ipynb", "start/add"),
        ("recordings/nvidia-test/start/add.json", "nvidia-test/start/add"),
        ("results/nvidia-test/start/add.json", "nvidia-test/start/add"),
        ("examples/start/add.ipynb", "start/add"),
        ("examples/start/add.json", None),
        ("results/nvidia-test/start/add.ipynb", None),
        ("recordings/nvidia-test/start/add.png", None),
        ("docs/start/add.json", None),
    ],
)
def test_which_files_are_recordings(path, name):
    assert name_of(path) == name


def test_long_lists_of_places_and_counts_are_cut():
    assert report._some(["a"] * 5) == "a, a, a, a, a"
    assert report._some(["a"] * 7) == "a, a, a, a, a and 2 more"
    assert report._times(None) == "" and report._times(1.23456) == "1.235×"


def test_a_machine_is_told_with_the_numbers_of_its_instrument(made):
    one = Snapshot().recording("start/add")
    one.metadata["instrument"] = {"numbers": {"timing": 3, "check": 2}}
    assert report._machine(one) == "NVIDIA Test, driver 580.1, CUDA 13.0, check 2, timing 3"


def test_the_farthest_stands_first_and_what_failed_without_a_word_is_told(made):
    made.record(shows(facts("found", a=100, b=100, c=100)))
    made.repository.commit()
    made.record(shows(facts("found", a=110, b=300, c=50)))
    failures.keep("start/add", "")
    text = made.told(least=0.05)
    assert "start/add: 3 values moved by more than 5 %</summary>" in text
    assert [line.split("`")[1] for line in rows(text)] == [
        f'start/add#bench["{name}"].value' for name in "bca"
    ]
    assert "- start/add: no reason was kept" in text
    assert "1 value moved by more than 150 %" in made.told(least=1.5)


def test_a_file_that_cannot_be_read_is_told(made, monkeypatch):
    def unreadable(*given):
        raise PermissionError(13, "Permission denied", "recordings/x.ipynb")

    monkeypatch.setattr(report, "report", unreadable)
    with pytest.raises(
        CudatutError, match=r"^recordings/x.ipynb cannot be read: Permission denied$"
    ):
        made.told()


def test_pages_of_a_snapshot_are_those_with_the_ending(made):
    (made.repository.root / "docs" / "en" / "start" / "add.yml").write_text("a: 1")
    found = dict(Snapshot().texts("docs/en", ".md"))
    assert found == {"docs/en/start/add.md": PAGE} == dict(Snapshot("HEAD").texts("docs/en", ".md"))
    assert Snapshot().commit is None and Snapshot("HEAD").commit == made.repository.git(
        "rev-parse", "HEAD"
    )
    with pytest.raises(MissingRecordingError, match="there was no recording of start/none"):
        Snapshot().recording("start/none")


def test_a_recording_of_another_gpu_is_named_like_its_example(made):
    made.book.slim("start/add")
    assert Snapshot().recording("nvidia-other/start/add").name == "start/add"
    assert Snapshot().recording("start/add").name == "start/add"
