"""Recordings whose every text is an attack: on each page that shows them, in Chromium, it stays text.

What reads recordings refuses some of these already. Here they are handed to the site as they are, so that it stands alone.
"""

import base64
import dataclasses
import json
import re
from html import unescape
from html.parser import HTMLParser

import numpy as np
import pytest

from cudatut import image_files, overlays, recording
from cudatut.errors import CudatutError
from cudatut.recording import Cell
from cudatut.results import MIME
from cudatut.site import labels, mathml, notebooks, prose, references, state

ATTACK = (
    "</title></textarea></style><script>window.hit=1</script>"
    "\"><img src=x onerror=window.hit=1>' onmouseover='window.hit=1' x='"
    " [x](javascript:window.hit=1) ](javascript:window.hit=1) <javascript:window.hit=1>"
    " **x**{ onclick=window.hit=1 } { .x onclick=window.hit=1 } javascript:window.hit=1 ../../../x"
    " $\\text{<svg/onload=window.hit=1>}$ &lt;script&gt;window.hit=1&lt;/script&gt; -->"
    ' {{ start/add#bench.peak }} |\n\n--8<-- "start/add.py"\n\n<svg onload=window.hit=1>\n'
)
# What the kinds themselves fix, and what is read before a page shows it.
_FIXED = {"kind", "output_type", "verdict", "form", "rule", "id", "recorded_at"}
_NAMES = {"metrics", "lines", "rivals", "launched", "files", "numbers"}  # whose keys are texts, too

PICTURE = base64.b64encode(image_files.png(np.array([[0, 255]], np.uint8))).decode()
FACTS = {"kind": "facts", "title": "Device", "rows": [{"name": "chip", "value": "GH100", "unit": "x"}]}  # fmt: skip
RESULTS = [
    FACTS,
    {"kind": "resources", "kernel": "add", "registers": 1, "shared_bytes": 2, "spill_bytes": 0, "occupancy": 0.5},
    {"kind": "profile", "kernel": "add", "metrics": {"sum": {"value": "much", "unit": "B"}}},
    {"kind": "table", "title": "t", "corner": "c", "columns": [{"name": "a", "unit": "b"}],
     "rows": [{"name": "r", "values": ["word"]}]},
    {"kind": "series", "title": "s", "x": {"name": "n", "unit": "u"}, "y": {"name": "m", "unit": "v"},
     "lines": {"one": [[1, 2], [3, 4]], "two": [[1, 3], [3, 5]]}, "limit": 6, "foreground": None},
    {"kind": "goals", "title": "g", "rows": [
        {"name": "n", "wanted": 1, "measured": 2, "low": 1.5, "high": 2.5, "verdict": "reached"}]},
    {"kind": "claim", "id": "a-claim", "source": "a book", "place": {"en": "p", "zh": "p"}, "form": "said",
     "statement": {"en": "s", "zh": "s"}, "expected": "yes", "measured": "yes", "unit": None, "rule": "equal",
     "control": {"what": {"en": "c", "zh": "c"}, "value": "yes"}, "verdict": "depends",
     "depends": {"en": "d", "zh": "d"},
     "sides": [{"what": {"en": "f", "zh": "f"}, "value": "yes"}, {"what": {"en": "g", "zh": "g"}, "value": "no"}]},
    {"kind": "picture", "name": "p", "width": 2, "height": 1, "alt": {"en": "a", "zh": "a"}, "data": PICTURE},
]  # fmt: skip
MORE = {
    "rivals": {"cuBLAS": "13"},
    "launched": {"CuPy": ["copy"]},
    "instrument": {"numbers": {"timing": "1"}},
    "restamped": [{
        "from": "a" * 40, "to": "b" * 40, "added": ["new.cu"],
        "files": {"old.cu": {"ground": "moved", "was": "1", "now": "2", "as": "x.cu"}, "gone.cu": {"ground": "code"}},
    }],
}  # fmt: skip
REFERENCE = '{{ start/add#told["chip"].value }}'
BODY = f"""Says {REFERENCE} here, and again: {REFERENCE}.

## Heading {REFERENCE} {{ #heading }}

!!! note "Title {REFERENCE}"

    Inside {REFERENCE}.

??? note "Fold {REFERENCE}"

    Inside {REFERENCE}.

=== "Tab {REFERENCE}"

    Inside {REFERENCE}.

| head {REFERENCE} |
|---|
| cell {REFERENCE} |

- item {REFERENCE}

> quoted {REFERENCE}

```example
start/add#told
```

```python exec="on"
from cudatut.site import claims
print(claims.table())
```
"""


