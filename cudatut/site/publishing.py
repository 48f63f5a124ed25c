"""What the site has beside its pages: old addresses, robots.txt, the feed of the change log, the examples as one archive."""

from __future__ import annotations

import hashlib
import re
import zipfile
from collections.abc import Iterator
from html import escape
from pathlib import Path
from typing import Any

from cudatut import catalog, paths
from cudatut.site import locale

ARCHIVE = "examples/cudatut-examples.zip"
PACKAGE, SITE = "cudatut.zip", "cudatut-site.zip"  # at the root of the site
_PACKAGE = ("pyproject.toml", "README.md", "LICENSE", "docs/contents.yml")  # beside three folders
_TEXT = (".py", ".cu", ".cuh", ".yml", ".txt", ".md", ".toml", ".json", ".ipynb")
FEED = "feed.xml"
_SUFFIXES = (".py", ".cu", ".cuh", ".cpp", ".hpp", "/Makefile")
_README = """The examples of the book 'cudatut', {repo}

    python -m pip install "cudatut[gpu] @ git+{repo}"
    python start/hello/chapter.py

Those of the first part need only NumPy and PyCUDA, up to the cells whose names begin with check and bench. Code: MIT license.
"""


def write(site: Path, config: Any) -> None:
    """Write them into the built site of one language."""
    redirects(site, config.site_url)
    archive(site / ARCHIVE, config.repo_url)
    if locale.current() != "en":  # the others are files of the whole site, whose root is English
        return
    if root := paths.repo_root():
        package(site / PACKAGE, root)
    address = config.site_url.rstrip("/")
    (site / "robots.txt").write_text(robots(address), encoding="utf-8")
    if (changes := Path(config.config_file_path).with_name("CHANGELOG.md")).is_file():
        text = feed(changes.read_text(encoding="utf-8"), address, config.repo_url)
        (site / FEED).write_text(text, encoding="utf-8")


_MOVED = """<!doctype html>
<html lang="{lang}">
<meta charset="utf-8">
<title>{name}</title>
<meta name="robots" content="noindex">
<link rel="canonical" href="{canonical}">
<script>location.replace("{link}" + location.search + location.hash)</script>
<meta http-equiv="refresh" content="1; url={link}">
<p>{words} <a href="{link}">{name}</a></p>
"""


def redirects(site: Path, address: str = "") -> list[str]:
    """Write a page that leads on at each address of a name that an example had (`catalog.renamed`), its own and its chapter's.

    address: where this language is published, if that is known.
    Nothing is written where a page stands already, nor where there is none to lead to. Returns the old addresses.
    """
    written = []
    for old, new in catalog.renamed().items():
        for source, target in ((f"examples/{old}/", f"examples/{new}/"), (f"{old}/", f"{new}/")):
            page = site / source / "index.html"
            if page.exists() or not (site / target / "index.html").is_file():
                continue
            link = "../" * source.count("/") + target
            values = {
                "lang": locale.current(),
                "name": new,
                "canonical": f"{address.rstrip('/')}/{target}" if address else link,
                "link": link,
                "words": locale.text("page.moved"),
            }
            page.parent.mkdir(parents=True, exist_ok=True)
            filled = _MOVED.format(**{key: escape(value) for key, value in values.items()})
            page.write_text(filled, encoding="utf-8")
            written.append(source)
    return written


def robots(address: str = "") -> str:
    """Everything may be read; where the site's address is known, the two site maps are named."""
    lines = ["User-agent: *", "Allow: /"]
    if address:
        lines += ["", *(f"Sitemap: {address}/{folder}sitemap.xml" for folder in ("", "zh/"))]
    return "\n".join(lines) + "\n"


# --- the feed -----------------------------------------------------------------------------------------------------------

_VERSION = re.compile(r"^## (.+)$", re.MULTILINE)
_CHANGE = re.compile(r"^- (.+(?:\n  .+)*)", re.MULTILINE)
_LINK = re.compile(r"\[([^\]]+)\]\([^)]+\)")


def feed(markdown: str, address: str = "", repo_url: str = "") -> str:
    """The change log as RSS 2.0, an item for each change; the same text makes the same feed."""
    address, link = escape(address), escape(f"{repo_url}/blob/main/CHANGELOG.md")
    items = []
    pieces = _VERSION.split(markdown)[1:]
    for version, body in zip(pieces[::2], pieces[1::2]):
        for item in _CHANGE.findall(body):
            change = re.sub(r"`|\*\*", "", _LINK.sub(r"\1", " ".join(item.split())))
            title = re.split(r"(?<=[.;:]) ", change, maxsplit=1)[0].rstrip(".;:")
            guid = hashlib.sha256(f"{version}\n{change}".encode()).hexdigest()[:20]
            items.append(
                f"<item><title>{escape(title)}</title><description>{escape(change)}</description>"
                f"<category>{escape(version)}</category><link>{link}</link>"
                f'<guid isPermaLink="false">{guid}</guid></item>\n'
            )
    own = f'<atom:link href="{address}/{FEED}" rel="self" type="application/rss+xml"/>'
    return (
        '<?xml version="1.0" encoding="utf-8"?>\n'
        '<rss version="2.0" xmlns:atom="http://www.w3.org/2005/Atom"><channel><title>cudatut</title>'
        f"<link>{address + '/' if address else link}</link>"
        "<description>What changed in the book</description><language>en</language>"
        f"{own if address else ''}\n{''.join(items)}</channel></rss>\n"
    )


# --- the archive --------------------------------------------------------------------------------------------------------


def archive(path: Path, repo_url: str = "") -> None:
    """Write all examples' sources, without recordings, as a zip; the same files make the same bytes."""
    root, drafts = paths.examples_dir(), catalog.draft_patterns()
    files = {"README.txt": _README.format(repo=repo_url).encode()}
    for file in _files(root):
        name = file.relative_to(root).as_posix()
        if name.endswith(_SUFFIXES) and not catalog.matches(name, drafts):
            files[name] = file.read_bytes()
    _write_zip(path, "cudatut-examples", files)


def package(path: Path, root: Path) -> None:
    """Write as a zip what `pip install 'cudatut.zip[gpu]'` takes of the checkout `root`; the same files make the same bytes."""
    found = [root / name for name in _PACKAGE if (root / name).is_file()]
    for folder in ("cudatut", "examples", "recordings"):
        found += _files(root / folder)
    _write_zip(
        path, "cudatut", {one.relative_to(root).as_posix(): one.read_bytes() for one in found}
    )


def whole_site(site: Path) -> None:
    """Write the built site, both languages, as a zip into itself."""
    files = {one.relative_to(site).as_posix(): one.read_bytes() for one in _files(site)}
    _write_zip(site / SITE, "cudatut-site", files, level=1)


def _files(root: Path) -> Iterator[Path]:
    """The files below a folder, but for those that are hidden or made by Python."""
    for file in sorted(root.rglob("*")):
        parts = file.relative_to(root).parts
        if file.is_file() and not any(part.startswith((".", "__pycache__")) for part in parts):
            yield file


def _write_zip(path: Path, folder: str, files: dict[str, bytes], level: int = 9) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    with zipfile.ZipFile(path, "w") as out:
        for name, data in sorted(files.items()):
            entry = zipfile.ZipInfo(f"{folder}/{name}", date_time=(1980, 1, 1, 0, 0, 0))
            entry.compress_type = zipfile.ZIP_DEFLATED
            entry.create_system, entry.external_attr = 3, 0o644 << 16
            text = name.endswith(_TEXT)
            out.writestr(entry, data.replace(b"\r\n", b"\n") if text else data, compresslevel=level)
