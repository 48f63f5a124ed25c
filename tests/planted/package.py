"""Faults planted in the package, each judged by the tests that call what it is in.

    export PYTHONPATH=.:tests/gpu
    python tests/planted/package.py survey OUT                   which tests call which functions: runs them all once
    python tests/planted/package.py judge OUT --seed N --count 100
    python tests/planted/package.py gpu OUT --seed N             what survived in cudatut/gpu, by tests/gpu, on a GPU
    python tests/planted/package.py report OUT --seed N --count 100

Of the tests that call a function `judge` takes the file named like its module first, then what takes least, as far as it fits
into `--budget` seconds. What runs when a module is imported is judged by the tests of that file and by a sample of others.
A fault is noticed where a test fails, the run ends otherwise, or it takes far longer than it should. `equivalent.yml` lists
those of which somebody has shown that they change nothing, with the reason; they are told and not counted.
"""

import argparse
import json
import os
import shutil
import signal
import subprocess
import sys
import time
from collections import defaultdict
from dataclasses import dataclass, field
from itertools import islice
from pathlib import Path

import python_mutants
import yaml
from kernels import Results
from python_mutants import Mutant

HERE = Path(__file__).resolve().parent
ROOT = HERE.parents[1]

# What judges: without what needs a browser, a GPU or the whole site.
TESTS = (
    "tests/cudatut",
    "tests/site",
    "tests/authoring",
    "tests/llm",
    "tests/examples/test_sources.py",
    "tests/examples/test_restamps.py",
    "tests/examples/test_compile.py",
    "tests/examples/test_exercises.py",
    "tests/test_forgeries.py",
    "tests/test_commands.py",
    "tests/test_notebooks.py",
)
LEFT_OUT = ("test_browser.py", "test_every_page.py")
# Two hundred runs of nvcc say nothing of the package that the other tests of their file do not say.
DESELECTED = ("tests/examples/test_compile.py::test_compiles",)
# On a GPU, the package's own, quick ones first.
GPU_TESTS = (
    "test_gpu_half.py",
    "test_instrument.py",
    "test_tracing.py",
    "test_histogram.py",
    "test_faults.py",
    "test_initcheck_tma.py",
    "test_tuning.py",
    "test_work.py",
    "test_reduction.py",
)
EQUIVALENT = HERE / "equivalent.yml"


# --- which tests ------------------------------------------------------------------------------------


@dataclass
class Survey:
    """By function, (file, first line), the tests that call it; of each test its seconds."""

    callers: dict[tuple[str, int], set[str]] = field(default_factory=lambda: defaultdict(set))
    seconds: dict[str, float] = field(default_factory=dict)

    def of_module(self, file: str) -> set[str]:
        return set().union(*(some for (name, _), some in self.callers.items() if name == file))


def survey(folder: Path) -> Survey:
    """Read what `survey` wrote. Raises SystemExit where it has not."""
    found = Survey()
    if not (folder / "tests.jsonl").is_file():
        raise SystemExit(f"{folder} has no survey: run `python tests/planted/package.py survey`")
    for line in (folder / "tests.jsonl").read_text(encoding="utf-8").splitlines():
        said = json.loads(line)
        if said["outcome"] == "passed":
            found.seconds[said["test"]] = said["seconds"]
    for path in folder.glob("[0-9]*.jsonl"):
        for line in path.read_text(encoding="utf-8").splitlines():
            said = json.loads(line)
            if said["test"] in found.seconds:
                for file, number in said["called"]:
                    found.callers[f"cudatut/{file}", number].add(said["test"])
    return found


def choose(found: Survey, mutant: Mutant, budget: float) -> list[str]:
    """Tests in their order: those of the module's own file, then quick ones, as far as the budget goes."""
    tests = found.callers.get((mutant.file, mutant.function), set()) if mutant.function else set()
    if not tests:
        tests = found.of_module(mutant.file)
    stem = Path(mutant.file).stem.strip("_")

    def order(test: str) -> tuple:
        file = Path(test.partition("::")[0])
        return (stem not in file.stem, found.seconds[test], test)

    chosen, spent = list[str](), 0.0
    for test in sorted(tests, key=order):
        if not chosen or spent + found.seconds[test] <= budget:
            chosen.append(test)
            spent += found.seconds[test]
    return chosen