def poisoned(value, key=""):
    """A value with the attack behind each of its texts; but the fact that the page refers to keeps its name."""
    if isinstance(value, dict):
        if value.get("name") == "chip":
            return {**value, "value": value["value"] + ATTACK}
        return {
            name + ATTACK if key in _NAMES else name: one
            if name in _FIXED
            or (name == "unit" and value.get("kind") == "benchmark")
            or (name == "data" and value.get("kind") == "picture")
            else poisoned(one, name)
            for name, one in value.items()
        }
    if isinstance(value, list):
        return [poisoned(one, key) for one in value]
    return value + ATTACK if isinstance(value, str) else value


def hostile(one):
    """A recording with the attack in every text of it, but in what is refused: its files, what it requires."""
    metadata = poisoned(one.metadata) | {
        key: one.metadata[key] for key in ("sources", "requires", "schema")
    }
    metadata["title"] = {lang: words + ATTACK for lang, words in one.metadata["title"].items()}
    cells = [
        Cell(
            # These are named on the page, and recording.INSTALL_CELL by the code.
            cell.title if cell.title in ("install", "bench", "told") else cell.title + ATTACK,
            cell.kind,
            cell.source + ATTACK,
            poisoned(cell.outputs),
            cell.executed,
        )
        for cell in one.cells
    ]
    return dataclasses.replace(one, metadata=metadata, cells=cells)


@pytest.fixture
def sites(project, monkeypatch):
    """Call it with what is to become of recordings: both languages of a book that shows two of an example, built."""
    book = project.book
    notebook = book.notebook("start/add")
    told = [
        {"output_type": "display_data", "metadata": {}, "data": {"text/plain": "?", MIME: result}}
        for result in RESULTS
    ]
    said = {"output_type": "stream", "name": "stdout", "text": "said\n"}
    cell = {
        "cell_type": "code",
        "id": "told",
        "metadata": {},
        "source": "x = 1  # " + "long " * 80,
        "execution_count": 3,
    }
    notebook["cells"].append({**cell, "outputs": [*told, said]})
    benchmark = notebook["cells"][3]["outputs"][1]["data"][MIME]
    benchmark["rows"][0]["kernels"] = ["sm90_gemm"]
    notebook["cells"][1]["source"] = (
        "*One* **idea** with `code`, a [link](https://example.org), $\\text{x}$."
    )
    # Whatever a recording says passes for Chinese.
    monkeypatch.setattr(overlays, "chinese", lambda text, file: text)
    raw = json.dumps(notebook).encode()
    own = recording.parse("start/add", book.whole("start/add"), raw)
    own = dataclasses.replace(own, metadata=own.metadata | MORE)
    other = dataclasses.replace(
        own,
        metadata={**own.metadata, "slim": True, "gpu": {**own.metadata["gpu"], "name": "Other"}},
    )
    benchmark["rows"][0]["value"] = 5.0
    changed = recording.parse("start/add", own.path, json.dumps(notebook).encode())
    other = dataclasses.replace(other, cells=changed.cells)

    def build(change):
        monkeypatch.setattr(recording, "require_good", lambda name: change(own))
        monkeypatch.setattr(recording, "on_other_gpus", lambda name: [change(other)])
        monkeypatch.setattr(labels, "problems", lambda lang, records: [])  # no attack has Chinese
        for lang in ("en", "zh"):
            project.body(BODY, lang)
            index = "# Index { #top }\n\n```python exec=\"on\"\nfrom cudatut.site import notebooks\nprint(notebooks.index())\n```\n"  # fmt: skip
            project.page("examples.md", index, lang)
        return [project.build("en"), project.build("zh")]

    return build


PAGES = ("start/add/index.html", "examples/start/add/index.html", "examples/index.html")

# (element, attribute) of all that a page has; what ran; addresses of scripts; what the mouse or a click could set off.
LOOK = """() => {
  const all = [...document.querySelectorAll("*")];
  const made = new Set(all.flatMap((one) => [one.localName, ...[...one.attributes].map((a) => one.localName + " " + a.name)]));
  for (const one of all) for (const kind of ["mouseover", "mouseenter", "click", "focus", "error"])
    if (kind !== "click" || !one.closest("a, label, button, summary, input")) one.dispatchEvent(new MouseEvent(kind));
  return {
    hit: window.hit ?? null,
    made: [...made],
    scripts: [...document.scripts].filter((one) => (one.src + one.text).includes("hit")).length,
    links: all.filter((one) => /^\\s*javascript/i.test(one.getAttribute("href") ?? "")).length,
  };
}"""


