"""What of a page goes into the search index. test_browser.py searches."""

import json
from html import escape

import pytest

from cudatut.site import searching
from cudatut.site.searching import searched

SHUFFLE = {
    "id": "shuffle",
    "en": "warp shuffle",
    "zh": "线程束洗牌",
    "chapter": "reduction/shuffles",
    "code": ["__shfl_down_sync"],
    "also": {"zh": ["洗牌"]},
    "means": {"en": "x", "zh": "x"},
}


def test_words_and_code_are_searched_numbers_and_drawings_are_not():
    page = (
        '<p class="ct-time">5 minutes</p>'
        '<h2 id="run">Run</h2><p>One warp.</p><pre><span></span><code><span class="k">int</span> i;</code></pre>'
        '<figure class="ct-bench"><svg><text>GB/s</text></svg><table class="ct-table"><td>1</td></table></figure>'
        '<table class="ct-table"><td>2</td></table><pre class="ct-diff__lines">3</pre><ul class="ct-code"><li>4</li></ul>'
        "<table><td>typed</td></table><ul><li>a list</li></ul>"
    )
    assert searched(page) == (
        '<h2 id="run">Run</h2><p>One warp.</p><pre><code>int i;</code></pre>'
        "<table><td>typed</td></table><ul><li>a list</li></ul>"
    )


def test_what_a_program_printed_is_in_the_index_and_its_tables_are_not(project):
    said = "cuMemAlloc failed: out of <b>memory</b>"
    printed = {"output_type": "stream", "name": "stdout", "text": f"{said}\n"}
    project.book.recorded("start/add", project.book.notebook("start/add", printed))
    index = (project.build() / "search/search_index.json").read_text(encoding="utf-8")
    text = " ".join(e["text"] for e in json.loads(index)["docs"] if e["location"] == "start/add/")
    assert escape(said) in text
    assert "one thread" not in text  # the benchmark's row


@pytest.mark.parametrize(
    ("words", "token"),
    [
        ("shared memory", "§sharedmemory"),
        ("__shfl_down_sync()", "§shfldownsync"),
        ("#pragma unroll", "§pragmaunroll"),
        ("Stream-K", "§streamk"),
        ("规约", "§89c47ea6"),
    ],
)
def test_a_term_is_one_token(words, token):
    assert searching.token(words) == token


def test_keywords_stand_on_the_page_that_introduces_the_term():
    entries = [
        {"location": "reduction/shuffles/", "text": ""},
        {"location": "reduction/shuffles/#run", "text": ""},
        {"location": "reduction/naive/", "text": ""},
    ]
    searching.add_keywords(entries, [SHUFFLE, {"id": "x", "en": "x", "zh": "x"}], "zh")
    found = entries[0]["keywords"].split()
    assert {"§shfldownsync", "§warpshuffle", searching.token("洗牌")} <= set(found)
    assert ["keywords" in entry for entry in entries] == [True, False, False]


def test_what_readers_ask_for_stands_on_the_page_that_says_so(project, caplog):
    page = "---\nsearch:\n  words: {words}\n---\n# Add { #top }\n"
    project.page("start/add.md", page.replace("{words}", "[why is it slow]"))
    index = (project.build() / "search/search_index.json").read_text(encoding="utf-8")
    entries = {entry["location"]: entry for entry in json.loads(index)["docs"]}
    assert entries["start/add/"]["keywords"] == "§whyisitslow"
    project.page("start/add.md", page.replace("{words}", "slow"))
    project.refused(caplog, "docs/en/start/add.md", "'slow'", "no list of words")


def test_the_index_of_a_build_has_keywords_and_whole_terms(project):
    pytest.importorskip("jieba")
    term = "{id: zz-lattice, en: lattice, zh: 格子花墙, chapter: start/add, means: {en: x, zh: x}}"
    with (project.root / "docs/glossary.yml").open("a", encoding="utf-8") as file:
        file.write(f"\n- {term}\n")
    project.body("我们在这里用格子花墙来求和。", "zh")
    index = (project.build("zh") / "search/search_index.json").read_text(encoding="utf-8")
    entries = {entry["location"]: entry for entry in json.loads(index)["docs"]}
    assert searching.token("格子花墙") in entries["start/add/"]["keywords"].split()
    assert "keywords" not in entries["glossary/"]
    text = " ".join(entry["text"] for entry in entries.values())
    assert "\u200b格子花墙\u200b" in text


def test_english_search_finds_chinese_words_whole(project):
    pytest.importorskip("jieba")
    words = "一条指令由线程束执行"
    for lang in ("en", "zh"):
        project.body(f"See {words} here.", lang)
        index = (project.build(lang) / "search/search_index.json").read_text(encoding="utf-8")
        (text,) = (e["text"] for e in json.loads(index)["docs"] if e["location"] == "start/add/")
        # English search cuts at blanks, and not at the marks that stand between Chinese words.
        assert (f"See {words} here" in text) == (lang == "en")
        assert ("\u200b指令\u200b" in text) == (lang == "zh")


def test_jieba_keeps_terms_whole():
    jieba = pytest.importorskip("jieba")
    searching.taught([SHUFFLE])
    assert "线程束洗牌" in list(jieba.cut("这里用线程束洗牌来求和"))
