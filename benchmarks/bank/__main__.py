"""Command line: ``python -m benchmarks.bank run | rivals | table | list``."""

from __future__ import annotations

if __name__ == "__main__":
    import os

    # Each process keeps to one core; it must be said before NumPy is loaded.
    for _name in ("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS"):
        os.environ.setdefault(_name, "1")

    from wellcal.__main__ import run_module

    run_module("benchmarks.bank.__main__")

import argparse
from pathlib import Path

from benchmarks import results
from benchmarks.bank import run, table, versus
from benchmarks.bank.errors import CHOOSE, HALVES
from benchmarks.bank.settings import FULL


def main(arguments: list[str] | None = None) -> int:
    parser = argparse.ArgumentParser(
        prog="python -m benchmarks.bank", description="Power of `auto` beside tests that specialists choose."
    )
    commands = parser.add_subparsers(dest="command", required=True)
    for name, what in (
        ("run", "draw data sets, test them and store what is found; what is there already is left out"),
        ("rivals", "power of rivals alone, on data sets of their own"),
        ("table", "tables of what is stored"),
        ("versus", "two runs side by side: all pairs, and a kernel of low rank"),
        ("list", "names of errors and calibrated models"),
    ):
        _add_options(commands.add_parser(name, help=what, description=what), name)
    options = parser.parse_args(arguments)
    if options.command == "table":
        return table.main(options.folder, options.half, options.write, partial=options.partial)
    if options.command == "versus":
        return results.tell(versus.section(options.folder, options.other), options.write)
    names = run.chosen(options.only, options.half, nulls=options.command in ("run", "list"))
    if options.command == "list":
        print("\n".join(run.described(names)))
    elif options.command == "rivals":
        sets = options.sets or FULL.rival_sets
        run.print_rivals(names, options.n, sets, FULL, folder=options.out, workers=options.workers)
    else:
        run.run(
            options.out,
            names,
            options.n,
            options.sets,
            FULL,
            method=options.method,
            parts=options.parts,
            workers=options.workers,
        )
    return 0


def _cases(text: str) -> int:
    known = [n for n, _ in FULL.sets]
    if not text.isdigit() or (int(text) not in known and int(text) < max(known)):
        raise argparse.ArgumentTypeError(f"{text!r} is none of {', '.join(map(str, known))} or more")
    return int(text)


def _add_options(parser: argparse.ArgumentParser, command: str) -> None:
    if command in ("table", "versus"):
        parser.add_argument("--in", dest="folder", type=Path, required=True, help="folder of `run`")
        parser.add_argument("--write", action="store_true", help="put the section into RESULTS.md")
    if command == "versus":
        parser.add_argument("--other", type=Path, required=True, help="folder of the run without all pairs")
        return
    default = CHOOSE if command == "table" else "all"
    parser.add_argument(
        "--half", choices=(*HALVES, "all"), default=default, help=f"half of the bank (default: {default})"
    )
    if command == "table":
        parser.add_argument("--partial", action="store_true", help="write what there is, and say what lacks")
        return
    parser.add_argument("--only", nargs="+", metavar="NAME", help='names, "nulls" or "errors"')
    if command == "list":
        return
    sizes = [n for n, _ in FULL.sets]
    parser.add_argument(
        "--n", type=_cases, nargs="+", default=sizes, help="numbers of cases: 100, 1000 or more"
    )
    parser.add_argument("--sets", type=int, help="data sets, where not those of the settings")
    parser.add_argument("--workers", type=int, default=0, help="processes; 0: one for each core")
    parser.add_argument("--out", type=Path, required=command == "run", help="folder for what is found")
    if command == "run":
        parser.add_argument(
            "--method", default="auto", help='name, or module:function that makes it; "" for none'
        )
        parser.add_argument(
            "--parts",
            metavar="MODULE:FUNCTION",
            help="parts(y, pred, n_resamples, rng) -> {name: (R + 1,)} or (R + 1, parts): stored too",
        )
