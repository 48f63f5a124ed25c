"""Processes that use one GPU at the same time, and how long they take.

    steps, sms = calibrated(50)          # so many steps take 50 ms; the SMs
    job = Job("count", blocks=sms // 4, amount=steps)
    took_ms({"alone": [job], "two": [job, job]})  # one process, and two

All of a plan begin at the same moment, in each round anew. The process that asks does not
use the GPU itself. Every wait has a limit, and no process is left.
"""

import ctypes
import json
import subprocess
import sys
import tempfile
import time
from collections.abc import Sequence
from dataclasses import asdict, dataclass
from itertools import zip_longest
from pathlib import Path
from typing import Any

import numpy as np

import cudatut as ct
from cudatut.gpu.device import installed_driver

FILE, BLOCK = "memory/sharing/sharing.cu", 1024
COMMAND = sys.executable, "-m", __name__  # of a process that works
A, C, M = 1664525, 1013904223, 2**32  # a step: v * A + C, modulo M


@dataclass(frozen=True)
class Job:
    """What a process launches in a round, in each of its streams.

    kernel: one of sharing.cu. amount: of steps (count, beat) or ns (spin,
    where). blocks: of 1024 threads; of beat, the number of its notes.
    """

    kernel: str
    blocks: int = 1
    amount: int = 1
    launches: int = 1
    streams: int = 1


@dataclass(frozen=True)
class Outcome:
    """What became of a process: what each of its rounds gave, or the error."""

    rounds: list[dict[str, Any]]
    error: str = ""


class WorkerError(ct.CudatutError):
    """A process failed, or was not done in time."""


# --- the process that asks --------------------------------------------------


# --8<-- [start:together]
def together(
    *plans: Sequence[Job],
    rounds: int = 1,
    env: dict[str, str] | None = None,
    limit_s: float = 60,
) -> list[Outcome]:
    """Run each job of a plan in a process of its own, `rounds` times; then the
    next plan, in the same processes. env: variables added to theirs.

    Raises WorkerError when they are not done in time; none is left then.
    """
    limit_s *= 4 if ct.tool.running() else 1
    give_up = time.monotonic() + limit_s
    started: list[subprocess.Popen[str]] = []
    with tempfile.TemporaryDirectory(prefix="cudatut-") as folder:
        try:
            for k, jobs in enumerate(zip_longest(*plans)):
                started.append(_start(jobs, folder, k, rounds, env, limit_s))
            for number in range(len(plans) * rounds):
                _wait_until_ready(started, folder, number, give_up)
                _write(folder, f"go-{number}", f"{time.monotonic() + 0.02}")
            left_s = give_up - time.monotonic()
            return [_outcome(one, max(left_s, 0.1)) for one in started]
        finally:
            for one in started:
                one.kill()  # nothing happens to one that has ended
                one.communicate()


# --8<-- [end:together]


def without_error(outcome: Outcome) -> list[dict[str, Any]]:
    """Its rounds. Raises WorkerError with its error, if there is one."""
    if outcome.error:
        raise WorkerError(outcome.error)
    return outcome.rounds


def took_ms(
    plans: dict[str, Sequence[Job]],
    rounds: int = 5,
    env: dict[str, str] | None = None,
    limit_s: float = 60,
) -> dict[str, list[float]]:
    """Of each plan: milliseconds from the common beginning until the last
    process is done, by round; a first round is not counted. Raises WorkerError.
    """
    outcomes = together(
        *plans.values(), rounds=1 + rounds, env=env, limit_s=limit_s
    )
    by_round = zip(*map(without_error, outcomes), strict=True)
    last = [max(one["ms"] for one in same) for same in by_round]
    return {
        name: last[k * (1 + rounds) :][1 : 1 + rounds]
        for k, name in enumerate(plans)
    }


def calibrated(
    ms: float, env: dict[str, str] | None = None, tried: int = 2_000_000
) -> tuple[int, int]:
    """After how many steps `count` has taken so long, with a block on each of
    some SMs; and how many SMs there are.
    """
    plan = [Job("count", blocks=8, amount=tried)]
    (outcome,) = together(plan, rounds=3, env=env)
    rounds = without_error(outcome)
    took = min(one["ms"] for one in rounds)
    return max(int(tried * ms / took), 1), rounds[0]["sms"]


def _start(jobs, folder, k, rounds, env, limit_s):
    """jobs: one of each plan; None where this process has nothing to do."""
    path = ct.tool.environment()["PYTHONPATH"]
    told = [job and asdict(job) for job in jobs]
    told = json.dumps([told, folder, k, rounds, limit_s])
    return subprocess.Popen(
        [*COMMAND, told],
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        # Without a tool that watches this process: it would wait for it.
        env={**ct.tool.environment_before(), "PYTHONPATH": path, **(env or {})},
    )


def _write(folder: str, name: str, text: str = "") -> None:
    """A file that is there whole, or not at all."""
    Path(folder, f".{name}").write_text(text, encoding="utf-8")
    Path(folder, f".{name}").rename(Path(folder, name))


def _wait_until_ready(started, folder, number, give_up) -> None:
    """Until each process is ready for this round, or has ended."""
    while not all(
        Path(folder, f"ready-{number}-{k}").exists() or one.poll() is not None
        for k, one in enumerate(started)
    ):
        if time.monotonic() > give_up:
            raise WorkerError("a process did not get ready in time")
        time.sleep(0.001)


def _outcome(process: subprocess.Popen, left_s: float) -> Outcome:
    try:
        said, errors = process.communicate(timeout=left_s)
    except subprocess.TimeoutExpired:
        raise WorkerError("a process was not done in time") from None
    lines = [line for line in said.splitlines() if line.startswith("{")]
    if not lines:
        last = errors.strip().splitlines()[-1:] or ["no word"]
        return Outcome([], last[0])
    return Outcome(**json.loads(lines[-1]))


