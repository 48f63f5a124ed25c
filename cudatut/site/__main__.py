"""Build the site in both languages, and serve it.

python -m cudatut.site build [--live] [--out DIR] [--serve [--port N]]
python -m cudatut.site preview CHAPTER ... [--out DIR]
python -m cudatut.site serve [--out DIR] [--port N]
python -m cudatut.site lint [CHAPTER ...]
"""

from __future__ import annotations

import argparse
import os
import shutil
import subprocess
import sys
import tempfile
import time
from collections.abc import Sequence
from functools import partial
from http.server import SimpleHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path

from cudatut import failures, paths
from cudatut.errors import CudatutError

HOST, PORT = "127.0.0.1", 8000
# Chinese last: it lies inside the English site.
CONFIGS = {"en": "mkdocs.yml", "zh": "mkdocs.zh.yml"}


class BuildError(CudatutError):
    """The site could not be built; the message says in which language and why."""


def build(root: Path, out: Path, mode: str = "strict", only: Sequence[str] = ()) -> float:
    """Build both languages at the same time, and put them into `out`; seconds it took.

    mode: "strict"; "live", where an example that failed on this machine costs its own outputs; "preview", where every
    example that is not recorded does, and a warning ends nothing (see `cudatut.site.state`). only: chapters to preview.
    `out` is replaced only when both languages succeeded. Raises BuildError with MkDocs' messages.
    """
    begin = time.perf_counter()
    try:
        out.parent.mkdir(parents=True, exist_ok=True)
        work = Path(tempfile.mkdtemp(prefix=f".{out.name}-", dir=out.parent))
    except OSError as error:
        raise BuildError(
            f"cannot write to {out.parent} ({error.strerror}); name a folder with --out DIR"
        ) from error
    try:
        processes = {
            lang: subprocess.Popen(
                [
                    *(sys.executable, "-m", "mkdocs", "build"),
                    *(["--strict"] if mode != "preview" else []),
                    *("--config-file", config, "--site-dir", str(work / lang)),
                ],
                cwd=root,
                stdout=subprocess.PIPE,
                stderr=subprocess.STDOUT,
                text=True,
                encoding="utf-8",
                errors="replace",
                env={
                    **os.environ,
                    "PYTHONIOENCODING": "utf-8",
                    "NO_MKDOCS_2_WARNING": "1",
                    "CUDATUT_SITE_MODE": mode,
                    "CUDATUT_SITE_ONLY": " ".join(only),
                },
            )
            for lang, config in CONFIGS.items()
        }
        try:
            said = {lang: process.communicate()[0] for lang, process in processes.items()}
        finally:
            for process in processes.values():
                if process.poll() is None:
                    process.kill()
        failed = [lang for lang, process in processes.items() if process.returncode != 0]
        if failed:
            text = "\n".join(f"[{lang}] {_problems(said[lang])}" for lang in failed)
            kept = f"; {out} is as it was" if out.exists() else ""
            raise BuildError(f"{text}\nThe site was not built ({', '.join(failed)}){kept}.")
        if mode == "preview":
            for lang, text in said.items():
                elsewhere = ("'nav' configuration", "not found among documentation files")
                for line in _problems(text).splitlines():
                    if not any(words in line for words in elsewhere):  # pages left out on purpose
                        print(f"[{lang}] {line}")
        (work / "zh").rename(work / "en" / "zh")
        _replace(work / "en", out)
    finally:
        shutil.rmtree(work, ignore_errors=True)
    return time.perf_counter() - begin


def _problems(said: str) -> str:
    """What MkDocs complained about, without its progress."""
    lines = said.strip().splitlines()
    return "\n".join(line for line in lines if not line.startswith("INFO"))


def _replace(new: Path, out: Path) -> None:
    """Put `new` in the place of `out`, which a server may be reading."""
    old = new.parent / "old"
    if out.exists():
        out.rename(old)
    new.rename(out)


class Handler(SimpleHTTPRequestHandler):
    """Serves a folder; what is missing is answered with the site's own 404.html, as hosts do."""

    extensions_map = {  # noqa: RUF012 - as in the base class
        **SimpleHTTPRequestHandler.extensions_map,
        ".ipynb": "application/x-ipynb+json",
        ".cu": "text/plain; charset=utf-8",
        ".cuh": "text/plain; charset=utf-8",
        ".py": "text/plain; charset=utf-8",
        ".js": "text/javascript",
        ".woff2": "font/woff2",
    }

    def send_error(self, code: int, message: str | None = None, explain: str | None = None) -> None:
        page = Path(self.directory) / "404.html"
        if code != 404 or not page.is_file():
            return super().send_error(code, message, explain)
        body = page.read_bytes()
        self.send_response(404)
        self.send_header("Content-Type", "text/html; charset=utf-8")
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        if self.command != "HEAD":
            self.wfile.write(body)
        return None

    def log_message(self, format: str, *args: object) -> None:
        pass  # the address is all that a reader needs to see


