"""Build the site in both languages, and serve it.

python -m cudatut.site build [--live] [--out DIR] [--serve [--port N]]
python -m cudatut.site preview CHAPTER ... [--out DIR]
python -m cudatut.site serve [--out DIR] [--port N]
python -m cudatut.site lint [CHAPTER ...]
"""

from __future__ import annotations

import argparse
import os
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Sequence
from contextlib import ExitStack
from functools import partial
from http.server import SimpleHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any

from cudatut import failures, paths
from cudatut.errors import CudatutError
from cudatut.site import shared, workplace

HOST, PORT = "127.0.0.1", 8000
# Chinese last: it lies inside the English site.
CONFIGS = {"en": "mkdocs.yml", "zh": "mkdocs.zh.yml"}
# A build is over soon: what Python's collector would find in it is a tenth of its memory, and looking takes a second.
_MKDOCS = (
    "from cudatut.processes import end_with_parent; end_with_parent(); "
    "import gc; gc.disable(); from mkdocs.__main__ import cli; cli(prog_name='mkdocs')"
)


class BuildError(CudatutError):
    """The site could not be built; the message says in which language and why."""


def build(root: Path, out: Path, mode: str = "strict", only: Sequence[str] = ()) -> None:
    """Build both languages at the same time, and put them into `out`.

    mode: "strict"; "live", where an example that failed on this machine costs its own outputs; "preview", where every
    example that is not recorded does, and a warning ends nothing (see `cudatut.site.state`). only: chapters to preview.
    `out` is replaced only when both languages succeeded. Raises BuildError with MkDocs' messages.
    """
    begin = time.perf_counter()
    with ExitStack() as stack:
        try:
            work = stack.enter_context(workplace.folder(out))
        except OSError as error:
            raise BuildError(
                f"cannot write to {out.parent} ({error.strerror}); name a folder with --out DIR"
            ) from error
        own = {
            "PYTHONIOENCODING": "utf-8",
            "NO_MKDOCS_2_WARNING": "1",
            "CUDATUT_SITE_MODE": mode,
            "CUDATUT_SITE_ONLY": " ".join(only),
            shared.FOLDER: str(work / "shared"),
            **workplace.environment(work),
        }
        (work / "shared").mkdir()
        strict = [] if mode == "preview" else ["--strict"]
        said, failed = [], []
        for lang, (status, lines) in _mkdocs(root, work, strict, own).items():
            said += [f"[{lang}] {line}" for line in lines if not line.startswith("INFO")]
            failed += [lang] * bool(status)
        if failed:
            kept = f"; {out} is as it was" if out.exists() else ""
            said.append(f"The site was not built ({', '.join(failed)}){kept}.")
            raise BuildError("\n".join(said))
        if mode == "preview":
            print(*said, sep="\n")
        (work / "zh").rename(work / "en" / "zh")
        if out.exists():  # a server may be reading it
            out.rename(work / "old")
        (work / "en").rename(out)
    print(f"Built {out} in {time.perf_counter() - begin:.1f} s.", flush=True)


def _mkdocs(
    root: Path, work: Path, options: Sequence[str], own: dict[str, str]
) -> dict[str, tuple[int, list[str]]]:
    """Run MkDocs for all languages side by side; exit status and lines by language. No child outlives this process."""
    command, done = [sys.executable, "-c", _MKDOCS, "build", *options], {}
    with ExitStack() as stack:
        processes: dict[str, Any] = {  # whose pipes are there, which their type does not say
            lang: stack.enter_context(
                subprocess.Popen(
                    [*command, "--config-file", config, "--site-dir", str(work / lang)],
                    cwd=root,
                    stdin=subprocess.PIPE,  # by which it notices that we are gone
                    stdout=subprocess.PIPE,
                    stderr=subprocess.STDOUT,
                    encoding="utf-8",
                    errors="replace",
                    env=os.environ | own,
                )
            )
            for lang, config in CONFIGS.items()
        }
        try:
            for lang, process in processes.items():
                lines = process.stdout.read().splitlines()
                done[lang] = process.wait(), lines
        finally:
            for process in processes.values():
                process.kill()  # does nothing to one that has ended
    return done


