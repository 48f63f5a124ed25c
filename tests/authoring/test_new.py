"""`python -m cudatut new`: a chapter's files in both languages, all of them or none."""

import re
from pathlib import Path

import pytest
import yaml

from cudatut import catalog, cli, exercises
from cudatut.authoring import new as beginning
from cudatut.authoring.new import NewChapterError, new
from cudatut.rules import formatting
from cudatut.site import contents, judge

NAME = "basics/warps"


def files_of(root):
    found = {path: path.read_bytes() for path in root.rglob("*") if path.is_file()}
    return {path: raw for path, raw in found.items() if ".ruff_cache" not in path.parts}


def test_only_what_the_author_has_to_say_is_left(small_book, capsys):
    before = files_of(small_book)
    assert cli.main(["new", NAME, "--en", 'Warps, "so called"', "--zh", "线程束怎么分"]) == 0
    said = capsys.readouterr().out.splitlines()
    written = [
        small_book / line.removeprefix("wrote ") for line in said if line.startswith("wrote ")
    ]
    assert f"`python -m cudatut check {NAME}`" in said[-2]
    docs = small_book / "docs"
    found = judge.of_chapter(NAME, docs)
    assert found and all("this is still to be written: " in one.message for one in found), found
    assert {one.file for one in found} > {f"docs/{lang}/{NAME}.md" for lang in ("en", "zh")}
    python = [path for path in written if path.suffix == ".py"]
    assert not formatting.of_python(python, small_book)
    assert not formatting.of_cuda([catalog.ChapterFiles(NAME).kernel], small_book)
    changed = {path for path, raw in files_of(small_book).items() if before.get(path) != raw}
    assert changed == set(written)
    # It is in progress: nothing waits for its recordings.
    parts = contents.load(docs / "contents.yml")
    (chapter,) = (one for one in contents.chapters(parts) if one.name == NAME)
    assert [one.name for one in contents.chapters(parts) if one.part == "basics"][-1] == NAME
    assert chapter.draft and chapter.title["en"] == 'Warps, "so called"'
    assert not [one for one in catalog.examples() if one.name.startswith(NAME)]
    assert NAME not in exercises.chapters(drafts=False)
    assert '{en: "Warps, \\"so called\\"", zh: "线程束怎么分"}' in (
        docs / "contents.yml"
    ).read_text("utf-8")
    # What stood there stands there as it was.
    for name in ("docs/contents.yml", "examples/drafts.txt"):
        old, now = before[small_book / name].decode(), (small_book / name).read_text("utf-8")
        added = [line for line in now.splitlines() if line not in old.splitlines()]
        assert [line for line in now.splitlines() if line not in added] == old.splitlines()
        assert len(added) == 1 + name.endswith("drafts.txt")


def test_without_titles_a_mark_stands_in_their_place(small_book):
    drafts = small_book / "examples" / "drafts.txt"
    drafts.write_text("start/other*", "utf-8")  # without the end of a line
    new(NAME)
    assert drafts.read_text("utf-8").startswith(f"start/other*\n{NAME}")
    found = [str(one) for one in judge.of_chapter(NAME, small_book / "docs")]
    assert f"docs/en/{NAME}.md:2: this is still to be written: the title of {NAME}" in found


def test_a_planned_chapter_keeps_its_titles_and_its_place(small_book):
    table = small_book / "docs" / "contents.yml"
    before = table.read_text("utf-8")
    planned = yaml.safe_load(before)["parts"]
    part, one = next((p, c) for p in planned for c in p["chapters"] if c["written"] is False)
    name = f"{part['id']}/{one['id']}"
    with pytest.raises(NewChapterError, match="leave --en and --zh out"):
        new(name, "Another title")
    new(name)
    after = table.read_text("utf-8")
    assert after.replace("written: draft", "written: false") == before
    assert after.count("written: draft") == 1
    page = (small_book / "docs" / "zh" / f"{name}.md").read_text("utf-8")
    assert f"# {one['title']['zh']} {{ #top }}" in page


@pytest.mark.parametrize(
    ("name", "titles", "said"),
    [
        ("basics/coalescing", (), "has a chapter 'basics/coalescing' already"),
        ("start/first", (), "start/first_kernel begin with 'start/first_'"),
        ("nowhere/warps", (), "has no part 'nowhere'; there are start, basics"),
        ("basics/Warps", (), "write part and chapter in a-z, 0-9 and _"),
        ("warps", (), "write part and chapter"),
        ("basics/../warps", (), "write part and chapter"),
        ("basics/warps_solutions", (), "ends with '_solutions'"),
        ("basics/warps", ("Divergence",), "'Divergence' is the title of basics/divergence"),
        ("basics/warps", ("War\nps",), "a title is one line"),
        ("start/first_optimisation", (), "is what start/first_optimization was called"),
    ],
)  # fmt: skip
def test_what_is_refused_changes_nothing(small_book, name, titles, said):
    before = files_of(small_book)
    with pytest.raises(NewChapterError, match=re.escape(said)):
        new(name, *titles)
    assert files_of(small_book) == before


