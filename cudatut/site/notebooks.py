"""The page of each example: its recording, rendered by mkdocs-jupyter and then slimmed.

mkdocs-jupyter is given notebooks with the recordings' prose alone, and a mark wherever a cell ends. Its HTML
is then reduced to what a chapter has too, and the code and the results, rendered in the page's language, come
to their marks: what is long does not take the way through nbconvert, which parses all of it once more, and
which takes as long for a cell as for a page of prose. As shipped, each page would repeat 620 KB of style
sheets and ask another host for scripts.
"""

from __future__ import annotations

import json
import re
import secrets
import shutil
from collections.abc import Iterable
from html import escape
from pathlib import Path
from typing import Any
from urllib.parse import quote

from cudatut import alone, catalog, paths, recording, runs_on
from cudatut.catalog import Example
from cudatut.errors import CudatutError
from cudatut.recording import Cell, Recording
from cudatut.site import (
    contents,
    directives,
    highlighting,
    mathml,
    missing,
    needs,
    overlaid,
    prose,
    state,
    weight,
)
from cudatut.site.certificate import certificate_html
from cudatut.site.contents import Chapter
from cudatut.site.locale import text

_CELL = 'data-mime-type="text/markdown">'  # how the tag ends that nbconvert puts before prose
_END = "<!-- end of cell -->"  # Markdown and nbconvert leave comments as they are
# What a recording may call the files of its example: names below examples/, and no way out of it.
_FILE = re.compile(r"[\w-][\w.-]*(?:/[\w-][\w.-]*)*")
_LONG = weight.LIMIT // 3  # bytes of a cell's results, compressed: more is not sent with the page
_OFFERED = (
    ".py",
    ".cu",
    ".cuh",
    ".cpp",
    ".hpp",
    "/Makefile",
)  # what a browser shows as text, never as a page


def recorded() -> list[Recording]:
    """Recordings that may be shown, sorted by name; in a preview, those of its chapters.

    Looked up once per build, which then reports why others may not.
    """
    build = state.current()
    if build.shown is None:
        build.shown = _recorded()
    return build.shown


def _recorded() -> list[Recording]:
    build, found = state.current(), []
    shown = contents.chapters_by_example(contents.load(), build.docs) if build.only else None
    try:
        names, orphans = [one.name for one in build.examples], recording.orphans()
    except CudatutError as error:
        build.report(error)
        return []
    for file in orphans:
        build.report(f"recordings/{file} belongs to no example: remove it")
    for name in names:
        if shown is None or name in shown:
            try:
                record = build.record(name)
                files(record)
                found.append(record)
            except CudatutError as error:
                build.report(error)
    return found


# --- through mkdocs-jupyter ----------------------------------------------------------------------


def write(records: Iterable[Recording], folder: Path) -> dict[str, Recording]:
    """Write the notebook that mkdocs-jupyter is given for the page of each example; the recordings by its path below `folder`."""
    markdown = {f"examples/{record.name}.ipynb": _prose(record) for record in records}
    for uri, text_of_one in markdown.items():
        (folder / uri).parent.mkdir(parents=True, exist_ok=True)
        _write(folder / uri, [text_of_one])
    _convert_together({str(folder / uri): one for uri, one in markdown.items()}, folder)
    return dict(zip(markdown, records))


def _prose(record: Recording) -> str:
    """The Markdown of an example, with a mark wherever a cell ends."""
    words = (
        mathml.in_markdown(overlaid.words(cell.source, _script(record)))
        if cell.kind == "markdown"
        else ""
        for cell in _cells(record)
    )
    return "".join(f"{one}\n\n{_END}\n\n" for one in words)


def _write(path: Path, cells: Iterable[str]) -> None:
    """A notebook (nbformat 4.5) of cells of Markdown."""
    made = [
        {"cell_type": "markdown", "id": f"prose-{number}", "metadata": {}, "source": source}
        for number, source in enumerate(cells)
    ]
    notebook = {"cells": made, "metadata": {}, "nbformat": 4, "nbformat_minor": 5}
    path.write_text(json.dumps(notebook), encoding="utf-8")


