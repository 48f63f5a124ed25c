"""The command line: python -m cudatut doctor | list | run | trace | record | status | restamp | digests | moved |
sanitize | try | tune | exercise | new | check.

Exit status: 0 all is well, 1 something asked for is not well (stale, failed, an error found), 2 the command could not be
carried out (unknown name, no GPU ...), with one message on stderr; CUDATUT_DEBUG=1 shows the traceback.
What takes long to import is imported by the command that needs it.
"""

import argparse
import errno
import fnmatch
import importlib.util
import itertools
import json
import os
import re
import subprocess
import sys
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from functools import partial
from pathlib import Path
from typing import Any

import cudatut
from cudatut import catalog, paths, recording, results, words
from cudatut.errors import CheckError, CudatutError, NoGpuError, ToolMissing
from cudatut.gpu import device
from cudatut.tool import SANITIZERS, environment
from cudatut.wrapping import wrapped

# Of `print`, to a full disk or a device that fails; other errors name a file.
_CANNOT_WRITE = (errno.ENOSPC, errno.EIO)
_say = words.section("cli")


def main(arguments: Sequence[str] | None = None) -> int:
    """Run one command; returns the exit status."""
    if sys.stdout is None:  # closed by whoever started this, as by `>&-`
        sys.stdout = open(os.devnull, "w")  # noqa: SIM115 - for as long as the process lives
    words.printable()
    if lang := _asked_for(sys.argv[1:] if arguments is None else arguments):
        words.use(lang)  # before there is a parser, whose help is in that language
    options = _parser().parse_args(arguments)
    if not options.speaks:  # what maintainers read is in English
        words.use("en")
    try:
        status = options.run(options)
        sys.stdout.flush()
        return status
    except CudatutError as error:
        if os.environ.get("CUDATUT_DEBUG") == "1":
            raise
        print(_say("error", error=error), file=sys.stderr)
        return 2
    except BrokenPipeError:  # `| head`
        _drop_output()
        return 0
    except OSError as error:
        if error.filename is not None or error.errno not in _CANNOT_WRITE:
            raise
        _drop_output()
        print(_say("cannot write", reason=error.strerror), file=sys.stderr)
        return 2
    except KeyboardInterrupt:
        print(_say("interrupted"), file=sys.stderr)
        return 130


def _asked_for(arguments: Sequence[str]) -> str | None:
    """The language that `--lang` asks for, or None."""
    for one, after in itertools.pairwise([*arguments, ""]):
        name, _, value = one.partition("=")
        if name == "--lang" and (value or after) in words.LANGUAGES:
            return value or after
    return None


