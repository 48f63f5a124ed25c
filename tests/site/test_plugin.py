"""The strict build of a small book: what it makes, and what it refuses to make."""

import json
import logging
import re
import shutil
import urllib.request
from pathlib import Path
from threading import Thread

import pytest
import yaml

from cudatut import recording
from cudatut.site import __main__ as site
from cudatut.site import (
    building,
    contents,
    glossary,
    languages,
    main_path,
    plugin,
    serving,
    slimming,
)

ROOT = Path(__file__).resolve().parents[2]
MEND = "python -m cudatut record start/add"


@pytest.fixture
def pages(project):
    """Both languages of the small book, built."""
    return {"en": project.build("en"), "zh": project.build("zh")}


def test_chapter_example_and_languages(pages):
    en = (pages["en"] / "start/add/index.html").read_text(encoding="utf-8")
    zh = (pages["zh"] / "start/add/index.html").read_text(encoding="utf-8")
    assert pages["zh"] == pages["en"] / "zh"
    assert '<html lang="en"' in en and '<html lang="zh"' in zh
    # the cell: highlighted source under a link to the example, then its results in the page's language
    assert '<span class="filename"><a href="../../examples/start/add/#cell-id=bench"' in en
    assert "ct-result" in en and "passed" in en
    assert "通过" in zh and "passed" not in re.sub(r"<[^>]*>", "", zh)
    # where it ran, where to get it
    assert "NVIDIA Test" in en and 'id="code"' in en and 'id="code"' in zh
    assert (
        "https://colab.research.google.com/github/cudatut/cudatut/blob/main/recordings/nvidia-test/start/add.ipynb"
        in en
    )
    # the other language, statically, from any base path
    for alternate in (
        'class="md-header__button ct-language" href="{}"',
        'rel="alternate" href="{}"',
    ):
        assert alternate.format("../../zh/start/add/") in en
        assert alternate.format("../../../start/add/") in zh
    assert "edit/main/docs/en/start/add.md" in en and "edit/main/docs/zh/start/add.md" in zh


def test_example_page(pages):
    for lang, title, word in (
        ("en", "Vector add", "Open in Colab"),
        ("zh", "向量加法", "在 Colab 中打开"),
    ):
        html = (pages[lang] / "examples/start/add/index.html").read_text(encoding="utf-8")
        assert f'<h1 id="top">{title}</h1>' in html
        assert '<a href="#cell-id=bench" class="md-nav__link">' in html  # in the page's contents
        assert word in html and "NVIDIA Test" in html
        assert '<div class="ct-cell" id="cell-id=bench">' in html and "ct-result" in html
        assert "cell-id=install" not in html  # for Colab only
        article = html[html.index("<article") : html.index("</article>")]
        assert article.count("<div") == article.count("</div>")
        assert "jp-" not in article and "<script" not in article and "<style" not in article
        for name in ("add.py", "add.ipynb"):
            assert f'href="../{name}"' in html
            assert (pages[lang] / "examples/start" / name).is_file()
    page = (pages["en"] / "examples/start/add/index.html").read_text(encoding="utf-8")
    assert '<a href="../../../start/add/">The add</a>' in page
    assert "edit/main/examples/start/add.py" in page


def test_unwritten_chapters_are_not_in_the_navigation(pages):
    en = (pages["en"] / "start/add/index.html").read_text(encoding="utf-8")
    assert "The add" in en and "The later" not in en


def test_no_page_asks_another_host(pages):
    for path in pages["en"].rglob("*.html"):
        html = path.read_text(encoding="utf-8")
        loaded = re.findall(r'<(?:script|img|iframe|source)[^>]*\ssrc="([^"]*)"', html)
        loaded += re.findall(r'<link[^>]*\bhref="([^"]*)"', html)
        assert loaded and not [url for url in loaded if "//" in url], path
        assert 'data-md-component="source"' not in html  # would ask api.github.com


