"""The reader's half of cudatut where no GPU is needed: parsing, checking host arrays, explaining, representing."""

import itertools
import json
import os
import subprocess
import sys
import time
from types import SimpleNamespace

import numpy as np
import pytest

import cudatut as ct
from cudatut import results
from cudatut.gpu import bench, device, memory, profile, sanitizer
from cudatut.gpu.kernel import explain_compile_error
from cudatut.gpu.signature import parameters


def test_every_export_exists_and_no_module_hides_one():
    code = "import cudatut as ct, importlib\n" + "\n".join(
        f"importlib.import_module('cudatut.{m}')"
        for m in ("checking", "gpu", "isolation", "kernel", "sanitizer")
    )
    code += "\nfor name in ct.__all__: getattr(ct, name)\nassert callable(ct.check) and callable(ct.sanitize)"
    subprocess.run([sys.executable, "-c", code], check=True)


def test_import_needs_neither_numpy_nor_pycuda():
    code = (
        "import sys, cudatut; assert not {'numpy', 'pycuda', 'cupy', 'IPython'} & set(sys.modules)"
    )
    subprocess.run([sys.executable, "-c", code], check=True)


def test_no_gpu_says_what_was_looked_for(monkeypatch):
    monkeypatch.setattr(device, "installed_driver", lambda: None)
    with pytest.raises(ct.NoGpuError, match=r"libcuda\.so\.1|nvcuda\.dll"):
        device.activate.__wrapped__()


@pytest.mark.parametrize(
    ("running", "waits_without_a_core"),
    [(None, False), ("ncu", False), ("memcheck", True), ("racecheck", True)],
)
def test_under_a_sanitizer_waiting_for_the_gpu_takes_no_core(
    monkeypatch, running, waits_without_a_core
):
    flags = []

    class Driver:
        def cuInit(self, flags):
            return 0

        def cuDeviceGetCount(self, count):
            count._obj.value = 1
            return 0

        def cuDevicePrimaryCtxSetFlags_v2(self, device, value):
            flags.append((device, value))

    monkeypatch.setattr(device, "installed_driver", Driver)
    monkeypatch.setattr(device.tool, "running", lambda: running)
    monkeypatch.delenv("CUDATUT_GATE", raising=False)
    monkeypatch.setitem(sys.modules, "pycuda", SimpleNamespace(autoprimaryctx=None))
    monkeypatch.setitem(sys.modules, "pycuda.autoprimaryctx", SimpleNamespace())
    device.activate.__wrapped__()
    assert flags == ([(0, 4)] if waits_without_a_core else [])  # CU_CTX_SCHED_BLOCKING_SYNC


@pytest.mark.parametrize("dtype", ["?", "u1", "f2", "i4", "f4", "f8", "c8", "c16"])
@pytest.mark.parametrize("shape", [(), (0,), (7,), (3, 5)])
def test_poison_is_found_where_every_byte_of_an_element_is(dtype, shape):
    host = np.zeros(shape, dtype)
    written = np.random.default_rng(0).choice(
        [True, False], (host.size, host.itemsize), p=[0.2, 0.8]
    )
    if host.size:
        host.reshape(-1).view("u1")[:] = np.where(written, 1, memory.POISON_BYTE).reshape(-1)
    found = memory.poisoned(host)
    assert found.shape == host.shape and found.dtype == bool
    assert np.array_equal(found.reshape(-1), ~written.any(axis=1))


@pytest.mark.parametrize(
    ("capability", "requires", "answer"),
    [
        ((9, 0), "sm_80", True),
        ((9, 0), "sm_90a", True),
        ((10, 0), "sm_90a", False),
        ((7, 5), "sm_80", False),
        ((12, 0), "sm_100", True),
    ],
)
def test_supports(capability, requires, answer):
    assert device.supports(capability, requires) is answer


@pytest.mark.parametrize("requires", ["90", "sm_", "sm_x", "compute_90"])
def test_supports_refuses_what_is_no_architecture(requires):
    with pytest.raises(ValueError, match="no architecture"):
        device.supports((9, 0), requires)


SOURCE = """
// __global__ void k(int commented_out)
template <int N> struct S {};
extern "C" __global__ void __launch_bounds__(256)
    k(const float *__restrict__ x, float4* y, /* bytes */ size_t n, unsigned int m, T a, long long int b,
      const __grid_constant__ S<3> s, half h, unsigned char c[], bool f) {}
"""


