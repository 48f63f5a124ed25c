"""A plugin of pytest by which several processes share the tests of tests/gpu: each takes the next few from one queue.

    python -m pytest tests/gpu -p dealt --deal PLAN

`shards.py` writes the plan and starts the processes. Each collects the same tests and brings them into the same order, so
the queue is a file with a number. What happens is appended to a report, a line of JSON each: a test that begins, one that
ended, with its times and, if it failed, the text; and with `kernels` those that it compiled or launched, each
described once.
"""

import fcntl
import hashlib
import inspect
import json
import os
import random
import tempfile
import time
from collections import defaultdict
from fnmatch import fnmatch
from pathlib import Path

import pytest

BATCH = 12  # tests that a process takes at once: those of one file, so that they share its fixtures
TEXT = 8000  # characters that are kept of a failure
NOTE_IN = "CUDATUT_NOTE_KERNELS"


def pytest_addoption(parser):
    parser.addoption("--deal", metavar="PLAN", help="a plan of shards.py")


def pytest_configure(config):
    if config.getoption("--deal"):
        plan = json.loads(Path(config.getoption("--deal")).read_text(encoding="utf-8"))
        config.pluginmanager.register(Dealt(plan), "dealt-tests")


def function_of(name: str) -> str:
    """A test's name without its parameters."""
    return name.partition("[")[0]


def draw_key(seed: int, *words: object) -> str:
    """A random number of a name, the same in every process."""
    return hashlib.sha256(repr((seed, *words)).encode()).hexdigest()


def words_of(item) -> set[tuple[str, str]]:
    """The parameters of a test that are strings, each with its value."""
    parameters = item.callspec.params if hasattr(item, "callspec") else {}
    return {(name, value) for name, value in parameters.items() if isinstance(value, str)}


def batches(tests: list[tuple[str, str]], seed: int, size: int = BATCH) -> list[list[str]]:
    """Names of tests in an order drawn by a seed, cut into batches; whole groups (the second words) stay together, first.

    tests: (name, group); without a group, the file is one whose batches may be cut.
    """
    groups: dict[tuple[str, bool], list[str]] = defaultdict(list)
    for name, group in tests:
        groups[group or name.partition("::")[0], bool(group)].append(name)
    cut: dict[bool, list[list[str]]] = {True: [], False: []}
    for (_, whole), names in sorted(groups.items()):
        names = sorted(names, key=lambda name: draw_key(seed, name))
        step = len(names) if whole else size
        cut[whole] += [names[i : i + step] for i in range(0, len(names), step)]
    draw = random.Random(seed)
    for some in cut.values():
        draw.shuffle(some)
    return cut[True] + cut[False]


def some_of_each(
    names: list[str],
    seed: int,
    whole: tuple[str, ...] = (),
    most: int = 1,
    words: dict[str, set] | None = None,
) -> set[str]:
    """Of each test function `most` cases or all it has, drawn by the seed; of the files in `whole` all.

    words: by a test's name, those of its parameters that are names themselves: of a kernel, a rung, a type. Each gets a case
    of its own function, beyond the `most` where need be.
    """
    cases: dict[str, list[str]] = defaultdict(list)
    for name in names:
        cases[function_of(name)].append(name)
    drawn = set()
    for some in cases.values():
        some = sorted(some, key=lambda name: draw_key(seed, name))
        drawn.update(some[:most])
        seen = set().union(*((words or {}).get(name, set()) for name in some[:most]))
        for name in some[most:]:
            own = (words or {}).get(name, set())
            if own - seen:
                drawn.add(name)
                seen |= own
    return drawn | {name for name in names if name.partition("::")[0].endswith(whole)}


class Queue:
    """A number in a file, of which each process takes the next."""

    def __init__(self, path: Path):
        self.path = path

    def take(self) -> int:
        with open(self.path, "a+") as file:
            fcntl.flock(file, fcntl.LOCK_EX)
            file.seek(0)
            number = int(file.read() or 0)
            file.seek(0)
            file.truncate()
            file.write(str(number + 1))
            file.flush()
        return number


