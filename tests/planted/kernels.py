"""Faults planted in the kernels of `llm` and `tensor`, each judged by the tests of tests/gpu that load its file.

    python tests/gpu/shards.py llm-products llm-rows tensor --kernels --out SURVEY
    python tests/planted/kernels.py clean SURVEY --out OUT
    python tests/planted/kernels.py judge SURVEY --out OUT --seed N --count 150
    python tests/planted/kernels.py judge SURVEY --out OUT --seed N --count 150 --again survived,undecided --budget 150
    python tests/planted/kernels.py report OUT --seed N --count 150

The first, a run of the shards, says which tests load which kernels, how long they take and what the code of each kernel
is. Of these tests `choose` takes for each file those that together run every kernel and every test function that loads it,
quick ones first, as far as they fit into `--budget` seconds. `clean` runs what would be chosen for each file in a tree
without faults, which has to pass within the same limits; `judge` does the same for some of its faults' files (`--controls`).

What became of a fault:

    noticed           a test failed, the process ended or nothing went on for `--hang` seconds
    survived          all chosen tests passed, though the code of a kernel is another
    equivalent        all of them passed, and the code of every kernel that tests load is the same
    does not compile  and is not counted
    undecided         the time was not enough

Results are lines of JSON in OUT, as they come: what was cut short goes on where it was. Each process has a copy of the
tree, in which nothing but one file of examples/ is another.
"""

import argparse
import json
import operator
import os
import random
import shutil
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterable, Iterator
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field
from functools import partial
from itertools import islice
from pathlib import Path
from threading import Event, Lock
from typing import Any

HERE = Path(__file__).resolve().parent
ROOT = HERE.parents[1]
sys.path.insert(0, str(HERE))
sys.path.insert(0, str(HERE.parent / "gpu"))

import cuda_mutants  # noqa: E402
import shards  # noqa: E402
from cuda_mutants import Mutant  # noqa: E402

COUNTED = ("noticed", "survived")
STARTING = 25  # seconds until the first test of a process runs, beside eleven others
SLOWER = 4  # times as long as in the survey a test may take beside others
COMPILED = 90  # seconds that one kernel may take to compile


# --- which tests ------------------------------------------------------------------------------------


@dataclass
class Survey:
    """What runs of the shards say: of each kernel its files, code and time to compile; of each test its kernels and time."""

    kernels: dict[str, dict] = field(default_factory=dict)
    tests: dict[str, dict] = field(default_factory=dict)

    def files(self) -> set[str]:
        """Those of the examples that tests load."""
        used = {kernel for test in self.tests.values() for kernel in test["kernels"]}
        return {file for one in used for file in self.kernels[one].get("files", ())}

    def of(self, file: str) -> set[str]:
        """The kernels whose source is or includes a file."""
        return {one for one, fact in self.kernels.items() if file in fact.get("files", ())}


def survey(folder: Path) -> Survey:
    """Read the reports of a folder. Raises SystemExit where there is none with kernels."""
    found = Survey()
    for report in sorted(folder.glob("report-*.jsonl")):
        run = shards.read(report)
        for (
            key,
            fact,
        ) in run.kernels.items():  # the time of whoever compiled it, not of whoever found it
            if fact.get("compiled", 0) >= found.kernels.get(key, {}).get("compiled", 0):
                found.kernels[key] = fact
        found.tests |= {
            name: test
            for name, test in run.tests.items()
            if test["outcome"] == "passed" and test.get("kernels") and not test.get("large")
        }
    if not found.tests:
        raise SystemExit(
            f"{folder} has no report of tests with their kernels: "
            "run `python tests/gpu/shards.py llm-products llm-rows tensor --kernels --out FOLDER` on a GPU"
        )
    return found


@dataclass
class Choice:
    """Tests in the order in which they run; seconds that they should take; of how many of the file's kernels and functions."""

    tests: list[str]
    seconds: float
    kernels: int
    of_kernels: int
    functions: int
    of_functions: int


def function_of(name: str) -> str:
    return name.partition("[")[0]