def test_parameters_are_read_from_the_source():
    found = parameters(SOURCE, "k", {"T": "double"})
    assert [(p.name, p.pointer, p.dtype) for p in found] == [
        ("x", True, "float32"),
        ("y", True, "float32"),
        ("n", False, "uint64"),
        ("m", False, "uint32"),
        ("a", False, "float64"),
        ("b", False, "int64"),
        ("s", False, None),
        ("h", False, "float16"),
        ("c", True, "uint8"),
        ("f", False, "bool"),
    ]


def test_parameters_of_no_such_kernel_and_of_none():
    assert parameters(SOURCE, "other") is None
    assert parameters("__global__ void k() {}", "k") == []
    assert parameters("__global__ void k(void) {}", "k") == []


def test_cdiv():
    assert [ct.cdiv(n, 256) for n in (0, 1, 256, 257)] == [0, 1, 1, 2]


def test_compile_errors_show_their_lines():
    text = explain_compile_error(
        'inline.cu(2): error: identifier "x" is undefined\n1 error', "a\nb = x;\nc", "inline.cu"
    )
    assert text.splitlines()[1:] == [
        '  inline.cu, line 2: error: identifier "x" is undefined',
        "       1 | a",
        "       2 | b = x;",
    ]
    assert "nvcc fatal: no host compiler" in explain_compile_error(
        "nvcc fatal: no host compiler", "", "inline.cu"
    )


@pytest.mark.parametrize(
    ("got", "want", "message"),
    [
        (
            [1.0, 2.0],
            [1.0, 2.1],
            r"1 of 2 elements are wrong.*\n.*index 1: got .*2\.0.*expected .*2\.1",
        ),
        ([1.0, np.nan], [1.0, 2.0], "1 of them are NaN"),
        ([1.0, 2.0], [1.0, np.nan], "1 of 2"),
        ([np.inf], [-np.inf], "1 of 1"),
        ([1.0, 2.0], [[1.0, 2.0]], r"shape \(2,\), the reference \(1, 2\)"),
        ([1.0], [np.inf], "1 of 1"),
        ([np.inf, 1.0], [1e30, 1.0], "1 of 2"),
    ],
)
def test_check_finds_what_differs(got, want, message):
    with pytest.raises(ct.CheckError, match=message):
        ct.check(np.array(got, "float32"), np.array(want))


def test_check_compares_integers_exactly():
    ct.check(np.array([2**62 + 1]), np.array([2**62 + 1]))
    with pytest.raises(ct.CheckError):
        ct.check(np.array([2**62 + 1]), np.array([2**62]))


def test_check_passes_and_shows(capsys):
    ct.check(
        np.array([1.0, np.nan, np.inf], "float32"),
        np.array([1.0 + 1e-7, np.nan, np.inf]),
        name="three",
    )
    assert "check three: passed (3 elements" in capsys.readouterr().out


def test_check_tolerates_one_ulp_of_a_large_sum_but_no_more():
    want = np.array([1024.0])
    ct.check(np.array([np.nextafter(np.float32(1024), np.float32(2000))]), want)
    with pytest.raises(ct.CheckError):
        ct.check(np.array([1024.1], "float32"), want)


def _benchmark():
    row = results.Row("ours", 10.0, 9.0, 11.0, 3000.0, 0.9, False, 1.1, bytes=30_000_000)
    return results.Benchmark("copy", "GB/s", 3300.0, [row], rounds=9)


@pytest.mark.parametrize(
    "result",
    [
        results.Check("c", True, 3, 0.0, 0.0, 0.0, 1e-5),
        _benchmark(),
        results.Resources("k", 32, 1024, 0, 1.0),
        results.Profile("k", {"dram__bytes.sum": {"value": 1.5, "unit": "byte"}}),
        results.Sanitizer("memcheck", 0, "log"),
        results.Facts("t", [{"name": "n", "value": 3, "unit": None}]),
    ],
)
def test_every_result_has_three_representations(result):
    bundle = result._repr_mimebundle_()
    assert json.loads(json.dumps(bundle[results.MIME], allow_nan=False))["kind"] == result.kind
    assert bundle["text/plain"].strip() and bundle["text/html"].startswith("<table")
    assert "log" not in bundle[results.MIME] and "rows_" not in bundle[results.MIME]


def test_benchmark_rows_by_name():
    assert _benchmark()["ours"].median_us == 10.0
    with pytest.raises(KeyError, match="no row 'theirs'"):
        _benchmark()["theirs"]


