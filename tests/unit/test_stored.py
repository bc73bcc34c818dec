"""What is stored is read as it was written, compares equal, and is checked like input."""

from __future__ import annotations

import copy
import json
import math
import pickle
import subprocess
import sys
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
import pytest
import torch

import wellcal as wc
from wellcal import reporting
from wellcal._arrays.equality import same
from wellcal.engines import Tiled
from wellcal.expectations.atoms import Atoms
from wellcal.hypotests import MeanEmbedding, Outcome
from wellcal.kernels import Callable as CallableKernel
from wellcal.kernels import Delta, ExpDistance, Gaussian, Kernel, Laplacian, Matern, Wasserstein
from wellcal.kernels.serialization import kernel_from_dict, kernel_to_dict
from wellcal.measures.presentation import Presentable
from wellcal.predictions.serialization import predictions_from_dict, predictions_to_dict
from wellcal.recalibration import CrossFitted, TemperatureScaling

RNG = np.random.default_rng(3)
N = 30
MU, SIGMA = RNG.normal(size=N), RNG.uniform(0.5, 1.5, N)
Y = RNG.normal(MU, 1.3 * SIGMA)
PRED = wc.Normal(MU, SIGMA)
pytestmark = pytest.mark.filterwarnings("ignore:with n_resamples")
KERNEL = ExpDistance(Wasserstein(), 0.7) @ Gaussian(1.2)
GAMMA = wc.Gamma(np.full(N, 2.0), SIGMA)  # without closed forms: numerical expectations are told


def monitor(pred: Any = PRED, y: Any = Y, **options: Any) -> wc.Monitor:
    watching = wc.Monitor(**{"rng": 0, "draws": 5, "warmup": 4, "memory": 10, **options})
    watching.update(y, pred)
    return watching


def run_test(rng: int = 0) -> wc.TestResult:
    return wc.calibration_test(Y, PRED, rng=rng, n_resamples=39, keep_null=True)


def measured() -> wc.Measured:
    running = wc.RunningMeasures()
    running.update(Y, PRED)
    return running.result()


SEVERAL = wc.compare(Y, {"a": PRED, "b": wc.Normal(MU + 0.3, SIGMA)}, rng=0, n_resamples=99)
RESULTS: dict[str, Any] = {
    "skce": wc.skce(Y, PRED),
    "block": wc.skce(Y, PRED, estimator="block", block_size=4),
    "lowered": wc.skce(np.abs(Y), GAMMA),
    "infinite": wc.Estimate(
        math.inf, math.nan, "NLL", provenance={"expectation_error": math.nan, "lowered": ["rule"]}
    ),
    "test": run_test(),
    "pearson": wc.calibration_test(Y, PRED, method="pearson"),
    "comparison": wc.compare(Y, PRED, wc.Normal(MU + 0.3, SIGMA), rng=0),
    "comparisons": SEVERAL,
    "pair": SEVERAL.pairs[0],
    "difference": SEVERAL.pairs[0].differences[1],
    "witness": wc.witness(Y, PRED, segments={"late": MU > 0}, rng=0, n_resamples=19),
    "group": wc.witness(Y, PRED, rng=0, n_resamples=19).groups[0],
    "coverage": wc.interval_coverage(Y, PRED),
    "quantiles": wc.quantile_calibration(Y, PRED, levels=[0.1, 0.5]),
    "measured": measured(),
    "local": wc.local_discrepancy(Y, PRED, PRED[:3]),
    "status": monitor().status,
    "tolerance": wc.equivalence_test(Y, PRED, tolerance=0.2),
    "plan": wc.plan(
        PRED, against={"shift": 2.0}, method="exact", data_sets=20, n_resamples=19, most=9, alpha=0.1
    ),
    "finding": wc.calibration_test(Y + 2.0, PRED, rng=0, n_resamples=99).findings[0],
    "yardstick": wc.skce(Y, PRED).yardstick,
    "interval": wc.skce(Y, PRED).confidence_interval(),
    "change": monitor(y=Y + 1.0).change(rng=0, n_resamples=19),
}