# --- a tree, and what is run in it ------------------------------------------------------------------


class Tree:
    """A clone of the checkout as it was committed, in which one file of the package may have a fault."""

    def __init__(self, root: Path, place: Path):
        self.place = place
        head = subprocess.run(
            ["git", "-C", str(root), "rev-parse", "HEAD"],
            capture_output=True,
            text=True,
            check=True,
        ).stdout.strip()
        mark = place / ".git" / "planted"
        if not mark.is_file() or mark.read_text() != head:
            shutil.rmtree(place, ignore_errors=True)
            clone = ["git", "clone", "-q", "--shared", str(root), str(place)]
            subprocess.run(clone, check=True)
            subprocess.run(["git", "-C", str(place), "checkout", "-q", head], check=True)
            mark.write_text(head)

    def plant(self, mutant: Mutant) -> None:
        path = self.place / mutant.file
        self.clean = path, path.read_text(encoding="utf-8")
        path.write_text(mutant.applied(self.clean[1]), encoding="utf-8")

    def mend(self) -> None:
        self.clean[0].write_text(self.clean[1], encoding="utf-8")


def run(tree: Path, arguments: list[str], limit: float, **variables: str) -> tuple[int | None, str]:
    """pytest's status and what it said; None where it was ended after `limit` seconds."""
    first = variables.pop("PYTHONPATH", str(tree))
    path = os.pathsep.join(filter(None, [first, os.environ.get("PYTHONPATH", "")]))
    env = os.environ | {"PYTHONPATH": path, "PYTHONDONTWRITEBYTECODE": "1", **variables}
    command = [
        sys.executable,
        "-m",
        "pytest",
        "-q",
        "--tb=line",
        "-p",
        "no:cacheprovider",
        *arguments,
    ]
    process = subprocess.Popen(
        command, cwd=tree, env=env, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True,
        start_new_session=True,
    )  # fmt: skip
    try:
        said = process.communicate(timeout=limit)[0]
        return process.returncode, said
    except subprocess.TimeoutExpired:
        os.killpg(process.pid, signal.SIGKILL)
        return None, process.communicate()[0]


def judge(tree: Tree, tests: list[str], seconds: float) -> dict:
    """Run tests until one fails, and say what became of the fault."""
    if not tests:
        return {"outcome": "survived", "tests": 0, "by": "no test calls it"}
    begun = time.monotonic()
    with_names = tree.place / ".git" / "planted-tests"
    with_names.write_text("\n".join(tests), encoding="utf-8")
    status, said = run(tree.place, ["-x", f"@{with_names}"], 30 + 6 * seconds)
    took = round(time.monotonic() - begun, 1)
    result = {"tests": len(tests), "seconds": took}
    if status == 0:
        return result | {"outcome": "survived"}
    if "ERROR: not found:" in said or "file or directory not found" in said:
        raise SystemExit(f"{said[-1000:]}\nThe survey names tests that are gone: take it again.")
    return result | {"outcome": "noticed", "by": "too slow" if status is None else first_line(said)}


def first_line(said: str) -> str:
    """What failed first, as pytest's summary says."""
    lines = [line for line in said.splitlines() if line.startswith(("FAILED", "ERROR"))]
    return (lines or [said[-300:]])[0][:300]


def equivalents(path: Path = EQUIVALENT) -> dict[str, str]:
    """{name of a fault, without its line number: the reason}."""
    listed = yaml.safe_load(path.read_text(encoding="utf-8")) if path.is_file() else None
    return {one["fault"]: one["why"] for one in listed or []}


def key(name: str) -> str:
    """A fault's name without the number of its line, which other changes move."""
    file, _, rest = name.partition(":")
    return f"{file} {rest.partition(' ')[2]}"


