"""Labels of results in Chinese: what is looked up, what a file may say, what a page shows, what the build refuses."""

import copy
import dataclasses
import io
import re
import runpy
import shutil
import sys
from types import SimpleNamespace
from typing import Annotated

import pytest
import yaml

from cudatut import catalog, recording
from cudatut.errors import CudatutError
from cudatut.recording import Cell, Recording
from cudatut.results import MIME
from cudatut.site import (
    claims,
    contents,
    directives,
    label_files,
    labels,
    locale,
    localize,
    references,
    state,
)
from cudatut.site.render import results_html

FILE = """
blocks per SM: 每个 SM 的线程块数
time: 时间
"{} threads": "{} 个线程"
"grid {}, block {}": "网格 {}，线程块 {}"
"{} out of {}": "{1} 中的 {0}"
"{} x {}": "{} × {}"
"{}: launches": "{}：启动次数"
two: 两
"yes": 是
128: 一百二十八
_same: [grid-stride, naive, long long]
_units: {cycles: 个周期}
"""


@pytest.fixture
def folder(tmp_path):
    path = tmp_path / "docs" / "labels"
    path.mkdir(parents=True)
    label_files.load.cache_clear()
    yield path
    label_files.load.cache_clear()


@pytest.fixture
def book_labels(folder):
    (folder / "start_add.yml").write_text(FILE, encoding="utf-8")
    found = label_files.load(folder)
    assert found.problems == []
    return found


@pytest.mark.parametrize(
    ("label", "chinese"),
    [
        ("blocks per SM", "每个 SM 的线程块数"),
        ("256 threads", "256 个线程"),
        ("1,024 threads", "1,024 个线程"),
        ("two threads", "两个线程"),
        ("grid (3, 1), block 64 x 64", "网格 (3, 1)，线程块 64 x 64"),
        ("12 out of [1, 2]", "[1, 2] 中的 12"),
        ("64 x 32", "64 × 32"),
        ("few_blocks: launches", "few_blocks：启动次数"),
        ("naive: launches", "naive：启动次数"),
        ("yes", "是"),
        ("128", "一百二十八"),
        # of several parts
        ("blocks per SM, n = 33: time", "每个 SM 的线程块数，n = 33：时间"),
        ("time / blocks per SM", "时间 / 每个 SM 的线程块数"),
        ("grid (3, 1), block 4: time", "网格 (3, 1)，线程块 4：时间"),
        # nothing to translate
        ("grid-stride", "grid-stride"),
        ("naive, n = 33", "naive, n = 33"),
        ("long long", "long long"),
        ("`for (int i)`", "`for (int i)`"),
        ("cuBLAS", "cuBLAS"),
        ("threadIdx.x", "threadIdx.x"),
        ("naive_columns, n = 64", "naive_columns, n = 64"),
        ("GB/s", "GB/s"),
        ("每个线程", "每个线程"),
    ],
)
def test_chinese(book_labels, label, chinese):
    assert book_labels.chinese(label) == chinese
    assert book_labels.lacking(label) == ()


@pytest.mark.parametrize(
    ("label", "lacking"),
    [
        ("blocks per grid", ("blocks per grid",)),
        ("time, memory", ("memory",)),
        ("many threads", ("many threads",)),
        ("naive way", ("naive way",)),
        ("`time` of it all", ("`time` of it all",)),
        ("sum, product", ("sum", "product")),
    ],
)
def test_lacking(book_labels, label, lacking):
    assert book_labels.lacking(label) == lacking
    assert book_labels.chinese(label) == label


def test_the_entry_with_most_words_and_the_longest_name_count(folder):
    """In whatever order they stand in the file."""
    text = """
"{} {}": "{} {}"
"sum {}": 总共 {}
"{} times {}": "{} 乘 {}"
sum: 合
_same: [naive, naive way]
"""
    (folder / "x.yml").write_text(text, "utf-8")
    found = label_files.load(folder)
    assert found.chinese("sum 3") == "总共 3" and found.chinese("2 3") == "2 3"
    assert found.lacking("naive way") == found.lacking("naive way x") == ()
    assert found.lacking("naively") == ("naively",)


def test_units(book_labels):
    assert book_labels.unit("cycles") == "个周期"
    assert book_labels.unit("time") == "时间"
    assert book_labels.unit("GB/s") == "GB/s"