def _drop_output() -> None:
    """Let Python, when it ends, find nothing wrong with an output that takes nothing more."""
    os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(
        prog="python -m cudatut", description="Run, record and check the book's examples."
    )
    parser.add_argument("--version", action="version", version=f"cudatut {cudatut.__version__}")
    commands = parser.add_subparsers(required=True, metavar="COMMAND")

    def command(run: Callable, *parents: argparse.ArgumentParser, speaks: bool = False) -> Callable:
        """The command of a function `_name`, whose docstring is its help; returns what adds an argument to it.

        speaks: it is for readers, and speaks their language.
        """
        name = run.__name__.removeprefix("_")
        text = _say(f"help {name}") if speaks else run.__doc__
        form = argparse.HelpFormatter if words.language() == "en" else _ChineseHelp
        added = commands.add_parser(
            name, help=text, description=text, parents=parents, formatter_class=form
        )
        added.set_defaults(run=run, speaks=speaks)
        if speaks:
            added.add_argument("--lang", choices=words.LANGUAGES, help=_say("help lang"))
        return added.add_argument

    speaking = partial(command, speaks=True)

    some_names = argparse.ArgumentParser(add_help=False)
    name = "such as start/first_kernel, a whole part (start), or a pattern ('start/errors*')"
    some_names.add_argument("names", nargs="*", metavar="NAME", help=f"{name}; default: all")
    some = argparse.ArgumentParser(add_help=False, parents=[some_names])
    jobs = "how many run side by side (default: as fits the cores)"
    some.add_argument("--jobs", type=_positive, metavar="N", help=jobs)

    speaking(_doctor)
    add = command(_list)
    add("--json", action="store_true", help="as JSON, with titles, sources and recordings")
    rest = {"nargs": argparse.REMAINDER, "metavar": "..."}
    add = speaking(_run)
    add("name", metavar="NAME", help=_say("help run name"))
    add("arguments", help=_say("help run arguments"), **rest)
    add = speaking(_trace)
    add("--perfetto", metavar="FILE", help=_say("help trace perfetto"))
    add("script", metavar="SCRIPT", help=_say("help trace script"))
    add("arguments", help=_say("help trace arguments"), **rest)
    add = command(_record, some)
    add("--stale", action="store_true", help="only what is not recorded, stale or not good")
    add("--shard", metavar="I/N", help="the I-th of N parts that take about as long; or: long")
    add("--slim", action="store_true", help="results alone, to recordings/<gpu>/: for another GPU")
    add = command(_status)
    recompile = "also compile again the kernels that a restamp says have the same machine code"
    add("--compile", action="store_true", help=recompile)
    command(_restamp, some_names)
    add = command(_digests, some_names)
    add("--commit", metavar="COMMIT", help="only of recordings that were measured at this commit")
    add("--measured", metavar="FILE", help="also write what was measured of the one that is named")
    add = command(_moved, some_names)
    now = "the checkout as it is"
    add("--before", metavar="COMMIT", default="HEAD", help="what to compare with (default: HEAD)")
    add("--after", metavar="COMMIT", help=f"what to compare (default: {now})")
    small = "leave out of tables what moved by less (default: 2)"
    add("--least", type=_positive, metavar="PERCENT", default=2, help=small)
    add("--most", type=_positive, metavar="N", help="print at most so many characters")
    command(_sanitize, some)
    add = speaking(_try)
    add("ladder", metavar="LADDER", help=_say("help try ladder"))
    add("file", metavar="FILE", help=_say("help try file"))
    add = command(_tune)
    add("ladder", metavar="LADDER", help="gemm or tensor")
    sizes = "such as 4096, or 4096x1024x512 for m, n and k (default: 4096)"
    add(
        "sizes", nargs="*", metavar="SIZE", help=sizes, default=()
    )  # else argparse calls it required
    add("--most", type=_positive, metavar="N", help="compile at most so many candidates")
    add = speaking(_exercise)
    add("chapter", nargs="?", metavar="CHAPTER", help=_say("help exercise chapter"))
    add("number", nargs="?", type=_positive, metavar="N", help=_say("help exercise number"))
    add("--level", choices=catalog.LEVELS, help=_say("help exercise level"))
    add("--solution", action="store_true", help=_say("help exercise solution"))
    add("--out", metavar="FILE", help=_say("help exercise out"))
    add("--forget", action="store_true", help=_say("help exercise forget"))
    add("--write-notebooks", action="store_true", help=_say("help exercise notebooks"))
    add = command(_new)
    add("chapter", metavar="PART/NAME", help="such as basics/warps")
    add("--en", metavar="TITLE", default="", help="its English title")
    add("--zh", metavar="TITLE", default="", help="its Chinese title")
    add = command(_check)
    add("chapters", nargs="+", metavar="PART/NAME", help="such as basics/warps")
    return parser


def _positive(text: str) -> int:
    if text.isdecimal() and int(text) > 0:
        return int(text)
    raise argparse.ArgumentTypeError(_say("not positive", text=text))


class _ChineseHelp(argparse.HelpFormatter):
    """Breaks lines of Chinese, too."""

    def _split_lines(self, text: str, width: int) -> list[str]:
        from rich.cells import cell_len

        return wrapped(text, lambda line: cell_len(line) <= width)

    def _fill_text(self, text: str, width: int, indent: str) -> str:
        return "\n".join(f"{indent}{line}" for line in self._split_lines(text, width))


