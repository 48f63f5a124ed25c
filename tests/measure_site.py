"""How fast the site builds and how much a reader downloads, each beside its limit.

    python tests/measure_site.py [--json FILE] [--quick]

Measures, with nothing kept from an earlier run:

- the strict build of both languages from the recordings, median of three: how long it takes, and how long its two processes
  compute, which other work on this machine disturbs less;
- the same with two and four times the chapters (copies in a temporary folder): growth per chapter;
- every page as gzipped HTML: chapters, what lies on pages beside them, examples, all others;
- what Chromium fetches from a server that gzips, for a first visit and for the page after it,
  counted by the server: HTML, styles, scripts, fonts, search index, icons;
- how far the page jumps while it loads (cumulative layout shift), on a telephone and on a desk with a slow network and
  processor, also where another GPU was chosen before;
- the pages that scroll sideways in a window of 320 pixels, folds open;
- `python -m cudatut list` and `status`, median of five.

Exits with 1 when a limit is passed. --quick leaves the growth out. Chromium comes from $CHROMIUM or PATH.
"""

import argparse
import gzip
import json
import os
import platform
import resource
import shutil
import statistics
import subprocess
import sys
import tempfile
import threading
import time
from dataclasses import asdict, dataclass
from functools import partial
from http.server import SimpleHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path

import yaml

ROOT = Path(__file__).resolve().parent.parent
KB = 1024
# Limits: a page compressed, all that a first visit fetches, and how far a page may jump.
PAGE, VISIT, SHIFT = 36, 150, 0.1
LANGUAGES = {"en": "", "zh": "zh/"}
# Already compressed: served as they are.
PACKED = {".woff2", ".png", ".jpg", ".webp", ".ico"}


@dataclass
class Row:
    """One measured quantity; `limit` None means that it is only reported."""

    name: str
    value: float
    unit: str
    limit: float | None = None
    note: str = ""

    @property
    def over(self) -> bool:
        return self.limit is not None and not self.value <= self.limit


def run(command: list, cwd: Path, **kwargs) -> float:
    """Seconds that a command took. Its output ends the program if it fails."""
    env = {**os.environ, "PYTHONPATH": str(cwd)}
    begin = time.perf_counter()
    done = subprocess.run(command, cwd=cwd, env=env, capture_output=True, text=True, **kwargs)
    seconds = time.perf_counter() - begin
    if done.returncode != 0:
        sys.exit(f"{' '.join(map(str, command))} failed:\n{done.stdout}\n{done.stderr}")
    return seconds


def build(root: Path, out: Path) -> float:
    return run([sys.executable, "-m", "cudatut.site", "build", "--out", str(out)], root)


def spent() -> float:
    """Processor seconds of all processes that this one has started and that have ended."""
    used = resource.getrusage(resource.RUSAGE_CHILDREN)
    return used.ru_utime + used.ru_stime


def cpu_seconds(root: Path, out: Path) -> float:
    """Processor seconds of a build, which other work on this machine disturbs less than its duration."""
    begin = spent()
    build(root, out)
    return spent() - begin


def chapters(root: Path) -> list[tuple[str, str]]:
    """(part, chapter) of every written chapter, in the order of the book."""
    contents = yaml.safe_load((root / "docs" / "contents.yml").read_text(encoding="utf-8"))
    return [
        (part["id"], chapter["id"])
        for part in contents["parts"]
        for chapter in part["chapters"]
        if chapter.get("written") is True  # not "draft"
    ]


def multiply(root: Path, copy: Path, times: int) -> int:
    """A copy of the project with every written chapter `times` times; the number of chapters in it."""
    keep = ("cudatut", "docs", "examples", "recordings")
    for name in keep:
        shutil.copytree(root / name, copy / name, ignore=shutil.ignore_patterns("__pycache__"))
    for path in root.iterdir():
        if path.is_file() and not path.name.startswith("."):
            shutil.copy(path, copy)
    file = copy / "docs" / "contents.yml"
    contents = yaml.safe_load(file.read_text(encoding="utf-8"))
    for part in contents["parts"]:
        for chapter in [c for c in part["chapters"] if c.get("written") is True]:
            for number in range(2, times + 1):
                name = f"{chapter['id']}_{number}"
                title = {lang: f"{words} {number}" for lang, words in chapter["title"].items()}
                part["chapters"].append({**chapter, "id": name, "title": title})
                for lang in LANGUAGES:
                    folder = copy / "docs" / lang / part["id"]
                    shutil.copy(folder / f"{chapter['id']}.md", folder / f"{name}.md")
    file.write_text(yaml.safe_dump(contents, allow_unicode=True, sort_keys=False), encoding="utf-8")
    return len(chapters(copy))


