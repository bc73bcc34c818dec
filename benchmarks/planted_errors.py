"""Mutation test of the suite: share of planted errors that some test catches, by room.

    python -m benchmarks.planted_errors                # coverage of the whole suite, then 60 mutants
    python -m benchmarks.planted_errors --data FILE    # with coverage data of an earlier run

A mutant changes one operator, comparison, number or condition inside one function of ``src``. A seed chooses
them: rooms get mutants by their size in code lines, and within a room all places are equally likely. Each
mutant is run with ``pytest -x`` on the tests that pass its line, those that pass few other lines first, until
the first failure; a test that does not pass the line cannot fail by it. A run that takes too long counts as
caught, since the same run without the error ends in time.

Branch coverage by room and the caught mutants go into RESULTS.md, the mutants into ``planted_errors.csv``.
"""

from __future__ import annotations

import argparse
import ast
import csv
import io
import os
import random
import shutil
import subprocess
import sys
import tempfile
import tokenize
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from benchmarks.results import Section, save, table

ROOT = Path(__file__).parents[1]
SOURCE = Path("src") / "wellcal"
COPIED = (
    "src",
    "tests",
    "reproduction",
    "benchmarks",
    "examples",
    "fuzz",
    "docs",
    "pyproject.toml",
    "conftest.py",
)
COPIED += ("README.md", "CHANGELOG.md", "CONTRIBUTING.md", "Makefile", "LICENSE", "CITATION.cff")
SUITE = ("--doctest-modules", "tests", "src", "reproduction", "--ignore=tests/browser")
COUNT, SEED = 60, 20261119  # fixed before the first run
LIMIT = 900  # seconds for one mutant; the slowest test takes a minute
SETTINGS = """[run]
branch = True
source = wellcal
parallel = True
data_file = {data}
[report]
exclude_also =
    if TYPE_CHECKING
"""


# -- mutants -----------------------------------------------------------------------------------------

COMPARISONS: dict[type[ast.cmpop], type[ast.cmpop]] = {
    ast.Lt: ast.GtE, ast.LtE: ast.Gt, ast.Gt: ast.LtE, ast.GtE: ast.Lt, ast.Eq: ast.NotEq, ast.NotEq: ast.Eq,
    ast.Is: ast.IsNot, ast.IsNot: ast.Is, ast.In: ast.NotIn, ast.NotIn: ast.In,
}  # fmt: skip
OPERATORS: dict[type[ast.operator], type[ast.operator]] = {
    ast.Add: ast.Sub, ast.Sub: ast.Add, ast.Mult: ast.Div, ast.Div: ast.Mult, ast.Pow: ast.Mult,
    ast.FloorDiv: ast.Mult,
}  # fmt: skip


@dataclass(frozen=True)
class Mutant:
    """One error in one expression of a file."""

    path: Path
    line: int
    kind: str
    place: tuple[int, int, int, int]
    text: str

    @property
    def room(self) -> str:
        """Folder or module of the package."""
        return room_of(self.path)

    def apply(self, source: str) -> str:
        """Return the source with the error in it."""
        first, start, last, end = self.place
        lines = source.encode().splitlines(keepends=True)  # columns of `ast` count bytes
        before = b"".join(lines[: first - 1]) + lines[first - 1][:start]
        after = lines[last - 1][end:] + b"".join(lines[last:])
        return (before + self.text.encode() + after).decode()


def room_of(path: Path) -> str:
    """Return the room that a file of the package belongs to."""
    return path.relative_to(SOURCE).parts[0].removesuffix(".py")