def test_404_speaks_both_languages(pages):
    html = (pages["en"] / "404.html").read_text(encoding="utf-8")
    assert "This page does not exist" in html and "没有这个页面" in html
    assert 'href="/zh/"' in html and 'src="/assets/' in html
    zh = (pages["zh"] / "404.html").read_text(encoding="utf-8")
    assert "This page does not exist" in zh and "没有这个页面" in zh


def test_the_search_is_given_chinese_as_it_is(project):
    """Also where jieba is there, with which Material would cut sentences: docs/theme/js/searching.js finds words in them."""
    project.body("每个线程束共用一条指令。", "zh")
    index = json.loads((project.build("zh") / "search/search_index.json").read_text("utf-8"))
    text = " ".join(doc["text"] for doc in index["docs"])
    assert "每个线程束共用一条指令。" in text and "\u200b" not in text
    assert "，" in index["config"]["separator"]  # where a page begins the words that it marks
    assert not [doc for doc in index["docs"] if doc["location"].startswith("examples/start")]
    assert "单线程" not in text  # a row of a table
    project.body("每个线程束共用一条指令。")
    index = json.loads((project.build() / "search/search_index.json").read_text("utf-8"))
    assert any("每个线程束共用一条指令" in doc["text"] for doc in index["docs"])


def test_base_address(project, monkeypatch):
    monkeypatch.setenv("SITE_URL", "https://example.org/book/")
    html = (project.build("en") / "start/add/index.html").read_text(encoding="utf-8")
    assert '<link rel="canonical" href="https://example.org/book/start/add/">' in html
    assert 'href="https://example.org/book/zh/start/add/" hreflang="zh"' in html
    assert 'src="/book/assets/' in (project.root / "site/404.html").read_text(encoding="utf-8")


def test_formulas_are_mathml(project):
    project.body("Inline $a_i + b_i$, and\n\n$$\nI = \\frac{W}{Q}\n$$\n")
    html = (project.build() / "start/add/index.html").read_text(encoding="utf-8")
    assert html.count("<math") == 2 and "<mfrac>" in html and "arithmatex" not in html


# --- what fails the build ---------------------------------------------------------------------------


def test_changed_source(project, caplog):
    project.book.example("start/add", "# %% setup\n# %% bench\n# changed\n")
    project.refused(
        caplog, "recordings/nvidia-test/start/add.ipynb", "examples/start/add.py changed", MEND
    )


def test_changed_kernel(project, caplog):
    project.book.file("start/add.cu", "// before\n")
    notebook = project.book.notebook("start/add")
    sources = notebook["metadata"]["cudatut"]["sources"]
    sources["start/add.cu"] = recording.source_hash(project.book.root / "start/add.cu")
    project.book.recorded("start/add", notebook)
    project.build()
    project.book.file("start/add.cu", "// after\n")
    project.refused(
        caplog, "recordings/nvidia-test/start/add.ipynb", "examples/start/add.cu changed", MEND
    )


