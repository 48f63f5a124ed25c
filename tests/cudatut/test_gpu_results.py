"""Results per GPU: written whole or not at all, and refused by name where they cannot be trusted."""

import copy
import json
import os
from types import SimpleNamespace

import pytest

from cudatut import cli, gpu_results, gpu_scoreboard, ladder, paths
from cudatut.errors import CheckError, LaunchError, OutOfDeviceMemory
from cudatut.gpu_results import GpuResultsError

GPU = {
    "name": "NVIDIA Test 80GB (PCIe)",
    "compute_capability": "9.0",
    "memory_bytes": 80_000_000_000,
    "sm_count": 132,
}
FILE = "nvidia-test-80gb-pcie.json"
CERTIFICATE = {
    "gpu": GPU,
    "driver": "580.1",
    "toolchain": {"cuda": "13.0", "nvcc": "13.0.88"},
    "recorded_at": "2026-11-20T12:00:00+00:00",
    "commit": "0123456789abcdef",
    "command": "python -m cudatut results gemm",
}


def row(name, us, vendor=False):
    return {
        "name": name,
        "median_us": us,
        "p20_us": us * 0.99,
        "p80_us": us * 1.01,
        "value": 1000 / us,
        "of_peak": 0.5,
        "vendor": vendor,
        "ratio_to_vendor": 10 / us,
    }


def benchmark(*rows):
    return {"kind": "benchmark", "name": "b", "unit": "TFLOP/s", "peak": 60.0, "rows": list(rows)}


def size(n):
    return {"m": n, "n": n, "k": n}


def scoreboard():
    contests = [
        {"size": size(n), "benchmark": benchmark(row("tiled", 30.0), row("cuBLAS", 10.0, True))}
        for n in (1024, 4096)
    ]
    return {
        "certificate": copy.deepcopy(CERTIFICATE),
        "sources": {"basics/tiled.cu": "0" * 64},
        "left_out": {"tma": "needs sm_90"},
        "contests": contests,
    }


def tuned(n=4096):
    return {
        "certificate": {
            **copy.deepcopy(CERTIFICATE),
            "command": f"python -m cudatut tune gemm --size {n}",
        },
        "sources": {},
        "size": size(n),
        "choice": {"bm": 128, "splits": 1},
        "default": {"bm": 64, "splits": 1},
        "search": [{"step": "all", "left": 100}],
        "benchmark": benchmark(row("tuned", 11.0), row("default", 12.0)),
    }


@pytest.fixture
def kept(tmp_path, monkeypatch):
    """An empty folder for results."""
    monkeypatch.setenv("CUDATUT_RESULTS", str(tmp_path / "results"))
    return tmp_path / "results"


def key(n):
    return gpu_results.size_name(size(n))


def test_file_names():
    assert gpu_results.slug("NVIDIA H100 80GB HBM3") == "nvidia-h100-80gb-hbm3"
    assert gpu_results.slug(GPU["name"]) + ".json" == FILE
    with pytest.raises(ValueError, match="no name"):
        gpu_results.slug("---")


def test_results_lie_in_the_checkout_or_where_the_system_keeps_data(monkeypatch, tmp_path):
    monkeypatch.delenv("CUDATUT_RESULTS", raising=False)
    assert gpu_results.folder() == paths.repo_root() / "results"
    platformdirs = pytest.importorskip("platformdirs")
    monkeypatch.setattr(paths, "repo_root", lambda: None)
    monkeypatch.setattr(platformdirs, "user_data_dir", lambda *names: str(tmp_path))
    assert gpu_results.folder() == tmp_path / "results"


