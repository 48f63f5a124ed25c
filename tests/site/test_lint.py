"""What the lint finds in prose, and what it leaves alone."""

import re

import pytest

from cudatut.site import lint, other_words


def typed(text):
    """The typed measurements that the lint finds in a page with this text."""
    page = f"---\n{text}\n---\n" if text.startswith("title:") else text
    messages = [found.message for found in lint.lint_text(page, "x.md")]
    return [message.split('"')[1] for message in messages if "is a typed measurement" in message]


@pytest.mark.parametrize(
    "text",
    [
        "It takes 570 ms here.",
        "about 12.5us per call",
        "用了 3 微秒",
        "用了3 s左右",
        "3,000 GB/s",
        "3.35 TB/s",
        "51.7 TFLOP/s",
        "312 TFLOPS",
        "38.7× faster",
        "38.7x faster",
        "加速 3725 倍",
        "快了38倍",
        "92 % of peak",
        "92% of peak",
        "占 50％",
        "百分之 30",
        "10 times faster",
        "in 2 seconds",
        "1.5e3 µs",
        "| copy | 5 ms |",
        "> 5 ms",
        "- 5 ms",
        '!!! note "5 ms"',
        "**5 ms**",
        "title: 5 ms",
        # in words, around marks, in braces
        "ninety percent of the peak",
        "速度只有 cuBLAS 的一半",
        "It takes\n12 µs.",
        "It takes 12.3\nµs.",
        "`570 ms`",
        "$3 \\text{ ms}$",
        "$$\nt = 3\\,\\text{ms}\n$$",
        "It reaches {{ 51.7 }} TFLOP/s.",
        "It reaches {{ 40 + 11.7 }} TFLOP/s.",
        '{{ start/x#bench["a"].value * 0.93 :.0f }} GB/s',
        "```text\n3 ms\n```",
        "``` { .text }\n3 ms\n```",
        "```python\nrun()  # 3 ms\n```",
        "| rate (GB/s) | n |\n|---|---|\n| 2950 | 1 |",
        "<table><tr><th>GB/s</th></tr><tr><td>2950</td></tr></table>",
    ],
)
def test_typed(text):
    assert typed(text)


@pytest.mark.parametrize(
    "text",
    [
        "1024 threads, 48 KB, 227 KB of shared memory",
        "a 32×32 tile, 32 x 32, 2x2, 4 × `N`, 4 × N, 3 × $n$",
        "sm_90, H100s, the 1990s, CUDA 13.0's headers",
        "{{ start/x#bench.peak :.0f }} GB/s",
        '{{ quote "570 ms" from "CUDATutorial 03, V100" }}',
        "`time.sleep(3 s)`, `x % 4`, `3 * W`",
        "$4 \\times \\text{SMs} \\times \\text{clock}$, $t_{12}$, $10^{12}$",
        '{{ given "up to two per cent" as "prediction" }}',
        "{{ 2**24 / 1e6 :.1f }} MB",
        "It moves 40 MB in 29.59 steps, {{ 40 / 29.59 :.2f }} GB/s.",
        '{{ 100 * start/x#bench["a"].of_peak :.0f }} % of the limit',
        '{{ start/x#bench["a"].median_us / 1000 :.1f }} ms, {{ start/x#bench["a"].median_us :.1f }} µs',
        '{{ start/x#bench["a"].median_us / 32 :.1f }} ms each',
        "half of the threads, twice the bytes, three times as many registers, a third of each block",
        "At the same time half of the warps wait; one at a time, twice.",
        "One instruction per cycle; each thread adds one element a second time.",
        "The second half, a few hundred cycles, the first three, part one of two.",
        "一半的线程，两倍的寄存器，第三个周期，每个周期一条指令，前一半，几百个周期，统一成 fp32",
        "```cuda\nx = y % 4; // every 4 threads\n```",
        "```bash\nsleep 3 s\n```",
        "| n | bytes |\n|---|---|\n| 32 | 4096 |",
        "[x](5%20ms.md) <https://x.org/5%20s> https://x.org/5%20s",
        "<!-- 5 ms -->",
        "0x3f, 2 ** 3, 5 samples, 3 steps",
        "## Heading { #x-5s }",
        # lines that no sentence goes on across
        "!!! tip 12\nms are short.",
        "```text\n12\nms\n```",
    ],
)
def test_left_alone(text):
    assert typed(text) == []


def test_findings_name_file_line_and_remedy():
    page = (
        "---\ntitle: Takes 5 ms\ndescription: x\n---\n\n# Top { #top }\n\nIt takes 3 ms.\n\n"
        "```text\n3 ms\n# no heading\n```\n\n## Without\n\n## Again { #top }\n\n"
        "## Bad { #Bad_id }\n\nUnderlined\n---\n\n| a |\n|---|\n\n$$\n3 ms\n$$\n"
    )
    found = [str(finding) for finding in lint.lint_text(page, "docs/en/x.md")]
    assert [line.split(": ")[0] for line in found] == [
        f"docs/en/x.md:{n}" for n in (2, 8, 11, 15, 17, 19, 22)
    ]
    assert '{{ quote "3 ms" from' in found[1] and "{{ example#cell" in found[1]
    assert '{{ given "3 ms" as' in found[1]
    assert "'Without' has no id" in found[3]
    assert "line 6 already" in found[4]
    assert "a-z, 0-9" in found[5]
    assert "underlined" in found[6]


