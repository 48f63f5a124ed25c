"""The glossary: what it refuses, what its page says, and its definitions on hover."""

import re
from collections import Counter
from itertools import accumulate
from pathlib import Path

import pytest
import yaml

from cudatut.site import contents, glossary, lint, locale, references, state, terms

ROOT = Path(__file__).resolve().parents[2]
WARP = {
    "id": "warp",
    "en": "warp",
    "zh": "线程束",
    "chapter": "start/model",
    "code": ["warpSize"],
    "also": {"en": ["bundle of threads"], "zh": ["线程组"]},
    "means": {"en": '32 "threads" of a `block`.', "zh": "32 个线程。"},
}
FMA = {
    "id": "fma",
    "en": "fused multiply-add (FMA)",
    "zh": "融合乘加（FMA）",
    "means": {"en": "a·b + c.", "zh": "a·b + c。"},
}
THREAD = {"id": "thread", "en": "thread", "zh": "线程", "means": {"en": "One.", "zh": "一个。"}}
STREAM = {"id": "stream", "en": "stream", "zh": "流", "means": {"en": "A queue.", "zh": "队列。"}}
PARTS = (
    contents.Part(
        "start",
        *({"en": "x", "zh": "x"} for _ in range(3)),
        (contents.Chapter("start", "model", {"en": "The <model>", "zh": "模型"}, written=True),),
    ),
)


def load(tmp_path, *terms):
    path = tmp_path / "glossary.yml"
    path.write_text(yaml.safe_dump(list(terms), allow_unicode=True), encoding="utf-8")
    return glossary.load(path, PARTS)


@pytest.mark.parametrize(
    ("change", "said"),
    [
        ({"chapter": "start/nowhere"}, "'warp' is introduced in 'start/nowhere'"),
        ({"explained": "start/nowhere"}, "'warp' is explained in 'start/nowhere'"),
        ({"explained": "start/model"}, "'warp' has a chapter that introduces it"),
        ({"code": "warpSize"}, "'warp' must have a list of words in code"),
        ({"also": ["bundle"]}, "has other synonyms than"),
        ({"also": {"fr": ["chaîne"]}}, "has other synonyms than"),
        ({"also": {"en": [""]}}, "a list of words in en"),
        ({"chapter": None}, "names no chapter"),
        ({"cod": []}, "'warp' has cod"),
        ({"zh": None}, "lacks its term or meaning in zh"),
        ({"ordinary": "warp"}, "a list of words in ordinary"),
        ({"ordinary": ["weft"]}, "has ordinary words that are none of its names: weft"),
    ],
)
def test_a_wrong_entry_is_refused(tmp_path, change, said):
    with pytest.raises(glossary.GlossaryError, match=re.escape(said)):
        load(tmp_path, WARP | change)


def test_other_words_in_an_entry_are_right(tmp_path):
    ordinary = WARP | {"ordinary": ["warp", "线程组"], "also": {"zh": ["线程组"]}}
    explained = THREAD | {"explained": "start/model"}
    assert load(tmp_path, explained, ordinary) == [explained, ordinary]


@pytest.mark.parametrize(
    ("ids", "said"),
    [
        (("Warp",), "id 'Warp' after ''"),
        ((7,), "id 7 after ''"),
        (("a", "a"), "id 'a' after 'a': ids are of a-z, 0-9 and -, unique and sorted"),
        (("b", "a"), "id 'a' after 'b'"),
    ],
)
def test_ids_are_in_order(tmp_path, ids, said):
    with pytest.raises(glossary.GlossaryError, match=re.escape(said)):
        load(tmp_path, *(THREAD | {"id": one} for one in ids))


def test_a_glossary_that_cannot_be_read(tmp_path):
    path = tmp_path / "glossary.yml"
    for text in (None, b"- id: [", b"\xff"):
        if text:
            path.write_bytes(text)
        with pytest.raises(glossary.GlossaryError, match=re.escape(f"{path}: ")):
            glossary.load(path, PARTS)


def test_a_code_word_belongs_to_one_term(tmp_path):
    with pytest.raises(glossary.GlossaryError, match="`warpSize`.*'thread'.*'warp'"):
        load(tmp_path, THREAD | {"code": ["warpSize"], "chapter": "start/model"}, WARP)


def test_the_glossary_of_the_book():
    terms = glossary.load(ROOT / "docs/glossary.yml")
    assert len(terms) > 60


