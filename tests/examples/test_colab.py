"""The notebooks that Colab opens ask it for a GPU that can run them."""

import json
import re

from cudatut import catalog, exercises, paths, runs_on
from cudatut.gpu.device import supports

MEND = "`python -m cudatut restamp` mends it; for exercises `python -m cudatut exercise --write-notebooks`"


def example_of(path):
    """Of a notebook with a chapter's exercises, the solutions: their cells stand in it."""
    name = catalog.relative(path.with_suffix(""), paths.examples_dir())
    if name.endswith(catalog.EXERCISES):
        name = name.removesuffix(catalog.EXERCISES) + catalog.SOLUTIONS
    return catalog.get(name)


def wrong(path):
    """What is wrong with what a notebook asks Colab for; None where nothing is."""
    metadata = json.loads(path.read_text(encoding="utf-8"))["metadata"]
    asked, requires = metadata["colab"].get("gpuType"), example_of(path).requires
    able = asked is None or supports(runs_on.COLAB[asked], requires)
    if metadata["accelerator"] == "GPU" and asked == runs_on.colab(requires) and able:
        return None
    return f"{path.name} asks Colab for {asked}, and its example requires {requires}"


def test_every_committed_notebook_asks_for_what_its_example_requires():
    notebooks = sorted(paths.examples_dir().rglob("*.ipynb"))
    assert len(notebooks) >= len(catalog.examples()) + len(exercises.chapters())
    found = list(filter(None, map(wrong, notebooks)))
    assert not found, "\n".join([*found, MEND])


def test_one_that_asks_for_too_little_is_seen(tmp_path, monkeypatch):
    """As all did once, whatever they required."""
    example = catalog.get("tensor/hopper_attention")
    notebook = json.loads(example.notebook.read_text(encoding="utf-8"))
    folder = tmp_path / "tensor"
    folder.mkdir()
    (folder / "hopper_attention.py").write_bytes(example.path.read_bytes())
    path = folder / "hopper_attention.ipynb"
    monkeypatch.setenv("CUDATUT_EXAMPLES", str(tmp_path))
    for asked, said in (("H100", None), ("T4", "asks Colab for T4"), ("L4", "asks Colab for L4")):
        notebook["metadata"]["colab"]["gpuType"] = asked
        path.write_text(json.dumps(notebook))
        assert said is wrong(path) or said in wrong(path)


def test_the_readmes_name_the_gpus_that_are_asked_for():
    asked = {runs_on.colab(example.requires) for example in catalog.examples()}
    for name in ("README.md", "README.zh.md"):
        text = (paths.repo_root() / name).read_text(encoding="utf-8")
        section = text.partition("## Colab")[2].partition("\n## ")[0]
        named = {word for word in re.findall(r"\w+", section) if word in runs_on.COLAB}
        assert named == asked, name