def subclasses(cls: type) -> Iterator[type]:
    for found in cls.__subclasses__():
        yield found
        yield from subclasses(found)


WRITTEN_ONLY: set[type[Presentable]] = {
    CrossFitted,
    reporting.Choices,
    reporting.ExampleCase,
    reporting.Mended,
    reporting.ModelReport,
    reporting.Report,
    reporting.SegmentReport,
    reporting.Segments,
    reporting.WorstGroup,
}
"""Results that hold on to what JSON does not: predictions, and all that a report rests on."""


# -- shown ------------------------------------------------------------------------------------------


@pytest.mark.parametrize("name", RESULTS)
def test_all_results_are_shown_in_one_style(name: str, tmp_path: Path) -> None:
    """Text, notebook, dictionary, JSON, page and pictures, of whatever result."""
    result = RESULTS[name]
    words = result.in_words()
    assert repr(result).startswith(words.headline)
    assert words.headline.strip()
    assert "<table" in result._repr_html_()
    assert json.loads(result.to_json(allow_nan=False)) == result.to_dict()
    page = result.to_html()
    assert page is not None
    assert page.lstrip().lower().startswith("<!doctype html>")
    assert page.count("<svg") >= len(result.figures)
    for figure in result.figures.values():
        assert figure.title
        assert figure.question.endswith("?")
        assert figure.figure is figure.display.figure_
    assert pickle.loads(pickle.dumps(result)) == result  # drawn or not


PICTURES = {
    "skce": ["pit"],
    "test": ["pit", "null"],
    "comparison": ["comparison"],
    "comparisons": ["comparison"],
    "witness": ["groups", "map"],
    "coverage": ["coverage"],
    "quantiles": ["quantiles"],
    "status": ["monitor"],
}
"""Results that have something to show."""


@pytest.mark.parametrize("name", PICTURES)
def test_results_with_something_to_show_have_pictures(name: str) -> None:
    result = RESULTS[name]
    assert list(result.figures) == PICTURES[name]
    if name in ("skce", "test", "status"):  # these need what is not stored
        back = type(result).from_json(result.to_json())
        assert "pit" not in back.figures
        assert "monitor" not in back.figures


# -- round trips ------------------------------------------------------------------------------------


def test_every_kind_of_result_is_here() -> None:
    ours = {cls for cls in subclasses(Presentable) if cls.__module__.startswith("wellcal.")}
    assert {type(result) for result in RESULTS.values()} | WRITTEN_ONLY == ours


def test_results_that_are_not_read_again_say_so() -> None:
    for cls in WRITTEN_ONLY:
        with pytest.raises((TypeError, ValueError), match="is written for others to read"):
            cls.from_dict({})


@pytest.mark.parametrize("name", RESULTS)
def test_results_come_back_equal(name: str, tmp_path: Path) -> None:
    result = RESULTS[name]
    back = type(result).from_json(result.to_json(allow_nan=False))
    assert back == result
    assert hash(back) == hash(result)
    assert repr(back) == repr(result)
    assert back.to_dict() == result.to_dict()
    result.save(tmp_path / "result.json")
    assert type(result).load(tmp_path / "result.json") == result


@pytest.mark.parametrize("name", RESULTS)
def test_the_schema_has_what_is_written(name: str) -> None:
    """A field that is added needs a check."""
    result = RESULTS[name]
    assert set(result.to_dict()) == {*type(result).checks(None), *type(result).not_read}


