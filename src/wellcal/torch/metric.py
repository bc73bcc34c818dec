"""A streaming metric: calibration of all batches seen, across processes."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import TYPE_CHECKING, Any

import torch

from wellcal._arrays.checks import check_same_length, one_of
from wellcal._arrays.namespaces import to_numpy
from wellcal.engines import choose_engine
from wellcal.hypotests import calibration_test
from wellcal.kernels.base import Kernel
from wellcal.measures._skce import BlockSize, estimate_blocks, estimate_unbiased
from wellcal.measures.training import check_training_options, wide_predictions, widen_half
from wellcal.predictions import Predictions
from wellcal.predictions.batches import concatenate, in_numpy
from wellcal.problem.defaults import default_kernel
from wellcal.problem.problem import check_pair_kernel, prepare_checked

if TYPE_CHECKING:
    from wellcal.torch.streaming import StreamingMetric as _Metric
else:
    try:
        from torchmetrics import Metric as _Metric
    except ImportError:
        from wellcal.torch.streaming import StreamingMetric as _Metric

MEASURES = ("skce", "pvalue")


class CalibrationMetric(_Metric):
    """Calibration error, or p-value of the calibration test, of all batches together.

    A ``torchmetrics.Metric`` where torchmetrics is installed: it goes into a ``MetricCollection``, a trainer
    or a tracker like any other, and merges across processes by itself. Elsewhere it has the same methods.
    SKCE is an average over pairs of cases, also of different batches: it is not the mean of the values of
    batches. Therefore targets and parameters of predictions are kept, in double precision, until `reset`.

    Parameters
    ----------
    measure
        "skce": the squared kernel calibration error; "pvalue": that of
        :func:`wellcal.calibration_test`, computed in NumPy.
    kernel
        None chooses one for all predictions together, with scales from these. Give one to compare values
        along training: scales of the default follow the predictions.
    estimator, block_size
        For "skce": "unbiased", or "block" in the order of the cases, as in :func:`wellcal.skce`.
    family
        What makes predictions of the first argument of `update`, for collections whose other metrics take
        tensors: ``lambda logits: wc.Categorical(logits.softmax(-1))``. None is
        :func:`wellcal.as_predictions`.
    rng, test_options
        For "pvalue": seed, and keywords of :func:`wellcal.calibration_test` such as `method`.
    options
        Keywords of ``torchmetrics.Metric``, such as `dist_sync_on_step`.

    Notes
    -----
    The order of arguments of `update` is that of torchmetrics, predictions first, unlike everywhere else in
    wellcal.

    The first batch decides on the family for the lifetime of the metric, `reset` or not. In distributed
    evaluation each process needs at least one batch. Samplers that repeat cases to make batches even bias
    the value, and invalidate the p-value, as they do for any metric.

    Memory: O(n) for n cases; `compute` costs O(n^2) time, or O(n block_size).

    Examples
    --------
    >>> import torch, wellcal as wc
    >>> metric = CalibrationMetric()
    >>> for start in (0, 2):
    ...     metric.update(wc.Bernoulli(torch.tensor([0.9, 0.8])), torch.tensor([1, 0]))
    >>> whole = wc.skce([1, 0, 1, 0], wc.Bernoulli(torch.tensor([0.9, 0.8, 0.9, 0.8]).double()))
    >>> abs(float(metric.compute()) - float(whole)) < 1e-6
    True
    """

    is_differentiable: bool | None = False
    higher_is_better: bool | None = None
    full_state_update: bool | None = False

    parameters_: Any
    targets_: Any

    def __init__(
        self,
        measure: str = "skce",
        *,
        kernel: Kernel | None = None,
        estimator: str = "unbiased",
        block_size: BlockSize = None,
        family: Callable[[Any], object] | None = None,
        rng: int = 0,
        test_options: dict[str, Any] | None = None,
        **options: Any,
    ) -> None:
        super().__init__(**options)
        one_of(measure, "measure", MEASURES)
        check_training_options(estimator, block_size)
        if test_options is not None and measure != "pvalue":
            raise ValueError(f'test_options are for measure="pvalue" only, found measure={measure!r}')
        self.measure = measure
        self.kernel = None if kernel is None else check_pair_kernel(kernel)
        self.estimator, self.block_size = estimator, block_size
        self.family = family
        self.rng = rng
        self.test_options = {} if test_options is None else dict(test_options)
        self._template: Predictions | None = None
        self.add_state("targets_", default=[], dist_reduce_fx="cat")
        self.add_state("parameters_", default=[], dist_reduce_fx="cat")

    def update(self, preds: Any, target: Any) -> None:
        """Take in a batch: predictions (or what `family` makes them of), then observed targets."""
        if isinstance(target, Predictions):
            raise TypeError(
                "target must be observed targets, found predictions; the order of this metric is "
                "update(preds, target), as in torchmetrics"
            )
        predictions = wide_predictions(preds if self.family is None else self.family(preds), "preds")
        checked = predictions.check_targets(widen_half(target), "target")
        check_same_length(len(predictions), "preds", int(checked.shape[0]), "target")
        device = predictions.like.device if isinstance(predictions.like, torch.Tensor) else None
        self._take_in(_template_of(predictions))
        if not isinstance(checked, torch.Tensor):
            checked = torch.as_tensor(to_numpy(checked).copy(), device=device)
        self.targets_.append(checked.detach().double() if checked.is_floating_point() else checked.detach())
        self.parameters_.append(_to_rows(predictions, device))

    def _take_in(self, template: Predictions) -> None:
        """Keep the template of the first batch; later ones must fit it."""
        if self._template is not None:
            _check_fits(template, self._template)
        self._template = template if self._template is None else self._template

    def compute(self) -> torch.Tensor:
        """Return the value of all batches so far, a scalar in double precision."""
        if self._template is None or len(self.targets_) == 0:
            raise ValueError("CalibrationMetric has seen no cases: call update before compute")
        targets, rows = self._all("targets_"), self._all("parameters_")
        if rows.shape[0] < 2:
            raise ValueError("CalibrationMetric needs at least 2 cases, found 1: update it with more")
        predictions = _from_rows(rows, self._template)
        if self.measure == "pvalue":
            return rows.new_tensor(self._pvalue(targets, predictions))
        kernel = default_kernel(predictions) if self.kernel is None else self.kernel
        problem = prepare_checked(targets, predictions, kernel)
        engine = choose_engine("auto", problem)
        with torch.no_grad():
            if self.estimator == "block":
                return estimate_blocks(problem, engine, self.block_size, None).value
            return estimate_unbiased(problem, engine).value

    def _pvalue(self, targets: torch.Tensor, predictions: Any) -> float:
        y: Any = to_numpy(targets)
        if predictions.target_kind == "labels":
            y = predictions.labels()[y]
        options: dict[str, Any] = {"rng": self.rng, "progress": False, **self.test_options}
        return calibration_test(y, predictions, kernel=self.kernel, **options).pvalue

    def _all(self, name: str) -> torch.Tensor:
        """All of a state: torchmetrics leaves one tensor where it gathered those of several processes."""
        if hasattr(self, "gathered"):
            return self.gathered(name)
        state = getattr(self, name)
        return state if isinstance(state, torch.Tensor) else torch.cat(list(state))

    def merge_state(self, incoming_state: Any) -> None:
        """Add the batches of another metric, or of a dictionary of states."""
        if isinstance(incoming_state, CalibrationMetric) and incoming_state._template is not None:
            self._take_in(incoming_state._template)
        super().merge_state(incoming_state)


# -- predictions as matrices ------------------------------------------------------------------


def _template_of(predictions: Predictions) -> Predictions:
    """One prediction of the batch, in NumPy: it knows the family and what its predictions share."""
    if predictions.target_kind == "objects":
        raise TypeError("Samples of objects cannot be kept as tensors; gather them and call wellcal.skce")
    return in_numpy(predictions[:1])


def _check_fits(template: Predictions, earlier: Predictions) -> None:
    """Reject templates of different families, or that differ in what the predictions of a family share."""
    concatenate([earlier, template], ["earlier updates", "this update"], "updates")
    widths = [_to_rows(one, None).shape[1] for one in (earlier, template)]
    if widths[0] != widths[1]:
        raise ValueError(
            f"updates must have predictions of {widths[0]} numbers each, found {widths[1]}; "
            "give samples of equal size"
        )


def _to_rows(predictions: Predictions, device: torch.device | None) -> torch.Tensor:
    """Parameters of all predictions, ``(n, width)``, in double precision and without gradients."""
    parts: list[torch.Tensor] = []

    def collect(array: Any) -> Any:
        tensor = array if isinstance(array, torch.Tensor) else torch.as_tensor(to_numpy(array).copy())
        parts.append(tensor.detach().to(dtype=torch.float64, device=device).reshape(len(predictions), -1))
        return array

    predictions.map_arrays(collect)
    return torch.cat(parts, dim=1)


def _from_rows(rows: torch.Tensor, template: Predictions) -> Predictions:
    """The batch whose parameters `_to_rows` wrote."""
    start = 0

    def read(array: Any) -> Any:
        nonlocal start
        shape = tuple(int(k) for k in array.shape[1:])
        stop = start + math.prod(shape)
        part = rows[:, start:stop].reshape(rows.shape[0], *shape)
        start = stop
        return part if array.dtype.kind == "f" else part.to(torch.int64)

    return template.map_arrays(read)
