"""What a chapter's page lacks."""

from types import SimpleNamespace

import pytest

from cudatut.site import contents, whole

CHAPTER = contents.Chapter("basics", "warps", {"en": "Warps", "zh": "线程束"}, written=True)


@pytest.mark.parametrize(
    ("fence", "told"),
    [('python exec="on"', 0), ('python exec="on" idprefix=""', 0), ("python", 1)],
)
def test_a_figure_is_a_fence_that_is_executed(fence, told):
    page = f"# Warps {{ #top }}\n\n```{fence}\nprint(1)\n```\n"
    found = whole.findings(page, "docs/en/basics/warps.md", "en", CHAPTER)
    assert sum("there is no figure" in one.message for one in found) == told


def test_a_lone_task_is_quoted_without_its_hint_and_its_answer():
    page = """# Warps { #top }

## Try it { #try }

1. Halve the block.

??? tip "A hint"

    Look at the launch.

??? success "Answer"

    It takes as long.
"""
    chapter = contents.Chapter("start", "warps", CHAPTER.title, written=True)
    found = whole.findings(page, "docs/en/start/warps.md", "en", chapter)
    (said,) = [one.message for one in found if "two tasks to try" in one.message]
    assert said.endswith("and here: 1. Halve the block.")


PAGE = """---
title: Warps
---
# Warps { #top }

```python exec="on"
print(1)
```

```example
basics/warps#bench
```

### One { #exercise-1 }

```exercise
basics/warps 1
```

### Two { #exercise-2 }

```exercise
basics/warps 2
```
"""


def _said(page, chapter=CHAPTER, lang="en"):
    return [(one.line, one.message) for one in whole.findings(page, "p.md", lang, chapter)]


def test_a_whole_page_lacks_nothing():
    assert _said(PAGE) == []
    assert [line for line, _ in _said(PAGE, lang="zh")] == [2, 4]


@pytest.mark.parametrize(
    ("old", "new", "line", "said"),
    [
        ("title: Warps", "title: A: B: C", 2, "the front matter 'A: B: C': write the same"),
        ("# Warps {", "Warps {", 0, "begin it with '# Warps { #top }'"),
        ("basics/warps#", "basics/warps_solutions#", 0, "show one in a fence ```example"),
        ("#exercise-2", "#exercise-3", 0, "write '### ... { #exercise-2 }' above it"),
        ("warps 2", "warps 3", 0, "its exercises are basics/warps 1, basics/warps 3: number them"),
        ("```exercise\nbasics/warps 2\n```", "", 0, "add a fence ```exercise with the line 'basics/warps 2'"),
    ],
)  # fmt: skip
def test_the_cure_is_told(old, new, line, said):
    found = [one for one in _said(PAGE.replace(old, new)) if said in one[1]]
    assert [one[0] for one in found] == [line]


def test_of_titles_in_front_the_first_counts():
    page = PAGE.replace("title: Warps", "title: Warp\ntitle: Warp too")
    assert [line for line, _ in _said(page)] == [2]


def test_another_example_of_the_chapter_is_its_own_and_its_fence_may_have_options():
    assert _said(PAGE.replace("```example", '```example source="none"')) == []
    assert _said(PAGE.replace("basics/warps#", "basics/warps_faults#")) == []


def test_exercises_that_the_page_does_not_show_are_named(monkeypatch):
    listed = [SimpleNamespace(name=f"basics/warps {number}") for number in (1, 2, 3, 4)]
    monkeypatch.setattr(whole.exercises, "of_chapter", lambda chapter: listed)
    assert _said(PAGE) == [
        (0, "it does not show basics/warps 3, basics/warps 4: add a fence ```exercise for each")
    ]


START = contents.Chapter("start", "warps", CHAPTER.title, written=True)
TASK, ANSWER = "1. Halve it.\n\n", '??? success "Answer"\n\n    So.\n\n'


@pytest.mark.parametrize(
    ("section", "line", "said"),
    [
        ("", [0], "there is no section with the id 'try'"),
        (TASK + TASK.replace("1", "2") + ANSWER, [], ""),
        ("### Halve\n\n**Double**\n\n" + ANSWER, [], ""),
        (TASK + ANSWER + ANSWER, [], ""),  # a task that is not numbered has an answer, too
        (TASK + ANSWER, [26], "here: 1. Halve it."),
        (TASK + TASK, [26], 'no task to try has its answer: fold one below it, ??? success "..."'),
        ("1. " + "word " * 40, [26, 26], "here: 1. " + "word " * 15 + "wo"),
        (f"1. One.\n\n## Next {{ #next }}\n\n{TASK}{ANSWER}{ANSWER}", [26, 26], "here: 1. One."),
    ],
)
def test_a_page_of_start_has_two_tasks_to_try(section, line, said):
    page = PAGE.replace("basics", "start") + (
        f"\n## Try it {{ #try }}\n\n{section}" if section else ""
    )
    found = _said(page, START)
    assert [one[0] for one in found] == line
    assert said == "" or any(one[1].endswith(said) or one[1].startswith(said) for one in found)
