"""Results without a page: ``python -m reproduction.compute [EXPERIMENT ...] [--workers N] [--out FOLDER]``.

For a machine that has NumPy and SciPy, many cores, and neither the packages of the command line nor those of
figures. It leaves the files from which ``python -m reproduction`` writes the page, wherever they are copied
to.
"""

from __future__ import annotations

if __name__ == "__main__":
    from wellcal.__main__ import run_module

    run_module("reproduction.compute")

import argparse
import time
from pathlib import Path

from reproduction.catalogue import EXPERIMENTS
from reproduction.run import Run, machine_of, results_folder
from reproduction.schedule import worker_pool
from reproduction.store import StoreError
from reproduction.tasks import Settings


def main(arguments: list[str] | None = None) -> None:
    """Run what is left of some experiments, or of all."""
    parser = argparse.ArgumentParser(prog="python -m reproduction.compute", description=__doc__)
    parser.add_argument("experiments", nargs="*", metavar="EXPERIMENT", help=f"of {', '.join(EXPERIMENTS)}")
    parser.add_argument("--workers", type=int, default=None, help="processes; one for each core if not given")
    parser.add_argument("--out", type=Path, default=Path("docs"), help="folder of the page")
    parser.add_argument("--quick", action="store_true", help="small versions")
    parser.add_argument("--seed", type=int, default=0, help="seed of all random numbers")
    given = parser.parse_args(arguments)
    unknown = set(given.experiments) - set(EXPERIMENTS)
    if unknown:
        parser.error(f"{', '.join(sorted(unknown))}: not one of {', '.join(EXPERIMENTS)}")
    settings = Settings(given.seed, given.quick)
    try:
        _compute(given.experiments or list(EXPERIMENTS), settings, given.out, given.workers)
    except StoreError as error:
        parser.exit(2, f"{error}\n")


def _compute(names: list[str], settings: Settings, out: Path, workers: int | None) -> None:
    machine_of(results_folder(settings, out))
    with worker_pool(workers) as pool:
        for name in names:
            begin = time.perf_counter()
            run = Run(EXPERIMENTS[name], settings, out)
            _, seconds = run.compute(pool)
            wall = time.perf_counter() - begin
            print(
                f"{name}: {len(run.tasks)} tasks, {seconds:.0f} s on one core, {wall:.0f} s now", flush=True
            )
