"""Take the README's picture from the built site: a chapter with code, checks and a chart.

    python tests/picture.py SITE

SITE is the folder that `make build` fills. Writes docs/readme-light.png and docs/readme-dark.png.
Needs Chromium ($CHROMIUM, or on PATH); take it again after recording on another GPU.
"""

import os
import shutil
import sys
import threading
from functools import partial
from http.server import SimpleHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path

from playwright.sync_api import sync_playwright

ROOT = Path(__file__).resolve().parent.parent
PAGE = "start/first_optimization/"
SIZE = {"width": 1240, "height": 860}


class Handler(SimpleHTTPRequestHandler):
    def log_message(self, *_):
        pass


def main(site: str) -> None:
    handler = partial(Handler, directory=site)
    chromium = os.environ.get("CHROMIUM") or shutil.which("chromium") or shutil.which("chrome")
    with ThreadingHTTPServer(("127.0.0.1", 0), handler) as server, sync_playwright() as playwright:
        threading.Thread(target=server.serve_forever, daemon=True).start()
        args = ["--headless", "--no-sandbox", "--disable-gpu"]
        browser = playwright.chromium.launch(executable_path=chromium, args=args)
        for scheme in ("light", "dark"):
            page = browser.new_page(viewport=SIZE, color_scheme=scheme, reduced_motion="reduce")
            page.goto(f"http://127.0.0.1:{server.server_port}/{PAGE}")
            # The first cell that draws a chart, its end a little above the end of the picture.
            page.evaluate(
                """() => {
                  const cell = document.querySelector('.ct-bench').closest('.ct-cell')
                  scrollTo(0, scrollY + cell.getBoundingClientRect().bottom + 24 - innerHeight)
                }"""
            )
            page.wait_for_timeout(500)
            page.screenshot(path=ROOT / "docs" / f"readme-{scheme}.png")
        browser.close()
        server.shutdown()


if __name__ == "__main__":
    main(*sys.argv[1:])
