"""Numbers between the braces of a page: which are typed there, and which units cannot stand behind a reference."""

import pytest

from cudatut.site import braces, references
from cudatut.site.plain import VALUE

TIME, SHARE = 'start/x#bench["a"].median_us', 'start/x#bench["a"].of_peak'


def field(sentence):
    return references.FIELD.search(sentence)


def test_a_page_states_its_figures_those_that_it_quotes_and_those_in_its_code():
    page = (
        'Of 1,024 in `4_096`, {{ quote "570 ms" from "V100" }}, {{ 3.5 * 2 }}, {{ given "8e-2" as "goal" }}, '
        f"{{{{ {TIME} / 77 }}}}, v2.5"
    )
    assert braces.stated(page) == {1024.0, 4096.0, 570.0, 0.08}


@pytest.mark.parametrize(
    ("body", "stated", "shown"),
    [
        (TIME, set(), VALUE),
        (f"{TIME} / 32", set(), VALUE),  # a whole number beside a reference may be typed
        (f"{TIME} * 0.93", set(), "0.93"),
        (f"{TIME} * 0.93 * 0.5", set(), "0.93"),  # the first of several
        (f"{TIME} * 0.93", {0.93}, VALUE),
        ("12.3", {12.3}, "12.3"),  # a number alone is typed, whatever the page states
        ("12.3 :.1f", {12.3}, "12.3"),
        ("-(12.3) :.1f", {12.3}, "12.3"),
        ("40 + 11.7", set(), "51.7"),
        ("40 + 11.7", {40.0}, "51.7"),
        ("40 + 11.7", {40.0, 11.7}, VALUE),
        ("7 * 1000 / 1E3", set(), VALUE),  # what needs no saying
        ("40 / 11.7 :.1f", set(), "3.4"),
        ("40 +", set(), VALUE),  # the build says what is wrong with it
    ],
)
def test_a_sentence_shows_what_is_typed_between_its_braces(body, stated, shown):
    assert braces.shown(field(f"It takes {{{{ {body} }}}} ms."), stated) == shown


@pytest.mark.parametrize(
    ("sentence", "unit"),
    [
        # times are recorded in microseconds, shares as parts of one
        *((f"{{{{ {TIME} / 1e6 :.1f }}}} {unit}", None) for unit in ("s", "seconds", "秒")),
        *((f"{{{{ {TIME} / 1000 :.1f }}}} {unit}", None) for unit in ("ms", "毫秒")),
        *((f"{{{{ {TIME} :.1f }}}} {unit}", None) for unit in ("µs", "us", "微秒")),
        *((f"{{{{ {TIME} * 1e3 :.0f }}}} {unit}", None) for unit in ("ns", "纳秒")),
        *((f"{{{{ 100 * {SHARE} :.0f }}}} {unit}", None) for unit in ("%", "per cent")),
        (f"{{{{ {TIME} / 1e6 :.1f }}}} ms", "ms"),
        (f"{{{{ {TIME} / 1000 :.1f }}}} s", "s"),
        (f"{{{{ {TIME} * 1000 :.1f }}}} µs", "µs"),
        (f"{{{{ {TIME} * 10 :.1f }}}} ms", "ms"),
        (f"{{{{ {SHARE} :.1f }}}} %", "%"),
        (f"{{{{ 10 * {SHARE} :.1f }}}} %", "%"),
        # what says nothing of its unit: no power of ten, no one factor, another field, another thing counted
        (f"{{{{ {TIME} / 32 :.1f }}}} ms", None),
        (f"{{{{ {TIME} * 0 :.1f }}}} ms", None),
        (f"{{{{ -1 * {TIME} :.1f }}}} ms", None),
        (f"{{{{ {TIME} + 1 :.1f }}}} ms", None),
        (f"{{{{ {SHARE} :.1f }}}} ms", None),
        (f"{{{{ {TIME} :.1f }}}} ms/token", None),
        (f"{{{{ {TIME} :.1f }}}} steps", None),
    ],
)
def test_a_unit_fits_the_reference_before_it(sentence, unit):
    assert braces.wrong_unit(field(sentence)) == unit
