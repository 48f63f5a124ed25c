"""What an example may require of a GPU, and what is said where there is none."""

import sys
from types import SimpleNamespace

import pytest

import cudatut as ct
from cudatut.gpu import device


def test_no_gpu_says_what_was_looked_for(monkeypatch):
    monkeypatch.setattr(device, "installed_driver", lambda: None)
    with pytest.raises(ct.NoGpuError, match=r"libcuda\.so\.1|nvcuda\.dll"):
        device.activate.__wrapped__()


def test_the_driver_is_a_library_or_not_there(monkeypatch):
    libraries = {device.DRIVER_LIBRARY: "the library"}
    monkeypatch.setattr(device.ctypes, "CDLL", libraries.__getitem__)
    assert device.installed_driver.__wrapped__() == "the library"

    def missing(name):
        raise OSError(name)

    monkeypatch.setattr(device.ctypes, "CDLL", missing)
    assert device.installed_driver.__wrapped__() is None


def test_without_pycuda_a_gpu_is_of_no_use(monkeypatch):
    monkeypatch.setattr(device, "why_no_gpu", lambda: None)
    monkeypatch.setattr(device.tool, "running", lambda: None)
    monkeypatch.setitem(sys.modules, "pycuda.autoprimaryctx", None)
    with pytest.raises(ct.NoGpuError, match="PyCUDA"):
        device.activate.__wrapped__()


def test_a_driver_that_does_not_count_shows_no_gpu(monkeypatch):
    driver = SimpleNamespace(cuInit=lambda flags: 0, cuDeviceGetCount=lambda count: 3)
    monkeypatch.setattr(device, "installed_driver", lambda: driver)
    assert device.gpu_count() == 0 and device.why_no_gpu() is not None


@pytest.mark.parametrize(("arch", "able"), [("sm_80", True), ("sm_90a", True), ("sm_100", False)])
def test_a_program_stops_on_a_gpu_that_cannot_run_it(monkeypatch, arch, able):
    gpu = SimpleNamespace(compute_capability=(9, 0), name="NVIDIA Test", arch="sm_90")
    monkeypatch.setattr(device, "device", lambda: gpu)
    if able:
        device.require(arch)
    else:
        with pytest.raises(ct.UnsupportedGpuError, match="sm_100.*NVIDIA Test.*sm_90"):
            device.require(arch)


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
    monkeypatch.setitem(sys.modules, "pycuda", SimpleNamespace(autoprimaryctx=None))
    monkeypatch.setitem(sys.modules, "pycuda.autoprimaryctx", SimpleNamespace())
    device.activate.__wrapped__()
    assert flags == ([(0, 4)] if waits_without_a_core else [])  # CU_CTX_SCHED_BLOCKING_SYNC


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


def test_newer_is_enough_and_a_suffix_is_not_older_or_newer():
    for capability, requires, answer in (
        ((9, 0), "sm_90", True),
        ((8, 9), "sm_89", True),
        ((8, 9), "sm_90", False),
        ((10, 3), "sm_100a", False),
        ((10, 0), "sm_100f", True),
    ):
        assert device.supports(capability, requires) is answer


@pytest.mark.parametrize(
    ("said", "version"), [(13010, (13, 1)), (12040, (12, 4)), (11080, (11, 8)), (13090, (13, 9))]
)
def test_the_version_that_the_driver_runs(monkeypatch, said, version):
    class Driver:
        status = 0

        def cuDriverGetVersion(self, number):
            number._obj.value = said
            return self.status

    monkeypatch.setattr(device, "installed_driver", Driver)
    assert device.driver_cuda() == version
    monkeypatch.setattr(Driver, "status", 3)
    assert device.driver_cuda() is None
    monkeypatch.setattr(device, "installed_driver", lambda: None)
    assert device.driver_cuda() is None


@pytest.mark.skipif(sys.platform != "linux", reason="the name of Linux")
def test_the_library_of_the_driver_on_linux():
    assert device.DRIVER_LIBRARY == "libcuda.so.1"


@pytest.fixture
def described(monkeypatch):
    """A GPU each of whose attributes has a value of its own; and whether it was made current before it was asked."""
    asked, names = [], {}

    class Attribute:
        def __getattr__(self, name):
            return name

    def attribute(name):
        assert asked[:1] == ["activate"]
        return names.setdefault(name, 100 + len(names))

    gpu = SimpleNamespace(
        name=lambda: "NVIDIA Test", compute_capability=lambda: (9, 0), total_memory=lambda: 80 << 30,
        get_attribute=attribute, get_attributes=lambda: {"WARP_SIZE": 32, "CLOCK_RATE": 7},
    )  # fmt: skip
    context = SimpleNamespace(get_device=lambda: gpu, synchronize=lambda: asked.append("wait"))
    driver = SimpleNamespace(Context=context, device_attribute=Attribute())

    class Driver:
        def cuCtxGetDevice(self, handle):
            handle._obj.value = 3

        def cuDeviceGetAttribute(self, value, number, handle):
            assert handle.value == 3
            value._obj.value = 1000 + number
            return 0

    monkeypatch.setattr(device, "activate", lambda: asked.append("activate"))
    monkeypatch.setattr(device, "installed_driver", Driver)
    monkeypatch.setattr(device, "_kernel_driver_version", lambda: "580.1")
    monkeypatch.setitem(sys.modules, "pycuda", SimpleNamespace(driver=driver))
    monkeypatch.setitem(sys.modules, "pycuda.driver", driver)
    return asked, names


