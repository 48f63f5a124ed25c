"""The page of each example: its recording, rendered by mkdocs-jupyter and then slimmed.

mkdocs-jupyter is given a notebook with the recording's prose, the page's heading in front, and a mark
wherever a cell begins. Its HTML is then reduced to what a chapter has too, and the code and the results,
rendered in the page's language, come to their marks: what is long does not take the way through
nbconvert, which parses all of it once more, and which takes as long for a cell as for a page of prose.
As shipped, each page would repeat 620 KB of style sheets and ask another host for scripts.
"""

from __future__ import annotations

import json
import re
import shutil
from collections.abc import Callable, Iterable
from functools import cache
from html import escape
from pathlib import Path
from typing import Any

from jinja2 import BytecodeCache, Environment
from jinja2.bccache import Bucket

from cudatut import catalog, paths, recording
from cudatut.errors import CudatutError
from cudatut.site import contents, highlighting, mathml, missing, render, state

FOLDER = "examples"  # of the pages: /examples/<part>/<stem>/
BRANCH = "main"

_WORDS = {
    "en": {
        "source": "Source",
        "notebook": "Download the notebook",
        "colab": "Open in Colab",
        "run": "Run it",
        "chapter": "Explained in",
        "code": "Code on this page",
        "requires": "needs compute capability {cc} or newer",
        "exactly": "needs compute capability {cc}, exactly",
    },
    "zh": {
        "source": "源码",
        "notebook": "下载 notebook",
        "colab": "在 Colab 中打开",
        "run": "运行",
        "chapter": "讲解见",
        "code": "本页代码",
        "requires": "要求计算能力 {cc} 以上",
        "exactly": "仅限计算能力 {cc}",
    },
}


def page_uri(name: str) -> str:
    """Path of an example's page among the site's sources: what mkdocs-jupyter takes for a notebook."""
    return f"{FOLDER}/{name}.ipynb"


def up(name: str) -> str:
    """From an example's page to the root of its language."""
    return "../" * (name.count("/") + 2)


def recorded(
    only: Iterable[str] | None = None,
) -> tuple[list[recording.Recording], list[CudatutError]]:
    """Recordings that may be shown, sorted by name, and why others may not; with `only`, of these examples."""
    good, bad = [], []
    try:
        found = catalog.examples()
    except CudatutError as error:
        return [], [error]
    wanted = None if only is None else set(only)
    for example in found:
        if wanted is not None and example.name not in wanted:
            continue
        try:
            good.append(state.current().record(example.name))
            state.current().others(
                example.name
            )  # refused here, whether or not a chapter shows them
        except CudatutError as error:
            bad.append(error)
    bad += [
        recording.DamagedRecordingError(f"results/{file} belongs to no example: remove it")
        for file in recording.orphans()
    ]
    return good, bad


def prepared(
    record: recording.Recording, lang: str, repo_url: str, chapters: Iterable[tuple[str, str]] = ()
) -> tuple[dict[str, Any], dict[str, str]]:
    """The notebook that mkdocs-jupyter is given, and HTML for `slim` to put into its page, by the name of a cell.

    chapters: (title, URL relative to the example's page) of the chapters that show this example.
    Raises CudatutError naming the cell whose results cannot be rendered.
    """
    prose = {"top": f"# {record.metadata['title'][lang]}", "links": ""}
    fragments = {"links": _element("links", _head(record, lang, repo_url, chapters))}
    for cell in record.cells:
        if cell.title == recording.INSTALL_CELL:
            continue  # it is there for Colab, and in the download
        if cell.kind == "markdown":
            prose[cell.title] = _demoted(mathml.in_markdown(cell.source))
            continue
        if isinstance(record, missing.StandIn):
            results = ""
        else:
            try:
                results = render.results_html(cell.outputs, lang)
            except ValueError as error:
                message = f"{record.name}#{cell.title} cannot be shown: {error}"
                raise CudatutError(message) from error
        prose[cell.title] = ""
        code = highlighting.python_block(cell.source)
        fragments[cell.title] = _element(cell.title, code + results, 'class="ct-cell" ')
    prose["certificate"] = ""
    certificate = _certificate([record, *state.current().others(record.name)], lang)
    fragments["certificate"] = _element("certificate", certificate)
    source = "\n\n".join(f"{_mark(name)}\n\n{words}" for name, words in prose.items())
    kernel = {"name": "python3", "display_name": "Python 3", "language": "python"}
    notebook = {
        "nbformat": 4,
        "nbformat_minor": 5,
        "metadata": {"kernelspec": kernel, "language_info": {"name": "python"}},
        "cells": [{"cell_type": "markdown", "id": "prose", "metadata": {}, "source": source}],
    }
    return notebook, fragments


