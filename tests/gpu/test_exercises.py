"""Every exercise as its reader has it: the file that the command writes, in an empty folder.

The untouched stub fails its check for the stated reason, with exit status 1; our solution passes, and that is kept as progress.
"""

import json
import os
import re
import subprocess
import sys
from pathlib import Path

import pytest
from side_by_side import Runs, asked_for

import cudatut as ct
from cudatut import exercises
from cudatut.gpu.device import supports

ROOT = Path(__file__).resolve().parents[2]
LIMIT = 300  # seconds
ALL = [
    (chapter, exercise.number)
    for chapter in exercises.chapters()
    for exercise in exercises.of_chapter(chapter)
]
# Chapters whose checks compare times: their solutions run when nothing else of these tests uses the GPU. What somebody
# else does there is not known: a solution that fails has other tries.
TIMED = ("start/first_optimization", "start/profiling", "start/your_gpu", "basics/timing")
TRIES = 5
# The solutions of a chapter share a process: none of them leaves the GPU in a state that the next would notice.
SHARED = """
import gc, runpy, sys
for file in sys.argv[1:]:
    print(f"=== {file}", flush=True)
    print(f"=== {file}", file=sys.stderr, flush=True)
    try:
        runpy.run_path(file, run_name="__main__")
    except SystemExit:
        pass
    except BaseException as error:
        sys.excepthook(type(error), error, error.__traceback__)
    gc.collect()
"""


def start(*command, folder):
    path = os.pathsep.join(filter(None, [str(ROOT), os.environ.get("PYTHONPATH")]))
    env = os.environ | {"PYTHONPATH": path, "CUDATUT_PROGRESS": str(folder / "progress")}
    for name in ("CUDATUT_DEBUG", "CUDATUT_TOOL", "CUDATUT_RECORDING"):
        env.pop(name, None)
    return subprocess.run(
        [sys.executable, *command],
        cwd=folder,
        env=env,
        capture_output=True,
        text=True,
        timeout=LIMIT,
    )


def progress(folder) -> dict:
    path = folder / "progress" / "exercises.json"
    return json.loads(path.read_text()) if path.is_file() else {}


def needs(chapter, number) -> None:
    """Skip what this GPU cannot run."""
    requires = exercises.get(chapter, number).requires
    if not supports(ct.device().compute_capability, requires):
        pytest.skip(f"needs {requires}, and this is {ct.device().name}")


@pytest.fixture(scope="module")
def stubs(request, tmp_path_factory):
    base = tmp_path_factory.mktemp("stubs")

    def run(key):
        chapter, number = key
        name = exercises.get(chapter, number).file
        folder, file = base / name, f"{name}.py"
        folder.mkdir()
        wrote = start("-m", "cudatut", "exercise", chapter, str(number), folder=folder)
        assert wrote.returncode == 0 and (folder / file).is_file(), wrote.stderr
        return start(file, folder=folder), progress(folder)

    wanted = [
        (chapter, number)
        for chapter, number, kind in asked_for(request, "chapter", "number", "kind")
        if kind == "stub"
    ]
    found = Runs(run, wanted)
    yield found
    found.close()


@pytest.fixture(scope="module")
def solutions(request, tmp_path_factory):
    base = tmp_path_factory.mktemp("solutions")
    capability = ct.device().compute_capability  # asked here: the context is this thread's

    def once(chapter, attempt):
        """(stdout, stderr) of each exercise, and what was kept."""
        folder = base / f"{chapter.replace('/', '_')}_{attempt}"
        folder.mkdir()
        files = {}
        for exercise in exercises.of_chapter(chapter):
            if supports(capability, exercise.requires):
                file = f"{exercise.file}.py"
                code = exercises.started(exercise, solution=True)
                (folder / file).write_text(code, encoding="utf-8")
                files[file] = exercise.number
        done = start("-c", SHARED, *files, folder=folder)
        said = {}
        for text in (done.stdout, done.stderr):
            for part in text.split("=== ")[1:]:
                file, _, rest = part.partition("\n")
                said.setdefault(files[file], []).append(rest)
        return said, progress(folder)

    def run(chapter):
        """The same; of a chapter with times, each exercise as it passed first."""
        names = {exercise.number: exercise.name for exercise in exercises.of_chapter(chapter)}
        said, kept = {}, {}
        for attempt in range(TRIES if chapter in TIMED else 1):
            more, states = once(chapter, attempt)
            for number in more:
                if kept.get(names[number]) != "done":
                    said[number], kept[names[number]] = more[number], states.get(names[number])
            if kept and set(kept.values()) == {"done"}:
                break
        return said, kept

    wanted = [
        chapter for chapter, kind in asked_for(request, "chapter", "kind") if kind == "solution"
    ]
    found = Runs(run, dict.fromkeys(wanted), alone=TIMED)
    yield found
    found.close()


def timed(chapter, kind) -> bool:
    return kind == "solution" and chapter in TIMED


def each(kind):
    return pytest.mark.parametrize(
        ("chapter", "number", "kind"),
        [
            pytest.param(chapter, number, kind, marks=[pytest.mark.alone] * timed(chapter, kind))
            for chapter, number in ALL
        ],
        ids=[f"{chapter}-{number}" for chapter, number in ALL],
    )


@each("stub")
def test_the_untouched_stub_fails_for_the_stated_reason(chapter, number, kind, stubs):
    needs(chapter, number)
    exercise = exercises.get(chapter, number)
    done, kept = stubs[chapter, number]
    said = done.stdout + done.stderr
    assert done.returncode == 1, f"{exercise.name}: exit status {done.returncode}\n{said[-4000:]}"
    # The compiler may warn of what the stub leaves unused; after that two plain lines, and no traceback.
    explained = done.stderr.strip().splitlines()
    explained = explained[
        next((i for i, line in enumerate(explained) if "not passed" in line), 0) :
    ]
    assert any(line.startswith(f"not passed: {exercise.name}: ") for line in explained), said[
        -4000:
    ]
    assert "Traceback" not in done.stderr and len(explained) <= 6, said[-4000:]
    assert re.search(exercise.fails, said), (
        f"{exercise.name}: the header's fails is {exercise.fails!r}, but the stub's run says\n{said[-2000:]}"
    )
    assert kept == {exercise.name: "started"}


@each("solution")
def test_our_solution_passes(chapter, number, kind, solutions):
    needs(chapter, number)
    exercise = exercises.get(chapter, number)
    said, kept = solutions[chapter]
    assert number in said, f"{exercise.name}: an exercise before it ended the process: {said}"
    out, *err = said[number]
    text = out + "".join(err)
    assert f"passed: {exercise.name}, " in out and "not passed" not in text, text[-4000:]
    assert kept[exercise.name] == "done"
