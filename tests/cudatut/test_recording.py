"""Recordings: what is whole, fresh and good is shown; anything else is refused with file, reason and command."""

import json
import math

import pytest

from cudatut import catalog, certificate, recording
from cudatut.results import MIME

NAME = "start/add"
MEND = f"python -m cudatut record {NAME}"


@pytest.fixture
def added(book):
    book.example(NAME)
    return book


def refused(error, *parts):
    with pytest.raises(error) as caught:
        recording.require_good(NAME)
    for part in (f"{NAME}.ipynb", MEND, *parts):
        assert part in str(caught.value)


def test_a_good_one(added):
    added.recorded(NAME)
    good = recording.require_good(NAME)
    assert (good.stale(), good.problems()) == ([], [])
    assert [cell.title for cell in good.cells] == ["install", "md-1", "setup", "bench"]
    assert [cell.kind for cell in good.cells] == ["code", "markdown", "code", "code"]
    assert good.cell("setup").source == "import os\nx = 1"
    assert good.cell("setup").outputs[0]["text"] == "hello\nworld\n"
    assert [result["kind"] for result in good.results("bench")] == ["check", "benchmark"]
    assert good.results("setup") == []
    assert good.metadata["gpu"]["name"] == "NVIDIA Test"


def test_unknown_cell_names_those_there_are(added):
    added.recorded(NAME)
    with pytest.raises(
        recording.UnknownCellError, match=r"no cell 'bnch'\. Did you mean bench\? .*setup, bench"
    ):
        recording.load(NAME).cell("bnch")


def test_missing(added):
    refused(recording.MissingRecordingError, "has not been recorded")


def test_unknown_example(added):
    with pytest.raises(catalog.UnknownExampleError, match="Did you mean start/add"):
        recording.load("start/ad")


@pytest.mark.parametrize("keep", [0.0, 0.5, 0.999])
def test_cut_short(added, keep):
    path = added.recorded(NAME)
    raw = path.read_bytes()
    path.write_bytes(raw[: int(len(raw) * keep)])
    refused(recording.DamagedRecordingError, "cut short")


def test_not_text(added):
    added.recorded(NAME).write_bytes(b"\xff\x00\x80")
    refused(recording.DamagedRecordingError, "not JSON")


def test_foreign_notebook(added):
    notebook = added.notebook(NAME)
    del notebook["metadata"]["cudatut"]
    added.recorded(NAME, notebook)
    refused(recording.DamagedRecordingError, "not a notebook that cudatut made")


def test_recording_of_another_example(added):
    notebook = added.notebook(NAME)
    notebook["metadata"]["cudatut"]["name"] = "start/other"
    added.recorded(NAME, notebook)
    refused(recording.DamagedRecordingError, "of another example, start/other")


def test_schema_of_another_version(added):
    notebook = added.notebook(NAME)
    notebook["metadata"]["cudatut"]["schema"] = 2
    added.recorded(NAME, notebook)
    refused(recording.DamagedRecordingError, "schema is 2", "reads schema 1")


@pytest.mark.parametrize("key", sorted(certificate.Certificate.__required_keys__))
def test_metadata_lacking_something(added, key):
    notebook = added.notebook(NAME)
    del notebook["metadata"]["cudatut"][key]
    added.recorded(NAME, notebook)
    refused(recording.DamagedRecordingError, f"of its metadata, {key} is missing")


@pytest.mark.parametrize("when", ["yesterday", "", "2026-11-20T12:00:00", "2026-13-20T12:00+00:00"])
def test_a_date_that_is_none(added, when):
    notebook = added.notebook(NAME)
    notebook["metadata"]["cudatut"]["recorded_at"] = when
    added.recorded(NAME, notebook)
    refused(recording.DamagedRecordingError, f"of its metadata, recorded_at is '{when}'")


