"""How thorough a run is."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True)
class Settings:
    """Sizes and patience.

    Attributes
    ----------
    normals
        Numbers of univariate normal predictions.
    classes
        Numbers of predictions and of classes.
    memory
        Number of normal predictions for the limits on memory.
    streamed, monitored
        Rows of files that are read part by part, and of those that a monitor reads.
    reported
        Numbers of cases of reports.
    budget
        Seconds after which a competitor is not run again on a case; it always runs at least once.
    rounds
        Most runs of a competitor on a case.
    data_sets
        Simulated data sets, or streams, for each cell of every study.
    pearson_sets
        The same for `pearson`, which is quick, and whose error rate is known only from simulation.
    test_cases, auto_cases
        Numbers of cases for the speed of tests, and of `auto`.
    hard_sets, hard_cases, hard_resamples
        Simulated data sets, cases and resamples where few cases carry a statistic.
    linear_cases, linear_resamples
        Numbers of cases, and resamples, for the speed of tests that are linear in the number of cases.
    planted_repeats
        Simulated data sets for each group that is planted for the witness to find.
    finding_repeats
        Simulated data sets for each kind of error that findings must name, and no other.
    count_cases, count_resamples, count_rounds
        Number of cases, resamples, and rounds for counts beside normals.
    interval_cases, interval_sets, tolerance_sets
        Numbers of cases, and simulated data sets, for intervals of KCE and tests with a tolerance.
    cluster_counts, cluster_sets
        Numbers of clusters, and simulated data sets, for tests with clusters.
    monitor_steps
        Cases of a stream for the false alarms of the monitor.
    monitor_onsets, monitor_after, monitor_streams
        Cases after which a change comes, how many come after it, and streams for each, and for run lengths.
    monitor_run_length, monitor_longest
        Mean number of cases until a false alarm that is promised, and after which a stream ends.
    real_cases, real_resamples
        Most cases of a data set of real counts, and resamples.
    paper_cases, paper_noise
        Most cases of the paper's table of times, and by how much a short call may be off.
    feature_cases
        Number of cases for closed forms beside features.
    plane_cases, laplace_cases, line_cases, spanned_cases, witness_cases
        Numbers of normals, of Laplace and Bernoulli predictions, and of gammas and ensembles for sums without
        the square; and of normals for `witness`.
    sum_cases
        Numbers of cases, and of seeds for each, for errors of sums without the square.
    side_cases
        Number of cases for the table of all engines and peers.
    store_ratios
        Whether ratios of that table are stored, for later runs to be compared with.
    jax_cases
        Numbers of cases for JAX beside PyTorch.
    peer_share
        Share of the full sizes of measures beside those of other libraries.
    """

    normals: tuple[int, ...] = (1_024, 10_000, 50_000)
    classes: tuple[tuple[int, int], ...] = ((10_000, 10), (10_000, 1_000))
    memory: int = 20_000
    streamed: int = 10_000_000
    monitored: int = 10_000_000
    reported: tuple[int, ...] = (10, 1_000, 100_000, 1_000_000)
    budget: float = 30.0
    rounds: int = 25
    data_sets: int = 2_000
    pearson_sets: int = 10_000
    test_cases: int = 1_024
    auto_cases: tuple[int, ...] = (100, 1_000, 10_000, 100_000)
    hard_sets: int = 2000
    hard_cases: int = 30
    hard_resamples: int = 199
    linear_cases: tuple[int, ...] = (10_000, 100_000, 1_000_000)
    linear_resamples: int = 199
    planted_repeats: int = 100
    finding_repeats: int = 100
    count_cases: int = 2_000
    count_resamples: int = 199
    count_rounds: int = 2
    interval_cases: tuple[int, ...] = (30, 100, 300, 1_000)
    interval_sets: int = 2_000
    tolerance_sets: int = 2_000
    cluster_counts: tuple[int, ...] = (20, 50, 200)
    cluster_sets: int = 2_000
    monitor_steps: int = 3_000
    monitor_onsets: tuple[int, ...] = (0, 500, 2_000)
    monitor_after: int = 1_000
    monitor_streams: int = 400
    monitor_run_length: float = 500.0
    monitor_longest: int = 3_000
    real_cases: int = 100_000
    real_resamples: int = 199
    paper_cases: int = 1_024
    paper_noise: float = 0.05
    jax_cases: tuple[int, ...] = (256, 1_000, 4_000)
    feature_cases: int = 10_000
    side_cases: int = 10_000
    store_ratios: bool = False
    plane_cases: tuple[int, ...] = (1_000, 10_000, 100_000, 1_000_000, 10_000_000)
    laplace_cases: tuple[int, ...] = (1_000_000,)
    line_cases: tuple[int, ...] = (1_000, 10_000, 100_000, 1_000_000, 10_000_000)
    spanned_cases: tuple[int, ...] = (1_000, 10_000, 100_000)
    witness_cases: tuple[int, ...] = (10_000, 100_000, 1_000_000)
    sum_cases: tuple[tuple[int, int], ...] = ((6_000, 7), (20_000, 1))
    peer_share: float = 1.0


FULL = Settings()
QUICK = Settings(
    jax_cases=(256,),
    feature_cases=2_000,
    side_cases=1_200,
    plane_cases=(1_000, 20_000),
    laplace_cases=(20_000,),
    line_cases=(1_000, 20_000),
    spanned_cases=(1_000, 5_000),
    witness_cases=(1_000,),
    normals=(1_024, 4_000),
    classes=((2_000, 10),),
    memory=4_000,
    streamed=100_000,
    monitored=2_000,
    reported=(10,),
    budget=1.5,
    rounds=5,
    data_sets=10,
    pearson_sets=20,
    test_cases=256,
    auto_cases=(100, 1_000),
    hard_sets=20,
    linear_cases=(10_000, 20_000),
    linear_resamples=19,
    planted_repeats=2,
    finding_repeats=2,
    count_cases=300,
    count_resamples=19,
    count_rounds=1,
    interval_cases=(30,),
    interval_sets=10,
    tolerance_sets=4,
    cluster_counts=(20,),
    cluster_sets=10,
    monitor_steps=200,
    monitor_onsets=(0, 50),
    monitor_after=150,
    monitor_streams=10,
    monitor_run_length=100.0,
    monitor_longest=200,
    real_cases=300,
    real_resamples=19,
    paper_cases=64,
    paper_noise=0.2,
    sum_cases=((2_000, 1),),
    peer_share=0.02,
)
