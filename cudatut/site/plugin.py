"""The MkDocs plugin `cudatut`: MkDocs' events, passed on to plain functions.

    plugins:
      cudatut:
        language: zh

What may be wrong with a page is collected as warnings, so that one strict build names everything.
"""

from __future__ import annotations

import logging
import os
import re
import sys
import tempfile
from pathlib import Path
from typing import Any

from mkdocs.config import config_options
from mkdocs.config.base import Config
from mkdocs.exceptions import PluginError
from mkdocs.plugins import BasePlugin, CombinedEvent, event_priority
from mkdocs.structure.files import File
from mkdocs.structure.toc import get_toc

from cudatut import paths
from cudatut.errors import CudatutError
from cudatut.recording import Recording
from cudatut.site import (
    contents,
    directives,
    exercise_fence,
    glossary,
    labels,
    languages,
    lint,
    locale,
    main_path,
    mathml,
    missing,
    notebooks,
    preview,
    publishing,
    redirects,
    references,
    searching,
    slimming,
    state,
)

log = logging.getLogger("mkdocs.plugins.cudatut")
_EXEC_LOG = "mkdocs.plugins.markdown_exec._internal.formatters.base"
_OWN_ERROR = re.compile(r"^\s*cudatut\.[\w.]+Error: (.*)", re.MULTILINE | re.DOTALL)
_ID = re.compile(r'\sid="([^"]+)"')


def _name_page(record: logging.LogRecord) -> bool:
    """Say on which page a fence failed: markdown-exec does not know."""
    build = state.current()
    if missing.MissingOutputError.__name__ in str(record.msg):  # the page says so in its place
        record.levelno, record.levelname = logging.INFO, "INFO"
    # An error of ours, such as a stale recording's, explains itself without the traceback of the fence.
    own = _OWN_ERROR.search(str(record.msg))
    said = own[1].strip() if own and not os.environ.get("CUDATUT_DEBUG") else record.msg
    record.msg = f"docs/{build.lang}/{build.page}: {said}"
    return True


class CudatutConfig(Config):
    """Options in mkdocs.yml."""

    language = config_options.Choice(locale.LANGUAGES, default="en")