@pytest.mark.parametrize(
    "damage",
    [
        lambda n: n.pop("cells"),
        lambda n: n.update(cells=[]),
        lambda n: n["cells"].append(dict(n["cells"][0])),
        lambda n: n["cells"][3].pop("outputs"),
        lambda n: n["cells"][3].pop("id"),
        lambda n: n["cells"][3].update(source=3),
        lambda n: n["cells"].append(None),
        lambda n: n["cells"][3]["outputs"].append({"output_type": "strange"}),
        lambda n: n["metadata"]["cudatut"]["gpu"].pop("driver"),
        lambda n: n["metadata"]["cudatut"]["sources"].clear(),
        lambda n: n["metadata"]["cudatut"]["sanitizers"].append("memcheck"),
        lambda n: n.update(metadata=[]),
    ],
)
def test_damaged_inside(added, damage):
    notebook = added.notebook(NAME)
    damage(notebook)
    added.recorded(NAME, notebook)
    refused(recording.DamagedRecordingError, "is no recording")


@pytest.mark.parametrize("text", ["[]", "1", "null", '"x"'])
def test_json_that_is_no_notebook(added, text):
    added.file(added.whole(NAME), text)
    refused(recording.DamagedRecordingError, "not a notebook that cudatut made")


def test_changed_source(added):
    added.recorded(NAME)
    added.example(NAME, "# %% check\nprint(2)\n")
    refused(recording.UnfitRecordingError, f"examples/{NAME}.py changed")
    assert recording.load(NAME).stale() == [f"{NAME}.py"]


def test_source_that_is_gone(added):
    kernel = added.file("start/add.cu", "kernel")
    notebook = added.notebook(NAME)
    notebook["metadata"]["cudatut"]["sources"]["start/add.cu"] = recording.source_hash(kernel)
    added.recorded(NAME, notebook)
    recording.require_good(NAME)
    kernel.unlink()
    refused(recording.UnfitRecordingError, "examples/start/add.cu is gone")


def test_line_ends_are_no_change(added):
    added.recorded(NAME)
    path = added.root / f"{NAME}.py"
    path.write_bytes(path.read_bytes().replace(b"\n", b"\r\n"))
    recording.require_good(NAME)


@pytest.mark.parametrize("field", ["median_us", "p20_us", "p80_us", "value"])
@pytest.mark.parametrize(
    ("number", "says"),
    [
        (0, "the benchmark 'add' has {field} = 0 for 'one thread'"),
        (0.0, "the benchmark 'add' has {field} = 0.0 for 'one thread'"),
        (-1.0, "the benchmark 'add' has {field} = -1.0 for 'one thread'"),
        (math.nan, "benchmark add: rows['one thread'].{field} is nan"),
        (math.inf, "benchmark add: rows['one thread'].{field} is inf"),
        ("3", "benchmark add: rows['one thread'].{field} is '3'"),
        (True, "benchmark add: rows['one thread'].{field} is True"),
    ],
)
def test_impossible_times(added, field, number, says):
    notebook = added.notebook(NAME)
    notebook["cells"][3]["outputs"][1]["data"][MIME]["rows"][0][field] = number
    added.recorded(NAME, notebook)
    refused(recording.UnfitRecordingError, "cell 'bench'", says.format(field=field))


def test_a_time_that_is_missing(added):
    notebook = added.notebook(NAME)
    row = notebook["cells"][3]["outputs"][1]["data"][MIME]["rows"][0]
    row["median_us"] = None
    added.recorded(NAME, notebook)
    refused(recording.UnfitRecordingError, "rows['one thread'].median_us is None")
    del row["median_us"]
    added.recorded(NAME, notebook)
    refused(recording.UnfitRecordingError, "rows['one thread'].median_us is missing")


def test_no_throughput_is_no_problem(added):
    notebook = added.notebook(NAME)
    row = notebook["cells"][3]["outputs"][1]["data"][MIME]["rows"][0]
    row |= {"value": None, "of_peak": None, "bytes": None}
    added.recorded(NAME, notebook)
    recording.require_good(NAME)


CHECK = {
    "kind": "check",
    "name": "sum",
    "passed": True,
    "n": 3,
    "max_abs_err": 0.0,
    "max_rel_err": 0.0,
    "atol": 0.0,
    "rtol": 0.0,
}