def test_facts_take_numbers_with_units(capsys):
    facts = ct.facts(
        "sizes",
        {"n": np.int64(3), "bandwidth": (np.float32(1.5), "GB/s"), "ok": True, "name": "H100"},
    )
    assert facts.json()["rows"][1] == {"name": "bandwidth", "value": 1.5, "unit": "GB/s"}
    assert "bandwidth" in capsys.readouterr().out
    with pytest.raises(TypeError, match="'list' is a list"):
        ct.facts("bad", {"list": [1]})


def test_html_is_escaped():
    assert (
        "<b>" not in results.Facts("<b>", [{"name": "<b>", "value": "<b>", "unit": "<b>"}]).html()
    )


@pytest.mark.parametrize(
    ("report", "errors"),
    [
        ("========= ERROR SUMMARY: 0 errors", 0),
        ("========= ERROR SUMMARY: 1 error", 1),
        ("========= RACECHECK SUMMARY: 3 hazards displayed (2 errors, 1 warning)", 3),
        ("========= COMPUTE-SANITIZER\n", None),
    ],
)
def test_sanitizer_reports_are_counted(report, errors):
    assert sanitizer.count_errors(report) == errors


def test_an_unknown_sanitizer_is_refused(tmp_path):
    with pytest.raises(ValueError, match="leakcheck"):
        sanitizer.run(tmp_path / "x.py", "leakcheck")


@pytest.mark.parametrize(
    ("host_us", "flushes", "runs"),
    [
        (0, 1, [1]),
        (30_000, 1, [1, 4]),  # the host was held up: once more, behind more flushes
        (700_000, 1, [1, 20]),  # and behind no more than 20
        (30_000, 60, [60]),
    ],
)
def test_a_run_counts_only_where_the_host_was_in_time(monkeypatch, host_us, flushes, runs):
    seen = []

    def timed(launch, flushes=1):
        launch()
        seen.append(flushes)
        return 100.0 / flushes

    clock = 0.0

    def launch():
        nonlocal clock
        clock += host_us / 1e6

    monkeypatch.setattr(bench, "time", SimpleNamespace(perf_counter=lambda: clock))
    monkeypatch.setattr(bench, "time_once", timed)
    monkeypatch.setattr(bench, "_flush_us", lambda: 20_000.0)
    took = bench.time_hidden(launch, flushes)
    assert seen == runs
    assert took == 100 / runs[-1]


def test_a_long_run_is_not_repeated(monkeypatch):
    """It compiled, or waits for the host by itself: more flushes would not change it."""
    monkeypatch.setattr(bench, "time_once", lambda launch, flushes=1: launch() or 2e4)
    monkeypatch.setattr(bench, "_flush_us", lambda: 20_000.0)
    calls = []
    assert bench.time_hidden(lambda: calls.append(time.sleep(0.03))) == 2e4
    assert len(calls) == 1


def test_sanitizers_side_by_side_share_neither_ports_nor_cores(tmp_path, monkeypatch):
    """The arguments of the real tool, kept by a program of its name; what the tool does with them is tests/gpu's matter."""
    fake = tmp_path / "compute-sanitizer"
    fake.write_text(
        "#!/usr/bin/env python3\n"
        "import pathlib, sys\n"
        "arguments = sys.argv\n"
        "log = pathlib.Path(arguments[arguments.index('--log-file') + 1])\n"
        "log.write_text(' '.join(arguments) + '\\nERROR SUMMARY: 0 errors')\n"
    )
    fake.chmod(0o755)
    monkeypatch.setenv("PATH", str(tmp_path), prepend=os.pathsep)
    tools = ("racecheck", "racecheck", "memcheck")
    seen = [sanitizer.run(tmp_path / "x.py", tool, workers=2).log.split() for tool in tools]
    ports = [int(arguments[arguments.index("--port") + 1]) for arguments in seen]
    of_each = {int(arguments[arguments.index("--max-connections") + 1]) for arguments in seen}
    assert all(abs(a - b) >= max(of_each) for a, b in itertools.combinations(ports, 2))
    assert ["--racecheck-num-workers" in arguments for arguments in seen] == [True, True, False]
    alone = sanitizer.run(tmp_path / "x.py", "racecheck").log
    assert "--racecheck-num-workers" not in alone  # the tool takes what cores there are


NCU = '==PROF== Connected\n"ID","Kernel Name","dram__bytes.sum"\n"","","byte"\n"0","k","1,234.5"\n'