def _named(names: Sequence[str]) -> list[str]:
    """Names of examples for what stands on the command line: names, parts and patterns. Raises UnknownExampleError."""
    found: dict[str, None] = {}
    for name in names:
        pattern = catalog.plain(name)
        if "/" not in pattern:
            pattern += "/*"
        fits: list[str] = []
        # What is in progress is meant only where nothing else is.
        for drafts in (False, True) if set(pattern) & set("*?[") else ():
            fits = fits or fnmatch.filter([e.name for e in catalog.examples(drafts)], pattern)
        found |= dict.fromkeys(fits or [catalog.get(name).name])
    return list(found)


def _doctor(options: argparse.Namespace) -> int:
    from cudatut import doctor

    return doctor.main()


def _list(options: argparse.Namespace) -> int:
    """List the examples and the state of their recordings."""
    found = []
    for example in catalog.examples():
        state, recorded = _state(example.name)
        entry = dict[str, Any](name=example.name, title=example.title, requires=example.requires)
        if options.json:  # takes as long as all the rest
            entry["sources"] = example.sources()
        entry |= {"fresh": state == "fresh", "state": state, "recorded": recorded}
        found.append(entry)
    if options.json:
        print(json.dumps(found, indent=2))
        return 0
    width = max((len(entry["name"]) for entry in found), default=0)
    for entry in found:
        recorded = entry["recorded"]
        by = f"{recorded['gpu']}, {recorded['recorded_at'][:10]}" if recorded else "-"
        head = f"{entry['name']:{width}}  {entry['requires']:7} {entry['state']:12}  {by:34}"
        print(f"{head}  {entry['title']['en']}".rstrip())
    return 0


def _state(name: str) -> tuple[str, dict[str, str] | None]:
    """A word for the state of a recording, and on which GPU it was made and when."""
    try:
        loaded = recording.load(name)
    except recording.MissingRecordingError:
        return "not recorded", None
    except CudatutError:
        return "damaged", None
    states = {
        "stale": loaded.stale,
        "edited": loaded.edited,
        "failed": loaded.problems,
        "disagrees": loaded.disagreements,
    }
    state = next((state for state, holds in states.items() if holds()), "fresh")
    return state, {"gpu": loaded.gpu, "recorded_at": loaded.metadata["recorded_at"]}


def _status(options: argparse.Namespace) -> int:
    """Check that every recording is whole, good and fresh, and agrees with itself."""
    from cudatut.status import status

    say = lambda line: print(line, flush=True)  # noqa: E731
    found = status(compiling=say if options.compile else None)
    print("\n".join(found.lines()))
    return 1 if found.problems else 0


def _restamp(options: argparse.Namespace) -> int:
    """Accept, without a GPU, that sources of recordings were moved or rewritten without effect."""
    from cudatut.restamp.accept import restamp

    wanted = set(_named(options.names))
    recordings = [one for one in recording.every() if not wanted or one.name in wanted]
    outcomes = restamp(recordings, say=lambda line: print(line, flush=True))
    refused = [outcome for outcome in outcomes if outcome.refused]
    print(f"{len(outcomes) - len(refused)} restamped, {len(refused)} need a GPU")
    return 1 if refused else 0


def _digests(options: argparse.Namespace) -> int:
    """Print the SHA-256 of what each recording says was measured, and of its file: what gpu.yml attests."""
    from cudatut import digests
    from cudatut.files import write_whole

    wanted = set(_named(options.names))
    found = [
        one
        for one in recording.every()
        if (not wanted or one.name in wanted) and options.commit in (None, one.metadata["commit"])
    ]
    if not found:
        at = f" that was measured at {options.commit}" if options.commit else ""
        raise CudatutError(f"there is no recording{at}: `python -m cudatut record NAME` makes one")
    if options.measured:
        own = [one for one in found if not one.slim]
        if len(wanted) != 1 or len(own) != 1:
            raise CudatutError("--measured writes one recording: name one example that is recorded")
        found = own
        try:
            write_whole(Path(options.measured), own[0].measured())
        except OSError as error:
            raise CudatutError(f"cannot write {options.measured}: {error.strerror}") from error
    for line in digests.lines(found):
        print(line)
    return 0