def _show(result):
    return {"output_type": "display_data", "metadata": {}, "data": {MIME: result}}


@pytest.mark.parametrize(
    ("output", "problem"),
    [
        (_show(CHECK | {"passed": False}), "the check 'sum' failed"),
        (_show({"kind": "check", "name": "sum"}), "check sum: passed is missing"),
        (_show(CHECK | {"max_abs_err": math.nan}), "check sum: max_abs_err is nan"),
        (
            _show({"kind": "benchmark", "name": "x", "unit": "us", "peak": None, "rows": []}),
            "'x' has no rows",
        ),
        (
            _show({"kind": "benchmark", "name": "x", "unit": "us", "peak": 0.0, "rows": []}),
            "the benchmark 'x' has peak = 0.0",
        ),
        (_show({"kind": "chekc", "name": "sum"}), "schema v1 has no kind 'chekc'"),
        (_show([]), "a result is an object with a kind, not []"),
        (
            _show(
                {
                    "kind": "profile",
                    "kernel": "k",
                    "metrics": {"a.sum": {"value": math.nan, "unit": ""}},
                }
            ),
            "profile k: metrics['a.sum'].value is nan",
        ),
        (
            _show(
                {
                    "kind": "facts",
                    "title": "t",
                    "rows": [{"name": "f", "value": math.nan, "unit": None}],
                }
            ),
            "facts t: rows['f'].value is nan",
        ),
        (
            {"output_type": "error", "ename": "ValueError", "evalue": "no", "traceback": []},
            "cell 'bench' raised ValueError: no",
        ),
    ],
)
def test_problems_in_outputs(added, output, problem):
    added.recorded(NAME, added.notebook(NAME, output))
    refused(recording.UnfitRecordingError, problem)


@pytest.mark.parametrize(
    ("result", "problem"),
    [
        (
            {
                "kind": "table",
                "title": "t",
                "corner": "",
                "columns": [{"name": "a", "unit": None}, {"name": "b", "unit": None}],
                "rows": [{"name": "first", "values": [None, math.inf]}],
            },
            "table t: rows['first'].values[1] is inf",
        ),
        (
            {
                "kind": "series",
                "title": "t",
                "x": {"name": "x", "unit": ""},
                "y": {"name": "y", "unit": ""},
                "lines": {"mine": [[1, math.nan]]},
                "limit": None,
            },
            "series t: lines['mine'][0][1] is nan",
        ),
    ],
)
def test_numbers_that_are_not_finite(added, result, problem):
    added.recorded(NAME, added.notebook(NAME, _show(result)))
    refused(recording.UnfitRecordingError, problem)


def _edited(book, edit):
    """The recording, changed in its file after it was made."""
    path = book.recorded(NAME)
    notebook = json.loads(path.read_text("utf-8"))
    edit(notebook)
    path.write_text(json.dumps(notebook), "utf-8")


def _bench(notebook):
    return notebook["cells"][3]["outputs"]


@pytest.mark.parametrize(
    "edit",
    [
        lambda n: _bench(n)[1]["data"][MIME]["rows"][0].update(median_us=1.5),
        lambda n: _bench(n)[0]["data"][MIME].update(name="another"),
        lambda n: _bench(n)[0]["data"].update({"text/plain": "[Check]"}),
        lambda n: n["cells"][2]["outputs"][0].update(text="hello, world"),
        lambda n: _bench(n).pop(),
        lambda n: n["cells"][2].update(source="x = 2"),
        lambda n: n["cells"][2].update(id="other"),
        lambda n: n["cells"][1].update(source="Another idea"),
        lambda n: n["metadata"]["cudatut"]["gpu"].update(name="NVIDIA Other"),
        lambda n: n["metadata"]["cudatut"]["toolchain"].update(cuda="12.0"),
        lambda n: n["metadata"]["cudatut"].update(recorded_at="2027-01-01T00:00:00+00:00"),
        lambda n: n["metadata"]["cudatut"]["sanitizers"][0].update(errors=1),
        lambda n: n["metadata"]["cudatut"].update(digest="0" * 64),
    ],
)
def test_what_was_edited_is_refused(added, edit):
    _edited(added, edit)
    refused(recording.UnfitRecordingError, "was edited after it was recorded: digest differs")
    assert recording.load(NAME).edited()  # still there to be looked at


