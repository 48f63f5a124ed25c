"""Plant changes in a clone of this checkout, and see whether `restamp` and `status` judge each as it is.

The clone has the package as it lies here. Changes that concern other files and other recordings are planted in one commit;
then the clone's own commands are run as somebody would who made it: `restamp`, a commit, `status`.
"""

import json
import os
import random
import subprocess
import sys
import tempfile
import traceback
from collections.abc import Callable, Iterator
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]


def judged(seed: int, count: int, cache: Path | None = None) -> Iterator[tuple[str, list[str]]]:
    """Each of `count` changes, in words, with what is wrong in its verdict; nothing where it is right.

    cache: of the compiler. Needs git with the whole history, and nvcc.
    """
    with tempfile.TemporaryDirectory(prefix="cudatut-planted-") as folder:
        clone = Path(folder, "clone")
        cloned(clone)
        env = os.environ | {"PYTHONPATH": str(clone), "PYTHONDONTWRITEBYTECODE": "1"}
        for name in ("CUDATUT_EXAMPLES", "CUDATUT_RECORDINGS"):
            env.pop(name, None)
        if cache:
            env["XDG_CACHE_HOME"] = str(cache)
        command = [sys.executable, str(Path(__file__)), str(clone), str(seed), str(count)]
        with subprocess.Popen(
            command, cwd=clone, env=env, stdout=subprocess.PIPE, text=True
        ) as child:
            for line in child.stdout or ():
                change, problems = json.loads(line)
                yield change, problems
        if child.returncode:
            raise RuntimeError(f"the clone's process ended with {child.returncode}")


def cloned(clone: Path) -> None:
    """Clone this checkout, with the package and the examples as they lie here."""
    git(ROOT, "clone", "-q", "--shared", "--no-tags", str(ROOT), str(clone))
    names = git(ROOT, "ls-files", "-z", "cudatut", "examples", "recordings").split("\0")
    for name in filter(None, names):
        here, there = ROOT / name, clone / name
        if not here.is_file():
            there.unlink(missing_ok=True)
        elif (
            not there.is_file()
            or here.stat().st_size != there.stat().st_size
            or here.read_bytes() != there.read_bytes()
        ):
            there.parent.mkdir(parents=True, exist_ok=True)
            there.write_bytes(here.read_bytes())
    commit(clone, "as it lies here")


def git(root: Path, *arguments: str) -> str:
    author = ("-c", "user.name=planted", "-c", "user.email=planted@example.org", "-c", "gc.auto=0")
    done = subprocess.run(
        ["git", "-C", str(root), *author, *arguments], capture_output=True, text=True
    )
    if done.returncode:
        raise RuntimeError(f"git {' '.join(arguments)}: {done.stderr}")
    return done.stdout


def commit(root: Path, message: str) -> None:
    git(root, "add", "-A", ".")
    git(root, "commit", "-q", "--allow-empty", "-m", message)


# --- in the clone ------------------------------------------------------------------------------------


def main(root: Path, seed: int, count: int) -> None:
    """Print a line of JSON for each change: in words, and what is wrong."""
    import changes

    draw = random.Random(seed)
    run(["restamp"])  # today's rule of what sources mean is that of all recordings
    commit(root, "restamped")
    base = git(root, "rev-parse", "HEAD").strip()
    book = changes.Book(root, recorded(changes), draw)
    for batch in batches(changes.drawn(book, count)):
        for change in batch:
            for name, content in change.files.items():
                written(root / name, content)
        commit(root, "planted")
        not_fresh, said = asked(
            root,
            sorted(
                {one.name for one in book.recordings if any(one.path in c.fresh for c in batch)}
            ),
        )
        for change in batch:
            problems = list(wrong(change, not_fresh, said))
            print(json.dumps([str(change), problems]), flush=True)
        known = {path for change in batch for path in (*change.fresh, *change.unknown)}
        if more := sorted(not_fresh - known):
            print(
                json.dumps(
                    [
                        f"{len(batch)} changes",
                        [f"{path} is not fresh, and has none of their files" for path in more],
                    ]
                ),
                flush=True,
            )
        git(root, "reset", "-q", "--hard", base)
        git(root, "clean", "-qfd", "examples", "cudatut", "recordings")