def test_kernels_that_hold_functions_are_given_again() -> None:
    kernel = ExpDistance(Wasserstein()) @ CallableKernel(
        lambda a, b: np.exp(-abs(a[:, None] - b)), vectorized=True
    )
    result = wc.calibration_test(
        Y,
        wc.Samples(np.stack([MU, MU + 1.0], axis=1), kind="atoms"),
        kernel=kernel,
        rng=0,
        n_resamples=9,
        method="exact",
    )
    plain = json.loads(result.to_json(allow_nan=False))
    assert wc.TestResult.from_dict(plain, kernel=kernel) == result
    without = wc.TestResult.from_dict(plain)
    assert without.kernel is None
    assert without != result
    with pytest.raises(ValueError, match="kernel must be"):
        wc.TestResult.from_dict(plain, kernel=KERNEL)


@pytest.mark.parametrize("convert", [torch.tensor, jnp.asarray, np.float32])
def test_estimates_of_any_library_come_back_equal(convert: Callable[[float], Any]) -> None:
    estimate = wc.Estimate(convert(0.1), convert(0.25), "SKCE", "unbiased", 3)
    assert wc.Estimate.from_json(estimate.to_json()) == estimate


def test_scaling_comes_back_the_same(tmp_path: Path) -> None:
    for options in ({}, {"objective": "skce"}):
        fitted = wc.TemperatureScaling().fit(Y, PRED, **options)
        fitted.save(tmp_path / "scaling.json")
        assert wc.TemperatureScaling.load(tmp_path / "scaling.json").to_dict() == fitted.to_dict()


# -- equality ---------------------------------------------------------------------------------------


def test_results_are_equal_where_they_say_the_same() -> None:
    again = wc.interval_coverage(Y, PRED)
    assert again == RESULTS["coverage"]
    assert again != wc.interval_coverage(Y + 0.5, PRED)
    assert run_test() == RESULTS["test"]
    assert run_test(rng=1) != RESULTS["test"]
    assert len({RESULTS["coverage"], again}) == 1
    asked = wc.calibration_test(Y, PRED, rng=0, method="pearson")
    assert asked.yardstick is not None  # what was only asked for does not make it another result
    assert asked == wc.calibration_test(Y, PRED, rng=0, method="pearson")
    nan = wc.Estimate(math.nan)
    assert nan == wc.Estimate(math.nan)
    assert wc.Estimate(0.5, kernel=Gaussian()) != wc.Estimate(0.5, kernel=Gaussian(2.0))


OTHERS = [None, 1.0, "text", np.ones(3), torch.ones(3), jnp.ones(2), [], {}, PRED, KERNEL, object]


@pytest.mark.parametrize("name", RESULTS)
def test_comparing_results_never_raises(name: str) -> None:
    for other in [*OTHERS, *RESULTS.values()]:
        assert (RESULTS[name] == other) == (other is RESULTS[name])
        assert (RESULTS[name] != other) == (other is not RESULTS[name])


def test_what_else_holds_arrays_compares() -> None:
    for make in (
        lambda x: wc.BinTable(x, x, x),
        lambda x: Atoms(x, x, "scheme"),
        lambda x: Outcome(0.5, 0.5, "label", null=x),
        lambda x: MeanEmbedding(locations=(PRED, x)),
        lambda x: wc.displays.QuantileCalibrationDisplay(x, x, "name"),
        lambda x: wc.extend.Sums(x, x),
    ):
        assert make(np.arange(3.0)) == make(np.arange(3.0))
        assert make(np.arange(3.0)) != make(np.arange(4.0))
        assert make(np.arange(3.0)) != make(np.zeros(3))
    assert MeanEmbedding(locations=5) == MeanEmbedding(locations=5)
    assert hash(MeanEmbedding(locations=5)) == hash(MeanEmbedding(locations=5))
    assert Tiled() == Tiled()


def test_values_that_nobody_can_see() -> None:
    seen: list[bool] = []

    @jax.jit
    def traced(x: Any) -> Any:
        estimate, kernel = wc.Estimate(x), Gaussian(x)
        seen.extend([estimate == wc.Estimate(x + 1.0), kernel == Gaussian(x + 1.0), Gaussian(1.0) == kernel])
        seen.extend([estimate == wc.Estimate(x), kernel == Gaussian(x)])
        return x

    traced(1.0)
    assert seen == [False, False, False, True, True]
    meta = wc.Estimate(torch.ones((), device="meta"))
    assert meta != wc.Estimate(torch.ones((), device="meta"))
    assert meta == meta

    class Rude:
        def __eq__(self, other: object) -> bool:
            raise RuntimeError("do not compare me")

        __hash__ = None  # type: ignore[assignment]

    assert not same({"a": Rude()}, {"a": Rude()})


