"""`python -m cudatut new PART/NAME`: a chapter's files in both languages, and its lines in the lists that name chapters.

What it writes is whole: it is formatted, compiles and can be recorded, and its pages have all headings and directives. What
is left to the author is marked, `(to write: ...)` and `（待写：...）`; `python -m cudatut check` lists the marks.
"""

import json
import re
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

from cudatut import catalog, exercises, overlays, paths, yaml_text
from cudatut.authoring.check import checkout
from cudatut.catalog import ChapterFiles
from cudatut.errors import CudatutError
from cudatut.files import write_new, write_whole
from cudatut.site import contents
from cudatut.site.contents import Part

_NAME = re.compile(r"[a-z][a-z0-9_]*/[a-z][a-z0-9_]*")
_SKELETON = Path(__file__).with_name("skeleton")


class NewChapterError(CudatutError):
    """The chapter cannot be begun; the message says why. Nothing was written."""


def new(name: str, english: str = "", chinese: str = "") -> list[Path]:
    """Begin the chapter `name` ("basics/warps"), in progress. Returns the files, new ones first.

    english, chinese: its titles; without them a mark stands there. A chapter that is planned (`written: false`) keeps its
    titles and its place; another one becomes the last of its part. What is there already stays as it is: where anything
    of this name exists, or a file cannot be written, nothing is changed. Raises NewChapterError.
    """
    checkout()
    files = ChapterFiles(name)
    table, drafts = paths.docs_dir() / "contents.yml", paths.examples_dir() / "drafts.txt"
    parts = contents.load(table)
    planned = next((one for one in contents.chapters(parts) if one.name == name), None)
    titles = (
        planned.title
        if planned
        else {
            "en": english or f"(to write: the title of {name})",
            "zh": chinese or f"（待写：{name} 的标题）",
        }
    )
    _refuse(files, parts, titles)
    if planned and (english or chinese):
        raise NewChapterError(
            f"docs/contents.yml calls {name} '{titles['en']}' and '{titles['zh']}': leave --en and --zh out, or change it there"
        )
    made = {path: _filled(kind, files, titles) for path, kind in _wanted(files).items()}
    listed = _begun(table, files) if planned else _with_chapter(table, files, titles)
    with _all_or_nothing() as write:
        # In this order, so that whatever interrupts it, nothing of the book refers to what is not there.
        write(drafts, _with_lines(drafts, files.drafts), old=True)
        for path, text in made.items():
            write(path, text)
        overlays.load.cache_clear()  # there is one more now
        notebooks = dict(_notebook(name, lang) for lang in catalog.LANGUAGES)
        for path, text in notebooks.items():
            write(path, text)
        write(table, listed, old=True)
    return [*made, *notebooks, table, drafts]


def _wanted(files: ChapterFiles) -> dict[Path, str]:
    """Each file that a new chapter has, with the skeleton that it is made of."""
    return {
        files.script(): "example",
        files.kernel: "kernel",
        files.script(catalog.EXERCISES): "exercises",
        files.script(catalog.SOLUTIONS): "solutions",
        files.page("en"): "en",
        files.page("zh"): "zh",
        files.figures: "figures",
        files.labels: "labels",
        files.overlay: "overlay",
    }


def _refuse(files: ChapterFiles, parts: tuple[Part, ...], titles: dict[str, str]) -> None:
    """Raises NewChapterError for a name that is none, or that is taken by anything."""
    name = files.name
    if not _NAME.fullmatch(name):
        raise NewChapterError(
            f"'{name}' is no name of a chapter: write part and chapter in a-z, 0-9 and _, such as basics/warps"
        )
    if ending := next(filter(name.endswith, catalog.ENDINGS), ""):
        raise NewChapterError(
            f"'{name}' ends with '{ending}', as a chapter's further files do: choose another name"
        )
    if any("\n" in title for title in titles.values()):
        raise NewChapterError("a title is one line: write --en and --zh without line breaks")
    if files.part not in (known := [part.id for part in parts]):
        raise NewChapterError(
            f"docs/contents.yml has no part '{files.part}'; there are {', '.join(known)}"
        )
    for chapter in contents.chapters(parts):
        if chapter.name == name:
            if chapter.written or chapter.draft:
                raise NewChapterError(
                    f"docs/contents.yml has a chapter '{name}' already, '{chapter.title['en']}': choose another name"
                )
            continue
        if chapter.name.startswith(f"{name}_"):
            raise NewChapterError(
                f"the examples of {chapter.name} begin with '{name}_' and would be taken for this chapter's: "
                "choose another name"
            )
        if same := [lang for lang, title in titles.items() if chapter.title[lang] == title]:
            raise NewChapterError(
                f"'{titles[same[0]]}' is the title of {chapter.name}: choose another, so that lists tell them apart"
            )
    known_names = [chapter.name for chapter in contents.chapters(parts)]
    if (new_name := catalog.renamed().get(name)) in known_names:
        raise NewChapterError(f"'{name}' is what {new_name} was called: choose another name")
    own = files.code(known_names)
    wanted = dict.fromkeys(
        [*_wanted(files), *map(files.exercises_notebook, catalog.LANGUAGES), *own]
    )
    if there := [paths.shown(path) for path in wanted if path.exists()]:
        raise NewChapterError(
            f"{', '.join(there)} {'is' if len(there) == 1 else 'are'} there already and nothing was written: "
            "choose another name, or remove what is left of an old try"
        )


