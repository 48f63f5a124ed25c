"""An example in a folder of its own has the page of its name, and its files are there by each place that they have had."""

import json

import pytest

from cudatut import recording


@pytest.fixture
def moved(project):
    """The small book after its example and a kernel moved into a folder; of another file, nobody shows the new place."""
    book, root = project.book, project.book.root / "start"
    text = (root / "add.py").read_text(encoding="utf-8")
    book.file("start/add/chapter.py", text)
    kernel = book.file("start/add/add.cu", "// a kernel\n")
    book.file("start/other/other.cu", "// nobody's\n")
    (root / "add.py").unlink()
    book.file(
        "moved.yml",
        "start/add.py: start/add/chapter.py\nstart/add.cu: start/add/add.cu\nstart/o.cu: start/other/other.cu\n",
    )
    notebook = json.loads(book.whole("start/add").read_text(encoding="utf-8"))
    metadata = notebook["metadata"]["cudatut"]
    metadata["sources"] = recording.hashes(["start/add/chapter.py", "start/add/add.cu"])
    book.recorded("start/add", notebook)
    assert kernel.is_file()
    return project


def test_the_page_and_its_files(moved):
    site = moved.build()
    page = (site / "examples/start/add/index.html").read_text(encoding="utf-8")
    assert "edit/main/examples/start/add/chapter.py" in page
    assert "blob/main/recordings/nvidia-test/start/add.ipynb" in page
    offered = ('href="chapter.py"', 'href="add.cu"', 'href="../add.ipynb"')
    for link in offered:
        assert link in page or link.replace('href="', 'href="../add/') in page, link
    chapter = (site / "start/add/index.html").read_text(encoding="utf-8")
    assert ">start/add/chapter.py<" in chapter
    book = moved.book.root
    for now, places in {
        "start/add/chapter.py": ["start/add/chapter.py", "start/add.py"],
        "start/add/add.cu": ["start/add/add.cu", "start/add.cu"],
    }.items():
        for place in places:
            assert (site / "examples" / place).read_bytes() == (book / now).read_bytes(), place
    assert (site / "examples/start/add.ipynb").read_bytes() == moved.book.whole(
        "start/add"
    ).read_bytes()
    assert not (site / "examples/start/o.cu").exists()  # nor was it there before


def test_a_stale_one_names_its_file(moved, caplog):
    moved.book.file("start/add/add.cu", "int other;\n")
    moved.refused(
        caplog, "recordings/nvidia-test/start/add.ipynb", "examples/start/add/add.cu changed"
    )


def test_two_whole_recordings_are_refused(moved, caplog):
    here = moved.book.whole("start/add")
    there = moved.book.whole("start/add", "NVIDIA H200")
    moved.book.file(there, here.read_text(encoding="utf-8"))
    moved.refused(caplog, "nvidia-h200/start/add.ipynb", "nvidia-test/start/add.ipynb")
