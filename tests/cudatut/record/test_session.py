"""What a recording says of where it was made, and how its kernel keeps what is printed in order."""

import re
import sys
from collections import defaultdict
from functools import partial
from importlib import metadata
from types import ModuleType, SimpleNamespace

import pytest

from cudatut.errors import CudatutError, NoGpuError, ToolMissing
from cudatut.fingerprint import ran
from cudatut.gpu import device, nvcc, rivals
from cudatut.record import session


def test_the_first_installed_package_tells_its_version(monkeypatch):
    versions = {"cupy-cuda12x": "12.3", "cupy": "1.0"}

    def version(name):
        if name not in versions:
            raise metadata.PackageNotFoundError(name)
        return versions[name]

    monkeypatch.setattr(session.metadata, "version", version)
    assert session._version("cupy-cuda13x", "cupy-cuda12x", "cupy") == "12.3"
    assert session._version("nothing") is None


def test_the_toolchain_names_what_is_here_and_none_for_what_is_not(monkeypatch):
    numpy = pytest.importorskip("numpy")
    found = session._toolchain()
    assert found["numpy"] == numpy.__version__
    assert re.fullmatch(r"\d+\.\d+\.\d+", found["python"])
    assert sys.version.startswith(found["python"])
    assert set(found) == {
        "cuda", "nvcc", "pycuda", "python", "numpy", "cupy",
    }  # fmt: skip


def test_the_toolchain_of_a_machine_that_has_everything(monkeypatch):
    driver = ModuleType("pycuda.driver")
    driver.get_version = lambda: (12, 9, 1)
    pycuda = ModuleType("pycuda")
    pycuda.driver = driver
    monkeypatch.setitem(sys.modules, "pycuda", pycuda)
    monkeypatch.setitem(sys.modules, "pycuda.driver", driver)
    monkeypatch.setattr(nvcc, "find_nvcc", lambda: "/cuda/bin/nvcc")
    monkeypatch.setattr(nvcc, "nvcc_version", lambda path: f"that of {path}")
    versions = {"pycuda": "2026.1", "numpy": "2.5", "cupy-cuda12x": "14.1", "cupy": "1"}
    monkeypatch.setattr(
        session,
        "_version",
        lambda *names: next(versions[name] for name in names if name in versions),
    )
    python = ".".join(map(str, sys.version_info[:3]))
    assert session._toolchain() == {
        "cuda": "12.9", "nvcc": "that of /cuda/bin/nvcc", "pycuda": "2026.1",
        "python": python, "numpy": "2.5", "cupy": "14.1",
    }  # fmt: skip


def test_the_toolchain_of_a_machine_without_cuda(monkeypatch):
    def missing():
        raise ToolMissing("no nvcc")

    monkeypatch.setitem(sys.modules, "pycuda.driver", None)
    monkeypatch.setattr(nvcc, "find_nvcc", missing)
    found = session._toolchain()
    assert found["cuda"] is None and found["nvcc"] is None


def test_a_gpu_is_told_by_its_facts_and_none_where_there_is_none(monkeypatch):
    gpu = SimpleNamespace(
        name="NVIDIA Test",
        compute_capability=(10, 3),
        memory_bytes=80,
        sm_count=132,
        driver_version="580.1",
    )
    monkeypatch.setattr(device, "device", lambda: gpu)
    assert session._gpu() == {
        "name": "NVIDIA Test", "compute_capability": "10.3", "memory_bytes": 80,
        "sm_count": 132, "driver": "580.1",
    }  # fmt: skip

    def none():
        raise NoGpuError("no driver")

    monkeypatch.setattr(device, "device", none)
    assert session._gpu() is None


def test_rivals_are_told_only_where_they_were_measured(monkeypatch):
    monkeypatch.setattr(rivals, "versions", lambda: {"cublas": "13"})
    monkeypatch.setattr(rivals, "kernels", lambda: {"sgemm": ["k"]})
    monkeypatch.setitem(sys.modules, rivals.__name__, rivals)
    assert session._rivals() == {"versions": {"cublas": "13"}, "kernels": {"sgemm": ["k"]}}
    monkeypatch.delitem(sys.modules, rivals.__name__)
    assert session._rivals() == {}


@pytest.fixture
def shell(monkeypatch):
    """IPython's, with this extension; `shown` is what it was given to display."""
    IPython = pytest.importorskip("IPython")
    one = SimpleNamespace(extension_manager=SimpleNamespace(loaded={session.__name__}), shown=[])
    monkeypatch.setattr(IPython, "get_ipython", lambda: one)
    monkeypatch.setattr(
        sys.modules["IPython.display"], "display", lambda data, **how: one.shown.append((data, how))
    )
    return one