def outcome_of(name: str, result: dict, known: dict[str, str]) -> str:
    """A survivor of which the list says that it changes nothing is equivalent; one that is noticed never is."""
    outcome = result.get("outcome", "")
    return "equivalent" if outcome == "survived" and key(name) in known else outcome


# --- commands ---------------------------------------------------------------------------------------


def take_survey(given: argparse.Namespace) -> int:
    given.out.mkdir(parents=True, exist_ok=True)
    for old in () if given.add else given.out.glob("*.jsonl"):
        if not old.name.startswith("package-"):
            old.unlink()
    tree = Tree(ROOT, given.out / "tree")
    left_out = [f"--ignore-glob=*/{name}" for name in LEFT_OUT]
    left_out += [f"--deselect={name}" for name in DESELECTED]
    variables = {
        "PYTHONPATH": os.pathsep.join(map(str, (tree.place, HERE / "followed", HERE))),
        "PLANTED_CALLS": str(given.out.resolve()),
        "PLANTED_PACKAGE": str((tree.place / "cudatut").resolve()),
    }
    tests = given.tests or [one for one in TESTS if (tree.place / one).exists()]
    status, said = run(
        tree.place, ["-p", "calls_noted", *left_out, *tests], given.limit, **variables
    )
    print(said[-2000:])
    found = survey(given.out)
    print(f"{len(found.seconds)} tests, {len(found.callers)} functions, status {status}")
    return 0 if status in (0, 1) else 1


def mutants_of(given: argparse.Namespace, root: Path) -> list[Mutant]:
    """More than are counted, since some change nothing. --only: of files whose names begin so, for whoever mends tests."""
    texts = python_mutants.package_files(root)
    texts = {name: text for name, text in texts.items() if name.startswith(given.only)}
    return list(islice(python_mutants.drawn(texts, given.seed), 3 * given.count))


def judge_all(given: argparse.Namespace) -> int:
    found, until = survey(given.out), time.monotonic() + given.limit
    tree, known = Tree(ROOT, given.out / "tree"), equivalents()
    results = Results(given.out / f"package-{given.seed}.jsonl")
    if results.outcome("without a fault") != "survived":  # the control
        tests = sorted(found.seconds, key=lambda test: (found.seconds[test], test))[::7][:400]
        control = judge(tree, tests, sum(found.seconds[one] for one in tests))
        print(f"{control['outcome']} without a fault: {control.get('by', '')}", flush=True)
        results.add("without a fault", control)
        if control["outcome"] != "survived":
            return 1
    counted = 0
    for mutant in mutants_of(given, tree.place):
        if counted >= given.count or time.monotonic() > until:
            break
        again = given.again and results.outcome(mutant.name) == "survived"
        if not results.outcome(mutant.name) or again:
            tests = choose(found, mutant, given.budget)
            tree.plant(mutant)
            try:
                result = judge(tree, tests, sum(found.seconds[one] for one in tests))
            finally:
                tree.mend()
            results.add(mutant.name, result | mutant.facts())
            print(
                f"{result['outcome']:9} {result.get('seconds', 0):5.0f} s  {mutant.name[:200]}",
                flush=True,
            )
        counted += outcome_of(mutant.name, results.by_name[mutant.name], known) != "equivalent"
    return report(given)


