"""The exercise fence, and programs: what a page shows of them is what the files hold."""

import json
import re
from html import unescape
from pathlib import Path
from types import SimpleNamespace

import page_programs
import pytest

from cudatut import catalog, exercises, overlays, recording
from cudatut.site import deferred, directives, exercise_fence, references, state

ROOT = Path(__file__).resolve().parents[2]
PAGES = [
    (lang, chapter, ROOT / "docs" / lang / f"{chapter}.md")
    for chapter in exercises.chapters()
    for lang in ("en", "zh")
]

HEADER = """# ---
# jupyter:
#   cudatut:
#     requires: sm_75
#     exercises:
#       1:
#         title: {en: "Twice", zh: "两倍"}
#         level: warm-up
#         minutes: 15
#         task: {en: "Return `2 * x` & stop.", zh: "返回 `2 * x`。"}
#         fails: "wrong"
# ---
# %% stub-1
def twice(x):
    return x  # yours < mine
"""
HEADINGS = {
    "en": "## Exercises { #exercises }\n\n### Exercise 1: Twice { #exercise-1 }\n",
    "zh": "## Exercises { #exercises }\n\n### 练习 1：两倍 { #exercise-1 }\n",
}
FENCE = "\n```exercise\nstart/add 1\n```\n"


@pytest.fixture
def chapter(project):
    """The small book with an exercise, whose solution is recorded."""
    project.book.file("start/add_exercises.py", HEADER)
    cells = {
        "given-1": "import numpy as np\n\nNUMBERS = np.arange(3)",
        "solution-1": "def twice(x):\n    return 2 * x",
        "check-1": 'import cudatut as ct\n\nprint("checked")',
    }
    text = "".join(f"# %% {name}\n{code}\n\n" for name, code in cells.items())
    project.book.example("start/add_solutions", text)
    notebook = project.book.notebook("start/add_solutions")
    blank = notebook["cells"][2]
    notebook["cells"] = notebook["cells"][:1] + [
        {**blank, "id": name, "source": code, "outputs": blank["outputs"] * (name == "check-1")}
        for name, code in cells.items()
    ]
    project.book.recorded("start/add_solutions", notebook)
    for lang in ("en", "zh"):
        project.body(HEADINGS[lang] + FENCE, lang)
    state.begin(
        state.State(
            docs=project.root / "docs" / "en",
            repo_url="https://github.com/cudatut/cudatut",
            page="start/add.md",
            url="start/add/",
        )
    )
    return project


def words(html):
    return unescape(re.sub(r"<[^>]*>", "", html))


def blocks(html):
    """Text of each block of code, in order."""
    return [
        words(code)
        for code in re.findall(r"<pre><span></span><code>(.*?)</code></pre>", html, re.DOTALL)
    ]


def test_what_it_shows(chapter):
    html = exercise_fence.render("start/add 1")
    opened, folded = html.split("<details", 1)
    assert html.count("<div") == html.count("</div>")
    assert (
        "<p>Return <code>2 * x</code> &amp; stop.</p>" in opened and "warm-up, 15 minutes" in opened
    )
    assert blocks(opened) == [
        "import numpy as np\n\nNUMBERS = np.arange(3)\n",
        "def twice(x):\n    return x  # yours < mine\n",
        "python -m cudatut exercise start/add 1\n",
    ]
    assert '<span class="filename">Given</span>' in opened and ">Your part<" in opened
    assert blocks(folded)[0] == "def twice(x):\n    return 2 * x\n"
    assert 'class="success"><summary>Solution</summary>' in folded and "hello" in folded
    assert (
        "https://colab.research.google.com/github/cudatut/cudatut/blob/main/examples/start/"
        "add_exercises.ipynb#scrollTo=exercise-1" in opened
    )
    assert "(T4)" in opened


def test_exercises_in_a_folder(chapter):
    """They have the address that Colab opens, and the solution its recording, by the names that they had."""
    book = chapter.book
    (book.root / "start/add").mkdir()
    for name in ("exercises", "solutions"):
        (book.root / f"start/add_{name}.py").rename(book.root / f"start/add/{name}.py")
    notebook = json.loads(book.whole("start/add_solutions").read_text(encoding="utf-8"))
    sources = recording.hashes(["start/add/solutions.py"])
    notebook["metadata"]["cudatut"]["sources"] = sources
    book.recorded("start/add_solutions", notebook)
    html = exercise_fence.render("start/add 1")
    assert "blob/main/examples/start/add/exercises.ipynb#scrollTo=exercise-1" in html
    assert "def twice(x):\n    return 2 * x\n" in blocks(html)
    page = "### Exercise 1: Two { #exercise-1 }\n\n```exercise\nstart/add 1\n```\n"
    (said,) = exercise_fence.findings(page, "x.md", "en")
    assert "in the header of examples/start/add/exercises.py" in said.message


