"""robots.txt, the feed of the change log, and the archive of the examples."""

import xml.etree.ElementTree as ET
import zipfile
from pathlib import Path

from cudatut import catalog, paths
from cudatut.site import publishing

ROOT = Path(__file__).resolve().parents[2]
LOG = "# Changelog\n\nWords.\n\n## 1.1 (2027-01-02)\n\n- A `run` & [more](x.md): of\n  it. And that.\n- Two.\n\n## 1.0\n\n- Old.\n"


def test_robots():
    assert publishing.robots() == "User-agent: *\nAllow: /\n"
    assert "Sitemap: https://h/b/zh/sitemap.xml" in publishing.robots("https://h/b")


def test_the_feed_has_an_item_for_each_change():
    text = publishing.feed(LOG, "https://h/b", "https://git/r")
    items = ET.fromstring(text.encode()).findall("channel/item")
    assert [item.findtext("title") for item in items] == ["A run & more", "Two", "Old"]
    assert items[0].findtext("description") == "A run & more: of it. And that."
    assert [item.findtext("category") for item in items] == ["1.1 (2027-01-02)"] * 2 + ["1.0"]
    assert len({item.findtext("guid") for item in items}) == 3
    assert text == publishing.feed(LOG, "https://h/b", "https://git/r")


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
    assert {Path(name).suffix for name in names} == {".py", ".cu", ".cuh", ".txt"}


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
