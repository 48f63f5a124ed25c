"""robots.txt, the feed of the change log, and the archive of the examples."""

import hashlib
import xml.etree.ElementTree as ET
import zipfile
from pathlib import Path
from types import SimpleNamespace

import pytest

from cudatut import catalog, paths
from cudatut.site import locale, publishing

ROOT = Path(__file__).resolve().parents[2]
LOG = "# Changelog\n\nWords.\n\n## 1.1 (2027-01-02)\n\n- A `run` & [more](x.md): of\n  it. And that.\n- Two.\n\n## 1.0\n\n- Old.\n"


def test_robots():
    assert publishing.robots() == "User-agent: *\nAllow: /\n"
    maps = "\nSitemap: https://h/b/sitemap.xml\nSitemap: https://h/b/zh/sitemap.xml\n"
    assert publishing.robots("https://h/b") == publishing.robots() + maps


def test_the_feed_has_an_item_for_each_change():
    text = publishing.feed(LOG, "https://h/b", "https://git/r")
    items = ET.fromstring(text.encode()).findall("channel/item")
    assert [item.findtext("title") for item in items] == ["A run & more", "Two", "Old"]
    assert items[0].findtext("description") == "A run & more: of it. And that."
    assert [item.findtext("category") for item in items] == ["1.1 (2027-01-02)"] * 2 + ["1.0"]
    assert len({item.findtext("guid") for item in items}) == 3
    assert text == publishing.feed(LOG, "https://h/b", "https://git/r")


def test_items_of_the_feed_lead_to_the_change_log_and_keep_their_name():
    text = publishing.feed(LOG, "https://h/b", "https://git/r")
    channel = ET.fromstring(text.encode()).find("channel")
    assert channel.findtext("link") == "https://h/b/"
    assert 'href="https://h/b/feed.xml" rel="self"' in text
    items = channel.findall("item")
    assert {one.findtext("link") for one in items} == {"https://git/r/blob/main/CHANGELOG.md"}
    # Readers of feeds know an item by it: another would show all changes as new.
    name = hashlib.sha256(b"1.0\nOld.").hexdigest()[:20]
    assert (items[2].findtext("guid"), items[2].find("guid").get("isPermaLink")) == (name, "false")
    unknown = publishing.feed(LOG, "", "https://git/r")
    assert "atom:link" not in unknown
    assert ET.fromstring(unknown.encode()).findtext("channel/link").endswith("/CHANGELOG.md")


def test_the_change_log_of_the_book_makes_a_feed():
    text = publishing.feed((ROOT / "CHANGELOG.md").read_text(encoding="utf-8"))
    assert len(ET.fromstring(text.encode()).findall("channel/item")) >= 5


def test_the_archive_has_all_sources_and_nothing_else(tmp_path):
    publishing.archive(tmp_path / "one.zip", "https://git/r")
    publishing.archive(tmp_path / "two.zip", "https://git/r")
    assert (tmp_path / "one.zip").read_bytes() == (tmp_path / "two.zip").read_bytes()
    with zipfile.ZipFile(tmp_path / "one.zip") as archive:
        names = archive.namelist()
        hello = archive.read("cudatut-examples/start/hello/chapter.py")
    assert hello == (paths.examples_dir() / "start/hello/chapter.py").read_bytes()
    root, drafts = paths.examples_dir(), catalog.draft_patterns()
    kernels = {file.relative_to(root).as_posix() for file in root.rglob("*.cu")}
    assert {name.removeprefix("cudatut-examples/") for name in names if name.endswith(".cu")} == {
        name for name in kernels if not catalog.matches(name, drafts)
    }
    made = {".cpp", ".hpp", ""}  # of chapters that build a program; a Makefile has no suffix
    assert {Path(name).suffix for name in names} - made == {".py", ".cu", ".cuh", ".txt"}


def test_the_package_is_what_pip_builds(tmp_path):
    """Tests outside the checkout install it (tests/conftest.py, `installed`); the same files make the same bytes."""
    publishing.package(tmp_path / "one.zip", ROOT)
    publishing.package(tmp_path / "two.zip", ROOT)
    assert (tmp_path / "one.zip").read_bytes() == (tmp_path / "two.zip").read_bytes()
    with zipfile.ZipFile(tmp_path / "one.zip") as archive:
        inside = {name.removeprefix("cudatut/") for name in archive.namelist()}
        model = archive.read("cudatut/examples/llm/model/tang.gguf")
    assert {"pyproject.toml", "cudatut/cli.py", "examples/start/hello/zh.yml"} <= inside
    assert model == (ROOT / "examples/llm/model/tang.gguf").read_bytes()
    for pattern in ("cudatut/**/*.yml", "examples/**/*.cuh", "recordings/**/*.ipynb"):
        assert {path.relative_to(ROOT).as_posix() for path in ROOT.glob(pattern)} <= inside
    assert not [name for name in inside if "__pycache__" in name or name.startswith(".")]