def test_a_failed_check_made_to_pass_by_hand(added):
    notebook = added.notebook(NAME)
    notebook["cells"][3]["outputs"][0]["data"][MIME]["passed"] = False
    path = added.recorded(NAME, notebook)
    refused(recording.UnfitRecordingError, "the check 'add' failed")
    path.write_text(path.read_text("utf-8").replace('"passed": false', '"passed": true'), "utf-8")
    refused(recording.UnfitRecordingError, "digest differs")


def test_another_form_of_the_same_json_is_no_edit(added):
    def reformat(notebook):
        lines = "".join(notebook["cells"][2]["source"])
        notebook["cells"][2]["source"] = lines

    _edited(added, reformat)
    recording.require_good(NAME)


def test_one_without_a_digest(added):
    _edited(added, lambda n: n["metadata"]["cudatut"].pop("digest"))
    refused(recording.UnfitRecordingError, "digest differs")
    added.example(NAME, "# %% changed\n1\n")
    refused(recording.UnfitRecordingError, "changed")
    assert recording.load(NAME).stale()


def test_a_sanitizer_that_found_something(added):
    notebook = added.notebook(NAME)
    notebook["metadata"]["cudatut"]["sanitizers"][1]["errors"] = 2
    added.recorded(NAME, notebook)
    refused(recording.UnfitRecordingError, "racecheck found 2 errors")


def test_a_sanitizer_that_was_not_run(added):
    notebook = added.notebook(NAME)
    notebook["metadata"]["cudatut"]["sanitizers"].pop()
    added.recorded(NAME, notebook)
    refused(recording.UnfitRecordingError, "synccheck was not run")


def test_a_cell_that_did_not_run(added):
    notebook = added.notebook(NAME)
    notebook["cells"][2]["execution_count"] = None
    added.recorded(NAME, notebook)
    refused(recording.UnfitRecordingError, "cell 'setup' was not executed")


def test_a_file_that_cannot_be_read(added):
    added.whole(NAME).mkdir(parents=True)
    refused_by = pytest.raises(recording.DamagedRecordingError, match="cannot be read")
    with refused_by:
        recording.load(NAME)


# --- one whole recording, in the folder of its GPU -------------------------------------------------


def test_it_is_found_whichever_gpu_made_it(added):
    notebook = added.notebook(NAME)
    notebook["metadata"]["cudatut"]["gpu"]["name"] = "NVIDIA Z1"
    path = added.recorded(NAME, notebook)
    assert path == added.root.parent / "recordings/nvidia-z1" / f"{NAME}.ipynb"
    assert recording.require_good(NAME).path == path == recording.whole_path(NAME)
    assert recording.whole_path("start/*") is None  # a name, and no pattern


def test_two_are_refused_with_both_names(added):
    added.recorded(NAME)
    notebook = added.notebook(NAME)
    notebook["metadata"]["cudatut"]["gpu"]["name"] = "NVIDIA Z1"
    added.recorded(NAME, notebook)
    both = "recordings/nvidia-test/start/add.ipynb is not the only one: recordings/nvidia-z1/start/add.ipynb"
    refused(recording.DamagedRecordingError, both)


def test_one_of_another_gpu_than_its_folder(added):
    path = added.recorded(NAME)
    path.parents[1].rename(path.parents[2] / "nvidia-z1")
    wrong = "recordings/nvidia-z1/start/add.ipynb is of another GPU than its folder, NVIDIA Test"
    refused(recording.UnfitRecordingError, wrong)


def test_every_has_all_that_can_be_read(added):
    whole, slim = added.recorded(NAME), added.slim(NAME)
    added.slim(NAME, "NVIDIA Cut").write_text("{")
    assert [one.path for one in recording.every()] == [whole, slim]


