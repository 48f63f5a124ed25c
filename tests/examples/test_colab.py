"""The notebooks that Colab opens ask it for a GPU that can run them."""

import json
import re
from itertools import starmap
from urllib.parse import unquote

from cudatut import catalog, exercises, paths, recording, runs_on
from cudatut.gpu.device import supports
from cudatut.site import notebooks as notebooks_of_the_site

MEND = "`python -m cudatut restamp` mends it; for exercises `python -m cudatut exercise --write-notebooks`"


def notebooks():
    """Each notebook that Colab opens, and the example that its cells are of: for a chapter's exercises their solutions."""
    for example in catalog.examples():
        yield recording.whole_path(example.name), example
    for chapter in exercises.chapters():
        path = catalog.path_of(chapter + catalog.EXERCISES).with_suffix(".ipynb")
        yield path, catalog.get(chapter + catalog.SOLUTIONS)


def wrong(path, example):
    """What is wrong with what a notebook asks Colab for; None where nothing is."""
    if path is None:
        return f"{example.name} has no recording"
    metadata = json.loads(path.read_text(encoding="utf-8"))["metadata"]
    asked, requires = metadata["colab"].get("gpuType"), example.requires
    able = asked is None or supports(runs_on.COLAB[asked], requires)
    if metadata["accelerator"] == "GPU" and asked == runs_on.colab(requires) and able:
        return None
    return f"{path.name} asks Colab for {asked}, and its example requires {requires}"


def test_every_committed_notebook_asks_for_what_its_example_requires():
    found = list(filter(None, starmap(wrong, notebooks())))
    assert not found, "\n".join([*found, MEND])


def test_one_that_asks_for_too_little_is_seen(tmp_path):
    """As all did once, whatever they required."""
    example = catalog.get("tensor/hopper_attention")
    notebook = json.loads(recording.whole_path(example.name).read_text(encoding="utf-8"))
    path = tmp_path / "hopper_attention.ipynb"
    for asked, said in (("H100", None), ("T4", "asks Colab for T4"), ("L4", "asks Colab for L4")):
        notebook["metadata"]["colab"]["gpuType"] = asked
        path.write_text(json.dumps(notebook))
        assert said is wrong(path, example) or said in wrong(path, example)


def test_the_readmes_name_the_gpus_that_are_asked_for():
    asked = {runs_on.colab(example.requires) for example in catalog.examples()}
    for name in ("README.md", "README.zh.md"):
        text = (paths.repo_root() / name).read_text(encoding="utf-8")
        section = text.partition("## Colab")[2].partition("\n## ")[0]
        named = {word for word in re.findall(r"\w+", section) if word in runs_on.COLAB}
        assert named == asked, name


def test_every_address_for_colab_names_a_file():
    root = paths.repo_root()
    names = [example.name for example in catalog.examples()]
    names += [chapter + catalog.EXERCISES for chapter in exercises.chapters()]
    files = [notebooks_of_the_site.colab_url(name).partition("/blob/main/")[2] for name in names]
    for name in ("README.md", "README.zh.md"):
        text = (root / name).read_text(encoding="utf-8")
        found = re.findall(r"colab\.research\.google\.com/[^)]*/blob/main/([^)]+)", text)
        assert found, f"{name} leads to no notebook"
        files += found
    missing = [file for file in files if not (root / unquote(file)).is_file()]
    assert not missing and all(file.endswith(".ipynb") for file in files), missing