def _moved(options: argparse.Namespace) -> int:
    """Print, as Markdown, which numbers new recordings changed and which sentences of the pages cite them."""
    from cudatut.site.moved.report import moved

    names = frozenset(_named(options.names))
    least = options.least / 100
    print(moved(options.before, options.after, names, least, options.most), end="")
    return 0


def _run(options: argparse.Namespace) -> int:
    part = catalog.plain(options.name)
    within = [] if "/" in part else catalog.examples()  # which takes its time
    if own := [one.name for one in within if one.name.startswith(f"{part}/")]:
        raise CudatutError(_say("part", part=part, names=", ".join(own)))
    try:
        example = catalog.get(options.name)
    except catalog.UnknownExampleError as error:
        return _run_program(options.name, options.arguments, error)
    lang = words.language()  # which may be asked for behind the name, too
    if options.arguments not in ([], ["--lang", lang], [f"--lang={lang}"]):
        given = " ".join(options.arguments)
        raise CudatutError(_say("no arguments", name=example.name, arguments=given))
    missing = device.why_no_gpu() or device.gpu_lacks(example.requires)
    return _replay(example, missing) if missing else _run_file(example.path)


def _run_program(name: str, arguments: Sequence[str], unknown: CudatutError) -> int:
    """Run what is no example, but a program among the examples, such as gemm/tuner.py or llm/chat.

    Without a GPU, replay the example that the program names in a line `REPLAY = "llm/serving_chat"`.
    Raises NoGpuError; for anything else `unknown`, or what to do with a file of the reader's.
    """
    root = paths.examples_dir()
    path = catalog.path_of(catalog.plain(name)).resolve()
    text = path.read_text("utf-8") if path.is_relative_to(root) and path.is_file() else ""
    if 'if __name__ == "__main__":' in text:
        if why := device.why_no_gpu():
            if replayed := re.search(r'^REPLAY = "([\w/]+)"$', text, re.MULTILINE):
                return _replay(catalog.get(replayed[1]), why)
            raise NoGpuError(_say("nothing to replay", name=name, why=why)) from None
        return _run_file(path, *arguments)
    own = {".py": "own python", ".cu": "own kernel"}.get(Path(name).suffix)
    if own and Path(name).is_file():
        advice = _say(own, name=name)
        raise CudatutError(_say("none of the book", name=name, advice=advice)) from unknown
    raise unknown


def _run_file(path: Path, *arguments: str) -> int:
    command = [sys.executable, "-m", "cudatut.gpu.running", str(path), *arguments]
    return subprocess.run(command, env=environment()).returncode


def _replay(example: catalog.Example, missing: str) -> int:
    try:
        loaded = recording.require_good(example.name)
    except recording.MissingRecordingError as error:
        raise NoGpuError(_say("not recorded", missing=missing, error=error)) from error
    except CudatutError as error:
        raise CudatutError(_say("unfit", error=error)) from error
    when = loaded.metadata["recorded_at"][:10]
    print(_say("replay", missing=missing, when=when, gpu=loaded.gpu), flush=True)
    for output in (output for cell in loaded.cells for output in cell.outputs):
        if output["output_type"] == "stream":
            stream = sys.stderr if output.get("name") == "stderr" else sys.stdout
            print(output["text"], end="", file=stream, flush=True)
        elif output["output_type"] == "display_data":  # the value of an expression is not printed
            print(_shown(output["data"]), flush=True)
    return 0


