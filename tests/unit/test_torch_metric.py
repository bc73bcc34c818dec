"""CalibrationMetric: streams, merges, and goes where torchmetrics metrics go."""

from __future__ import annotations

import copy
import importlib
import pickle
import sys
import warnings
from typing import Any

import numpy as np
import pytest
import torch
import torchmetrics
from torchmetrics.classification import MulticlassAccuracy

import wellcal as wc
from wellcal.kernels import ExpDistance, Gaussian, Wasserstein
from wellcal.torch import CalibrationMetric

rng = np.random.default_rng(0)
N = 30
MU, SIGMA = rng.normal(size=N), np.exp(rng.normal(0.0, 0.3, N))
Y = rng.normal(MU, 1.0)
PROBS = rng.dirichlet(np.ones(3), N)
LABELS = rng.integers(0, 3, N)
VECTORS = rng.normal(size=(N, 2))
COV = np.tile(np.array([[1.0, 0.3], [0.3, 0.5]]), (N, 1, 1))
WORDS = np.array(["a", "b", "c"])
SUPPORT = np.array([1.0, 2.0, 5.0])
WEIGHTS = rng.dirichlet(np.ones(4), N)
KERNEL = ExpDistance(Wasserstein(), 0.8) @ Gaussian(0.9)
BATCHES = [slice(0, 7), slice(7, 8), slice(8, 30)]


def normal(rows: Any = slice(None)) -> wc.Normal:
    return wc.Normal(torch.tensor(MU[rows]), torch.tensor(SIGMA[rows]))