def _mark(cell: str) -> str:
    """Where a cell begins; Markdown and nbconvert leave comments as they are."""
    return f"<!-- cell {cell} -->"


def _element(cell: str, html: str, attributes: str = "") -> str:
    """A cell's element, which has the cell's address."""
    return f'<div {attributes}id="cell-id={cell}">{html}</div>'


def toc(record: recording.Recording, lang: str) -> list[dict[str, Any]]:
    """Table of contents of an example's page: its cells by name, as Markdown's toc extension has it."""
    cells = [
        {"level": 2, "id": f"cell-id={cell.title}", "name": cell.title, "children": []}
        for cell in record.cells
        if cell.kind == "code" and cell.title != recording.INSTALL_CELL
    ]
    return [{"level": 1, "id": "top", "name": record.metadata["title"][lang], "children": cells}]


def write(notebook: dict[str, Any], path: Path) -> None:
    """Write a prepared notebook for mkdocs-jupyter to read."""
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(json.dumps(notebook, ensure_ascii=False), encoding="utf-8")


_BODY = re.compile(r'data-mime-type="text/markdown">(.*)</div> <!-- jupyter-wrapper -->', re.DOTALL)
_MARK = re.compile(_mark(r"([^ ]+)"))
_H1 = re.compile(r'<h1 id="[^"]*">')
_PILCROW = re.compile(r'<a class="anchor-link"[^>]*>.*?</a>')


class UnexpectedHtmlError(CudatutError):
    """mkdocs-jupyter's HTML is not what `slim` knows: its templates have changed."""


def slim(html: str, fragments: dict[str, str]) -> str:
    """mkdocs-jupyter's HTML of a prepared notebook, without styles, scripts and wrappers.

    fragments: from `prepared`; they come to their marks. What remains is what chapters are made of:
    highlighted code, `ct-result`, prose; each cell keeps its address `#cell-id=<title>`.
    Raises UnexpectedHtmlError.
    """
    body = _BODY.search(html)
    _, *cells = _MARK.split(_PILCROW.sub("", body[1])) if body else [""]
    if not cells or not fragments.keys() <= set(cells[::2]):
        raise UnexpectedHtmlError("mkdocs-jupyter's page has not all cells in a jupyter-wrapper")
    return "\n".join(
        fragments.get(name) or _element(name, _H1.sub('<h1 id="top">', prose.strip()))
        for name, prose in zip(cells[::2], cells[1::2], strict=True)
    )


class _Bytecode(BytecodeCache):
    """Compiled templates, kept in memory."""

    def __init__(self) -> None:
        self.kept: dict[str, bytes] = {}

    def load_bytecode(self, bucket: Bucket) -> None:
        if bucket.key in self.kept:
            bucket.bytecode_from_string(self.kept[bucket.key])

    def dump_bytecode(self, bucket: Bucket) -> None:
        self.kept[bucket.key] = bucket.bytecode_to_string()


@cache
def quicken() -> None:
    """Let nbconvert compile its templates once per build, not once per page, and convert a notebook once, not twice."""
    import mkdocs_jupyter.plugin
    from nbconvert.exporters.templateexporter import TemplateExporter

    create = getattr(TemplateExporter, "_create_environment", None)
    headings = getattr(mkdocs_jupyter.plugin, "_get_nb_toc_tokens", None)
    if create is None or headings is None:  # a later version: only slower
        return
    kept = _Bytecode()

    def create_with_cache(self: TemplateExporter) -> Environment:
        environment = create(self)
        environment.bytecode_cache = kept
        return environment

    TemplateExporter._create_environment = create_with_cache
    # Headings and title come from `toc` and from the recording.
    mkdocs_jupyter.plugin._get_nb_toc_tokens = lambda path, depth: ([], None)


def copy_files(records: Iterable[recording.Recording], site: Path) -> None:
    """Put what an example's page offers for download beside it: sources and the notebook."""
    root = paths.examples_dir()
    for record in records:
        names = [*record.metadata["sources"], f"{record.name}.ipynb"]
        for name in filter(lambda name: (root / name).is_file(), names):
            target = site / FOLDER / name
            target.parent.mkdir(parents=True, exist_ok=True)
            shutil.copyfile(root / name, target)


