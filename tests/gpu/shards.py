"""The tests of tests/gpu in shards of at most eight minutes on an H200, each by ten processes and in an order drawn by a seed.

    python tests/gpu/shards.py --list
    python tests/gpu/shards.py tensor llm-rows --seed 1 --out /tmp/report

Every test belongs to one of `SHARDS`, or compares times (`pytest.mark.alone`) and belongs to the shard `alone`: one process,
with nothing beside it. `together-1` and `together-2` import all modules of all parts into one process and run one case of
each test, and every case of `WHOLE`. Those of `UNEVEN` run some cases of each test once more, with kernels whose warps wait
now and then and whose shared memory holds random words when they begin, so that a missing barrier shows.

Prints what failed and what was slow. The folder `--out` gets report-<shard>.jsonl as tests end, a line each (`dealt.py` says
what is in it), and report-<shard>.json. With --resume what passed in such a report is not run again. Ends with 1 where a test
failed, or did not run within `--limit` seconds.
"""

import argparse
import json
import os
import signal
import subprocess
import sys
import time
from collections.abc import Iterable
from contextlib import suppress
from dataclasses import dataclass, field
from pathlib import Path

HERE = Path(__file__).resolve().parent
ROOT = HERE.parents[1]
SHARDS = {
    "programs": ("test_commands.py", "test_cpp.py", "test_exercises.py", "test_programs.py"),
    "sums": (
        *("test_reduction.py", "test_histogram.py", "test_gpu_half.py", "test_instrument.py"),
        *("test_faults.py", "test_initcheck_tma.py", "test_tracing.py", "test_work.py"),
    ),
    "gemm": ("test_gemm.py", "test_sgemm.py", "test_tuning.py"),
    "launchers": ("test_launchers.py",),
    "watched": ("test_launchers_watched.py",),
    "images": ("test_images_*.py",),
    "llm-products": (
        *("test_llm_backend.py", "test_llm_fused.py", "test_llm_gemv.py", "test_llm_linear*.py"),
        "test_llm_products.py",
    ),
    "llm-rows": (
        *(
            "test_llm_activation.py",
            "test_llm_decode.py",
            "test_llm_flash*.py",
            "test_llm_norms.py",
            "test_llm_overlap.py",
        ),
        *(
            "test_llm_rope.py",
            "test_llm_sampling.py",
            "test_llm_softmax.py",
            "test_llm_vllm_kernel.py",
        ),
    ),
    "memory": (
        *("test_managed.py", "test_memory_*.py", "test_moving.py", "test_pinned_memory.py"),
        *("test_sharing.py", "test_streams.py"),
    ),
    "primitives": ("test_primitives_*.py",),
    "tensor": ("test_tensor_*.py",),
}
# What starts processes of its own imports nothing into that of the tests.
IN_PROCESS = tuple(
    one for name, files in SHARDS.items() if name not in ("programs", "watched") for one in files
)
WHOLE = ("test_llm_backend.py", "test_tensor_scoreboard.py")  # they import modules while they run
# Run once more with warps that wait now and then (uneven.py), some cases of each function.
UNEVEN = {
    "uneven-llm": (*SHARDS["llm-products"], *SHARDS["llm-rows"]),
    "uneven-tensor": SHARDS["tensor"],
}
UNEVEN_CASES = 3
THREADS = ("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS")
MOST_ROUNDS = 8  # of processes, where tests end those that run them


def plan_of(shard: str, seed: int) -> dict:
    """What `dealt.Dealt` needs to know of a shard. Raises KeyError."""
    if shard == "alone":
        return {"files": ["test_*.py"], "alone": True, "seed": seed}
    if shard in ("together-1", "together-2"):
        half = (int(shard[-1]) - 1, 2)
        kept = {"cases": 1, "whole": WHOLE, "half": half, "batch": 1}
        return {"files": IN_PROCESS, "seed": seed, **kept}
    if shard in UNEVEN:
        return {
            "files": UNEVEN[shard],
            "seed": seed,
            "cases": UNEVEN_CASES,
            "words": True,
            "uneven": True,
        }
    return {"files": SHARDS[shard], "seed": seed}


NAMES = (*SHARDS, *UNEVEN, "alone", "together-1", "together-2")


def jobs_of(shard: str, jobs: int) -> int:
    return 1 if shard == "alone" or shard.startswith("together") else jobs


