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
from typing import Any

from cudatut import exercises
from cudatut.errors import CudatutError
from cudatut.exercises import Exercise
from cudatut.site import directives, highlighting, references, state

_BODY = re.compile(r"(?P<chapter>[a-z0-9_]+/[a-z0-9_]+) (?P<number>[1-9]\d*)")
_HEADING = re.compile(r"^(?P<marks>#+)\s+(?P<text>.*?)\s*(?:\{:?(?P<attributes>[^}]*)\})?\s*$")
_WORDS = {
    "en": {
        "given": "Given",
        "yours": "Your part",
        "solution": "Solution",
        "begin": "This command writes both into a file that checks itself when you run it:",
        "or": "Or ",
        "colab": "open it in Colab",
        "heading": "Exercise {number}: {title}",
        "end": ".",
    },
    "zh": {
        "given": "给定",
        "yours": "你来写",
        "solution": "参考答案",
        "begin": "下面的命令把这两段写进一个文件，运行它就会自行检查：",
        "or": "也可以",
        "colab": "在 Colab 中打开",
        "heading": "练习 {number}：{title}",
        "end": "。",
    },
}


def exercise_of(body: str) -> Exercise:
    """The exercise that a fence's body names. Raises DirectiveError, UnknownExerciseError, BadExerciseError."""
    match = _BODY.fullmatch(body.strip())
    if not match:
        raise directives.DirectiveError(
            f"'{body.strip()}' in an exercise fence: write chapter and number, such as start/errors 1"
        )
    return exercises.get(match["chapter"], int(match["number"]))


def render(body: str, header: dict[str, str] | None = None, lang: str = "en") -> str:
    """HTML of an exercise fence. Raises as `exercise_of`, and what `cudatut.recording.require_good` raises."""
    if header:
        raise directives.DirectiveError("an exercise fence has no options")
    exercise, word = exercise_of(body), _WORDS[lang]
    number, solutions = exercise.number, f"{exercise.chapter}_solutions"
    effort = exercises.effort(exercise, lang)
    command = f"python -m cudatut exercise {exercise.name}" + ("" if lang == "en" else " --lang zh")
    parts = [
        f'<p class="ct-exercise__effort">{escape(effort)}</p>',
        _prose(exercise.task[lang]),
        highlighting.python_block(exercise.given, word["given"]),
        highlighting.python_block(exercise.stub, word["yours"]),
        f"<p>{word['begin']}</p>",
        f'<div class="highlight"><pre><span></span><code>{escape(command)}\n</code></pre></div>',
        f'<p>{word["or"]}<a href="{colab(exercise)}">{word["colab"]}</a>{word["end"]}</p>',
        f'<details class="success"><summary>{word["solution"]}</summary>',
        *(
            directives.render(f"{solutions}#{part}-{number}", lang=lang)
            for part in ("solution", "check")
        ),
        "</details>",
    ]
    return f'<div class="ct-exercise">{"".join(parts)}</div>'


def colab(exercise: Exercise) -> str:
    """Address that opens the chapter's notebook of exercises in Colab, at this one."""
    from cudatut import catalog
    from cudatut.site.notebooks import colab_url

    notebook = colab_url(f"{exercise.chapter}{catalog.EXERCISES}", state.current().repo_url)
    return f"{notebook}#scrollTo=exercise-{exercise.number}"


def _prose(text: str) -> str:
    from markdown import markdown

    return markdown(text)


def minutes(chapter: str) -> int:
    """Minutes that the exercises of a chapter take; 0 where it has none, or none that can be read."""
    try:
        return sum(exercise.minutes for exercise in exercises.of_chapter(chapter))
    except CudatutError:
        return 0


def problems(markdown: str, lang: str) -> list[str]:
    """What is wrong with the exercises of a page: each fence stands below its own heading, with the header's title."""
    found = []
    heading, at = "", 0
    for number, line, kind, info in references.scan(markdown):
        if kind == "prose" and (match := _HEADING.match(line)):
            heading, at = line.strip(), number
            if len(match["marks"]) < 3:
                heading = ""
        if kind != "code" or info.split()[:1] != ["exercise"] or not line.strip():
            continue
        try:
            exercise = exercise_of(line)
        except CudatutError as error:
            found.append(f"line {number}: {error}")
            continue
        title = _WORDS[lang]["heading"].format(number=exercise.number, title=exercise.title[lang])
        wanted = f"### {title} {{ #exercise-{exercise.number} }}"
        if heading != wanted:
            where = f"line {at}" if heading else f"line {number}"
            found.append(
                f"{where}: the heading above the exercise {exercise.name} should be '{wanted}', as in the header of "
                f"examples/{exercise.chapter}_exercises.py"
                + (f", not '{heading}'" if heading else "")
            )
    return found


def fence() -> dict[str, Any]:
    """Entry for `custom_fences` of pymdownx.superfences."""
    return directives.fence("exercise", render)