# --- the book's home -------------------------------------------------------------------------------


def at_home(added, **metadata):
    notebook = added.notebook(NAME)
    own = notebook["metadata"]["cudatut"] | {
        "instrument": {"numbers": {}, "files": {}},
        "rivals": {},
    }
    notebook["metadata"]["cudatut"] = {
        key: one for key, one in (own | metadata).items() if one is not None
    }
    added.recorded(NAME, notebook)
    return recording.at_home(recording.require_good(NAME))


def home(added, folder="nvidia-test"):
    added.file(added.root.parent / "recordings" / "home.txt", f"{folder}\n")


def test_a_book_without_a_home_takes_what_is_good(added):
    assert recording.home() == ""
    assert at_home(added, instrument=None, rivals=None, commit="1" * 40 + "-dirty").name == NAME


def test_a_recording_of_the_home_gpu(added):
    home(added)
    assert recording.home() == "nvidia-test" and at_home(added).name == NAME
    assert recording.orphans() == []


@pytest.mark.parametrize(
    ("folder", "metadata", "why"),
    [
        ("nvidia-h200", {}, "is not of the book's GPU, nvidia-h200"),
        ("nvidia-test", {"instrument": None}, "does not say which instrument measured it"),
        ("nvidia-test", {"rivals": None}, "does not say the versions of its rivals"),
        ("nvidia-test", {"commit": "1" * 40 + "-dirty"}, "was made from files that no commit has"),
    ],
)
def test_the_published_book_wants_all_of_one_gpu_and_its_provenance(added, folder, metadata, why):
    home(added, folder)
    with pytest.raises(recording.UnfitRecordingError, match=why) as caught:
        at_home(added, **metadata)
    assert f"{MEND}`" in str(caught.value)


# --- other GPUs ------------------------------------------------------------------------------------


OTHER = "recordings/nvidia-other/start/add.json"


def slim_refused(kind, *parts, mend=f"{MEND} --slim` on the nvidia-other, or `git rm {OTHER}"):
    """No page shows it, and whoever asks hears why."""
    assert recording.on_other_gpus(NAME) == []
    (error,) = recording.of_other_gpus(NAME)
    assert type(error) is kind
    for part in (OTHER, mend, *parts):
        assert part in str(error)
    assert str(error).count("\n") == 0


def test_results_of_other_gpus(added):
    assert recording.on_other_gpus(NAME) == [] and recording.orphans() == []
    added.slim(NAME, "NVIDIA Z1")
    added.slim(NAME)
    added.example("start/another")
    added.slim("start/another")
    first, second = recording.on_other_gpus(NAME)
    assert [one.metadata["gpu"]["name"] for one in (first, second)] == ["NVIDIA Other", "NVIDIA Z1"]
    assert first.slim and first.path == added.root.parent / OTHER
    assert [result["kind"] for result in first.results("bench")] == ["check", "benchmark"]
    assert recording.orphans() == []
    # They need no recording of the book's own, and are none.
    with pytest.raises(recording.MissingRecordingError):
        recording.require_good(NAME)


@pytest.mark.parametrize(
    ("gpu", "folder"),
    [
        ("NVIDIA H100 80GB HBM3", "nvidia-h100-80gb-hbm3"),
        ("NVIDIA Test 80GB (PCIe)", "nvidia-test-80gb-pcie"),
        ("../x/T4", "x-t4"),
    ],
)
def test_the_folder_of_a_gpu(added, gpu, folder):
    root = added.root.parent / "recordings"
    assert recording.slim_path(gpu, NAME) == root / folder / f"{NAME}.json"
    assert recording.own_path(gpu, NAME) == root / folder / f"{NAME}.ipynb"


def test_recordings_may_lie_elsewhere(added, monkeypatch, tmp_path):
    monkeypatch.setenv("CUDATUT_RECORDINGS", str(tmp_path / "mine"))
    assert added.recorded(NAME) == tmp_path / "mine" / "nvidia-test" / f"{NAME}.ipynb"
    assert recording.require_good(NAME).file == f"mine/nvidia-test/{NAME}.ipynb"
    assert added.slim(NAME) == tmp_path / "mine" / "nvidia-other" / f"{NAME}.json"
    assert len(recording.on_other_gpus(NAME)) == 1