@pytest.fixture
def look(browser):
    """Call it with files of pages: what there is on all of them, and what ran."""
    context = browser.new_context(viewport={"width": 1280, "height": 900})

    def at(files):
        found = {"hit": None, "made": set(), "scripts": 0, "links": 0}
        for file in files:
            page = context.new_page()
            page.goto(file.as_uri())
            seen = page.evaluate(LOOK)
            page.wait_for_timeout(100)  # an image that is not there tells of it later
            found["hit"] = found["hit"] or seen["hit"] or page.evaluate("window.hit ?? null")
            found["made"] |= set(seen["made"])
            found["scripts"] += seen["scripts"]
            found["links"] += seen["links"]
            page.close()
        return found

    yield at
    context.close()


def test_no_text_of_a_recording_becomes_markup(sites, look):
    clean = look([site / page for site in sites(lambda one: one) for page in PAGES])
    assert clean["hit"] is None and "script src" in clean["made"]
    built = sites(hostile)
    seen = look([site / page for site in built for page in PAGES])
    assert (seen["hit"], seen["scripts"], seen["links"]) == (None, 0, 0)
    assert seen["made"] - clean["made"] == set()
    for site in built:
        for page in PAGES:
            html = (site / page).read_text(encoding="utf-8")
            assert "window.hit=1" in unescape(html), "the attack is not on the page at all"
            assert "import cudatut" not in html.partition("cell-id=setup")[0]  # no file was put in
        index = json.loads((site / "search/search_index.json").read_text(encoding="utf-8"))
        for entry in index["docs"]:
            assert tags(entry["text"] + entry["title"]) <= {
                "p",
                "code",
                "ul",
                "li",
                "h1",
                "h2",
                "pre",
                "ol",
            }

    # The look notices what it is there for.
    page = built[0] / PAGES[0]
    html = page.read_text(encoding="utf-8")
    for planted in ("<b onmouseover=window.hit=1>x</b>", "<img src=x onerror=window.hit=1>",
                    "<script>window.hit=1</script>", "<a href=' javascript:window.hit=1'>x</a>", "<b data-x>x</b>"):  # fmt: skip
        page.write_text(html.replace("</article>", f"{planted}</article>"), encoding="utf-8")
        found = look([page])
        assert found["hit"] or found["links"] or found["made"] - clean["made"], planted


def tags(html):
    found = set()
    parser = HTMLParser()
    parser.handle_starttag = lambda tag, attrs: found.add(tag)
    parser.feed(html)
    return found


# --- what becomes a path, or is refused ----------------------------------------------------------------


@pytest.mark.parametrize(
    "name",
    ["../README.md", "/etc/passwd", "start/../../x.py", "..", "a\\b.py", "start//x.py", "~/x.py", ".git/config",
     "javascript:alert(1).py", 'x"onclick=alert(1).py', "x<script>.py", "x\n.py", ""],
)  # fmt: skip
def test_a_file_outside_the_examples_is_refused_and_not_copied(project, caplog, monkeypatch, name):
    own = recording.load("start/add")
    sources = {**own.metadata["sources"], name: "0" * 64}
    changed = dataclasses.replace(own, metadata={**own.metadata, "sources": sources})
    (project.root / "README.md").write_text("not an example")
    with pytest.raises(CudatutError, match="no name of a file below examples/"):
        notebooks.write_files([changed], project.root / "out")
    assert not list(project.root.glob("**/out/**/*.md"))
    monkeypatch.setattr(recording, "require_good", lambda name: changed)
    project.refused(caplog, "start/add", "which is no name of a file below examples/")


def test_a_recording_of_another_name_is_not_written_elsewhere(project):
    own = recording.load("start/add")
    for name in ("../../x", "start/../../x"):
        with pytest.raises(CudatutError, match="no name of a file"):
            notebooks.write_files([dataclasses.replace(own, name=name)], project.root / "out")


def test_a_page_among_the_examples_is_not_offered(project):
    """A browser would run what stands in it."""
    project.book.file("start/x.html", "<script>1</script>")
    project.book.file("start/x.cu", "// kernel")
    own = recording.load("start/add")
    sources = {**own.metadata["sources"], "start/x.html": "0" * 64, "start/x.cu": "0" * 64}
    changed = dataclasses.replace(own, metadata={**own.metadata, "sources": sources})
    assert notebooks.files(changed) == ["start/add.py", "start/x.cu"]
    notebooks.write_files([changed], project.root / "out")
    names = {path.name for path in (project.root / "out").rglob("*.*")}
    assert names == {"add.py", "x.cu", "add.ipynb"}


@pytest.mark.parametrize("requires", ["sm_75<script>", "", "sm_", "7.5", "sm_90b"])
def test_what_is_no_compute_capability_is_refused(project, caplog, monkeypatch, requires):
    own = recording.load("start/add")
    changed = dataclasses.replace(own, metadata={**own.metadata, "requires": requires})
    monkeypatch.setattr(recording, "require_good", lambda name: changed)
    project.refused(caplog, "start/add", "is no compute capability such as sm_90a")
    assert (
        f"{requires} or newer"
        not in (project.root / "site/examples/start/add/index.html").read_text()
    )