# -- kernels with arrays ----------------------------------------------------------------------------

SCALES: list[Callable[[Any], Kernel]] = [
    Gaussian,
    Laplacian,
    lambda x: Matern(1.5, x),
    lambda x: x * Delta(),
    lambda x: ExpDistance(Wasserstein(), x),
    lambda x: ExpDistance(Wasserstein()) @ Gaussian(x),
    lambda x: Gaussian() + 2.0 * Laplacian(x),
]
LIBRARIES = [lambda x: torch.tensor(x, dtype=torch.float64, requires_grad=True), jnp.asarray, np.asarray]


@pytest.mark.parametrize("make", SCALES)
@pytest.mark.parametrize("convert", LIBRARIES)
def test_kernels_with_arrays_compare_and_have_a_hash_or_say_why_not(
    make: Callable[[Any], Kernel], convert: Callable[[float], Any]
) -> None:
    kernel = make(convert(0.5))
    assert kernel == make(convert(0.5))
    assert kernel != make(convert(0.25))
    assert kernel == make(0.5)
    if convert is np.asarray:  # numbers of NumPy are constants
        assert hash(kernel) == hash(make(0.5))
    else:
        with pytest.raises(
            TypeError, match=r"has no hash here: (lengthscale|factor) is an array, which may change"
        ):
            hash(kernel)


@pytest.mark.parametrize("make", SCALES)
def test_kernels_of_numbers_have_a_hash(make: Callable[[Any], Kernel]) -> None:
    assert hash(make(0.5)) == hash(make(np.float64(0.5)))
    assert len({make(0.5), make(0.5), make(0.25)}) == 2


def test_kernels_of_ones_own_compare_by_their_fields() -> None:
    class Plain(Kernel):
        """No dataclass: nothing is known of what it is made of."""

    one = Plain()
    assert one == one
    assert one != Plain()
    assert len({one, Plain()}) == 2


# -- states that are not what was written -----------------------------------------------------------

PROBS = RNG.dirichlet(np.ones(3), N)
FAMILIES: dict[str, Any] = {
    "Normal": PRED,
    "NegativeBinomial": wc.NegativeBinomial(SIGMA, SIGMA),
    "MultivariateNormal": wc.MultivariateNormal(np.zeros((2, 2)), np.stack([np.eye(2)] * 2)),
    "Categorical": wc.Categorical(PROBS, classes=list("abc")),
    "Mixture": wc.Mixture([PRED, wc.Laplace(MU, SIGMA)]),
    "Samples": wc.Samples(RNG.normal(size=(3, 4))),
    "atoms": wc.Samples(np.zeros((2, 3)), weights=np.full((2, 3), 1 / 3), kind="atoms"),
    "Quantiles": wc.Quantiles([0.1, 0.9], np.array([[0.0, 1.0], [1.0, 2.0]])),
    "words": wc.Samples(np.array([["a", "b"]], dtype=object)),
}
STATES: dict[str, tuple[Any, Callable[[Any], Any]]] = {
    **{name: (result.to_dict(), type(result).from_dict) for name, result in RESULTS.items()},
    "monitor": (monitor(alpha=0.2).to_dict(), wc.Monitor.from_dict),  # after an alarm
    "monitor of classes": (
        monitor(
            wc.Categorical(PROBS), RNG.integers(0, 3, N), rng=np.random.Generator(np.random.MT19937(1))
        ).to_dict(),
        wc.Monitor.from_dict,
    ),
    "monitor of words": (
        monitor(
            wc.Samples(np.array([list("ab")] * 5, dtype=object)),
            list("aabab"),
            warmup=9,
        ).to_dict(),
        wc.Monitor.from_dict,
    ),
    "new monitor": (wc.Monitor(rng=np.random.Generator(np.random.Philox(1))).to_dict(), wc.Monitor.from_dict),
    "scaling": (
        wc.TemperatureScaling().fit(Y, PRED, objective="skce").to_dict(),
        wc.TemperatureScaling.from_dict,
    ),
    "kernel": (kernel_to_dict(0.5 * KERNEL + KERNEL), kernel_from_dict),
    **{
        f"predictions: {name}": (predictions_to_dict(pred), predictions_from_dict)
        for name, pred in FAMILIES.items()
    },
}