def test_all_words_for_a_term():
    assert glossary.words(WARP, "en") == ["warp", "bundle of threads", "warpSize"]
    assert glossary.words(WARP, "zh") == [
        "线程束",
        "线程组",
        "warpSize",
        "warp",
        "bundle of threads",
    ]
    assert glossary.words(FMA, "en") == ["fused multiply-add", "FMA"]


def test_the_page_names_code_and_chapter():
    state.begin(state.State(url="glossary/"))
    page = glossary.markdown([WARP, THREAD], "en", PARTS)
    assert "## warp · 线程束 { #warp }" in page
    assert "`warpSize`" in page
    assert 'Introduced in <a href="../start/model/">The &lt;model&gt;</a>' in page
    assert page.count("Introduced in") == 1
    chinese = glossary.markdown([WARP], "zh", PARTS)
    assert '首次讲解：《<a href="../start/model/">模型</a>》' in chinese


def test_the_page_line_by_line():
    """Each term once where its languages agree; Chinese ones by pinyin, behind Latin letters."""
    state.begin(state.State(url="glossary/"))
    both = {"id": "z", "en": "cuBLAS", "zh": "cuBLAS", "means": {"en": "A library.", "zh": "库。"}}
    assert glossary.markdown([FMA, both], "en", PARTS).splitlines() == [
        "## fused multiply-add (FMA) · 融合乘加（FMA） { #fma }",
        "",
        "a·b + c.",
        "",
        "## cuBLAS { #z }",
        "",
        "A library.",
    ]
    chinese = glossary.markdown([FMA, STREAM, WARP, both], "zh", PARTS)
    assert re.findall(r"#(\w+) }", chinese) == ["z", "stream", "fma", "warp"]
    assert "\n`warpSize`\n\n首次讲解" in chinese


def test_the_letters_lead_to_the_first_term_of_each():
    both = {"id": "z", "en": "cuBLAS", "zh": "cuBLAS", "means": {"en": "A library.", "zh": "库。"}}
    terms = [FMA, STREAM, THREAD, WARP, both]
    assert glossary.letters(terms, "en") == [
        ("F", "fma"),
        ("S", "stream"),
        ("T", "thread"),
        ("W", "warp"),
        ("Z", "z"),
    ]
    # 线程 and 线程束, 流, 融合乘加 by pinyin: xian, liu, rong
    assert glossary.letters(terms, "zh") == [
        ("A–Z", "z"),
        ("L", "stream"),
        ("R", "fma"),
        ("X", "thread"),
    ]
    (top,) = glossary.toc(terms, "zh", "术语表")
    assert top["id"] == "top" and [one["name"] for one in top["children"]] == ["A–Z", *"LRX"]


@pytest.mark.parametrize("lang", ["en", "zh"])
def test_the_books_letters_are_in_order(lang):
    names = [
        letter for letter, _ in glossary.letters(glossary.load(ROOT / "docs/glossary.yml"), lang)
    ]
    ours = names[1:] if lang == "zh" else names
    assert ours == sorted(ours) and len(ours) > 15 and all(len(one) == 1 for one in ours)


def test_the_page_of_the_book_that_is_built(tmp_path):
    """Its own glossary, in its language."""
    (tmp_path / "glossary.yml").write_text(yaml.safe_dump([THREAD, WARP]), "utf-8")
    state.begin(state.State("zh", tmp_path / "zh", url="glossary/"))
    try:
        with locale.using("zh"):
            page = glossary.markdown(parts=PARTS)
    finally:
        state.begin(state.State())
    assert re.findall(r"## (.*) {", page) == ["线程 · thread", "线程束 · warp"]


@pytest.mark.parametrize(
    ("page", "found"),
    [
        ("---\ntitle: T\nterms: {block: kv-block, page: null}\n---\n# T\n", {"block": "kv-block", "page": None}),
        ("---\ntitle: T\n---\n", {}),
        ("---\n# nothing yet\n---\n", {}),
        ("# T\n\n---\nterms: {block: kv-block}\n---\n", {}),
    ],
)  # fmt: skip
def test_what_words_mean_on_a_page(page, found):
    assert glossary.meanings(page) == found


# --- hover ------------------------------------------------------------------------------------------


def hover(html, lang="en", terms=(WARP, FMA, THREAD, STREAM)):
    return glossary.Hover(list(terms), lang).put(html, "../glossary/")


