"""One word for one concept in Chinese: every rule finds what is planted, and leaves what is right."""

import re

import pytest

from cudatut import paths
from cudatut.site import wording

RULES = wording.rules(paths.docs_dir() / wording.FILE)
# By rule, in the order of the file: sentences that it finds, and right ones that are close.
PLANTED = {
    "屏障（barrier）或内存栅栏（fence）": (["过了栅栏之后"], ["内存栅栏之后", "屏障之后"]),
    "归约": (["用规约求总和"], ["用归约求总和"]),
    "读取": (["每个线程加载一个字"], ["每个线程读取一个字", "加载模型需要几秒"]),
    "步长（stride）或波动范围（spread）": (
        ["跨度为 33", "时间的跨度"],
        ["步长为 33", "网格跨步循环"],
    ),
    "步长": (["行距是 n"], ["步长是 n"]),
    "波动范围": (["离散程度不大"], ["波动范围不大"]),
    "检查程序": (["检验会拒绝", "检验时"], ["检查程序会拒绝", "检验说法"]),
    "束内线程（lane）": (["线程束内编号"], ["束内线程（lane）"]),
    "CUDA graph": (["少数几个 graph", "CUDA Graphs", "CUDA 图"], ["几个 CUDA graph", "图中"]),
    "阶段": (["由若干级组成的环形缓冲"], ["由若干阶段组成的环形缓冲"]),
    "提交": (["启动、收组、等待"], ["启动、提交、等待"]),
    "百分号前不留空格": (["快 5 %", "占 {{}} %"], ["快 5%", "占 {{}}%", "x % 4 的余数"]),
    "全角括号（……）": (["写入(见下文)"], ["写入（见下文）", "f(x)"]),
    "《CUDA编程入门》": (["《CUDA 编程入门》第三章"], ["《CUDA编程入门》第三章"]),
    "总和、累加值或求和结果，“和”不单独作名词": (
        ["一千个和里错了", "对和没有影响", "这个和，", "基准、和与结果", "部分和超过的和。"],
        ["总和，", "读和写", "A 和 B 的乘积", "部分和，", "每个和它相邻的线程"],
    ),
    "张量核心": (["用张量核计算"], ["用张量核心计算"]),
}


def test_every_rule_has_its_sentences():
    assert [rule.write for rule in RULES] == list(PLANTED)


@pytest.mark.parametrize("rule", RULES, ids=[rule.write for rule in RULES])
def test_what_is_planted_is_found_and_what_is_right_is_not(rule):
    wrong, right = PLANTED[rule.write]
    for text in wrong:
        assert list(rule.found(text)), text
    for text in right:
        assert not [found for one in RULES for found in one.found(text)], text


def test_all_kinds_of_files_are_read(tmp_path):
    docs, examples = tmp_path / "docs", tmp_path / "examples"
    rules = "- never: 栅栏\n  write: 屏障\n"
    files = {
        docs / "wording.yml": rules,
        docs / "contents.yml": "parts: [{title: {zh: 栅栏甲}}]\n",
        docs / "labels/a.yml": "x: 栅栏乙\n",
        docs / "zh/a/b.md": "# 栅栏 { #a }\n\n`栅栏` 过了栅栏\n\n```cuda\nint a;  // 栅栏\n```\n\n```example\na/b#栅栏\n```\n",
        examples / "a/b/exercises.py": "# ---\n# jupyter:\n#   cudatut:\n#     task: {zh: 过栅栏}\n# ---\n",
        examples / "a/b/zh.yml": "- en: the barrier\n  zh: 栅栏丙\n",
    }  # fmt: skip
    for path, text in files.items():
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text, encoding="utf-8")
    wording.rules.cache_clear()
    found = wording.findings(docs, examples)
    assert [(one.file, one.line) for one in found] == [
        ("docs/zh/a/b.md", 1),
        ("docs/zh/a/b.md", 3),
        ("docs/zh/a/b.md", 6),
        ("docs/labels/a.yml", 1),
        ("docs/contents.yml", 1),
        ("examples/a/b/exercises.py", 4),
        ("examples/a/b/zh.yml", 1),
    ]
    assert found[0].message == "'栅栏': write 屏障"