def growth(root: Path, work: Path) -> list[Row]:
    """Processor time against the number of chapters: the last doubling costs no more per chapter."""
    copies, numbers = {}, {}
    for times in (1, 2, 4):
        copies[times] = work / f"times{times}"
        copies[times].mkdir()
        numbers[times] = multiply(root, copies[times], times)
    # In turns, for a machine may be faster by a third in one minute than in the next.
    seconds: dict[int, list[float]] = {times: [] for times in copies}
    for _ in range(5):
        for times, copy in copies.items():
            seconds[times].append(cpu_seconds(copy, work / f"out{times}"))
    for times, copy in copies.items():
        out = work / f"out{times}"
        missing = [
            path
            for part, name in chapters(copy)
            for folder in LANGUAGES.values()
            if not (path := out / folder / part / name / "index.html").is_file()
        ]
        if missing:
            sys.exit(f"the enlarged book lacks pages: {missing[:3]}")
        shutil.rmtree(copy)
    points = [(numbers[times], statistics.median(seconds[times])) for times in copies]
    (n1, t1), (n2, t2), (n4, t4) = points
    linear = t1 + (t2 - t1) * (n4 - n1) / (n2 - n1)
    note = ", ".join(f"{number} chapters {seconds:.1f} s" for number, seconds in points)
    return [
        Row("build, per further chapter", (t4 - t1) / (n4 - n1), "s", None, f"processor: {note}"),
        # Quadratic growth would make it up to 1.6 times the straight line through the first two.
        Row("build of 4x the chapters / linear", t4 / linear, "", 1.2),
    ]


def zipped(path: Path) -> int:
    return len(gzip.compress(path.read_bytes(), 6))


def pages(site: Path, root: Path) -> list[Row]:
    """The heaviest page of each kind and language, and how many there are."""
    rows, names = [], {f"{part}/{name}" for part, name in chapters(root)}
    for lang, folder in LANGUAGES.items():
        home, groups = site / folder, {}
        for file in sorted(home.rglob("index.html")):
            path = file.parent.relative_to(home).as_posix()
            if path == "zh" or path.startswith("zh/"):  # it lies inside the English site
                continue
            groups.setdefault(kind(path, names), {})[path] = zipped(file)
        for what, sizes in groups.items():
            heaviest = max(sizes, key=sizes.get)
            note = f"{heaviest}, the heaviest of {len(sizes)}"
            rows.append(Row(f"{what}, {lang}", sizes[heaviest] / KB, "KB", PAGE, note))
        if missing := {"chapter page", "page beside a chapter", "notebook page"} - groups.keys():
            sys.exit(f"there is no {' and no '.join(sorted(missing))} in {home}")
    return rows


def kind(path: str, chapters: set[str]) -> str:
    """What a page is, by its address below its language's root."""
    if path in chapters:
        return "chapter page"
    if path.rpartition("/")[0] in chapters:
        return "page beside a chapter"
    return "notebook page" if path.startswith("examples/") else "other page"


class Handler(SimpleHTTPRequestHandler):
    """Serves a folder gzipped, lets the browser keep what it got, and counts the bytes of bodies."""

    sent: list[tuple[str, int]]

    def __init__(self, *args, sent: list, **kwargs) -> None:
        self.sent = sent
        super().__init__(*args, **kwargs)

    def do_GET(self) -> None:
        path = Path(self.translate_path(self.path))
        path = path / "index.html" if path.is_dir() else path
        if not path.is_file():
            self.sent.append((self.path, 0))
            self.send_error(404)
            return
        packed = path.suffix in PACKED
        body = path.read_bytes() if packed else gzip.compress(path.read_bytes(), 6)
        self.sent.append((self.path, len(body)))
        self.send_response(200)
        self.send_header("Content-Type", self.guess_type(str(path)))
        self.send_header("Content-Length", str(len(body)))
        self.send_header("Cache-Control", "max-age=600")  # as GitHub Pages does
        if not packed:
            self.send_header("Content-Encoding", "gzip")
        self.end_headers()
        self.wfile.write(body)

    def log_message(self, format: str, *args: object) -> None:
        pass


