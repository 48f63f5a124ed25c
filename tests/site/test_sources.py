"""What a page cites can be looked up by its reader: a version that its authors released, and somebody's name.

Code of other projects was cited at commits that an index had returned, of which one was in no released version.
"""

import re
from pathlib import Path

import pytest

from cudatut.site import references

DOCS = Path(__file__).resolve().parents[2] / "docs"
PAGES = sorted(path.relative_to(DOCS).as_posix() for path in DOCS.glob("*/**/*.md"))
COMMIT = re.compile(r"(?:commit|提交) `?[0-9a-f]{7,40}\b")
# Projects that release nothing: their state has no other name than a commit, which is linked.
UNRELEASED = re.compile(
    r"\[[^]]*(?:commit|提交) `?([0-9a-f]{7,40})`?[^]]*\]\(https://github\.com/PaddleJitLab/CUDATutorial/tree/\1[0-9a-f]*\)"
)
NOBODY = re.compile(r"quote \"[^\"]*\" from \"(?:public|公开|H100 上的公开|various|several)")


def prose(markdown):
    return [line for _, line, in_code in references.lines(markdown) if not in_code]


def unsound(markdown):
    """Lines that cite a bare commit, or a number of nobody in particular."""
    lines = ((line, UNRELEASED.sub("", line)) for line in prose(markdown))
    return [line for line, left in lines if COMMIT.search(left) or NOBODY.search(left)]


@pytest.mark.parametrize("page", PAGES)
def test_a_source_is_a_released_version_and_has_a_name(page):
    found = unsound((DOCS / page).read_text(encoding="utf-8"))
    assert not found, f"docs/{page}: cite a tag or a release, and name whose number it is: {found}"


@pytest.mark.parametrize(
    "line",
    [
        "- vLLM, `scheduler.py` at commit 00024d3 (budget).",
        "- vLLM，提交 0054e1f 的 `scheduler.py`。",
        "- [vLLM at commit 00024d3](https://github.com/vllm-project/vllm/tree/00024d3).",
        "- [CUDATutorial at commit 919a26d](https://github.com/PaddleJitLab/CUDATutorial/tree/main).",
        'reached {{ quote "63 %" from "public kernels on the H100" }} of it',
        '达到过 {{ quote "63 %" from "H100 上的公开 kernel" }}',
    ],
)
def test_unsound_sources_are_seen(line):
    assert unsound(line) == [line]


def test_sound_sources_are_not():
    page = """- vLLM, tag [v0.33.0](https://github.com/vllm-project/vllm/tree/v0.33.0): a commit of it.
[CUDATutorial at commit 919a26d](https://github.com/PaddleJitLab/CUDATutorial/tree/919a26d985641c8c), which has no tags.
{{ quote "989 TFLOP/s" from "NVIDIA, H100 SXM data sheet" }}
```text
at commit 00024d3
```
"""
    assert not unsound(page)