def test_what_is_executed_or_brought_in_is_not_read_and_its_line_is_told(tmp_path):
    docs = tmp_path / "docs"
    (docs / "zh").mkdir(parents=True)
    (docs / "contents.yml").touch()
    (docs / "wording.yml").write_text("- never: ' ?栅栏'\n  write: 屏障\n  but: [内存栅栏]\n")
    page = """```exercise
a/b 栅栏
```

```python exec="on"
print("栅栏")
```

```text
栅栏
```

内存栅栏 栅栏 [栅栏](栅栏.md) {{ 栅栏 }} $栅栏$ <a title="栅栏">
"""
    (docs / "zh/a.md").write_text(page, encoding="utf-8")
    long = "过了这里的" + "很" * 15 + "长的栅栏之后"
    (docs / "glossary.yml").write_text(
        f"- en: a\n  zh: 栅栏\n  means:\n    en: x\n    zh: {long}\n"
        "- en: b\n  means: {en: y, zh: 第二栅栏}\n",
        encoding="utf-8",
    )
    wording.rules.cache_clear()
    found = wording.findings(docs, tmp_path / "examples")
    assert [(one.file, one.line, one.message) for one in found] == [
        *[("docs/zh/a.md", line, "'栅栏': write 屏障") for line in (10, 13, 13)],
        *[("docs/glossary.yml", line, "'栅栏': write 屏障") for line in (2, 5, 7)],
    ]


def test_a_long_meaning_is_found_by_how_it_begins(tmp_path):
    """Lines of the file may be broken behind the twentieth character."""
    docs = tmp_path / "docs"
    docs.mkdir()
    (docs / "contents.yml").touch()
    (docs / "wording.yml").write_text("- never: 栅栏\n  write: 屏障\n")
    begun = "一二三四五六七八九十甲乙丙丁戊己庚辛壬癸"
    text = f"- en: a\n  means:\n    en: {begun[:19]}\n    zh: {begun}\n      栅栏\n"
    (docs / "glossary.yml").write_text(text, encoding="utf-8")
    wording.rules.cache_clear()
    (found,) = wording.findings(docs, tmp_path / "examples")
    assert found.line == 4


def test_blanks_alone_are_told_as_they_are():
    rule = wording.Rule(re.compile(" +(?=%)"), "x")
    assert list(rule.found("5 %")) == [" "]
    assert list(wording.Rule(re.compile(" ?栅栏 ?"), "x").found("a 栅栏 b")) == ["栅栏"]


def test_a_rule_without_exceptions_or_a_file_of_rules_may_be_missing(tmp_path):
    wording.rules.cache_clear()
    assert wording.rules(tmp_path / "none.yml") == ()
    (tmp_path / "wording.yml").write_text("- never: a\n  write: b\n  but: [c]\n")
    (tmp_path / "bad.yml").write_text("- never: a\n  write: b\n- never: a\n")
    assert [rule.but for rule in wording.rules(tmp_path / "wording.yml")] == [("c",)]
    with pytest.raises(wording.BadWordingError, match="docs/wording.yml: rule 2 needs"):
        wording.rules(tmp_path / "bad.yml")


@pytest.mark.parametrize("text", ["- write: x\n", "- never: '('\n  write: x\n", "- a\n", "a: b\n"])
def test_a_rule_that_is_none_is_told(tmp_path, text):
    (tmp_path / "wording.yml").write_text(text)
    wording.rules.cache_clear()
    with pytest.raises(wording.BadWordingError, match="rule 1 needs"):
        wording.rules(tmp_path / "wording.yml")


def test_the_book_keeps_to_its_words():
    wording.rules.cache_clear()
    found = wording.findings(paths.docs_dir(), paths.examples_dir())
    assert not found, "\n".join(map(str, found))
