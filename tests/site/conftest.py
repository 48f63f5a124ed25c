"""A server for the built site, and a headless Chromium that looks at it.

The browser is the machine's own: Playwright drives it and never downloads one.
"""

import threading
from functools import partial
from http.server import SimpleHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path

import pytest

ARGS = (
    "--headless",
    "--no-sandbox",
    "--disable-gpu",
    "--disable-background-networking",
    "--disable-component-update",
    "--disable-sync",
)


class _Handler(SimpleHTTPRequestHandler):
    """Serves a folder; answers what is not there with its 404.html, as a host of static sites does."""

    def send_error(self, code, message=None, explain=None):
        page = Path(self.directory, "404.html")
        if code != 404 or not page.exists():
            return super().send_error(code, message, explain)
        body = page.read_bytes()
        self.send_response(404)
        self.send_header("Content-Type", "text/html; charset=utf-8")
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)

    def log_message(self, *_):
        pass


@pytest.fixture(scope="session")
def site_url(built_site):
    """Address of the built site on this machine's loopback interface; ends in a slash."""
    handler = partial(_Handler, directory=str(built_site))
    with ThreadingHTTPServer(("127.0.0.1", 0), handler) as server:
        threading.Thread(target=server.serve_forever, daemon=True).start()
        yield f"http://127.0.0.1:{server.server_port}/"
        server.shutdown()


@pytest.fixture(scope="session")
def browser(chromium, missing):
    try:
        from playwright.sync_api import sync_playwright
    except ImportError:
        missing("no Playwright (pip install playwright; it drives the Chromium of this machine)")
    with sync_playwright() as playwright:
        browser = playwright.chromium.launch(executable_path=str(chromium), args=ARGS)
        yield browser
        browser.close()


@pytest.fixture
def open_page(browser, site_url):
    """Call it with a path below the site, and options of a browser context; returns the page."""
    contexts = []

    def go(path="", *, width=1280, height=900, scheme="light", **options):
        context = browser.new_context(
            viewport={"width": width, "height": height}, color_scheme=scheme, **options
        )
        contexts.append(context)
        page = context.new_page()
        page.goto(site_url + path)
        return page

    yield go
    for context in contexts:
        context.close()