def test_ncu_reports_are_read():
    assert profile.parse_report(NCU, "k", ["dram__bytes.sum"]) == {
        "dram__bytes.sum": {"value": 1234.5, "unit": "byte"}
    }
    with pytest.raises(ct.ToolMissing, match="no launch of 'k'"):
        profile.parse_report("==WARNING== No kernels were profiled.", "k", ["dram__bytes.sum"])
    with pytest.raises(ct.ToolMissing, match="no other__metric"):
        profile.parse_report(NCU, "k", ["other__metric"])


def test_several_kernels_are_profiled_in_one_run(monkeypatch, tmp_path, capsys):
    """ncu reports launches as they come; each goes to its own kernel."""
    fake = tmp_path / "ncu"
    fake.write_text(
        f"#!{sys.executable}\n"
        "import pathlib, sys\n"
        "arguments = sys.argv\n"
        "assert arguments[arguments.index('--kernel-id') + 1] == '::regex:^(add|gemm)$:1'\n"
        "assert arguments[arguments.index('--launch-count') + 1] == '2'\n"
        "log = pathlib.Path(arguments[arguments.index('--log-file') + 1])\n"
        'log.write_text(\'"ID","Kernel Name","n"\\n"","","byte"\\n"0","void t::gemm<8>(int)","1"\\n"1","add","2"\\n\')\n'
    )
    fake.chmod(0o755)
    monkeypatch.setenv("PATH", str(tmp_path), prepend=os.pathsep)
    found = profile.profile_kernels("x.py", ["add", "gemm<8>"], ["n"])
    assert [(k, p.metrics["n"]["value"]) for k, p in found.items()] == [("add", 2), ("gemm<8>", 1)]
    fake.write_text(fake.read_text().replace('"add","2"', '"gemm","2"'))
    assert profile.profile_kernels("x.py", ["add", "gemm"], ["n"]) == {}
    assert "no launch of add" in capsys.readouterr().out
    monkeypatch.setenv("CUDATUT_TOOL", "memcheck")
    assert list(profile.profile_kernels("x.py", ["add", "gemm"], ["n"])) == ["add", "gemm"]


def test_results_are_silent_while_a_tool_watches(monkeypatch, capsys):
    monkeypatch.setenv("CUDATUT_TOOL", "memcheck")
    ct.facts("t", {"n": 1})
    assert ct.size(1000, 10) == 10 and capsys.readouterr().out == ""
    monkeypatch.delenv("CUDATUT_TOOL")
    assert ct.size(1000, 10) == 1000


def test_claims_and_series(capsys):
    said = {"en": "says", "zh": "说"}
    claim = ct.claim(
        "c-1",
        "a book",
        said,
        predicted=np.int64(35),
        measured=35.0,
        verdict="confirmed",
        unit="conflicts",
    )
    assert claim.json()["predicted"] == 35 and "confirmed" in capsys.readouterr().out
    with pytest.raises(ValueError, match="verdict 'true' is none of"):
        ct.claim("c-1", "a book", said, 1, 1, "true")
    with pytest.raises(ValueError, match="needs 'en' and 'zh'"):
        ct.claim("c-1", "a book", {"en": "says"}, 1, 1, "refuted")
    lines = {"ours": [(1, 2.0), (2, np.float32(3.0))], "theirs": [(2, 1.0)]}
    shown = ct.series("by size", ("n", "elements"), ("value", "GB/s"), lines, limit=3)
    assert shown.rows() == [["1", "2", ""], ["2", "3", "1"]] and shown.json()["y"]["unit"] == "GB/s"
    with pytest.raises(ValueError, match="the line 'ours' is empty"):
        ct.series("by size", ("n", "elements"), ("value", "GB/s"), {"ours": [(1, float("nan"))]})


def test_a_ratio_to_the_vendor_compares_rates_not_times():
    class Vendor:
        vendor = True

    runs = {"whole": object(), "half": object(), "vendor": Vendor()}
    times = {"whole": [20.0], "half": [10.0], "vendor": [10.0]}
    work = {"whole": 2000, "half": 1000, "vendor": 1000}
    equal = bench._result("x", runs, times, work, None, 1, None)
    assert [row.ratio_to_vendor for row in equal.rows] == [1.0, 1.0, 1.0]
    untold = bench._result("x", runs, times, None, None, 1, None)
    assert [row.ratio_to_vendor for row in untold.rows] == [0.5, 1.0, 1.0]