@pytest.mark.parametrize(
    ("text", "says"),
    [
        ("time 时间", "docs/labels/b.yml: the file has no lines of the form"),
        ("time: [a]", "docs/labels/b.yml: 'time' needs text"),
        ("time:", "docs/labels/b.yml: 'time' needs text"),
        ("time: 时间\ntime: 时间", "docs/labels/b.yml: twice in the file: time"),
        (
            "_same: naive",
            "docs/labels/b.yml: _units and _here have lines of the form `unit: 中文`, and _same is",
        ),
        ("_units: [a]", "docs/labels/b.yml: _units and _here have lines of the form"),
        ("_here: [a]", "docs/labels/b.yml: _units and _here have lines of the form"),
        ("_here: {a: }", "docs/labels/b.yml: 'a' needs text"),
        ("_here: {'{} a': '{} 个'}", "docs/labels/b.yml: _here takes whole labels"),
        ("'{} x {}': '{}'", "docs/labels/b.yml: '{} x {}' has 2 {}, and '{}' other ones"),
        ("'{} x {}': '{0} {2}'", "'{} x {}' has 2 {}"),
        ('"time: x', "docs/labels/b.yml: it is no YAML"),
        ("count: 个数", "'count' is '计数' in docs/labels/a.yml and '个数' in docs/labels/b.yml"),
        ("_units: {s: 秒钟}", "'s' is '秒' in docs/labels/a.yml and '秒钟' in docs/labels/b.yml"),
        (
            "_same: [count]",
            "'count' is '计数' in docs/labels/a.yml and 'count' in docs/labels/b.yml",
        ),
    ],
)
def test_a_file_that_is_wrong_is_named(folder, text, says):
    (folder / "a.yml").write_text("count: 计数\n_units: {s: 秒}", encoding="utf-8")
    (folder / "b.yml").write_text(text, encoding="utf-8")
    found = label_files.load(folder)
    assert len(found.problems) == 1 and says in found.problems[0]
    assert found.chinese("count") == "计数"  # the rest is there


def test_the_same_translation_twice_and_no_folder(folder, tmp_path):
    for name in ("a.yml", "b.yml"):
        (folder / name).write_text("count: 计数\n_same: [naive]", encoding="utf-8")
    (folder / "empty.yml").write_text("# nothing yet\n", encoding="utf-8")
    assert label_files.load(folder).problems == []
    assert label_files.load(tmp_path / "none").words == {}


def test_a_word_means_something_else_in_the_chapter_whose_file_says_so(folder):
    (folder / "units.yml").write_text(
        "blocks: 线程块\n_units: {blocks: 个线程块}", encoding="utf-8"
    )
    (folder / "p_tile.yml").write_text("_here: {blocks: 块}", encoding="utf-8")
    (folder / "p_tile_2d.yml").write_text("time: 时间", encoding="utf-8")
    found = label_files.load(folder)
    assert found.problems == []
    said = {
        name: (found.of(name).chinese("blocks, n = 3"), found.of(name).unit("blocks"))
        for name in ("p/tile", "p/tile_claims", "p/tiles", "q/tile", "")
    }
    other = ("线程块，n = 3", "个线程块")
    assert said == {
        **dict.fromkeys(("p/tile", "p/tile_claims"), ("块，n = 3", "块")),
        **dict.fromkeys(("p/tiles", "q/tile", ""), other),
    }


def test_behind_a_block_labels_mean_what_they_did_before_it():
    with localize.of("a/b"):
        with pytest.raises(KeyError), localize.of("c/d"):
            raise KeyError(localize._example.get())
        assert localize._example.get() == "a/b"
    assert localize._example.get() == ""


Label = Annotated[str, "label"]


@pytest.mark.parametrize(
    ("annotation", "value", "said"),
    [
        (Label, "a", "A"),
        (Label, "", ""),
        (Label | None, None, None),
        (list[Label] | None, ["a", "b"], ["A", "B"]),
        (str | Label | int, "a", "A"),  # the last that fits
        (int | list[Label], 3, 3),
        (dict[Label, int], {"a": 1}, {"A": 1}),
        (dict[str, Label], {"a": "b"}, {"a": "B"}),
        (dict[Label, int], {"a": 1, "A": 2}, {"a": 1, "A": 2}),  # no line is lost
        (Annotated[str, "unit"], "us", "u.s."),
    ],
)
def test_what_is_declared_a_label_is_said_in_other_words(annotation, value, said):
    tell = localize._teller_of(annotation)
    assert tell(value, {"label": str.upper, "unit": lambda unit: "u.s."}) == said


@pytest.mark.parametrize("annotation", [str, int | None, list[str], dict[str, int]])
def test_what_has_no_labels_stays_as_it_is(annotation):
    assert localize._teller_of(annotation) is None