@dataclass
class Found:
    """What a report says: of each test its last line, the tests that ended their process, and how many there are."""

    tests: dict[str, dict] = field(default_factory=dict)
    runs: list[dict] = field(default_factory=list)
    running: dict[int, str] = field(default_factory=dict)  # by the process
    kernels: dict[str, dict] = field(default_factory=dict)
    collected: int = 0
    lost: list[str] = field(default_factory=list)

    @property
    def failed(self) -> list[dict]:
        return [line for line in self.runs if line["outcome"] == "failed"]


def read(path: Path) -> Found:
    found = Found()
    for line in path.read_text(encoding="utf-8").splitlines() if path.is_file() else ():
        said = json.loads(line)
        if "began" in said:
            found.running[said["pid"]] = said["began"]
        elif "test" in said:
            found.running.pop(said["pid"], None)
            # A test that failed as it was taken down has passed before.
            if said["outcome"] == "failed" or said["test"] not in found.tests:
                found.tests[said["test"]] = said
            found.runs.append(said)
        elif "kernel" in said:
            known = found.kernels.get(said["kernel"], {}).get("compiled", -1.0)
            if said.get("compiled", 0.0) > known:  # others find what one has compiled
                found.kernels[said["kernel"]] = said
        elif "lost" in said:
            found.lost.append(said["lost"])
        elif "collected" in said:
            found.collected = max(found.collected, said["collected"])
    return found


