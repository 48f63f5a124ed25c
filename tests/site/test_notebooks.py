"""The page of each example: what it links to, in which order examples are listed, what cannot be shown."""

import json
import random
import re
from dataclasses import replace

import pytest

from cudatut import paths
from cudatut.errors import CudatutError
from cudatut.site import contents, locale, missing, notebooks, state, weight

FIRST = "start/add"


@pytest.fixture
def build(project):
    """The state of an English build of the small book, which is at the root."""
    project.root.joinpath("mkdocs.yml").touch()
    return state.begin(
        state.State(docs=project.root / "docs/en", repo_url="https://github.com/a/b")
    )


def record(name=FIRST, **changes):
    found = vars(missing.stand_in(FIRST, "not run")) | {"name": name} | changes
    return missing.StandIn(**found)


def of_files(*sources, name=FIRST):
    return record(
        name, metadata={"title": {"en": "T", "zh": "T"}, "sources": dict.fromkeys(sources, "")}
    )


def test_of_the_files_of_an_example_its_own_comes_first(build):
    sources = ("start/z.cu", "start/a.cuh", "start/add.py", "start/data.txt", "a/more.py")
    offered = ["start/add.py", "a/more.py", "start/a.cuh", "start/z.cu"]
    assert notebooks.files(of_files(*sources)) == offered
    links = notebooks._links(of_files(*sources))
    assert links.split(" · ") == [
        '<a href="examples/start/add.py">add.py</a>',
        '<a href="examples/a/more.py">a/more.py</a>',
        '<a href="examples/start/a.cuh">a.cuh</a>',
        '<a href="examples/start/z.cu">z.cu</a>',
        '<a href="examples/start/add.ipynb" download>Download the notebook</a>',
        '<a href="https://colab.research.google.com/github/a/b/blob/main/recordings/nvidia-test/start/add.ipynb">Open in Colab (T4)</a>',
    ]  # fmt: skip


@pytest.mark.parametrize("name", ["../x.py", "/x.py", "a//x.py", "a/../x.py", ".x.py", "a b.py"])
def test_no_name_of_a_file_leads_out_of_the_examples(build, name):
    with pytest.raises(CudatutError, match=r"start/add names the file .*python -m cudatut record"):
        notebooks.files(of_files(name))


def test_colab_opens_the_recording_or_the_notebook_of_the_exercises(build, project):
    (project.root / "recordings").mkdir(exist_ok=True)
    base = "https://colab.research.google.com/github/a/b/blob/main"
    assert notebooks.colab_url(FIRST) == f"{base}/recordings/nvidia-test/start/add.ipynb"
    project.book.example("start/next")
    assert notebooks.colab_url("start/next") == f"{base}/examples/start/next.ipynb"
    for lang, name in (("en", "exercises.ipynb"), ("zh", "exercises.zh.ipynb")):
        build.lang = lang
        assert notebooks.colab_url("start/add_exercises") == f"{base}/examples/start/add/{name}"


def test_the_index_lists_examples_as_the_chapters_show_them(build, project):
    for name in ("start/zed", "start/mid"):
        project.book.example(name)
        project.book.recorded(name)
    project.page(
        "start/add.md", "```example\nstart/zed#bench\n```\n```example\nstart/add#bench\n```\n"
    )
    index = notebooks.index()
    assert re.findall("<code>(.*?)</code>", index) == ["start/zed", "start/add", "start/mid"]
    assert '## Getting started { #start }\n\n<ul class="ct-examples"><li>' in index
    assert '<a href="examples/start/zed/">Vector add</a>' in index
    assert index.startswith('<table class="ct-table">') and index.count("<h2") == 0


def test_what_belongs_to_no_example_is_reported_and_a_preview_has_its_own(build, project):
    project.book.file(project.book.whole("start/gone"), "{}")
    project.book.example("start/later")
    found = notebooks.recorded()
    assert [one.name for one in found] == [FIRST] and notebooks.recorded() is found
    lost, not_yet = build.problems
    assert lost == "recordings/nvidia-test/start/gone.ipynb belongs to no example: remove it"
    assert "start/later" in not_yet
    docs = build.docs
    for only, names in (((FIRST,), [FIRST]), (("start/later",), [])):
        preview = state.begin(state.State(docs=docs, mode="preview", only=only))
        project.page("start/later.md", "# T\n")
        assert [one.name for one in notebooks.recorded()] == names
        assert not [one for one in preview.problems if "start/later" in one]


