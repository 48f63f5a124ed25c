"""The birth certificate of recordings: each of its lines, both languages, and what older recordings lack."""

import re
from pathlib import Path
from types import SimpleNamespace

import pytest

from cudatut import instrument
from cudatut.recording import Cell, Recording
from cudatut.restamp import grounds
from cudatut.results import MIME
from cudatut.site import certificate, locale
from cudatut.site.certificate import certificate_html

METADATA = {
    "schema": 1, "name": "start/first_kernel",
    "gpu": {"name": "NVIDIA H100", "compute_capability": "9.0", "memory_bytes": 85029158912,
            "sm_count": 132, "driver": "580.95.05"},
    "toolchain": {"cuda": "13.0", "nvcc": "13.0.88", "pycuda": "2026.1", "python": "3.12.3",
                  "numpy": "2.3.4"},
    "recorded_at": "2026-11-21T23:30:00-02:00", "commit": "0123456789abcdef0123",
    "duration_s": 34.21,
    "sanitizers": [{"kind": "sanitizer", "tool": t, "errors": 0}
                   for t in ("memcheck", "racecheck", "initcheck", "synccheck")],
}  # fmt: skip
A, B, C = "a" * 40, "b" * 40, "c" * 40
LONG = (
    f"void cutlass::device_kernel<{'at::native::(anonymous namespace)::Tile<128, 256>, ' * 8}float>"
)


def recording(*cells, **more):
    return Recording(METADATA["name"], Path("x.ipynb"), {**METADATA, **more}, list(cells))


def contest(name, **kernels):
    """A cell with a benchmark of `name`: a row for each rival, with the kernels that it launched."""
    row = {"median_us": 2.0, "p20_us": 1.0, "p80_us": 3.0, "value": 4.0, "of_peak": 0.5}
    row |= {"vendor": True, "ratio_to_vendor": 1.0}
    rows = [{"name": "mine", **row, "vendor": False}]
    rows += [{"name": rival, **row, "kernels": names} for rival, names in kernels.items()]
    result = {"kind": "benchmark", "name": name, "unit": "GB/s", "peak": 8.0, "rows": rows}
    shown = {"output_type": "display_data", "data": {MIME: result}}
    return Cell(re.sub(r"\W", "-", name or "none"), "code", "", [shown], True)


def plain(html):
    return re.sub(r"\s+", " ", re.sub(r"<[^>]+>", " ", html)).strip()


def lines(html):
    """Each line of a certificate: its name, and what stands there."""
    return {
        plain(name): plain(value)
        for name, value in re.findall(r"<dt>(.*?)</dt><dd>(.*?)</dd>", html, re.DOTALL)
    }


def test_it_says_where_the_results_come_from():
    html = certificate_html([recording()], "en")
    assert "Recorded on NVIDIA H100, 2026-11-22" in plain(html)  # the time is given in UTC
    assert lines(html) == {
        "GPU": "NVIDIA H100, compute capability 9.0, 132 SMs, 79.2 GiB",
        "Driver": "580.95.05",
        "CUDA": "13.0",
        "nvcc": "13.0.88",
        "PyCUDA": "2026.1",
        "Python": "3.12.3",
        "NumPy": "2.3.4",
        "Recorded": "2026-11-22 01:30 UTC",
        "Commit": "0123456789ab",
        "Duration": "34.2 s",
        "Sanitizers": "memcheck, racecheck, initcheck, synccheck: no errors",
    }
    assert html.count("<details") == 1
    assert "start/first_kernel" not in html  # one recording needs no name: it is the page's


def test_it_leads_to_the_page_about_the_book():
    assert re.search(
        r'<a href="[./]*book/">How the numbers are made</a>', certificate_html([recording()], "en")
    )
    assert "数字是怎么来的" in certificate_html([recording()], "zh")


def test_several_share_a_summary_and_are_named():
    other = recording(name="start/errors", recorded_at="2026-11-25T00:00:00+00:00")
    html = certificate_html([recording(), other], "zh")
    assert html.count("<details") == 1
    assert html.count("<dl>") == 2
    assert "2026-11-25 录制于 NVIDIA H100" in html
    assert "start/errors" in html


def test_without_sanitizers_there_is_no_line_for_them():
    """The results of another GPU."""
    shown = lines(certificate_html([recording(slim=True, sanitizers=[])], "en"))
    assert "Sanitizers" not in shown and shown["Commit"] == "0123456789ab"


def test_no_recording_no_certificate():
    assert certificate_html([], "en") == ""