def choose(found: Survey, file: str, budget: float, seed: int = 0) -> Choice:
    """Tests that load a file: first a case of each test function, then each kernel once, then others, quick ones first.

    A kernel costs what the survey compiled it for, once: the tree in which it is compiled is a new one.
    """
    own = found.of(file)
    used = {
        name: some for name, test in found.tests.items() if own & (some := set(test["kernels"]))
    }
    functions, kernels = set(map(function_of, used)), own & set().union(*used.values())
    names = random.Random(f"{seed} {file}").sample(sorted(used), len(used))
    chosen: list[str] = []
    compiled: set[str] = set()
    run: set[str] = set()
    spent = 0.0

    def cost(name: str) -> float:
        test = found.tests[name]
        running = max(test["seconds"] - test.get("compiling", 0.0), 0.02)
        new = used[name] - compiled
        return running + sum(found.kernels[one].get("compiled", 0.0) for one in new)

    def take(fits: Callable[[str], bool]) -> bool:
        """Add the quickest that fits; the first whatever it costs."""
        nonlocal spent
        best = min(filter(fits, names), key=cost, default=None)
        if best is None or (chosen and spent + cost(best) > budget):
            return False
        spent += cost(best)
        chosen.append(best)
        names.remove(best)
        compiled.update(used[best])
        run.add(function_of(best))
        return True

    while take(lambda name: function_of(name) not in run):
        pass
    while take(lambda name: bool(used[name] & own - compiled)):
        pass
    for name in list(names):  # ragged sizes, other data: at random
        if not used[name] - compiled and spent + cost(name) <= budget:
            take(partial(operator.eq, name))
    here = len(own & compiled)
    return Choice(chosen, spent, here, len(kernels), len(run), len(functions))


# --- one fault ---------------------------------------------------------------------------------------


@dataclass
class Limits:
    """Seconds without progress, and when all has to be over (by `time.monotonic`)."""

    hang: float
    until: float


class Tree:
    """A copy of what the tests need, in which one file may have a fault."""

    def __init__(self, root: Path, place: Path):
        self.place = place
        ignore = shutil.ignore_patterns("*.ipynb", "__pycache__", ".cache", "node_modules")
        for name in ("cudatut", "examples", "tests"):
            shutil.copytree(root / name, place / name, ignore=ignore)
        shutil.copy(root / "pyproject.toml", place)
        self.clean: tuple[Path, str] | None = None

    def plant(self, mutant: Mutant) -> None:
        path = self.place / "examples" / mutant.file
        text = path.read_text(encoding="utf-8")
        path.write_text(mutant.applied(text), encoding="utf-8")
        self.clean = path, text

    def mend(self) -> None:
        if self.clean:
            self.clean[0].write_text(self.clean[1], encoding="utf-8")
            self.clean = None


def judge(
    tree: Tree, found: Survey, file: str, choice: Choice, folder: Path, limits: Limits
) -> dict:
    """Run the tests in a tree, and say what became of the fault in it."""
    name = f"{time.time_ns()}"
    plan = {"names": choice.tests, "files": [], "seed": 0, "ordered": True, "kernels": True, "at_once": True}  # fmt: skip
    files = sorted({test.partition("::")[0] for test in choice.tests})
    processes = shards.Processes(plan, folder, name, tree.place, ["-x"], files, 12)
    begun = time.monotonic()
    slowest = max((found.kernels[one].get("compiled", 0) for one in found.of(file)), default=0)
    hang = limits.hang + min(2 * slowest, COMPILED)
    most = STARTING + SLOWER * choice.seconds
    processes.start()
    try:
        stuck, size, grown = "", -1, time.monotonic()
        while processes.running and not stuck:
            time.sleep(0.1)
            processes.ended()
            now = time.monotonic()
            new = processes.report.stat().st_size if processes.report.is_file() else 0
            if new != size:
                size, grown = new, now
            if now > limits.until:
                return {"outcome": "cut", "seconds": round(now - begun, 1)}
            allowed = (
                hang if size > 0 else STARTING + hang
            )  # Python and pytest start, beside others
            if now - grown > allowed:
                stuck = f"nothing went on for {allowed:.0f} s"
            elif now - begun > most:
                stuck = "slow"
        running = list(shards.read(processes.report).running.values())
    finally:
        processes.end()
    report = shards.read(processes.report)
    log = (
        processes.log.read_text(encoding="utf-8", errors="replace")
        if processes.log.is_file()
        else ""
    )
    result = {"tests": len(report.tests), "seconds": round(time.monotonic() - begun, 1)}
    for path in folder.iterdir():  # which is this worker's own
        shutil.rmtree(path) if path.is_dir() else path.unlink()
    if not report.collected:
        return result | {"outcome": "failed to run", "by": log[-1500:]}
    if report.failed:
        first = report.failed[0]
        text = first.get("text", "")
        broken = any("error" in fact and "error" not in found.kernels.get(one, {}) for one, fact in report.kernels.items())  # fmt: skip
        if broken or "KernelCompileError" in text:
            return result | {"outcome": "does not compile", "by": first["test"]}
        return result | {"outcome": "noticed", "by": first["test"], "how": text[-300:]}
    if stuck.startswith("nothing") and running:
        return result | {"outcome": "noticed", "by": running[0], "how": stuck}
    if len(report.tests) < len(choice.tests):
        return result | {"outcome": "undecided", "how": stuck or log[-500:]}
    # A kernel whose key names a folder is of this tree alone, and can be compared only by what it includes.
    differ = {
        one
        for one, fact in report.kernels.items()
        if fact.get("code") != found.kernels.get(one, {}).get("code")
        and (one in found.kernels or file in fact.get("files", ()))
    }
    if strangers := {one for one in differ & set(found.kernels) if one not in found.of(file)}:
        raise SystemExit(
            f"kernels without a fault have other code than in the survey ({min(strangers)[:200]}): "
            "make the survey with this tree and this nvcc"
        )
    outcome = "survived" if differ else "same code"
    return result | {"outcome": outcome, "kernels": len(differ)}


