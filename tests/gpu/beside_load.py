"""Tests that failed once beside other processes and passed alone, run many times beside load.

    python tests/gpu/beside_load.py warm --out /tmp/flaky
    python tests/gpu/beside_load.py cold --out /tmp/flaky
    python tests/gpu/beside_load.py cold --kept-by-pycuda --out /tmp/flaky

warm: one process for each candidate runs its tests fifty times, and the others of ten run tests of all parts meanwhile. cold:
ten processes begin the same tests at the same time, with nothing compiled, five times: so each test runs fifty times, too,
and the processes meet where they compile. --kept-by-pycuda: the same with PyCUDA's own cache, as it was until a cubin was
kept whole (`cudatut.gpu.cubins`).

Prints how often each test ran and failed, and what it said. Ends with 1 where one failed or ran less often than asked.
"""

import argparse
import os
import sys
import tempfile
import time
from collections import Counter
from pathlib import Path

import shards

CANDIDATES = {
    "norms": (
        *("test_llm_norms.py::test_rms_norm", "test_llm_norms.py::test_layer_norm"),
        *("test_llm_norms.py::test_add_rms_norm", "test_llm_norms.py::test_rows_apart"),
    ),
    "tiles": (
        *("test_sgemm.py::test_shared_tiles", "test_sgemm.py::test_every_tile_in_every_layout"),
        "test_sgemm.py::test_stream_k_pieces_that_end_anywhere",
    ),
    "fp8": ("test_tensor_fp8.py::test_whole_numbers_are_exact",),
}
LOAD = [*shards.SHARDS["gemm"], *shards.SHARDS["llm-rows"], *shards.SHARDS["tensor"]]


def files_of(names) -> list[str]:
    return sorted({f"tests/gpu/{name.partition('::')[0]}" for name in names})


def told(name: str, found: shards.Found, wanted: int) -> bool:
    """Print what a candidate's tests did; whether each ran often enough and never failed."""
    times = Counter(line["test"] for line in found.runs)
    failed = Counter(line["test"] for line in found.failed)
    least = min(times.values(), default=0)
    skipped = sum(line["outcome"] == "skipped" for line in found.runs)
    print(
        f"{name}: {len(times)} tests, each run {least} to {max(times.values(), default=0)} times "
        f"({skipped} skipped), {failed.total()} failures",
        flush=True,
    )
    for line in found.failed:
        print(f"FAILED {line['test']}\n    " + line.get("text", "")[-3000:].replace("\n", "\n    "))
    return least >= wanted and not failed


def warm(given) -> bool:
    """Each candidate in a process of its own, beside others that run until it is done."""
    until, good, waiting = time.monotonic() + given.limit, True, {}
    plan = {"files": LOAD, "seed": given.seed, "repeat": 1000}
    load = shards.Processes(plan, given.out, "load")
    for name in given.candidates:
        plan = {"names": CANDIDATES[name], "seed": given.seed, "batch": 1, "draw": given.tests}
        plan |= {"files": [], "repeat": given.times}
        waiting[name] = shards.Processes(plan, given.out, name, files=files_of(plan["names"]))
    try:
        for _ in range(given.jobs - len(waiting)):
            load.start()
        for one in waiting.values():
            one.start()
        while any(one.running for one in waiting.values()) and time.monotonic() < until:
            time.sleep(0.5)
            for one in (load, *waiting.values()):
                one.ended()
            while len(load.running) < given.jobs - len(waiting):
                load.start()  # a test has ended one
    finally:
        for one in (load, *waiting.values()):
            one.end()
    for name, one in waiting.items():
        good = told(name, shards.read(one.report), given.times) and good
    beside = shards.read(load.report)
    print(f"beside them ran {len(beside.runs)} other tests, of which {len(beside.failed)} failed")
    for line in beside.failed:
        print(f"FAILED {line['test']}\n    " + line.get("text", "")[-1500:].replace("\n", "\n    "))
    return good and not beside.failed


def cold(given) -> bool:
    """All processes begin with the same tests, in the same order, and none finds a kernel that was compiled before."""
    until, found = time.monotonic() + given.limit, shards.Found()
    names = [one for name in given.candidates for one in CANDIDATES[name]]
    rounds = -(-given.times // given.jobs)
    for number in range(rounds):
        if time.monotonic() > until:
            break
        plan = {"names": names, "files": [], "seed": given.seed, "batch": 1}
        plan |= {"draw": max(given.tests // 3, 1), "apart": True}
        plan |= {"kept_by_pycuda": given.kept_by_pycuda}
        with tempfile.TemporaryDirectory() as cache:
            os.environ["PYCUDA_CACHE_DIR"] = cache
            # Each has a queue of its own, so that each runs all of them.
            several = [
                shards.Processes(plan, given.out, f"cold-{number}-{i}", files=files_of(names))
                for i in range(given.jobs)
            ]
            for one in several:
                one.start()
            while any(one.running for one in several) and time.monotonic() < until:
                time.sleep(0.5)
                for one in several:
                    one.ended()
            for one in several:
                one.end()
                found.runs += shards.read(one.report).runs
    times = Counter(line["test"] for line in found.runs)
    print(f"{len(times)} tests were drawn in {rounds} rounds: {times.total()} runs")
    return told("cold", found, given.times)


def main(arguments: list[str] | None = None) -> int:
    parser = argparse.ArgumentParser(description=__doc__.split("\n\n")[0])
    parser.add_argument("mode", choices=("warm", "cold"))
    parser.add_argument("candidates", nargs="*", metavar="CANDIDATE", help=", ".join(CANDIDATES))
    parser.add_argument("--out", type=Path, default=shards.ROOT / ".cache" / "beside-load")
    parser.add_argument("--times", type=int, default=50)
    parser.add_argument(
        "--tests", type=int, default=6, help="at most so many of each test function"
    )
    parser.add_argument("--jobs", type=int, default=10)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--limit", type=float, default=500, help="seconds in all")
    parser.add_argument("--kept-by-pycuda", action="store_true")
    given = parser.parse_args(arguments)
    given.candidates = given.candidates or list(CANDIDATES)
    if unknown := set(given.candidates) - set(CANDIDATES):
        parser.error(
            f"there is no {', '.join(sorted(unknown))}; there are: {', '.join(CANDIDATES)}"
        )
    given.out.mkdir(parents=True, exist_ok=True)
    for old in given.out.glob("report-*"):
        old.unlink()
    return 0 if {"warm": warm, "cold": cold}[given.mode](given) else 1


if __name__ == "__main__":
    sys.exit(main())