def linked(html):
    return re.findall(r'<a class="ct-term" href="\.\./glossary/#([\w-]+)"[^>]*>([^<]+)</a>', html)


def test_the_first_occurrence_is_defined():
    html = hover("<p>A Warp has threads; a warp waits.</p><p>The warp.</p>")
    assert linked(html) == [("warp", "Warp"), ("thread", "threads")]
    assert 'title="32 &quot;threads&quot; of a block."' in html


@pytest.mark.parametrize(
    "closed",
    [
        "<h2>A warp</h2>",
        '<a href="x">warp</a>',
        "<code>warp</code>",
        "<pre><span>a</span> warp</pre>",
        "<summary>warp</summary>",
        '<svg aria-label="a > b"><text>warp</text></svg>',
        '<div class="ct-result"><div>x</div><p>warp</p></div>',
        '<table class="ct-table"><tr><td>warp</td></tr></table>',
        '<span class="arithmatex">warp</span>',
        "<math><mtext>warp</mtext></math>",
        "<a><a>x</a> warp</a>",
        '<div class="ct-result"><br/>x<img src="a"> warp</div>',
        "<H2>warp</H2>",
        "<a title='>'>warp</a>",
    ],
)
def test_only_prose_is_defined(closed):
    html = hover(f'{closed}<img alt="warp"><p>One warp.</p>')
    assert html.startswith(f'{closed}<img alt="warp"><p>One <a class="ct-term"')
    assert linked(html) == [("warp", "warp")]


def test_a_definition_is_put_behind_what_is_closed():
    """Whatever stood there: what closes is what opened it."""
    page = "<p><em>x</em></h2><code>a</code>{}<kbd>b</kbd></code></p>"
    html = hover(page.format(" warp "))
    assert linked(html) == [("warp", "warp")]
    assert re.sub(r"</?a\b[^>]*>", "", html) == page.format(" warp ")


def test_whole_words_only():
    assert linked(hover("<p>warped, multi-warp, warpSize, streaming</p>")) == []
    assert linked(hover("<p>An FMA, or bundles of threads; a bundle of threads.</p>")) == [
        ("fma", "FMA"),
        ("thread", "threads"),
        ("warp", "bundle of threads"),
    ]


def test_chinese_takes_the_longest_term_and_none_of_one_character():
    html = hover("<p>每个线程束（warp）的线程都走同一流程，warp里有 FMA。</p>", "zh")
    assert linked(html) == [("warp", "线程束"), ("thread", "线程"), ("fma", "FMA")]


def test_a_word_with_another_meaning_on_a_page():
    hover, page = glossary.Hover([STREAM, THREAD, WARP], "en"), "<p>Threads, a warp, threads.</p>"
    html = hover.put(page, "../glossary/", {"thread": "stream"})
    assert linked(html) == [("stream", "Threads"), ("warp", "warp")]
    with pytest.raises(glossary.GlossaryError, match="terms: queue is no id"):
        hover.put(page, "../glossary/", {"thread": "queue"})


def test_a_word_that_means_no_term_on_a_page():
    finder, page = glossary.Hover([THREAD, WARP], "en"), "<p>A warp, threads.</p>"
    assert linked(finder.put(page, "../glossary/")) == [("warp", "warp"), ("thread", "threads")]
    assert linked(finder.put(page, "../glossary/", {"thread": None})) == [("warp", "warp")]


def test_an_ordinary_word_is_a_term_where_that_is_said_and_where_it_is_introduced():
    """Like 合并 (merged, or coalesced) and `context` (of a model, or of CUDA): most pages mean something else."""
    finder = glossary.Hover([WARP | {"ordinary": ["warp", "线程组"]}, STREAM], "en")
    page = "<p>The warp of a story, two warps, a bundle of threads.</p>"
    found = finder.put(page, "../glossary/", None, "start/other")
    assert linked(found) == [("warp", "bundle of threads")]
    assert re.sub(r"</?a\b[^>]*>", "", found) == page  # no word is lost
    assert linked(finder.put(page, "../glossary/")) == [("warp", "bundle of threads")]
    assert linked(finder.put(page, "../glossary/", {"warp": "warp"})) == [("warp", "warp")]
    assert linked(finder.put(page, "../glossary/", None, "start/model")) == [("warp", "warp")]
    chinese = glossary.Hover([WARP | {"ordinary": ["warp", "线程组"]}], "zh")
    assert linked(chinese.put("<p>一个线程组，一个线程束。</p>", "../glossary/")) == [
        ("warp", "线程束")
    ]


