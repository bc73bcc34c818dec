"""Command line: ``python -m benchmarks [--quick] [--all | --studies | --only NAME ...] [--store-ratios]``."""

from __future__ import annotations

if __name__ == "__main__":
    from wellcal.__main__ import run_module

    run_module("benchmarks.__main__")

import argparse
import sys
import time
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

from benchmarks import (
    calibration_studies,
    cluster_studies,
    count_speed,
    estimator_studies,
    false_findings,
    feature_speed,
    gpu_speed,
    hard_settings,
    interval_studies,
    jax_speed,
    linear_speed,
    measure_studies,
    memory_limits,
    monitor_studies,
    paper_speed,
    peers,
    planted_groups,
    real_counts,
    recalibration_studies,
    report_size,
    results,
    side_by_side,
    skce_speed,
    small_calls,
    streamed_files,
    studies,
    sum_settings,
    test_speed,
    where_and_when,
)
from benchmarks.competitors import UnavailableError
from benchmarks.results import Section
from benchmarks.settings import FULL, QUICK, Settings

BENCHMARKS: dict[str, Callable[[Settings], Section]] = {
    "side-by-side": side_by_side.side_by_side,
    "normals": skce_speed.normals,
    "classes": skce_speed.classes,
    "features": feature_speed.features,
    "no-square": feature_speed.no_square,
    "sums": sum_settings.sums,
    "gpu": gpu_speed.in_cuda,
    "memory": memory_limits.memory,
    "streamed": streamed_files.streamed,
    "report-size": report_size.reports,
    "peers": peers.peers,
    "paper-speed": paper_speed.paper_speed,
    "small-calls": small_calls.small_calls,
    "jax": jax_speed.in_jax,
    "estimators": estimator_studies.estimators,
    "intervals": interval_studies.intervals,
    "tolerances": interval_studies.tolerances,
    "smallest-errors": interval_studies.smallest_errors,
    "type1": calibration_studies.type_one,
    "power": calibration_studies.power,
    "paper-tests": calibration_studies.paper_tests,
    "test-speed": test_speed.test_speed,
    "hard": hard_settings.hard,
    "linear": linear_speed.linear,
    "counts": count_speed.counts,
    "real-counts": real_counts.real_counts,
    "measures": measure_studies.measures,
    "clusters": cluster_studies.clusters,
    "compare": where_and_when.comparison,
    "several": where_and_when.several,
    "witness": where_and_when.groups,
    "planted-groups": planted_groups.planted_groups,
    "false-findings": false_findings.false_findings,
    "monitor": monitor_studies.monitor,
    "recalibration": recalibration_studies.recalibrated,
}

STUDIES = (
    "estimators",
    "intervals",
    "tolerances",
    "smallest-errors",
    "type1",
    "power",
    "paper-tests",
    "hard",
    "measures",
    "clusters",
    "compare",
    "several",
    "witness",
    "monitor",
    "recalibration",
)
"""Those of simulated data sets, by as many processes as there are cores."""


def main(arguments: list[str] | None = None) -> int:
    parser = argparse.ArgumentParser(
        prog="python -m benchmarks", description="Time wellcal beside simple implementations."
    )
    parser.add_argument(
        "--quick", action="store_true", help="small sizes, under a minute; RESULTS.md stays as it is"
    )
    parser.add_argument(
        "--only", nargs="+", choices=sorted(BENCHMARKS), metavar="NAME", help=", ".join(BENCHMARKS)
    )
    parser.add_argument(
        "--studies", action="store_true", help="only what simulates data sets: " + ", ".join(STUDIES)
    )
    parser.add_argument(
        "--all", action="store_true", help="all benchmarks and studies, which take hours, not only the first"
    )
    parser.add_argument(
        "--store-ratios",
        action="store_true",
        help="put the ratios of side-by-side into ratios.csv, for later runs to be compared with",
    )
    parser.add_argument(
        "--keep",
        type=Path,
        metavar="FOLDER",
        help="keep simulated results there, and take what is there: a study that was broken off goes on "
        "(a folder belongs to one state of the code)",
    )
    options = parser.parse_args(arguments)
    studies.keep_in(options.keep)
    started = time.perf_counter()
    failures: list[str] = []
    settings = QUICK if options.quick else replace(FULL, store_ratios=options.store_ratios)
    everything = BENCHMARKS if options.all else ("side-by-side",)
    for name in options.only or (STUDIES if options.studies else everything):
        try:
            section = BENCHMARKS[name](settings)
        except UnavailableError as reason:
            print(f"{name}: left out, {reason}", file=sys.stderr, flush=True)
            continue
        print(f"\n## {section.title}\n\n{section.body}\n", flush=True)
        if not options.quick:
            results.save(section)  # at once: a later benchmark that fails costs nothing
        print(f"{name}: done at {time.perf_counter() - started:.0f} s", file=sys.stderr, flush=True)
        failures.extend(section.failures)
    print(f"{time.perf_counter() - started:.0f} s in all", *failures, sep="\n", file=sys.stderr)
    return 1 if failures else 0
