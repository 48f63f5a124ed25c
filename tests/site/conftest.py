"""A server for the built site, and a headless Chromium that looks at it.

The browser is the machine's own: Playwright drives it and never downloads one.
"""

import importlib.util
import os
import shutil
import threading
from contextlib import ExitStack
from functools import cache, partial
from http.server import SimpleHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path

import pytest
import yaml
from jinja2 import FileSystemBytecodeCache
from mkdocs.theme import Theme

ROOT = Path(__file__).resolve().parents[2]
ARGS = (
    "--headless",
    "--no-sandbox",
    "--disable-gpu",
    "--disable-background-networking",
    "--disable-component-update",
    "--disable-sync",
    # The site is served from loopback; whatever else a page asks for is noted by the tests and goes nowhere.
    "--host-resolver-rules=MAP * ~NOTFOUND, EXCLUDE 127.0.0.1",
)


PATIENCE = 120_000  # ms that a page is waited for, also where others use the machine


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

    def end_headers(self):
        self.send_header("Cache-Control", "max-age=600")  # as GitHub Pages does
        super().end_headers()

    def log_message(self, *_):
        pass


@pytest.fixture(scope="session")
def serve():
    """Call it with a folder: its address on this machine's loopback interface, which ends in a slash."""
    with ExitStack() as stack:

        def start(folder):
            handler = partial(_Handler, directory=str(folder))
            server = stack.enter_context(ThreadingHTTPServer(("127.0.0.1", 0), handler))
            stack.callback(server.shutdown)
            threading.Thread(target=server.serve_forever, daemon=True).start()
            return f"http://127.0.0.1:{server.server_port}/"

        yield start


@pytest.fixture(scope="session")
def site_url(built_site, serve):
    """Address of the built site; ends in a slash."""
    return serve(built_site)


@pytest.fixture(scope="session")
def browser(chromium, missing):
    try:
        from playwright.sync_api import sync_playwright
    except ImportError:
        missing("no Playwright (pip install playwright; it drives the Chromium of this machine)")
    with sync_playwright() as playwright:
        browser = playwright.chromium.launch(
            executable_path=str(chromium), args=ARGS, timeout=PATIENCE
        )
        made = browser.new_context

        def patient(**options):
            context = made(**options)
            context.set_default_timeout(PATIENCE)
            return context

        browser.new_context = patient
        yield browser
        browser.close()


@pytest.fixture(scope="session")
def contrast():
    """A function of JavaScript for `page.evaluate`: words with too little contrast, in figures or elsewhere."""
    return Path(__file__).with_name("contrast.js").read_text(encoding="utf-8")


@pytest.fixture(scope="session")
def collisions():
    """A function of JavaScript for `page.evaluate`: words of figures that have no room."""
    return Path(__file__).with_name("collisions.js").read_text(encoding="utf-8")


@pytest.fixture(scope="session")
def copied():
    """Call it with a page that may use the clipboard, and a block of code: what its copy button leaves there."""

    def press(page, block):
        page.evaluate("navigator.clipboard.writeText('')")
        block.scroll_into_view_if_needed()
        block.locator("[data-md-type=copy], .md-clipboard").first.click()
        page.wait_for_function("navigator.clipboard.readText().then((t) => t.length > 0)")
        return page.evaluate("navigator.clipboard.readText()").replace("\r\n", "\n")

    return press


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


@cache
def _terms_alone():
    terms = yaml.safe_load((ROOT / "docs" / "glossary.yml").read_text(encoding="utf-8"))
    kept = [
        {k: v for k, v in term.items() if k not in ("chapter", "explained", "code")}
        for term in terms
    ]
    return yaml.safe_dump(kept, allow_unicode=True)