def code_of_page(
    records: list[recording.Recording], lang: str, repo_url: str, link: Callable[[str], str]
) -> str:
    """Markdown for the end of a chapter: the examples it shows, where to get them, where they ran.

    link: function from a path on this language's site to a URL relative to the page.
    """
    if not records:
        return ""
    word = _WORDS[lang]
    items = []
    for record in records:
        page = link(f"{FOLDER}/{record.name}/")
        items.append(
            f'<li><a href="{page}">{escape(record.metadata["title"][lang])}</a> '
            f"({_links(record, lang, repo_url, link)})</li>"
        )
    certificate = _certificate(records, lang)
    return (
        f'\n\n## {word["code"]} {{ #code }}\n\n<ul class="ct-code">'
        f"{''.join(items)}</ul>\n\n{certificate}\n"
    )


def _certificate(records: list[recording.Recording], lang: str) -> str:
    """Where the recordings were made, and which examples have none."""
    made = [r.metadata for r in records if not isinstance(r, missing.StandIn)]
    notes = (missing.note_html(r, lang) for r in records if isinstance(r, missing.StandIn))
    return "".join(notes) + render.certificate_html(made, lang)


def index(
    parts: tuple[contents.Part, ...] | None = None,
    records: list[recording.Recording] | None = None,
    lang: str | None = None,
) -> str:
    """Markdown that lists all examples by part, in the order in which the chapters show them.

    Without arguments those of the running build.
    """
    build = state.current()
    parts = contents.load(contents.default_path()) if parts is None else parts
    records = recorded()[0] if records is None else records
    lang = build.lang if lang is None else lang
    shown = list(contents.chapters_by_example(parts, build.docs))
    rank = {name: number for number, name in enumerate(shown)}
    by_part: dict[str, list[str]] = {}
    for record in sorted(records, key=lambda r: (rank.get(r.name, len(rank)), r.name)):
        title = escape(record.metadata["title"][lang])
        by_part.setdefault(record.name.partition("/")[0], []).append(
            f'<li><a href="{record.name}/">{title}</a> <code>{escape(record.name)}</code></li>'
        )
    titles = {part.id: part.title[lang] for part in parts}
    ordered = [name for name in titles if name in by_part]
    ordered += [name for name in by_part if name not in titles]
    return "\n".join(
        f'## {titles.get(name, name)} {{ #{name} }}\n\n<ul class="ct-examples">'
        f"{''.join(by_part[name])}</ul>\n"
        for name in ordered
    )


def colab_url(name: str, repo_url: str) -> str:
    """Address that opens a recording in Colab, which fetches it from the repository."""
    return (
        repo_url.rstrip("/").replace(
            "https://github.com/", "https://colab.research.google.com/github/"
        )
        + f"/blob/{BRANCH}/examples/{name}.ipynb"
    )


def _head(record, lang, repo_url, chapters) -> str:
    word, meta = _WORDS[lang], record.metadata
    cc = meta["requires"].removeprefix("sm_")
    number = f"{cc.rstrip('af')[:-1]}.{cc.rstrip('af')[-1]}"
    key = "exactly" if cc[-1] in "af" else "requires"
    # From /examples/<part>/<stem>/ the files lie in /examples/.
    up = "../" * (record.name.count("/") + 1)
    links = _links(record, lang, repo_url, lambda path: up + path.removeprefix(f"{FOLDER}/"))
    lines = [
        f'<p class="ct-links">{links}</p>',
        f"<p><code>python -m cudatut run {escape(record.name)}</code> "
        f"({word[key].format(cc=number)})</p>",
    ]
    where = ", ".join(f'<a href="{url}">{escape(title)}</a>' for title, url in chapters)
    if where:
        lines.append(f"<p>{word['chapter']} {where}</p>")
    return "".join(lines)


def _links(record, lang, repo_url, link) -> str:
    word = _WORDS[lang]
    own = record.name.rpartition("/")[0]
    files = sorted(record.metadata["sources"], key=lambda name: (name != f"{record.name}.py", name))
    found = [
        f'<a href="{link(f"{FOLDER}/{name}")}">{escape(name.removeprefix(own + "/"))}</a>'
        for name in files
    ]
    notebook = link(f"{FOLDER}/{record.name}.ipynb")
    found.append(f'<a href="{notebook}" download>{word["notebook"]}</a>')
    found.append(f'<a href="{colab_url(record.name, repo_url)}">{word["colab"]}</a>')
    return " · ".join(found)


def _demoted(text: str) -> str:
    """Headings of a cell one level down: the page has its own title."""
    return re.sub(r"^(#{1,5}) ", r"#\1 ", text, flags=re.MULTILINE)