# --- the code ----------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("lang", "line", "words"),
    [("en", "Commit", "with uncommitted changes"), ("zh", "提交", "未提交的改动")],
)
def test_uncommitted_changes_are_told_in_words(lang, line, words):
    html = certificate_html([recording(commit=f"{A}-dirty")], lang)
    assert words in lines(html)[line] and "a" * 12 in html and 'class="ct-note"' in html
    assert words not in certificate_html([recording(commit=A)], lang)


def test_a_copy_without_git_says_so():
    assert lines(certificate_html([recording(commit="unknown")], "en"))["Commit"] == "unknown"
    assert "Commit" not in lines(certificate_html([recording(commit="")], "en"))


RESTAMPED = [
    {
        "from": A,
        "to": B,
        "files": {
            "llm/kernels/attention/flash.cuh": {"ground": "code", "was": "1", "now": "2"},
            "llm/mma.cuh": {"ground": "code", "was": "3"},
            "llm/kernels/rows.py": {"ground": "meaning", "was": "4", "now": "5"},
        },
        "added": ["ptx/mma.cuh"],
    },
    {"from": B, "to": C, "files": {"llm/old.cuh": {"ground": "moved", "was": "1", "now": "1", "as": "llm/new.cuh"}}},
]  # fmt: skip


def test_a_restamp_says_where_it_was_measured_and_where_the_code_is_equal():
    html = certificate_html([recording(commit=A, restamped=RESTAMPED)], "en")
    said = lines(html)["Commit"]
    assert said.startswith("measured at aaaaaaaaaaaa , code equal at cccccccccccc")
    first, second = re.findall(r"<details class=.ct-numbers.>(.*?)</details>", html)
    assert plain(first) == (
        "From aaaaaaaaaaaa to bbbbbbbbbbbb : changes without effect in 3 of its files "
        "other text, the same machine code: llm/kernels/attention/flash.cuh , llm/mma.cuh (no longer there) "
        "the same meaning, other comments or formatting: llm/kernels/rows.py new since then: ptx/mma.cuh"
    )
    assert plain(second).endswith("moved or renamed, otherwise the same: llm/old.cuh → llm/new.cuh")
    chinese = plain(certificate_html([recording(commit=A, restamped=RESTAMPED)], "zh"))
    for words in (
        "测量于 aaaaaaaaaaaa",
        "到 cccccccccccc 为止代码等价",
        "机器码相同",
        "已不存在",
        "此后新增",
    ):
        assert words in chinese


def test_files_that_went_into_a_folder_together_name_it_once():
    moved = {
        "a/one.cu": "a/b/one.cu",
        "a/two.cu": "a/b/two.cu",
        "a/x.py": "a/b/chapter.py",
        "a/y.cu": "c/y.cu",
        "a/deep/three.cu": "d/three.cu",
        "a/deep/four.cu": "d/four.cu",
    }
    files = {
        old: {"ground": "moved", "was": "1", "now": "1", "as": new} for old, new in moved.items()
    }
    html = certificate_html([recording(restamped=[{"from": A, "to": B, "files": files}])], "en")
    told = [plain(one) for one in re.findall(r"<li>(.*?)</li>", html)]
    assert [one.partition(": ")[2] for one in told] == [
        "a/one.cu , a/two.cu → a/b/",
        "a/deep/three.cu , a/deep/four.cu → d/",
        "a/x.py → a/b/chapter.py , a/y.cu → c/y.cu",
    ]


def test_a_restamp_of_uncommitted_files_still_says_so():
    said = lines(certificate_html([recording(commit=f"{A}-dirty", restamped=RESTAMPED)], "en"))[
        "Commit"
    ]
    assert "uncommitted changes" in said and "code equal at cccccccccccc" in said


def test_every_ground_has_words():
    known = {grounds.MEANING, grounds.MOVED, grounds.CODE}
    assert set(certificate._GROUNDS) == known
    for lang in ("en", "zh"):
        assert set(locale.words(lang)["certificate"]["grounds"]) == known
        assert set(locale.words(lang)["certificate"]["aspects"]) == set(instrument.ASPECTS)


# --- the measuring -----------------------------------------------------------------------------------


def test_the_numbers_of_the_instrument():
    made = recording(
        instrument={"numbers": {"checking": 1, "timing": 2}, "files": {"gpu/bench.py": "0"}}
    )
    assert lines(certificate_html([made], "en"))["Instrument"] == "checking 1, timing 2"
    assert lines(certificate_html([made], "zh"))["测量代码"] == "检查 1、计时 2"
    assert "gpu/bench.py" not in certificate_html([made], "en")