class CudatutPlugin(BasePlugin[CudatutConfig]):
    """Brings recordings, the table of contents and the other language into the site."""

    records: list[Recording]
    fragments: dict[str, dict[str, str]]

    @event_priority(50)  # before markdown-exec and mkdocs-jupyter read the configuration
    def on_config(self, config: Any) -> Any:
        lang = self.config.language
        docs = Path(config.docs_dir)
        locale.use(lang)
        if (
            str(docs.parent) not in sys.path
        ):  # pages import their drawings: `from figures.start import errors`
            sys.path.insert(0, str(docs.parent))
        logging.getLogger("jieba").setLevel(logging.WARNING)  # it reports loading its dictionary
        self.state = state.begin(
            state.State(
                lang=lang,
                docs=docs,
                repo_url=(config.repo_url or "").rstrip("/"),
                mode=os.environ.get("CUDATUT_SITE_MODE", "strict"),
            )
        )
        if os.environ.get("SITE_URL"):
            config.site_url = languages.site_url(os.environ["SITE_URL"], lang)
        logging.getLogger(_EXEC_LOG).addFilter(_name_page)
        try:
            self.parts = contents.load(docs.parent / "contents.yml")
            self.terms = glossary.load(docs.parent / "glossary.yml", self.parts)
        except CudatutError as error:
            raise PluginError(str(error)) from error
        config.nav = contents.nav(self.parts, lang)
        self.hover = glossary.Hover(self.terms, lang)
        if lang == "zh":
            searching.teach(self.terms)
        # Material shows its language partial for any true value, and would make wrong links of a list.
        config.extra["alternate"] = True
        config.mdx_configs.setdefault("toc", {})["permalink_title"] = locale.text("page.permalink")
        # As it stands in mkdocs.yml the path would be relative to where MkDocs was started.
        snippets = config.mdx_configs.setdefault("pymdownx.snippets", {})
        snippets["base_path"] = [str(paths.examples_dir())]
        fences = config.mdx_configs.setdefault("pymdownx.superfences", {})
        fences.setdefault("custom_fences", []).extend([directives.fence(), exercise_fence.fence()])
        return config

    def on_pre_build(self, config: Any) -> None:
        for problem in contents.check_pages(self.parts, self.state.docs):
            self.state.report(problem)
        root = Path(config.config_file_path).resolve().parent
        pages = lint.pages(self.state.docs)
        if only := os.environ.get("CUDATUT_SITE_ONLY", "").split():
            pages = [self.state.docs / f"{name}.md" for name in only]
        for finding in lint.lint_files(pages, root):
            self.state.report(finding)

    @event_priority(50)  # mkdocs-jupyter must find the notebooks among the files
    def on_files(self, files: Any, config: Any) -> Any:
        notebooks.quicken()
        for chapter in (c for part in self.parts for c in part.chapters if c.draft):
            if file := files.get_file_from_path(chapter.page):
                files.remove(file)
        self.fragments = {}
        only = os.environ.get("CUDATUT_SITE_ONLY", "").split()
        if only:
            preview.keep(files, self.parts, only)
        self.records, problems = notebooks.recorded(preview.shown(self.state.docs, only))
        for problem in [*problems, *labels.problems(self.state.lang, self.records)]:
            self.state.report(problem)
        used = contents.chapters_by_example(self.parts, self.state.docs)
        # Read by mkdocs-jupyter while it renders; the checkout may be read-only.
        self.copies = tempfile.TemporaryDirectory(prefix="cudatut-notebooks-")
        folder = Path(self.copies.name)
        for record in self.records:
            uri = notebooks.page_uri(record.name)
            chapters = [
                (chapter.title[self.state.lang], notebooks.up(record.name) + url)
                for chapter, url in used.get(record.name, [])
            ]
            try:
                notebook, self.fragments[record.name] = notebooks.prepared(
                    record, self.state.lang, self.state.repo_url, chapters
                )
            except CudatutError as error:
                self.state.report(error)
                continue
            notebooks.write(notebook, folder / uri)
            # No File.generated: mkdocs-jupyter's wrapper finds its source by src_dir alone.
            files.append(File(uri, str(folder), config.site_dir, config.use_directory_urls))
        return files

    def on_page_markdown(self, markdown: str, page: Any, config: Any, files: Any) -> str:
        self.state.page, self.state.url = page.file.src_uri, page.url
        if self._is_notebook(page):
            return markdown
        # MkDocs has taken the front matter away.
        offset = page.file.content_string.count("\n") - markdown.count("\n")
        names = references.named(markdown)
        for problem in exercise_fence.problems(page.file.content_string, self.state.lang):
            self.state.report(problem)
        markdown = references.replace(markdown, self.state.report, offset)
        markdown = contents.unlink_drafts(markdown, page.file.src_uri, self.parts)
        if not self._is_chapter(page):
            return markdown
        shown = [record for record in self.records if record.name in names]
        return markdown + notebooks.code_of_page(
            shown, self.state.lang, self.state.repo_url, self.state.link
        )

    def on_page_content(self, html: str, page: Any, config: Any, files: Any) -> str:
        if self._is_notebook(page):
            uri = page.file.src_uri.removesuffix(".ipynb")
            name = uri.partition("/")[2]
            record = self.state.record(name)
            page.title = record.metadata["title"][self.state.lang]
            page.toc = get_toc(notebooks.toc(record, self.state.lang))
            try:
                html = notebooks.slim(html, self.fragments[name])
            except CudatutError as error:
                self.state.report(error)
            page.edit_url = f"{self.state.repo_url}/edit/{notebooks.BRANCH}/{uri}.py"
            # Chapters are searched, which show the same code; their pages lead here.
            page.meta["search"] = {"exclude": True}
        html = mathml.replace(slimming.tokens(html), self.state.report)
        if self._is_chapter(page):
            name = page.file.src_uri.removesuffix(".md")
            if self.state.mode == "preview" and self.state.lang == "en":
                found = main_path.amount(html)
                over = main_path.over_budget(name.partition("/")[0], found) or ["within the budget"]
                log.warning("%s: %s: %s", name, found, "; ".join(over))
            html = main_path.with_time(html, exercise_fence.minutes(name), self.state.lang)
        # MkDocs sees no ids in what fences made; links to them would be reported as broken.
        page.present_anchor_ids = (page.present_anchor_ids or set()) | set(_ID.findall(html))
        return html

    @event_priority(50)
    def _on_page_context_before_search(self, context: Any, page: Any, config: Any, nav: Any) -> Any:
        self.content, page.content = page.content, searching.searched(page.content)
        return context

    @event_priority(-50)
    def _on_page_context_after_search(self, context: Any, page: Any, config: Any, nav: Any) -> Any:
        page.content = self.content
        if self._is_chapter(page):
            self.state.url = page.url
            page.content = self.hover.put(page.content, self.state.link("glossary/"))
        self.state.page = page.file.src_uri
        context["languages"] = languages.switch(
            page.url, self.state.lang, os.environ.get("SITE_URL", "")
        )
        return context

    on_page_context = CombinedEvent(_on_page_context_before_search, _on_page_context_after_search)

    def on_post_page(self, output: str, page: Any, config: Any) -> str:
        return slimming.frame(output)

    def on_template_context(self, context: Any, template_name: str, config: Any) -> Any:
        context["languages"] = languages.switch_from_root(context["base_url"], self.state.lang)
        return context

    def on_post_build(self, config: Any) -> None:
        site = Path(config.site_dir)
        notebooks.copy_files(self.records, site)
        for path, source in self.state.programs.items():
            (site / path).parent.mkdir(parents=True, exist_ok=True)
            (site / path).write_text(source + "\n", encoding="utf-8")
        chapters = {f"{c.part}/{c.id}" for part in self.parts for c in part.chapters if c.written}
        redirects.write(site, chapters, config.site_url or "")
        publishing.write(site, Path(config.config_file_path).resolve().parent, config)
        index = getattr(config.plugins.get("material/search"), "search_index", None)
        if index is not None:  # written by Material's search, whose turn comes next
            searching.add_keywords(index.entries, self.terms, self.state.lang)
        self.copies.cleanup()

    def on_serve(self, server: Any, config: Any, builder: Any) -> Any:
        server.watch(str(paths.examples_dir()))
        server.watch(str(self.state.docs.parent))
        return server

    def _is_notebook(self, page: Any) -> bool:
        return page.file.src_uri.endswith(".ipynb")

    def _is_chapter(self, page: Any) -> bool:
        return any(page.file.src_uri.startswith(f"{part.id}/") for part in self.parts)