def judge_on_gpu(given: argparse.Namespace) -> int:
    """What survived in cudatut/gpu, by tests/gpu: in copies of the tree, which needs no history."""
    import kernels

    results = Results(given.out / f"package-{given.seed}.jsonl")
    names = [
        name
        for name, row in results.by_name.items()
        if row["outcome"] == "survived"
        and row.get("file", "").startswith("cudatut/gpu/")
        and not row.get("on_gpu")
    ]
    until = time.monotonic() + given.limit
    tests = [f"tests/gpu/{name}" for name in GPU_TESTS]

    def one(name):
        def run_one(tree, _folder):
            row = results.by_name[name] if name else {}
            path = tree.place / row.get("file", "cudatut/__init__.py")
            text = path.read_text(encoding="utf-8")
            if name:
                mutant = Mutant(**{part: row[part] for part in Mutant.__dataclass_fields__})
                path.write_text(mutant.applied(text), encoding="utf-8")
            left = until - time.monotonic()
            try:
                # Not those that need the GPU for themselves: here trees share it.
                status, said = run(
                    tree.place, ["-x", "-m", "not alone", *tests], min(left, given.budget),
                    CUDATUT_REQUIRE_GPU="1", PYTEST_ADDOPTS="", CUDATUT_SHARED_GPU="1",
                )  # fmt: skip
            finally:
                path.write_text(text, encoding="utf-8")
            if status is None:
                return  # beside others a test may take any time, so this is no verdict
            why = first_line(said)
            result = {
                "outcome": "survived" if status == 0 else "noticed",
                "by": why,
                "on_gpu": True,
            }
            results.add(name or "without a fault, on a GPU", row | result)
            print(
                f"{result['outcome']:9} {name or 'without a fault'}: {why if status else ''}",
                flush=True,
            )

        return run_one

    given.out.mkdir(parents=True, exist_ok=True)
    if results.outcome("without a fault, on a GPU") != "survived":
        kernels.in_trees(1, ROOT, iter([one("")]))
        if results.outcome("without a fault, on a GPU") != "survived":
            raise SystemExit("Without a fault the tests fail, or take longer than the budget.")
    kernels.in_trees(given.jobs, ROOT, iter([one(name) for name in names]))
    return report(given)


def report(given: argparse.Namespace) -> int:
    results, known = Results(given.out / f"package-{given.seed}.jsonl"), equivalents()
    rows = [row for name, row in results.by_name.items() if not name.startswith("without a fault")]
    by: dict[str, list[dict]] = defaultdict(list)
    for row in rows:
        by[outcome_of(row["name"], row, known)].append(row)
    counted = len(by["noticed"]) + len(by["survived"])
    share = len(by["noticed"]) / max(counted, 1)
    print(
        f"seed {given.seed}: {len(by['noticed'])} of {counted} noticed ({share:.1%}); "
        f"{len(by['equivalent'])} change nothing"
    )
    for family in python_mutants.FAMILIES:
        own = [row for row in (*by["noticed"], *by["survived"]) if row["family"] == family]
        print(f"  {family:10} {sum(row['outcome'] == 'noticed' for row in own)} of {len(own)}")
    for row in by["survived"]:
        print(f"survived: {row['name']} ({row['tests']} tests) {row.get('by', '')[:80]}")
    for row in by["equivalent"]:
        print(f"equivalent: {row['name']}: {known[key(row['name'])]}")
    return 0 if counted >= given.count and share >= 0.95 else 1


def main(arguments: list[str] | None = None) -> int:
    parser = argparse.ArgumentParser(description=__doc__.split("\n\n")[0])
    commands = parser.add_subparsers(dest="command", required=True)
    for name, budget, limit in (
        *(("survey", 0, 3000), ("judge", 30, 3000), ("gpu", 240, 540), ("report", 0, 0)),
    ):
        one = commands.add_parser(name)
        one.add_argument("out", type=Path)
        if name != "report":
            one.add_argument("--limit", type=float, default=limit, help="seconds in all")
        if name == "survey":
            one.add_argument("--tests", nargs="*", help="instead of all")
            one.add_argument(
                "--add", action="store_true", help="to an older survey of this package"
            )
        else:
            one.add_argument("--seed", type=int, required=True)
            one.add_argument("--count", type=int, default=100)
        if name in ("judge", "gpu"):
            one.add_argument(
                "--budget", type=float, default=budget, help="seconds of tests for a fault"
            )
            one.add_argument("--only", default="", help="files whose names begin with this")
            one.add_argument("--again", action="store_true", help="judge survivors once more")
            one.add_argument("--jobs", type=int, default=6)
    given = parser.parse_args(arguments)
    does = {"survey": take_survey, "judge": judge_all, "gpu": judge_on_gpu, "report": report}
    return does[given.command](given)


if __name__ == "__main__":
    sys.exit(main())
