"""Faults planted in the kernels of `llm` and `tensor`, each judged by the tests of tests/gpu that load its file.

    python tests/gpu/shards.py llm-products llm-rows tensor uneven-llm uneven-tensor --kernels --out SURVEY
    export PYTHONPATH=.:tests/gpu
    python tests/planted/kernels.py clean SURVEY --out OUT
    python tests/planted/kernels.py judge SURVEY --out OUT --seed N --count 150
    python tests/planted/kernels.py judge SURVEY --out OUT --seed N --count 150 --again survived,undecided --budget 150
    python tests/planted/kernels.py settle SURVEY --out OUT --seed N
    python tests/planted/kernels.py report OUT --seed N --count 150

The first, a run of the shards, says which tests load which kernels, how long they take and what the code of each kernel
is. Of these tests `choose` takes for each file those that together run every kernel and every test function that loads it,
quick ones first, as far as they fit into `--budget` seconds; what survives these, and settled.yml does not name, meets more of
them, as far as they fit into `--more`. `clean` runs what would be chosen for each file in a tree
without faults, which has to pass within the same limits; `judge` does the same for some of its faults' files (`--controls`).
A fault among barriers, fences and phases meets first tests of the shards `uneven-*`, whose warps wait now and then; others
meet them last. `settle` needs no GPU: it compares the code of kernels for which `judge` had no time.

What became of a fault:

    noticed           a test failed, the process ended, or a test took several times as long as it should and `--hang` seconds
    survived          all chosen tests passed, though the code of a kernel is another
    equivalent        all of them passed, and the code of every kernel that tests load is the same; or settled.yml says why
                      nothing can come of it
    not to be shown   settled.yml says which rule it breaks, and that this GPU does not show it
    does not compile
    undecided         the time was not enough

The first two are counted; the others are told.

Results are lines of JSON in OUT, as they come: what was cut short goes on where it was. Each process has a copy of the
tree, in which nothing but one file of examples/ is another.
"""

import argparse
import json
import operator
import os
import random
import re
import shutil
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterable, Iterator
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field, replace
from fnmatch import fnmatch
from functools import partial
from itertools import islice
from pathlib import Path
from threading import Event, Lock
from typing import Any

import cuda_mutants
import shards
import yaml
from cuda_mutants import Mutant

HERE = Path(__file__).resolve().parent
ROOT = HERE.parents[1]

COUNTED = ("noticed", "survived")
PASSED = ("same code", "passed")  # without a fault; uneven kernels have other code
STARTING = 25  # seconds until the first test of a process runs, beside eleven others
SLOWER = 6  # times as long as in the survey a test may take beside others
OF_ONE_KERNEL = 6  # tests of a kernel that a fault has changed and the first tests have not run
RUNNING = 1.5  # seconds that a case may run and still be preferred to a quicker one
SCHEDULED = ("barrier", "fence", "phase")  # families whose faults a schedule shows
SETTLED = HERE / "settled.yml"
ARCH = "sm_90a"  # of the GPU whose survey it is


# --- which tests ------------------------------------------------------------------------------------


@dataclass
class Survey:
    """What runs of the shards say: of each kernel its files, code and time to compile; of each test its kernels and time."""

    kernels: dict[str, dict] = field(default_factory=dict)
    tests: dict[str, dict] = field(default_factory=dict)
    uneven: dict[str, dict] = field(default_factory=dict)  # tests with warps that wait now and then

    def of_uneven(self) -> "Survey":
        return Survey(self.kernels, self.uneven)

    def files(self) -> set[str]:
        """Those of the examples that tests load."""
        used = {kernel for test in self.tests.values() for kernel in test["kernels"]}
        return {file for one in used for file in self.kernels[one].get("files", ())}

    def of(self, file: str) -> set[str]:
        """The kernels whose source is or includes a file."""
        return {one for one, fact in self.kernels.items() if file in fact.get("files", ())}