def test_the_heading_that_is_told_is_the_one_above(chapter):
    """Each with its line; no heading in code, and no fence that cannot be read."""
    right = "### Exercise 1: Twice { #exercise-1 }"
    fence = "```exercise\nstart/add 1\n\n```\n"
    for page in (
        f"## A {{ #a }}\n\n{right}\n\nProse.\n\n{fence}",
        f"{right}\n\n```text\n# no heading\n```\n\n{fence}",
        "## A { #a }\n\n```exercise\nstart/add 9\n```\n```example\nstart/add 1\n```\n```\nstart/add 1\n```\n",
    ):
        assert exercise_fence.findings(page, "x.md", "en") == []
    page = f"{right}\n\n{fence}\n## Other {{ #other }}\n\n{fence}"
    (said,) = exercise_fence.findings(page, "x.md", "en")
    assert str(said) == (
        f"x.md:11: the heading above the exercise start/add 1 should be '{right}', as in the header of "
        "examples/start/add_exercises.py, not '## Other { #other }'"
    )
    (said,) = exercise_fence.findings(fence, "x.md", "zh")
    assert said.line == 2 and "'### 练习 1：两倍 { #exercise-1 }'" in said.message
    assert said.message.endswith(", not ''")


def test_where_colab_has_no_such_gpu_nothing_is_said_of_it():
    assert exercise_fence._colab("start/add", 1, "sm_100", "en") == ""


def test_the_minutes_of_a_chapters_exercises(monkeypatch):
    listed = [SimpleNamespace(minutes=15), SimpleNamespace(minutes=20)]
    monkeypatch.setattr(exercises, "of_chapter", {"start/add": listed, "start/none": []}.get)
    assert exercise_fence.minutes("start/add") == 35
    assert exercise_fence.minutes("start/none") == 0

    def damaged(name):
        raise directives.CudatutError("no header")

    monkeypatch.setattr(exercises, "of_chapter", damaged)
    assert exercise_fence.minutes("start/add") == 0


def test_in_chinese(chapter):
    html = exercise_fence.render("start/add 1", lang="zh")
    assert "返回 <code>2 * x</code>。" in html and "热身，15 分钟" in html
    for word in (">给定<", ">你来写<", ">参考答案<", "exercise start/add 1 --lang zh"):
        assert word in html
    for word in ("Given", "Your part", "Solution", "minutes", "Colab."):
        assert word not in words(html)


@pytest.mark.parametrize(
    ("body", "header", "says"),
    [
        ("start/add", {}, "chapter and number"),
        ("start/add#1", {}, "chapter and number"),
        ("start/add 1\nstart/add 2", {}, "chapter and number"),
        ("start/add 0", {}, "chapter and number"),
        ("start/add 2", {}, "its last is 1"),
        ("start/ad 1", {}, "Did you mean start/add"),
        ("start/add 1", {"output": "none"}, "has no options"),
    ],
)
def test_refused(chapter, body, header, says):
    with pytest.raises(directives.CudatutError, match=re.escape(says)):
        exercise_fence.render(body, header)


def test_not_recorded_yet(chapter):
    chapter.book.whole("start/add_solutions").unlink()
    with pytest.raises(directives.CudatutError, match="has not been recorded"):
        exercise_fence.render("start/add 1")
    pytest.importorskip("jupytext")
    state.begin(state.State(docs=chapter.root / "docs" / "en", mode="preview"))
    html = exercise_fence.render("start/add 1")
    assert "return 2 * x" in words(html) and "ct-missing" in html


@pytest.mark.parametrize("lang", ["en", "zh"])
def test_a_page_with_an_exercise(chapter, lang):
    page = (chapter.build(lang) / "start/add/index.html").read_text(encoding="utf-8")
    assert 'class="ct-exercise"' in page and 'id="exercise-1"' in page
    # The page offers the solutions among its code, and counts the minutes of the exercise.
    assert "add_solutions/" in page[page.index('id="code"') :]
    assert re.search(r'<p class="ct-time">[^<]*15', page)


@pytest.mark.parametrize(
    "heading",
    [
        "### Exercise 1: Double { #exercise-1 }",
        "### Exercise 2: Twice { #exercise-1 }",
        "### Exercise 1: Twice { #twice }",
        "## Exercise 1: Twice { #exercise-1 }",
        "",
    ],
)
def test_the_heading_is_the_headers_title(chapter, caplog, heading):
    assert not exercise_fence.findings(HEADINGS["en"] + FENCE, "x.md", "en")
    text = f"## Exercises {{ #exercises }}\n\n{heading}\n{FENCE}"
    (found,) = exercise_fence.findings(text, "x.md", "en")
    assert "should be '### Exercise 1: Twice { #exercise-1 }'" in found.message
    if heading.startswith("###"):
        chapter.body(text)
        chapter.refused(caplog, "docs/en/start/add.md", "should be '### Exercise 1: Twice")


def test_an_exercise_that_is_not_there_fails_the_build(chapter, caplog):
    chapter.body(HEADINGS["en"] + FENCE.replace("add 1", "add 7"))
    chapter.refused(caplog, "start/add has no exercise 7")


# --- programs --------------------------------------------------------------------------------------


