"""Children with a context of their own."""

import subprocess

from cudatut.gpu import isolation


def test_a_child_has_more_time_while_others_share_the_gpu(monkeypatch):
    limits = []

    def run(command, timeout, **kwargs):
        limits.append(timeout)
        return subprocess.CompletedProcess(command, 0, "", "")

    monkeypatch.setattr(isolation.subprocess, "run", run)
    for running in ("", "memcheck"):
        monkeypatch.setenv("CUDATUT_TOOL", running)
        isolation.isolated("pass", timeout_s=10)
    assert limits == [10, 40]
