"""Budgets of writing.md, the time that pages ask for, and what the lints find; the whole book is held to them here."""

import re
from pathlib import Path

import pytest

from cudatut.finding import Finding
from cudatut.site import __main__ as site
from cudatut.site import contents, headings, judge, locale, main_path, terms
from cudatut.site.needs import line as needs_line

ROOT = Path(__file__).resolve().parents[2]
DOCS = ROOT / "docs"
CHAPTERS = [
    f"{chapter.part}/{chapter.id}"
    for part in contents.load(DOCS / "contents.yml")
    for chapter in part.chapters
    if chapter.written
]


def test_a_fold_is_not_on_the_main_path():
    page = '# T\n\nseen\n\n??? note "Look deeper"\n\n    hidden\n\n    ```cuda\n    hidden\n    ```\n\nseen too\n'
    text = "\n".join(line.text for line in main_path.lines(page))
    assert "seen too" in text and "hidden" not in text


def test_what_is_counted():
    html = (
        "<p>Two words<!-- not this --> and <code>f(x)</code></p>"
        "<pre>one\ntwo\n</pre><details><summary>s</summary><pre>folded</pre><details>x</details></details>"
        "<table><tr><td>1</td></tr><tr><td>2</td></tr></table>"
    )
    found = main_path.amount(html)
    assert found == {
        "words": 5,  # Two words and f x
        "characters": 0,
        "lines of code and output": 2,
        "tables and charts": 1,
        "rows of tables": 2,
    }


def test_of_a_page_the_article_counts_with_its_title_and_the_time():
    article = main_path.with_time("<h1>Add</h1><p>Two words</p>", (5, 5), "en")
    page = f'<nav>Menu</nav><article class="a b"\n>{article}</article><footer>Next</footer>'
    assert main_path.of_page(page) == main_path.amount(article)
    assert main_path.of_page(page)["words"] > 3
    assert main_path.of_page("<p>no article</p>")["words"] == 0


def test_over_budget_says_what_and_how_much():
    names = ("words", "lines of code and output", "tables and charts", "rows of tables")
    found = dict(zip(names, (1300, 121, 8, 50)))
    assert main_path.over_budget("start", found) == [
        "1300 words, 1200 allowed",
        "121 lines of code and output, 120 allowed",
    ]
    assert main_path.over_budget("basics", found) == []
    found = dict(zip(names, (1601, 161, 9, 51)))
    assert main_path.over_budget("basics", found) == [
        "1601 words, 1600 allowed",
        "161 lines of code and output, 160 allowed",
        "9 tables and charts, 8 allowed",
        "51 rows of tables, 50 allowed",
    ]


def test_of_a_chart_for_several_gpus_one_counts():
    chart = '<section class="ct-gpu" role="group" aria-label="H100"><figure class="ct-bench">one two<table><tr></tr></table></figure></section>'
    choice = "<fieldset><legend>GPU</legend>H100 H200</fieldset>"
    assert main_path.amount(choice + 3 * chart) == main_path.amount(chart)
    assert main_path.amount(chart + "<p>and</p>" + chart)["tables and charts"] == 4


def test_names_of_files_and_of_gpus_are_not_read():
    needs = needs_line(["sm_75", "sm_80"])
    names = f'{needs}<ul class="ct-code"><li>a.py</li></ul><span class="ct-quiet">(L4)</span>'
    assert main_path.amount(f"<p>One</p>{names}<p>two</p>")["words"] == 2


def test_a_chart_counts_as_a_table():
    html = '<figure class="ct-bench"><svg></svg></figure><table><tr></tr></table>'
    assert main_path.amount(html)["tables and charts"] == 2


def test_the_title_of_a_chart_has_no_words_as_that_of_a_table():
    chart = '<figure class="ct-bench"><figcaption>rate (H100)</figcaption><svg></svg></figure>'
    table = "<table><caption>rate (H100)</caption><tr></tr></table>"
    drawing = '<figure class="ct-figure"><svg></svg><figcaption>one two</figcaption></figure>'
    assert [main_path.amount(one)["words"] for one in (chart, table, drawing)] == [0, 0, 2]


def test_time_counts_words_code_exercises_and_warm_ups():
    short = main_path.amount("<p>word </p>" * 100)
    long = main_path.amount("<p>word </p>" * 2000)
    assert main_path.minutes_to_read(short) == 5
    assert main_path.minutes_to_read(long) > 10
    code = "<pre>" + "line\n" * 120 + "</pre>"
    assert main_path.minutes_to_read(main_path.amount(code)) == 10
    typed = f'<div class="ct-cell ct-program">{code}</div>'
    assert main_path.minutes_to_practice(typed, exercises=0) == 15
    assert main_path.minutes_to_practice(code, exercises=0) == 0
    page = '<h1>T</h1><h2 id="try">T</h2><ol><li>a</li><li>b</li></ol><details><li>c</li></details>'
    assert main_path.minutes_to_practice(page, exercises=10) == 20
    assert main_path.minutes(page, exercises=10) == (5, 20)
    assert main_path.with_time(page, (5, 20), "en").startswith('<h1>T</h1><p class="ct-time">')
    assert "练习" in main_path.with_time(page, (5, 20), "zh")


