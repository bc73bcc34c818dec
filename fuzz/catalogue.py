"""All of the public interface: what is tried, and what is not, and why."""

from __future__ import annotations

from fuzz.functions import MEASURES, MODELS, TESTS
from fuzz.objects import FAMILIES, FRAMEWORKS, METHODS, VALUES
from fuzz.subjects import Subject

CATALOGUE: list[Subject] = [*MEASURES, *TESTS, *MODELS, *FAMILIES, *METHODS, *VALUES, *FRAMEWORKS]

OTHERS: dict[str, str] = {
    "records of results, made by the functions above": (
        "BinTable Comparison Comparisons Estimate GuessedRoles Measured "
        "MonitorChange MonitorStatus PowerPlan "
        "TestResult "
        "ToleranceResult Witness Yardstick CrossFitted Finding Outcome Setup Guarantees Report Support"
    ),
    "classes to derive from": "Binning Engine Kernel Method Metric Predictions Radial TargetKernel",
    "nothing to give them": (
        "Delta Euclidean Hellinger RootCovariance TotalVariation GammaMoments Spectrum style"
    ),
    "errors": "ConformanceError NotFittedError RowError",
    "methods that calibration_test makes by their names": (
        "Aggregated Bootstrap Consistency DistributionFree MeanEmbedding Multiplier Omnibus Pearson "
        "Regularised"
    ),
    "for authors of engines, tests and kernels": "register_engine target_sets Proof",
    "figures: what they show is computed by functions that are tried": (
        "ReliabilityCurve ReliabilityDisplay PITDisplay CoverageDisplay ResidualDisplay NullDisplay "
        "ComparisonDisplay WitnessDisplay WitnessMapDisplay MonitorDisplay RecalibrationDisplay to_svg "
        "CoordinatesDisplay CorrelationsDisplay SegmentsDisplay ToleranceDisplay PowerDisplay "
        "DiscrepancyDisplay"
    ),
    "tried with columns and files in tests/unit/test_roles.py and test_broken_files.py": "guess_roles",
    "measures of parts are the functions above; tried in tests/laws/test_running_laws.py": "RunningMeasures",
    "tried as methods": "Monitor TemperatureScaling CalibrationMetric",
}
"""Public names that are not in the catalogue, and why."""