def chromium() -> str:
    names = ("chromium", "chromium-browser", "google-chrome", "chrome")
    named = os.environ.get("CHROMIUM")
    path = shutil.which(named) if named else next(filter(None, map(shutil.which, names)), None)
    if path is None:
        sys.exit("no Chromium (Debian: apt-get install chromium; or set CHROMIUM to its path)")
    return path


# Adds up the shifts that the reader did not cause.
SHIFTS = """window.shifted = 0
new PerformanceObserver((list) => {
  for (const entry of list.getEntries()) if (!entry.hadRecentInput) window.shifted += entry.value
}).observe({type: 'layout-shift', buffered: true})"""
# 1.6 Mbit/s, 150 ms and a processor slowed four times: a telephone, as Lighthouse imagines it.
SLOW = {
    "offline": False,
    "latency": 150,
    "downloadThroughput": 200_000,
    "uploadThroughput": 94_000,
}


SCREENS = {
    "telephone": {"viewport": {"width": 390, "height": 844}, "is_mobile": True},
    "desk": {"viewport": {"width": 1280, "height": 900}},
}
GPU = "NVIDIA H200"  # another than the book's own


def shifts(
    browser, host: str, folder: str, all_chapters: list[str]
) -> list[tuple[str, float, str]]:
    """(screen, worst layout shift, page) on first visits of some pages."""
    rows = []
    for screen, options in SCREENS.items():
        for chosen in (None, GPU):
            found = {}
            for path in [folder, f"{folder}glossary/", *all_chapters[::6]]:
                context = browser.new_context(**options)
                page = context.new_page()
                page.add_init_script(SHIFTS)
                if chosen:
                    page.add_init_script(f"localStorage.setItem('cudatut-gpu', '{chosen}')")
                tools = context.new_cdp_session(page)
                tools.send("Network.enable")
                tools.send("Network.emulateNetworkConditions", SLOW)
                tools.send("Emulation.setCPUThrottlingRate", {"rate": 4})
                page.goto(host + path, wait_until="networkidle")
                page.wait_for_timeout(300)
                found[path] = page.evaluate("window.shifted")
                context.close()
            worst = max(found, key=found.get)
            rows.append((f"{screen}, {chosen} chosen" if chosen else screen, found[worst], worst))
    return rows


def screens(browser, host: str, root: Path) -> list[Row]:
    """Layout shifts on first visits of some pages; all pages at 320 pixels."""
    rows = []
    for lang, folder in LANGUAGES.items():
        all_chapters = [f"{folder}{part}/{name}/" for part, name in chapters(root)]
        for screen, worst, path in shifts(browser, host, folder, all_chapters):
            rows.append(Row(f"layout shift, {screen}, {lang}", worst, "", SHIFT, path or "/"))
        context = browser.new_context(viewport={"width": 320, "height": 640})
        page = context.new_page()
        wide = []
        for path in [folder, *(f"{folder}{name}/" for name in OTHERS), *all_chapters]:
            page.goto(host + path, wait_until="domcontentloaded")
            page.evaluate("document.querySelectorAll('details').forEach((d) => { d.open = true })")
            if page.evaluate("document.documentElement.scrollWidth") > 320:
                wide.append(path)
        context.close()
        note = ", ".join(wide[:3])
        rows.append(Row(f"pages wider than 320 pixels, {lang}", len(wide), "", 0, note))
    return rows


# Pages that are no chapters.
OTHERS = ("book", "glossary", "claims", "examples", "api", "contributing")