def test_a_program_is_shown_under_its_name(chapter):
    html = directives.render("start/add#setup", {"program": "who_am_i.py"})
    assert html.startswith('<div class="ct-cell ct-program">') and "ct-result" in html
    name = re.search(r'<span class="filename">(.*?)</span>', html)[1]
    assert words(name) == "who_am_i.py Download"
    assert 'href="../../examples/start/add/who_am_i.py" download="who_am_i.py"' in name
    assert blocks(html) == ["import os\nx = 1\n"]
    assert state.current().programs == {"examples/start/add/who_am_i.py": "import os\nx = 1"}


@pytest.mark.parametrize(
    ("body", "header", "says"),
    [
        ("start/add#setup", {"program": "a b.py"}, 'program="name.py"'),
        ("start/add#setup", {"program": "../x.py"}, 'program="name.py"'),
        ("start/add#setup", {"program": "x.cu"}, 'program="name.py"'),
        (
            "start/add#setup",
            {"program": "x.py", "source": "none"},
            "must be one cell, with its source",
        ),
        (
            "start/add#setup\nstart/add#bench",
            {"program": "x.py"},
            "must be one cell, with its source",
        ),
    ],
)
def test_a_program_is_refused(chapter, body, header, says):
    with pytest.raises(directives.DirectiveError, match=re.escape(says)):
        directives.render(body, header)


@pytest.mark.parametrize(
    ("cell", "program"),
    [
        ("late = '''\\\nimport os\nx = 1\n'''", "import os\nx = 1"),
        ("late = 1", "late = 1"),
        ("a = 'x'\nprint(a)", "a = 'x'\nprint(a)"),
    ],
)
def test_a_program_that_is_kept_as_a_text_is_that_text(cell, program):
    assert directives.program(cell) == program


def test_two_programs_of_one_name_are_refused(chapter):
    for _ in range(2):
        directives.render("start/add#setup", {"program": "x.py"})
    with pytest.raises(directives.DirectiveError, match="two programs would be the one file"):
        directives.render("start/add#bench", {"program": "x.py"})


@pytest.mark.parametrize("lang", ["en", "zh"])
def test_a_program_is_a_file_too(chapter, lang):
    chapter.body('```example program="one.py" output="none"\nstart/add#setup\n```', lang)
    site = chapter.build(lang)
    assert (site / "examples/start/add/one.py").read_text() == "import os\nx = 1\n"
    page = (site / "start/add/index.html").read_text(encoding="utf-8")
    assert 'href="../../examples/start/add/one.py" download="one.py"' in page


# --- the book --------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("lang", "chapter_name", "path"), PAGES, ids=lambda value: str(value)[-40:]
)
def test_every_exercise_of_a_chapter_is_on_its_page(lang, chapter_name, path):
    text = path.read_text(encoding="utf-8")
    assert not exercise_fence.findings(text, str(path), lang)
    shown = [
        line.strip()
        for _, line, kind, info in references.scan(text)
        if kind == "code" and info.split()[:1] == ["exercise"]
    ]
    have = [exercise.name for exercise in exercises.of_chapter(chapter_name)]
    assert shown == have, f"docs/{lang}/{chapter_name}.md does not show its exercises in order"
    headings = re.findall(r"^### (?:Exercise|练习) ?\d+", text, re.MULTILINE)
    assert len(headings) == len(have), f"docs/{lang}/{chapter_name}.md: an exercise without a fence"


def on_pages(lang):
    """(page, example, cell, file name) of each program on the pages of a language."""
    docs = ROOT / "docs" / lang
    return [
        (path.relative_to(docs).with_suffix("").as_posix(), *program)
        for path in sorted(docs.rglob("*.md"))
        for program in page_programs.of_page(path.read_text(encoding="utf-8"))
        # The page of a draft is not on the site either.
        if not catalog.matches(f"{program[0]}.py", catalog.draft_patterns())
    ]


def test_programs_are_the_same_in_both_languages():
    assert on_pages("en") == on_pages("zh")


@pytest.mark.parametrize("lang", ["en", "zh"])
def test_a_program_on_its_page_is_the_cell(built_site, lang):
    """What a reader copies from the page, character for character, with Chinese comments on a Chinese one; and what the link beside it downloads."""
    root = built_site / ("zh" if lang == "zh" else "")
    assert on_pages(lang)
    for page, example, cell, file in on_pages(lang):
        # What is in a fold that is deferred stands on a page beside its own.
        folder = root if page == "index" else root / page
        beside = [folder / "index.html", folder / deferred.FOLDS / "index.html"]
        html = "".join(one.read_text(encoding="utf-8") for one in beside if one.is_file())
        shown = [
            blocks(part)[0]
            for part in html.split('<div class="ct-cell ct-program">')[1:]
            if words(part.partition("</span>")[0]).startswith(f"{file} ")
        ]
        source = catalog.cells(catalog.get(example).path)[cell]
        if lang == "zh":
            source = overlays.code(source, catalog.get(example).file)
        code = directives.program(source) + "\n"
        code = re.sub(r" *# fmt: skip$", "", code, flags=re.MULTILINE)  # the formatter's business
        assert code in shown, f"docs/{lang}/{page}.md: {file} is not {example}#{cell}"
        downloaded = (root / "examples" / example / file).read_text(encoding="utf-8")
        assert downloaded == directives.program(source) + "\n"