OF_OTHERS = {"change": 1, "comparison": 1, "comparisons": 2, "measured": 2, "witness": 1}
"""How deep to look into results that are made of results: what is inside of those is among the others."""

EVIDENCE: dict[str, Any] = STATES["monitor"][0]["evidence"]
Path_ = tuple[Any, ...]
DEEP: list[Any] = []
for _ in range(5000):
    DEEP = [DEEP]
BAD: list[Any] = [
    None,
    -7,
    0,
    1.5,
    10**400,
    math.nan,
    math.inf,
    True,
    "never",
    "nan",
    [],
    [1.0],
    {},
    {"kind": "x"},
    [[1.0], [1.0, 2.0]],
    "\ud800",
    DEEP,
]


def places(plain: Any, depth: int, at: Path_ = ()) -> Iterator[Path_]:
    """Where something could be wrong: all keys, and the first entries of lists."""
    items = (
        plain.items() if isinstance(plain, dict) else enumerate(plain[:1]) if isinstance(plain, list) else ()
    )
    for key, value in items if depth else ():
        yield (*at, key)
        yield from places(value, depth - 1, (*at, key))


def changed(plain: Any, place: Path_, change: Callable[[Any, Any], None]) -> Any:
    """A copy with something changed at a place; all the rest is shared."""
    out = copy.copy(plain)
    inner = out
    for key in place[:-1]:
        inner[key] = copy.copy(inner[key])
        inner = inner[key]
    change(inner, place[-1])
    return out


def spoilt(plain: Any, depth: int) -> Iterator[tuple[str, Path_, Any]]:
    """Everything that can be wrong with a state at one place."""
    for place in places(plain, depth):
        for bad in BAD:
            yield (
                "nested" if bad is DEEP else f"{bad!r:.20}",
                place,
                changed(plain, place, lambda inner, key, bad=bad: inner.__setitem__(key, bad)),
            )
        yield "missing", place, changed(plain, place, lambda inner, key: inner.__delitem__(key))
        if isinstance(place[-1], str):
            yield "unknown", place, changed(plain, place, lambda inner, key: inner.__setitem__(f"{key}s", 1))


@pytest.mark.parametrize("name", STATES)
def test_a_state_with_something_wrong_is_refused_by_name_or_works(name: str) -> None:
    plain, read = STATES[name]
    read(plain)
    refused = 0
    for what, place, state in spoilt(plain, OF_OTHERS.get(name, 6)):
        try:
            found = read(state)
        except (ValueError, TypeError) as error:
            refused += 1
            named = [str(key) for key in place if isinstance(key, str)] or ["must"]
            text = str(error)
            assert any(key.rstrip("_").lower() in text.lower() for key in named), (what, place, text)
            assert len(text) < 800
        else:
            repr(found)  # what was accepted can be shown, and written and read again
            if hasattr(found, "to_dict"):
                again = json.loads(json.dumps(found.to_dict(), allow_nan=False, default=repr))
                type(found).from_dict(again)
    assert refused


@pytest.mark.parametrize("name", STATES)
def test_unknown_and_missing_keys_are_refused(name: str) -> None:
    plain, read = STATES[name]
    with pytest.raises(ValueError, match="surprise is unknown"):
        read({**plain, "surprise": 1})
    for bad in (None, [], "text", 5, {1: 2}, {}):
        with pytest.raises((ValueError, TypeError)):
            read(bad)