@pytest.mark.parametrize(
    ("name", "most"),
    [
        ("words", 650),
        ("characters", 1300),
        ("lines of code and output", 60),
        ("rows of tables", 75),
    ],
)
def test_how_much_is_read_in_five_minutes(name, most):
    none = main_path.amount("")
    assert main_path.minutes_to_read(none) == 0
    assert main_path.minutes_to_read(none | {name: most}) == 5
    assert main_path.minutes_to_read(none | {name: most + 1}) == 10


def test_how_much_is_done_in_five_minutes():
    def minutes(lines, items, exercises):
        program = '<div class="ct-cell ct-program"><pre>' + "line\n" * lines + "</pre></div>"
        section = '<h2 class="a" id="try">T</h2>' + items + '<h2 id="next">N</h2><h3>no</h3>'
        return main_path.minutes_to_practice(program + section, exercises)

    assert (minutes(40, "", 0), minutes(41, "", 0)) == (5, 10)
    assert (minutes(0, "<li>a", 0), minutes(0, "<h3>a</h3><li>b", 0)) == (5, 10)
    assert (minutes(0, "<li>a", 10), minutes(8, "<li>a", 10)) == (15, 20)


@pytest.mark.parametrize("lang", locale.LANGUAGES)
def test_what_the_times_are_computed_from_is_said_in_numbers(lang):
    with locale.using(lang):
        said = main_path.reckoned()
    asked = {130, 12, 15, 8, 5} | ({260} if lang == "zh" else set())
    assert {int(n) for n in re.findall(r"\d+", said)} == asked


def test_the_time_stands_below_the_first_title_alone():
    alone = main_path.with_time("<h1>T</h1><p>word</p></h1>", (5, 0), "en")
    assert re.fullmatch(r'<h1>T</h1><p class="ct-time">[^<]* 5 [^<]*</p><p>word</p></h1>', alone)
    assert " · " not in alone
    both = main_path.with_time("<h1>T</h1><p>word</p>", (5, 15), "en")
    assert re.findall(r"\d+", both.partition("ct-time")[2])[:2] == ["5", "15"] and " · " in both


def test_lines_have_their_number_and_section_and_a_fold_ends_where_its_indent_does():
    page = (
        "# T { #top }\n\na\n- item\n\n    ??? note\n\n        b\n       c\n"
        "## S { .x #part-1 }\n```cuda\n# no { #code }\n```\n??? tip\n    d\n\n   e\n### T { #third }\nf\n??? x\n??? y\ng\n"
    )
    seen = [(one.number, one.text, one.section) for one in main_path.lines(page) if one.text]
    assert seen == [
        (1, "# T { #top }", "top"),
        (3, "a", "top"),
        (4, "- item", "top"),
        (9, "       c", "top"),
        (10, "## S { .x #part-1 }", "part-1"),
        (11, "```cuda", "part-1"),
        (12, "# no { #code }", "part-1"),
        (13, "```", "part-1"),
        (17, "   e", "part-1"),
        (18, "### T { #third }", "part-1"),
        (19, "f", "part-1"),
        (22, "g", "part-1"),
    ]


GLOSSARY = [
    {
        "id": "a",
        "en": "grid",
        "zh": "网格",
        "chapter": "p/two",
        "code": ["blockIdx", "#pragma unroll"],
    },
    {
        "id": "b",
        "en": "warp (of 32)",
        "zh": "线程束",
        "chapter": "p/three",
        "also": {"en": ["bundle"]},
    },
    {"id": "c", "en": "thread", "zh": "线程", "chapter": "p/one"},
]


def _terms(lang):
    names = ("one", "two", "three")
    chapters = tuple(contents.Chapter("p", name, {"en": name, "zh": name}, True) for name in names)
    words = {"en": "p", "zh": "p"}
    return terms.Terms(GLOSSARY, (contents.Part("p", words, words, words, chapters),), lang)


def _found(page, name="p/one", lang="en"):
    cure = ": say it without, or in a fold"
    return [
        finding.message.removesuffix(cure)
        for finding in terms.of_page(page, name, lang, _terms(lang))
    ]


@pytest.mark.parametrize(
    "page, said",
    [
        ("The grids wait.\n", "'grid' is used here and introduced in p/two"),
        ("Two bundles.\n", "'warp (of 32)' is used here"),
        ("`blockIdx.x` says it.\n", "`blockIdx` is used here and introduced in p/two"),
        ("```cuda\nint i = blockIdx.x;\n```\n", "`blockIdx` is used here"),
        ("```cuda\n#pragma  unroll 4\n```\n", "`#pragma unroll` is used here"),
        ("```cuda\n__nobody(x);\n```\n", "`__nobody` stands in no entry"),
        ("```cuda\nx = threadIdx.y;\n```\n", "`threadIdx.y` stands in no entry"),
        ("```python\nx = 'blockIdx'\n```\n", "`blockIdx` is used here"),
    ],
)
def test_a_use_before_its_time_is_found(page, said):
    assert [message for message in _found(page) if said in message]