def test_what_is_saved_is_read_and_the_rest_stays(kept):
    assert gpu_results.load_all() == []
    path = gpu_results.save(GPU, "scoreboards", "gemm", scoreboard())
    assert path == kept / FILE
    gpu_results.save(GPU, "tuned", "gemm", {key(4096): tuned(4096)})
    gpu_results.save(GPU, "tuned", "gemm", {key(512): tuned(512)})
    (found,) = gpu_results.load_all()
    assert found["gpu"] == GPU and found["schema"] == gpu_results.SCHEMA
    assert found["scoreboards"]["gemm"] == scoreboard()
    assert list(found["tuned"]["gemm"]) == [key(4096), key(512)]
    assert gpu_results.tuned("gemm", size(512), GPU["name"]) == {"bm": 128, "splits": 1}
    assert gpu_results.tuned("gemm", size(99), GPU["name"]) is None
    assert gpu_results.tuned("gemm", size(512), "another GPU") is None
    assert [p.name for p in kept.iterdir()] == [FILE]  # no temporary file is left


@pytest.mark.parametrize(
    ("spoil", "reason"),
    [
        (lambda text: text[: len(text) // 2], "cut short, or no JSON"),
        (lambda text: "[]", "not written by cudatut"),
        (lambda text: text.replace('"schema": 1', '"schema": 2'), "schema is 2, and this version of cudatut reads 1"),
        (lambda text: text.replace("NVIDIA Test", "NVIDIA Other"), "whose file is nvidia-other-80gb-pcie.json"),
        (lambda text: text.replace('"median_us": 30.0', '"median_us": NaN'), "NaN is no number"),
        (lambda text: text.replace('"median_us": 30.0', '"median_us": 0'), "row 'tiled': median_us is 0"),
        (lambda text: text.replace('"median_us": 30.0', '"median_us": "fast"'), "'median_us' is 'fast'"),
        (lambda text: text.replace('"vendor": true', '"vendor": 1'), "'vendor' is 1"),
        (lambda text: text.replace('"driver"', '"river"'), "scoreboards, gemm, certificate: field 'driver' is missing"),
        (lambda text: text.replace("2026-11-20T12:00:00+00:00", "yesterday"), "is no time with its zone"),
        (lambda text: text.replace('"cuBLAS"', '"tiled"'), "two rows of one name"),
        (lambda text: text.replace('"sources": {', '"sources": 3, "x": {'), "'sources' is 3"),
    ],
)  # fmt: skip
def test_damaged_and_foreign_files_are_refused_and_left_alone(kept, spoil, reason):
    path = gpu_results.save(GPU, "scoreboards", "gemm", scoreboard())
    text = spoil(path.read_text())
    path.write_text(text)
    with pytest.raises(GpuResultsError) as error:
        gpu_results.load_all()
    assert FILE in str(error.value) and reason in str(error.value)
    assert "python -m cudatut results gemm" in str(error.value)
    with pytest.raises(GpuResultsError):
        gpu_results.save(GPU, "tuned", "gemm", {key(4096): tuned()})
    assert path.read_text() == text


def test_a_certificate_of_another_gpu_is_refused(kept):
    board = scoreboard()
    board["certificate"]["gpu"] = {**GPU, "name": "NVIDIA Other"}
    with pytest.raises(GpuResultsError, match="was not written: .*of the GPU 'NVIDIA Other'"):
        gpu_results.save(GPU, "scoreboards", "gemm", board)
    assert not kept.exists()


def test_a_failed_write_leaves_what_was_there(kept, monkeypatch):
    path = gpu_results.save(GPU, "scoreboards", "gemm", scoreboard())
    before = path.read_bytes()

    def full(*args):
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(os, "replace", full)
    with pytest.raises(GpuResultsError, match="No space left"):
        gpu_results.save(GPU, "tuned", "gemm", {key(4096): tuned()})
    assert path.read_bytes() == before and [p.name for p in kept.iterdir()] == [FILE]


def test_sources_include_headers_and_tell_of_changes():
    found = gpu_results.sources(["gemm/block_tile_2d.cu", "gemm/sgemm.py"])
    assert {"gemm/block_tile_2d.cu", "gemm/edges.cuh", "gemm/sgemm.py"} <= set(found)
    assert gpu_results.changed({"sources": found}) == []
    assert gpu_results.changed({"sources": {**found, "gemm/gone.cu": "0"}}) == ["gemm/gone.cu"]


def test_every_file_of_the_checkout_is_whole():
    for path in (paths.repo_root() / "results").glob("*.json"):
        gpu_results.load(path)


def test_rungs_that_a_gpu_cannot_run_are_left_out_with_the_reason():
    rungs = gpu_scoreboard.rungs_of(ladder.load("gemm"))
    assert [rung.name for rung in rungs[:3]] == ["naive_columns", "tiled", "thread_tile"]
    able, left_out = gpu_scoreboard.sort_out(rungs, (8, 0))
    assert left_out["tma"] == "needs sm_90" and "tma" not in [rung.name for rung in able]
    assert gpu_scoreboard.sort_out(rungs, (9, 0))[1] == {}


def test_a_scoreboard_leaves_out_what_does_not_run_and_skips_what_does_not_fit(monkeypatch):
    class Problem:
        bytes, flops = None, 1

        def __init__(self, m, n, k):
            if m > 4096:
                raise OutOfDeviceMemory("8 GiB are free")

        def check(self, rung):
            print("a table for each check")
            if rung.name == "tiled":
                raise CheckError("wrong at 7")
            if rung.name == "warp_tile":
                raise LaunchError("takes 100 KB")

        def launcher(self, rung):
            return rung.name

        def vendors(self):
            return {"cuBLAS": "cuBLAS"}

    def bench(runs, bytes, flops, name):
        rows = [row(one, 10.0, one == "cuBLAS") for one in runs]
        return SimpleNamespace(json=lambda: benchmark(*rows))

    gemms, said = ladder.load("gemm"), []
    monkeypatch.setattr(
        gpu_scoreboard, "device", lambda: SimpleNamespace(compute_capability=(8, 0))
    )
    monkeypatch.setattr(gpu_scoreboard, "bench", bench)
    monkeypatch.setattr(gemms, "problem", Problem)
    entry = gpu_scoreboard.measure(gemms, [size(4096), size(8192)], said.append)
    assert entry["left_out"] == {
        "tma": "needs sm_90",
        "tiled": "wrong result: wrong at 7",
        "warp_tile": "takes 100 KB",
    }
    assert said[0].startswith("m=8192 n=8192 k=8192 is skipped") and len(said) == 4
    names = [one["name"] for one in entry["contests"][0]["benchmark"]["rows"]]
    assert names[0] == "naive_columns" and names[-1] == "cuBLAS" and "tiled" not in names
    assert "gemm/vectorized.cu" in entry["sources"] and "gemm/tma.cu" not in entry["sources"]
    with pytest.raises(GpuResultsError, match="no size could be measured"):
        gpu_scoreboard.measure(gemms, [size(8192)], said.append)


def test_list_of_what_is_kept(kept, capsys):
    assert cli.main(["results"]) == 0 and "nothing is kept yet" in capsys.readouterr().out
    gpu_results.save(GPU, "scoreboards", "gemm", scoreboard())
    gpu_results.save(GPU, "tuned", "gemm", {key(4096): tuned()})
    assert cli.main(["results"]) == 0
    out = capsys.readouterr().out.splitlines()
    assert out[0] == GPU["name"]
    assert "2 sizes, 2026-11-20; first at m=4096 n=4096 k=4096: tiled" in out[1]
    assert out[1].endswith("(changed since: basics/tiled.cu)")
    assert "tuned for m=4096 n=4096 k=4096, 2026-11-20: bm=128 splits=1" in out[2]
    (kept / "foreign.json").write_text(json.dumps({"x": 1}))
    assert cli.main(["results"]) == 2
    assert "foreign.json is refused: it was not written by cudatut" in capsys.readouterr().err