@pytest.mark.parametrize(
    ("key", "value", "message"),
    [
        ("n_samples", -7, "n_samples must be a whole number of at least 0, found -7"),
        (
            "n_samples",
            5,
            "predictions must be those of the last 5 cases, as n_samples and memory say, found 10",
        ),
        ("evidence", None, "evidence is missing: there were bets on 30 cases"),
        ("evidence", EVIDENCE | {"logs": [math.nan] * 3}, r"evidence\.logs\[0\] must be a number, found nan"),
        ("evidence", EVIDENCE | {"sums": [0.0] * 3}, r"evidence\.sums must have 20 entries"),
        ("evidence", EVIDENCE | {"passed": [[1] * 4] * 20}, r"evidence\.passed must have 20 rows of 5"),
        ("evidence", EVIDENCE | {"value": 0.3}, r"evidence\.value must be [\d.]+, as logs say, found 0\.3"),
        ("evidence", EVIDENCE | {"late": [31] * 20}, "evidence must have passed <= low_at <= late <= cases"),
        ("started", 40, "started must be at most 30, n_samples, found 40"),
        ("onset", None, "onset must be given, as alarm_at says"),
        ("onset", {"case": 31, "first": 1, "last": 31, "expert": 0}, "onset must be a case between 1 and 30"),
        (
            "onset",
            {"case": 3, "first": 1, "last": 9, "expert": 20},
            r"onset\.expert must be below 20, found 20",
        ),
        ("run_length", 100.0, "give either alpha, for false alarms ever, or run_length"),
        ("alpha", None, "either alpha or run_length must be a number"),
        ("alarm_at", "never", "alarm_at must be a whole number of at least 1, found 'never'"),
        ("alarm_at", 31, "alarm_at must be"),
        ("largest", math.inf, "largest must be a number of at least 0, found inf"),
        ("alarm_at", None, "alarm_at must be a number of cases up to 30, as largest and the threshold say"),
        (
            "history",
            [0.0] * 31,
            "history must have at most 30 entries, as n_samples, started and history_size say, found 31",
        ),
        ("kernel", None, "kernel is missing: it is chosen after 4 cases"),
        ("kernel", kernel_to_dict(Gaussian()), "kernel must act on pairs"),
        ("targets", None, "targets must be those of the last 10 cases, .* found none"),
        ("expectations", {"nodes": 3, "tolerance": 1e-6, "points": 64}, r"expectations\.nodes must be"),
        ("generator", {"bit_generator": "system"}, r"generator\.bit_generator"),
        ("format", "wellcal monitor 5", "format must be 'wellcal monitor 4', found 'wellcal monitor 5'"),
    ],
)
def test_monitors_do_not_come_back_from_impossible_states(
    key: str, value: Any, message: str, tmp_path: Path
) -> None:
    state = {**STATES["monitor"][0], key: value}
    with pytest.raises(ValueError, match=f"this is not the state of a monitor: .*{message}"):
        wc.Monitor.from_dict(state)
    path = tmp_path / "state.json"
    path.write_text(json.dumps(state))
    with pytest.raises(ValueError, match=rf"state\.json is not the state of a monitor: .*{message}"):
        wc.Monitor.load(path)


def test_generators_do_not_read_beyond_their_end() -> None:
    state = copy.deepcopy(STATES["monitor of classes"][0])
    state["generator"]["state"]["pos"] = 10**6
    with pytest.raises(ValueError, match=r"generator\.pos must be a whole number between 0 and 624"):
        wc.Monitor.from_dict(state)


def test_a_pvalue_is_a_probability() -> None:
    for value in (math.nan, "nan", -0.1, 1.5, "small", None):
        with pytest.raises(
            ValueError, match="this is not a stored TestResult: pvalue must be a number between 0 and 1"
        ):
            wc.TestResult.from_dict({**STATES["test"][0], "pvalue": value})


