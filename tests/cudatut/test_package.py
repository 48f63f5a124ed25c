"""What `import cudatut as ct` gives, and what it costs."""

import subprocess
import sys


def test_every_export_exists_and_no_module_hides_one():
    """Importing a module of the package must not take the place of a name: `ct.check` stays a function."""
    code = """
import importlib, pathlib, types
import cudatut as ct
names = {name: getattr(ct, name) for name in ct.__all__}
root = pathlib.Path(ct.__file__).parent
for file in [*root.glob("*.py"), *root.glob("gpu/*.py"), *root.glob("record/*.py")]:
    module = ".".join(file.relative_to(root.parent).with_suffix("").parts).removesuffix(".__init__")
    if not module.endswith("__main__"):
        importlib.import_module(module)
for name, value in names.items():
    assert getattr(ct, name) is value, name
assert callable(ct.check) and callable(ct.sanitize) and callable(ct.profile)
assert isinstance(ct.limits, types.ModuleType) and isinstance(ct.results, types.ModuleType)
"""
    subprocess.run([sys.executable, "-c", code], check=True)


def test_import_needs_neither_numpy_nor_pycuda():
    code = (
        "import sys, cudatut; assert not {'numpy', 'pycuda', 'cupy', 'IPython'} & set(sys.modules)"
    )
    subprocess.run([sys.executable, "-c", code], check=True)