def test_a_link_has_no_scheme_and_ends_no_attribute():
    for url in ("", "start/add/", "examples/"):
        build = state.State(url=url)
        for target in ('javascript:alert(1)', "../javascript:alert(1)", 'x"><script>', "x' onclick='", "x#\"><script>"):  # fmt: skip
            link = build.link(target)
            assert not set(link) & set("\"'<>: "), link
    assert (
        state.State(url="start/add/").link("examples/a_b-c/#cell-id=x")
        == "../../examples/a_b-c/#cell-id=x"
    )


# --- what Markdown reads next --------------------------------------------------------------------------


@pytest.mark.parametrize("line", ["It is X.", "## X { #x }", '!!! note "X"', '??? note "X"', "| X |", "- X"])  # fmt: skip
def test_a_value_in_a_sentence_is_no_markdown(monkeypatch, line):
    import markdown

    monkeypatch.setattr(references, "value", lambda expression: ATTACK)
    problems = []
    replaced = references.replace(line.replace("X", "{{ start/x#cell.unit }}"), problems.append)
    assert not problems and "\n" not in replaced
    extensions = [
        "attr_list",
        "admonition",
        "tables",
        "pymdownx.details",
        "pymdownx.keys",
        "footnotes",
    ]
    html = markdown.markdown(replaced, extensions=extensions)
    assert tags(html) <= {
        "p",
        "span",
        "h2",
        "div",
        "details",
        "summary",
        "ul",
        "li",
        "table",
        "thead",
        "tbody",
        "tr",
        "th",
    }
    assert "onclick=window" in unescape(html) and not re.search(r"<[^>]*(onclick|javascript)", html)


def test_a_formula_takes_numbers_and_words_alone(monkeypatch):
    problems = []
    monkeypatch.setattr(references, "value", lambda expression: "x$ <script>")
    line = "So $y = {{ start/x#cell.unit }}$."
    assert references.replace(line, problems.append) == line
    assert "a formula takes numbers and words" in str(problems[0])
    monkeypatch.setattr(references, "value", lambda expression: 1.5e-07)
    assert references.replace(line, problems.append) == "So $y = 1.5e-07$." and len(problems) == 1


def test_text_in_a_formula_stays_text():
    html = mathml.convert(r"\text{<svg/onload=hit>} a < b \le \sum")
    assert tags(html) <= {"math", "mrow", "mtext", "mi", "mo"}
    assert "&lt;svg/onload=hit&gt;" in html and "<mo>&lt;</mo>" in html and "∑" in html


# --- prose ---------------------------------------------------------------------------------------------


def test_prose_keeps_what_prose_is_made_of():
    html = (
        '<p>One <em>idea</em> with <code>a &lt; b &amp; c</code>, a <a href="https://example.org/x?y=1&amp;z">link</a>.</p>'
        "<ul><li>item</li></ul><pre><code>x\n</code></pre>"
    )
    assert prose.cleaned(html) == html
    formula = mathml.convert(r"\frac{a}{b} < \sqrt{x}")
    assert tags(prose.cleaned(formula)) == tags(formula)


@pytest.mark.parametrize(
    ("html", "cleaned"),
    [
        ("<script>x</script>", "&lt;script&gt;x&lt;/script&gt;"),
        ("<p onclick=x style=x id=x class=x>a</p>", "<p>a</p>"),
        ("<img src=x onerror=y>", "&lt;img src=x onerror=y&gt;"),
        ('<a href="javascript:x">a</a>', "<a>a</a>"),
        ('<a href="jav&#x0A;ascript:x">a</a>', "<a>a</a>"),
        ('<a href=" javascript:x">a</a>', "<a>a</a>"),
        ('<a href="data:text/html,x">a</a>', "<a>a</a>"),
        ('<a href="../x.md#y">a</a>', '<a href="../x.md#y">a</a>'),
        ('<a href="#y:z">a</a>', '<a href="#y:z">a</a>'),
        ("</div></article><p>a", "&lt;/div&gt;&lt;/article&gt;<p>a</p>"),
        ("<p><em>a</p>b", "<p><em>a</em></p><em>b</em>"),
        ("<!-- x --><p>a</p><?php x ?>", "<p>a</p>"),
        ('<math href="javascript:x" onclick="y"><mi>x</mi></math>', "<math><mi>x</mi></math>"),
        ("<svg><script>x</script></svg>", "&lt;svg&gt;&lt;script&gt;x&lt;/script&gt;&lt;/svg&gt;"),
        ("a <", "a &lt;"),
        ("<scr", "&lt;scr"),
    ],
)
def test_prose_loses_what_is_none(html, cleaned):
    assert prose.cleaned(html) == cleaned
