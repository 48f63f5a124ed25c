"""The table of contents: what is refused, which pages it keeps out of a site, and what it shows of each chapter."""

import pytest
import yaml

from cudatut.site import contents, state
from cudatut.site.contents import Chapter, ContentsError, Part

HEAD = ("title", "level", "about")
WORDS = {"en": "x", "zh": "x"}
TITLES = {name: {"en": f"The <{name}>", "zh": f"章节 {name}"} for name in ("add", "late", "draft")}
PART = Part(
    "start",
    {"en": "Start & go", "zh": "入门"},
    {"en": "Novice <1>", "zh": "新手"},
    {"en": "About > all.", "zh": "简介。"},
    (
        Chapter("start", "add", TITLES["add"], written=True),
        Chapter("start", "late", TITLES["late"], written=False),
        Chapter("start", "draft", TITLES["draft"], written=False, draft=True),
    ),
)
EMPTY = Part("later", WORDS, WORDS, WORDS, (Chapter("later", "x", WORDS, written=False),))


@pytest.fixture
def preview():
    """A preview of one chapter."""
    before = state.current()
    state.begin(state.State(only=("start/late",)))
    yield
    state.begin(before)


def load(tmp_path, *parts):
    path = tmp_path / "contents.yml"
    path.write_text(yaml.safe_dump({"parts": list(parts)}, allow_unicode=True), "utf-8")
    return contents.load(path)


def part(id, *chapters):
    """A part as its file has it; chapters: ids, or what a chapter has besides."""
    made = [
        {"title": {"en": f"{id} {k}", "zh": f"{id} {k}"}, "written": False}
        | (one if isinstance(one, dict) else {"id": one})
        for k, one in enumerate(chapters)
    ]
    words = {key: {"en": f"{key} of {id}", "zh": f"{id} 的 {key}"} for key in HEAD}
    return {"id": id, **words, "chapters": made}


# --- reading -------------------------------------------------------------------------------------


def test_what_a_file_says_of_its_chapters(tmp_path):
    states = (True, False, "draft")
    chapters = [
        {"id": f"c{k}", "title": {"en": f"C{k}", "zh": f"第 {k} 章"}, "written": written}
        for k, written in enumerate(states)
    ]
    first, second = load(tmp_path, part("a", *chapters), part("b", "c0"))
    assert [(one.written, one.draft) for one in first.chapters] == [
        (True, False),
        (False, False),
        (False, True),
    ]
    assert [one.name for one in contents.chapters((first, second))] == [
        *("a/c0", "a/c1", "a/c2", "b/c0"),
    ]
    assert first.chapters[1].title == {"en": "C1", "zh": "第 1 章"}
    assert first.chapters[1].page == "a/c1.md"
    for key in HEAD:
        assert getattr(second, key) == {"en": f"{key} of b", "zh": f"b 的 {key}"}


def test_a_preview_has_written_what_it_shows_and_all_else_in_progress(tmp_path, preview):
    (found,) = load(tmp_path, part("start", "late", {"id": "add", "written": True}))
    assert [(one.written, one.draft) for one in found.chapters] == [(True, False), (False, True)]
    with pytest.raises(ContentsError, match=r"contents.yml: there is no chapter start/late"):
        load(tmp_path, part("start", "add"))


@pytest.mark.parametrize(
    ("parts", "twice"),
    [
        ((part("a", "x", "y"), part("b", "x"), part("a", "z")), "a"),
        ((part("a", "x", "x"),), "a/x"),
        ((part("b", "y", "y"), part("a", "x", "x")), "a/x, b/y"),
    ],
)
def test_what_stands_there_twice(tmp_path, parts, twice):
    with pytest.raises(ContentsError, match=f"stands there twice: {twice}$"):
        load(tmp_path, *parts)


@pytest.mark.parametrize("written", ["yes", None, 2])
def test_a_chapter_is_written_or_not_or_in_progress(tmp_path, written):
    with pytest.raises(ContentsError, match="write true, false or draft"):
        load(tmp_path, part("a", {"id": "x", "written": written}))


def test_a_chapter_that_becomes_written_alone_does(preview):
    found = contents.as_written((PART, EMPTY), "start/draft")
    flags = [(one.written, one.draft) for one in contents.chapters(found)]
    assert flags == [(True, False), (False, False), (True, False), (False, False)]
    with pytest.raises(ContentsError, match="no chapter 'start/ad'. Did you mean start/add"):
        contents.as_written([PART], "start/ad")


# --- which pages ---------------------------------------------------------------------------------


def test_a_preview_of_a_chapter_needs_its_glossary_and_the_page_on_the_book(preview):
    found = contents.left_out((PART,))
    reference = {f"{page}.md" for page in ("claims", "examples", "api", "contributing")}
    assert found == reference | {"start/draft.md"}


def test_a_site_leaves_out_what_is_in_progress():
    assert contents.left_out(()) == set()
    assert contents.left_out((PART, EMPTY)) == {"start/draft.md"}


def test_links_to_what_is_left_out_are_words():
    said = (
        "[a](draft.md#x), [b](../start/draft.md), [c](add.md), ![d](draft.md), [e](later/draft.md)"
    )
    assert contents.unlink_drafts(said, "start/add.md", (PART,)) == (
        "a, b, [c](add.md), ![d](draft.md), [e](later/draft.md)"
    )
    assert contents.unlink_drafts("[a](start/draft.md)", "index.md", (PART,)) == "a"


def test_chapters_that_cite_an_example(tmp_path):
    pages = {"add": "{{ start/x#a.b }} {{ start/y#a.b }}", "draft": "{{ start/x#a.b }}"}
    (tmp_path / "start").mkdir()
    for name, text in pages.items():
        (tmp_path / "start" / f"{name}.md").write_text(text, "utf-8")
    add = PART.chapters[0]
    assert contents.chapters_by_example((PART,), tmp_path) == {"start/x": [add], "start/y": [add]}
    both = contents.as_written([PART], "start/draft")
    found = contents.chapters_by_example(both, tmp_path)
    assert [one.name for one in found["start/x"]] == ["start/add", "start/draft"]


# --- what it shows -------------------------------------------------------------------------------


def test_navigation():
    home, start, reference = contents.nav((PART, EMPTY), "zh")
    assert list(home.values()) == ["index.md"]
    assert start == {"入门": [{"章节 add": "start/add.md"}]}
    pages = [page for one in next(iter(reference.values())) for page in one.values()]
    assert pages == [f"{page}.md" for page in contents.REFERENCE]


def test_navigation_of_a_preview(preview):
    pages = [page for one in contents.nav((), "en")[-1].values() for page in one]
    assert [*pages[0].values(), *pages[1].values()] == ["book.md", "glossary.md"]
