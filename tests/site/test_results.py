"""Results of readers' GPUs on a page: side by side, with certificates, in both languages."""

import copy
import json

import pytest

from cudatut import gpu_results
from cudatut.site import locale, results, state

GPU = {
    "name": "NVIDIA Test <80GB>",
    "compute_capability": "9.0",
    "memory_bytes": 80 << 30,
    "sm_count": 132,
}
OTHER = {**GPU, "name": "NVIDIA GeForce RTX 9999", "sm_count": 40}


def row(name, value, vendor=False):
    us = 1e6 / value
    return {
        "name": name,
        "median_us": us,
        "p20_us": us,
        "p80_us": us,
        "value": value,
        "of_peak": value / 60,
        "vendor": vendor,
        "ratio_to_vendor": value / 50,
    }


def benchmark(*rows):
    return {"kind": "benchmark", "name": "b", "unit": "TFLOP/s", "peak": 60.0, "rows": list(rows)}


def certificate(gpu, command):
    return {
        "gpu": gpu,
        "driver": "580.1",
        "toolchain": {"cuda": "13.0", "python": "3.12.1"},
        "recorded_at": "2026-11-20T12:00:00+00:00",
        "commit": "0123456789abcdef",
        "command": command,
    }


def size(n):
    return {"m": n, "n": n, "k": n}


@pytest.fixture
def kept(tmp_path, monkeypatch):
    """Two GPUs' results: one with cuBLAS and a tuned choice, one with neither."""
    monkeypatch.setenv("CUDATUT_RESULTS", str(tmp_path))
    for gpu, vendor in ((GPU, True), (OTHER, False)):
        contests = []
        for n, value in ((1024, 30.0), (4096, 46.5)):
            rows = [row("tiled", value / 5), row("final", value)]
            rows += [row("cuBLAS", 50.0, True)] if vendor else []
            contests.append({"size": size(n), "benchmark": benchmark(*rows)})
        board = {
            "certificate": certificate(gpu, "python -m cudatut results gemm"),
            "sources": {},
            "left_out": {} if vendor else {"tma": "needs sm_90"},
            "contests": contests,
        }
        gpu_results.save(gpu, "scoreboards", "gemm", board)
    for n, rows in (
        (512, [row("tuned", 20.0), row("default", 19.0), row("cuBLAS", 21.0, True)]),
        (4096, [row("tuned", 47.0)]),
    ):
        entry = {
            "certificate": certificate(GPU, f"python -m cudatut tune gemm --size {n}"),
            "sources": {},
            "size": size(n),
            "choice": {"bm": 128, "bn": 256},
            "default": {"bm": 128, "bn": 256},
            "search": [{"step": "all", "left": 6480}],
            "benchmark": benchmark(*rows),
        }
        gpu_results.save(GPU, "tuned", "gemm", {gpu_results.size_name(size(n)): entry})
    return tmp_path


def test_scoreboards_stand_side_by_side_with_their_certificates(kept):
    with locale.using("en"):
        html = results.scoreboard("gemm")
    assert "NVIDIA Test &lt;80GB&gt;" in html and "<80GB>" not in html
    assert "NVIDIA GeForce RTX 9999" in html and "46.5 TFLOP/s" in html and "93%" in html
    assert html.count('class="ct-certificate"') == 2
    assert "python -m cudatut results gemm" in html and "<dd>580.1</dd>" in html
    assert "tma: needs sm_90" in html and "<svg" in html and "†" not in html
    assert "RTX 9999: fastest rung" in html and ": cuBLAS" in html
    with locale.using("zh"):
        zh = results.scoreboard("gemm")
    assert "最快的一级" in zh and "未参加" in zh and "驱动" in zh
    assert zh.count("<svg") == html.count("<svg")


def test_tuned_choices(kept):
    with locale.using("en"):
        html = results.tuned("gemm")
    assert "bm=128 bn=256" in html and "6,480" in html and "19 TFLOP/s" in html
    assert "the same choice" in html and html.count('class="ct-certificate"') == 1
    with locale.using("zh"):
        assert "选择相同" in results.tuned("gemm")


def test_kernels_that_have_changed_are_marked(kept):
    path = next(kept.glob("*9999.json"))
    found = json.loads(path.read_text())
    found["scoreboards"]["gemm"]["sources"] = {"gemm/gone.cu": "0"}
    path.write_text(json.dumps(found))
    html = results.scoreboard("gemm")
    assert html.count("†") == 1 and "gemm/gone.cu" in html


def test_nothing_kept_says_how_to_begin(tmp_path, monkeypatch):
    monkeypatch.setenv("CUDATUT_RESULTS", str(tmp_path / "none"))
    for lang in ("en", "zh"):
        with locale.using(lang):
            assert "<code>python -m cudatut results gemm</code>" in results.scoreboard("gemm")
            assert "<code>python -m cudatut tune gemm</code>" in results.tuned("gemm")


def test_a_damaged_file_fails_the_build_by_name(kept):
    (kept / "nvidia-broken.json").write_text("{")
    before = state.current()
    try:
        mine = state.begin(copy.copy(state.State()))
        results.scoreboard("gemm")
        assert "nvidia-broken.json is refused: it is cut short" in mine.problems[0]
    finally:
        state.begin(before)