@pytest.mark.parametrize(
    "there",
    [
        *(f"examples/{NAME}/{file}" for file in ("warps.cu", "chapter.py", "own.py", "own.cuh")),
        *(f"examples/{NAME}.cu", f"examples/{NAME}_claims.py"),  # such as a flat part has
        *(f"docs/zh/{NAME}.md", "docs/labels/basics_warps.yml"),
    ],
)
def test_a_file_that_is_there_stays_as_it_is(small_book, there):
    (small_book / there).parent.mkdir(exist_ok=True)
    (small_book / there).write_text("mine")
    before = files_of(small_book)
    with pytest.raises(NewChapterError, match=f"{there} is there already and nothing was written"):
        new(NAME)
    assert files_of(small_book) == before


@pytest.mark.parametrize("error", [OSError(28, "No space left", "x"), KeyboardInterrupt()])
def test_whatever_interrupts_it_leaves_nothing_behind(small_book, monkeypatch, error):
    """After each of its eleven files; also the folder that the first chapter of a part needs is gone."""
    name, writes, left = "beyond/multi_gpu", {}, []

    def failing(write):
        def once(path, raw):
            if left.pop() == 0:
                left.append(99)  # what is put back can be written
                raise error
            left.append(left_before := writes["left"] - 1)
            writes["left"] = left_before
            write(path, raw)

        return once

    before, folders = files_of(small_book), set(filter(Path.is_dir, small_book.rglob("*")))
    for name_of in ("write_new", "write_whole"):
        monkeypatch.setattr(beginning, name_of, failing(getattr(beginning, name_of)))
    for after in range(11):
        left[:], writes["left"] = [after], after
        with pytest.raises((NewChapterError, KeyboardInterrupt)):
            new(name)
        assert files_of(small_book) == before
        assert set(filter(Path.is_dir, small_book.rglob("*"))) == folders
    left[:], writes["left"] = [99], 99
    new(name)


@pytest.mark.parametrize(
    "otherwise",
    [
        lambda text: yaml.safe_dump(yaml.safe_load(text), allow_unicode=True),
        lambda text: text.replace("  - id: ", '  - "id": '),
    ],
)
def test_a_table_of_contents_that_is_written_otherwise(small_book, otherwise):
    table = small_book / "docs" / "contents.yml"
    table.write_text(otherwise(table.read_text("utf-8")), "utf-8")
    before = files_of(small_book)
    with pytest.raises(NewChapterError, match="add this one yourself, - {id: warps, title"):
        new(NAME)
    with pytest.raises(NewChapterError, match="of beyond/multi_gpu: write `written: draft` there"):
        new("beyond/multi_gpu")
    assert files_of(small_book) == before


def test_an_installed_package_has_no_pages(tmp_path, monkeypatch):
    monkeypatch.setenv("CUDATUT_EXAMPLES", str(tmp_path / "examples"))
    with pytest.raises(catalog.CudatutError, match="chapters are written in a checkout"):
        new(NAME)
    assert list(Path(tmp_path).iterdir()) == []


def test_what_somebody_writes_meanwhile_stays_as_it_is(small_book, monkeypatch):
    refuse, page = beginning._refuse, catalog.ChapterFiles(NAME).page("zh")

    def and_then(*given):
        refuse(*given)
        page.write_text("mine")

    monkeypatch.setattr(beginning, "_refuse", and_then)
    before = files_of(small_book)
    with pytest.raises(NewChapterError, match="cannot be written"):
        new(NAME)
    assert files_of(small_book) == before | {page: b"mine"}


# --- its parts --------------------------------------------------------------------------------------

TABLE = """parts:
  - id: one
    title: {en: One, zh: 一}
    chapters:
      - {id: a, title: {en: A, zh: 甲}, written: true}
      - {id: ab, title: {en: B, zh: 乙}, written: false}
  - id: one_more
    title: {en: More, zh: 二}
    chapters:
      - {id: a, title: {en: C, zh: 丙}, written: false}
  - id: last
    title: {en: Last, zh: 末}
    chapters:
      - {id: z, title: {en: Z, zh: 癸}, written: true}
"""


@pytest.fixture
def table(tmp_path):
    path = tmp_path / "contents.yml"
    path.write_text(TABLE, encoding="utf-8")
    return path


