"""The landing page's account of the whole book: parts, planned chapters, hours and what they are computed from."""

import re
from pathlib import Path

import pytest

from cudatut import exercises
from cudatut.site import contents, locale, main_path, whole_book
from cudatut.site.contents import Chapter, Part

ROOT = Path(__file__).resolve().parents[2]
PARTS = contents.load(ROOT / "docs/contents.yml")
CHAPTERS = list(contents.chapters(PARTS))
WRITTEN = [one for one in CHAPTERS if one.written]
WORDS = {"en": "Later", "zh": "以后"}
TITLES = {name: {"en": f"The <{name}>", "zh": f"章节 {name}"} for name in ("add", "late", "draft")}
PART = Part(
    "start",
    {"en": "Start & go", "zh": "入门"},
    {"en": "Novice <1>", "zh": "新手"},
    {"en": "About > all.", "zh": "简介。"},
    (
        Chapter("start", "late", TITLES["late"], written=False),
        Chapter("start", "add", TITLES["add"], written=True),
        Chapter("start", "draft", TITLES["draft"], written=False, draft=True),
    ),
)
EMPTY = Part("later", WORDS, WORDS, WORDS, (Chapter("later", "x", WORDS, written=False),))


def test_what_is_planned_stands_at_the_end_without_links(monkeypatch):
    monkeypatch.setattr(contents, "load", lambda: (PART, EMPTY))
    mark = '<span class="ct-unwritten__mark">{}</span></li>'
    assert whole_book.parts() == (
        '<div class="ct-contents"><section class="ct-part" aria-labelledby="part-start">'
        '<p class="ct-part__level">Novice &lt;1&gt;</p>'
        '<h3 class="ct-part__title" id="part-start">Start &amp; go</h3>'
        '<p class="ct-part__about">About &gt; all.</p><!--hours start--><ol>'
        '<li data-exercises="0"><a href="start/add/">The &lt;add&gt;</a></li></ol></section>'
        '<section class="ct-part" aria-labelledby="part-planned">'
        '<h3 class="ct-part__title" id="part-planned">Planned</h3><ul>'
        f'<li class="ct-unwritten">The &lt;late&gt; (Start &amp; go) {mark.format("not yet written")}'
        f'<li class="ct-unwritten">The &lt;draft&gt; (Start &amp; go) {mark.format("in progress")}'
        f'<li class="ct-unwritten">Later (Later) {mark.format("not yet written")}'
        "</ul></section></div>"
    )
    with locale.using("zh"):
        assert re.findall(r'part-start">([^<]+)<', whole_book.parts()) == ["入门"]
    monkeypatch.setattr(
        contents, "load", lambda: (PART.__class__(**vars(PART) | {"chapters": PART.chapters[1:2]}),)
    )
    assert "part-planned" not in whole_book.parts()


@pytest.mark.parametrize(
    ("lang", "unwritten", "draft"),
    [("en", "not yet written", "in progress"), ("zh", "尚未撰写", "撰写中")],
)
def test_every_chapter_is_there_once(lang, unwritten, draft):
    with locale.using(lang):
        html = whole_book.parts()
    assert re.findall(r'<a href="([^"]+)/">', html) == [one.name for one in WRITTEN]
    drafts = [one for one in CHAPTERS if one.draft]
    assert (html.count(unwritten), html.count(draft)) == (
        len(CHAPTERS) - len(WRITTEN) - len(drafts),
        len(drafts),
    )
    counted = dict(zip((one.name for one in WRITTEN), re.findall(r'data-exercises="(\d+)"', html)))
    assert counted["start/which_thread"] == str(len(exercises.of_chapter("start/which_thread")))


def test_hours_are_the_sum_of_what_the_chapters_say():
    minutes = {"a/x": (20, 45), "a/y": (70, 15), "b/z": (5, 5)}
    said = lambda mark: re.findall(r"\d+", whole_book.with_hours(mark, minutes))  # noqa: E731
    assert said("<!--hours a-->") == ["2", "1"]  # 90 minutes and 60
    assert said("<!--hours b-->") == ["1", "1"]  # never none
    assert said("<!--hours a b-->") == said("<!--hours-->") == ["2", "1"]  # 95 and 65
    assert whole_book.with_hours("<p>x<!--hours c--></p>", minutes) == "<p>x</p>"
    with locale.using("zh"):
        assert "小时" in whole_book.with_hours("<!--hours-->", minutes)


@pytest.mark.parametrize("lang", locale.LANGUAGES)
def test_the_landing_page_says_what_the_chapters_add_up_to(built_site, lang):
    folder = built_site / ("" if lang == "en" else "zh")
    landing = (folder / "index.html").read_text(encoding="utf-8")
    assert "<!--hours" not in landing
    minutes = {}
    for chapter in WRITTEN:
        page = (folder / chapter.name / "index.html").read_text(encoding="utf-8")
        line = re.search(r'<p class="ct-time">(.*?)</p>', page)[1]
        read, *practice = map(int, re.findall(r"\d+", line))
        minutes[chapter.name] = read, sum(practice)
    with locale.using(lang):
        for names in (
            (),
            *((part.id,) for part in PARTS if any(one.written for one in part.chapters)),
        ):
            mark = f"<!--{' '.join(('hours', *names))}-->"
            assert whole_book.with_hours(mark, minutes) in landing
        assert main_path.reckoned() in landing


@pytest.mark.parametrize("lang", locale.LANGUAGES)
def test_the_landing_page_shows_a_whole_short_program_and_its_output(built_site, lang):
    folder = built_site / ("" if lang == "en" else "zh")
    landing = (folder / "index.html").read_text(encoding="utf-8")
    program = landing.partition('id="program"')[2].partition('id="routes"')[0]
    code = re.search(r"<pre><span></span><code>(.*?)</code>", program, re.DOTALL)[1]
    assert 12 <= len(code.splitlines()) <= 20
    assert '<span class="kr">__global__</span>' in code or "__global__</span>" in code
    assert program.count('class="ct-result"') == 1 and program.count("ct-download") == 1