# --- what the words of the book's pages mean ---------------------------------------------------------


@pytest.fixture(scope="module")
def prose():
    """The prose of each chapter, folds too, and what its front matter says of words: (language, chapter) -> both."""
    found = {}
    for chapter in contents.chapters(contents.load(ROOT / "docs/contents.yml")):
        for lang in ("en", "zh"):
            path = ROOT / "docs" / lang / chapter.page
            if chapter.written:
                text = path.read_text(encoding="utf-8")
                lines = (line for _, line, kind, _ in references.scan(text) if kind == "prose")
                found[lang, chapter.name] = (
                    "\n".join(map(lint.prose, lines)),
                    glossary.meanings(text),
                )
    assert len(found) > 100
    return found


TERMS = glossary.load(ROOT / "docs/glossary.yml")
ORDINARY = {word: term["id"] for term in TERMS for word in term.get("ordinary", ())}


@pytest.mark.parametrize("lang", ["en", "zh"])
def test_a_word_that_half_of_its_pages_use_otherwise_is_ordinary(prose, lang):
    finder, uses, others = glossary.Finder(TERMS, lang), Counter(), Counter()
    for (of, _), (text, here) in prose.items():
        if of == lang:
            uses.update({found[0].lower() for found in finder.pattern.finditer(text)})
            others.update({word for word, means in here.items() if means is None})
    many = [word for word, times in others.items() if times > 1 and 2 * times >= uses[word]]
    assert uses and not many, f"these are `ordinary` in docs/glossary.yml: {many}"


def test_an_ordinary_word_needs_no_header_to_mean_nothing(prose):
    assert ORDINARY
    idle = [
        (place, word)
        for place, (_, here) in prose.items()
        for word in here
        if word in ORDINARY and here[word] is None
    ]
    assert not idle


def test_a_page_takes_an_ordinary_word_for_a_term_of_which_the_other_language_speaks(prose):
    entries, other = {term["id"]: term for term in TERMS}, {"en": "zh", "zh": "en"}
    wrong = []
    for (lang, chapter), (_, here) in prose.items():
        there = other[lang]
        text = prose[there, chapter][0].lower()
        for word in here:
            if word in ORDINARY and not any(
                name.lower() in text for name in glossary.words(entries[ORDINARY[word]], there)
            ):
                wrong.append((lang, chapter, word))
    assert not wrong


@pytest.mark.parametrize(
    ("page", "said"),
    [
        ("A warp is 32 threads.", []),
        ("Use `warpSize`.", []),
        ("See [bundle of threads](../glossary.md#warp).", []),
        ("```cuda\nint n = warpSize;\n```", []),
        ("Nothing of the kind.", ["'warp'", "docs/en/start/model.md does not have it:"]),
        ('??? note "Warps"\n\n    A warp.\n', []),  # that no main path uses
        ("## S { #sources }\n\nA warp.", ["'warp'", "does not have it:"]),
    ],
)
def test_a_term_that_stands_nowhere_in_its_chapter_is_refused(tmp_path, page, said):
    _book(tmp_path, page, "A thread.")
    found = terms.unintroduced(tmp_path, "en")
    assert len(found) == bool(said) and all(part in found[0].message for part in said)


def test_a_term_of_a_fold_that_other_pages_use_in_the_open_is_refused(tmp_path):
    _book(tmp_path, '??? note "Warps"\n\n    A warp.\n', "A warp.")
    (found,) = terms.unintroduced(tmp_path, "en")
    assert "does not have it outside its folds: name another chapter" in found.message
    assert terms.unintroduced(tmp_path, "en", only="start/later") == []
    assert terms.unintroduced(tmp_path, "en", only="start/model") == [found]


@pytest.mark.parametrize(
    ("page", "found"),
    [
        ("See [bundles](../glossary.md).", 0),  # an ordinary word, in the chapter of its term
        ("??? note\n\n    A bundle, [bundles](../glossary.md).", 0),
        ("See [slab](../glossary.md).", 0),
        ("---\nterms: {slab: other}\n---\nSee [slab](../glossary.md).", 1),
    ],
)
def test_ordinary_words_and_those_of_the_front_matter_mean_what_they_say(tmp_path, page, found):
    _book(tmp_path, "", "")
    warp = WARP | {"also": {"en": ["bundle", "slab"]}, "ordinary": ["bundle"]}
    other = WARP | {"id": "other", "en": "other", "zh": "其他", "also": {}, "code": []}
    terms_of = [{key: other[key] for key in other if key != "chapter"}, warp]
    (tmp_path / "glossary.yml").write_text(yaml.safe_dump(terms_of, allow_unicode=True), "utf-8")
    (tmp_path / "en/start/model.md").write_text(page, "utf-8")
    said = list(map(str, terms.unintroduced(tmp_path, "en")))
    assert [one.partition(" is")[0] for one in said] == ["docs/glossary.yml: 'warp'"] * found