class Handler(SimpleHTTPRequestHandler):
    """Serves a folder; what is missing is answered with the site's own 404.html, as hosts do. It lists no folders."""

    extensions_map = {  # noqa: RUF012 - as in the base class
        **SimpleHTTPRequestHandler.extensions_map,
        ".ipynb": "application/x-ipynb+json",
        ".cu": "text/plain; charset=utf-8",
        ".cuh": "text/plain; charset=utf-8",
        ".py": "text/plain; charset=utf-8",
        ".js": "text/javascript",
        ".woff2": "font/woff2",
    }

    def send_head(self) -> Any:
        try:
            return super().send_head()
        except ValueError:  # a NUL in the address, which no file can have
            self.send_error(404)

    def list_directory(self, path: Any) -> None:
        self.send_error(404)

    def send_error(self, code: int, message: str | None = None, explain: str | None = None) -> None:
        page = Path(self.directory) / "404.html"
        if code == 404 and page.is_file():
            self.error_message_format = page.read_text(encoding="utf-8").replace("%", "%%")
        super().send_error(code, message, explain)

    def log_message(self, format: str, *args: object) -> None:
        pass  # the address is all that a reader needs to see


class Server(ThreadingHTTPServer):
    """Says nothing of a browser that closes a page before it has all of it."""

    def handle_error(self, request: Any, client_address: Any) -> None:
        if not isinstance(sys.exc_info()[1], ConnectionError):
            super().handle_error(request, client_address)


def server(out: Path, port: int = PORT) -> Server:
    """A server of the site in `out`, its port taken, not yet running. Raises BuildError if there is no port."""
    try:
        return Server((HOST, port), partial(Handler, directory=str(out)))
    except (OSError, OverflowError) as error:
        reason = getattr(error, "strerror", error)
        raise BuildError(
            f"cannot listen on {HOST}:{port} ({reason}); choose another with --port N"
        ) from error


def serve(running: Server) -> None:
    """Serve the built site until Ctrl-C."""
    with running:
        address = f"http://{HOST}:{running.server_address[1]}/"
        try:  # from the first word on: whoever reads it may press Ctrl-C
            print(f"English  {address}\n中文     {address}zh/\nCtrl-C ends.", flush=True)
            running.serve_forever()
        except KeyboardInterrupt:
            print()


def main(argv: list[str] | None = None) -> int:
    """Entry point; returns the exit status."""
    for stream in (sys.stdout, sys.stderr):
        if hasattr(stream, "reconfigure"):
            stream.reconfigure(encoding="utf-8", errors="replace")
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

    def command(name: str, run: Callable[..., int], words: str) -> Callable[..., Any]:
        added = commands.add_parser(name, help=words)
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
    add = command("lint", _lint, "list typed measurements, terms before their time, and headings")
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
    out = args.out or root / "site-preview" / args.chapters[0].replace("/", "-")
    build(root, out.resolve(), "preview", args.chapters)
    _lint(root, args)
    return 0


def _lint(root: Path, args: argparse.Namespace) -> int:
    from cudatut.site import contents, headings, lint, terms

    docs, only = root / "docs", args.chapters
    findings = lint.lint_files(lint.pages(docs), root) + lint.lint_words(root)
    for lang in CONFIGS:
        findings += terms.findings(docs, lang)
        for chapter in contents.chapters(contents.load(docs / "contents.yml")):
            path = docs / lang / chapter.page
            if chapter.written and path.is_file():
                name = path.relative_to(root).as_posix()
                findings += headings.findings(path.read_text(encoding="utf-8"), name, lang)
    if only:
        findings = [f for f in findings if any(f"/{name}.md" in f.file for name in only)]
    for finding in findings:
        print(finding)
    if not findings:
        print("No typed measurements, no term before its time, and every heading as it should be.")
    return 1 if findings else 0


if __name__ == "__main__":
    signal.signal(signal.SIGTERM, _terminated)
    sys.exit(main())
