"""What the search index is made of: words, not the numbers of tables and the labels of drawings.

Material's search reads a page tag by tag, drawings and colored code too: a fifth of a build. It is
given a page that has only what is searched.
"""

from __future__ import annotations

import re

# Ours, by their class; none of them contains another of its kind.
_UNSEARCHED = re.compile(
    r'<(?P<tag>figure|table|pre|ul(?= class="ct-code"))(?= class="ct-).*?</(?P=tag)>', re.DOTALL
)
_SPAN = re.compile(r"</?span[^>]*>")


def searched(html: str) -> str:
    """A page's HTML without our tables, drawings, outputs and lists of code, and without the spans of colored code."""
    return _SPAN.sub("", _UNSEARCHED.sub("", html))