def test_what_a_gpu_is_comes_from_its_attributes(described):
    _, names = described
    gpu = device.device.__wrapped__()
    assert (gpu.name, gpu.arch, gpu.memory_bytes, gpu.driver_version) == (
        "NVIDIA Test", "sm_90", 80 << 30, "580.1",
    )  # fmt: skip
    for field, name in {
        "sm_count": "MULTIPROCESSOR_COUNT",
        "l2_bytes": "L2_CACHE_SIZE",
        "warp_size": "WARP_SIZE",
        "max_threads_per_block": "MAX_THREADS_PER_BLOCK",
        "max_threads_per_sm": "MAX_THREADS_PER_MULTIPROCESSOR",
        "shared_per_block": "MAX_SHARED_MEMORY_PER_BLOCK",
        "shared_per_sm": "MAX_SHARED_MEMORY_PER_MULTIPROCESSOR",
        "registers_per_sm": "MAX_REGISTERS_PER_MULTIPROCESSOR",
        "clock_khz": "CLOCK_RATE",
        "memory_clock_khz": "MEMORY_CLOCK_RATE",
        "bus_bits": "GLOBAL_MEMORY_BUS_WIDTH",
    }.items():
        assert getattr(gpu, field) == names[name], field
    for field, name in (("max_block", "MAX_BLOCK_DIM"), ("max_grid", "MAX_GRID_DIM")):
        assert getattr(gpu, field) == tuple(names[f"{name}_{axis}"] for axis in "XYZ")
    # From cuda.h, CU_DEVICE_ATTRIBUTE_MAX_BLOCKS_PER_MULTIPROCESSOR and _MAX_SHARED_MEMORY_PER_BLOCK_OPTIN.
    assert (gpu.max_blocks_per_sm, gpu.shared_per_block_optin) == (1106, 1097)


def test_all_attributes_are_told_in_order(described):
    assert list(device.attributes.__wrapped__().items()) == [("CLOCK_RATE", 7), ("WARP_SIZE", 32)]
    device.synchronize()
    assert described[0][-2:] == ["activate", "wait"]


@pytest.mark.parametrize(
    ("version", "cupy", "trace"),
    [((12, 9), "cupy-cuda12x", "trace12"), ((13, 0), "cupy-cuda13x", "trace13"), ((11, 8), None, "trace12"), (None, None, "trace13")],
)  # fmt: skip
def test_packages_that_fit_the_driver(monkeypatch, version, cupy, trace):
    monkeypatch.setattr(device, "driver_cuda", lambda: version)
    assert (device.cupy_package(), device.trace_extra()) == (cupy, trace)


@pytest.mark.parametrize(
    ("init", "asked", "said"), [(0, 0, "580.159.04"), (3, 0, "unknown"), (0, 3, "unknown")]
)
def test_the_version_of_the_kernels_driver(monkeypatch, init, asked, said):
    class Nvml:
        def nvmlInit_v2(self):
            return init

        def nvmlSystemGetDriverVersion(self, text, size):
            assert size == len(text) == 80
            text.value = b"580.159.04"
            return asked

    asked_for = []
    monkeypatch.setattr(device.ctypes, "CDLL", lambda name: asked_for.append(name) or Nvml())
    assert device._kernel_driver_version() == said
    assert asked_for == ["nvml.dll" if sys.platform == "win32" else "libnvidia-ml.so.1"]

    def missing(name):
        raise OSError(name)

    monkeypatch.setattr(device.ctypes, "CDLL", missing)
    assert device._kernel_driver_version() == "unknown"


def test_the_name_of_a_gpu_has_the_room_that_the_driver_is_told(monkeypatch):
    class Driver:
        def cuDeviceGet(self, gpu, number):
            gpu._obj.value = 10 + number

        def cuDeviceGetName(self, name, size, gpu):
            assert size == len(name) and gpu.value == 12
            name.value = b"NVIDIA Test"

        def cuDeviceGetAttribute(self, value, number, gpu):
            value._obj.value = {75: 9, 76: 0}[number]
            return 0

    monkeypatch.setattr(device, "installed_driver", Driver)
    assert device.name_and_capability(2) == ("NVIDIA Test", (9, 0))