def _convert_together(markdown: dict[str, str], folder: Path) -> None:
    """Let mkdocs-jupyter convert all notebooks as one, and each once: nbconvert sets out anew for every single one.

    markdown: by the path of its notebook. A later version of mkdocs-jupyter that has other private names is only slower.
    """
    import mkdocs_jupyter.plugin
    from mkdocs_jupyter import convert, nbconvert2

    mark = f"<!-- {secrets.token_hex(16)} -->"  # which no recording can hold
    together, converted = folder / "together.ipynb", dict[str, str]()
    _write(together, [f"{mark}\n\n{one}" for one in markdown.values()])

    def nb2html(path: str, **options: Any) -> str:
        if path in markdown and not converted:
            _, *pieces = nbconvert2.nb2html(str(together), **options).split(mark)
            if len(pieces) == len(markdown):
                converted.update(zip(markdown, (_CELL + piece for piece in pieces)))
            else:
                # HTML without an end has swallowed what comes after it. Each by itself, so that `page` names that one.
                markdown.clear()
        return converted[path] if path in markdown else nbconvert2.nb2html(path, **options)

    convert.nb2html = nb2html
    # Headings and title come from `toc` and from the recording.
    mkdocs_jupyter.plugin._get_nb_toc_tokens = lambda path, depth: ([], None)


def page(record: Recording, html: str, chapters: Iterable[Chapter] = ()) -> str:
    """The content of an example's page, of mkdocs-jupyter's HTML of its prose, without styles, scripts and wrappers.

    chapters: those that show this example. The page is made of what chapters are made of: highlighted code, `ct-result`,
    prose; each cell has the address `#cell-id=<title>`.
    Raises CudatutError naming the cell whose results cannot be rendered, and where the HTML is not as it used to be.
    """
    _, _, body = html.partition(_CELL)
    *texts, _ = body.split(_END)
    cells, build = _cells(record), state.current()
    if len(texts) != len(cells):
        raise CudatutError("mkdocs-jupyter's page has not all cells: its templates have changed")
    found = [
        _element("top", f'<h1 id="top">{title_html(record)}</h1>'),
        _element("links", head(record, chapters)),
    ]
    for cell, words in zip(cells, texts):
        if cell.kind == "markdown":
            found.append(_element(cell.title, prose.cleaned(words.strip())))
        else:
            results = _results(record, cell)
            code = overlaid.code(cell.source, _script(record))
            shown = highlighting.python_block(code) + results
            found.append(_element(cell.title, shown, 'class="ct-cell" '))
    certificate = _certificate(build.recordings(record.name))
    return "\n".join([*found, _element("certificate", certificate)])


def _results(record: Recording, cell: Cell) -> str:
    """What a cell showed, as HTML; what would be a large part of its page lies beside it, behind a fold."""
    html = directives.results(record, cell, state.current().lang)
    if len(html) <= _LONG or weight.compressed(html) <= _LONG:
        return html
    label = escape(text("output.label"))
    return f'<details class="example deferred"><summary>{label}</summary>{html}</details>'


def title_html(record: Recording) -> str:
    """The title of an example in the page's language, as HTML."""
    return escape(record.metadata["title"][state.current().lang], quote=False)


def _cells(record: Recording) -> list[Cell]:
    """The cells that its page shows; the first is there for Colab, and in the download."""
    return [cell for cell in record.cells if cell.title != recording.INSTALL_CELL]


def _script(record: Recording) -> str:
    return state.current().example(record.name).file


def _element(cell: str, html: str, attributes: str = "") -> str:
    """A cell's element, which has the cell's address."""
    return f'<div {attributes}id="cell-id={escape(cell)}">{html}</div>'


def head(record: Recording, chapters: Iterable[Chapter] = ()) -> str:
    """What stands below the title of an example's page: its notebook, what it needs, the chapters that show it, its files.

    Raises CudatutError where the recording says something else than a compute capability.
    """
    build, requires = state.current(), record.metadata["requires"]
    try:
        where = needs.line([requires])
    except ValueError as error:
        raise CudatutError(
            f"the recording of {record.name} says what it requires, and {error}: `python -m cudatut record {record.name}`"
        ) from error
    shown_in = ", ".join(
        f'<a href="{build.link(f"{chapter.name}/")}">{escape(chapter.title[build.lang])}</a>'
        for chapter in chapters
    )
    offered = _files(record)
    return (
        f'<p class="ct-links">{_buttons(record)}</p>'
        f"<p><code>python -m cudatut run {escape(record.name)}</code></p>{where}"
        + (f"<p>{text('example.chapter')} {shown_in}</p>" if shown_in else "")
        + f'<details class="ct-numbers"><summary>{text("example.files", n=len(offered))}</summary>'
        f"<p>{' · '.join(offered)}</p></details>"
    )