# What the tests have not compiled: in a process of its own, since it needs the tree's package.
_CODES = """
import json, sys
from concurrent.futures import ThreadPoolExecutor
import cudatut as ct
from cudatut.fingerprint import code
ct.device()
def one(asked):
    kernel = ct.Kernel(asked[0], asked[1], asked[2] or None, asked[3], asked[4], load=False)
    return code.digest(kernel.cubin, kernel.symbol)
with ThreadPoolExecutor(4) as pool:
    keys = json.load(sys.stdin)
    print(json.dumps(dict(zip(keys, pool.map(lambda key: one(json.loads(key)), keys)))))
"""


def same_everywhere(tree: Tree, found: Survey, file: str, limit: float) -> bool | None:
    """Whether all kernels that tests load have the code of the survey in this tree; None where that cannot be said."""
    keys = [key for key in sorted(found.of(file)) if found.kernels[key].get("code")]
    path = os.pathsep.join(filter(None, [str(tree.place), os.environ.get("PYTHONPATH", "")]))
    env = os.environ | {"PYTHONPATH": path}
    try:
        done = subprocess.run(
            [sys.executable, "-c", _CODES], input=json.dumps(keys), cwd=tree.place, env=env,
            capture_output=True, text=True, timeout=limit,
        )  # fmt: skip
    except subprocess.TimeoutExpired:
        return None
    if done.returncode:
        return None
    codes = json.loads(done.stdout.splitlines()[-1])
    return all(codes[key] == found.kernels[key]["code"] for key in keys)


# --- many --------------------------------------------------------------------------------------------


class Results:
    """Lines of JSON in a file, of which the last of a name counts."""

    def __init__(self, path: Path):
        self.path, self.lock = path, Lock()
        self.by_name: dict[str, dict] = {}
        for line in path.read_text(encoding="utf-8").splitlines() if path.is_file() else ():
            said = json.loads(line)
            self.by_name[said["name"]] = said

    def add(self, name: str, result: dict[str, Any]) -> None:
        with self.lock:
            self.by_name[name] = {"name": name, **result}
            with open(self.path, "a", encoding="utf-8") as file:
                file.write(json.dumps(self.by_name[name], ensure_ascii=False) + "\n")

    def outcome(self, name: str) -> str:
        return self.by_name.get(name, {}).get("outcome", "")


def in_trees(jobs: int, root: Path, work: Iterator[Callable[[Tree, Path], None]]) -> None:
    """Do all work in `jobs` trees side by side. What is raised ends it."""
    lock, stop = Lock(), Event()

    def worker(number: int) -> None:
        tree, folder = Tree(root, out / f"tree-{number}"), out / f"running-{number}"
        folder.mkdir()
        while not stop.is_set():
            with lock:
                one = next(work, None)
            if one is None:
                return
            try:
                one(tree, folder)
            except BaseException:
                stop.set()
                raise
            finally:
                tree.mend()

    with (
        tempfile.TemporaryDirectory(ignore_cleanup_errors=True) as place,
        ThreadPoolExecutor(jobs) as pool,
    ):
        out = Path(place)
        for done in [pool.submit(worker, number) for number in range(jobs)]:
            done.result()