# --- results -------------------------------------------------------------------------------------

ROW = {
    "name": "blocks per SM", "median_us": 2.0, "p20_us": 1.0, "p80_us": 3.0, "value": 4.0,
    "of_peak": None, "vendor": False, "ratio_to_vendor": None, "bytes": 8000,
}  # fmt: skip
RESULTS = [
    {"kind": "check", "name": "256 threads", "passed": True, "n": 3, "max_abs_err": 0.0,
     "max_rel_err": 0.0, "atol": 0.0, "rtol": 0.0},
    {"kind": "benchmark", "name": "time", "unit": "GB/s", "peak": None, "rows": [ROW],
     "rounds": 5},
    {"kind": "profile", "kernel": "add", "metrics": {"a.sum": {"value": 1, "unit": "cycles"}}},
    {"kind": "facts", "title": "time", "rows": [
        {"name": "two threads", "value": 12, "unit": "cycles"},
        {"name": "n", "value": "blocks per SM", "unit": None},
        {"name": "ok", "value": True, "unit": None}]},
    {"kind": "table", "title": "time", "corner": "blocks per SM",
     "columns": [{"name": "4 threads", "unit": "time"}, {"name": "n", "unit": None}],
     "rows": [{"name": "8 threads", "values": ["two threads", None]}]},
    {"kind": "claim", "id": "a", "source": "S", "statement": {"en": "says", "zh": "说"},
     "place": {"en": "here", "zh": "此处"}, "form": "code", "rule": "equal",
     "expected": ["time", 3], "measured": ["two threads", 2], "unit": "cycles",
     "control": {"what": {"en": "known", "zh": "已知"}, "value": "blocks per SM"},
     "verdict": "refuted"},
    {"kind": "series", "title": "time", "x": {"name": "2 threads", "unit": "time"},
     "y": {"name": "time", "unit": "GB/s"}, "limit": None, "foreground": ["8 threads"],
     "lines": {"8 threads": [[1, 2.0]], "two threads": [[1, 3.0]]}},
]  # fmt: skip


@pytest.fixture
def at(book_labels, folder):
    """The book's labels are these."""
    contents_of_the_book = state.State().docs.parent / "contents.yml"
    shutil.copy(contents_of_the_book, folder.parent)
    state.begin(state.State(lang="zh", docs=folder.parent / "zh"))
    locale.use("zh")
    yield
    state.begin(state.State())
    locale.use("en")


def shown(result):
    return {"output_type": "display_data", "data": {MIME: result, "text/plain": "?"}}


def words(html):
    return re.findall(r"[a-z]{3,}", re.sub(r"<[^>]+>", " ", re.sub(r"<code.*?</code>", " ", html)))


@pytest.mark.parametrize("result", RESULTS, ids=lambda r: r["kind"])
def test_a_chinese_page_shows_no_english_label(at, result):
    before = copy.deepcopy(result)
    html = results_html([shown(result)], "zh")
    allowed = {"atol", "add", "sum"}
    assert set(words(html)) <= allowed, words(html)
    assert result == before  # what references read is English
    english = results_html([shown(result)], "en")
    assert "每" not in english and ("time" in english or "threads" in english or "add" in english)


def test_two_lines_of_one_translation_keep_their_names(at):
    one = {**RESULTS[-1], "lines": {"8 threads": [[1, 2.0]], "8  threads": [[1, 3.0]]}}
    one["foreground"] = None
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(label_files.Labels, "chinese", lambda self, label: "同名")
        assert list(localize.localized(one, "zh")["lines"]) == list(one["lines"])


def test_code_in_a_label(at):
    facts = {**RESULTS[3], "title": "`a<b>`, time"}
    html = results_html([shown(facts)], "zh")
    assert '<code class="ct-code">a&lt;b&gt;</code>，时间' in html
    series = {**RESULTS[-1], "lines": {"`few` 8": [[1, 2.0]]}, "foreground": None}
    chart = results_html([shown(series)], "en").split("</svg>")[0]
    assert "few 8" in chart and "`" not in chart


def test_a_recorded_word_in_prose_is_in_the_pages_language(at, monkeypatch):
    cell = Cell("t", "code", "x", [shown(RESULTS[4])], True)
    found = Recording("start/add", None, {}, [cell])
    monkeypatch.setattr(references, "load", lambda name: found)
    reference = 'start/add#t["8 threads"]["4 threads"]'
    assert references.formatted(reference) == "两个线程"
    locale.use("en")
    assert references.formatted(reference) == "two threads"