class Dealt:
    """plan: files (patterns), alone (True, False), cases (of each function), words (each name among parameters has a case), half, uneven (see uneven.py), names (or null), done (names), seed, queue, report,
    batch, repeat (how often each test runs, 1), ordered (as in `names`, in one batch), kernels (whether to note them), at_once (see `Kernels`), apart (each process compiles for itself), kept_by_pycuda, draw
    (how many of the tests, at most, of each name).
    """

    def __init__(self, plan: dict):
        self.plan, self.queue = plan, Queue(Path(plan["queue"]))
        self.names = set(plan.get("names") or ())
        self.patterns = [
            name for name in self.names if "[" not in name
        ]  # functions, with all cases
        self.items: dict[str, pytest.Item] = {}
        # Before the tests are imported, which may make kernels.
        self.kernels = (
            Kernels(self.say, plan.get("at_once", False)) if plan.get("kernels") else None
        )
        self.started = 0.0

        if plan.get("kept_by_pycuda"):
            leave_to_pycuda()
        elif not plan.get("apart"):
            share_compiling(Path(tempfile.gettempdir(), f"cudatut-locks-{os.getuid()}"))
        if plan.get("uneven"):
            import uneven

            uneven.begin()

    def say(self, **facts) -> None:
        line = json.dumps({**facts, "pid": os.getpid()}, ensure_ascii=False) + "\n"
        with open(self.plan["report"], "a", encoding="utf-8") as file:
            fcntl.flock(file, fcntl.LOCK_EX)
            file.write(line)

    @pytest.hookimpl(trylast=True)
    def pytest_collection_modifyitems(self, session, items):
        self.items = {item.nodeid: item for item in items if self.wanted(item)}
        names = list(self.items)
        if most := self.plan.get("cases"):
            whole = tuple(self.plan.get("whole", ()))
            words = {name: words_of(self.items[name]) for name in names}
            words = words if self.plan.get("words") else None
            names = some_of_each(names, self.plan["seed"], whole, most, words)
            part, parts = self.plan.get("half", (0, 1))
            names = [n for n in sorted(names) if int(draw_key(0, n), 16) % parts == part]
        if most := self.plan.get("draw"):
            names = self.drawn(names, most)
        names = [name for name in names if name not in set(self.plan.get("done", ()))]
        tests = [(name, self.group(self.items[name])) for name in names]
        rounds = range(self.plan.get("repeat", 1))
        seed, size = self.plan["seed"], self.plan.get("batch", BATCH)
        self.batches = [one for i in rounds for one in batches(tests, seed + i, size)]
        if self.plan.get("ordered"):
            self.batches = [[name for name in self.plan["names"] if name in self.items]]
        items[:] = [self.items[name] for name in names]
        self.say(collected=len(names))

    def wanted(self, item) -> bool:
        plan, file = self.plan, item.path.name
        if plan.get("names") is not None:
            function = function_of(item.nodeid)
            return item.nodeid in self.names or any(
                fnmatch(function, f"*{x}") for x in self.patterns
            )
        alone = item.get_closest_marker("alone") is not None
        return any(fnmatch(file, one) for one in plan["files"]) and alone == plan.get(
            "alone", False
        )

    def drawn(self, names: list[str], most: int) -> list[str]:
        """Of the tests of each name in the plan at most so many, drawn by the seed, none that takes much memory."""
        small = [name for name in names if not is_large(self.items[name])]
        drawn = set()
        for one in self.plan["names"]:
            own = [name for name in small if fnmatch(function_of(name), f"*{one}") or name == one]
            drawn |= set(sorted(own, key=lambda n: draw_key(self.plan["seed"], n))[:most])
        return [name for name in names if name in drawn]

    @staticmethod
    def group(item) -> str:
        """What has to run in one process: tests of one `xdist_group`; of one chapter, whose solutions share one.

        Those that ask how much memory the GPU has take much of it: one at a time.
        """
        mark = item.get_closest_marker("xdist_group")
        if mark and mark.args and "/" not in mark.args[0]:  # a file's own group is nobody's wish
            return mark.args[0]
        if is_large(item):
            return "large"
        chapter = getattr(item, "callspec", None) and item.callspec.params.get("chapter")
        return f"{function_of(item.nodeid)} {chapter}" if chapter else ""

    def order(self):
        while (number := self.queue.take()) < len(self.batches):
            yield from (self.items[name] for name in self.batches[number])

    @pytest.hookimpl(tryfirst=True)
    def pytest_runtestloop(self, session):
        if session.config.option.collectonly:
            return None
        order = self.order()
        item = next(order, None)
        while item is not None:
            following = next(order, None)
            self.say(began=item.nodeid)
            self.started = time.monotonic()
            # Before itself an item would not be set up again.
            other = following if following is not item else None
            item.config.hook.pytest_runtest_protocol(item=item, nextitem=other)
            if session.shouldstop or session.shouldfail:
                break
            item = following
        return True

    @pytest.hookimpl(hookwrapper=True)
    def pytest_runtest_makereport(self, item, call):
        report = (yield).get_result()
        if call.when == "teardown" and not report.failed:
            return
        if call.when == "setup" and report.passed:
            return
        seconds = round(time.monotonic() - self.started, 3)
        facts = {"test": item.nodeid, "outcome": report.outcome, "seconds": seconds}
        if report.failed:
            facts["text"] = f"{call.when}: {report.longreprtext}"[-TEXT:]
        if report.skipped:
            facts["text"] = str(report.longrepr[-1] if report.longrepr else "")[:300]
        if self.kernels:
            facts |= {"large": is_large(item)}
            facts |= self.kernels.taken()
        self.say(**facts)
        if report.failed and context_is_lost():
            self.say(lost=item.nodeid)
            os._exit(70)  # shards.py starts others for what is left