def valid(mutants: list[Mutant], results: Results, count: int) -> list[Mutant]:
    """The first `count` of them that are not known to be without effect or not to compile."""
    out = ("does not compile", "equivalent")
    return [one for one in mutants if results.outcome(one.name) not in out][:count]


def settled(outcome: str, again: Iterable[str]) -> bool:
    return outcome not in ("", "cut", "failed to run", *again)


def judge_all(given: argparse.Namespace, root: Path = ROOT) -> Results:
    """Judge the faults of a seed until `count` of them are counted, each in its time, or the time is over."""
    found, limit = survey(given.survey), time.monotonic() + given.limit
    texts = cuda_mutants.kernel_files(root / "examples")
    judged = {file: text for file, text in texts.items() if file in found.files()}
    mutants = list(islice(cuda_mutants.drawn(judged, given.seed), 4 * given.count))
    results = Results(given.out / f"kernels-{given.seed}.jsonl")
    clean = Results(given.out / "clean.jsonl")
    limits = Limits(given.hang, limit)
    begun: set[str] = set()
    again = given.again.split(",") if given.again else ()

    def control(file: str) -> Callable[[Tree, Path], None]:
        def run(tree: Tree, folder: Path) -> None:
            result = judge(tree, found, file, choose(found, file, given.budget), folder, limits)
            print(f"{result['outcome']:16} without a fault: {file}", flush=True)
            if result["outcome"] != "cut":
                clean.add(f"{file} {given.budget:.0f}", result)

        return run

    def fault(mutant: Mutant) -> Callable[[Tree, Path], None]:
        def run(tree: Tree, folder: Path) -> None:
            choice = choose(found, mutant.file, given.budget)
            tree.plant(mutant)
            result = judge(tree, found, mutant.file, choice, folder, limits)
            if result["outcome"] == "same code":
                same = same_everywhere(
                    tree, found, mutant.file, max(limits.until - time.monotonic(), 1)
                )
                result["outcome"] = {True: "equivalent", False: "survived", None: "undecided"}[same]
            print(f"{result['outcome']:16} {result['seconds']:5.0f} s  {mutant.name}", flush=True)
            if result["outcome"] != "cut":
                facts = {"chosen": len(choice.tests), "budget": given.budget, **mutant.facts()}
                results.add(mutant.name, result | facts)

        return run

    def work() -> Iterator[Callable[[Tree, Path], None]]:
        draw = random.Random(given.seed)
        files = sorted({one.file for one in mutants[: given.count]})
        missing = [
            file for file in files if clean.outcome(f"{file} {given.budget:.0f}") != "same code"
        ]
        for file in draw.sample(missing, min(given.controls, len(missing))):
            yield control(file)
        while time.monotonic() < limits.until - given.leave:
            for one in valid(mutants, results, given.count):
                if one.name not in begun and not settled(results.outcome(one.name), again):
                    begun.add(one.name)
                    yield fault(one)
                    break
            else:
                return

    given.out.mkdir(parents=True, exist_ok=True)
    in_trees(given.jobs, root, work())
    return results


def clean_all(given: argparse.Namespace, root: Path = ROOT) -> bool:
    """Run what is chosen for each file in a tree without faults; whether all passed in time."""
    found, limits = (
        survey(given.survey),
        Limits(given.hang, time.monotonic() + given.limit),
    )
    given.out.mkdir(parents=True, exist_ok=True)
    results = Results(given.out / "clean.jsonl")
    files = sorted(set(cuda_mutants.kernel_files(root / "examples")) & found.files())

    def one(file: str) -> Callable[[Tree, Path], None]:
        def run(tree: Tree, folder: Path) -> None:
            choice = choose(found, file, given.budget)
            result = judge(tree, found, file, choice, folder, limits)
            print(
                f"{result['outcome']:16} {result['seconds']:5.0f} s of {choice.seconds:.0f}  {file}: "
                f"{len(choice.tests)} tests, {choice.functions}/{choice.of_functions} functions, "
                f"{choice.kernels}/{choice.of_kernels} kernels",
                flush=True,
            )
            if result["outcome"] != "cut":
                results.add(f"{file} {given.budget:.0f}", result)

        return run

    left = [file for file in files if results.outcome(f"{file} {given.budget:.0f}") != "same code"]
    in_trees(given.jobs, root, iter([one(file) for file in left]))
    bad = [file for file in files if results.outcome(f"{file} {given.budget:.0f}") != "same code"]
    print(f"{len(files) - len(bad)} of {len(files)} files pass without a fault; others: {bad}")
    return not bad