def test_drafts_and_hidden_files_stay_out(tmp_path, monkeypatch):
    examples = tmp_path / "examples"
    hidden = ("__pycache__/one.py", ".venv/lib/one.py", "a/.one.py")
    for name in ("a/one.py", "a/two.py", "a/two.cu", "a/one.ipynb", *hidden):
        (examples / name).parent.mkdir(parents=True, exist_ok=True)
        (examples / name).write_text("x = 1\n")
    (examples / "drafts.txt").write_text("a/two*\n")
    monkeypatch.setenv("CUDATUT_EXAMPLES", str(examples))
    publishing.archive(tmp_path / "a.zip")
    with zipfile.ZipFile(tmp_path / "a.zip") as archive:
        assert archive.namelist() == ["cudatut-examples/README.txt", "cudatut-examples/a/one.py"]


def test_the_whole_site_is_an_archive_in_it_of_files_that_anyone_may_read(tmp_path):
    for name, data in {"b/a.md": b"x\r\ny\n", "a.png": b"x\r\ny\n", ".hid": b"x"}.items():
        (tmp_path / name).parent.mkdir(exist_ok=True)
        (tmp_path / name).write_bytes(data)
    (tmp_path / "a.txt").write_bytes(b"line\n" * 1000)
    publishing.whole_site(tmp_path)
    with zipfile.ZipFile(tmp_path / publishing.SITE) as archive:
        names = [f"cudatut-site/{name}" for name in ("a.png", "a.txt", "b/a.md")]
        assert archive.namelist() == names
        binary, long, text = archive.infolist()
        assert archive.read(binary) == b"x\r\ny\n" and archive.read(text) == b"x\ny\n"
    assert long.compress_size < 100
    assert text.date_time == (1980, 1, 1, 0, 0, 0)
    assert text.external_attr >> 16 == 0o644 and text.create_system == 3  # as Unix has it


@pytest.mark.parametrize("lang", ["en", "zh"])
def test_what_belongs_to_the_whole_site_is_written_once(lang, tmp_path, monkeypatch):
    """By the English build, whose folder is the root."""
    monkeypatch.setenv("CUDATUT_EXAMPLES", str(tmp_path / "examples"))
    monkeypatch.setattr(paths, "repo_root", lambda: tmp_path / "checkout")
    for name in ("examples/a.py", "checkout/README.md", "checkout/cudatut/b.py"):
        (tmp_path / name).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / name).touch()
    config = SimpleNamespace(
        site_url="https://h/b/", repo_url="https://r", config_file_path=str(tmp_path / "mkdocs.yml")
    )
    site = tmp_path / "site"
    (site / "start/add").mkdir(parents=True)
    (site / "start/add/index.html").touch()
    (tmp_path / "examples/moved.yml").write_text("start/old.py: start/add.py\n")
    with locale.using(lang):
        publishing.write(site, config)
        names = {one.relative_to(site).as_posix() for one in site.rglob("*.*")}
        names -= {"start/add/index.html"}
        whole = {"robots.txt", "cudatut.zip"} if lang == "en" else set()
        assert names == {publishing.ARCHIVE, "start/old/index.html"} | whole
        moved = (site / "start/old/index.html").read_text(encoding="utf-8")
        assert 'rel="canonical" href="https://h/b/start/add/"' in moved
        (tmp_path / "CHANGELOG.md").write_text(LOG)
        publishing.write(site, config)
    assert (site / "feed.xml").is_file() == (lang == "en")
    with zipfile.ZipFile(site / publishing.ARCHIVE) as archive:
        assert "git+https://r" in archive.read("cudatut-examples/README.txt").decode()
    if lang == "en":
        assert "Sitemap: https://h/b/sitemap.xml\n" in (site / "robots.txt").read_text()
        assert "<link>https://h/b/</link>" in (site / "feed.xml").read_text()
        with zipfile.ZipFile(site / "cudatut.zip") as archive:
            assert archive.namelist() == ["cudatut/README.md", "cudatut/cudatut/b.py"]


def test_the_site_has_them(project):
    (project.root / "CHANGELOG.md").write_text(LOG, encoding="utf-8")
    (paths.examples_dir() / "moved.yml").write_text(
        "start/old.py: start/add.py\n", encoding="utf-8"
    )
    built = project.build()
    assert "../../start/add/" in (built / "start/old/index.html").read_text(encoding="utf-8")
    assert (built / "robots.txt").is_file()
    assert (built / "feed.xml").is_file()
    assert (built / "examples/cudatut-examples.zip").is_file()
    page = (built / "start/add/index.html").read_text(encoding="utf-8")
    assert (
        '<link rel="alternate" type="application/rss+xml" title="cudatut" href="../../feed.xml">'
        in page
    )
    for name in ("og:title", "og:description", "og:locale", "og:type"):
        assert f'<meta property="{name}" content="' in page
    assert '<link rel="alternate" href="./" hreflang="x-default">' in page
    assert '<meta property="og:title" content="Add">' in page
