"""What a chapter's page lacks."""

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
