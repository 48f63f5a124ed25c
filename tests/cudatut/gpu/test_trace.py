"""The trace: what is made of CUPTI's records, told by records made up; without a GPU and without cupti-python."""

import json
import subprocess
import sys
from types import SimpleNamespace

import pytest

from cudatut import paths, tool
from cudatut.errors import CudatutError, NoGpuError, ToolMissing
from cudatut.gpu import cupti, device, launched, trace

DRIVER = {1: "cuInit", 2: "cuDevicePrimaryCtxRetain", 3: "cuMemAlloc_v2", 4: "cuLaunchKernel",
          5: "cuMemcpyDtoH_v2", 6: "cuCtxSynchronize", 7: "cuMemFree_v2"}  # fmt: skip
RUNTIME = {1: "cudaGetDeviceCount_v3020", 2: "cudaMalloc_v3020", 3: "cudaLaunchKernel_v7000"}
US = 1000  # nanoseconds


def name_of_call(kind, number):
    return (DRIVER if kind == trace._DRIVER else RUNTIME)[number]


def api(start, end, number, cbid, kind=trace._DRIVER):
    return SimpleNamespace(kind=kind, start=start, end=end, correlation_id=number, cbid=cbid)


def kernel(start, end, number, name="spin"):
    return SimpleNamespace(
        kind=cupti.KERNEL, start=start, end=end, correlation_id=number, name=name
    )


def copy(start, end, number, nbytes=4_000_000, copy_kind=2):
    return SimpleNamespace(
        kind=trace._MEMCPY, start=start, end=end, correlation_id=number,
        bytes=nbytes, copy_kind=copy_kind,
    )  # fmt: skip


def traced(*records):
    notes = [(record.kind, trace.fields(record)) for record in records]
    return trace.summarize(*trace.read(notes, name_of_call))


# A launch returns at once; its kernel runs 5,000 us; the copy that was called right after it stands 5,500 us.
WAITING = [
    api(0, 100 * US, 1, 1),
    api(100 * US, 150_100 * US, 2, 2),
    api(150_200 * US, 150_300 * US, 3, 3),
    api(151_000 * US, 151_010 * US, 4, 4),
    kernel(151_010 * US, 156_010 * US, 4),
    api(151_020 * US, 156_520 * US, 5, 5),
    copy(156_015 * US, 156_515 * US, 5),
]


def test_a_copy_waited_for_the_kernel_before_it():
    found = traced(*WAITING)
    assert found["spin"].total_ms == 5.0 and found["spin"].calls == 1
    assert found["copy DtoH"].bytes == 4_000_000 and found["copy DtoH"].total_ms == 0.5
    call = found["cuMemcpyDtoH"]
    assert call.total_ms == 5.5 and call.waited_for == "spin"
    assert call.waiting_ms == pytest.approx(4.99)  # from its own begin, and without its own copy
    assert found["cuLaunchKernel"].waiting_ms == 0.0
    assert [row.name for row in found.gpu] == ["spin", "copy DtoH"]
    assert found.api[0].name == "cuDevicePrimaryCtxRetain"


def test_the_call_that_made_the_context_is_marked():
    found = traced(*WAITING)
    assert found["cuDevicePrimaryCtxRetain"].waited_for == "made the context"
    assert [row.waited_for for row in found.api].count("made the context") == 1


def test_in_the_runtime_api_the_first_call_that_needs_a_context_makes_it():
    runtime = trace._RUNTIME
    found = traced(
        api(0, 10 * US, 1, 1, runtime),
        api(20 * US, 200_000 * US, 2, 2, runtime),
        api(200_100 * US, 200_110 * US, 3, 2, runtime),
    )
    assert found["cudaMalloc"].waited_for == "made the context" and found["cudaMalloc"].calls == 2
    assert found["cudaGetDeviceCount"].waited_for == ""


def test_what_goes_on_after_a_call_was_not_waited_for():
    """cuMemAlloc returns while the kernel runs on: it only looks as if it had waited."""
    found = traced(
        api(0, 10 * US, 1, 4), kernel(10 * US, 5000 * US, 1), api(20 * US, 90 * US, 2, 3)
    )
    assert found["cuMemAlloc"].waiting_ms == 0.0 and found["cuMemAlloc"].waited_for == ""


def test_an_enqueued_launch_does_not_wait_for_what_ends_during_it():
    found = traced(
        api(0, 10 * US, 1, 4), kernel(5 * US, 60 * US, 1), api(50 * US, 70 * US, 2, 4),
        kernel(70 * US, 80 * US, 2),
    )  # fmt: skip
    assert found["cuLaunchKernel"].waiting_ms == 0.0


