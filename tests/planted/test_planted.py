"""Changes of the book, harmless and not, are told apart by `restamp` and `status`, and both by the instrument's ledger."""

import random
from collections import Counter
from pathlib import Path

import changes
import judged
import pytest
import yaml

from cudatut.history import NoHistory, history

ROOT = Path(__file__).resolve().parents[2]
SEED = 28


@pytest.mark.parametrize(
    ("count", "least"), [(12, (3, 3, 1)), pytest.param(40, (15, 12, 2), marks=pytest.mark.full)]
)
def test_changes_are_judged_as_they_are(compiler, count, least):
    """For others: `python tests/planted/changes.py --seed N`."""
    try:
        history()
    except NoHistory as error:
        pytest.skip(f"recordings are compared with the commits that they name, and {error}")
    found = list(judged.judged(SEED, count, cache=compiler.folder.parent))
    wrong = [f"{change}\n  " + "\n  ".join(problems) for change, problems in found if problems]
    assert not wrong, "\n".join(wrong)
    assert len(found) == count
    kinds = "fresh", "a GPU", "ledger objects"
    words = Counter(word for change, _ in found for word in kinds if word in change)
    assert all(words[kind] >= some for kind, some in zip(kinds, least, strict=True)), words


def test_each_kind_can_be_drawn():
    """And what it changes is another text, from which the same seed makes the same."""
    books = [changes.Book(ROOT, judged.recorded(changes), random.Random(5)) for _ in range(2)]
    for kind in (*changes.HARMLESS, *changes.HARMFUL, *changes.OF_THE_INSTRUMENT):
        # Few places fit some of them, so they get more tries than in a draw, where the next kind takes their turn.
        drawn = [changes._planted(book, iter([kind] * 10), set()) for book in books]
        assert drawn[0] == drawn[1] and drawn[0].files
        for name, content in drawn[0].files.items():
            path = ROOT / name
            new = content.encode() if isinstance(content, str) else content
            assert new != (path.read_bytes() if path.is_file() else None), kind


def test_changes_that_are_judged_together_have_nothing_in_common():
    book = changes.Book(ROOT, judged.recorded(changes), random.Random(6))
    drawn = changes.drawn(book, 20)
    groups = list(judged.batches(drawn))
    assert sum(map(len, groups)) == 20 and len(groups) < 12
    for group in groups:
        for what in ("files", "fresh"):
            names = [name for change in group for name in getattr(change, what)]
            assert len(names) == len(set(names))


def test_a_wrong_verdict_is_told():
    change = changes.Change(
        "kind", "what", {"examples/a/b.py": ""}, {"recordings/g/a/b.ipynb": True}
    )
    other = changes.Change(
        "kind", "what", {"examples/a/b.py": ""}, {"recordings/g/a/b.ipynb": False}
    )
    stale, said = {"recordings/g/a/b.ipynb"}, "a/b: a/b.py means something else\n"
    assert list(judged.wrong(change, set(), "")) == []
    assert "a/b.py means something else" in next(judged.wrong(change, stale, said))
    assert list(judged.wrong(other, stale, said)) == []
    assert "is fresh, and should be otherwise" in next(judged.wrong(other, set(), ""))
    of_the_instrument = changes.Change("kind", "what", {"cudatut/gpu/check.py": ""}, objects=True)
    assert list(judged.wrong(of_the_instrument, set(), "cudatut/gpu/check.py means ...")) == []
    assert "does not object" in next(judged.wrong(of_the_instrument, set(), ""))
    of_the_instrument.objects = False
    assert "objects" in next(judged.wrong(of_the_instrument, set(), "cudatut/gpu/check.py means"))


def test_ci_has_the_history():
    """In a shallow clone nothing of this is tested, and `status` looks at no restamp."""
    workflow = yaml.safe_load((ROOT / ".github/workflows/hosted.yml").read_text(encoding="utf-8"))
    checkout = workflow["jobs"]["test"]["steps"][0]
    assert checkout["with"]["fetch-depth"] == 0
