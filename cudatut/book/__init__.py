"""The examples as a package: `cudatut.book.llm.engine.scheduler` is examples/llm/engine/scheduler.py, wherever they lie."""

from cudatut import paths

__path__ = [str(paths.examples_dir())]