def _shown(data: dict[str, Any]) -> str:
    """A display of a recording as text: a result in the reader's language, anything else as it was."""
    lang = words.language()
    if lang != "en" and (result := data.get(results.MIME)):
        return results.read(result).text(lang)
    return data.get("text/plain", "")


def _trace(options: argparse.Namespace) -> int:
    from cudatut.gpu import trace

    script = trace.find(options.script)
    if options.perfetto is not None:
        return _timeline(script, options)
    status, found = trace.run(script, options.arguments)
    print()
    found.show()
    return status


def _timeline(script: Path, options: argparse.Namespace) -> int:
    from cudatut.gpu import timeline

    path = timeline.destination(options.perfetto)  # before the program runs for minutes
    status, seen = timeline.run(script, options.arguments)
    print()
    seen.tables().show()
    print(timeline.write(seen, path, script.name))
    return status


def _record(options: argparse.Namespace) -> int:
    """Run examples on this GPU, under all sanitizers too, and keep them as recordings."""
    from cudatut.record import recorder

    if options.slim and options.stale:
        raise CudatutError("--stale looks at the book's own recordings: name those to be --slim")
    examples = recorder.chosen(_named(options.names), only_stale=options.stale, shard=options.shard)
    with _progress() as progress:
        outcomes = recorder.record_all(
            examples, slim=options.slim, jobs=options.jobs, progress=progress
        )
    if not outcomes:
        print("nothing to record: every recording is whole, good and fresh")
        return 0
    statuses = [outcome.status for outcome in outcomes]
    print(", ".join(f"{statuses.count(status)} {status}" for status in sorted(set(statuses))))
    for outcome in outcomes:
        if outcome.status == "failed":
            print(f"failed (the old one, if any, is untouched): {outcome.reason}", file=sys.stderr)
    return 1 if "failed" in statuses else 0


def _sanitize(options: argparse.Namespace) -> int:
    """Run examples under the four tools of compute-sanitizer."""
    from concurrent.futures import ThreadPoolExecutor

    from cudatut.gpu.sanitizer import run
    from cudatut.record import recorder

    examples = [catalog.get(name) for name in _named(options.names)] or catalog.examples()
    gpu, reports = recorder.probe_gpu(), []

    def watch(example: catalog.Example, tool: str) -> str:
        try:
            found = run(example.path, tool, recorder.SANITIZER_TIME * example.timeout_s)
        except CudatutError as error:
            reports.append(f"{example.name} under {tool}: {error}")
            return "failed"
        if found.errors:
            reports.append(f"{example.name} under {tool}:\n{found.log}")
        return str(found.errors)

    width = max((len(example.name) for example in examples), default=0)
    print(" " * width, *(f" {tool:>9}" for tool in SANITIZERS))
    with ThreadPoolExecutor(options.jobs or min(8, os.cpu_count() or 1)) as pool:
        rows = []
        for example in examples:
            able = device.supports(gpu["compute_capability"], example.requires)
            tools = SANITIZERS if able else ()
            rows.append((example, [pool.submit(watch, example, tool) for tool in tools]))
        for example, row in rows:
            skipped = f" skipped: needs {example.requires}, and this is {gpu['name']}"
            cells = [f" {entry.result():>9}" for entry in row]
            print(f"{example.name:{width}}", *(cells or [skipped]), flush=True)
    for report in sorted(reports):
        print(f"\n{report}", file=sys.stderr)
    return 1 if reports else 0


def _try(options: argparse.Namespace) -> int:
    from cudatut.gpu.trial import attempt

    try:
        print(attempt(options.ladder, options.file).text())
    except FileNotFoundError as error:
        raise CudatutError(str(error)) from error
    except CheckError as error:
        print(_say("not correct", error=error), file=sys.stderr)
        return 1
    return 0


def _tune(options: argparse.Namespace) -> int:
    """Search for the fastest configuration of the book's own kernel on this GPU."""
    from cudatut.gpu.tuning import tune

    tune(options.ladder, options.sizes, options.most, say=lambda line: print(line, flush=True))
    return 0