def altered(node: ast.expr) -> ast.expr | None:
    """Return an expression with an error in place of `node`, or None where there is no rule for it."""
    if isinstance(node, ast.Compare) and type(node.ops[0]) in COMPARISONS:
        return ast.Compare(node.left, [COMPARISONS[type(node.ops[0])](), *node.ops[1:]], node.comparators)
    if isinstance(node, ast.BinOp) and type(node.op) in OPERATORS and not isinstance(node.left, ast.Constant):
        return ast.BinOp(node.left, OPERATORS[type(node.op)](), node.right)
    if isinstance(node, ast.BoolOp):
        return ast.BoolOp(ast.And() if isinstance(node.op, ast.Or) else ast.Or(), node.values)
    if isinstance(node, ast.UnaryOp) and isinstance(node.op, (ast.Not, ast.USub)):
        return node.operand
    if isinstance(node, ast.Constant) and type(node.value) in (int, float):
        return ast.Constant(node.value + 1)
    if isinstance(node, ast.Constant) and isinstance(node.value, bool):
        return ast.Constant(not node.value)
    if isinstance(node, ast.IfExp):
        return ast.IfExp(node.test, node.orelse, node.body)
    return None


def mutants_of(path: Path, root: Path = ROOT) -> Iterator[Mutant]:
    """Yield all mutants of a file: expressions in functions, without annotations, defaults, f-strings."""
    tree = ast.parse((root / path).read_text(encoding="utf-8"))
    seen: set[tuple[int, int, int, int]] = set()

    def within(node: ast.AST) -> Iterator[ast.AST]:
        for child in ast.iter_child_nodes(node):
            if isinstance(child, (ast.arguments, ast.JoinedStr, ast.FunctionDef, ast.ClassDef)):
                continue
            if isinstance(child, ast.AnnAssign):
                if child.value is not None:
                    yield child.value
                    yield from within(child.value)
                continue
            yield child
            yield from within(child)

    for function in ast.walk(tree):
        if not isinstance(function, ast.FunctionDef):
            continue
        for statement in function.body:
            for node in (statement, *within(statement)):
                if isinstance(node, (ast.FunctionDef, ast.ClassDef)) or not isinstance(node, ast.expr):
                    continue
                other = altered(node)
                place = (node.lineno, node.col_offset, node.end_lineno or 0, node.end_col_offset or 0)
                if other is None or place in seen:
                    continue
                seen.add(place)
                kind = f"{type(node).__name__}: {ast.unparse(node)[:40]} -> {ast.unparse(other)[:40]}"
                yield Mutant(path, node.lineno, kind, place, f"({ast.unparse(other)})")


def code_lines(path: Path) -> int:
    """Count lines with code, docstrings included."""
    skipped = {
        tokenize.COMMENT,
        tokenize.NL,
        tokenize.NEWLINE,
        tokenize.INDENT,
        tokenize.DEDENT,
        tokenize.ENDMARKER,
    }
    tokens = tokenize.generate_tokens(io.StringIO(path.read_text(encoding="utf-8")).readline)
    return len({line for t in tokens if t.type not in skipped for line in range(t.start[0], t.end[0] + 1)})


def chosen(count: int, seed: int, root: Path = ROOT) -> list[Mutant]:
    """Return the mutants of a seed: rooms by size, by largest remainder, then uniformly within a room."""
    files = sorted(path.relative_to(root) for path in (root / SOURCE).rglob("*.py"))
    sizes: Counter[str] = Counter()
    for path in files:
        sizes[room_of(path)] += code_lines(root / path)
    exact = {room: count * size / sizes.total() for room, size in sizes.items()}
    shares = {room: int(value) for room, value in exact.items()}
    for room in sorted(exact, key=lambda r: shares[r] - exact[r])[: count - sum(shares.values())]:
        shares[room] += 1
    random_state = random.Random(seed)
    out: list[Mutant] = []
    for room in sorted(shares):
        places = [mutant for path in files if room_of(path) == room for mutant in mutants_of(path, root)]
        out += random_state.sample(places, min(shares[room], len(places)))
    return out


# -- coverage ----------------------------------------------------------------------------------------


def environment(tree: Path) -> dict[str, str]:
    """Return the environment in which the tests of a tree import the package of that tree."""
    threads = {f"{library}_NUM_THREADS": "1" for library in ("OMP", "OPENBLAS", "MKL", "NUMEXPR")}
    return os.environ | threads | {"PYTHONPATH": str(tree / "src"), "PYTHONDONTWRITEBYTECODE": "1"}