def survey(folder: Path, root: Path | None = None) -> Survey:
    """Read the reports of a folder. Raises SystemExit where there is none with kernels.

    root: of a tree; what is no test function there any more is left out.
    """
    found, texts = Survey(), {}

    def is_there(name: str) -> bool:
        if root is None:
            return True
        file, _, function = function_of(name).rpartition("::")
        if file not in texts:
            path = root / file
            texts[file] = path.read_text(encoding="utf-8") if path.is_file() else ""
        return f"def {function}(" in texts[file]

    for report in sorted(folder.glob("report-*.jsonl")):
        run = shards.read(report)
        uneven = report.stem.removeprefix("report-") in shards.UNEVEN
        for key, fact in run.kernels.items():
            if uneven and key in found.kernels:
                continue  # the code of an uneven kernel is another one
            # The time of whoever compiled it, not of whoever found it.
            if fact.get("compiled", 0) >= found.kernels.get(key, {}).get("compiled", 0):
                found.kernels[key] = fact
        (found.uneven if uneven else found.tests).update({
            name: test
            for name, test in run.tests.items()
            if test["outcome"] == "passed" and test.get("kernels") and not test.get("large") and is_there(name)
        })  # fmt: skip
    if not found.tests:
        raise SystemExit(
            f"{folder} has no report of tests with their kernels: "
            "run `python tests/gpu/shards.py llm-products llm-rows tensor uneven-llm uneven-tensor --kernels --out FOLDER` on a GPU"
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
    """Tests that load a file: first a case of each test function, then each kernel once, then others, at random.

    A kernel costs what the survey compiled it for, once: the tree in which it is compiled is a new one. Of cases that need
    equally many new ones, that which runs longest is taken, up to `RUNNING`: its loops turn more than once.
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

    def running(name: str) -> float:
        test = found.tests[name]
        return max(test["seconds"] - test.get("compiling", 0.0), 0.02)

    def compiling(name: str) -> float:
        return sum(found.kernels[one].get("compiled", 0.0) for one in used[name] - compiled)

    def cost(name: str) -> float:
        return running(name) + compiling(name)

    def preferred(name: str) -> tuple[float, float]:
        seconds = running(name)
        return compiling(name), seconds if seconds > RUNNING else -seconds

    def take(fits: Callable[[str], bool]) -> bool:
        """Add the preferred one that fits; the first whatever it costs."""
        nonlocal spent
        best = min(filter(fits, names), key=preferred, default=None)
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


def patience(found: Survey, report: shards.Found, hang: float) -> float:
    """Seconds after which a test hangs that has told nothing: several times what it takes, and what one kernel that it has
    not yet compiled takes; before the first test, what it takes to get there."""
    if not report.running:
        return STARTING + hang
    name = next(iter(report.running.values()))
    test = found.tests.get(name, {})
    missing = set(test.get("kernels", ())) - report.kernels.keys()
    compiling = max((found.kernels[one].get("compiled", 0.0) for one in missing), default=0.0)
    running = max(test.get("seconds", 0.0) - test.get("compiling", 0.0), 0.0)
    return hang + SLOWER * (running + compiling)


def judge(
    tree: Tree, found: Survey, file: str, choice: Choice, folder: Path, limits: Limits, uneven: bool = False
) -> dict:  # fmt: skip
    """Run the tests in a tree, and say what became of the fault in it. uneven: with warps that wait now and then."""
    name = f"{time.time_ns()}"
    plan = {"names": choice.tests, "files": [], "seed": 0, "ordered": True, "kernels": True, "at_once": True, "uneven": uneven}  # fmt: skip
    files = sorted({test.partition("::")[0] for test in choice.tests})
    processes = shards.Processes(plan, folder, name, tree.place, ["-x"], files, 12)
    begun = time.monotonic()
    most = STARTING + SLOWER * choice.seconds
    processes.start()
    try:
        stuck, size, grown = "", -1, time.monotonic()
        allowed = patience(found, shards.Found(), limits.hang)
        while processes.running and not stuck:
            time.sleep(0.1)
            processes.ended()
            now = time.monotonic()
            new = processes.report.stat().st_size if processes.report.is_file() else 0
            if new != size:
                size, grown, so_far = new, now, shards.read(processes.report)
                allowed = patience(found, so_far, limits.hang)
                if now - begun > most and so_far.tests:  # one that hangs is no slow one
                    stuck = "slow"
            if now > limits.until:
                return {"outcome": "cut", "seconds": round(now - begun, 1)}
            if now - grown > allowed:
                stuck = f"nothing went on for {allowed:.0f} s"
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
    if uneven:
        return result | {"outcome": "passed"}
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


def same_everywhere(tree: Tree, found: Survey, file: str, limit: float) -> tuple[bool | None, str]:
    """Whether all kernels that tests load have the code of the survey in this tree, and which has not.

    None where that cannot be said, with the reason. What the tests have not compiled is compiled by nvcc alone.
    """
    codes = {key: found.kernels[key]["code"] for key in found.of(file) if found.kernels[key].get("code")}  # fmt: skip
    path = os.pathsep.join(filter(None, [str(tree.place), os.environ.get("PYTHONPATH", "")]))
    env = os.environ | {"PYTHONPATH": path}
    try:
        done = subprocess.run(
            [sys.executable, str(HERE / "machine_code.py"), ARCH], input=json.dumps(codes), cwd=tree.place, env=env,
            capture_output=True, text=True, timeout=limit,
        )  # fmt: skip
    except subprocess.TimeoutExpired:
        return None, "no time to compile all"
    said = done.stdout.strip()
    if done.returncode or not said:
        return None, done.stderr[-500:]
    return said == "same", said


# --- what is known of faults -------------------------------------------------------------------------


@dataclass(frozen=True)
class Rule:
    """Faults of which somebody has said why no test can notice them.

    files: patterns of their files. family, old, new: of the fault; old and new are regular expressions for all of it, with
    single blanks. line: one that is found in its line and the one below. before: one for what ends where the fault begins, in
    its line, for a line with several of a kind. outcome: 'equivalent' or 'not to be shown'.
    """

    outcome: str
    why: str
    family: str
    old: str
    new: str
    files: tuple[str, ...] = ("*",)
    line: str = ""
    before: str = ""

    def covers(self, row: dict, line: str, before: str) -> bool:
        def whole(pattern: str, text: str) -> bool:
            return re.fullmatch(pattern, " ".join(text.split())) is not None

        return (
            row["family"] == self.family
            and any(fnmatch(row["file"], one) for one in self.files)
            and whole(self.old, row["old"])
            and whole(self.new, row["new"])
            and re.search(self.line, line) is not None
            and re.search(f"(?:{self.before})$", before) is not None
        )


def rules(path: Path = SETTLED) -> list[Rule]:
    """Those of settled.yml. Raises TypeError for a rule with other words than `Rule` has."""
    listed = yaml.safe_load(path.read_text(encoding="utf-8")) or []
    return [Rule(**one | {"files": tuple(one.get("files", ("*",)))}) for one in listed]


class Known:
    """The rules, and the texts of the kernels that they look at."""

    def __init__(self, root: Path, path: Path = SETTLED):
        self.rules, self.root = rules(path), root
        self.texts: dict[str, str] = {}

    def of(self, row: dict) -> Rule | None:
        """The rule that covers a fault (its facts), if one does."""
        if "old" not in row:
            return None
        if row["file"] not in self.texts:
            path = self.root / "examples" / row["file"]
            self.texts[row["file"]] = path.read_text(encoding="utf-8")
        text = self.texts[row["file"]]
        line = " ".join(" ".join(text.splitlines()[row["line"] - 1 :][:2]).split())
        before = text[: row["at"]].rpartition("\n")[2]
        return next((rule for rule in self.rules if rule.covers(row, line, before)), None)

    def outcome(self, row: dict) -> str:
        """What became of a fault: one that no test has noticed may be one that none can notice."""
        outcome = row.get("outcome", "")
        if outcome in ("survived", "undecided") and (rule := self.of(row)):
            return rule.outcome
        return outcome


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


def valid(mutants: list[Mutant], results: Results, known: Known, count: int) -> list[Mutant]:
    """The first `count` of them that are not known to be without effect, not to be shown or not to compile."""
    out = ("does not compile", "equivalent", "not to be shown")
    rows = ((one, results.by_name.get(one.name, {})) for one in mutants)
    return list(islice((one for one, row in rows if known.outcome(row) not in out), count))


def settled(outcome: str, again: Iterable[str]) -> bool:
    return outcome not in ("", "cut", "failed to run", *again)


def judge_all(given: argparse.Namespace, root: Path = ROOT) -> Results:
    """Judge the faults of a seed until `count` of them are counted, each in its time, or the time is over."""
    found, limit = survey(given.survey, root), time.monotonic() + given.limit
    texts = cuda_mutants.kernel_files(root / "examples")
    judged = {file: text for file, text in texts.items() if file in found.files()}
    mutants = list(islice(cuda_mutants.drawn(judged, given.seed), 4 * given.count))
    results = Results(given.out / f"kernels-{given.seed}.jsonl")
    clean = Results(given.out / "clean.jsonl")
    limits, known = Limits(given.hang, limit), Known(root)
    begun: set[str] = set()
    again = given.again.split(",") if given.again else ()

    def control(file: str) -> Callable[[Tree, Path], None]:
        def run(tree: Tree, folder: Path) -> None:
            for by, uneven, name in (
                (found, False, f"{file} {given.budget:.0f}"),
                (found.of_uneven(), True, f"{file} {given.budget:.0f} uneven"),
            ):
                if uneven and file not in by.files():
                    continue
                choice = choose(by, file, given.budget)
                result = judge(tree, by, file, choice, folder, limits, uneven=uneven)
                print(f"{result['outcome']:16} without a fault: {name}", flush=True)
                if result["outcome"] != "cut":
                    clean.add(name, result)

        return run

    def in_order(
        mutant: Mutant, tree: Tree, folder: Path, tests: Callable[[Survey], Choice]
    ) -> dict:
        """By tests as they are and by those with uneven warps, until one notices; first those that are likelier to."""
        uneven = found.of_uneven()
        result: dict = {}
        for with_uneven in (True, False) if mutant.family in SCHEDULED else (False, True):
            by = uneven if with_uneven else found
            if mutant.file not in by.files() or not (choice := tests(by)).tests:
                continue
            told = judge(tree, by, mutant.file, choice, folder, limits, uneven=with_uneven)
            if told["outcome"] not in ("passed", "same code", "survived", "undecided"):
                return told | {"uneven": with_uneven}
            # What is said of the code of kernels, the tests as they are have found.
            result = {**result, **told} if not with_uneven or not result else result
        return result

    def further(by: Survey, file: str, kernel: str) -> Choice:
        """Tests that have not run: first of a kernel of which it is known that its code is another, then others."""
        have_run = set(choose(by, file, given.budget).tests)
        own = sorted(
            (name for name, test in by.tests.items() if kernel in test["kernels"] and name not in have_run),
            key=lambda name: by.tests[name]["seconds"],
        )[:OF_ONE_KERNEL]  # fmt: skip
        choice = choose(by, file, given.more)
        others = [name for name in choice.tests if name not in {*own, *have_run}]
        return replace(choice, tests=[*own, *others])

    def fault(mutant: Mutant) -> Callable[[Tree, Path], None]:
        def run(tree: Tree, folder: Path) -> None:
            choice = choose(found, mutant.file, given.budget)
            tree.plant(mutant)
            file = mutant.file
            result = in_order(mutant, tree, folder, lambda by: choose(by, file, given.budget))
            if result["outcome"] == "same code":
                same, which = same_everywhere(
                    tree, found, file, max(limits.until - time.monotonic(), 1)
                )
                outcome = {True: "equivalent", False: "survived", None: "undecided"}[same]
                result |= {"outcome": outcome, "how": which}
            if result["outcome"] == "survived" and not known.of(mutant.facts()):
                kernel = result.get("how", "")
                told = in_order(mutant, tree, folder, lambda by: further(by, file, kernel))
                tests, seconds = (result[one] + told.get(one, 0) for one in ("tests", "seconds"))
                # Whatever else they say, it has survived the first.
                result |= told if told.get("outcome") == "noticed" else {}
                result |= {"tests": tests, "seconds": round(seconds, 1)}
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
            for one in valid(mutants, results, known, given.count):
                if one.name not in begun and not settled(results.outcome(one.name), again):
                    begun.add(one.name)
                    yield fault(one)
                    break
            else:
                return

    given.out.mkdir(parents=True, exist_ok=True)
    in_trees(given.jobs, root, work())
    return results


def settle_all(given: argparse.Namespace, root: Path = ROOT) -> None:
    """Compare the code of all kernels where those that tests met have the same and time was short; nvcc is all it needs."""
    found, limit = survey(given.survey, root), time.monotonic() + given.limit
    results = Results(given.out / f"kernels-{given.seed}.jsonl")

    def compared(row: dict) -> Callable[[Tree, Path], None]:
        def run(tree: Tree, folder: Path) -> None:
            facts = {one: row[one] for one in Mutant.__dataclass_fields__}
            tree.plant(Mutant(**facts))
            left = max(limit - time.monotonic(), 1)
            same, which = same_everywhere(tree, found, row["file"], left)
            if same is not None:
                outcome = "equivalent" if same else "survived"
                results.add(row["name"], row | {"outcome": outcome, "how": which})
            print(f"{results.outcome(row['name']):16} {row['name']}", flush=True)

        return run

    left = [row for row in results.by_name.values() if row["outcome"] == "undecided" and row.get("kernels") == 0]  # fmt: skip
    in_trees(given.jobs, root, iter([compared(row) for row in left]))


def clean_all(given: argparse.Namespace, root: Path = ROOT) -> bool:
    """Run what is chosen for each file in a tree without faults; whether all passed in time."""
    found, limits = (
        survey(given.survey, root),
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
    results, known = Results(given.out / f"kernels-{given.seed}.jsonl"), Known(root)
    clean = Results(given.out / "clean.jsonl")
    rows = list(results.by_name.values())
    by: dict[str, list[dict]] = {}
    for row in rows:
        by.setdefault(known.outcome(row), []).append(row)
    counted = [row for row in rows if known.outcome(row) in COUNTED][: given.count]
    noticed = [row for row in counted if row["outcome"] == "noticed"]
    print(f"seed {given.seed}: {len(noticed)} of {len(counted)} noticed", end="")
    print(f" ({len(noticed) / max(len(counted), 1):.1%}); " + ", ".join(f"{len(v)} {k}" for k, v in sorted(by.items())))  # fmt: skip
    for family in cuda_mutants.FAMILIES:
        own = [row for row in counted if row["family"] == family]
        print(f"  {family:10} {sum(row['outcome'] == 'noticed' for row in own)} of {len(own)}")
    for outcome in ("survived", "undecided", "equivalent", "not to be shown"):
        for row in by.get(outcome, ()):
            rule = known.of(row)
            why = f": {rule.why}" if rule and outcome == rule.outcome else ""
            print(f"{outcome}: {row['name']} ({row.get('tests', 0)} tests, {row['seconds']:.0f} s){why}")  # fmt: skip
    for row in noticed:
        if rule := known.of(row):  # then what the rule says is not so, or not of this one
            print(f"noticed, though settled.yml says '{rule.outcome}': {row['name']}")
    fine = sum(row["outcome"] in PASSED for row in clean.by_name.values())
    print(f"without a fault: {fine} of {len(clean.by_name)} passed")
    for row in clean.by_name.values():
        if row["outcome"] not in PASSED:
            print(f"  {row['outcome']}: {row['name']} {row.get('by', '')} {row.get('how', '')}")
    whole = len(counted) >= given.count and fine == len(clean.by_name) > 0
    return whole and len(noticed) >= 0.95 * len(counted)


def main(arguments: list[str] | None = None, root: Path = ROOT) -> int:
    parser = argparse.ArgumentParser(description=__doc__.split("\n\n")[0])
    commands = parser.add_subparsers(dest="command", required=True)
    common: list[argparse.ArgumentParser] = []
    for name in ("clean", "judge", "settle", "report", "draw"):
        one = commands.add_parser(name)
        common.append(one)
        if name in ("clean", "judge", "settle"):
            one.add_argument("survey", type=Path, help="the folder of the shards' reports")
            one.add_argument("--out", type=Path, required=True)
            one.add_argument("--jobs", type=int, default=12)
            one.add_argument(
                "--budget", type=float, default=45, help="seconds of tests for a fault"
            )
            one.add_argument(
                "--hang",
                type=float,
                default=20,
                help="seconds without progress, and several times what a test takes",
            )
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
            one.add_argument(
                "--more", type=float, default=120, help="seconds of tests for what survives these"
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
    if given.command == "settle":
        settle_all(given, root)
    return 0 if report(given, root) else 1


if __name__ == "__main__":
    sys.exit(main())
