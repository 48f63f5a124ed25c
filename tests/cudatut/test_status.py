"""`status`: what stops a landing, and apart from it what is only to be known."""

import shutil
import subprocess

import pytest

from cudatut import catalog, cli, history, instrument, paths, provenance, recording, status

COMMITTER = {
    f"GIT_{who}_{what}": value
    for who in ("AUTHOR", "COMMITTER")
    for what, value in (("NAME", "a"), ("EMAIL", "a@b"), ("DATE", "2026-11-19T12:00:00+00:00"))
}


@pytest.fixture(autouse=True)
def an_instrument_that_is_told(monkeypatch):
    """What the files of this checkout's instrument mean is not what is tested here."""
    monkeypatch.setattr(instrument, "problems", lambda: iter(()))


@pytest.fixture
def fresh(book):
    book.example("a/fresh")
    book.recorded("a/fresh")
    return book


def notes(found):
    return "\n".join(found.notes)


def test_all_is_well(fresh, capsys):
    assert cli.main(["status"]) == 0
    first, *others = capsys.readouterr().out.splitlines()
    assert first == "all 1 recordings are whole, good and fresh"
    assert others and all(line.startswith("note: ") for line in others)


def test_the_results_of_other_gpus_are_counted(fresh):
    fresh.slim("a/fresh", "NVIDIA One"), fresh.slim("a/fresh", "NVIDIA Two")
    found = status.status()
    said = "all 1 recordings and 2 of other GPUs are whole, good and fresh"
    assert next(found.lines()) == said and not found.problems


def edit_the_time(path):
    text = path.read_text("utf-8")
    assert '"median_us": 2.0' in text
    path.write_text(text.replace('"median_us": 2.0', '"median_us": 1.0'), "utf-8")


def stale(book, path):
    book.example("a/add", "# %% changed\n1\n")
    notebook = book.notebook("a/add")
    notebook["cells"][1:] = [notebook["cells"][2] | {"id": "changed", "source": "1"}]
    book.recorded("a/add", notebook, agree=False)  # the book's own is fresh again


def orphaned(book, path):
    path.rename(path.with_name("gone.json"))


@pytest.mark.parametrize(
    ("spoil", "says"),
    [
        (
            lambda book, path: edit_the_time(path),
            "recordings/nvidia-other/a/add.json was edited after it was recorded",
        ),
        (orphaned, "recordings/nvidia-other/a/gone.json belongs to no example: remove it"),
        (
            lambda book, path: path.write_text("{"),
            "recordings/nvidia-other/a/add.json is no recording",
        ),
    ],
    ids=["edited", "orphaned", "damaged"],
)
def test_a_slim_recording_that_is_not_good_is_refused(book, capsys, spoil, says):
    for name in ("a/add", "a/other"):
        book.example(name)
        book.recorded(name)
        book.slim(name)
    spoil(book, book.slim("a/add"))
    assert cli.main(["status"]) == 1
    out = capsys.readouterr().out
    assert says in out and "a/other" not in out and len(out.splitlines()) < 10
    # It is that GPU which is needed, or git: `record --stale` looks at the book's own.
    assert "record --stale" not in out
    if spoil is not orphaned:
        assert "`python -m cudatut record a/add --slim` on the nvidia-other" in out


def test_a_slim_recording_that_became_stale_stops_nobody(book, capsys):
    """It has left the pages by itself."""
    book.example("a/add")
    stale(book, book.slim("a/add"))
    assert cli.main(["status"]) == 0
    out = capsys.readouterr().out
    assert "all 1 recordings are whole, good and fresh" in out
    assert "note: recordings/nvidia-other/a/add.json is stale: examples/a/add.py changed" in out


def test_recordings_without_example_are_found(fresh):
    fresh.file(fresh.whole("a/gone"), "{}")
    for name in ("a/fresh.ipynb", "a/.ipynb_checkpoints/fresh.ipynb", "old.ipynb"):
        fresh.file(name, "{}")
    assert status.status().problems == [
        "examples/a/fresh.ipynb belongs to no exercises: remove it",
        "examples/old.ipynb belongs to no exercises: remove it",
        "recordings/nvidia-test/a/gone.ipynb belongs to no example: remove it",
    ]


def test_what_the_instrument_lacks_is_a_problem(fresh, monkeypatch):
    monkeypatch.setattr(instrument, "problems", lambda: iter(["cudatut/gpu/bench.py means ..."]))
    assert status.status().problems == ["cudatut/gpu/bench.py means ..."]