@pytest.mark.parametrize(
    ("behind", "unit"),
    [
        (".median_us :.1f }} ms", "ms"),
        (".median_us / 1000 :.1f }} µs", "µs"),
        (".p20_us * 0.01 :.1f }} µs", "µs"),
        (".median_us :.1f }} **秒**", "秒"),
        (".of_peak :.1f }} %", "%"),
    ],
)
def test_a_unit_that_cannot_be_right(behind, unit):
    found = lint.lint_text('{{ start/x#bench["a"]' + behind, "x.md")
    assert found[-1].message.startswith(f"'{unit}' does not fit")


def test_of_a_header_titles_are_read_alone():
    page = "---\ntitle: 5 ms\nterms: {6 ms: null}\ndescription: 7 ms\n---\n"
    assert [found.line for found in lint.lint_text(page, "x.md")] == [2, 4]


def test_prose_is_what_is_left_of_a_line():
    line = "A `b` of $c$, [d](e.md#f) {{ g }} <b>h</b> https://i.org/ end { #j }<!-- k -->"
    words = re.findall(r"\w+", lint.prose(line))
    assert words == ["A", "of", "d", "h", "end"]


def test_a_rule_underlines_nothing():
    page = "One line,\nand another one.\n\n---\n\n| a |\n---\n\n# T { #t }\n---\n"
    assert lint.lint_text(page, "x.md") == []
    (found,) = lint.lint_text("One line,\nand another one.\n---\n", "x.md")
    assert found.line == 3 and found.message.startswith("underlined heading")


def test_headings():
    page = "---\ntitle: T\n---\n\n# A { #a }\n```\n# x\n```\n### B\n## C {: #c .cls }\n"
    assert [(at, name) for at, _, name in lint.headings(page)] == [(5, "a"), (9, ""), (10, "c")]


def test_chinese_words_outside_the_pages_have_their_lines(tmp_path):
    def found(name, text):
        (tmp_path / name).write_text(text, "utf-8")
        return list(other_words.chinese(tmp_path / name))

    words = "a: 甲\nid: 乙\nb:\n- {code: 丙, c: 丁}\n- [戊, x]\n1: 己\n? [k]\n: 庚\n"
    assert found("a.yml", words) == [(1, "甲"), (4, "丁"), (5, "戊"), (6, "己")]
    assert found("a.yml", "a: [甲\n") == [] == found("a.yml", "")
    head = "# ---\n# a: 甲\n#b: 乙\n# ---\n# c: 丙\n"
    assert found("a.py", head) == [(2, "甲"), (3, "乙")]
    assert found("a.py", "x = 1\n" + head) == []


def test_what_a_mapping_lists_as_given_holds_for_all_below_it(tmp_path):
    text = "a: 5 ms\nb:\n  given: [5 ms, 7 ms]\n  c: {d: 5 ms and 6 ms, given: [6 ms]}\n  e: 6 ms\n"
    (tmp_path / "a.yml").write_text(text, "utf-8")
    found = [(line, said) for _, line, said in other_words.of_docs(tmp_path)]
    assert found == [(1, "5 ms"), (5, "6 ms")]


def test_words_outside_the_pages(tmp_path):
    """Each with its file and line; what a header lists, and what a label translates, is left alone."""
    files = {
        "docs/contents.yml": "parts:\n- id: start\n  about: {en: It takes 5 ms., zh: 入门}\n",
        "docs/glossary.yml": "- id: x\n  code: [5 ms]\n  means: {en: A thing., zh: 用时 5 毫秒。}\n",
        "docs/labels/x.yml": "sum: 合计\n400 requests per second: 每秒 400 个请求\ntotal: 合计 12 微秒\n",
        "examples/start/x_exercises.py": (
            "# ---\n# jupyter:\n#   cudatut:\n#     exercises:\n#       1:\n#         given: [1 %]\n"
            "#         task: {en: To 1 %., zh: 误差不超过 1 %。}\n#       2:\n"
            "#         task: {en: To 1 %., zh: 好}\n# ---\n"
        ),
    }
    for name, text in files.items():
        path = tmp_path / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text, "utf-8")
    found = [str(finding).split(" is a typed")[0] for finding in lint.lint_words(tmp_path)]
    assert found == [
        'docs/contents.yml:3: "5 ms"',
        'docs/glossary.yml:3: "5 毫秒"',
        'docs/labels/x.yml:3: "12 微秒"',
        'examples/start/x_exercises.py:9: "1 %"',
    ]