class Processes:
    """pytest, several times, on one plan."""

    def __init__(
        self,
        plan: dict,
        folder: Path,
        name: str,
        tree: Path = ROOT,
        arguments: Iterable[str] = (),
        files: Iterable[str] = ("tests/gpu",),
        beside: int = 10,  # processes that share the machine
    ):
        self.report, self.log = folder / f"report-{name}.jsonl", folder / f"log-{name}.txt"
        plan = plan | {"report": str(self.report), "queue": str(folder / f"queue-{name}")}
        self.file = folder / f"plan-{name}.json"
        pytest = [sys.executable, "-m", "pytest", *files, "-q", "--tb=short"]
        plugins = ["-p", "no:cacheprovider", "-p", "dealt", "--deal", str(self.file)]
        self.command = [*pytest, *plugins, *arguments]
        self.tree, self.plan, self.beside = tree, plan, beside
        self.running: list[subprocess.Popen] = []

        self.go_on(())

    def go_on(self, done: Iterable[str]) -> None:
        """Begin with the queue anew, for what is left."""
        plan = self.plan | {"done": [*self.plan.get("done", ()), *done]}
        Path(plan["queue"]).unlink(missing_ok=True)
        self.file.write_text(json.dumps(plan), encoding="utf-8")

    def start(self) -> None:
        env = {name: value for name, value in os.environ.items() if name != "PYTEST_ADDOPTS"}
        paths = [str(self.tree), str(HERE), os.environ.get("PYTHONPATH", "")]
        # NumPy's references: each process with all cores would have ten times as many threads as there are.
        threads = str(max((os.cpu_count() or 1) // self.beside, 1))
        env |= {name: env.get(name, threads) for name in THREADS}
        env |= {"PYTHONPATH": os.pathsep.join(filter(None, paths)), "CUDATUT_SHARED_GPU": "1"}
        with open(self.log, "a", encoding="utf-8") as log:
            self.running.append(
                subprocess.Popen(
                    self.command, cwd=self.tree, env=env, stdout=log, stderr=log, start_new_session=True
                )
            )  # fmt: skip

    def ended(self) -> None:
        """Look which have ended; what one of them was running has failed."""
        done = [one for one in self.running if one.poll() is not None]
        self.running = [one for one in self.running if one.poll() is None]
        for one in done:
            test = read(self.report).running.get(one.pid)
            if test:
                text = f"the process ended with status {one.returncode} while it ran"
                self.say(test=test, outcome="failed", seconds=0, text=text, pid=one.pid)

    def say(self, **facts) -> None:
        with open(self.report, "a", encoding="utf-8") as file:
            file.write(json.dumps(facts) + "\n")

    def end(self) -> None:
        """End those that are left, with the processes that they have started."""
        for one in self.running:
            with suppress(ProcessLookupError):
                os.killpg(one.pid, signal.SIGTERM)
        for one in self.running:
            try:
                one.wait(5)
            except subprocess.TimeoutExpired:
                with suppress(ProcessLookupError):
                    os.killpg(one.pid, signal.SIGKILL)
                with suppress(subprocess.TimeoutExpired):  # the driver may hold it for a while
                    one.wait(30)
        self.running = []


def run(processes: Processes, jobs: int, limit: float, tick: float = 0.5) -> bool:
    """Run `jobs` processes until the queue is empty; False where the limit (in seconds) was not enough.

    Where a test has ended its process, others run what that process had taken.
    """
    until = time.monotonic() + limit
    try:
        for _ in range(MOST_ROUNDS):
            for _ in range(jobs):
                processes.start()
            while processes.running and time.monotonic() < until:
                time.sleep(tick)
                processes.ended()
            found = read(processes.report)
            if processes.running or len(found.tests) >= found.collected:
                break
            processes.go_on(found.tests)
            jobs = min(jobs, found.collected - len(found.tests))
        return not processes.running
    finally:
        processes.end()


def told(shard: str, found: Found, seconds: float, done: int) -> bool:
    """Print what came out of a shard; whether all of it ran and passed."""
    passed = sum(line["outcome"] == "passed" for line in found.tests.values())
    skipped = sum(line["outcome"] == "skipped" for line in found.tests.values())
    failed = {line["test"]: line for line in found.failed}
    missing = found.collected - len(found.tests)
    print(
        f"{shard}: {passed} passed, {skipped} skipped, {len(failed)} failed, {missing} did not run, "
        f"{done} had passed before, {seconds:.0f} s",
        flush=True,
    )
    for name, line in failed.items():
        print(f"FAILED {name}\n    " + line.get("text", "")[-1500:].replace("\n", "\n    "))
    slow = sorted(found.tests.values(), key=lambda line: -line["seconds"])[:12]
    for line in slow:
        print(f"  {line['seconds']:7.1f} s  {line['test'].removeprefix('tests/gpu/')}")
    by_file: dict[str, float] = {}
    for line in found.runs:
        file = line["test"].partition("::")[0].removeprefix("tests/gpu/")
        by_file[file] = by_file.get(file, 0) + line["seconds"]
    for file, total in sorted(by_file.items(), key=lambda one: -one[1]):
        print(f"  {total:7.0f} s  {file} in all")
    return found.collected + done > 0 and not failed and not missing


def main(arguments: list[str] | None = None, tree: Path = ROOT) -> int:
    parser = argparse.ArgumentParser(description=__doc__.split("\n\n")[0])
    parser.add_argument("shards", nargs="*", metavar="SHARD", help=f"of {', '.join(NAMES)}")
    parser.add_argument("--list", action="store_true", help="print the shards and their files")
    parser.add_argument("--jobs", type=int, default=10)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--limit", type=float, default=480, help="seconds for each shard")
    parser.add_argument("--out", type=Path, default=ROOT / ".cache" / "gpu-tests")
    parser.add_argument("--resume", action="store_true", help="leave out what passed before")
    parser.add_argument("--kernels", action="store_true", help="note which kernels each test runs")
    given = parser.parse_args(arguments)
    if given.list:
        for name in NAMES:
            print(name, *plan_of(name, 0)["files"] if name in SHARDS else "")
        return 0
    if unknown := set(given.shards) - set(NAMES):
        parser.error(
            f"there is no shard {', '.join(sorted(unknown))}; there are: {', '.join(NAMES)}"
        )
    given.out.mkdir(parents=True, exist_ok=True)
    good = True
    for shard in given.shards or NAMES:
        report = given.out / f"report-{shard}.jsonl"
        before = read(report) if given.resume else Found()
        done = [name for name, line in before.tests.items() if line["outcome"] != "failed"]
        report.unlink(missing_ok=True)
        plan = plan_of(shard, given.seed) | {"done": done, "kernels": given.kernels}
        jobs, begun = jobs_of(shard, given.jobs), time.monotonic()
        processes = Processes(plan, given.out, shard, tree, beside=jobs)
        run(processes, jobs, given.limit)
        found, seconds = read(report), time.monotonic() - begun
        good = told(shard, found, seconds, len(done)) and good
        for line in before.runs:  # for the next that resumes
            if line["outcome"] != "failed":
                processes.say(**line)
        for line in before.kernels.values():
            if line["kernel"] not in found.kernels:
                processes.say(**line)
        whole = {
            "shard": shard,
            "seconds": round(seconds, 1),
            "seed": given.seed,
            "tests": found.runs,
        }
        (given.out / f"report-{shard}.json").write_text(json.dumps(whole), encoding="utf-8")
    return 0 if good else 1


if __name__ == "__main__":
    sys.exit(main())