def test_rivals_and_the_kernels_that_they_launched():
    made = recording(
        contest("4096", cuBLAS=["sm90_gemm", LONG], PyTorch=["sm90_gemm"]),
        contest("8192", cuBLAS=["sm90_gemm", LONG], PyTorch=["other"]),
        contest(None, cuBLAS=["sm80_gemm"]),
        rivals={"PyTorch": "2.11.0+cu130", "cuBLAS": "13.1.0.3"},
    )
    html = certificate_html([made], "en")
    shown = lines(html)
    assert shown["Rivals"] == "PyTorch 2.11.0+cu130, cuBLAS 13.1.0.3"
    # Kernels that a rival launched in several contests stand there once.
    escaped = LONG.replace("<", "&lt;").replace(">", "&gt;")
    assert shown["Their kernels"] == (
        f"in all: 4 cuBLAS 4096, 8192: sm90_gemm , {escaped} sm80_gemm "
        "PyTorch 4096: sm90_gemm 8192: other"
    )
    assert "mine" not in html


def test_kernels_of_rivals_that_no_benchmark_names_are_there_too():
    made = recording(
        contest("4096", cuBLAS=["sm90_gemm"]),
        launched={"cuBLAS": ["sm90_gemm", "split_k"], "FlashAttention-3": ["flash_fwd"]},
    )
    for lang, line in (("en", "Their kernels"), ("zh", "对手的 kernel")):
        shown = lines(certificate_html([made], lang))[line]
        assert re.fullmatch(
            r"\D+3\D* cuBLAS 4096[:：] ?sm90_gemm split_k FlashAttention-3 flash_fwd", shown
        )
    alone = recording(launched={"cuBLAS": ["sm90_gemm"]})
    assert lines(certificate_html([alone], "en"))["Their kernels"] == "in all: 1 cuBLAS sm90_gemm"


def test_contests_and_rivals_are_called_as_on_their_page(monkeypatch):
    from cudatut.site import certificate as module

    chinese = lambda result, lang: {**result, "name": "大矩阵"}  # noqa: E731
    monkeypatch.setattr(module, "localized", chinese)
    assert "大矩阵：" in certificate_html([recording(contest("large", cuBLAS=["k"]))], "zh")
    made = recording(launched={"library": ["k"]})
    monkeypatch.setattr(module, "labels", lambda: SimpleNamespace(chinese=lambda rival: "程序库"))
    for lang, rival in (("en", "library k"), ("zh", "程序库 k")):
        assert plain(certificate_html([made], lang)).count(rival) == 1


def test_results_that_are_no_contest_launch_no_rivals():
    check = {"kind": "check", "name": "add", "passed": True}
    cell = Cell("check", "code", "", [{"output_type": "display_data", "data": {MIME: check}}], True)
    made = recording(cell, contest("4096"), contest("8192", cuBLAS=["sm90_gemm"]))
    shown = lines(certificate_html([made], "en"))
    assert shown["Their kernels"] == "in all: 1 cuBLAS 8192: sm90_gemm"


def test_an_older_recording_lacks_these_lines():
    html = certificate_html([recording(contest("4096"))], "en")
    for line in ("Rivals", "Their kernels", "Instrument", "code equal"):
        assert line not in html


@pytest.mark.parametrize(
    "where",
    [
        "name",
        "launched",
        "gpu",
        "toolchain",
        "commit",
        "sanitizers",
        "rivals",
        "restamped",
        "instrument",
        "kernels",
    ],
)
def test_everything_recorded_is_escaped(where):
    evil = "<script>alert(1)</script>\"'&"
    more = {
        "gpu": {**METADATA["gpu"], "name": evil, "driver": evil, "compute_capability": evil},
        "toolchain": dict.fromkeys(METADATA["toolchain"], evil),
        "sanitizers": [{"kind": "sanitizer", "tool": evil, "errors": 0}],
        "rivals": {evil: evil},
        "launched": {evil: [evil]},
        "restamped": [{"from": evil, "to": evil, "files": {evil: {"ground": evil, "now": evil, "as": evil}}, "added": [evil]}],
        "instrument": {"numbers": {evil: evil}},
    }.get(where, evil)  # fmt: skip
    made = (
        recording(contest(evil, **{evil: [evil]}))
        if where == "kernels"
        else recording(**{where: more})
    )
    html = certificate_html([made, recording()], "en")
    assert "<script" not in html and "&lt;script" in html
    assert not re.search(r"<[^>]*alert[^>]*>", html)