def test_a_slim_one_that_was_edited(added):
    path = added.slim(NAME)
    text = path.read_text("utf-8")
    assert '"median_us": 2.0' in text
    path.write_text(text.replace('"median_us": 2.0', '"median_us": 1.0'), "utf-8")
    slim_refused(recording.UnfitRecordingError, "was edited after it was recorded")


def test_a_slim_one_that_is_stale(added):
    added.slim(NAME)
    added.example(NAME, "# %% check\nprint(2)\n")
    slim_refused(recording.StaleRecordingError, f"examples/{NAME}.py changed")


def test_a_slim_one_that_is_not_good(added):
    notebook = added.notebook(NAME, _show(CHECK | {"passed": False}))
    added.slim(NAME, notebook=notebook)
    slim_refused(recording.UnfitRecordingError, "the check 'sum' failed")


def test_a_slim_one_that_is_cut_short(added):
    path = added.slim(NAME)
    path.write_bytes(path.read_bytes()[:-100])
    slim_refused(recording.DamagedRecordingError, "cut short")


def test_a_slim_one_of_another_gpu_than_its_folder(added):
    path = added.slim(NAME, "NVIDIA Wrong")
    path.parents[1].rename(path.parents[2] / "nvidia-other")
    slim_refused(recording.UnfitRecordingError, "NVIDIA Wrong", mend=f"`git rm {OTHER}`")


def test_a_slim_one_is_none_of_the_books_own(added):
    """It was under no sanitizer."""
    slim = added.slim(NAME)
    added.file(slim.with_suffix(".ipynb"), slim.read_text("utf-8"))
    refused(recording.DamagedRecordingError, "only the results of another GPU")
    slim.with_suffix(".ipynb").unlink()
    slim.write_bytes(added.recorded(NAME).read_bytes())
    slim_refused(recording.DamagedRecordingError, "only the results of another GPU")


def test_results_that_belong_to_no_example(added):
    added.slim(NAME)
    added.file("drafts.txt", "start/draft\n")
    added.example("start/draft")
    added.slim("start/draft")
    root = added.root.parent / "recordings"
    for name in (
        *("nvidia-other/start/gone.json", "nvidia-other/start/gone.ipynb", "old.json"),
        *("nvidia-other/start/add.txt", "nvidia-other/start/.ipynb_checkpoints/add.ipynb"),
    ):
        added.file(root / name, "{}")
    assert recording.orphans() == [
        "nvidia-other/start/add.txt",
        "nvidia-other/start/gone.ipynb",
        "nvidia-other/start/gone.json",
        "old.json",
    ]


def test_recordings_in_this_repository_are_json_that_git_can_diff():
    for example in catalog.examples():
        if path := recording.whole_path(example.name):
            text = path.read_text("utf-8")
            assert json.loads(text)["metadata"]["cudatut"]["name"] == example.name
            assert text.endswith("}\n")


# --- more of what makes one unfit ------------------------------------------------------------------


def test_sanitizers_of_a_slim_one(added):
    """It was under none: what names one was put together by hand."""
    path = added.slim(NAME)
    notebook = json.loads(path.read_text("utf-8"))
    said = [{"kind": "sanitizer", "tool": "memcheck", "errors": 0}]
    notebook["metadata"]["cudatut"]["sanitizers"] = said
    made = recording.parse(NAME, path, json.dumps(notebook).encode())
    assert made.problems() == ["no sanitizer watches what is slim"]


def test_sanitizers_told_twice_or_with_one_error(added):
    notebook = added.notebook(NAME)
    told = notebook["metadata"]["cudatut"]["sanitizers"]
    told[0]["errors"] = 1
    told.append(dict(told[1]))
    added.recorded(NAME, notebook)
    assert recording.load(NAME).problems() == [
        "memcheck found 1 error",
        "racecheck is told more than once",
    ]