def measure_coverage(folder: Path) -> Path:
    """Run the whole suite under branch coverage, each test a context of its own; return the data file."""
    data = folder / "coverage"
    settings = folder / "settings"
    settings.write_text(SETTINGS.format(data=data), encoding="utf-8")
    options = (
        "--cov=wellcal",
        "--cov-branch",
        "--cov-context=test",
        f"--cov-config={settings}",
        "--cov-report=",
    )
    command = [sys.executable, "-m", "pytest", "-q", "-n", "auto", "--dist", "worksteal", *SUITE, *options]
    subprocess.run(command, cwd=ROOT, env=environment(ROOT), check=False)
    return data


class Coverage:
    """Coverage data of the suite: tests by line, and branches by room."""

    def __init__(self, path: Path) -> None:
        import coverage

        self._data = coverage.CoverageData(str(path))
        self._data.read()
        self._path = path
        self._files = {relative_to_source(file): file for file in self._data.measured_files()}
        import sqlite3

        with sqlite3.connect(path) as connection:
            rows = connection.execute("SELECT context_id, COUNT(*) FROM arc GROUP BY context_id").fetchall()
            names = dict(connection.execute("SELECT id, context FROM context").fetchall())
        self._breadth = {names[key]: number for key, number in rows}

    def tests_of(self, mutant: Mutant) -> list[str]:
        """Return the tests that pass a line, those that pass few other branches first."""
        file = self._files.get(mutant.path.relative_to(SOURCE).as_posix())
        if file is None:
            return []
        contexts = [c for c in self._data.contexts_by_lineno(file).get(mutant.line, []) if "|" in c]
        contexts.sort(key=lambda c: self._breadth.get(c, 0))
        return list(dict.fromkeys(context.rpartition("|")[0] for context in contexts))

    def by_room(self, root: Path = ROOT) -> dict[str, tuple[int, int]]:
        """Return by room the statements and branches that are passed, and all of them."""
        import coverage

        report = coverage.Coverage(data_file=str(self._path), branch=True, config_file=False)
        report.load()
        passed: dict[str, tuple[int, int]] = {}
        for relative, file in self._files.items():
            if not Path(file).exists():
                continue
            # Documented attributes only: statements, missing lines, and branches by line.
            _, statements, _, missing, _ = report.analysis2(file)
            branches = report.branch_stats(file)
            hit = len(statements) - len(missing) + sum(taken for _, taken in branches.values())
            every = len(statements) + sum(total for total, _ in branches.values())
            room = Path(relative).parts[0].removesuffix(".py")
            before = passed.get(room, (0, 0))
            passed[room] = (before[0] + hit, before[1] + every)
        return passed


def relative_to_source(file: str) -> str:
    """Return the part of a path below the package."""
    return file.replace("\\", "/").rpartition("src/wellcal/")[2]


# -- runs --------------------------------------------------------------------------------------------


def run(mutant: Mutant, tests: Sequence[str], tree: Path) -> str:
    """Return the test that catches a mutant, "time" where it takes too long, "" where all tests pass."""
    if not tests:
        return ""
    target = tree / mutant.path
    source = target.read_text(encoding="utf-8")
    listed = tree / "tests-to-run"
    listed.write_text("\n".join(tests), encoding="utf-8")
    command = [sys.executable, "-m", "pytest", "-x", "-q", "-p", "no:cacheprovider", "--doctest-modules"]
    command += ["-p", "no:randomly", f"@{listed}"]
    target.write_text(mutant.apply(source), encoding="utf-8")
    try:
        done = subprocess.run(
            command,
            cwd=tree,
            env=environment(tree),
            capture_output=True,
            text=True,
            timeout=LIMIT,
            check=False,
        )
    except subprocess.TimeoutExpired:
        return "time"
    finally:
        target.write_text(source, encoding="utf-8")
    if done.returncode == 0:
        return ""
    failures = [line for line in done.stdout.splitlines() if line.startswith(("FAILED ", "ERROR "))]
    if not failures:
        return "import"  # the package, or a file of tests, does not load with the error
    return failures[0].split(" - ")[0].split(" ", 1)[1]