def test_the_report_of_a_session(shell, monkeypatch):
    found = {"files": {"a/x.py": "meaning"}, "kernels": [{"name": "k"}], "used": ["timing"]}
    monkeypatch.setattr(ran, "report", lambda: found)
    for part in ("gpu", "toolchain", "rivals"):
        monkeypatch.setattr(session, f"_{part}", lambda part=part: {"told": part})
    session.session_report()
    ((data, how),) = shell.shown
    said = {part: {"told": part} for part in ("gpu", "toolchain", "rivals")}
    assert data[session.MIME] == found | said and "text/plain" in data
    assert how == {"raw": True}


def test_without_its_extension_a_kernel_reports_nothing(shell):
    shell.extension_manager.loaded = {"another"}
    with pytest.raises(CudatutError, match=f"did not load the extension {session.__name__}"):
        session.session_report()
    assert shell.shown == []


# --- the order of what is printed --------------------------------------------------------------------


class Printing:
    """A process with ipykernel's streams: what was shown, in order, as (name, text); Python's and C's hold some back."""

    def __init__(self, monkeypatch):
        self.shown, self.held = [], defaultdict(str)
        self.files = {1: b"before ", 2: b""}  # as the extension finds them
        self.buffered = b""  # C's
        self.registered = {}
        self.stdout, self.stderr = (
            SimpleNamespace(write=partial(self.write, name), flush=partial(self.flush, name))
            for name in ("stdout", "stderr")
        )
        monkeypatch.setattr(session, "sys", self)
        monkeypatch.setattr(session, "os", self)
        monkeypatch.setattr(session, "ctypes", SimpleNamespace(CDLL=lambda name: self))
        session.load_ipython_extension(SimpleNamespace(events=self))

    def write(self, name, text):
        self.held[name] += text
        return len(text)

    def flush(self, name):
        if text := self.held.pop(name, ""):
            self.shown.append((name, text))

    def printf(self, data):
        self.buffered += data

    def child(self, descriptor, data):
        """What a process that was started writes."""
        self.files[descriptor] += data

    def end_of_cell(self):
        self.registered["post_run_cell"]()
        for name in ("stdout", "stderr"):
            self.flush(name)
        return self.shown

    # What the extension asks of `os` (`sys` has the streams), of C's library and of IPython's events.

    def fstat(self, descriptor):
        return SimpleNamespace(st_size=len(self.files[descriptor]))

    def pread(self, descriptor, count, offset):
        return self.files[descriptor][offset : offset + count]

    def fflush(self, stream):
        self.files[1] += self.buffered
        self.buffered = b""

    def register(self, event, function):
        self.registered[event] = function


@pytest.fixture
def printing(monkeypatch):
    return Printing(monkeypatch)


def test_what_c_prints_stands_before_what_python_prints_after_it(printing):
    printing.printf(b"one ")
    assert printing.stdout.write("two ") == 4
    printing.printf(b"three ")
    assert printing.stdout.write("four ") == 5
    printing.printf(b"five")
    assert printing.end_of_cell() == [("stdout", "one two three four five")]


def test_what_python_sends_brings_what_c_has_printed(printing):
    printing.printf(b"one")
    printing.stdout.flush()
    assert printing.shown == [("stdout", "one")]


def test_both_streams_in_the_order_of_what_was_printed(printing):
    """Each by itself would be shown in one piece, whichever of them is sent first."""
    printing.stdout.write("a")
    printing.stdout.write("b")
    printing.stderr.write("c")
    printing.child(2, b"d")
    printing.stderr.write("e")
    printing.stdout.write("f")
    printing.child(2, b"g")
    printing.stderr.write("h")
    printing.printf(b"i")
    assert printing.end_of_cell() == [
        ("stdout", "ab"), ("stderr", "cde"), ("stdout", "f"), ("stderr", "gh"), ("stdout", "i"),
    ]  # fmt: skip


def test_a_character_that_comes_in_two_pieces_and_one_that_is_none(printing):
    kernel = "核".encode()
    printing.printf(kernel[:2])
    printing.end_of_cell()
    printing.printf(kernel[2:] + b"\xff.")
    assert "".join(text for _, text in printing.end_of_cell()) == "核\N{REPLACEMENT CHARACTER}."