def test_recording_cut_in_half(project, caplog):
    path = project.book.whole("start/add")
    path.write_bytes(path.read_bytes()[: path.stat().st_size // 2])
    project.refused(caplog, "recordings/nvidia-test/start/add.ipynb", "cut short", MEND)


def test_failed_check(project, caplog):
    notebook = project.book.notebook("start/add")
    shown = notebook["cells"][3]["outputs"][0]["data"]
    shown["application/vnd.cudatut.v1+json"]["passed"] = False
    project.book.recorded("start/add", notebook)
    project.refused(
        caplog, "recordings/nvidia-test/start/add.ipynb", "check 'add' failed", MEND, lang="zh"
    )


def test_never_recorded(project, caplog):
    (project.book.whole("start/add")).unlink()
    project.refused(caplog, "recordings/<gpu>/start/add.ipynb", "has not been recorded", MEND)


@pytest.mark.parametrize(
    ("body", "parts"),
    [
        ("```example\nstart/ad#bench\n```", ("docs/en/start/add.md", "Did you mean start/add")),
        ("```example\nstart/add#bnch\n```", ("docs/en/start/add.md", "no cell 'bnch'")),
        ("```example\nbench\n```", ("docs/en/start/add.md", "part/example#cell")),
        ('```example source="left"\nstart/add#bench\n```', ('source="left"', "above|none")),
        ("It takes 570 ms.", ("docs/en/start/add.md:8", "570 ms", "{{ quote")),
        (
            'It takes {{ given "570 ms" as "guess" }}.',
            ("docs/en/start/add.md: line 8", "prediction, goal"),
        ),
        ("## No id", ("docs/en/start/add.md:8", "No id", "{ #its-id }")),
        (
            "A {{ start/add#bench.registers }}.",
            ("docs/en/start/add.md: line 8", "bench.registers: there is no such value"),
        ),
        ('```cuda\n--8<-- "start/none.cu:loop"\n```', ("docs/en/start/add.md", "start/none.cu")),
        ("[x](nowhere.md)", ("start/add.md", "nowhere.md")),
        ("[x](../glossary.md#nothing)", ("start/add.md", "#nothing")),
        ('```python exec="on"\n1/0\n```', ("docs/en/start/add.md", "ZeroDivisionError")),
        ("$\\frac{1$", ("docs/en/start/add.md", "\\frac{1", "braces")),
        ("$x \\foo y$", ("docs/en/start/add.md", "\\foo")),
        ("$x^$", ("docs/en/start/add.md", "x^")),
    ],
)
def test_mistakes_on_a_page(project, caplog, body, parts):
    project.body(body)
    project.refused(caplog, *parts)


def test_a_measurement_in_a_label(project, caplog):
    project.labels("add: 加法，用时 12.3 微秒\none thread: 单线程\n")
    project.refused(caplog, "docs/labels/start_add.yml:1", "12.3 微秒", "without the number")


def test_contents_that_disagree_with_the_pages(project, caplog):
    project.contents([("add", True), ("later", True)])
    project.refused(caplog, "'start/later.md' is included in the 'nav'", "not found")
    caplog.clear()
    project.contents([("add", False)])
    project.refused(caplog, 'not included in the "nav"', "start/add.md")
    caplog.clear()
    project.contents([("add", "draft"), ("later", False)])
    assert not (project.build() / "start").exists()


# --- plain functions --------------------------------------------------------------------------------


def test_contents_of_the_book():
    parts = contents.load(ROOT / "docs/contents.yml")
    assert [part.id for part in parts][:4] == ["start", "basics", "reduction", "gemm"]
    assert str(contents.nav(parts, "en")).count(".md") == str(contents.nav(parts, "zh")).count(
        ".md"
    )


def two_parts(**titles):
    """A table of contents with a chapter in each of two parts: their titles by language."""
    words = {"en": "x", "zh": "x"}
    return yaml.safe_dump(
        {
            "parts": [
                {"id": part, "title": words, "level": words, "about": words, "chapters": [
                    {"id": "b", "written": True, "title": {lang: both[k] for lang, both in titles.items()}}
                ]}
                for k, part in enumerate(("a", "c"))
            ]
        },
        allow_unicode=True,
    )  # fmt: skip


@pytest.mark.parametrize(
    ("text", "says"),
    [
        ("parts: 3", "parts is 3; write a list"),
        ("parts: [{id: a b}]", "chapters"),
        ("parts: [{id: A, chapters: []}]", "must be a-z"),
        ("parts: [{id: a, level: {en: x}, chapters: []}]", "'en' and 'zh'"),
        ("parts: [", "contents.yml"),
        (
            two_parts(en=("Board", "board"), zh=("甲", "乙")),
            "'board' is the title of a/b and of c/b",
        ),
        (two_parts(en=("One", "Two"), zh=("甲", "甲")), "'甲' is the title of a/b and of c/b"),
    ],
)
def test_bad_contents(tmp_path, text, says):
    path = tmp_path / "contents.yml"
    path.write_text(text, encoding="utf-8")
    with pytest.raises(contents.ContentsError, match=re.escape(says)):
        contents.load(path)


def test_glossary_of_the_book():
    terms = glossary.load(ROOT / "docs/glossary.yml")
    assert len(terms) >= 60
    assert "## 线程束 · warp { #warp }" in glossary.markdown(terms, "zh")
    assert "## shared memory · 共享内存 { #shared-memory }" in glossary.markdown(terms, "en")


def test_switch():
    def links(*args):
        return [(x["lang"], x["link"]) for x in languages.switch(*args)]

    assert links("./", "en") == [("en", "./"), ("zh", "zh/")]
    assert links("", "zh") == [("en", "../"), ("zh", "./")]
    assert links("a/b/", "zh") == [("en", "../../../a/b/"), ("zh", "./")]


def test_server_answers_404_with_the_page(project, capsys):
    site_dir = project.build()
    with site.server(site_dir, 0) as server:
        Thread(target=server.serve_forever, daemon=True).start()
        address = f"http://127.0.0.1:{server.server_port}/"
        with urllib.request.urlopen(address + "start/add/") as answer:
            assert answer.status == 200
        with pytest.raises(urllib.error.HTTPError) as caught:
            urllib.request.urlopen(address + "zh/nothing/")
        assert caught.value.code == 404 and "没有这个页面" in caught.value.read().decode()
        with pytest.raises(serving.ServeError, match="--port"):
            site.server(site_dir, server.server_port)
        server.shutdown()
    assert site.main(["serve", "--out", str(site_dir / "nothing")]) == 1
    assert "cudatut.site build" in capsys.readouterr().err


def test_a_failed_build_leaves_the_old_site(project, monkeypatch):
    out = project.root / "public"
    old = out / "zh/start/add/index.html"
    old.parent.mkdir(parents=True)
    old.write_text("of an earlier build")
    project.body("It takes 3 ms.", "zh")
    with pytest.raises(site.BuildError, match=r"(?s)\[zh\].*3 ms.*is as it was"):
        site.build(project.root, out)
    assert old.read_text() == "of an earlier build"
    assert {path for path in out.rglob("*") if path.is_file()} == {old}
    assert [path.name for path in project.root.iterdir() if path.name.startswith(".public")] == []


def test_slimming_changes_nothing_seen():
    code = '<span class="n">x</span><span class="w"> </span><span class="o">=</span><span class="mi">1</span>'
    assert slimming.tokens(code) == 'x =<span class="mi">1</span>'
    skipped = '<span class="p">)</span>  <span class="c1"># fmt: skip</span>\n<span class="c1"># fmt: off</span>'
    assert slimming.tokens(skipped) == ')\n<span class="c1"># fmt: off</span>'
    page = "<head>\n\n    <a>\n      b</a>\n  </head>\n<article>\n    <pre>\n    c\n\n    <b>d</b></pre></article>\n\n    <p>e"
    done = slimming.frame(page)
    assert "<article>\n    <pre>\n    c\n\n    <b>d</b></pre></article>" in done
    assert done.split() == page.split() and len(done) < len(page)
    assert slimming.frame("<p>\n\n  <b>no article") == "<p>\n\n  <b>no article"
    nested = "<article>\n    <p>a</p>\n    <article>x</article></article>"
    assert slimming.frame(nested) == nested
    sheet = '<link rel="stylesheet" href="../assets/_mkdocstrings.css">'
    assert slimming.frame(f"{sheet}{nested}") == nested
    api = f'{sheet}<article><div class="doc doc-object doc-function">f</div></article>'
    assert slimming.frame(api) == api


THEME = ROOT / "docs" / "theme"


def test_comments_are_not_sent_to_readers(tmp_path):
    code = 'a = "//b" // c\n// d\n  // e\nf("https://x")\n'
    assert slimming.without_comments(code, ".js") == 'a = "//b" // c\nf("https://x")\n'
    style = "/* a\n b */\n.c { d: e; /* f */ g: h }"
    assert slimming.without_comments(style, ".css") == ".c { d: e; g: h }"
    for name in ("css", "js"):
        shutil.copytree(THEME / name, tmp_path / name)
    slimming.theme(tmp_path)
    joined = (tmp_path / "js" / "site.js").read_text()
    for file in (*THEME.glob("css/*.css"), *THEME.glob("js/*.js")):
        whole, here = file.read_text(), tmp_path / file.relative_to(THEME)
        together = file.suffix == ".js" and file.stem in slimming.TOGETHER
        assert here.exists() != together
        slim = slimming.without_comments(whole, file.suffix) if together else here.read_text()
        assert len(slim) < len(whole) and (not together or slim in joined)
        # Only whole lines go, and no text that spans lines may hold one that looks like a comment.
        assert not [one for one in re.findall(r"`[^`]*`", whole) if "\n" in one]
        assert file.suffix == ".js" or slim.count("{") == whole.count("{")


def test_snippets_that_are_not_there_are_told_with_all_else_that_is_wrong(project, caplog):
    text = "// --8<-- [start:loop]\nint i;\n// --8<-- [end:loop]\n// --8<-- [start:end]\n"
    project.book.file("start/add.cu", text)
    snippets = ("add.cu:loop", "add.cu:lop", "gone.cu", "gone.cu:loop", "../README.md")
    fences = (f'```cuda\n--8<-- "start/{name}"\n```' for name in snippets)
    project.body("\n\n".join([*fences, "[x](nowhere.md)"]))
    project.refused(caplog, "nowhere.md")
    said = [record.getMessage() for record in caplog.records]
    for wrong in (
        "docs/en/start/add.md: the snippet 'start/add.cu:lop': the file has no such region; "
        "its regions are loop, end",
        "docs/en/start/add.md: the snippet 'start/gone.cu': there is no such file below examples/",
        "the snippet 'start/../README.md': there is no such file below examples/",
    ):
        assert any(wrong in line for line in said), said
    assert not any("Traceback" in line or "'start/add.cu:loop'" in line for line in said)


def test_a_snippet_is_shown(project):
    text = "// --8<-- [start:loop]\n  int i;\n// --8<-- [end:loop]\nint j;\n"
    project.book.file("start/add.cu", text)
    project.body('```cuda\n--8<-- "start/add.cu:loop"\n```')
    page = (project.build() / "start/add/index.html").read_text(encoding="utf-8")
    assert "int j" not in re.sub(r"<[^>]*>", "", page) and "int i;" in re.sub(r"<[^>]*>", "", page)


def test_a_fence_that_fails_is_one_sentence(project, caplog):
    project.body('```python exec="on"\nsize = 0\nprint(1 / size)\n```')
    project.refused(
        caplog,
        "docs/en/start/add.md: a fence that is executed fails: ZeroDivisionError: division by zero "
        "(the fence, `print(1 / size)`): mend it",
    )
    assert not any("Traceback" in record.getMessage() for record in caplog.records)


def test_a_figure_that_fails_is_named(project, caplog):
    file = project.root / "docs" / "figures" / "start" / "broken.py"
    file.parent.mkdir(parents=True)
    file.write_text("def drawn():\n    return {}['size']\n")
    code = f"import runpy\nprint(runpy.run_path({str(file)!r})['drawn']())"
    project.body(f'```python exec="on"\n{code}\n```')
    said = "fails: KeyError: 'size' (docs/figures/start/broken.py:2, `return {}['size']`)"
    project.refused(caplog, said)


def test_an_error_that_quotes_an_output_is_of_its_figure():
    frame = '  File "/book/docs/figures/start/add.py", line 2, in drawn\n    run()\n'
    said = plugin._of_fence(f"x\nOutput is:\n{frame}ToolError: it ends.\nOutput is:\nnothing\n")
    assert "fails: nothing (docs/figures/start/add.py:2, `run()`)" in said


FRAME = '  File "{}", line {}, in f\n    {}\n'


@pytest.mark.parametrize(
    ("output", "said"),
    [
        (FRAME.format("/b/docs/figures/a/b.py", 3, "run()") + FRAME.format("/x/y.py", 4, "deep()"), "E: why (docs/figures/a/b.py:3, `run()`)"),
        (FRAME.format("/b/figures/a.py", 3, "one()") + FRAME.format("/figures/b/figures/c.py", 7, "two()"), "E: why (docs/figures/c.py:7, `two()`)"),
        (FRAME.format("<code block: n=1>", 5, "print(x)"), "E: why (the fence, `print(x)`)"),
        ("", "E: why (the fence, ``)"),
    ],
)  # fmt: skip
def test_what_fails_in_a_fence_is_told_by_its_last_frame_of_ours(output, said):
    assert plugin._of_fence(f"Execution failed\nOutput is:\n{output}E: why\n") == (
        f"a fence that is executed fails: {said}: mend it; CUDATUT_DEBUG=1 shows the traceback"
    )


def test_other_messages_of_fences_stay_and_are_of_the_page(monkeypatch):
    monkeypatch.setattr(plugin.state, "_state", plugin.state.State(lang="zh", page="a/b.md"))
    fence = f"failed\nOutput is:\n{FRAME.format('<code block>', 1, 'x')}"
    own = "  cudatut.recording.UnfitRecordingError: start/add is stale:\nrecord it\n"
    absent = "  cudatut.site.missing.MissingOutputError: it failed"

    def told(message):
        record = logging.LogRecord("x", logging.WARNING, "x", 1, message, (), None)
        assert plugin._name_page(record) is True
        return record.levelname, record.levelno, record.msg.removeprefix("docs/zh/a/b.md: ")

    warning = ("WARNING", logging.WARNING)
    assert told("no output") == (*warning, "no output")
    assert told("failed\nOutput is:\n \n") == (*warning, "failed\nOutput is:\n \n")
    assert told(fence + own) == (*warning, "start/add is stale:\nrecord it")
    assert told(fence + absent) == ("INFO", logging.INFO, "it failed")
    monkeypatch.setenv("CUDATUT_DEBUG", "1")
    assert told(fence + own) == (*warning, fence + own)


def test_a_preview_tells_the_budget_in_a_sentence_and_leaves_reading_to_the_judge(
    project, caplog, monkeypatch
):
    monkeypatch.setenv("CUDATUT_SITE_MODE", "preview")
    monkeypatch.setenv("CUDATUT_SITE_ONLY", "start/add")
    monkeypatch.setattr(main_path, "over_budget", lambda part, found: ["1700 words, 1600 allowed"])
    project.body("It takes 3 ms.")
    project.refused(
        caplog,
        "docs/en/start/add.md: 1700 words, 1600 allowed: move into folds what a newcomer need not read",
    )
    assert not any("3 ms" in record.getMessage() for record in caplog.records)


def test_warnings_of_mkdocs_with_the_lines_that_go_on_from_them():
    lines = [
        "INFO    -  a",
        "b",
        "WARNING -  c",
        "d",
        "",
        "WARNING -  e",
        "ERROR   -  f",
        "INFO    -  g",
    ]
    assert building._warnings(["loose", *lines]) == ["c\nd\n", "e", "f"]


def test_words_for_the_search_that_cannot_be_read_are_reported(monkeypatch):
    from types import SimpleNamespace

    from cudatut.site import state
    from cudatut.site.plugin import CudatutPlugin

    monkeypatch.setattr(state, "_state", state.State())
    plugin = CudatutPlugin()
    plugin.state, plugin.asked = state.current(), {}
    page = SimpleNamespace(
        content="<p>x</p>",
        url="start/x/",
        meta={"search": 3},
        file=SimpleNamespace(src_uri="start/x.md"),
    )
    plugin._on_page_context_before_search({}, page, None, None)
    (problem,) = plugin.state.problems
    assert problem.startswith("docs/en/start/x.md: ") and not any(plugin.asked.values())