def test_a_cell_that_has_another_cells_results(book):
    """`written` and `made_of` are asked; see their own tests."""
    code = '# %% setup\nimport cudatut as ct\n# %% bench\nct.facts("mine", {"a": 1})\n'
    book.example("a/add", code)
    notebook = book.notebook("a/add")
    del notebook["cells"][1]
    notebook["cells"][1]["source"] = "import cudatut as ct"
    notebook["cells"][2]["source"] = 'ct.facts("mine", {"a": 1})'
    book.recorded("a/add", notebook, agree=False)
    first, *_ = status.status().problems
    assert (
        first
        == "recordings/nvidia-test/a/add.ipynb: cell 'bench' shows the facts 'mine', and it is not there"
    )


def test_recordings_of_a_part_are_of_one_gpu(book):
    for name in ("a/one", "a/two", "a/three", "b/four"):
        book.example(name)
        notebook = book.notebook(name)
        if name in ("a/two", "b/four"):
            notebook["metadata"]["cudatut"]["gpu"] |= {"name": "NVIDIA Else", "sm_count": 8}
        book.recorded(name, notebook)
    (problem,) = status.status().problems
    said = "the GPU of a is NVIDIA Else, and in most recordings NVIDIA Test"
    assert problem == f"recordings/nvidia-else/a/two.ipynb: {said}"


# --- drafts -------------------------------------------------------------------------------------------


CONTENTS = """parts:
  - id: a
    chapters:
      - {id: done, written: true}
      - {id: done_too, written: draft}
      - {id: planned, written: false}
"""


@pytest.mark.parametrize(
    ("pattern", "hidden"),
    [
        ("a/done*", ["a/done", "a/done_solutions"]),
        ("a/done_too*", []),  # of a chapter of the longer name, which is a draft
        ("a/planned*", []),
        ("a/else", []),
    ],
)
def test_a_pattern_that_hides_what_is_published(book, pattern, hidden):
    names = ("a/done", "a/done_solutions", "a/done_too", "a/planned", "a/else")
    for name in names:
        book.example(name)
        book.recorded(name)
    (book.root.parent / "docs").mkdir()
    (book.root.parent / "docs" / "contents.yml").write_text(CONTENTS, encoding="utf-8")
    book.file("drafts.txt", f"{pattern}\n")
    found = status.status()
    assert len(found.problems) == len(hidden)
    for name, problem in zip(hidden, found.problems):
        assert problem.startswith(f"examples/drafts.txt hides {name}, and its chapter is published")
    assert "in progress are left out: see examples/drafts.txt" in notes(found)


def test_a_table_of_contents_that_is_none(book):
    book.example("a/draft")
    book.file("drafts.txt", "a/draft\n")
    (book.root.parent / "docs").mkdir()
    (book.root.parent / "docs" / "contents.yml").write_text("parts: 3", encoding="utf-8")
    assert cli.main(["status"]) == 2


# --- notes --------------------------------------------------------------------------------------------


def test_what_older_recordings_lack_is_a_note(fresh):
    assert status.status().notes[-4:] == [
        "1 recordings do not say which instrument measured them",
        "1 recordings do not name their kernels",
        "1 recordings do not name the versions of their rivals",
        "1 recordings do not say what their sources mean",
    ]
    notebook = fresh.notebook("a/fresh")
    notebook["metadata"]["cudatut"] |= {
        "instrument": {"numbers": {}, "files": {}},
        "kernels": [],
        "rivals": {},
        "meanings": {},
    }
    fresh.recorded("a/fresh", notebook)
    assert "recordings do not" not in notes(status.status())


def test_what_was_made_of_uncommitted_files_is_named(fresh):
    assert "no commit has" not in notes(status.status())
    notebook = fresh.notebook("a/fresh")
    notebook["metadata"]["cudatut"]["commit"] = f"{'0' * 40}-dirty"
    fresh.recorded("a/fresh", notebook)
    found = status.status()
    said = (
        "1 recordings were made from files that no commit has: recordings/nvidia-test/a/fresh.ipynb"
    )
    assert said in found.notes and not found.problems