# --- the process that works -------------------------------------------------


# --8<-- [start:leap]
def leap(steps: int) -> tuple[int, int]:
    """Many steps as one, v -> v * a + c: by squares, in few operations."""
    a, c, a2, c2 = 1, 0, A, C
    while steps:
        if steps % 2:
            a, c = a * a2 % M, (c * a2 + c2) % M
        a2, c2, steps = a2 * a2 % M, (c2 * a2 + c2) % M, steps // 2
    return a, c


def expected(n: int, steps: int) -> np.ndarray:
    """What `count` leaves in its n elements."""
    a, c = leap(steps)
    return (np.arange(n, dtype="uint64") * a + c).astype("uint32")


# --8<-- [end:leap]


def pieces(times: Sequence[int], gap_ns: int = 100_000) -> list[list[int]]:
    """[begin, end] of each stretch of these times without a larger gap."""
    times = np.asarray(times)
    breaks = np.flatnonzero(np.diff(times) > gap_ns)
    begins = times[np.concatenate([[0], breaks + 1])]
    ends = times[np.concatenate([breaks, [times.size - 1]])]
    return [[int(begin), int(end)] for begin, end in zip(begins, ends)]


class _Work:
    """A job on the GPU: `launch` it in all streams, then ask for `found`."""

    def __init__(self, job: Job):
        import pycuda.driver as cuda

        self.job, self.sms = job, ct.device().sm_count
        self.kernel = ct.Kernel(FILE, job.kernel)
        self.streams = [cuda.Stream() for _ in range(job.streams)]
        # Made before the first round, for an allocation waits for the GPU.
        count, dtype = {
            "count": (job.blocks * BLOCK, "uint32"),
            "beat": (job.blocks, "int64"),
            "where": (job.blocks, "int32"),
        }.get(job.kernel, (1, "int32"))
        self.arrays = [
            ct.to_device(np.zeros(count, dtype)) for _ in self.streams
        ]
        self.launch(amount=1, launches=1)

    def launch(self, amount: int, launches: int) -> None:
        kernel, job = self.kernel, self.job
        shape = {"grid": job.blocks, "block": BLOCK}
        for _ in range(launches):
            for stream, array in zip(self.streams, self.arrays):
                if job.kernel == "count":
                    kernel(array, array.size, amount, **shape, stream=stream)
                elif job.kernel == "spin":
                    kernel(amount, **shape, stream=stream)
                elif job.kernel == "where":
                    kernel(array, amount, **shape, stream=stream)
                elif job.kernel == "beat":
                    one = {"grid": 1, "block": 1}
                    kernel(array, array.size, amount, **one, stream=stream)
                elif amount > 1:  # stray: not while it warms up
                    kernel(0, grid=1, block=1, stream=stream)

    def wait(self, give_up: float) -> None:
        while not all(stream.is_done() for stream in self.streams):
            if time.monotonic() > give_up:
                raise TimeoutError("the GPU has not finished")

    def found(self) -> dict[str, Any]:
        job, first = self.job, self.arrays[0].get()
        if job.kernel == "count":
            want = expected(first.size, job.amount)
            if not all(np.array_equal(one.get(), want) for one in self.arrays):
                raise ct.CheckError("a step is missing")
        if job.kernel == "beat":
            return {"pieces": pieces(first)}
        if job.kernel == "where":
            return {"where": sorted({int(sm) for sm in first})}
        return {}


def _take_part(jobs, folder, k, rounds, limit_s) -> list[dict[str, Any]]:
    give_up = time.monotonic() + limit_s
    works = [job and _Work(job) for job in jobs]
    for work in filter(None, works):
        work.wait(give_up)
    turns = [work for work in works for _ in range(rounds)]
    answers: list[dict[str, Any]] = []
    for number, work in enumerate(turns):
        _write(folder, f"ready-{number}-{k}")
        go = Path(folder, f"go-{number}")
        while not go.exists():
            if time.monotonic() > give_up:
                raise TimeoutError("nobody said that it may begin")
            time.sleep(0.001)
        begin = float(go.read_text(encoding="utf-8"))
        if work is None:
            answers.append({"ms": 0.0})
            continue
        while time.monotonic() < begin:
            pass
        work.launch(work.job.amount, work.job.launches)
        work.wait(give_up)
        ms = 1e3 * (time.monotonic() - begin)
        answers.append({"ms": ms, "sms": work.sms, **work.found()})
    return answers


def _kept() -> str:
    """The name of the error that the context has kept; "" if there is none."""
    driver, name = installed_driver(), ctypes.c_char_p()
    if driver is None or not (status := driver.cuCtxSynchronize()):
        return ""
    driver.cuGetErrorName(status, ctypes.byref(name))
    return (name.value or b"").decode()


def main(told: str) -> int:
    """The process that works: it says what it found, or the error."""
    jobs, folder, k, rounds, limit_s = json.loads(told)
    try:
        jobs = [job and Job(**job) for job in jobs]
        found = _take_part(jobs, folder, k, rounds, limit_s)
    except Exception as error:
        said = f"{type(error).__name__}: {error}"
        if not isinstance(error, TimeoutError):  # or this would wait, too
            said = _kept() or said
        print(json.dumps({"rounds": [], "error": said}), flush=True)
        return 1
    print(json.dumps({"rounds": found}), flush=True)
    return 0


if __name__ == "__main__":
    raise SystemExit(main(sys.argv[1]))
