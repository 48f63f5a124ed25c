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


def test_a_page_has_the_names_of_the_terms_that_it_introduces():
    entries = [
        {"location": "reduction/shuffles/", "text": ""},
        {"location": "reduction/shuffles/#run", "text": ""},
        {"location": "reduction/naive/", "text": ""},
    ]
    terms = [
        SHUFFLE,
        {"id": "x", "en": "x", "zh": "x"},
        {"id": "y", "en": "y", "zh": "乙", "explained": "reduction/naive"},
    ]
    words = {"reduction/naive/": ["求和", "sum = total"]}
    searching.complete(entries, terms, "zh", words, {"reduction/naive/": "归约"})
    assert entries[0]["keywords"] == [["线程束洗牌", "洗牌", "warp shuffle"], ["__shfl_down_sync"]]
    assert entries[1].keys() == {"location", "text"}
    assert entries[2]["keywords"] == [["乙", "y"], ["sum", "total"]]
    assert entries[2]["asked"] == ["求和"]
    assert entries[2]["part"] == "归约"


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("start/none: {en: [a], zh: [a]}", "has no chapter 'start/none'"),
        ("start/add: {en: [a]}", "start/add needs words in en and zh"),
        ("start/add: {en: [a], zh: a}", "start/add: zh: 'a' has no list of words"),
        ("{", "search.yml"),
    ],
)
def test_words_of_the_list_are_checked(tmp_path, text, message):
    (tmp_path / "search.yml").write_text(text, encoding="utf-8")
    with pytest.raises(searching.SearchWordsError) as error:
        searching.asked_for(tmp_path / "search.yml", {"start/add"})
    assert message in str(error.value)


def test_words_of_the_list_are_by_language_and_address(tmp_path):
    (tmp_path / "search.yml").write_text("start/add: {en: [a, b], zh: [甲]}\n", encoding="utf-8")
    found = searching.asked_for(tmp_path / "search.yml", {"start/add", "start/later"})
    assert found == {"en": {"start/add/": ["a", "b"]}, "zh": {"start/add/": ["甲"]}}


@pytest.mark.parametrize(
    ("meta", "words"),
    [
        ({}, []),
        ({"search": None}, []),
        ({"search": {"exclude": True}}, []),
        ({"search": {"words": ["nan", "wrong result"]}}, ["nan", "wrong result"]),
        ({"search": {"words": "nan"}}, None),
        ({"search": {"words": [""]}}, None),
        ({"search": {"words": [1]}}, None),
        ({"search": "nan"}, None),
    ],
)
def test_words_of_the_front_matter(meta, words):
    if words is not None:
        assert searching.asked(meta) == words
    else:
        with pytest.raises(
            searching.SearchWordsError,
            match="^search: .* in the front matter has no list of words; write",
        ):
            searching.asked(meta)


def test_words_that_mean_the_same_are_names_and_no_word_stands_twice():
    entries = [{"location": "a/b/"}, {"location": "a/c/"}]
    words = {"a/b/": ["sum = total = 和", "sum", "slow", "slow"], "a/c/": []}
    searching.complete(entries, [], "en", words, {})
    assert entries == [
        {"location": "a/b/", "keywords": [["sum", "total", "和"]], "asked": ["sum", "slow"]},
        {"location": "a/c/"},
    ]


def test_what_readers_ask_for_stands_on_the_page_that_says_so(project, caplog):
    page = "---\nsearch:\n  words: {words}\n---\n# Add { #top }\n"
    project.page("start/add.md", page.replace("{words}", "[why is it slow]"))
    index = (project.build() / "search/search_index.json").read_text(encoding="utf-8")
    entries = {entry["location"]: entry for entry in json.loads(index)["docs"]}
    assert entries["start/add/"]["asked"] == ["why is it slow"]
    project.page("start/add.md", page.replace("{words}", "slow"))
    project.refused(caplog, "docs/en/start/add.md", "'slow'", "no list of words")


def test_the_index_of_a_build_has_names_and_parts_and_leaves_chinese_whole(project):
    term = "{id: zz-lattice, en: lattice, zh: 格子花墙, chapter: start/add, means: {en: x, zh: x}}"
    with (project.root / "docs/glossary.yml").open("a", encoding="utf-8") as file:
        file.write(f"\n- {term}\n")
    words = "我们在这里用格子花墙来求和。"
    project.body(words, "zh")
    index = (project.build("zh") / "search/search_index.json").read_text(encoding="utf-8")
    entries = {entry["location"]: entry for entry in json.loads(index)["docs"]}
    page = entries["start/add/"]
    assert ["格子花墙", "lattice"] in page["keywords"]
    assert page["part"]
    assert "keywords" not in entries["glossary/"]
    assert words in page["text"]