@pytest.fixture(params=["torchmetrics", "alone"])
def metric_class(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> Any:
    """The metric with torchmetrics, and without."""
    if request.param == "torchmetrics":
        return CalibrationMetric
    monkeypatch.setitem(sys.modules, "torchmetrics", None)
    monkeypatch.delitem(sys.modules, "wellcal.torch.metric")
    alone = importlib.import_module("wellcal.torch.metric").CalibrationMetric
    monkeypatch.undo()
    assert not issubclass(alone, torchmetrics.Metric)
    return alone


FAMILIES: dict[str, tuple[Any, Any]] = {
    "Normal": (wc.Normal(MU, SIGMA), Y),
    "Bernoulli": (wc.Bernoulli(PROBS[:, 0]), LABELS % 2),
    "Categorical": (wc.Categorical(PROBS), LABELS),
    "Categorical with classes": (wc.Categorical(PROBS, classes=WORDS), WORDS[LABELS]),
    "Categorical with support": (
        wc.Categorical(PROBS, support=[1.0, 2.0, 5.0]),
        np.array([1.0, 2.0, 5.0])[LABELS],
    ),
    "MultivariateNormal": (wc.MultivariateNormal(VECTORS, COV), VECTORS + 0.3),
    "Mixture": (
        wc.Mixture([wc.Normal(MU, SIGMA), wc.Laplace(MU, 0.5 * SIGMA)], rng.dirichlet(np.ones(2), N)),
        Y,
    ),
    "Poisson": (wc.Poisson(SIGMA), LABELS),
    "Samples": (wc.Samples(rng.normal(size=(N, 4))), Y),
    "Samples with weights": (
        wc.Samples(rng.normal(size=(N, 4)), rng.dirichlet(np.ones(4), N), kind="atoms"),
        Y,
    ),
    "Quantiles": (wc.Quantiles([0.1, 0.5, 0.9], MU[:, None] + np.array([-1.0, 0.0, 1.0])), Y),
}


def to_tensors(pred: Any) -> Any:
    return pred.map_arrays(lambda a: torch.as_tensor(a.copy()))


@pytest.mark.parametrize("name", FAMILIES)
def test_batches_together_are_all_cases(metric_class: Any, name: str) -> None:
    pred, y = FAMILIES[name]
    metric = metric_class()
    for rows in BATCHES:
        metric.update(to_tensors(pred[rows]), y[rows])
    value = metric.compute()
    assert value.shape == ()
    assert value.dtype == torch.float64
    assert float(value) == pytest.approx(float(wc.skce(y, pred)), rel=1e-9, abs=1e-14)


def test_a_pvalue(metric_class: Any) -> None:
    for name in ("Normal", "Categorical with classes"):
        pred, y = FAMILIES[name]
        metric = metric_class("pvalue", rng=3, test_options={"n_resamples": 99})
        for rows in BATCHES:
            metric.update(to_tensors(pred[rows]), y[rows])
        expected = wc.calibration_test(y, pred, rng=3, n_resamples=99).pvalue
        assert float(metric.compute()) == pytest.approx(expected, abs=1e-12)


def test_blocks_in_order(metric_class: Any) -> None:
    metric = metric_class(kernel=KERNEL, estimator="block", block_size=5)
    for rows in BATCHES:
        metric.update(normal(rows), Y[rows])
    expected = wc.skce(Y, wc.Normal(MU, SIGMA), kernel=KERNEL, estimator="block", block_size=5)
    assert float(metric.compute()) == pytest.approx(float(expected), rel=1e-12)


def test_reset_forgets(metric_class: Any) -> None:
    metric = metric_class(kernel=KERNEL)
    metric.update(normal(), Y)
    metric.reset()
    rows = slice(3, 13)
    metric.update(normal(rows), Y[rows])
    assert float(metric.compute()) == pytest.approx(
        float(wc.skce(Y[rows], wc.Normal(MU[rows], SIGMA[rows]), kernel=KERNEL)), rel=1e-12
    )


def test_merging_is_seeing_all_batches(metric_class: Any) -> None:
    parts = [metric_class(kernel=KERNEL) for _ in BATCHES]
    for part, rows in zip(parts, BATCHES, strict=True):
        part.update(normal(rows), Y[rows])
    expected = float(wc.skce(Y, wc.Normal(MU, SIGMA), kernel=KERNEL))
    merged = metric_class(kernel=KERNEL)
    for part in parts:
        merged.merge_state(part)
    with warnings.catch_warnings():  # torchmetrics does not count merging as an update, and warns
        warnings.simplefilter("ignore")
        assert float(merged.compute()) == pytest.approx(expected, rel=1e-12)
    from_state = parts[0]
    from_state.merge_state(parts[1].metric_state)
    from_state.merge_state(parts[2].metric_state)
    assert float(from_state.compute()) == pytest.approx(expected, rel=1e-12)


def test_calling_gives_the_value_of_a_batch(metric_class: Any) -> None:
    metric = metric_class(kernel=KERNEL)
    for rows in (slice(0, 10), slice(10, 30)):
        own = metric(normal(rows), torch.tensor(Y[rows]))
        expected = wc.skce(Y[rows], wc.Normal(MU[rows], SIGMA[rows]), kernel=KERNEL)
        assert float(own) == pytest.approx(float(expected), rel=1e-12)
    whole = wc.skce(Y, wc.Normal(MU, SIGMA), kernel=KERNEL)
    assert float(metric.compute()) == pytest.approx(float(whole), rel=1e-12)


def test_precision_gradients_and_moves(metric_class: Any) -> None:
    metric = metric_class(kernel=KERNEL)
    m = torch.tensor(MU, requires_grad=True)
    metric.update(wc.Normal(m, torch.tensor(SIGMA)), torch.tensor(Y))
    metric.half()
    assert not metric.parameters_[0].requires_grad
    assert metric.parameters_[0].dtype == torch.float64
    expected = float(wc.skce(Y, wc.Normal(MU, SIGMA), kernel=KERNEL))
    assert float(metric.compute()) == pytest.approx(expected, rel=1e-12)
    rough = metric_class(kernel=KERNEL)
    rough.update((m.detach().to(torch.bfloat16), torch.tensor(SIGMA).to(torch.bfloat16)), torch.tensor(Y))
    assert float(rough.compute()) == pytest.approx(expected, abs=0.02)


def test_errors(metric_class: Any) -> None:
    metric = metric_class()
    with pytest.raises(TypeError, match=r"update\(preds, target\)"):
        metric.update(torch.tensor(Y), normal())
    metric = metric_class()
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # torchmetrics warns, and then calls all the same
        with pytest.raises(ValueError, match="seen no cases"):
            metric.compute()
    metric.update(normal(slice(0, 1)), Y[:1])
    with pytest.raises(ValueError, match="at least 2 cases"):
        metric.compute()
    with pytest.raises(TypeError, match="one family, found Normal as earlier updates and Laplace"):
        metric.update(wc.Laplace(torch.zeros(2), torch.ones(2)), [0.0, 0.0])
    with pytest.raises(ValueError, match="target is not finite in row 1"):
        metric.update(normal(slice(0, 2)), [0.0, np.nan])
    with pytest.raises(ValueError, match="same length"):
        metric.update(normal(slice(0, 2)), [0.0, 1.0, 2.0])
    samples = metric_class()
    samples.update(wc.Samples(torch.zeros(2, 3)), [0.0, 0.0])
    with pytest.raises(ValueError, match="samples of equal size"):
        samples.update(wc.Samples(torch.zeros(2, 4)), [0.0, 0.0])
    with pytest.raises(TypeError, match="Samples of objects"):
        metric_class().update(wc.Samples(np.array([["a", "b"]], dtype=object)), ["a"])


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"measure": "ece"}, "unknown measure 'ece'"),
        ({"estimator": "biased"}, "known are unbiased, block"),
        ({"block_size": 2}, 'for estimator="block" only'),
        ({"test_options": {}}, 'for measure="pvalue" only'),
    ],
)
def test_bad_options(metric_class: Any, options: dict[str, Any], message: str) -> None:
    with pytest.raises(ValueError, match=message):
        metric_class(**options)