def test_a_slim_one_may_have_one_cell(added):
    path = added.slim(NAME)
    notebook = json.loads(path.read_text("utf-8"))
    notebook["cells"] = notebook["cells"][-1:]
    made = recording.parse(NAME, path, json.dumps(notebook).encode())
    assert [cell.title for cell in made.cells] == ["bench"]


def test_the_order_of_names_is_no_edit(added):
    """Of what the file has by name: nbformat sorts it, JSON knows no order."""
    path = added.recorded(NAME)
    notebook = json.loads(path.read_text("utf-8"))

    def reversed_names(value):
        if isinstance(value, list):
            return list(map(reversed_names, value))
        if isinstance(value, dict):
            return {key: reversed_names(value[key]) for key in reversed(value)}
        return value

    before = recording.load(NAME)
    path.write_text(json.dumps(reversed_names(notebook)), "utf-8")
    after = recording.load(NAME)
    assert not after.edited()
    assert (after.digest(), after.measured()) == (before.digest(), before.measured())
    assert b": " not in after.measured() and b", " not in after.measured()


def test_what_was_measured_says_nothing_of_the_code(added):
    before = recording.parse(NAME, path := added.recorded(NAME), path.read_bytes())
    notebook = json.loads(path.read_text("utf-8"))
    notebook["cells"][2]["source"] = "y = 2"
    notebook["cells"][3]["outputs"][0]["data"]["text/plain"] = "another text"
    metadata = notebook["metadata"]["cudatut"]
    metadata |= {
        "requires": "sm_80",
        "title": {"en": "a", "zh": "b"},
        "meanings": {},
        "digest": "0" * 64,
    }
    metadata["sources"][f"{NAME}.py"] = "0" * 64
    rewritten = recording.parse(NAME, path, json.dumps(notebook).encode())
    assert rewritten.measurement() == before.measurement() and rewritten.digest() != before.digest()
    run, shown = json.loads(before.measured())
    assert set(shown) == {"setup", "bench"} and run["recorded_at"] and "requires" not in run
    assert [set(output["data"]) for output in shown["bench"]] == [{MIME}, {MIME}]
    for change in (
        lambda n: n["metadata"]["cudatut"].update(duration_s=2.5),
        lambda n: n["metadata"]["cudatut"]["gpu"].update(sm_count=131),
        lambda n: n["cells"][2]["outputs"][0].update(text="others"),
        lambda n: n["cells"][3]["outputs"][0]["data"][MIME].update(n=32),
    ):
        other = json.loads(json.dumps(notebook))
        change(other)
        made = recording.parse(NAME, path, json.dumps(other).encode())
        assert made.measurement() != before.measurement()


def test_what_is_left_of_a_whole_one_beside_another_gpus(added):
    whole = recording.parse(NAME, path := added.recorded(NAME), path.read_bytes())
    left = whole.slimmed()
    assert left.slim and not whole.slim and left.metadata["sanitizers"] == []
    assert [len(cell.outputs) for cell in left.cells] == [0, 0, 0, 2]
    assert left.results("bench") == whole.results("bench")
    assert [list(output["data"]) for output in left.cell("bench").outputs] == [[MIME], [MIME]]
    assert left.problems() == []


@pytest.mark.parametrize(
    ("text", "shows"),
    [
        ("add.cu(12): error", True),
        ("add.cuh:7: note", True),
        ('File "add.py", LINE 3', True),
        ("on line 12", True),
        ("add.cu (12)", False),
        ("baseline 3, line three", False),
    ],
)
def test_where_an_output_shows_lines_the_text_counts(added, text, shows):
    """What the code means is the same, and yet the page would show the numbers of other lines."""
    notebook = added.notebook(NAME)
    notebook["cells"][2]["outputs"][0]["text"] = text
    notebook["metadata"]["cudatut"]["meanings"] = recording.meanings([f"{NAME}.py"])
    path = added.recorded(NAME, notebook)
    assert recording.load(NAME).shows_lines() is shows
    script = added.root / f"{NAME}.py"
    script.write_text(script.read_text("utf-8") + "# a comment more\n", "utf-8")
    notebook = json.loads(path.read_text("utf-8"))
    made = recording.parse(NAME, path, json.dumps(notebook).encode())
    made.metadata["meanings"] = recording.meanings([f"{NAME}.py"])
    assert made.rewritten() == [f"{NAME}.py"]
    assert made.stale() == ([f"{NAME}.py"] if shows else [])