FILES = {
    "not UTF-8": (b"\xff\xfe\x00{", "it is not UTF-8"),
    "not JSON": (b"p = 0.05", "it is not JSON"),
    "empty": (b"", "it is not JSON"),
    "nested": (b"[" * 100_000, "it is nested too deeply"),
    "nested dictionaries": (b'{"a":' * 100_000, "it is nested too deeply"),
    "a list": (b"[]", "it must be a dictionary"),
    "long number": (b"1" * 5000, "it is not JSON"),
}


@pytest.mark.parametrize("kind", [*FILES, "truncated"])
@pytest.mark.parametrize("cls", [wc.Monitor, wc.TemperatureScaling, wc.TestResult, wc.Estimate])
def test_files_are_named(cls: Any, kind: str, tmp_path: Path) -> None:
    path = tmp_path / "stored.json"
    made: Any = {
        wc.Monitor: lambda: monitor(),
        wc.TemperatureScaling: lambda: wc.TemperatureScaling().fit(Y, PRED),
        wc.TestResult: lambda: RESULTS["test"],
        wc.Estimate: lambda: RESULTS["skce"],
    }[cls]()
    made.save(path)
    content, message = FILES.get(kind, (path.read_bytes()[:-20], "it is not JSON"))
    path.write_bytes(content)
    with pytest.raises(
        ValueError, match=rf"stored\.json is not (a stored \w+|the state of a monitor): .*{message}"
    ):
        cls.load(path)
    with pytest.raises(FileNotFoundError):
        cls.load(tmp_path / "nowhere.json")


# -- a file that somebody else has changed ----------------------------------------------------------


def test_a_monitor_does_not_undo_what_another_has_seen(tmp_path: Path) -> None:
    path = tmp_path / "state.json"
    monitor().save(path)
    one, other = wc.Monitor.load(path), wc.Monitor.load(path)
    one.update(Y[:3], PRED[:3])
    one.save(path)
    one.save(path)
    other.update(Y[:1], PRED[:1])
    with pytest.raises(OSError, match=r"state\.json was changed by another process since .* load it again"):
        other.save(path)
    assert wc.Monitor.load(path).n_samples == N + 3
    other.save(tmp_path / "other.json")
    path.unlink()
    one.save(path)  # what is gone is written anew
    assert {file.name for file in tmp_path.iterdir()} == {"state.json", "other.json"}


# Loads the state, says so, and saves it when its input ends.
SECOND = """
import sys
import wellcal as wc

monitor = wc.Monitor.load(sys.argv[1])
print("loaded", flush=True)
sys.stdin.read()
try:
    monitor.save(sys.argv[1])
except OSError as error:
    print(error)
"""


def test_two_processes_do_not_undo_each_other(tmp_path: Path) -> None:
    path = tmp_path / "state.json"
    ours = monitor()
    ours.save(path)
    command = [sys.executable, "-c", SECOND, str(path)]
    with subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True) as other:
        assert other.stdout is not None
        assert other.stdout.readline() == "loaded\n"
        ours.update(Y[:2], PRED[:2])
        ours.save(path)
        assert "was changed by another process" in other.communicate()[0]
    assert wc.Monitor.load(path).n_samples == N + 2


def test_the_kernel_of_a_loss_is_checked() -> None:
    from wellcal.torch import SKCELoss

    loss = SKCELoss(kernel="first")
    with pytest.raises(ValueError, match=r"this is not the state of an SKCELoss: .*kernel\.kind"):
        loss.set_extra_state({"kind": "Nothing"})