def planted_errors(
    data: Path, count: int = COUNT, seed: int = SEED, tell: Callable[[str], Any] = print
) -> tuple[Section, list[tuple[Mutant, int, str]]]:
    """Run all mutants, and return the section of RESULTS.md and the mutants with what caught them."""
    coverage = Coverage(data)
    outcomes: list[tuple[Mutant, int, str]] = []
    with tempfile.TemporaryDirectory() as folder:
        tree = Path(folder)
        for name in COPIED:
            if (ROOT / name).is_dir():
                ignored = shutil.ignore_patterns("__pycache__", "_build", "gallery", "generated")
                shutil.copytree(ROOT / name, tree / name, ignore=ignored)
            else:
                shutil.copy(ROOT / name, tree / name)
        for mutant in chosen(count, seed):
            tests = coverage.tests_of(mutant)
            caught = run(mutant, tests, tree)
            outcomes.append((mutant, len(tests), caught))
            tell(f"{mutant.path}:{mutant.line} {mutant.kind}: {len(tests)} tests, {caught or 'NOT CAUGHT'}")
    return section_of(coverage.by_room(), outcomes), outcomes


def section_of(rooms: dict[str, tuple[int, int]], outcomes: list[tuple[Mutant, int, str]]) -> Section:
    """Return the table by room."""
    planted = Counter(mutant.room for mutant, _, _ in outcomes)
    caught = Counter(mutant.room for mutant, _, by in outcomes if by)

    def row(name: str, passed: int, every: int, some: int, of: int) -> tuple[str, ...]:
        return name, f"{passed / max(every, 1):.1%}", f"{some} of {of}" if of else "-"

    rows = [row(room, *rooms[room], caught[room], planted[room]) for room in sorted(rooms)]
    passed, every = (sum(value[k] for value in rooms.values()) for k in (0, 1))
    rows.append(row("all", passed, every, caught.total(), planted.total()))
    body = table(("room", "lines and branches passed", "planted errors caught"), rows)
    missed = [f"- `{m.path}:{m.line}`, {m.kind} ({tests} tests)" for m, tests, by in outcomes if not by]
    listing = "\n".join(["\nNot caught:\n", *missed]) if missed else "\nAll were caught."
    return Section("planted-errors", "What the tests protect", f"{body}\n{listing}")


def write_outcomes(outcomes: list[tuple[Mutant, int, str]], path: Path) -> None:
    """Write the mutants and what caught them."""
    with path.open("w", encoding="utf-8", newline="") as file:
        writer = csv.writer(file, lineterminator="\n")
        writer.writerow(("room", "file", "line", "change", "tests", "caught_by"))
        for mutant, tests, by in outcomes:
            writer.writerow((mutant.room, mutant.path.as_posix(), mutant.line, mutant.kind, tests, by))


def main(arguments: Sequence[str] | None = None) -> int:
    """Run from the command line."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    parser.add_argument(
        "--data", type=Path, help="coverage data of an earlier run, with a context for each test"
    )
    parser.add_argument("--count", type=int, default=COUNT)
    parser.add_argument("--seed", type=int, default=SEED)
    parser.add_argument("--dry-run", action="store_true", help="print the mutants only")
    options = parser.parse_args(arguments)
    if options.dry_run:
        for mutant in chosen(options.count, options.seed):
            print(f"{mutant.path}:{mutant.line} {mutant.kind}")
        return 0
    with tempfile.TemporaryDirectory() as folder:
        data = options.data or measure_coverage(Path(folder))
        section, outcomes = planted_errors(
            data, options.count, options.seed, lambda text: print(text, flush=True)
        )
    save(section)
    write_outcomes(outcomes, Path(__file__).with_name("planted_errors.csv"))
    print(section.body)
    return 0


if __name__ == "__main__":
    raise SystemExit(main())
