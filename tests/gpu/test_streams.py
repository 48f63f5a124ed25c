"""Orders between streams on a real GPU: what the trace tells of events, and races that are planted and noticed."""

import importlib.util
import time

import numpy as np
import pytest

import cudatut as ct

if importlib.util.find_spec("cupti") is None:
    pytest.skip("needs cupti-python", allow_module_level=True)

pytestmark = pytest.mark.xdist_group("profilers")  # of which the driver serves one at a time

FILE, N, LATE_NS = "memory/streams/streams.cu", 1000, 2_000_000


@pytest.fixture(scope="module")
def kernels():
    found = {name: ct.Kernel(FILE, name) for name in ("spin", "store_late", "copy_late")}
    x, y = (ct.to_device(np.zeros(N, "int32")) for _ in range(2))
    found["spin"](1, grid=1, block=1)  # the first launch of each takes longer
    found["store_late"](x, N, 1, 0, grid=1, block=256)
    found["copy_late"](x, y, N, 0, grid=1, block=256)
    ct.synchronize()
    return found


def run(kernels, a, b, event=False, log=None, value=7):
    """Stored late in stream a, copied at once in stream b; what was copied, in an array that held zeros."""
    import pycuda.driver as cuda

    x, y = (ct.to_device(np.zeros(N, "int32")) for _ in range(2))
    with order().watched() as seen:
        names = {None: order().DEFAULT}
        seen.does("store", names.get(a, "a"), writes="x")
        kernels["store_late"](x, N, value, LATE_NS, grid=1, block=256, stream=a)
        if event:
            b.wait_for_event(cuda.Event().record(a))
        seen.does("copy", names.get(b, "b"), reads="x", writes="y")
        kernels["copy_late"](x, y, N, 0, grid=1, block=256, stream=b)
    ct.synchronize()
    return y.get(), seen.commands


def order():
    from cudatut.book.measure import order

    return order


def stream(flags=0):
    import pycuda.driver as cuda

    return cuda.Stream(flags)


def test_a_missing_event_is_noticed_by_values_and_by_the_trace(kernels):
    copied, commands = run(kernels, stream(), stream())
    assert not copied.any()  # far too early
    assert order().races(commands) == [("store", "copy", "x")]
    copied, commands = run(kernels, stream(), stream(), event=True)
    assert (copied == 7).all()
    # Behind them comes the wait of whoever listened.
    assert [one.kind for one in commands][:4] == ["work", "record", "wait", "work"]
    assert order().races(commands) == [] and order().overtaken(commands) == 0


def test_the_default_stream_waits_for_blocking_streams_alone(kernels):
    copied, commands = run(kernels, stream(), None)
    assert (copied == 7).all()
    assert order().races(commands) == [] and order().overtaken(commands) == 0
    copied, commands = run(kernels, stream(1), None)
    assert not copied.any()
    assert order().races(commands, {"a"}) == [("store", "copy", "x")]
    # Told that the stream is a blocking one, the checker is wrong, and the trace shows it.
    assert order().races(commands) == [] and order().overtaken(commands) == 1


def test_a_copy_to_the_host_that_is_waited_for_orders_what_follows(kernels):
    import pycuda.driver as cuda

    x = ct.to_device(np.zeros(N, "int32"))
    a = stream()
    with order().watched() as log:
        log.does("store", "a", writes="x")
        kernels["store_late"](x, N, 7, LATE_NS, grid=1, block=256, stream=a)
        log.does("copy out", reads="x")
        cuda.memcpy_dtoh(np.empty(N, "int32"), x.gpudata)
        log.does("again", "free", writes="x")
        kernels["store_late"](x, N, 8, 0, grid=1, block=256, stream=stream(1))
    assert order().races(log.commands, {"free"}) == []


def test_work_that_nobody_named_is_refused(kernels):
    said = "named 0 kernels and copies, and the trace has 1"
    with pytest.raises(ValueError, match=said), order().watched():
        kernels["spin"](1000, grid=1, block=1)


def test_a_wait_has_a_limit(kernels):
    import pycuda.driver as cuda

    from cudatut.book.memory.streams import work

    kernels["spin"](300_000_000, grid=1, block=1)
    begin = time.monotonic()
    with pytest.raises(TimeoutError):
        work.wait([cuda.Event().record()], limit_s=0.05)
    assert time.monotonic() - begin < 0.25
    ct.synchronize()


def test_the_checker_finds_in_one_run_what_values_find_in_some(kernels):
    """As on the page, without the page: 100 random delays, each trace with the pair, each mended one without."""
    chance = np.random.default_rng(0)
    a, b = stream(), stream()
    for event in (False, True):
        for _ in range(100):
            kernels["spin"](int(chance.integers(1, 100_000)), grid=1, block=1, stream=b)
            ct.synchronize()
            copied, commands = run(kernels, a, b, event)
            assert bool(order().races(commands)) is not event
            assert not event or (copied == 7).all()
