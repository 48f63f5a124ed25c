"""A small book, of one chapter and the pages that belong to none, in which chapters are begun and judged."""

import shutil
from pathlib import Path

import pytest

from cudatut.site.building import CONFIGS

ROOT = Path(__file__).resolve().parents[2]
CHAPTER = "basics/coalescing"
FRONT = "basics/indexing"  # whose program stands on the landing page


@pytest.fixture
def small_book(tmp_path, monkeypatch):
    """Folder of a book with the table of contents and the glossary of this one, its settings, and one chapter's files."""
    root = tmp_path / "book"
    copied = ["pyproject.toml", "mkdocs.yml", "mkdocs.zh.yml", ".clang-format"]
    copied += [
        "docs/contents.yml",
        "docs/glossary.yml",
        "docs/labels/common.yml",
        "docs/labels/units.yml",
    ]
    for pattern in (
        *(f"docs/{lang}/{which}.md" for lang in CONFIGS for which in ("*", CHAPTER)),
        *("docs/figures/*.py", f"docs/figures/{CHAPTER}.py"),
        *(f"examples/*.{ending}" for ending in ("txt", "yml", "toml")),
        *(
            f"examples/{one}/*.{ending}"
            for one in (CHAPTER, FRONT)
            for ending in ("py", "cu", "yml")
        ),
    ):
        copied += [path.relative_to(ROOT).as_posix() for path in ROOT.glob(pattern)]
    for name in copied:
        (root / name).parent.mkdir(parents=True, exist_ok=True)
        shutil.copy(ROOT / name, root / name)
    (root / "docs" / "search.yml").write_text(f"{CHAPTER}: {{en: [], zh: []}}\n", encoding="utf-8")
    (root / "docs" / "theme").symlink_to(ROOT / "docs" / "theme")
    monkeypatch.setenv("CUDATUT_EXAMPLES", str(root / "examples"))
    return root
