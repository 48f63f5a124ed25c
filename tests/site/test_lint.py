"""What the lint finds in prose, and what it leaves alone."""

from pathlib import Path

import pytest

from cudatut.site import lint

ROOT = Path(__file__).resolve().parents[2]


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
    ],
)
def test_typed(text):
    assert lint.typed_measurements(text)


@pytest.mark.parametrize(
    "text",
    [
        "1024 threads, 48 KB, 227 KB of shared memory",
        "a 32×32 tile, 32 x 32, 2x2, 4 × `N`, 4 × N, 3 × $n$",
        "sm_90, H100s, the 1990s, CUDA 13.0's headers",
        "{{ start/x#bench.peak :.0f }} GB/s",
        '{{ quote "570 ms" from "CUDATutorial 03, V100" }}',
        "`time.sleep(3 s)` and `570 ms`",
        "$3 \\text{ ms}$",
        "[x](5%20ms.md) <https://x.org/5%20s> https://x.org/5%20s",
        "<!-- 5 ms -->",
        "0x3f, 2 ** 3, 5 samples, 3 steps",
        "## Heading { #x-5s }",
        "Time: 30 minutes.",
    ],
)
def test_left_alone(text):
    assert lint.typed_measurements(text) == []


def test_findings_name_file_line_and_remedy():
    page = (
        "---\ntitle: Takes 5 ms\ndescription: x\n---\n\n# Top { #top }\n\nIt takes 3 ms.\n\n"
        "```text\n3 ms\n# no heading\n```\n\n## Without\n\n## Again { #top }\n\n"
        "## Bad { #Bad_id }\n\nUnderlined\n---\n\n| a |\n|---|\n\n$$\n3 ms\n$$\n"
    )
    found = [str(finding) for finding in lint.lint_text(page, "docs/en/x.md")]
    assert [line.split(": ")[0] for line in found] == [
        f"docs/en/x.md:{n}" for n in (2, 8, 15, 17, 19, 22)
    ]
    assert '{{ quote "3 ms" from' in found[1] and "{{ example#cell" in found[1]
    assert "'Without' has no id" in found[2]
    assert "line 6 already" in found[3]
    assert "a-z, 0-9" in found[4]
    assert "underlined" in found[5]


def test_the_book():
    findings = lint.lint_files(lint.pages(ROOT / "docs"), ROOT)
    assert findings == [], "\n".join(map(str, findings))


def test_headings():
    page = "---\ntitle: T\n---\n\n# A { #a }\n```\n# x\n```\n### B\n## C {: #c .cls }\n"
    assert [(at, name) for at, _, name in lint.headings(page)] == [(5, "a"), (9, ""), (10, "c")]