def test_uses_before_their_time_are_found_in_the_chapters_that_are_written(tmp_path):
    _book(tmp_path, "A warp.", "The warpSize of a warp, and `__nobody`.")
    index = tmp_path / "contents.yml"
    chapters = yaml.safe_load(index.read_text("utf-8"))
    order = chapters["parts"][0]["chapters"]
    order.reverse()  # so the warp is introduced after its use
    index.write_text(yaml.safe_dump(chapters), "utf-8")
    found = [
        (one.file, one.line, one.message.split(" ")[0]) for one in terms.findings(tmp_path, "en")
    ]
    assert found == [
        ("docs/en/start/later.md", 3, "`__nobody`"),
        ("docs/en/start/later.md", 3, "'warp'"),
    ]
    assert len(terms.findings(tmp_path, "en", only="start/later")) == 2
    assert terms.findings(tmp_path, "en", only="start/model") == []
    order[0]["written"] = False
    index.write_text(yaml.safe_dump(chapters), "utf-8")
    assert terms.findings(tmp_path, "en") == []
    order[0]["written"] = True
    index.write_text(yaml.safe_dump(chapters), "utf-8")
    parts = contents.load(index)[:1]
    index.unlink()
    assert len(terms.findings(tmp_path, "en", parts)) == 2
    assert terms.findings(tmp_path, "zh", parts) == []  # there is no page


def _book(folder, model, later):
    """Two chapters, the first of which introduces the warp."""
    words = {"en": "x", "zh": "x"}
    chapters = [
        {"id": name, "title": {"en": name, "zh": name}, "written": True}
        for name in ("model", "later")
    ]
    part = {"id": "start", "title": words, "level": words, "about": words, "chapters": chapters}
    (folder / "contents.yml").write_text(yaml.safe_dump({"parts": [part]}), "utf-8")
    (folder / "glossary.yml").write_text(yaml.safe_dump([WARP], allow_unicode=True), "utf-8")
    (folder / "en/start").mkdir(parents=True)
    for name, text in (("model", model), ("later", later)):
        (folder / f"en/start/{name}.md").write_text(f"# T {{ #top }}\n\n{text}\n", "utf-8")


# Chinese has no blanks, so a term can be found across two words: 一部分|块 is no 分块. Looked at, and right:
RIGHT = {"很多线程", "切成分块"}


def test_a_chinese_term_is_not_found_across_two_words(built_site):
    jieba = pytest.importorskip("jieba")
    for term in TERMS:
        for run in re.findall(r"[\u4e00-\u9fff]{2,}", " ".join(glossary.names(term, "zh"))):
            jieba.add_word(run)
    wrong, looked_at = [], 0
    for page in sorted((built_site / "zh").glob("*/*/index.html")):
        html = page.read_text(encoding="utf-8")
        for found in re.finditer(r'<a class="ct-term"[^>]*>([\u4e00-\u9fff]+)</a>', html):
            before = re.search(r"[\u4e00-\u9fff]*$", html[: found.start()][-40:])[0]
            after = re.match(r"[\u4e00-\u9fff]*", html[found.end() :][:40])[0]
            ends = accumulate(map(len, jieba.cut(before + found[1] + after)), initial=0)
            looked_at += 1
            if len(before) not in ends and not (before + found[1]).endswith(tuple(RIGHT)):
                wrong.append((page.parent.name, f"{before}[{found[1]}]{after}"))
    assert looked_at > 500
    assert not wrong


def test_a_chapter_gets_definitions_and_the_glossary_none(project):
    project.body("Threads of a warp.")
    built = project.build()
    chapter = (built / "start/add/index.html").read_text(encoding="utf-8")
    assert linked(chapter.replace("../../glossary", "../glossary")) == [
        ("thread", "Threads"),
        ("warp", "warp"),
    ]
    assert "ct-term" not in (built / "glossary/index.html").read_text(encoding="utf-8")