def toc(record: Recording) -> list[Any]:
    """Table of contents of an example's page: its cells by name, as Markdown's toc extension has it."""
    cells = [
        {
            "level": 2,
            "id": f"cell-id={escape(cell.title)}",
            "name": escape(overlaid.title(cell.title, _script(record))),
            "children": [],
        }
        for cell in _cells(record)
        if cell.kind == "code"
    ]
    return [{"level": 1, "id": "top", "name": title_html(record), "children": cells}]


def write_files(records: Iterable[Recording], site: Path) -> None:
    """Put what pages offer for download beside those of the examples: sources, notebooks, programs; and the pictures."""
    root = paths.examples_dir()
    for name, source in state.current().programs.items():
        (site / name).parent.mkdir(parents=True, exist_ok=True)
        (site / name).write_text(source + "\n", encoding="utf-8")
    for name, picture in state.current().pictures.items():
        (site / name).parent.mkdir(parents=True, exist_ok=True)
        (site / name).write_bytes(picture)
    # Each once: most examples read headers and modules that others read too. And where it lay before, for old links.
    offered = {name: root / name for one in records for name in files(one)}
    offered |= {old: root / new for old, new in catalog.moved().items() if new in offered}
    for name, path in offered.items():
        shutil.copyfile(path, _place(site, name))
    for one in records:
        if one.path.suffix == ".ipynb":
            _place(site, f"{one.name}.ipynb").write_bytes(_notebook(one))


def _place(site: Path, name: str) -> Path:
    """Where a file of examples/ lies below a site; its folder is there afterwards."""
    place = site / "examples" / name
    place.parent.mkdir(parents=True, exist_ok=True)
    return place


def _notebook(record: Recording) -> bytes:
    """The recorded notebook, in Chinese with the words of the overlays."""
    raw = record.path.read_bytes()
    if state.current().lang == "en":
        return raw
    notebook, file = json.loads(raw), _script(record)
    for cell in notebook["cells"]:
        shown = overlaid.code if cell["cell_type"] == "code" else overlaid.words
        cell["source"] = shown("".join(cell["source"]), file)
    return (json.dumps(notebook, ensure_ascii=False, indent=1) + "\n").encode()


def files(record: Recording) -> list[str]:
    """The files of an example that pages offer, relative to examples/, its own first.

    Raises CudatutError for a name that could lead out of examples/.
    """
    named = [f"{record.name}.ipynb", *record.metadata["sources"]]
    for name in named:
        if not _FILE.fullmatch(name):
            raise CudatutError(
                f"the recording of {record.name} names the file {name!r}, which is no name of a file below examples/: "
                f"`python -m cudatut record {record.name}`"
            )
    own = catalog.relative(catalog.path_of(record.name), paths.examples_dir())
    offered = (name for name in record.metadata["sources"] if name.endswith(_OFFERED))
    return sorted(offered, key=lambda name: (name != own, name))


# --- on other pages ------------------------------------------------------------------------------


def code_of_page(records: list[Recording], chapter: str) -> str:
    """Markdown for the end of a chapter: the examples it shows, where to get them, its program in C++, where they ran."""
    if not records:
        return ""
    link = state.current().link
    items = "".join(
        f'<li><a href="{link(f"examples/{record.name}/")}">{title_html(record)}</a> ({_links(record)})</li>'
        for record in records
    )
    if chapter in alone.chapters():
        items += f"<li>{_in_cpp(chapter)}</li>"
    return (
        f'\n\n## {text("example.code")} {{ #code }}\n\n<ul class="ct-code">{items}</ul>'
        f"\n\n{_certificate(records)}\n"
    )


def _in_cpp(chapter: str) -> str:
    """The link to a chapter's program in C++, which is then written with the site, and the line that builds it."""
    build, file = state.current(), f"cpp/{chapter}.cu"
    try:
        program = alone.program(chapter)
    except CudatutError as error:
        build.report(error)
        return ""
    build.programs[file] = program.rstrip("\n")
    command = program.partition("\n")[0].removeprefix("// ")
    link = f'<a href="{build.link(file)}" download>{escape(file.rpartition("/")[2])}</a>'
    return f"{text('example.cpp')} {link} (<code>{escape(command)}</code>)"