def test_parts_of_a_generator_are_named() -> None:
    for key, value in (("has_uint32", -7), ("has_uint32", 2), ("uinteger", "never"), ("uinteger", math.nan)):
        state = copy.deepcopy(STATES["monitor"][0])
        state["generator"][key] = value
        with pytest.raises(ValueError, match=rf"generator\.{key} must be a whole number"):
            wc.Monitor.from_dict(state)
    state = copy.deepcopy(STATES["monitor"][0])
    del state["generator"]["state"]["inc"]
    with pytest.raises(ValueError, match=r"generator\.state\.inc is missing"):
        wc.Monitor.from_dict(state)


def test_a_length_scale_that_is_missing_is_not_the_default_one() -> None:
    plain = kernel_to_dict(Gaussian(0.5))
    del plain["lengthscale"]
    with pytest.raises(ValueError, match=r"kernel\.lengthscale is missing"):
        kernel_from_dict(plain)


def test_a_standard_error_is_not_negative() -> None:
    plain = wc.Estimate(0.25, 0.05).to_dict()
    with pytest.raises(ValueError, match="standard_error must be a number of at least 0, found -7"):
        wc.Estimate.from_dict({**plain, "standard_error": -7})


# -- what changes compares by what it has come to -----------------------------------------------------


def test_monitors_are_equal_where_their_states_are(tmp_path: Path) -> None:
    rng = np.random.default_rng(5)
    batches = [
        (wc.Normal(rng.normal(size=30), 1.0), {}),
        (wc.Bernoulli(rng.random(30)), {}),
        (wc.Samples(rng.normal(size=(30, 5))), {"expectations": "auto"}),
        (wc.Gamma(rng.random(30) + 1.0, 1.0), {"warmup": 40}),
    ]
    for pred, options in batches:
        made = [wc.Monitor(rng=1, draws=5, **options) for _ in range(2)]
        assert made[0] == made[1]
        y = pred.sample(rng)
        made[0].update(y, pred)
        assert made[0] != made[1]
        again = wc.Monitor.from_dict(json.loads(json.dumps(made[0].to_dict())))
        assert again == made[0]
        made[0].save(tmp_path / "state.json")
        assert wc.Monitor.load(tmp_path / "state.json") == made[0]
        made[1].update(y, pred)
        assert made[0] == made[1]
        again.update(y[:1], pred[:1])
        assert again != made[0]
    for other in (None, 1, np.zeros(3), torch.zeros(3), "monitor", made[0].status):
        assert (made[0] == other) is False
        assert (other == made[0]) is False or not isinstance(other, (int, str, type(None)))
    with pytest.raises(TypeError, match="unhashable"):
        hash(made[0])


def test_monitors_with_functions_for_kernels_compare_by_the_functions() -> None:
    one, other = (lambda a, b: 1.0), (lambda a, b: 0.5)
    made = [wc.Monitor(ExpDistance(Wasserstein()) @ CallableKernel(f), rng=1) for f in (one, one, other)]
    assert made[0] == made[1]
    assert made[0] != made[2]


def test_temperatures_are_equal_where_all_that_was_found_is(tmp_path: Path) -> None:
    rng = np.random.default_rng(6)
    mu = rng.normal(size=40)
    y, pred = rng.normal(mu), wc.Normal(mu, 0.5)
    for objective in ("nll", "skce"):
        scaling = TemperatureScaling(bounds=[0.01, 100]).fit(y, pred, objective)  # type: ignore[arg-type]
        assert TemperatureScaling.from_dict(json.loads(json.dumps(scaling.to_dict()))) == scaling
        scaling.save(tmp_path / "scaling.json")
        assert TemperatureScaling.load(tmp_path / "scaling.json") == scaling
        assert scaling != TemperatureScaling(bounds=(0.01, 100.0))
        assert scaling != TemperatureScaling(bounds=(0.01, 100.0)).fit(y + 1.0, pred, objective)
        assert scaling.set_params(bounds=None) != TemperatureScaling()  # nobody asked for them to be right
    assert TemperatureScaling() == TemperatureScaling()
    assert (TemperatureScaling() == np.zeros(2)) is False
    with pytest.raises(TypeError, match="unhashable"):
        hash(TemperatureScaling())