@pytest.mark.parametrize("name", ["one/ab", "one_more/a"])
def test_a_planned_chapter_is_begun_on_its_own_line(table, name):
    title = {"one/ab": "zh: 乙}", "one_more/a": "zh: 丙}"}[name]
    begun = TABLE.replace(f"{title}, written: false", f"{title}, written: draft")
    assert beginning._begun(table, catalog.ChapterFiles(name)).decode() == begun != TABLE


@pytest.mark.parametrize("name", ["one/a", "last/z", "one/b", "none/a"])
def test_what_is_not_planned_on_its_line_is_not_begun(table, name):
    with pytest.raises(NewChapterError, match=f"at the end of the line of {name}: write `written"):
        beginning._begun(table, catalog.ChapterFiles(name))


@pytest.mark.parametrize(("part", "behind"), [("one", "乙"), ("one_more", "丙"), ("last", "癸")])
def test_a_chapter_becomes_the_last_of_its_part(table, part, behind):
    files = catalog.ChapterFiles(f"{part}/new")
    found = beginning._with_chapter(table, files, {"en": 'A "b"', "zh": "新"}).decode()
    old, added = (
        TABLE.splitlines(),
        '      - {id: new, title: {en: "A \\"b\\"", zh: "新"}, written: draft}',
    )
    at = next(n for n, line in enumerate(old) if behind in line) + 1
    assert found.splitlines() == [*old[:at], added, *old[at:]]


@pytest.mark.parametrize(("part", "also"), [("one", "other: {"), ("none", "")])
def test_a_table_that_would_say_something_else_is_left_alone(table, part, also):
    table.write_text(TABLE + also, encoding="utf-8")
    with pytest.raises(NewChapterError, match="add this one yourself, - {id: new"):
        beginning._with_chapter(table, catalog.ChapterFiles(f"{part}/new"), {"en": "A", "zh": "新"})


def test_the_chapters_of_a_table_by_name():
    assert beginning._lists(TABLE) == ["one/a", "one/ab", "one_more/a", "last/z"]
    assert beginning._lists("parts: {") == beginning._lists("a: 1") == []


@pytest.mark.parametrize(
    ("text", "kept"), [(None, ""), ("", ""), ("a\n", "a\n"), ("a", "a\n"), ("\na", "\na\n")]
)
def test_lines_are_added_behind_the_last_one(tmp_path, text, kept):
    path = tmp_path / "drafts.txt"
    if text is not None:
        path.write_text(text)
    assert beginning._with_lines(path, ("b*", "c")).decode() == f"{kept}b*\nc\n"


def test_what_a_skeleton_is_filled_with(tmp_path, monkeypatch):
    marks = (
        "name",
        "part",
        "stem",
        "kernel",
        "en",
        "zh",
        "EN",
        "ZH",
        "EN_SOLUTIONS",
        "ZH_SOLUTIONS",
    )
    (tmp_path / "page.txt").write_text("\n".join(f"@{mark}@" for mark in marks) + " a@b.c\n")
    monkeypatch.setattr(beginning, "_SKELETON", tmp_path)
    files = catalog.ChapterFiles("basics/warps")
    filled = beginning._filled("page", files, {"en": 'The "w"', "zh": "束"}).decode()
    assert filled.splitlines() == [
        "basics/warps", "basics", "warps", "basics/warps/warps.cu", 'The "w"', "束", '"The \\"w\\""', '"束"',
        '"The \\"w\\": solutions"', '"束：参考答案" a@b.c',
    ]  # fmt: skip


def test_a_chapter_that_is_begun_is_not_begun_again(small_book):
    new(NAME)
    before = files_of(small_book)
    with pytest.raises(NewChapterError, match=f"has a chapter '{NAME}' already"):
        new(NAME)
    assert files_of(small_book) == before


def test_titles_are_those_that_were_given_or_marks(small_book):
    new(NAME, chinese="线程束怎么分")
    assert f'{{en: "(to write: the title of {NAME})", zh: "线程束怎么分"}}' in (
        small_book / "docs" / "contents.yml"
    ).read_text("utf-8")


def test_several_files_that_are_there_are_all_named(small_book):
    for path in (own := [f"docs/{lang}/{NAME}.md" for lang in ("en", "zh")]):
        (small_book / path).write_text("mine")
    with pytest.raises(NewChapterError, match=f"^{', '.join(own)} are there already"):
        new(NAME)


def test_a_notebook_that_cannot_be_made_is_told_with_what_brings_it(monkeypatch):
    def missing(name, lang):
        raise ImportError("no", name="nbformat")

    monkeypatch.setattr(exercises, "committed_notebook", missing)
    cure = re.escape(
        f"made without nbformat: `{beginning.paths.pip_install('record')}`; nothing was"
    )
    with pytest.raises(NewChapterError, match=cure):
        beginning._notebook(NAME, "en")