def test_a_comment_is_a_note_and_a_statement_a_problem(fresh):
    notebook = fresh.notebook("a/fresh")
    path = fresh.root / "a/fresh.py"
    notebook["metadata"]["cudatut"]["meanings"] = recording.meanings(["a/fresh.py"])
    fresh.recorded("a/fresh", notebook)
    text = path.read_text(encoding="utf-8")
    path.write_text(text.replace("x = 1", "x = 1  # one"), encoding="utf-8")
    found = status.status()
    assert found.problems == []
    assert "older text of their example" in notes(found) and "a/fresh.ipynb" in notes(found)
    path.write_text(text.replace("x = 1", "x = 2"), encoding="utf-8")
    (problem,) = status.status().problems
    assert "is stale: examples/a/fresh.py changed" in problem


# --- the history --------------------------------------------------------------------------------------


def git(root, *arguments):
    if not shutil.which("git"):
        pytest.skip("git is not installed")
    command = ["git", "-C", str(root), *arguments]
    done = subprocess.run(command, capture_output=True, text=True, env=COMMITTER | {"HOME": "/"})
    assert done.returncode == 0, done.stderr
    return done.stdout.strip()


@pytest.fixture
def committed(fresh):
    """The example in a repository of its own, and its recording made at that commit."""
    root = fresh.root.parent
    git(root, "init", "-q")
    git(root, "add", ".")
    git(root, "commit", "-q", "-m", "x")
    return fresh


def at(book, commit, **more):
    notebook = book.notebook("a/fresh")
    notebook["metadata"]["cudatut"] |= {"commit": commit} | more
    book.recorded("a/fresh", notebook)
    return status.status()


def test_a_commit_that_fits(committed):
    head = git(committed.root, "rev-parse", "HEAD")
    for name in (head, head[:8]):
        found = at(committed, name)
        assert found.problems == [] and "looked up" not in notes(found)


@pytest.mark.parametrize(
    ("commit", "says"),
    [
        ("deadbeef", "it names the commit deadbeef, and there is none of this name"),
        ("deadbeef-dirty", "it names the commit deadbeef, and there is none of this name"),
        ("unknown", "it does not say at which commit it was made"),
    ],
)
def test_a_commit_that_is_none(committed, commit, says):
    (problem,) = at(committed, commit).problems
    assert problem.startswith(f"recordings/nvidia-test/a/fresh.ipynb: {says}")


def test_a_commit_of_another_branch(committed):
    root = committed.root.parent
    git(root, "checkout", "-q", "-b", "other")
    git(root, "commit", "-q", "--allow-empty", "-m", "y")
    other = git(root, "rev-parse", "HEAD")
    git(root, "checkout", "-q", "-")
    (problem,) = at(committed, other).problems
    assert "which the present one does not come from" in problem


def test_a_recording_older_than_its_commit(committed):
    head = git(committed.root, "rev-parse", "HEAD")
    (problem,) = at(committed, head, recorded_at="2026-11-19T10:00:00+00:00").problems
    assert "before its commit was made (2026-11-19T12:00:00+00:00)" in problem
    # Clocks differ by an hour at most.
    assert at(committed, head, recorded_at="2026-11-19T11:00:00+00:00").problems == []
    assert at(committed, head, recorded_at="2026-11-19T10:59:59+00:00").problems != []


def test_sources_that_the_commit_has_not(committed):
    head = git(committed.root, "rev-parse", "HEAD")
    committed.example(
        "a/fresh",
        '# %% [markdown]\n# One idea\n# %% setup\nimport os\nx = 1\n# %% bench\nprint("bench")\n\n',
    )
    committed.file("a/new.cuh", "int x;\n")
    sources = recording.hashes(["a/fresh.py", "a/new.cuh"])
    found = at(committed, head, sources=sources)
    assert [problem.partition(": it was made from ")[2] for problem in found.problems] == [
        f"examples/a/fresh.py, which is another at the commit {head[:12]}",
        f"examples/a/new.cuh, which is not there at the commit {head[:12]}",
    ]
    # Where uncommitted files were recorded, there is nothing to compare with; a note says so.
    found = at(committed, f"{head}-dirty", sources=sources)
    assert found.problems == [] and "no commit has" in notes(found)
    # A restamp has compared them at a later commit; whether it was one is asked elsewhere.
    git(committed.root, "add", ".")
    git(committed.root, "commit", "-q", "-m", "y")
    restamped = [{"from": head, "to": git(committed.root, "rev-parse", "HEAD"), "files": {}}]
    at(committed, head, sources=sources, restamped=restamped)
    past = history.of(committed.root.parent)
    assert list(provenance.problems(recording.load("a/fresh"), past)) == []


