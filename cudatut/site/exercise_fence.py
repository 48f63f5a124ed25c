"""The `exercise` fence: an exercise as its reader begins it, and our solution, folded.

    ### Exercise 1: A launch that fits every length { #exercise-1 }

    ```exercise
    start/errors 1
    ```

Task, given and stub come from `examples/` (see `cudatut.exercises`), the solution and what its check showed from the
recording of `start/errors_solutions`.
"""

from __future__ import annotations

import re
from html import escape

from markdown import markdown

from cudatut import catalog, exercises, paths, runs_on
from cudatut.errors import CudatutError
from cudatut.exercises import Exercise
from cudatut.finding import Finding
from cudatut.site import directives, highlighting, notebooks, overlaid, references, state
from cudatut.site.locale import text

_BODY = re.compile(r"(?P<chapter>[a-z0-9_]+/[a-z0-9_]+) (?P<number>[1-9]\d*)")


def _exercise(body: str) -> Exercise:
    """The exercise that a fence's body names. Raises DirectiveError, UnknownExerciseError, BadHeaderError."""
    match = _BODY.fullmatch(body.strip())
    if not match:
        raise directives.DirectiveError(
            f"'{body.strip()}' in an exercise fence: write chapter and number, such as start/errors 1"
        )
    return exercises.get(match["chapter"], int(match["number"]))


def render(body: str, header: dict[str, str] | None = None, lang: str = "en") -> str:
    """HTML of an exercise fence. Raises as `exercises.get` and `directives.render` do, and DirectiveError."""
    if header:
        raise directives.DirectiveError("an exercise fence has no options")
    exercise = _exercise(body)
    chapter, number = exercise.chapter, exercise.number
    command = f"python -m cudatut exercise {exercise.name}" + ("" if lang == "en" else " --lang zh")
    solutions = f"{chapter}{catalog.SOLUTIONS}"
    solved, root = state.current().example(solutions), paths.examples_dir()
    begun = catalog.relative(catalog.ChapterFiles(chapter).script(catalog.EXERCISES), root)
    parts = [
        f'<p class="ct-exercise__effort">{escape(exercises.effort(exercise, lang))}</p>',
        markdown(exercise.task[lang]),
        highlighting.python_block(
            overlaid.code(exercise.given, solved.file), text("exercise.given", lang)
        ),
        highlighting.python_block(
            overlaid.code(exercise.stub, begun), text("exercise.yours", lang)
        ),
        f"<p>{text('exercise.begin', lang)}</p>",
        f'<div class="highlight"><pre><span></span><code>{escape(command)}\n</code></pre></div>',
        _colab(chapter, number, solved.requires, lang),
        f'<details class="success"><summary>{text("exercise.solution", lang)}</summary>',
        directives.render(f"{solutions}#solution-{number}\n{solutions}#check-{number}", lang=lang),
        "</details>",
    ]
    return f'<div class="ct-exercise">{"".join(parts)}</div>'


def _colab(chapter: str, number: int, requires: str, lang: str) -> str:
    """Where an exercise opens in Colab, and on which GPU; '' where no GPU there is able to."""
    if (gpu := runs_on.colab(requires)) is None:
        return ""
    url = f"{notebooks.colab_url(chapter + catalog.EXERCISES)}#scrollTo=exercise-{number}"
    return f"<p>{text('exercise.colab', lang, url=url, gpu=gpu)}</p>"


def minutes(chapter: str) -> int:
    """Minutes that the exercises of a chapter take; 0 where it has none, or none that can be read."""
    try:
        return sum(exercise.minutes for exercise in exercises.of_chapter(chapter))
    except CudatutError:
        return 0


def findings(page: str, file: str, lang: str) -> list[Finding]:
    """Exercises of a page that do not stand below a heading with their title and number."""
    found, heading = [], ""
    for number, line, kind, info in references.scan(page):
        if kind == "prose" and line.startswith("#"):
            heading = line.strip()
        if kind != "code" or info.split()[:1] != ["exercise"] or not line.strip():
            continue
        try:
            exercise = _exercise(line)
        except CudatutError:  # the fence says why
            continue
        title = {"number": exercise.number, "title": exercise.title[lang]}
        words = text("exercise.heading", lang, **title)
        wanted = f"### {words} {{ #exercise-{exercise.number} }}"
        if heading != wanted:
            script = catalog.shown(catalog.ChapterFiles(exercise.chapter).script(catalog.EXERCISES))
            said = (
                f"the heading above the exercise {exercise.name} should be '{wanted}', as in the header of "
                f"{script}, not '{heading}'"
            )
            found.append(Finding(file, number, said))
    return found