# -- where torchmetrics metrics are used ------------------------------------------------------------


def test_in_a_collection() -> None:
    """Beside a metric of torchmetrics, with two of its own that share their states."""
    collection = torchmetrics.MetricCollection(
        {
            "accuracy": MulticlassAccuracy(num_classes=3, average="micro"),
            "skce": CalibrationMetric(),
            "pvalue": CalibrationMetric("pvalue", test_options={"n_resamples": 99}),
        }
    )
    probs, labels = torch.tensor(PROBS), torch.tensor(LABELS)
    for epoch in range(2):
        for rows in BATCHES:
            collection.update(probs[rows], labels[rows])
        found = collection.compute()
        assert float(found["accuracy"]) == pytest.approx(np.mean(PROBS.argmax(1) == LABELS), rel=1e-6)
        assert float(found["skce"]) == pytest.approx(float(wc.skce(LABELS, PROBS)), rel=1e-9)
        expected = wc.calibration_test(LABELS, wc.Categorical(PROBS), rng=0, n_resamples=99).pvalue
        assert float(found["pvalue"]) == pytest.approx(expected, abs=1e-12)
        if epoch == 0:
            collection.reset()
    assert sorted(map(len, collection.compute_groups.values())) == [1, 2]


def test_in_a_collection_by_keywords_and_with_a_family() -> None:
    collection = torchmetrics.MetricCollection(
        [
            torchmetrics.MeanSquaredError(),
            CalibrationMetric(kernel=KERNEL, family=lambda mean: wc.Normal(mean, torch.ones_like(mean))),
        ]
    )
    value = collection(preds=torch.tensor(MU), target=torch.tensor(Y))
    assert float(value["MeanSquaredError"]) == pytest.approx(np.mean((MU - Y) ** 2), rel=1e-5)
    expected = wc.skce(Y, wc.Normal(MU, np.ones(N)), kernel=KERNEL)
    assert float(value["CalibrationMetric"]) == pytest.approx(float(expected), rel=1e-12)


def test_copies_and_pickles() -> None:
    metric = CalibrationMetric(kernel=KERNEL)
    metric.update(normal(slice(0, 10)), Y[:10])
    for other in (copy.deepcopy(metric), pickle.loads(pickle.dumps(metric)), metric.clone()):
        other.update(normal(slice(10, 30)), Y[10:])
        expected = wc.skce(Y, wc.Normal(MU, SIGMA), kernel=KERNEL)
        assert float(other.compute()) == pytest.approx(float(expected), rel=1e-12)


def test_torchmetrics_gathers_processes() -> None:
    """Two processes played by one: what each state of the other holds is handed out when asked for."""
    parts = [CalibrationMetric(kernel=KERNEL) for _ in range(2)]
    rows = [slice(0, 13), slice(13, 30)]
    for part, own in zip(parts, rows, strict=True):
        part.update(normal(own), Y[own])
    states = {id(part): part for part in parts}
    other = {id(part.targets_[0]): parts[1 - k].targets_[0] for k, part in enumerate(parts)}
    other |= {id(part.parameters_[0]): parts[1 - k].parameters_[0] for k, part in enumerate(parts)}

    def gather(tensor: torch.Tensor, group: Any = None) -> list[torch.Tensor]:
        return [tensor, other[id(tensor)]]

    expected = float(wc.skce(Y, wc.Normal(MU, SIGMA), kernel=KERNEL))
    for part in states.values():
        part.dist_sync_fn = gather
        part.distributed_available_fn = lambda: True
        assert float(part.compute()) == pytest.approx(expected, rel=1e-12)
        assert len(part.targets_) == 1  # its own again afterwards