def test_where_examples_cannot_be_listed_none_is_shown_and_the_build_says_why(build, project):
    project.book.file("start/bad.py", "# %% x\n")
    assert notebooks.recorded() == []
    (problem,) = build.problems
    assert "start/bad.py has cells but does not begin with" in problem


def test_a_recording_whose_files_cannot_be_offered_is_not_shown(build, monkeypatch):
    def files(record):
        raise CudatutError(f"{record.name} names a file")

    monkeypatch.setattr(notebooks, "files", files)
    assert notebooks.recorded() == [] and build.problems == ["start/add names a file"]


def test_a_chapter_ends_with_its_examples(build):
    assert notebooks.code_of_page([], "start/add") == ""
    made = notebooks.code_of_page([record()], "start/add")
    assert made.startswith('\n\n## Code on this page { #code }\n\n<ul class="ct-code"><li><a href="examples/start/add/">Vector add</a> (<a ')  # fmt: skip
    assert made.count("</li>") == 1 and "not run" in made


def test_a_chapters_program_in_cpp_is_offered_beside_its_examples(build, monkeypatch, tmp_path):
    main = tmp_path / "start/add/main.cu"
    main.parent.mkdir(parents=True)
    main.write_text("// Adds.\nint main() {}\n")
    monkeypatch.setattr(paths, "examples_dir", lambda: tmp_path)
    made = notebooks._in_cpp("start/add")
    assert made == (
        'As C++, in one file: <a href="cpp/start/add.cu" download>add.cu</a> '
        "(<code>nvcc -O3 -std=c++17 -o add add.cu</code>)"
    )
    assert build.programs["cpp/start/add.cu"].endswith("int main() {}")
    main.write_text('#include "nothing.cuh"\n')
    notebooks._in_cpp("start/add")
    assert "main.cu:1 includes 'nothing.cuh'" in build.problems[-1]


def test_below_its_title_an_example_says_how_it_is_run_and_who_shows_it(build):
    chapters = [contents.Chapter("start", one, {"en": f"{one} & co"}, True) for one in ("a", "b")]
    shown = notebooks.head(record(), chapters)
    assert "<p><code>python -m cudatut run start/add</code></p>" in shown
    assert '<a href="start/a/">a &amp; co</a>, <a href="start/b/">b &amp; co</a></p>' in shown
    # First of all the notebook, as buttons; last its files, folded.
    first, *_, last = re.findall(r"<(p|details)\b", shown)
    assert (first, last) == ("p", "p") and shown.endswith("</p></details>")
    buttons, _, rest = shown.partition("</p>")
    assert re.findall(r'class="(md-button[^"]*)"', buttons) == [
        "md-button md-button--primary",
        "md-button",
    ]
    assert "md-button" not in rest and "add.py" not in rest.partition("<details")[0]
    assert "<summary>Files: 1</summary><p><a" in rest
    assert notebooks.head(record()).count("<p") == 4
    damaged = record(metadata=record().metadata | {"requires": "sm_x"})
    with pytest.raises(
        CudatutError, match="what it requires, and .*`python -m cudatut record start/add`"
    ):
        notebooks.head(damaged)


def test_an_example_has_its_cells_of_code_as_its_contents(build):
    (top,) = notebooks.toc(record())
    assert (top["level"], top["id"], top["name"]) == (1, "top", "Vector add")
    assert [(one["level"], one["id"], one["name"], one["children"]) for one in top["children"]] == [
        (2, "cell-id=setup", "setup", []),
        (2, "cell-id=bench", "bench", []),
    ]


def _html(*cells):
    return "<style>" + notebooks._CELL + "".join(one + notebooks._END for one in cells) + "</div>"


def test_a_page_is_made_of_its_cells_in_their_order(build):
    page = notebooks.page(record(), _html(" <p>One <script>idea</p> ", "", ""))
    ids = re.findall(r'<div (class="ct-cell" )?id="(.*?)">', page)
    cell = 'class="ct-cell" '
    assert ids == [
        ("", "cell-id=top"), ("", "cell-id=links"), ("", ids[2][1]), (cell, "cell-id=setup"),
        (cell, "cell-id=bench"), ("", "cell-id=certificate"),
    ]  # fmt: skip
    assert ">\n" not in page.partition("One")[0][-12:] and "&lt;script&gt;idea" in page
    assert page.index("import") < page.index("cell-id=bench")
    for cells in (("", ""), ("", "", "", "")):
        with pytest.raises(CudatutError, match="has not all cells"):
            notebooks.page(record(), _html(*cells))