def _exercise(options: argparse.Namespace) -> int:
    from cudatut import exercises

    if options.write_notebooks:
        written = exercises.write_notebooks()
        print("\n".join([*map(str, written), _say("notebooks", count=len(written))]))
        return 0
    exercise, lang = None, words.language()
    if options.chapter and options.number:
        exercise = exercises.get(options.chapter, options.number)
    elif options.solution or options.out or (options.forget and options.chapter):
        raise CudatutError(_say("which exercise"))
    if options.forget:
        path = exercises.forget(exercise)
        one = _say("forgot one", name=exercise.name, path=path) if exercise else ""
        print(one or _say("forgot all", path=path))
        return 0
    if exercise is None:
        print("\n".join(exercises.listing(options.chapter, options.level, lang)))
        return 0
    if options.solution and not options.out:
        print(exercises.started(exercise, lang, solution=True), end="")
        return 0
    path = exercises.write(exercise, options.out, lang, options.solution)
    print(_say("wrote", path=path))
    print(_say("go on", path=path))
    return 0


def _new(options: argparse.Namespace) -> int:
    """For authors: begin a chapter, with its files in both languages; what is left to write is marked in them."""
    _need_site()
    from cudatut.authoring.new import new

    name = catalog.plain(options.chapter)
    for path in new(name, options.en, options.zh):
        print(f"wrote {paths.shown(path)}")
    print(f"`python -m cudatut check {name}` says what is still to be written, and")
    print(f"`python -m cudatut.site preview {name} --serve` shows the pages while you write.")
    return 0


def _check(options: argparse.Namespace) -> int:
    """For authors: say what has to be mended in a chapter before it is fit to be published."""
    _need_site()
    from cudatut.authoring.check import check

    status = 0
    for name in map(catalog.plain, options.chapters):
        found = check(name, say=lambda line: print(line, file=sys.stderr, flush=True))
        print(*found.findings, *(f"note: {note}" for note in found.notes), sep="\n")
        count = len(found.findings)
        said = f"{count} thing{'s' * (count != 1)} to mend" if count else "nothing to mend"
        print(f"{name}: {said}")
        status |= bool(count)
    return status


def _need_site() -> None:
    """Raises ToolMissing without what builds the pages, which readers need not have."""
    missing = [name for name in ("mkdocs", "nbformat") if importlib.util.find_spec(name) is None]
    if missing:
        raise ToolMissing(
            f"writing a chapter needs {' and '.join(missing)}: `{paths.environment('test')}` brings what pages and tests need"
        )


@contextmanager
def _progress() -> Iterator[Any]:
    """A progress bar on a terminal; elsewhere (a log) a line per example."""
    from rich.console import Console
    from rich.progress import BarColumn, MofNCompleteColumn, TextColumn, TimeElapsedColumn
    from rich.progress import Progress as Bar

    from cudatut.record.recorder import Outcome, Progress

    console = Console(stderr=True, markup=False, emoji=False, highlight=False, soft_wrap=True)
    columns = ("{task.description}", BarColumn(), MofNCompleteColumn(), TimeElapsedColumn())
    last = TextColumn("{task.fields[what]}", markup=False)
    with Bar(*columns, last, console=console, disable=not console.is_terminal) as bar:
        task = bar.add_task("preparing", total=None, what="")

        def start(phase: str, total: int) -> None:
            bar.reset(task, total=total, description=phase, what="")
            if bar.disable:
                console.print(f"{phase}: {total}")

        def done(what: str) -> None:
            bar.update(task, advance=1, what=what)
            if bar.disable:
                console.print(f"  ran {what}")

        def outcome(found: Outcome) -> None:
            what = [found.name] * (found.status != "failed") + [found.reason]  # which names it
            console.print(f"{found.status:8}  {' '.join(what)}".rstrip())

        yield Progress(start, lambda what: bar.update(task, what=what), done, outcome)
