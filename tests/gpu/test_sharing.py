"""Sharing a real GPU: no MPS daemon is left after a planted failure, work that is counted, and SMs of one's own."""

import ctypes
import time

import numpy as np
import pytest

import cudatut as ct
from cudatut.book.memory.sharing import clients, daemon

pytestmark = pytest.mark.xdist_group("mps")  # the tests that start a daemon run one after the other


class Planted(Exception):
    pass


def served():
    """A daemon, or a test that is skipped with what the machine says."""
    try:
        with daemon.serving() as here:
            clients.calibrated(1, here.env)
            if not here.ask("get_server_list"):
                raise daemon.Refused("no server was started")
    except (daemon.Refused, clients.WorkerError) as error:
        pytest.skip(f"no MPS here: {error}")
    return daemon.serving()


def gone(pids: list[int], limit_s: float = 10) -> bool:
    give_up = time.monotonic() + limit_s
    while any(map(daemon.running, pids)) and time.monotonic() < give_up:
        time.sleep(0.05)
    return not any(map(daemon.running, pids))


def test_no_daemon_is_left_after_a_failure():
    with pytest.raises(Planted), served() as here:
        clients.together([clients.Job("count", blocks=8, amount=1000)], env=here.env)
        pids = here.pids()
        assert len(pids) >= 2 and all(map(daemon.running, pids))  # the daemon and a server
        raise Planted
    assert gone(pids)


def test_no_daemon_is_left_after_a_fault_of_its_clients():
    with served() as here:
        jobs = [clients.Job("count", 8, 1000), clients.Job("stray", amount=2)]
        outcomes = clients.together(jobs, env=here.env)
        assert outcomes[1].error
        pids = here.pids()
    assert gone(pids)


def test_no_daemon_is_left_when_its_clients_are_too_late():
    with served() as here:
        with pytest.raises(clients.WorkerError, match="in time"):
            slow = clients.Job("spin", 1, 5_000_000_000)
            clients.together([slow], env=here.env, limit_s=4)
        pids = here.pids()
    assert gone(pids, 20)


def test_a_process_of_its_own_knows_nothing_of_the_daemon():
    with served() as here:
        clients.calibrated(1)
        assert not here.ask("get_server_list")


def test_a_missing_step_is_noticed(monkeypatch):
    (right,) = clients.together([clients.Job("count", 8, 1000)])
    assert not right.error and right.rounds[0]["ms"] > 0
    count = ct.Kernel(clients.FILE, "count")
    out = ct.empty(1000, "uint32")
    count(out, 1000, 999, grid=1, block=1024)
    assert not np.array_equal(out.get(), clients.expected(1000, 1000))
    assert np.array_equal(out.get(), clients.expected(1000, 999))


def test_a_fault_is_told_by_its_name():
    (one,) = clients.together([clients.Job("stray", amount=2)])
    assert one.error == "CUDA_ERROR_ILLEGAL_ADDRESS"


def test_green_contexts_share_no_sm_and_give_them_back():
    pytest.importorskip("cuda.bindings")
    from cudatut.book.memory.sharing import green_calls as calls

    where = calls.loaded(ct.Kernel(clients.FILE, "where"))
    types = ctypes.c_void_p, ctypes.c_longlong
    for _ in range(3):  # what is not given back would be missing soon
        green, ran = calls.Green(8), []
        try:
            for stream in (green.small, green.rest):
                out = ct.to_device(np.full(16 * ct.device().sm_count, -1, "int32"))
                ct.synchronize()
                values = calls.address(out), 50_000
                calls.launch(where, out.size, 32, stream, values, types)
                calls.call("cuStreamSynchronize", stream)
                ran.append(set(out.get().tolist()))
        finally:
            green.close()
        assert not ran[0] & ran[1] and -1 not in ran[0] | ran[1]
        assert len(ran[0]) <= green.small_sms and len(ran[1]) <= green.rest_sms


def test_more_sms_than_there_are_is_refused():
    pytest.importorskip("cuda.bindings")
    from cudatut.book.memory.sharing import green_calls as calls

    with pytest.raises(ct.CudatutError, match="cuDevSmResourceSplitByCount: CUDA_ERROR"):
        calls.Green(ct.device().sm_count + 1)