def test_no_moment_is_counted_twice():
    """Two kernels side by side, and a synchronization that waits for both."""
    found = traced(
        kernel(0, 100 * US, 1, "a"), kernel(50 * US, 150 * US, 2, "b"), api(0, 160 * US, 3, 6)
    )
    assert found["cuCtxSynchronize"].waiting_ms == pytest.approx(0.15)
    assert found["cuCtxSynchronize"].waited_for == "b"


def test_clocks_that_differ_by_microseconds():
    for late, waited in ((1, 0.1), (5, 0.1), (5.001, 0.0)):
        found = traced(kernel(0, (100 + late) * US, 1), api(0, 100 * US, 2, 6))
        assert found["cuCtxSynchronize"].waiting_ms == pytest.approx(waited)


def test_work_that_never_ended_is_left_out():
    assert traced(kernel(100, 0, 1)).gpu == []


def test_memset_and_kinds_of_copies():
    memset = SimpleNamespace(
        kind=trace._MEMSET, start=0, end=2 * US, correlation_id=1, bytes=64, value=0
    )
    found = traced(memset, copy(0, US, 2, 8, 1), copy(0, US, 3, 8, 8), copy(0, US, 4, 8, 99))
    assert {row.name for row in found.gpu} == {
        "memset", "copy HtoD", "copy DtoD", "copy of an unknown kind",
    }  # fmt: skip


@pytest.mark.parametrize(
    ("call", "plain"),
    [("cuMemcpyDtoH_v2", "cuMemcpyDtoH"), ("cuMemcpyHtoDAsync_v2_ptsz", "cuMemcpyHtoDAsync"),
     ("cudaLaunchKernel_v7000", "cudaLaunchKernel"), ("cuInit", "cuInit")],
)  # fmt: skip
def test_names_of_calls(call, plain):
    assert trace.plain_name(call) == plain


@pytest.mark.skipif(sys.platform != "linux", reason="demangles with libstdc++")
@pytest.mark.parametrize(
    ("mangled", "plain"),
    [("add", "add"), ("_Z3addPKfS0_Pfi", "add"), ("_Z4gemmILi128EEvPf", "gemm<128>"),
     ("_ZN5tiles4gemmIfLi3EEEvPT_PFvvE", "tiles::gemm<float, 3>"), ("_Znonsense", "_Znonsense"),
     ("_ZN12_GLOBAL__N_13sumEPf", "(anonymous namespace)::sum"),
     ("_Z3mapIZN1fclEiEUlvE_EvT_", "map<f::operator()(int)::{lambda()#1}>")],
)  # fmt: skip
def test_names_of_kernels(mangled, plain):
    assert cupti.demangled(mangled) == plain
    if "<" in plain:
        assert traced(kernel(0, US, 1, mangled))[plain.partition("<")[0]].calls == 1


def test_a_kernel_is_found_by_its_plain_name():
    found = trace.Trace(gpu=[trace.Row("scan<tile<4>>", 2, 1.0, 1, 0.5)])
    assert found["scan"] is found["scan<tile<4>>"] is found.gpu[0]
    with pytest.raises(KeyError):
        found["scan<tile"]


def test_two_tables(capsys):
    traced(*WAITING).show()
    lines = [line.split() for line in capsys.readouterr().out.splitlines()]
    assert ["GPU", "work"] in lines and ["API", "calls"] in lines
    assert ["copy", "DtoH", "1", "0.5", "0.5", "4"] in lines
    assert ["cuMemcpyDtoH", "1", "5.5", "5.5", "4.99", "spin"] in lines
    (maker,) = (line for line in lines if line[:1] == ["cuDevicePrimaryCtxRetain"])
    assert maker[-3:] == ["made", "the", "context"]
    trace.Trace().show()
    assert "no call of the CUDA API" in capsys.readouterr().out


def test_an_unknown_name_says_what_there_is(monkeypatch):
    found = traced(*WAITING)
    with pytest.raises(KeyError, match="no 'add' in this trace: it has .*spin"):
        found["add"]
    monkeypatch.setattr(tool, "running", lambda: "memcheck")
    assert found["add"].total_ms != found["add"].total_ms  # NaN


# --- running programs ------------------------------------------------------------------------------


class Cupti:
    """As much of cupti.cupti as is used, handing out WAITING at the flush."""

    CallbackDomain = SimpleNamespace(DRIVER_API=0, RUNTIME_API=1)

    def __init__(self):
        self.enabled = set()

    def activity_enable(self, kind):
        self.enabled.add(kind)

    def activity_disable(self, kind):
        self.enabled.discard(kind)

    def activity_register_callbacks(self, requested, completed):
        assert requested()[0] > 0
        self.completed = completed

    def activity_flush_all(self, flag):
        assert trace._DRIVER not in self.enabled and cupti.KERNEL in self.enabled
        self.completed(WAITING[:3])
        self.completed(WAITING[3:])

    def get_callback_name(self, domain, cbid):
        return DRIVER[cbid]


