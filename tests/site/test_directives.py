"""The example fence: how its text is read, and what it becomes."""

import json
import re
import shutil
from collections import Counter
from html import unescape
from pathlib import Path

import pytest
from markdown import Markdown
from markdown_exec import markdown_config

from cudatut import recording
from cudatut.catalog import UnknownExampleError
from cudatut.errors import CudatutError
from cudatut.site import directives, mathml, notebooks, state


@pytest.fixture
def md(project):
    """A Markdown instance as the site configures it, and a build of the small book."""
    state.begin(
        state.State(docs=project.root / "docs" / "en", page="start/add.md", url="start/add/")
    )
    extensions = ["pymdownx.superfences", "pymdownx.highlight"]
    settings = {"pymdownx.superfences": {"custom_fences": [directives.fence()]}}
    markdown_config.save(extensions, settings)  # as its MkDocs plugin does
    yield Markdown(extensions=extensions, extension_configs=settings)
    markdown_config.reset()


def test_source_and_output(md):
    html = directives.render("start/add#bench")
    assert html.startswith('<div class="ct-cell">') and html.count("<div") == html.count("</div>")
    assert html.index("bench") < html.index("ct-result")
    assert '<a href="../../examples/start/add/#cell-id=bench"' in html
    assert "<code>" in html  # what Material's copy button copies


def test_source_only(md):
    html = directives.render("start/add#bench", {"output": "none"})
    assert "<code>" in html and "ct-result" not in html


def test_output_only(md):
    html = directives.render("start/add#bench", {"source": "none"})
    assert "<code>" not in html and "ct-result" in html


def test_several_cells_in_order(md):
    html = directives.render("start/add#setup\n\nstart/add#bench\n")
    assert html.count('class="ct-cell"') == 2
    assert html.index("import") < html.index("#cell-id=bench")


def test_text_of_the_source_is_escaped(md, project):
    notebook = project.book.notebook("start/add")
    notebook["cells"][3]["source"] = 'print("<b>&amp;{{ x }}`</b>")\n```\n$a$'
    project.book.recorded("start/add", notebook)
    html = directives.render("start/add#bench")
    shown = re.search(r"<code>(.*?)</code>", html, re.DOTALL)[1]
    assert unescape(re.sub(r"<[^>]*>", "", shown)).strip() == notebook["cells"][3]["source"]


@pytest.mark.parametrize(
    ("body", "header", "error", "says"),
    [
        ("", {}, directives.DirectiveError, "empty"),
        ("start/add", {}, directives.DirectiveError, "part/example#cell"),
        ("start/add#a b", {}, directives.DirectiveError, "part/example#cell"),
        ("../../etc/passwd#a", {}, directives.DirectiveError, "part/example#cell"),
        ("start/add#md-1", {}, directives.DirectiveError, "markdown cell"),
        ("start/add#bench", {"source": "left"}, directives.DirectiveError, "above|none"),
        ("start/add#bench", {"exec": "on"}, directives.DirectiveError, "allowed are"),
        ("start/add#none", {}, recording.UnknownCellError, "no cell 'none'"),
        ("start/ad#bench", {}, UnknownExampleError, "Did you mean start/add"),
    ],
)
def test_refused(md, body, header, error, says):
    with pytest.raises(error) as caught:
        directives.render(body, header)
    assert says in str(caught.value)


def test_output_only_of_a_silent_cell(md, project):
    notebook = project.book.notebook("start/add")
    notebook["cells"][2]["outputs"] = []
    project.book.recorded("start/add", notebook)
    with pytest.raises(directives.DirectiveError, match="printed nothing"):
        directives.render("start/add#setup", {"source": "none"})


def test_unknown_result_is_not_shown(md, project):
    notebook = project.book.notebook("start/add")
    data = notebook["cells"][3]["outputs"][0]["data"]
    data["application/vnd.cudatut.v1+json"]["kind"] = "rumor"
    project.book.recorded("start/add", notebook)
    with pytest.raises(recording.UnfitRecordingError, match=r"cell 'bench'.*no kind 'rumor'"):
        directives.render("start/add#bench")


def test_a_problem_is_reported_and_stands_in_the_page(md):
    html = md.convert("```example\nstart/add#bnch\n```\n\n```example\nstart/add#bnch\n```\n")
    problems = state.current().problems
    assert len(problems) == 1 and problems[0].startswith(
        "docs/en/start/add.md: start/add has no cell"
    )
    assert "admonition failure" in html and "Did you mean" in html


def test_links_are_relative_to_the_page():
    build = state.State(url="start/add/")
    assert build.link("examples/start/add/#cell-id=x") == "../../examples/start/add/#cell-id=x"
    assert build.link("examples/start/add.py") == "../../examples/start/add.py"
    assert state.State(url="./").link("examples/start/add/") == "examples/start/add/"


# --- pages of examples ------------------------------------------------------------------------------


def test_a_page_is_made_of_what_mkdocs_jupyter_makes(project):
    record = recording.load("start/add")
    html = (
        '<div class="jupyter-wrapper"><div data-mime-type="text/markdown">'
        + "<!-- end of cell -->" * sum(cell.title != "install" for cell in record.cells)
        + "</div></div> <!-- jupyter-wrapper -->"
    )
    page = notebooks.page(record, html)
    assert page.startswith('<div id="cell-id=top"><h1 id="top">Vector add</h1></div>\n')
    assert '<div class="ct-cell" id="cell-id=bench"><div class="highlight">' in page
    for other in ("<p>something else</p>", html.replace("<!-- end of cell -->", "", 1)):
        with pytest.raises(CudatutError, match="not all cells"):
            notebooks.page(record, other)


