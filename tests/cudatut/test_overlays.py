"""The Chinese of what stands in English in the examples: found from its folder upwards, with what is wrong in a file."""

import pytest

from cudatut import overlays

SOURCE = """# ---
# jupyter:
#   cudatut:
#     title: {en: "Add", zh: "加法"}
#     requires: sm_75
# ---

# %% [markdown] about
# Adds two
# numbers.

# %% add-them-2
x = 1 + 1  # the sum
# Two comments
# in one.
"""


@pytest.fixture
def folder(book):
    overlays.load.cache_clear()
    book.file("a/add/chapter.py", SOURCE)
    yield book
    overlays.load.cache_clear()


def test_found_in_the_folder_then_above_it(folder):
    folder.file("zh.yml", "- en: the sum\n  zh: 总和\n- en: Two comments in one.\n  zh: 两句\n")
    folder.file("a/add/zh.yml", "- {en: the   sum, zh: 求和结果}\n- {en: add them, zh: 相加}\n")
    code = "x = 1 + 1  # the sum\n# Two comments\n# in one.\n"
    assert overlays.code(code, "a/add/chapter.py") == "x = 1 + 1  # 求和结果\n# 两句\n"
    assert overlays.code("int a;  // the sum", "a/k.cu") == "int a;  // 总和"
    assert overlays.title("add-them-2", "a/add/chapter.py") == "相加 2"


def test_what_lacks_its_chinese_stays_and_is_told(folder):
    folder.file("a/add/zh.yml", "- en: x = other words\n  zh: =\n")
    told = []
    code = "x = 1  # the sum\ny = x  # n = 3\nz = 1  # x = other words\n"
    assert overlays.code(code, "a/add/chapter.py", lambda *one: told.append(one)) == code
    assert told == [("examples/a/add/zh.yml", "the sum")]
    assert overlays.words("Adds.", "a/add/chapter.py", lambda *one: told.append(one)) == "Adds."
    assert overlays.title("check", "a/add/chapter.py", lambda *one: told.append(one)) == "check"
    assert told[1:] == [("examples/a/add/zh.yml", "Adds."), ("examples/a/add/zh.yml", "check")]


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("a: b", "a/zh.yml: the file is a list of pairs"),
        ("- a", "a/zh.yml:1: a pair begins with `- en:`"),
        ("- en: a\n  zh: 甲\n- en: b\n", "a/zh.yml:3: a pair has text for `en:` and `zh:`"),
        ("- en: a\n  zh: ''\n", "a/zh.yml:1: a pair has text"),
        ("- en: [a]\n  zh: 甲\n", "a/zh.yml:1: a pair has text"),
        ("- {en: a, zh: 甲}\n- {en: ' a ', zh: 乙}\n", "a/zh.yml:2: 'a' stands twice"),
        ("- {en: a", "a/zh.yml cannot be read"),
    ],
)
def test_what_is_wrong_in_a_file_is_named_with_its_line(folder, text, said):
    folder.file("a/zh.yml", text)
    with pytest.raises(overlays.BadOverlayError, match=said.replace("[", r"\[")):
        overlays.code("x  # a", "a/add/chapter.py")


def test_a_chinese_text_keeps_its_lines_and_an_equal_sign_the_english(folder):
    folder.file(
        "a/zh.yml", "- en: two\n  zh: |\n    第一行\n    第二行\n\n- {en: 'x   = 1', zh: =}\n"
    )
    loaded = overlays.load(folder.root / "a/zh.yml")
    assert loaded == {
        "two": overlays.Chinese("第一行\n第二行", 1),
        "x = 1": overlays.Chinese("x = 1", 6),
    }
    assert overlays.words("x =\n1", "a/add/chapter.py") == "x = 1"
    assert overlays.load(folder.root / "b/zh.yml") == {}
    folder.file("c/zh.yml", "")
    assert overlays.load(folder.root / "c/zh.yml") == {}


def test_a_long_text_that_stands_twice_is_cut(folder):
    folder.file("a/zh.yml", f"- {{en: {'x' * 70}, zh: 甲}}\n" * 2)
    with pytest.raises(overlays.BadOverlayError) as caught:
        overlays.load(folder.root / "a/zh.yml")
    assert str(caught.value) == f"examples/a/zh.yml:2: '{'x' * 60}' stands twice; keep one"


def test_nothing_is_looked_up_above_the_examples(folder):
    folder.file("../zh.yml", "- {en: the sum, zh: 外面}\n")
    assert overlays.chinese("the sum", "a/add/chapter.py") is None
    assert overlays.chinese("the sum", "kernel.cu") is None
    folder.file("zh.yml", "- {en: the sum, zh: 里面}\n")
    overlays.load.cache_clear()
    assert overlays.chinese("the sum", "kernel.cu") == "里面"


@pytest.mark.parametrize(
    ("title", "words", "number"),
    [
        ("check-strides-2", "check strides", "2"),
        ("check", "check", ""),
        ("a-1-b", "a 1 b", ""),
        ("fp8-16", "fp8", "16"),
        ("fp8", "fp8", ""),
    ],
)
def test_the_words_of_a_title(folder, title, words, number):
    assert overlays.said_by_title(title) == (words, number)
    folder.file("a/zh.yml", f"- {{en: {words}, zh: 标题}}\n")
    assert overlays.title(title, "a/add/chapter.py") == f"标题 {number}".rstrip()
    assert overlays.title("other-3", "a/add/chapter.py") == "other-3"


def test_narration_in_chinese_and_what_needs_none(folder):
    folder.file("a/zh.yml", "- {en: Adds., zh: 相加。}\n")
    told = []
    assert overlays.words("Adds.", "a/add/chapter.py", lambda *one: told.append(one)) == "相加。"
    assert overlays.words("n = 3", "a/add/chapter.py", lambda *one: told.append(one)) == "n = 3"
    assert overlays.title("fp8", "a/add/chapter.py") == "fp8" and not told
    assert overlays.overlay_of("a/add/chapter.py") == "examples/a/add/zh.yml"