@pytest.fixture
def gpu(monkeypatch, as_a_script):
    driver = SimpleNamespace(cuCtxSynchronize=lambda: 0)
    monkeypatch.setattr(device, "installed_driver", lambda: driver)
    monkeypatch.setattr(cupti, "_cupti", Cupti)
    monkeypatch.setattr(cupti, "_registered", False)
    monkeypatch.delitem(sys.modules, "pycuda", raising=False)


@pytest.mark.parametrize(
    ("text", "status", "said"),
    [
        ("import sys; print(sys.argv[1:], __name__)", 0, "['a', '--b'] __main__"),
        ("import sys; sys.exit(3)", 3, ""),
        ("import sys; sys.exit('no')", 1, "no"),
        ("def f():\n    1 / 0\nf()", 1, "ZeroDivisionError"),
        ("import beside_mine; print(beside_mine.WHERE)", 0, "beside it"),
    ],
)
def test_a_script_runs_as_python_would_run_it(gpu, tmp_path, capfd, text, status, said):
    script = tmp_path / "my.py"
    (tmp_path / "beside_mine.py").write_text("WHERE = 'beside it'\n")
    script.write_text(text)
    found_status, found = trace.run(script, ["a", "--b"])
    out, err = capfd.readouterr()
    assert found_status == status and said in out + err
    assert "tracing.py" not in err and "runpy" not in err
    assert found["cuMemcpyDtoH"].waited_for == "spin"


def test_the_child_writes_what_trace_reads(gpu, tmp_path):
    script, into = tmp_path / "my.py", tmp_path / "trace.json"
    script.write_text("print('ran')")
    assert trace.main([str(into), str(script)]) == 0
    data = json.loads(into.read_text())
    again = trace.Trace(*([trace.Row(**row) for row in data[part]] for part in ("gpu", "api")))
    assert again["spin"].total_ms == 5.0


def test_the_tables_of_an_example(capsys):
    traced(*WAITING).show(rows=2)
    out = capsys.readouterr().out
    assert "GPU work" in out and "API calls" in out and "waiting for the GPU (ms)" in out
    assert "cuMemcpyDtoH" in out and "cuInit" not in out


def test_pycuda_must_not_be_there_before(gpu, tmp_path, monkeypatch):
    monkeypatch.setitem(sys.modules, "pycuda", SimpleNamespace())
    with pytest.raises(CudatutError, match="process of its own"):
        trace.run(tmp_path / "my.py")


def test_without_cupti_it_says_what_to_install(monkeypatch):
    monkeypatch.setitem(sys.modules, "cupti", None)
    monkeypatch.setattr(device, "driver_cuda", lambda: (12, 4))
    with pytest.raises(ToolMissing, match=r"pip install .*\[trace12\]"):
        cupti._cupti()
    monkeypatch.setattr(device, "driver_cuda", lambda: (13, 0))
    with pytest.raises(ToolMissing, match=r"pip install .*\[trace13\]"):
        cupti._cupti()


def test_without_a_gpu(tmp_path, monkeypatch):
    monkeypatch.setattr(device, "installed_driver", lambda: None)
    with pytest.raises(NoGpuError, match="nothing to trace here: no NVIDIA driver"):
        trace.run(tmp_path / "my.py")


def test_under_a_tool_nothing_runs(monkeypatch):
    monkeypatch.setattr(tool, "running", lambda: "memcheck")
    assert trace.trace(source="raise SystemExit(1)") == trace.Trace()


def test_what_to_trace():
    assert trace.find("start/hello") == paths.examples_dir() / "start/hello/chapter.py"
    with pytest.raises(CudatutError, match="no file nothing.py"):
        trace.find("nothing.py")
    with pytest.raises(TypeError, match="not both"):
        trace.trace()


# --- which kernels a launch runs -------------------------------------------------------------------


def test_the_kernels_of_a_launch_are_named(gpu, monkeypatch):
    monkeypatch.delenv("CUDATUT_TOOL", raising=False)
    ran = []

    class Library(Cupti):
        def activity_flush_all(self, flag):
            assert self.enabled == {cupti.KERNEL} and ran == ["launch"]
            assert flag == 1, "buffers that are not full yet, too: CUPTI_ACTIVITY_FLAG_FLUSH_FORCED"
            second, first = kernel(2 * US, 3 * US, 2, "_Z4gemmILi128EEvPf"), kernel(0, US, 1, "cut")
            self.completed([second, first, kernel(4 * US, 5 * US, 3, "cut")])

    library = Library()
    monkeypatch.setattr(cupti, "_cupti", lambda: library)
    assert launched.kernels_of(lambda: ran.append("launch")) == ["cut", "gemm<128>"]
    assert library.enabled == set() and not cupti.listening()