class Server(ThreadingHTTPServer):
    """Says nothing of a browser that closes a page before it has all of it."""

    def handle_error(self, request: object, client_address: object) -> None:
        if not isinstance(sys.exc_info()[1], ConnectionError):
            super().handle_error(request, client_address)


def server(out: Path, port: int = PORT, built: bool = True) -> Server:
    """A server of the site, its port taken, not yet running. Raises BuildError if there is no site or no port.

    built: False for a site that is about to be built, so that a port that is taken costs no build.
    """
    if built and not (out / "index.html").is_file():
        raise BuildError(f"there is no site in {out}: build it with `python -m cudatut.site build`")
    try:
        return Server((HOST, port), partial(Handler, directory=str(out)))
    except (OSError, OverflowError) as error:
        reason = error.strerror if isinstance(error, OSError) else error
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
    parser = argparse.ArgumentParser(
        prog="python -m cudatut.site", description=__doc__.split("\n")[0]
    )
    commands = parser.add_subparsers(dest="command", required=True)
    for name, words in (("build", "build both languages"), ("serve", "serve what was built")):
        command = commands.add_parser(name, help=words)
        command.add_argument("--out", type=Path, help="folder of the site (default: site/)")
        command.add_argument("--port", type=int, default=PORT)
        if name == "build":
            command.add_argument(
                "--live",
                action="store_true",
                help="an example that failed on this machine costs its own outputs, not the build",
            )
            command.add_argument("--serve", action="store_true", help="serve it afterwards")
    command = commands.add_parser(
        "preview", help="build single chapters into site-preview/, recorded or not"
    )
    command.add_argument("chapters", nargs="+", metavar="CHAPTER", help="such as start/errors")
    command.add_argument("--out", type=Path, help="folder (default: site-preview/CHAPTER)")
    command = commands.add_parser(
        "lint", help="list typed measurements, terms before their time, and headings"
    )
    command.add_argument("chapters", nargs="*", metavar="CHAPTER", help="such as start/errors")
    args = parser.parse_args(argv)
    if hasattr(sys.stdout, "reconfigure"):
        sys.stdout.reconfigure(encoding="utf-8", errors="replace")
        sys.stderr.reconfigure(encoding="utf-8", errors="replace")
    root = paths.repo_root()
    try:
        if root is None:
            raise BuildError("the pages are in the repository: run this in a checkout of it")
        if args.command == "lint":
            return _lint(root, args.chapters)
        if args.command == "preview":
            own = args.chapters[0].replace("/", "-")
            out = (args.out or root / "site-preview" / own).resolve()
            seconds = build(root, out, "preview", args.chapters)
            _lint(root, args.chapters)
            print(f"Built {out} in {seconds:.1f} s.", flush=True)
            return 0
        out = (args.out or root / "site").resolve()
        failed = failures.names() if args.command == "build" and args.live else []
        running = None
        if args.command == "serve" or args.serve:
            running = server(out, args.port, built=args.command == "serve")
        if args.command == "build":
            print("Building English and Chinese ...", flush=True)
            seconds = build(root, out, "live" if args.live else "strict")
            print(f"Built {out} in {seconds:.1f} s.", flush=True)
            for name in failed:
                print(f"without the outputs of {name}: {failures.reason(name)}", file=sys.stderr)
        if running:
            serve(running)
        return 1 if failed else 0
    except CudatutError as error:
        print(error, file=sys.stderr)
        return 1
    except KeyboardInterrupt:
        print("\nInterrupted.", file=sys.stderr)
        return 130


def _lint(root: Path, only: Sequence[str] = ()) -> int:
    from cudatut.site import contents, headings, lint, terms

    docs = root / "docs"
    findings = lint.lint_files(lint.pages(docs), root)
    for lang in CONFIGS:
        findings += terms.findings(docs, lang)
        for chapter in (c for part in contents.load(docs / "contents.yml") for c in part.chapters):
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
    sys.exit(main())