def visits(site: Path, root: Path) -> list[Row]:
    """What a browser fetches: first visits with an empty cache, and the pages read after them; what it shows on a telephone."""
    from playwright.sync_api import sync_playwright

    sent: list[tuple[str, int]] = []
    handler = partial(Handler, directory=str(site), sent=sent)
    server = ThreadingHTTPServer(("127.0.0.1", 0), handler)
    threading.Thread(target=server.serve_forever, daemon=True).start()
    host = f"http://127.0.0.1:{server.server_address[1]}/"
    rows = []

    def fetched(page, path: str) -> int:
        sent.clear()
        page.goto(host + path, wait_until="networkidle")
        page.wait_for_timeout(500)  # what a page asks for when it is idle counts as well
        lost = [path for path, size in list(sent) if not size]
        if lost:
            sys.exit(f"{path} asks for what is not there: {lost}")
        return sum(size for _, size in list(sent))

    with sync_playwright() as playwright:
        browser = playwright.chromium.launch(executable_path=chromium(), args=["--no-sandbox"])
        for lang, folder in LANGUAGES.items():
            all_chapters = [f"{folder}{part}/{name}/" for part, name in chapters(root)]
            # Landing page, then the chapters in turn: each page after the first is a 'second page'.
            first, *rest = [folder, *all_chapters]
            context = browser.new_context()
            page = context.new_page()
            landing = fetched(page, first)
            what = sorted(sent, key=lambda item: -item[1])[:4]
            note = ", ".join(
                f"{path.rsplit('/', 1)[-1] or 'page'} {size / KB:.0f}" for path, size in what
            )
            rows.append(Row(f"first visit, landing page, {lang}", landing / KB, "KB", VISIT, note))
            after = {path: fetched(page, path) for path in rest}
            heaviest = max(after, key=after.get)
            rows.append(Row(f"second page, {lang}", after[heaviest] / KB, "KB", 40, heaviest))
            context.close()
            context = browser.new_context()
            straight = fetched(context.new_page(), heaviest)
            context.close()
            rows.append(
                Row(f"first visit, a chapter, {lang}", straight / KB, "KB", VISIT, heaviest)
            )
        rows += screens(browser, host, root)
        browser.close()
    server.shutdown()
    return rows


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--json", type=Path, metavar="FILE", help="write the rows there too")
    parser.add_argument("--quick", action="store_true", help="leave the growth out")
    options = parser.parse_args()
    rows = []
    with tempfile.TemporaryDirectory(prefix="cudatut-measure-") as folder:
        work = Path(folder)
        site = work / "site"
        times, cpu = [], []
        for _ in range(3):
            begin = spent()
            times.append(build(ROOT, site))
            cpu.append(spent() - begin)
        for what, found, limit in (
            ("strict build, both languages", times, 20),
            ("the same, processor time", cpu, 40),  # more does not fit two cores
        ):
            note = ", ".join(f"{seconds:.1f}" for seconds in found)
            rows.append(Row(what, statistics.median(found), "s", limit, note))
        if not options.quick:
            rows += growth(ROOT, work)
        rows += pages(site, ROOT)
        rows += visits(site, ROOT)
    for command, limit in (("list", 0.5), ("status", 10)):
        times = [run([sys.executable, "-m", "cudatut", command], ROOT) for _ in range(5)]
        rows.append(Row(f"python -m cudatut {command}", statistics.median(times), "s", limit))

    from rich.console import Console
    from rich.table import Table

    table = Table(title=f"{os.cpu_count()} cores, Python {platform.python_version()}")
    for heading, justify in (("", "left"), ("measured", "right"), ("limit", "right"), ("", "left")):
        table.add_column(heading, justify=justify)
    for row in rows:
        limit = "" if row.limit is None else f"{row.limit:g} {row.unit}".strip()
        verdict = "[red]over[/red] " if row.over else ""
        table.add_row(row.name, f"{row.value:.2f} {row.unit}".strip(), limit, verdict + row.note)
    Console(width=None if sys.stdout.isatty() else 140).print(table)
    if options.json:
        options.json.write_text(json.dumps([{**asdict(r), "over": r.over} for r in rows], indent=1))
    return 1 if any(row.over for row in rows) else 0


if __name__ == "__main__":
    sys.exit(main())