def written(path: Path, content: str | bytes | None) -> None:
    if content is None:
        path.unlink()
        return
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_bytes(content if isinstance(content, bytes) else content.encode())


def batches(found: list) -> Iterator[list]:
    """The changes in groups that share neither a file nor a recording."""
    groups: list[list] = []
    for change in found:
        for group in groups:
            alone = any(
                one.kind == "instrument changed, without a reason" for one in (*group, change)
            )
            files = {name for one in group for name in one.files}
            paths = {path for one in group for path in (*one.fresh, *one.unknown)}
            own = {*change.fresh, *change.unknown}
            if not alone and not files & set(change.files) and not paths & own:
                group.append(change)
                break
        else:
            groups.append([change])
    yield from groups


def asked(root: Path, names: list[str]) -> tuple[set[str], str]:
    """The recordings that `status` names after `restamp` of those of these examples, and all that both said."""
    said = run(["restamp", *names]) if names else ""
    commit(root, "restamped")
    status = run(["status"])
    # A stale one of another GPU is told as a note, since no page shows it any more.
    words = [line.removeprefix("note: ").split() for line in status.splitlines()]
    named = {line[0].rstrip(":") for line in words if line}
    return {name for name in named if name.endswith((".ipynb", ".json"))}, f"{said}{status}"


def run(arguments: list[str]) -> str:
    """What a command of the clone says, and with which status it ends."""
    from cudatut import cli

    status, said = in_a_copy(lambda: cli.main(arguments))
    if status not in (0, 1, 2) or "Traceback" in said:
        raise RuntimeError(f"{arguments} ended with {status}: {said}")
    return said


def in_a_copy(function: Callable[[], int]) -> tuple[int, str]:
    """The status that a function returns, and what it prints, in a copy of this process: what it learns is lost with it."""
    with tempfile.TemporaryFile("w+") as out:
        pid = os.fork()
        if pid == 0:
            os.dup2(out.fileno(), 1)
            os.dup2(out.fileno(), 2)
            status = 70
            try:
                status = function()
            except BaseException:
                traceback.print_exc()
            finally:
                sys.stdout.flush()
                sys.stderr.flush()
                os._exit(status)
        _, ended = os.waitpid(pid, 0)
        out.seek(0)
        return os.waitstatus_to_exitcode(ended), out.read()


def wrong(change, not_fresh: set[str], said: str) -> Iterator[str]:
    """What is wrong in the verdict of a change."""
    for path, fresh in sorted(change.fresh.items()):
        if fresh != (path not in not_fresh):
            name = path.split("/", 2)[-1].rpartition(".")[0]
            why = [line for line in said.splitlines() if line.startswith((f"{name}:", path))]
            yield f"{path} is {'not ' if fresh else ''}fresh, and should be otherwise: {' | '.join(why)[:600]}"
    ours = [name for name in change.files if name.startswith("cudatut/")]
    lines = (
        [line for line in said.splitlines() if line.startswith((*ours, "cudatut: "))]
        if ours
        else []
    )
    if bool(lines) != change.objects:
        yield f"the ledger {'objects' if lines else 'does not object'}: {' | '.join(lines)}"


def recorded(changes) -> list:
    """What the recordings say of their sources."""
    from cudatut import recording

    return [
        changes.Recorded(
            path=one.file,
            name=one.name,
            sources=frozenset(one.metadata["sources"]),
            meant=frozenset(one.metadata["meanings"]),
            shows_lines=one.shows_lines(),
            aspects=frozenset(instrument["numbers"]) if instrument else None,
            kernels=frozenset(
                (kernel["file"], kernel["name"])
                for kernel in one.metadata.get("kernels", ())
                if "file" in kernel
            ),
        )
        for one in recording.every()
        for instrument in [one.metadata.get("instrument")]
        if "/." not in str(one.path)
    ]


if __name__ == "__main__":
    main(Path(sys.argv[1]), int(sys.argv[2]), int(sys.argv[3]))
