"""Build the site in both languages, and serve it.

python -m cudatut.site build [--live] [--out DIR] [--serve [--port N]]
python -m cudatut.site preview CHAPTER ... [--out DIR] [--serve [--port N]]
python -m cudatut.site serve [--out DIR] [--port N]
python -m cudatut.site lint [CHAPTER ...]
"""

from __future__ import annotations

import argparse
import signal
import subprocess
import sys
from collections.abc import Callable, Sequence
from functools import partial
from pathlib import Path
from typing import Any

from cudatut import catalog, failures, paths, words
from cudatut.errors import CudatutError
from cudatut.site.building import CONFIGS, BuildError, build
from cudatut.site.serving import PORT, Reloading, serve, server, watch


def main(argv: list[str] | None = None) -> int:
    """Entry point; returns the exit status."""
    for stream in (sys.stdout, sys.stderr):
        if hasattr(stream, "reconfigure"):
            stream.reconfigure(encoding="utf-8", errors="replace")
    words.use("en")  # as all that maintainers read
    args = _parser().parse_args(argv)
    try:
        root = paths.repo_root()
        if root is None:
            raise BuildError("the pages are in the repository: run this in a checkout of it")
        return args.run(root, args)
    except CudatutError as error:
        print(error, file=sys.stderr)
        return 1
    except KeyboardInterrupt:
        print("\nInterrupted.", file=sys.stderr)
        return 130


def _terminated(number: int, frame: Any) -> None:
    """Leave by an exception, so that children are ended and what they made is removed."""
    raise SystemExit(128 + number)


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(
        prog="python -m cudatut.site", description=__doc__.split("\n")[0]
    )
    commands = parser.add_subparsers(required=True)

    def command(name: str, run: Callable[..., int], text: str) -> Callable[..., Any]:
        added = commands.add_parser(name, help=text)
        added.set_defaults(run=run)
        return added.add_argument

    add = command("build", _build, "build both languages")
    live = "an example that failed on this machine costs its own outputs, not the build"
    add("--live", action="store_true", help=live)
    add("--serve", action="store_true", help="serve it afterwards")
    for to in (add, command("serve", _serve, "serve what was built")):
        to("--out", type=Path, help="folder of the site (default: site/)")
        to("--port", type=int, default=PORT)
    add = command("preview", _preview, "build single chapters into site-preview/, recorded or not")
    add("chapters", nargs="+", metavar="CHAPTER", help="such as start/errors")
    add("--out", type=Path, help="folder (default: site-preview/CHAPTER)")
    again = "serve it, build it again when a file of the chapters changes, and reload the browser"
    add("--serve", action="store_true", help=again)
    add("--port", type=int, default=PORT)
    rules = "list what reading finds to be mended: headings, parity, terms, measurements, exercises"
    add = command("lint", _lint, rules)
    add("chapters", nargs="*", metavar="CHAPTER", help="such as start/errors")
    return parser


def _build(root: Path, args: argparse.Namespace) -> int:
    out = (args.out or root / "site").resolve()
    failed = failures.names() if args.live else []
    # First of all, so that a port that is taken costs no build.
    running = server(out, args.port) if args.serve else None
    print("Building English and Chinese ...", flush=True)
    build(root, out, "live" if args.live else "strict")
    for name in failed:
        print(f"without the outputs of {name}: {failures.reason(name)}", file=sys.stderr)
    if running:
        serve(running)
    return 1 if failed else 0


def _serve(root: Path, args: argparse.Namespace) -> int:
    out = (args.out or root / "site").resolve()
    if not (out / "index.html").is_file():
        raise BuildError(f"there is no site in {out}: build it with `python -m cudatut.site build`")
    serve(server(out, args.port))
    return 0


def _preview(root: Path, args: argparse.Namespace) -> int:
    out = (args.out or root / "site-preview" / args.chapters[0].replace("/", "-")).resolve()
    if args.serve:
        # First of all, so that a port that is taken costs no build.
        running = server(out, args.port, Reloading)
        command = [sys.executable, "-m", "cudatut.site", "preview", *args.chapters]
        # By a process of its own, which knows nothing of how the files were.
        again = lambda: not subprocess.run([*command, "--out", out], cwd=root).returncode  # noqa: E731
        watch(running, f"{args.chapters[0]}/", again, partial(_files, args.chapters))
        return 0
    _need_pages(args.chapters)
    print("Building English and Chinese ...", flush=True)
    warnings = build(root, out, "preview", args.chapters)
    print(*warnings, sep="\n", end="\n" * bool(warnings))
    _lint(root, args)
    return 0


def _need_pages(chapters: Sequence[str]) -> None:
    """Raises BuildError naming the pages of these chapters that are not there."""
    pages = [catalog.ChapterFiles(name).page(lang) for name in chapters for lang in CONFIGS]
    if absent := [paths.shown(page) for page in pages if not page.is_file()]:
        raise BuildError(
            f"{' and '.join(absent)} {'is' if len(absent) == 1 else 'are'} not there: a chapter has a page in each language, "
            "and a preview shows both; begin with a copy of another chapter's"
        )


def _files(chapters: Sequence[str]) -> list[Path]:
    """What a preview of these chapters is made of, recordings included."""
    docs, found = paths.docs_dir(), []
    for files in map(catalog.ChapterFiles, chapters):
        found += [
            *map(files.page, CONFIGS),
            files.figures,
            files.labels,
            docs / "labels/common.yml",
        ]
        own = (*files.folder.rglob("*"), *paths.examples_dir().glob(f"{files.name}*"))
        for path in filter(Path.is_file, own):
            found += catalog.with_includes(path) if path.suffix == ".py" else [path]
        found += paths.recordings_dir().glob(f"*/{files.name}*")
    return [*found, docs / "glossary.yml", docs / "contents.yml"]


def _lint(root: Path, args: argparse.Namespace) -> int:
    from cudatut.site import judge

    docs = root / "docs"
    if args.chapters:
        findings = [one for name in args.chapters for one in judge.of_chapter(name, docs)]
    else:
        findings = judge.of_book(docs)
    lines = [str(one) for one in findings]
    print(*lines or ["Nothing to mend, as far as reading tells."], sep="\n")
    return 1 if findings else 0


if __name__ == "__main__":
    signal.signal(signal.SIGTERM, _terminated)
    sys.exit(main())