def test_lines_in_the_text_of_a_result_are_its_own(added):
    """Of a result the data count, not the text that is made of them; of anything else that is shown, all."""
    shown = {"output_type": "display_data", "metadata": {}, "data": {"text/plain": "on line 3"}}
    added.recorded(NAME, added.notebook(NAME, shown))
    assert recording.load(NAME).shows_lines()
    facts = {
        "kind": "facts",
        "title": "t",
        "rows": [{"name": "at", "value": "line 3", "unit": None}],
    }
    added.recorded(NAME, added.notebook(NAME, _show(facts)))
    assert recording.load(NAME).shows_lines()
    notebook = added.notebook(NAME)
    notebook["cells"][3]["outputs"][0]["data"]["text/plain"] = "on line 3"
    made = recording.parse(NAME, path := added.whole(NAME), json.dumps(notebook).encode())
    assert path and not made.shows_lines()


def test_a_commit_with_changed_files_is_dirty(added):
    for commit, dirty in (("1" * 40, False), ("1" * 40 + "-dirty", True)):
        notebook = added.notebook(NAME)
        notebook["metadata"]["cudatut"]["commit"] = commit
        added.recorded(NAME, notebook)
        assert recording.load(NAME).dirty is dirty


def test_both_names_that_a_home_lacks_are_told(added):
    home(added)
    with pytest.raises(recording.UnfitRecordingError, match="measured it and the versions of its"):
        at_home(added, instrument=None, rivals=None)


def test_what_mends_a_stale_one(added):
    added.recorded(NAME)
    added.example(NAME, "# %% check\nprint(2)\n")
    with pytest.raises(recording.StaleRecordingError) as caught:
        recording.require_good(NAME)
    assert str(caught.value) == (
        f"recordings/nvidia-test/{NAME}.ipynb is stale: examples/{NAME}.py changed since it was recorded. If no run can "
        f"notice it, `python -m cudatut restamp` accepts it. On a machine with a GPU: `{MEND}`"
    )


def test_the_folder_of_a_long_name_has_an_end():
    assert recording.gpu_folder("A" * 200) == "a" * 100
    assert recording.gpu_folder("--NVIDIA  H200--") == "nvidia-h200"


def test_the_code_cells_alone_are_offered(added):
    added.recorded(NAME)
    with pytest.raises(recording.UnknownCellError) as caught:
        recording.load(NAME).cell("nothing")
    assert str(caught.value) == f"{NAME} has no cell 'nothing'. Its cells: install, setup, bench."


def test_the_gpu_that_colab_is_asked_for_is_kept(added):
    notebook = added.notebook(NAME)
    assert added.recorded(NAME, notebook) and recording.load(NAME).colab is None
    notebook["metadata"]["colab"] = {"gpuType": "T4"}
    added.recorded(NAME, notebook)
    assert recording.load(NAME).colab == "T4"


def test_of_outputs_the_lines_are_joined_and_the_data_is_not(added):
    notebook = added.notebook(NAME)
    mixed = {"text/plain": ["a\n", "b"], "application/x+json": ["a", "b"]}
    notebook["cells"][2]["outputs"] = [
        {"output_type": "execute_result", "metadata": {}, "execution_count": 1, "data": mixed},
        {"output_type": "stream", "name": "stderr", "text": ["x", "y"]},
    ]
    path = added.whole(NAME)
    first, second = recording.parse(NAME, path, json.dumps(notebook).encode()).cell("setup").outputs
    assert first["data"] == {"text/plain": "a\nb", "application/x+json": ["a", "b"]}
    assert second["text"] == "xy"
