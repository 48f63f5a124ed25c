"""The MkDocs plugin `cudatut`: MkDocs' events, passed on to plain functions.

The language of a build is that of its theme.
What may be wrong with a page is collected as warnings, so that one strict build names everything.
"""

from __future__ import annotations

import logging
import os
import re
import sys
import tempfile
from html import escape
from pathlib import Path, PurePosixPath
from typing import Any
from urllib.parse import quote

from mkdocs.exceptions import PluginError
from mkdocs.plugins import BasePlugin, CombinedEvent, event_priority
from mkdocs.structure.files import File, InclusionLevel
from mkdocs.structure.pages import Page
from mkdocs.structure.toc import get_toc

from cudatut import paths
from cudatut.errors import CudatutError
from cudatut.recording import Recording, gpu_folder
from cudatut.site import (
    conditions,
    contents,
    deferred,
    directives,
    exercise_fence,
    folds,
    glossary,
    highlighting,
    labels,
    languages,
    lint,
    locale,
    main_path,
    mathml,
    missing,
    needs,
    notebooks,
    overlaid,
    pictures,
    publishing,
    references,
    searching,
    slimming,
    state,
    weight,
    whole_book,
)
from cudatut.site.certificate import certificate_html

_EXEC_LOG = "mkdocs.plugins.markdown_exec._internal.formatters.base"
_OWN_ERROR = re.compile(r"^\s*cudatut\.[\w.]+Error: (.*)", re.MULTILINE | re.DOTALL)
_FRAME = re.compile(
    r'^ *File "([^"]*/figures/[^"]*|<code block[^"]*)", line (\d+), in .*\n(.*)', re.MULTILINE
)
_ID = re.compile(r'\sid="([^"]+)"')


def _name_page(record: logging.LogRecord) -> bool:
    """Say on which page a fence failed: markdown-exec does not know."""
    build = state.current()
    if missing.MissingOutputError.__name__ in str(record.msg):  # the page says so in its place
        record.levelno, record.levelname = logging.INFO, "INFO"
    # An error of ours, such as a stale recording's, explains itself without the traceback of the fence.
    own = _OWN_ERROR.search(str(record.msg))
    said = own[1].strip() if own else _of_fence(str(record.msg))
    said = record.msg if os.environ.get("CUDATUT_DEBUG") else said
    record.msg = f"docs/{build.lang}/{build.page}: {said}"
    return True


def _of_fence(message: str) -> str:
    """A sentence for the traceback of a fence that failed, such as a figure's; another message as it is."""
    _, mark, output = message.partition("\nOutput is:\n")
    if not mark or not output.strip():
        return message
    frames = _FRAME.findall(output)  # the last one of ours
    file, line, code = frames[-1] if frames else ("", "", "")
    at = f" (docs/{file[file.rindex('figures/') :]}:{line}" if "figures/" in file else " (the fence"
    error = output.strip().splitlines()[-1].strip()
    return f"a fence that is executed fails: {error}{at}, `{code.strip()}`): mend it; CUDATUT_DEBUG=1 shows the traceback"


