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