def test_nobody_names_kernels_without_cupti_under_a_tool_or_while_another_listens(gpu, monkeypatch):
    monkeypatch.delenv("CUDATUT_TOOL", raising=False)
    never = lambda: pytest.fail("it was launched")  # noqa: E731
    with cupti.listen([cupti.KERNEL], lambda records: None):
        assert cupti.listening() and launched.kernels_of(never) is None
    monkeypatch.setattr(tool, "running", lambda: "ncu")
    assert launched.kernels_of(never) is None
    monkeypatch.setattr(tool, "running", lambda: None)

    def missing():
        raise ToolMissing("no cupti-python")

    monkeypatch.setattr(cupti, "_cupti", missing)
    assert launched.kernels_of(never) is None


def test_a_launch_that_raises_leaves_nobody_listening(gpu, monkeypatch):
    monkeypatch.delenv("CUDATUT_TOOL", raising=False)
    library = Cupti()
    monkeypatch.setattr(cupti, "_cupti", lambda: library)
    with pytest.raises(ZeroDivisionError):
        launched.kernels_of(lambda: 1 / 0)
    assert not cupti.listening() and library.enabled == set()


def test_an_average_is_the_total_by_the_calls(capsys):
    found = traced(
        kernel(0, 3000 * US, 1),
        kernel(4000 * US, 5000 * US, 2),
        copy(0, US, 3),
        copy(2 * US, 3 * US, 4),
    )
    assert (found["spin"].calls, found["spin"].total_ms) == (2, 4.0)
    assert found["copy DtoH"].bytes == 8_000_000
    found.show()
    lines = [line.split() for line in capsys.readouterr().out.splitlines()]
    (row,) = (line for line in lines if line[:1] == ["spin"])
    assert row[:4] == ["spin", "2", "4", "2"], "calls, total, average"


def test_the_context_is_made_by_the_first_call_that_can(monkeypatch):
    """Whatever order CUPTI reports calls in."""
    first, second = api(100 * US, 200 * US, 1, 2), api(300 * US, 400 * US, 2, 2, trace._RUNTIME)
    later = api(500 * US, 600 * US, 3, 3, trace._RUNTIME)
    found = traced(later, second)
    assert found["cudaMalloc"].waited_for == "made the context"
    assert found["cudaLaunchKernel"].waited_for == ""
    assert traced(second, first)["cuDevicePrimaryCtxRetain"].waited_for == "made the context"


def test_a_trace_says_to_the_recording_that_it_profiled(monkeypatch):
    used = []
    monkeypatch.delenv("CUDATUT_TOOL", raising=False)
    monkeypatch.setattr(trace.ran, "use", used.append)
    monkeypatch.setattr(trace.importlib.util, "find_spec", lambda name: object())
    monkeypatch.setattr(
        trace.subprocess,
        "run",
        lambda *a, **k: SimpleNamespace(returncode=3, stdout="", stderr="no"),
    )
    with pytest.raises(CudatutError, match="ended with status 3"):
        trace.trace(source="x = 1")
    assert used == ["profiling"]


def test_as_a_program_it_runs(tmp_path):
    """Here it has no GPU, no CUPTI or no such script: whatever is missing, it does not end as if it had traced."""
    command = [
        sys.executable,
        "-m",
        "cudatut.gpu.trace",
        str(tmp_path / "out"),
        str(tmp_path / "no.py"),
    ]
    assert subprocess.run(command, capture_output=True).returncode != 0


def test_copies_are_called_by_their_ends():
    """CUpti_ActivityMemcpyKind in cupti_activity.h, from 1 on; A is a CUDA array, P another GPU."""
    ends = ["HtoD", "DtoH", "HtoA", "AtoH", "AtoA", "AtoD", "DtoA", "DtoD", "HtoH", "PtoP"]
    assert dict(enumerate(ends, 1)) == trace._COPIES


def test_work_that_ends_before_it_begins_is_left_out():
    """CUPTI gives it an end of 0; one before its start is none either."""
    kernels = [(10, 0, 1, "k"), (0, 0, 2, "k"), (10, 5, 3, "k"), (10, 10, 4, "k")]
    works, calls = trace.read([(trace.cupti.KERNEL, one) for one in kernels], None)
    assert [(one.start, one.end) for one in works] == [(10, 10)] and calls == []