def _filled(kind: str, files: ChapterFiles, titles: dict[str, str]) -> bytes:
    values = {
        "name": files.name,
        "part": files.part,
        "stem": files.stem,
        "kernel": catalog.relative(files.kernel, paths.examples_dir()),
        **titles,
        "EN": _quoted(titles["en"]),
        "ZH": _quoted(titles["zh"]),
        "EN_SOLUTIONS": _quoted(titles["en"] + ": solutions"),
        "ZH_SOLUTIONS": _quoted(titles["zh"] + "：参考答案"),
    }
    text = (_SKELETON / f"{kind}.txt").read_text(encoding="utf-8")
    return re.sub(r"@(\w+)@", lambda mark: values[mark[1]], text).encode()


def _begun(table: Path, files: ChapterFiles) -> bytes:
    """The table of contents in which a planned chapter is in progress."""
    part = _of_part(text := catalog.read_text(table), files.part)
    line = re.search(rf"^ +- \{{id: {files.stem},.*$", text[part], re.MULTILINE)
    begun = re.sub(r"written: false(?=\})", "written: draft", line[0]) if line else ""
    if line and begun != line[0]:
        at = part.start + line.start()
        return f"{text[:at]}{begun}{text[at + len(line[0]) :]}".encode()
    raise NewChapterError(
        f"docs/contents.yml does not say `written: false` at the end of the line of {files.name}: write `written: draft` there"
    )


def _with_chapter(table: Path, files: ChapterFiles, titles: dict[str, str]) -> bytes:
    """The table of contents with a line for the chapter, the last of its part; all else as it stands."""
    part = _of_part(text := catalog.read_text(table), files.part)
    chapters = list(re.finditer(r"^( +)- \{id:.*$", text[part], re.MULTILINE))
    title = f"{{en: {_quoted(titles['en'])}, zh: {_quoted(titles['zh'])}}}"
    line = f"- {{id: {files.stem}, title: {title}, written: draft}}"
    if chapters:
        at = part.start + chapters[-1].end()
        changed = f"{text[:at]}\n{chapters[-1][1]}{line}{text[at:]}"
        if sorted(_lists(changed)) == sorted([*_lists(text), files.name]):
            return changed.encode()
    raise NewChapterError(
        f"docs/contents.yml is not written as it was, one line `- {{id: ...}}` for each chapter: add this one yourself, {line}"
    )


def _of_part(table: str, part: str) -> slice:
    """Where in the table of contents a part stands; an empty place where that cannot be told."""
    found = re.search(rf"^  - id: {part}\b.*?(?=^  - id:|\Z)", table, re.MULTILINE | re.DOTALL)
    return slice(*found.span()) if found else slice(0, 0)


def _quoted(title: str) -> str:
    """As YAML and Python have it."""
    return json.dumps(title, ensure_ascii=False)


def _lists(table: str) -> list[str]:
    """The names of the chapters in a table of contents; none where it cannot be read."""
    try:
        parts = yaml_text.load(table)["parts"]
        return [f"{part['id']}/{one['id']}" for part in parts for one in part["chapters"]]
    except Exception:  # whatever is wrong with it
        return []


def _with_lines(path: Path, lines: tuple[str, ...]) -> bytes:
    text = catalog.read_text(path) if path.is_file() else ""
    end = "" if text.endswith("\n") or not text else "\n"
    return (text + end + "".join(line + "\n" for line in lines)).encode()


def _notebook(name: str, lang: str) -> tuple[Path, bytes]:
    try:
        return exercises.committed_notebook(name, lang)
    except ImportError as error:
        raise NewChapterError(
            f"the notebook of the exercises cannot be made without {error.name}: `{paths.pip_install('record')}`; "
            "nothing was written"
        ) from error


@contextmanager
def _all_or_nothing() -> Iterator[Callable[..., None]]:
    """Write files with what it yields; where anything interrupts that, all is as it was before.

    A file is refused where there is one, unless it is called `old`. Raises NewChapterError for what cannot be written.
    """
    before: dict[Path, bytes | None] = {}
    folders: list[Path] = []

    def write(path: Path, raw: bytes, old: bool = False) -> None:
        for folder in reversed([one for one in path.parents if not one.exists()]):
            folder.mkdir()
            folders.append(folder)
        there = path.is_file()
        before[path] = path.read_bytes() if there else None
        if old and there:
            write_whole(path, raw)
            return
        try:
            write_new(path, raw)
        except FileExistsError:
            del before[path]  # somebody else's
            raise

    try:
        yield write
    except BaseException as error:
        for path, raw in reversed(before.items()):
            path.unlink(missing_ok=True) if raw is None else write_whole(path, raw)
        for folder in reversed(folders):
            folder.rmdir()
        if isinstance(error, OSError):
            where = paths.shown(Path(error.filename)) if error.filename else "a file"
            raise NewChapterError(
                f"{where} cannot be written ({error.strerror}); nothing was changed"
            ) from error
        raise
