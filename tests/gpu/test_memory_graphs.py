"""CUDA graphs: a launch that is missing or a wait that is left out is noticed; captures that fail leave their stream usable."""

import random
import time

import numpy as np
import pytest

import cudatut as ct
from cudatut.book.memory.graphs import calls

N = 100


@pytest.fixture
def stream():
    pytest.importorskip("cuda.bindings")
    import pycuda.driver as cuda

    ct.activate()
    return cuda.Stream()


def mixing(x, numbers, stream):
    mix = ct.Kernel("memory/graphs/graphs.cu", "mix")

    def work():
        for k in numbers:
            mix(x, k, N, grid=1, block=128, stream=stream)

    return work


def mixed(numbers, values=None):
    values = np.zeros(N, "uint32") if values is None else values
    for k in numbers:
        values = np.uint32(1664525) * values + np.uint32(k)
    return values


def zeros():
    x = ct.to_device(np.zeros(N, "uint32"))
    ct.synchronize()
    return x


def test_a_graph_is_right_a_thousand_times_with_delays(stream):
    x, chance, numbers = zeros(), random.Random(1), range(7)
    graph = calls.captured(stream, mixing(x, numbers, stream))
    ready = calls.call("cuGraphInstantiate", graph, 0)
    expected = np.zeros(N, "uint32")
    for _ in range(1000):
        calls.call("cuGraphLaunch", ready, calls.handle(stream))
        if chance.random() < 0.1:
            time.sleep(chance.random() * 1e-3)
        expected = mixed(numbers, expected)
    stream.synchronize()
    ct.check(x, expected, name="1000 launches")


@pytest.mark.parametrize("numbers", [(0, 1, 2, 4), (0, 1, 3, 2, 4), (0, 1, 2, 3, 3)])
def test_a_chain_with_another_launch_gives_another_result(stream, numbers):
    x = zeros()
    graph = calls.captured(stream, mixing(x, numbers, stream))
    calls.call("cuGraphLaunch", calls.call("cuGraphInstantiate", graph, 0), calls.handle(stream))
    stream.synchronize()
    with pytest.raises(ct.CheckError):
        ct.check(x, mixed(range(5)), name="the chain of five")


def test_what_work_raises_comes_out_and_the_stream_goes_on(stream):
    x = zeros()

    def fails():
        mixing(x, [1], stream)()
        raise KeyError("planted")

    with pytest.raises(KeyError, match="planted"):
        calls.captured(stream, fails)
    mixing(x, [5], stream)()
    stream.synchronize()
    ct.check(x, mixed([5]), name="launched after a failed capture, once")


def test_a_call_that_fails_says_which_and_why(stream):
    with pytest.raises(ct.CudatutError, match="cuStreamEndCapture: CUDA_ERROR_"):
        calls.call("cuStreamEndCapture", calls.handle(stream))


def test_a_stream_that_does_not_come_back_is_refused(stream):
    import pycuda.driver as cuda

    x, other, forked = zeros(), cuda.Stream(), cuda.Event()

    def forks():
        mixing(x, [1], stream)()
        forked.record(stream)
        other.wait_for_event(forked)
        mixing(x, [2], other)()

    with pytest.raises(ct.CudatutError, match="UNJOINED"):
        calls.captured(stream, forks)


@pytest.mark.parametrize("wait", [1, 0])
def test_a_wait_that_is_left_out_is_noticed(stream, wait):
    from cudatut.book.measure.graphs import Graph

    if ct.device().compute_capability < (9, 0):
        pytest.skip("launches overlap from sm_90 on")
    source = "memory/graphs/programmatic.cu"
    late = ct.Kernel(source, "late")
    passing = ct.Kernel(source, "passing", defines={"WAIT": wait})
    x, out = (ct.to_device(np.zeros(32, "int32")) for _ in "ab")
    ct.synchronize()

    def work():
        late(x, 7, 200_000, grid=1, block=32, stream=stream)
        passing(x, out, grid=1, block=32, stream=stream)

    graph = Graph(work, stream, overlap=True)
    graph.launch()
    stream.synchronize()
    if wait:
        ct.check(out, np.full(32, 7, "int32"), name="it waits")
    else:
        with pytest.raises(ct.CheckError):
            ct.check(out, np.full(32, 7, "int32"), name="it does not wait")


def test_a_loop_that_never_ends_ends(stream):
    """`decide` has a limit: here `changed` is set again in every round."""
    graph = calls.call("cuGraphCreate", 0)
    again = calls.condition(graph, 1)
    body = calls.add_conditional(graph, [], "WHILE", again)
    changed, rounds = (ct.to_device(np.zeros(1, "int32")) for _ in "ab")
    mix = ct.Kernel("memory/graphs/graphs.cu", "mix")
    decide = ct.Kernel("memory/graphs/conditional.cu", "decide")
    ct.synchronize()

    def work():
        mix(changed.view("uint32"), 1, 1, grid=1, block=1, stream=stream)
        decide(int(again), changed, rounds, 25, grid=1, block=1, stream=stream)

    calls.captured(stream, work, into=body)
    calls.call("cuGraphLaunch", calls.call("cuGraphInstantiate", graph, 0), calls.handle(stream))
    stream.synchronize()
    ct.check(rounds, np.array([25]), name="rounds")