@pytest.mark.parametrize(
    "page",
    [
        '??? note "Look deeper"\n    The grid, `blockIdx`.\n',
        "See [The grid](two.md).\n",
        "Threads only, and a megagridlock.\n",
        "```cuda\n// blockIdx is explained later\n```\n",
        "```python exec=\"on\"\nprint('blockIdx')\n```\n",
        "if __name__ == '__main__': pass\n",
        "## Sources { #sources }\n\n- All about grids\n",
    ],
)
def test_what_is_no_use(page):
    assert _found(page) == []


@pytest.mark.parametrize(
    "page",
    [
        "```example\na/one#program\n```\n",
        "```exercise\na/one 1\n```\n",
        "```exercise\na/one 2\n```\n",
        '```cuda\n--8<-- "a/one.cu"\n```\n',
        '```cuda\n--8<-- "a/one.cu:loop"\n```\n',
    ],
)
def test_code_that_a_fence_brings_in_is_read(page, tmp_path, monkeypatch):
    monkeypatch.setenv("CUDATUT_EXAMPLES", str(tmp_path))
    (tmp_path / "a").mkdir()
    use, none = 'KERNEL = "blockIdx.x"\n', "x = 1\n"
    for name, text in {
        "one.py": f"# %% other\n{none}# %% program\n{use}",
        "one_solutions.py": f"# %% given-1\n{use}# %% given-2\n{none}",
        "one_exercises.py": f"# %% stub-1\n{none}# %% stub-2\n{use}",
        "one.cu": "// --8<-- [start:loop]\nint i = blockIdx.x;\n// --8<-- [end:loop]\n",
    }.items():
        (tmp_path / "a" / name).write_text(text)
    terms._cells.cache_clear()
    assert _found(page) == ["`blockIdx` is used here and introduced in p/two"]
    assert _found('```example source="none"\na/one#program\n```\n') == []


def test_the_longest_chinese_term_counts():
    assert _found("一个线程。\n", lang="zh") == []
    assert _found("一个线程束。\n", lang="zh") == [
        "'warp (of 32)' is used here and introduced in p/three"
    ]


def test_its_own_chapter_and_later_ones_may_use_it():
    assert _found("The grid.\n", "p/two") == _found("The grid.\n", "p/three") == []


def _sections(*names, lang="en"):
    return "".join(
        f"## {headings.SECTIONS[name][lang == 'zh']} {{ #{name} }}\n\n" for name in names
    )


def test_sections_that_are_as_they_should_be():
    for order in (("kernel", "predict"), ("predict", "kernel")):
        names = ("goals", "problem", *order, "misconception", "exercises", "summary", "sources")
        for lang in ("en", "zh"):
            page = _sections(*names, lang=lang) + "## Of its own { #own }\n"
            assert headings.findings(page, "x.md", lang) == []


@pytest.mark.parametrize(
    ("page", "says"),
    [
        (_sections(*(name for name in headings.REQUIRED if name != "summary")), "there is no section '## Summary"),
        (_sections(*(name for name in headings.REQUIRED if name != "predict")), "there is no section '## Predict"),
        (_sections("goals", "run", *headings.REQUIRED[1:]), "the section 'problem' stands before 'run'"),
        (_sections(*headings.REQUIRED).replace("# Summary", "# In short"),
         "the section 'summary' is called 'Summary'"),
    ],
)  # fmt: skip
def test_a_section_that_is_missing_misplaced_or_renamed_is_found(page, says):
    (found,) = headings.findings(page, "x.md", "en")
    assert says in found.message


def test_the_command_asks_the_judge(monkeypatch, capsys):
    asked = []
    found = [Finding("docs/en/a/b.md", 1, "mend it")]
    monkeypatch.setattr(judge, "of_chapter", lambda name, docs: asked.append(name) or found)
    monkeypatch.setattr(judge, "of_book", lambda docs: asked.append("all") or [])
    assert site.main(["lint", "a/b"]) == 1
    assert capsys.readouterr().out == "docs/en/a/b.md:1: mend it\n"
    assert site.main(["lint"]) == 0
    assert asked == ["a/b", "all"] and "Nothing to mend" in capsys.readouterr().out


@pytest.mark.parametrize("chapter", CHAPTERS)
def test_a_chapter_is_within_its_budget(chapter, built_site):
    html = Path(built_site, chapter, "index.html").read_text(encoding="utf-8")
    over = main_path.over_budget(chapter.partition("/")[0], main_path.of_page(html))
    assert not over, f"{chapter}: {'; '.join(over)}"


@pytest.mark.parametrize("chapter", CHAPTERS)
@pytest.mark.parametrize("lang", ["", "zh"])
def test_the_time_is_computed_not_typed(chapter, lang, built_site):
    html = Path(built_site, lang, chapter, "index.html").read_text(encoding="utf-8")
    assert html.count('class="ct-time"') == 1
    assert html.count('<h2 id="code"') == 1, "each chapter ends with the code that made its numbers"
    page = (DOCS / (lang or "en") / f"{chapter}.md").read_text(encoding="utf-8")
    assert not re.search(r"Time: \d+|用时约? ?\d+", page)
