"""Serve a built site on this machine, as hosts of static sites do; and a preview, which reloads when it was built anew."""

from __future__ import annotations

import sys
import time
from collections.abc import Callable, Iterable
from functools import partial
from http.server import SimpleHTTPRequestHandler, ThreadingHTTPServer
from io import BytesIO
from pathlib import Path
from threading import Thread
from typing import Any

from cudatut.errors import CudatutError

HOST, PORT = "127.0.0.1", 8000


class ServeError(CudatutError):
    """The site cannot be served; the message says why."""


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

    builds = 0  # of a preview, those that were finished

    def handle_error(self, request: Any, client_address: Any) -> None:
        if not isinstance(sys.exc_info()[1], ConnectionError):
            super().handle_error(request, client_address)


def server(out: Path, port: int = PORT, handler: type[Handler] = Handler) -> Server:
    """A server of the site in `out`, its port taken, not yet running. Raises ServeError if there is no port."""
    try:
        return Server((HOST, port), partial(handler, directory=str(out)))
    except (OSError, OverflowError) as error:
        reason = getattr(error, "strerror", error)
        raise ServeError(
            f"cannot listen on {HOST}:{port} ({reason}); choose another with --port N"
        ) from error


def serve(running: Server, page: str = "") -> None:
    """Serve the built site until Ctrl-C. page: what is opened, below the site or a language's folder."""
    with running:
        try:  # from the first word on: whoever reads it may press Ctrl-C
            _say_where(running, page)
            running.serve_forever()
        except KeyboardInterrupt:
            print()


def _say_where(running: Server, page: str) -> None:
    address = f"http://{HOST}:{running.server_address[1]}/"
    print(f"English  {address}{page}\n中文     {address}zh/{page}\nCtrl-C ends.", flush=True)


# --- a preview that reloads ------------------------------------------------------------------------

_BUILT = "/_built"  # which build is served: a number, in no site
_RELOAD = f"""<script>(() => {{
  let shown
  setInterval(async () => {{
    try {{
      const built = await (await fetch("{_BUILT}", {{cache: "no-store"}})).text()
      shown ??= built
      if (built !== shown) location.reload()
    }} catch {{}}  // the server has ended
  }}, 500)
}})()</script></body>"""


class Reloading(Handler):
    """Serves pages that load themselves anew as soon as the site was built again."""

    server: Server

    def send_head(self) -> Any:
        address = self.path.partition("?")[0]
        if address == _BUILT:
            return self._whole(str(self.server.builds).encode(), "text/plain")
        path = Path(self.translate_path(self.path))
        path = path / "index.html" if address.endswith("/") else path
        if path.suffix == ".html" and path.is_file():
            page = path.read_bytes().replace(b"</body>", _RELOAD.encode(), 1)
            return self._whole(page, "text/html; charset=utf-8")
        return super().send_head()

    def _whole(self, body: bytes, kind: str) -> BytesIO:
        self.send_response(200)
        self.send_header("Content-Type", kind)
        self.send_header("Content-Length", str(len(body)))
        self.send_header("Cache-Control", "no-store")
        self.end_headers()
        return BytesIO(body)


def watch(
    running: Server, page: str, build: Callable[[], bool], files: Callable[[], Iterable[Path]]
) -> None:
    """Build, serve, and build again whenever one of `files` has changed, until Ctrl-C.

    build: True where there is a new site. files: asked again after each build, since files come and go.
    """
    with running:
        try:
            _say_where(running, page)
            Thread(target=running.serve_forever, daemon=True).start()
            while True:
                before = _state(files())  # what changes during a build is seen after it
                running.builds += build()
                while _state(files()) == before:
                    time.sleep(0.3)
        except KeyboardInterrupt:
            print()
        finally:
            running.shutdown()


def _state(files: Iterable[Path]) -> dict[Path, tuple[int, int]]:
    """When each file was changed last, and its size; those that are not there are left out."""
    found = {}
    for path in files:
        try:
            of = path.stat()
        except OSError:
            continue
        found[path] = of.st_mtime_ns, of.st_size
    return found