def report(given: argparse.Namespace, root: Path = ROOT) -> bool:
    """Print the figure and all that it rests on; whether at least 95 % were noticed, and all were judged."""
    results = Results(given.out / f"kernels-{given.seed}.jsonl")
    clean = Results(given.out / "clean.jsonl")
    rows = list(results.by_name.values())
    by: dict[str, list[dict]] = {}
    for row in rows:
        by.setdefault(row["outcome"], []).append(row)
    counted = [row for row in rows if row["outcome"] in COUNTED][: given.count]
    noticed = [row for row in counted if row["outcome"] == "noticed"]
    print(f"seed {given.seed}: {len(noticed)} of {len(counted)} noticed", end="")
    print(f" ({len(noticed) / max(len(counted), 1):.1%}); " + ", ".join(f"{len(v)} {k}" for k, v in sorted(by.items())))  # fmt: skip
    for family in cuda_mutants.FAMILIES:
        own = [row for row in counted if row["family"] == family]
        print(f"  {family:10} {sum(row['outcome'] == 'noticed' for row in own)} of {len(own)}")
    for outcome in ("survived", "undecided", "equivalent"):
        for row in by.get(outcome, ()):
            print(f"{outcome}: {row['name']} ({row.get('tests', 0)} tests, {row['seconds']:.0f} s)")
    fine = sum(row["outcome"] == "same code" for row in clean.by_name.values())
    print(f"without a fault: {fine} of {len(clean.by_name)} passed")
    for row in clean.by_name.values():
        if row["outcome"] != "same code":
            print(f"  {row['outcome']}: {row['name']} {row.get('by', '')} {row.get('how', '')}")
    whole = len(counted) >= given.count and fine == len(clean.by_name) > 0
    return whole and len(noticed) >= 0.95 * len(counted)


def main(arguments: list[str] | None = None, root: Path = ROOT) -> int:
    parser = argparse.ArgumentParser(description=__doc__.split("\n\n")[0])
    commands = parser.add_subparsers(dest="command", required=True)
    common: list[argparse.ArgumentParser] = []
    for name in ("clean", "judge", "report", "draw"):
        one = commands.add_parser(name)
        common.append(one)
        if name in ("clean", "judge"):
            one.add_argument("survey", type=Path, help="the folder of the shards' reports")
            one.add_argument("--out", type=Path, required=True)
            one.add_argument("--jobs", type=int, default=12)
            one.add_argument(
                "--budget", type=float, default=45, help="seconds of tests for a fault"
            )
            one.add_argument("--hang", type=float, default=45, help="seconds without progress")
            one.add_argument("--limit", type=float, default=530, help="seconds in all")
        if name == "report":
            one.add_argument("out", type=Path)
        if name != "clean":
            one.add_argument("--seed", type=int, required=True)
            one.add_argument("--count", type=int, default=150)
        if name == "judge":
            one.add_argument(
                "--controls", type=int, default=12, help="files judged without a fault"
            )
            one.add_argument("--again", default="", help="outcomes that are judged once more")
            one.add_argument(
                "--leave", type=float, default=45, help="begin none in the last seconds"
            )
    given = parser.parse_args(arguments)
    if given.command == "draw":
        texts = cuda_mutants.kernel_files(root / "examples")
        for mutant in islice(cuda_mutants.drawn(texts, given.seed), given.count):
            print(mutant.name)
        return 0
    if given.command == "clean":
        return 0 if clean_all(given, root) else 1
    if given.command == "judge":
        judge_all(given, root)
    return 0 if report(given, root) else 1


if __name__ == "__main__":
    sys.exit(main())