def record(*results, name="start/hello_solutions"):
    cell = Cell("facts", "code", "x", [shown(result) for result in results], True)
    return Recording(name, None, {}, [cell])


def test_what_lacks_an_entry_is_named_with_its_cell_and_file(at):
    facts = {**RESULTS[3], "title": "sum of 12 rows, n = 3"}
    again = {**RESULTS[3], "title": "sum of 13 rows, n = 4"}
    said = labels.problems("zh", [record(*RESULTS, facts, again)])
    assert said == [
        "start/hello_solutions#facts: the label 'sum of {} rows' (as in 'sum of 12 rows, n = 3') "
        "has no Chinese; add it to docs/labels/start_hello.yml"
    ]
    assert labels.problems("en", [record(facts)]) == []


def test_a_whole_label_is_named_once_and_faults_of_the_files_before_it(at, folder):
    (folder / "x.yml").write_text("time: [a]", "utf-8")
    found = record({**RESULTS[3], "title": "sum"}, {**RESULTS[3], "title": "sum"})
    assert labels.problems("zh", [found]) == [
        "docs/labels/x.yml: 'time' needs text",
        "start/hello_solutions#facts: the label 'sum' has no Chinese; "
        "add it to docs/labels/start_hello.yml",
    ]
    label_files.load.cache_clear()


def test_lines_to_fill_in(at, folder, monkeypatch, capsys):
    """Of all examples, of those whose names begin so, and of one that has no recording nothing."""
    facts = {**RESULTS[3], "title": 'sum of 12 "rows"', "rows": [
        {"name": "n", "value": 12, "unit": "cycles"}, {"name": "n", "value": 1, "unit": "leaps"}]}  # fmt: skip
    found = {"start/hello": record(facts, name="start/hello"), "llm/x": record(name="llm/x")}

    def load(name):
        if name not in found:
            raise CudatutError(f"{name} was never recorded")
        return found[name]

    listed = [SimpleNamespace(name=name) for name in (*found, "start/none")]
    monkeypatch.setattr(catalog, "examples", lambda drafts: listed if drafts else [])
    monkeypatch.setattr(recording, "load", load)
    assert labels.main([]) == 1
    assert capsys.readouterr().out.splitlines() == [
        "# start/none was never recorded",
        "",
        "# docs/labels/start_hello.yml",
        r""""sum of {} \"rows\"": ""  # start/hello#facts""",
        '"leaps": ""  # start/hello#facts',
    ]
    assert labels.main(["llm/", "start/no"]) == 0
    assert capsys.readouterr().out == "# start/none was never recorded\n"
    (folder / "x.yml").write_text("time: [a]", "utf-8")
    label_files.load.cache_clear()
    assert labels.main(["llm/"]) == 1
    assert capsys.readouterr().out == "# docs/labels/x.yml: 'time' needs text\n"


def test_lines_to_fill_in_as_a_command(at, monkeypatch):
    """Chinese ones too, where the terminal's own encoding has none."""
    facts = {**RESULTS[3], "title": "每 sum"}
    monkeypatch.setattr(catalog, "examples", lambda drafts: [SimpleNamespace(name="start/hello")])
    monkeypatch.setattr(recording, "load", lambda name: record(facts, name=name))
    for arguments, status in ([], 1), (["llm/"], 0):
        out = io.TextIOWrapper(io.BytesIO(), encoding="ascii")
        monkeypatch.setattr(sys, "argv", ["labels.py", *arguments])
        monkeypatch.setattr(sys, "stdout", out)
        with pytest.raises(SystemExit) as ended:
            runpy.run_path(labels.__file__, run_name="__main__")
        out.flush()
        assert ended.value.code == status
        assert ('"每 sum": ""' in out.buffer.getvalue().decode("utf-8")) == bool(status)


CLAIM = RESULTS[5] | {"unit": "4 threads"}


def test_pages_show_a_word_as_the_chapter_means_it(at, folder, monkeypatch):
    """In outputs, in references, in the table of all claims, in what a build refuses."""
    (folder / "start_add.yml").write_text(f"{FILE}\n_here: {{4 threads: 四兄弟}}", "utf-8")
    label_files.load.cache_clear()
    monkeypatch.setattr(claims, "recorded_on", lambda records: "")
    here, there = record(CLAIM, name="start/add_claims"), record(CLAIM, name="start/other")
    for one in (here, there):
        one.metadata["title"] = {"en": "x", "zh": "x"}
    cells = [one.cells[0] for one in (here, there)]
    outputs = [directives.results(one, cell, "zh") for one, cell in zip((here, there), cells)]
    rows = [claims.table_html(claims.settled([one], ())) for one in (here, there)]
    for own, other in (outputs, rows):
        assert "四兄弟" in own and "4 个线程" not in own
        assert "4 个线程" in other and "四兄弟" not in other
    assert labels.problems("zh", [here, there]) == []
    facts = {**RESULTS[3], "rows": [{"name": "n", "value": "4 threads", "unit": None}]}
    found = Recording("start/add", None, {}, [Cell("t", "code", "x", [shown(facts)], True)])
    monkeypatch.setattr(references, "load", lambda name: found)
    assert references.formatted('start/add#t["n"].value') == "四兄弟"


