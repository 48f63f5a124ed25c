"""The whole book as the landing page tells it: its parts, what they take, and what is planned.

What a part takes follows from its chapters, which are made later than the landing page: marks stand there until then.
"""

from __future__ import annotations

import re
from html import escape

from cudatut import exercises
from cudatut.errors import CudatutError
from cudatut.site import contents, locale, main_path
from cudatut.site.contents import Chapter, Part
from cudatut.site.locale import text

# What the reader has read and done is kept by the browser alone: docs/theme/js/progress.js fills this place, which is at the
# end of each chapter and on the landing page. Without scripts nothing of it is shown.
PROGRESS = '<div class="ct-progress"></div>'
_HOURS = re.compile(r"<!--hours(?P<parts>(?: \w+)*)-->")


def parts() -> str:
    """HTML of all parts with their chapters, and at the end of the chapters that are not yet published, without links."""
    lang, out = locale.current(), ['<div class="ct-contents">']
    planned = list[tuple[Part, Chapter]]()
    for part in contents.load():
        planned += [(part, one) for one in part.chapters if not one.written]
        if written := [one for one in part.chapters if one.written]:
            out.append(
                f'<section class="ct-part" aria-labelledby="part-{part.id}">'
                f'<p class="ct-part__level">{escape(part.level[lang])}</p>'
                f'<h3 class="ct-part__title" id="part-{part.id}">{escape(part.title[lang])}</h3>'
                f'<p class="ct-part__about">{escape(part.about[lang])}</p>{_mark(part.id)}<ol>'
            )
            out += [_item(chapter) for chapter in written]
            out.append("</ol></section>")
    if planned:
        out.append(
            '<section class="ct-part" aria-labelledby="part-planned">'
            f'<h3 class="ct-part__title" id="part-planned">{text("contents.planned")}</h3><ul>'
        )
        for part, chapter in planned:
            said = text(
                "brackets", label=escape(chapter.title[lang]), remark=escape(part.title[lang])
            )
            mark = text("contents.draft" if chapter.draft else "contents.unwritten")
            out.append(
                f'<li class="ct-unwritten">{said} <span class="ct-unwritten__mark">{mark}</span></li>'
            )
        out.append("</ul></section>")
    return "".join([*out, "</div>"])


def _item(chapter: Chapter) -> str:
    """A chapter's link; how many exercises it has is for docs/theme/js/progress.js."""
    try:
        count = len(exercises.of_chapter(chapter.name))
    except CudatutError:  # it has none, or `lint` says what is wrong with them
        count = 0
    title = escape(chapter.title[locale.current()])
    return f'<li data-exercises="{count}"><a href="{chapter.name}/">{title}</a></li>'


def hours() -> str:
    """HTML of what the whole book takes, of what that is computed from, and the place for what the reader has done of it."""
    return f'{_mark()}<p class="ct-reckoned">{main_path.reckoned()}</p>{PROGRESS}'


def _mark(*names: str) -> str:
    return f"<!--{' '.join(('hours', *names))}-->"


def with_hours(html: str, minutes: dict[str, tuple[int, int]]) -> str:
    """The landing page's content with hours in the places of the marks; nothing where a part has no chapter here.

    minutes: of reading and of practice, by the name of each chapter, as the line below its title has them.
    """

    def said(mark: re.Match) -> str:
        names = mark["parts"].split()
        own = [
            each for name, each in minutes.items() if not names or name.partition("/")[0] in names
        ]
        if not own:
            return ""
        read, practice = (max(1, round(sum(each) / 60)) for each in zip(*own))
        return f'<p class="ct-time">{text("time.hours", read=read, practice=practice)}</p>'

    return _HOURS.sub(said, html)