def start_of_page(html: str, examples: Iterable[Example]) -> str:
    """A chapter's content with a line below its title: its example in Colab, on which GPU, and the command that runs it.

    examples: the chapter's own; the line is about the first.
    """
    if (first := next(iter(examples), None)) is None:
        return html
    command = f"<code>python -m cudatut run {escape(first.name)}</code>"
    said = [text("example.run", command=command)]
    if gpu := runs_on.colab(first.requires):
        colab = text("example.colab", gpu=gpu)
        said.insert(0, f'<a href="{colab_url(first.name)}">{colab}</a>')
    return html.replace("</h1>", f'</h1><p class="ct-begin">{" · ".join(said)}</p>', 1)


def _certificate(records: list[Recording]) -> str:
    """Where the recordings were made, and which examples have none."""
    lang = state.current().lang
    made = [r for r in records if not isinstance(r, missing.StandIn)]
    notes = (missing.note_html(r, lang) for r in records if isinstance(r, missing.StandIn))
    return "".join(notes) + certificate_html(made, lang)


def _links(record: Recording) -> str:
    """Links to the files of an example, its own first, then to its notebook."""
    return " · ".join([*_files(record), *_notebook_links(record)])


def _files(record: Recording) -> list[str]:
    link, own = state.current().link, record.name.rpartition("/")[0]
    return [
        f'<a href="{link(f"examples/{name}")}">{escape(name.removeprefix(own + "/"))}</a>'
        for name in files(record)
    ]


def _buttons(record: Recording) -> str:
    """The links to an example's notebook as buttons, the first one in the color of what to do next."""
    kinds = "md-button md-button--primary", "md-button"
    links = zip(_notebook_links(record), kinds)
    return " ".join(one.replace("<a ", f'<a class="{kind}" ', 1) for one, kind in links)


def _notebook_links(record: Recording) -> list[str]:
    """Links that download an example's notebook, and that open it in Colab where a GPU there is able to run it."""
    build = state.current()
    notebook = build.link(f"examples/{record.name}.ipynb")
    links = [f'<a href="{notebook}" download>{text("example.notebook")}</a>']
    if gpu := runs_on.colab(build.example(record.name).requires):
        links.append(f'<a href="{colab_url(record.name)}">{text("example.colab", gpu=gpu)}</a>')
    return links


def colab_url(name: str) -> str:
    """Address that opens a recording, or the notebook of a chapter's exercises, in Colab, which fetches it from the repository."""
    colab = "https://colab.research.google.com/github/"
    repository = state.current().repo_url.replace("https://github.com/", colab)
    if name.endswith(catalog.EXERCISES):
        chapter = catalog.ChapterFiles(name.removesuffix(catalog.EXERCISES))
        path = chapter.exercises_notebook(state.current().lang)
    else:
        # Where there are two, the build says so when it reads them.
        path = next(iter(recording.whole_paths(name)), catalog.path_of(name).with_suffix(".ipynb"))
    recordings = paths.recordings_dir()
    if path.is_relative_to(recordings):
        place = Path("recordings", path.relative_to(recordings))
    else:
        place = Path("examples", path.relative_to(paths.examples_dir()))
    return f"{repository}/blob/main/{quote(place.as_posix())}"


def index() -> str:
    """Markdown that says what the marks mean, and lists all examples by part, in the order in which the chapters show them."""
    build, parts = state.current(), contents.load()
    shown = list(contents.chapters_by_example(parts, build.docs))
    rank = {name: number for number, name in enumerate(shown)}
    records = sorted(recorded(), key=lambda r: (rank.get(r.name, len(rank)), r.name))
    found = []
    for part in parts:
        items = "".join(
            f'<li><a href="{build.link(f"examples/{record.name}/")}">{title_html(record)}</a> '
            f'<code>{escape(record.name)}</code> <span class="ct-quiet">'
            f"{needs.mark(build.example(record.name).requires)}</span></li>"
            for record in records
            if record.name.startswith(f"{part.id}/")
        )
        if items:
            heading = f"## {part.title[build.lang]} {{ #{part.id} }}"
            found.append(f'{heading}\n\n<ul class="ct-examples">{items}</ul>\n')
    return "\n".join([needs.table(record.name for record in records), "", *found])