def test_results_that_are_a_large_part_of_a_page_lie_beside_it(build, monkeypatch):
    assert notebooks._LONG * 3 == weight.LIMIT  # so a page has room for two of them
    text = random.Random(1).randbytes(6000).hex()
    monkeypatch.setattr(notebooks.directives, "results", lambda *_: text)
    own = record()
    for limit, folded in ((weight.compressed(text), False), (weight.compressed(text) - 1, True)):
        monkeypatch.setattr(notebooks, "_LONG", limit)
        shown = notebooks._results(own, own.cells[-1])
        assert (shown != text) == folded
    assert shown.startswith('<details class="example deferred"><summary>') and text in shown
    monkeypatch.setattr(notebooks, "_LONG", len(text))
    monkeypatch.setattr(notebooks.weight, "compressed", lambda html: len(html) + 1)
    assert notebooks._results(own, own.cells[-1]) == text  # short: nobody has to compress it


def test_files_for_download_lie_where_pages_lead_and_where_they_lay_before(
    build, project, tmp_path
):
    project.book.file("moved.yml", "start/old.py: start/add.py\nstart/older.py: start/gone.py\n")
    build.programs["start/add/program.py"] = "x = 1"
    (own,) = notebooks.recorded()
    site = tmp_path / "site"
    notebooks.write_files([own, record(path=own.path.with_suffix(".py"), name="start/none")], site)
    lie = {one.relative_to(site).as_posix() for one in site.rglob("*.*")}
    assert lie == {
        "start/add/program.py", "examples/start/add.py", "examples/start/old.py", "examples/start/add.ipynb",
    }  # fmt: skip
    assert (site / "start/add/program.py").read_text() == "x = 1\n"
    assert (site / "examples/start/add.ipynb").read_bytes() == own.path.read_bytes()
    source = project.book.root / "start/add.py"
    assert (site / "examples/start/old.py").read_bytes() == source.read_bytes()


def test_a_chinese_notebook_has_the_words_of_the_overlays(build):
    (own,) = notebooks.recorded()
    build.lang = "zh"
    with locale.using("zh"):
        made = notebooks._notebook(own)
    assert made.endswith(b"}\n") and "一个想法".encode() in made
    shown, raw = json.loads(made), json.loads(own.path.read_bytes())
    assert shown["cells"][1]["source"] == "一个想法"
    assert [one["source"] for one in shown["cells"][2:]] == [
        "".join(one["source"]) for one in raw["cells"][2:]
    ]


def test_below_its_title_a_chapter_says_how_its_example_is_run_and_where_colab_opens_it(build):
    example = build.example(FIRST)
    html = notebooks.start_of_page("<h1>T</h1><h1>U</h1>", [example])
    url = notebooks.colab_url(FIRST)
    assert html == (
        f'<h1>T</h1><p class="ct-begin"><a href="{url}">Open in Colab (T4)</a> · '
        "All programs of this page: <code>python -m cudatut run start/add</code></p><h1>U</h1>"
    )
    assert notebooks.start_of_page("<h1>T</h1>", []) == "<h1>T</h1>"
    nowhere = replace(example, requires="sm_100a")
    assert "Colab" not in notebooks.start_of_page("<h1>T</h1>", [nowhere])


@pytest.mark.parametrize("lang", locale.LANGUAGES)
def test_every_chapter_begins_with_its_command_and_colab(built_site, lang):
    folder = built_site / ("" if lang == "en" else "zh")
    for chapter in contents.chapters(contents.load(paths.docs_dir() / "contents.yml")):
        if not chapter.written:
            continue
        page = (folder / chapter.name / "index.html").read_text(encoding="utf-8")
        line = re.search(r'<p class="ct-begin">(.*?)</p>', page.partition("<h2")[0])[1]
        assert f"python -m cudatut run {chapter.name}" in line, chapter.name
        assert line.count("colab.research.google.com") == 1, chapter.name