CELLS = "# %% setup\nimport os\nx = 1\n# %% bench\nbench()\n"


@pytest.fixture
def told(project):
    """The small book with two examples that have prose; what each page must say."""
    words = {"start/add": "one after *another*", "start/twice": "two at a `time`"}
    for name, prose in words.items():
        project.book.example(name, f"# %% [markdown]\n# {prose}\n{CELLS}")
        notebook = project.book.notebook(name)
        notebook["cells"][1]["source"] = prose
        project.book.recorded(name, notebook)
    return {"add": "one after <em>another</em>", "twice": "two at a <code>time</code>"}


def test_each_page_has_the_prose_of_its_example(project, told):
    site = project.build()
    for name, prose in told.items():
        page = (site / "examples/start" / name / "index.html").read_text(encoding="utf-8")
        assert {other: words in page for other, words in told.items()} == {
            other: other == name for other in told
        }
        assert f'<div id="cell-id=md-1"><p>{prose}</p></div>' in page


def test_what_is_needed_twice_is_made_once(project, told, monkeypatch):
    """A build goes through nbconvert, the recordings and the files for download once; else it takes twice as long."""
    from mkdocs_jupyter import nbconvert2

    calls = Counter()

    def counted(module, name):
        whole = getattr(module, name)

        def count(*arguments, **options):
            calls[name, *(Path(one).stem for one in arguments[:1])] += 1
            return whole(*arguments, **options)

        monkeypatch.setattr(module, name, count)

    project.page("claims.md", "# claims { #top }\n\n```python exec=\"on\"\n"
                 "from cudatut.site import claims, notebooks\n"
                 "print(claims.table())\nprint(notebooks.index())\n```\n")  # fmt: skip
    # A module that both examples read, as their recordings say.
    project.book.file("start/shared.py", "x = 1\n")
    for name in ("start/add", "start/twice"):
        notebook = json.loads(project.book.whole(name).read_text(encoding="utf-8"))
        sources = recording.hashes([f"{name}.py", "start/shared.py"])
        notebook["metadata"]["cudatut"]["sources"] = sources
        project.book.recorded(name, notebook)
    counted(nbconvert2, "nb2html")
    counted(recording, "require_good")
    counted(recording, "orphans")
    counted(shutil, "copyfile")
    site = project.build()
    assert (site / "examples/start/shared.py").is_file()
    assert calls["nb2html", "together"] == calls["require_good", "twice"] == calls["orphans",] == 1
    assert calls["copyfile", "shared"] == 1
    assert set(calls.values()) <= {1, 2}  # add.py and add.ipynb


def test_prose_that_does_not_come_back_is_missed(project, told, monkeypatch, caplog):
    from mkdocs_jupyter import nbconvert2

    whole = nbconvert2.nb2html
    without = lambda path, **options: re.sub("<!--.*?-->", "", whole(path, **options))  # noqa: E731
    monkeypatch.setattr(nbconvert2, "nb2html", without)
    for name in told:
        project.refused(
            caplog, f"docs/en/examples/start/{name}.ipynb", "its templates have changed"
        )
        caplog.clear()


def test_html_without_an_end_spoils_its_own_page_alone(project, told, caplog):
    """All prose goes through nbconvert together, and what one swallows is not another's."""
    endless = "<script>"
    project.book.example("start/add", f"# %% [markdown]\n# {endless}\n{CELLS}")
    notebook = project.book.notebook("start/add")
    notebook["cells"][1]["source"] = endless
    project.book.recorded("start/add", notebook)
    project.refused(caplog, "docs/en/examples/start/add.ipynb", "has not all cells")
    assert "start/twice" not in caplog.text


@pytest.mark.parametrize(
    ("requires", "says"),
    [
        ("sm_75", "7.5 or newer (T4, RTX 20 or newer) · Colab: T4, free"),
        ("sm_90a", "9.0, exactly (H100, H200) · Colab: H100, paid"),
        ("sm_100", "10.0 or newer (B200, RTX 50 or newer) · Colab: none"),
    ],
)
def test_compute_capability_in_words(project, requires, says):
    notebook = project.book.notebook("start/add")
    notebook["metadata"]["cudatut"]["requires"] = requires
    project.book.recorded("start/add", notebook)
    assert says in notebooks.head(recording.load("start/add"))


def test_formulas():
    html = '<span class="arithmatex">\\(a &lt; b\\)</span>'
    seen = []
    done = mathml.replace(html, seen.append)
    assert done.startswith("<math") and "<mo>&lt;</mo>" in done
    block = '<div class="arithmatex">\\[x\\]</div>'
    assert 'display="block"' in mathml.replace(block, seen.append) and seen == []
    assert mathml.replace(block.replace("[x", "[x^"), seen.append) == "<code>x^</code>"
    assert "formula $x^$ cannot be converted" in str(*seen)
    assert (
        "<math" in mathml.in_markdown("a $n^2$ b")
        and mathml.in_markdown("5 $ and 6 $") == "5 $ and 6 $"
    )
    _, inline, block = mathml.in_markdown("a $n$ and $$m$$").split("<math")
    assert 'display="inline"' in inline and 'display="block"' in block
    assert 'display="inline"' in mathml.replace(html, seen.append)
    assert mathml.convert(r"\{x\}").count("<mo") == 2  # braces that are shown need not match
    for bad in ("\\frac{1", "x^", "\\nonsense", r"\{x}"):
        with pytest.raises(ValueError, match="cannot be converted"):
            mathml.convert(bad)