def test_the_file_of_an_example():
    title = {"en": "x", "zh": "x"}
    chapters = tuple(contents.Chapter("p", id, title, True) for id in ("tile", "tile_2d", "tile_2"))
    parts = [contents.Part("p", title, title, title, chapters)]
    own = {"p/tile": 0, "p/tile_claims": 0, "p/tile_2d_solutions": 1, "p/tile_2": 2}
    for example, place in own.items():
        assert contents.chapter_of(example, parts) == chapters[place]
        assert labels.file_of(example, parts) == f"docs/labels/p_{chapters[place].id}.yml"
    assert contents.chapter_of("p/tiles", parts) is None
    assert labels.file_of("p/tiles", parts) == "docs/labels/p_tiles.yml"


def test_a_chinese_build_refuses_a_label_without_entry(project, caplog):
    project.labels("add: 加法\n")
    project.refused(
        caplog,
        "start/add#bench",
        "'one thread' has no Chinese",
        "docs/labels/start_add.yml",
        lang="zh",
    )


def test_an_english_build_needs_no_entries(project):
    project.labels("add: 加法\n")
    project.build("en")


def test_a_chinese_build_shows_chinese(project):
    page = (project.build("zh") / "start/add/index.html").read_text("utf-8")
    assert "单线程" in page and "one thread" not in page


# --- the book's own ------------------------------------------------------------------------------


def test_the_books_files_are_right():
    assert labels.current().problems == []


def test_blocks_of_a_cache_are_no_thread_blocks():
    """Where a page's header says that `block` means a KV block, no label of its chapter says otherwise in Chinese."""
    wrong, looked_at = [], 0
    parts = contents.load()
    for chapter in contents.chapters(parts):
        path = state.State().docs / chapter.page
        head = path.read_text("utf-8").split("---\n")[1] if chapter.written else ""
        if (yaml.safe_load(head) or {}).get("terms", {}).get("block") != "kv-block":
            continue
        for example in catalog.examples():
            if contents.chapter_of(example.name, parts) != chapter:
                continue
            meant = labels.current().of(example.name)
            for say, label in said_in(recording.load(example.name)):
                looked_at += bool(re.search(r"\bblocks?\b", label))
                if re.search(r"(?<!thread )\bblocks?\b", label) and "线程块" in say(meant, label):
                    wrong.append((example.name, label, say(meant, label)))
    assert looked_at > 50
    assert not wrong


def said_in(found):
    """The labels and units of a recording, each with the method that says it."""
    said = set()
    for cell in found.cells:
        for result in cell.results():
            localize.relabeled(
                result,
                lambda label: said.add((label_files.Labels.chinese, label)) or label,
                lambda unit: said.add((label_files.Labels.unit, unit)) or unit,
            )
    return sorted(said, key=str)


def test_a_label_is_compared_with_few_of_many_entries(folder):
    """Thousands of labels, and hundreds of entries with {}: to try each pattern on each label would take minutes."""
    lines = [f'"word{k} {{}} of {{}} things": "{{}} 的 {{}} 样{k}"' for k in range(500)]
    lines += [f'"{{}} item{k}": "{{}} 件{k}"' for k in range(500)]
    (folder / "many.yml").write_text("\n".join(lines), encoding="utf-8")
    found = label_files.load(folder)
    tried = 0

    class Counted:
        def __init__(self, pattern):
            self.pattern = pattern

        def fullmatch(self, text):
            nonlocal tried
            tried += 1
            return self.pattern.fullmatch(text)

    found.templates[:] = [
        dataclasses.replace(template, pattern=Counted(template.pattern))
        for template in found.templates
    ]
    label = "word{} 7 of 12 things, n = 3"
    assert found.chinese(label.format(123)) == "7 的 12 样123，n = 3"
    assert 1 <= tried <= 20
    tried = 0
    assert found.chinese(label.format(123)) == "7 的 12 样123，n = 3"  # known by now
    assert tried == 0