class CudatutPlugin(BasePlugin):
    """Brings recordings, the table of contents and the other language into the site.

    What MkDocs hands over is changed in place: without an answer it goes on with that.
    """

    @event_priority(50)  # before markdown-exec and mkdocs-jupyter read the configuration
    def on_config(self, config: Any) -> None:
        overlaid.forget()
        lang, docs = config.theme["language"], Path(config.docs_dir)
        self.site_url = os.environ.get("SITE_URL", "")
        if self.site_url:
            config.site_url = languages.site_url(self.site_url, lang)
        self.state = state.begin(
            state.State(
                lang=lang,
                docs=docs,
                repo_url=config.repo_url,
                mode=os.environ.get("CUDATUT_SITE_MODE", "strict"),
                only=tuple(os.environ.get("CUDATUT_SITE_ONLY", "").split()),
            )
        )
        # Pages import their drawings: `from figures.start import errors`.
        if str(docs.parent) not in sys.path:
            sys.path.insert(0, str(docs.parent))
        logging.getLogger(_EXEC_LOG).addFilter(_name_page)
        try:
            self.parts = contents.load()
            self.terms = glossary.load(docs.parent / "glossary.yml", self.parts)
            self.chapters = {chapter.page: chapter for chapter in contents.chapters(self.parts)}
            names = {chapter.name for chapter in self.chapters.values()}
            typed = searching.asked_for(docs.parent / "search.yml", names)
        except CudatutError as error:
            raise PluginError(str(error)) from error
        config.nav = contents.nav(self.parts, lang)
        self.hover = glossary.Hover(self.terms, lang)
        searching.leave_whole()
        self.asked = typed[lang]  # by page, what readers look for who need it
        self.named: dict[str, list[str]] = {}  # by page, the examples that it shows
        self.shown: dict[str, str] = {}  # by page, its content as readers get it
        self.minutes: dict[str, tuple[int, int]] = {}  # by chapter, of reading and of practice
        # Material shows its language partial for any true value, and would make wrong links of a list.
        config.extra["alternate"] = True
        options = config.mdx_configs
        options["toc"]["permalink_title"] = locale.text("page.permalink")
        # As it stands in mkdocs.yml the path would be relative to where MkDocs was started.
        options["cudatut.site.snippets"]["base_path"] = [str(paths.examples_dir())]
        fences = [directives.fence(), directives.fence("exercise", exercise_fence.render)]
        options["pymdownx.superfences"] = {"custom_fences": fences}

    def on_pre_build(self, config: Any) -> None:
        if (
            self.state.mode == "preview"
        ):  # whoever previews a chapter has it judged (`cudatut.site.judge`)
            return
        docs = self.state.docs
        root = docs.parents[1]
        findings = lint.lint_files(lint.pages(docs), root)
        if self.state.lang == "en":  # what both languages share is read once
            findings += lint.lint_words(root)
        for finding in findings:
            self.state.report(finding)

    @event_priority(50)  # mkdocs-jupyter must find the notebooks among the files
    def on_files(self, files: Any, config: Any) -> None:
        for page in contents.left_out(self.parts):
            if file := files.get_file_from_path(page):
                files.remove(file)
        self.records = notebooks.recorded()
        highlighting.color_cells(self.records)
        for problem in labels.problems(self.state.lang, self.records):
            self.state.report(problem)
        # Read by mkdocs-jupyter while it renders; the checkout may be read-only.
        self.copies = tempfile.TemporaryDirectory(prefix="cudatut-notebooks-")
        folder = Path(self.copies.name)
        self.examples = notebooks.write(self.records, folder)
        for uri in self.examples:
            # No File.generated: mkdocs-jupyter's wrapper finds its source by src_dir alone.
            files.append(File(uri, str(folder), config.site_dir, config.use_directory_urls))
        self.shown_in = contents.chapters_by_example(self.parts, self.state.docs)

    def on_page_markdown(self, markdown: str, page: Any, config: Any, files: Any) -> str:
        self.state.page, self.state.url = page.file.src_uri, page.url
        if page.file.src_uri in self.examples:
            return markdown
        # MkDocs has taken the front matter away.
        offset = page.file.content_string.count("\n") - markdown.count("\n")
        names = self.named[page.file.src_uri] = references.named(markdown)
        if self.state.mode != "preview":
            name = f"docs/{self.state.lang}/{page.file.src_uri}"
            for finding in exercise_fence.findings(page.file.content_string, name, self.state.lang):
                self.state.report(finding)
        markdown = conditions.replace(markdown, self.state.report, offset)
        markdown = references.replace(markdown, self.state.report, offset)
        markdown = contents.unlink_drafts(markdown, page.file.src_uri, self.parts)
        if page.file.src_uri in self.chapters:
            shown = [one for one in self.records if one.name in names]
            markdown += notebooks.code_of_page(shown, self.chapters[page.file.src_uri].name)
        return markdown

    def on_page_content(self, html: str, page: Any, config: Any, files: Any) -> str:
        if record := self.examples.get(page.file.src_uri):
            html = self._example(html, page, record)
        html = mathml.replace(slimming.tokens(html), self.state.report)
        html = folds.addressed(html, self.state.lang)
        if chapter := self.chapters.get(page.file.src_uri):
            html = notebooks.start_of_page(html, needs.own(chapter, self.parts))
            html = needs.below_title(html, chapter, self.parts)
            times = main_path.minutes(html, exercise_fence.minutes(chapter.name))
            self.minutes[chapter.name] = times
            html = main_path.with_time(html, times, self.state.lang) + whole_book.PROGRESS
        # MkDocs sees no ids in what fences made; links to them would be reported as broken.
        page.present_anchor_ids = (page.present_anchor_ids or set()) | set(_ID.findall(html))
        return html

    def _example(self, html: str, page: Any, record: Recording) -> str:
        page.title = notebooks.title_html(record)  # the theme takes it for HTML
        page.toc = get_toc(notebooks.toc(record))
        file = quote(self.state.example(record.name).file)
        page.edit_url = f"{self.state.repo_url}/edit/main/examples/{file}"
        # Chapters are searched, which show the same code; their pages lead here.
        page.meta["search"] = {"exclude": True}
        try:
            return notebooks.page(record, html, self.shown_in.get(record.name, ()))
        except CudatutError as error:
            self.state.report(error)
            return f"<p>{escape(str(error))}</p>"

    def on_env(self, env: Any, config: Any, files: Any) -> None:
        """All pages are read, none is written: what they defer becomes pages beside them."""
        for file in files.documentation_pages(inclusion=InclusionLevel.is_in_serve):
            if (page := file.page) is None or page.content is None:  # excluded from this build
                continue
            self.state.page, self.state.url = file.src_uri, page.url
            html = page.content
            if file.src_uri == "index.md":
                html = whole_book.with_hours(html, self.minutes)
            if chapter := self.chapters.get(file.src_uri):
                link, here = self.state.link("glossary/"), page.meta.get("terms")
                html = self.hover.put(html, link, here, chapter.name)
            divided = deferred.divide(html)
            self.shown[file.src_uri] = divided.html
            for beside in divided.pages:
                self._add_page(beside, page, config, files)
        return env

    def _add_page(self, beside: deferred.Beside, chapter: Page, config: Any, files: Any) -> None:
        """Add the page beside a chapter, or beside an example's page, that holds what it defers."""
        build, folder = self.state, str(PurePosixPath(chapter.file.src_uri).with_suffix(""))
        file = File.generated(
            config, f"{folder}/{beside.name}.md", content="", inclusion=InclusionLevel.NOT_IN_NAV
        )
        page = Page(None, file, config)
        build.page, build.url = file.src_uri, page.url
        named = self.named.get(chapter.file.src_uri, ())
        recorded = (one for one in self.records if not isinstance(one, missing.StandIn))
        every = [build.recordings(one.name) for one in recorded if one.name in named]
        others = [one for _, *slim in every for one in slim]
        there = [one for one in others if gpu_folder(one.gpu) == beside.name]
        own = dict.fromkeys(book.gpu.removeprefix("NVIDIA ") for book, *_ in every)
        made = folds.addressed(certificate_html(there, build.lang), build.lang)
        page.title, content = beside.content(chapter.title, own, made)
        page.toc, page.edit_url = get_toc(beside.toc(page.title)), chapter.edit_url
        page.meta["search"] = {"exclude": True}  # the chapter is searched with all that it defers
        page.content = self.shown[file.src_uri] = content
        files.append(file)

    @event_priority(50)
    def _on_page_context_before_search(
        self, context: Any, page: Any, config: Any, nav: Any
    ) -> None:
        page.content = searching.searched(page.content)
        try:
            self.asked.setdefault(page.url, []).extend(searching.asked(page.meta))
        except CudatutError as error:
            self.state.page = page.file.src_uri
            self.state.report(error)

    @event_priority(-50)
    def _on_page_context_after_search(self, context: Any, page: Any, config: Any, nav: Any) -> None:
        page.content = self.shown[page.file.src_uri]
        self.state.page, self.state.url = page.file.src_uri, page.url
        if page.file.src_uri == "glossary.md":
            # The search has read the table of contents of all terms. MkDocs names no type for these that one can import.
            letters: Any = glossary.toc(self.terms, self.state.lang, page.title)
            page.toc = get_toc(letters)
        context["languages"] = languages.switch(page.url, self.state.lang, self.site_url)

    on_page_context = CombinedEvent(_on_page_context_before_search, _on_page_context_after_search)

    def on_post_page(self, output: str, page: Any, config: Any) -> str:
        page_html = slimming.frame(output)
        for problem in (weight.problem(page_html), pictures.problem(page_html)):
            if problem:
                self.state.page = page.file.src_uri
                self.state.report(problem)
        chapter = self.chapters.get(page.file.src_uri)
        if chapter and self.state.mode == "preview" and self.state.lang == "en":
            self.state.page = page.file.src_uri
            for over in main_path.over_budget(chapter.part, main_path.of_page(page_html)):
                self.state.report(f"{over}: move into folds what a newcomer need not read")
        return page_html

    def on_template_context(self, context: Any, template_name: str, config: Any) -> None:
        context["languages"] = languages.switch_from_root(context["base_url"], self.state.lang)
        context["words"] = locale.words(self.state.lang)["scripts"]  # docs/theme/js/words.js

    def on_post_build(self, config: Any) -> None:
        site = Path(config.site_dir)
        notebooks.write_files(self.records, site)
        publishing.write(site, config)
        slimming.theme(site)
        # Written by Material's search, whose turn comes next.
        lang = self.state.lang
        part_of = {one.id: one.title[lang] for one in self.parts}
        searching.complete(
            config.plugins["material/search"].search_index.entries,
            self.terms,
            lang,
            self.asked,
            {f"{one.name}/": part_of[one.part] for one in self.chapters.values()},
        )
        self.copies.cleanup()
