"""The experiments use wellcal as anybody would: through its public names."""

import ast
import importlib
from pathlib import Path

PUBLIC = {"wellcal", *(f"wellcal.{name}" for name in ("displays", "engines", "hypotests", "kernels"))}
TOOLS = {"wellcal.__main__", "wellcal._arrays.files", "wellcal._arrays.schema"}
"""How every command of this repository ends and writes files: no part of the experiments."""
SOURCES = sorted(Path(__file__).parents[1].rglob("*.py"))


def imported_names(path: Path):
    """Modules of wellcal that a file imports, with the names that it takes from them."""
    for node in ast.walk(ast.parse(path.read_text())):
        if isinstance(node, ast.ImportFrom) and (node.module or "").split(".")[0] == "wellcal":
            yield node.module, [alias.name for alias in node.names]
        elif isinstance(node, ast.Import):
            yield from ((alias.name, []) for alias in node.names if alias.name.split(".")[0] == "wellcal")


def test_only_public_names_are_imported():
    found = [(path, *entry) for path in SOURCES for entry in imported_names(path)]
    assert len(found) > 10
    for path, module, names in found:
        if module in TOOLS and path.parent.name != "experiments":
            continue
        assert module in PUBLIC, path
        assert set(names) <= set(importlib.import_module(module).__all__), path