class Project:
    """A book of one chapter, with one example `start/add` and its recording, in a folder of its own."""

    chapter = (
        "---\ntitle: Add\n---\n# Add {{ #top }}\n\nProse.\n\n{body}\n\n"
        "```example\nstart/add#bench\n```\n"
    )

    def __init__(self, root, book):
        self.root, self.book = root, book
        for name in ("mkdocs.yml", "mkdocs.zh.yml"):
            shutil.copy(ROOT / name, root)
        (root / "docs").mkdir()
        (root / "docs" / "theme").symlink_to(ROOT / "docs" / "theme")
        self.glossary()
        (root / "docs" / "search.yml").write_text("start/add: {en: [], zh: []}\n", "utf-8")
        (root / "docs" / "labels").mkdir()
        self.labels("add: 加法\none thread: 单线程\n")
        self.contents([("add", True), ("later", False)])
        for lang in ("en", "zh"):
            for page in ("index", "book", "claims", "glossary", "examples", "api", "contributing"):
                self.page(f"{page}.md", f"# {page} {{ #top }}\n", lang)
            self.page("start/add.md", self.chapter.format(body=""), lang)
        self.overlay({})
        book.example("start/add")
        book.recorded("start/add")

    def overlay(self, more):
        """Give the examples their Chinese, and this besides."""
        said = {
            "such as in Colab: this compiles PyCUDA, which takes minutes": "例如在 Colab 中：编译要几分钟",
            "One idea": "一个想法",
            "yours < mine": "你的 < 我的",
            **dict.fromkeys(("setup", "bench", "told", "given", "solution", "check"), "单元格"),
        }
        pairs = [{"en": english, "zh": words} for english, words in (said | more).items()]
        self.book.file("zh.yml", yaml.safe_dump(pairs, allow_unicode=True))

    def contents(self, chapters):
        lines = [
            "parts:",
            "  - id: start",
            "    level: {en: Novice, zh: 新手村}",
            "    title: {en: Getting started, zh: 入门}",
            "    about: {en: About., zh: 简介。}",
            "    chapters:",
        ]
        for name, written in chapters:
            title = f"{{en: The {name}, zh: 章节 {name}}}"
            lines.append(f"      - {{id: {name}, title: {title}, written: {str(written).lower()}}}")
        (self.root / "docs" / "contents.yml").write_text("\n".join(lines), encoding="utf-8")

    def page(self, name, text, lang="en"):
        path = self.root / "docs" / lang / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text, encoding="utf-8")

    def glossary(self):
        """The book's terms, without the chapters that introduce them: this book has one chapter of its own."""
        (self.root / "docs" / "glossary.yml").write_text(_terms_alone(), encoding="utf-8")

    def labels(self, text, name="start_add.yml"):
        (self.root / "docs" / "labels" / name).write_text(text, encoding="utf-8")

    def body(self, body, lang="en"):
        """Give the chapter this text; it ends with the example fence."""
        self.page("start/add.md", self.chapter.format(body=body), lang)

    def build(self, lang="en"):
        """Build strictly; returns the folder of the site. Raises mkdocs.exceptions.Abort."""
        from mkdocs.commands.build import build
        from mkdocs.config import load_config

        name = {"en": "mkdocs.yml", "zh": "mkdocs.zh.yml"}[lang]
        config = load_config(str(self.root / name), strict=True)
        config.plugins.on_startup(command="build", dirty=False)
        build(config)
        return Path(config.site_dir)

    def refused(self, caplog, *parts, lang="en"):
        """The strict build fails, and one of its warnings holds all of `parts`."""
        from mkdocs.exceptions import Abort

        with pytest.raises(Abort):
            self.build(lang)
        said = [r.getMessage() for r in caplog.records if r.levelname == "WARNING"]
        assert any(all(part in line for part in parts) for line in said), said


@pytest.fixture(scope="session")
def prepared(tmp_path_factory):
    """What MkDocs does anew for every build and which comes to the same: half of what a small one takes.

    Templates that Jinja has compiled, found again by their text; the names of the theme's ten thousand files.
    """
    compiled = FileSystemBytecodeCache(str(tmp_path_factory.mktemp("templates")))
    listed = {}

    def prepare(theme, made=Theme.get_env):
        env = made(theme)
        env.bytecode_cache = compiled
        folders, names = tuple(map(os.path.realpath, theme.dirs)), env.loader.list_templates
        env.loader.list_templates = lambda: (
            listed.get(folders) or listed.setdefault(folders, names())
        )
        return env

    return prepare


@pytest.fixture
def project(tmp_path, monkeypatch, prepared):
    """A book of one chapter that builds; see Project."""
    monkeypatch.setattr(Theme, "get_env", prepared)
    if hasattr(yaml, "CSafeLoader"):  # reads the same, ten times as fast
        monkeypatch.setattr(yaml, "SafeLoader", yaml.CSafeLoader)
    spec = importlib.util.spec_from_file_location("book", ROOT / "tests/cudatut/conftest.py")
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    monkeypatch.setenv("CUDATUT_EXAMPLES", str(tmp_path / "examples"))
    monkeypatch.delenv("SITE_URL", raising=False)
    project = Project(tmp_path, module.Book(tmp_path / "examples"))
    yield project
    from cudatut.site import locale, state

    state.begin(state.State())
    locale.use("en")
