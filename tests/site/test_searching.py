"""What of a page goes into the search index."""

from cudatut.site.searching import searched


def test_words_and_code_are_searched_numbers_and_drawings_are_not():
    page = (
        '<h2 id="run">Run</h2><p>One warp.</p><pre><span></span><code><span class="k">int</span> i;</code></pre>'
        '<figure class="ct-bench"><svg><text>GB/s</text></svg><table class="ct-table"><td>1</td></table></figure>'
        '<table class="ct-table"><td>2</td></table><pre class="ct-output">3</pre><ul class="ct-code"><li>4</li></ul>'
        "<table><td>typed</td></table><ul><li>a list</li></ul>"
    )
    assert searched(page) == (
        '<h2 id="run">Run</h2><p>One warp.</p><pre><code>int i;</code></pre>'
        "<table><td>typed</td></table><ul><li>a list</li></ul>"
    )