def is_large(item) -> bool:
    return "memory_bytes" in inspect.getsource(item.function)


def leave_to_pycuda() -> None:
    """As it was before `cudatut.gpu.cubins`: for who wants to see what that mends."""
    from cudatut.gpu import cubins

    def compiled(source, nvcc, **how):
        from pycuda.compiler import compile as pycuda_compile

        return pycuda_compile(source, nvcc=str(nvcc), **how)

    cubins.compiled = compiled


def share_compiling(folder: Path) -> None:
    """Who needs a kernel that another process is compiling waits for it, and does not compile it too."""
    from cudatut.gpu import cubins

    compiled = cubins.compiled
    folder.mkdir(parents=True, exist_ok=True)

    def one_at_a_time(source, nvcc, **how):
        key = hashlib.sha256(repr((source, sorted(how.items()))).encode()).hexdigest()
        with open(folder / key, "w") as lock:
            fcntl.flock(lock, fcntl.LOCK_EX)
            return compiled(source, nvcc, **how)

    cubins.compiled = one_at_a_time


def context_is_lost() -> bool:
    """Whether this process's GPU context answers nothing any more, as after an illegal address."""
    import cudatut as ct

    try:
        ct.synchronize()
    except ct.NoGpuError:
        return False
    except Exception:
        return True
    return False


def note_in(file: Path) -> None:
    """Note the kernels of this process there, for the test that has started it."""

    def say(**facts) -> None:
        with open(file, "a", encoding="utf-8") as to:
            to.write(json.dumps(facts) + "\n")

    Kernels(say, at_once=True)


class Kernels:
    """What the tests compile and launch: of each kernel its file, name, flags, and the digest of its code.

    say: is told of each kernel that is new, as soon as it is there. at_once: what would be compiled ahead is compiled when
    it is used.
    """

    def __init__(self, say, at_once: bool = False):
        import cudatut as ct
        from cudatut.errors import KernelCompileError
        from cudatut.gpu import kernel

        self.say = say
        self.of_others = Path(tempfile.mkdtemp(prefix="kernels-")) / "noted"
        os.environ[NOTE_IN] = str(self.of_others)  # for processes that a test starts
        self.used: set[str] = set()
        self.told: set[str] = set()
        self.compiling = 0.0
        made, launched, noted = kernel.Kernel.__init__, kernel.Kernel.__call__, self

        def init(self, source, name, defines=None, options=(), arch=None, load=True):
            begun, asked = time.monotonic(), [source, name, defines or {}, list(options), arch]
            self._asked = key = json.dumps(asked, default=str)
            try:
                made(self, source, name, defines, options, arch, load)
            except KernelCompileError as error:
                said = str(error)[:500]
                noted.note(key, lambda: {"error": said})
                raise
            seconds = time.monotonic() - begun
            noted.compiling += seconds
            noted.note(key, lambda: noted.fact(self) | {"compiled": round(seconds, 2)})

        def call(self, *args, **how):
            if asked := getattr(self, "_asked", None):  # one made before these notes has none
                noted.used.add(asked)
            return launched(self, *args, **how)

        kernel.Kernel.__init__, kernel.Kernel.__call__ = init, call
        if at_once:
            kernel.compile_ahead = ct.compile_ahead = lambda instances: {}

    @staticmethod
    def fact(kernel) -> dict:
        from cudatut import catalog, paths
        from cudatut.fingerprint import code
        from cudatut.gpu.kernel import _included

        files = catalog.with_includes(kernel._path) if kernel._path else _included(kernel._source)
        root = paths.examples_dir()
        return {
            # The package has kernels of its own: its probes.
            "files": sorted(
                catalog.relative(file, root) for file in files if file.is_relative_to(root)
            ),
            "code": code.digest(kernel.cubin, kernel.symbol),
        }

    def note(self, key: str, fact) -> None:
        self.used.add(key)
        if key not in self.told:
            self.told.add(key)
            self.say(kernel=key, **fact())

    def taken(self) -> dict:
        """What the report says of a test, with what processes have noted that it started."""
        if self.of_others.exists():
            for line in self.of_others.read_text(encoding="utf-8").splitlines():
                said = json.loads(line)
                self.note(said.pop("kernel"), lambda said=said: said)
            self.of_others.unlink()
        used, seconds = sorted(self.used), round(self.compiling, 3)
        self.used, self.compiling = set(), 0.0
        return {"kernels": used, "compiling": seconds}