def test_an_older_text_is_that_of_the_commit(committed):
    """A comment has changed since; what the recording shows has to be what the commit has, comments and prose too."""
    head, path = git(committed.root, "rev-parse", "HEAD"), committed.root / "a/fresh.py"
    meanings = recording.meanings(["a/fresh.py"])
    for source, says in (("One idea", []), ("Forged", ["the cell 'md-1' is not what stands in"])):
        notebook = committed.notebook("a/fresh")
        notebook["metadata"]["cudatut"] |= {"commit": head, "meanings": meanings}
        notebook["cells"][1]["source"] = source
        committed.recorded("a/fresh", notebook, agree=False)
        text = path.read_text(encoding="utf-8")
        path.write_text(text.replace("x = 1", "x = 1  # one"), encoding="utf-8")
        found = status.status()
        assert "older text of their example" in notes(found)
        assert len(found.problems) == len(says)
        for problem, part in zip(found.problems, says):
            assert f"has not the cells of its commit {head[:12]}" in problem and part in problem
        path.write_text(text, encoding="utf-8")


def test_no_history_is_a_note(fresh):
    found = status.status()
    assert found.problems == []
    said = "no commit that a recording names was looked up: this is no clone, or git is missing"
    assert said in found.notes


def test_neither_has_a_shallow_clone(committed, tmp_path, monkeypatch):
    git(committed.root, "commit", "-q", "--allow-empty", "-m", "y")
    origin, shallow = f"file://{committed.root.parent}", tmp_path / "shallow"
    git(tmp_path, "clone", "-q", "--depth", "1", origin, str(shallow))
    monkeypatch.setenv("CUDATUT_EXAMPLES", str(shallow / "examples"))
    (note,) = (note for note in status.status().notes if "looked up" in note)
    assert "the clone is shallow (`git fetch --unshallow` gets the rest)" in note
    git(shallow, "fetch", "-q", "--unshallow")
    assert "looked up" not in notes(status.status())


# --- the book itself ----------------------------------------------------------------------------------


def test_the_books_own_recordings():
    """All of them fit: each by itself, beside its example, the others and, where it is there, the history."""
    assert paths.examples_dir() == paths.repo_root() / "examples"
    found = status.status()
    assert found.problems == []
    assert found.own == len(catalog.examples()) > 150
    assert found.others == len(list(paths.recordings_dir().glob("*/*/*.json"))) > 40


def test_how_many_recordings_need_a_gpu(fresh):
    for name in ("a/one", "a/two"):
        fresh.example(name)
    found = status.status()
    assert (found.own, found.others, found.unfit) == (1, 0, 2)
    said = list(found.lines())
    assert len(found.problems) == 2 and said[:2] == found.problems
    assert said[2] == "2 recordings need a GPU: `python -m cudatut record --stale`"
    assert said[3:] == [f"note: {note}" for note in found.notes]


def test_words_that_name_a_result_are_those_of_its_modules_and_the_names_of_its_files(book):
    book.file("a/tools.py", 'X = "sizes"\n')
    book.file("a/add.cu", "")
    book.example("a/add", '# %% setup\nimport tools\nx = "own"\n')
    notebook = book.notebook("a/add")
    sources = recording.hashes(["a/add.py", "a/tools.py", "a/add.cu", "a/gone.py"])
    notebook["metadata"]["cudatut"]["sources"] = {k: v or "0" * 64 for k, v in sources.items()}
    book.recorded("a/add", notebook, agree=False)
    found = status._words(recording.load("a/add"))
    assert found == {"add", "tools", "gone", "sizes"}


def test_what_no_chapter_has_is_left_alone(book):
    """Of two chapters whose names fit the longer one has the example."""
    assert status._chapters() == {}
    (book.root.parent / "docs").mkdir()
    (book.root.parent / "docs" / "contents.yml").write_text(CONTENTS, encoding="utf-8")
    assert status._chapters() == {"a/done": True, "a/done_too": False, "a/planned": False}
    hidden = [
        book.example(name) and catalog.get(name)
        for name in ("a/done_more", "a/done_too_more", "a/doner", "b/done")
    ]
    (problem,) = status._hidden(hidden)
    assert problem == (
        "examples/drafts.txt hides a/done_more, and its chapter is published: remove the pattern, or say "
        "`written: draft` for a/done in docs/contents.yml"
    )
