"""Temperature scaling as an object that is fitted, applied, saved and loaded."""

from __future__ import annotations

import json
import os
from typing import Any, Self

from wellcal._arrays.checks import described, flag, one_of, positive_number
from wellcal._arrays.equality import ByState
from wellcal._arrays.files import check_suffix, write_whole
from wellcal._arrays.namespaces import is_traced, to_numpy
from wellcal._arrays.progress import Listener, reported
from wellcal._arrays.schema import (
    Schema,
    listed,
    mapping,
    number,
    optional,
    read_json,
    reading,
    short,
    text,
    whole,
    word,
)
from wellcal._arrays.warnings import advise
from wellcal.engines import Engine
from wellcal.expectations.lowering import Lowering
from wellcal.kernels.base import Kernel
from wellcal.kernels.serialization import kernel_from_dict, kernel_to_dict
from wellcal.measures import presentation
from wellcal.measures.presentation import Shown
from wellcal.predictions import Mixture
from wellcal.predictions.adapters import converted_argument
from wellcal.predictions.base import check_inputs
from wellcal.predictions.batches import in_numpy
from wellcal.predictions.temperatures import check_supported
from wellcal.recalibration.objectives import Fitted, fit_calibration, fit_likelihood
from wellcal.recalibration.temperature import apply_temperature, family_name

OBJECTIVES = ("nll", "skce")
_KIND, _VERSION = "wellcal.TemperatureScaling", 1
_WHAT = "a stored TemperatureScaling"


class NotFittedError(ValueError, AttributeError):
    """What is asked for exists only after `fit`.

    Examples
    --------
    >>> import numpy as np, wellcal as wc
    >>> TemperatureScaling().transform(wc.Bernoulli(np.array([0.2])))
    Traceback (most recent call last):
    wellcal.recalibration.recalibrator.NotFittedError: this TemperatureScaling has no temperature ...
    """


class TemperatureScaling(Shown, ByState):
    """Recalibration of predictions by one number, the temperature.

    Densities p become q proportional to p^(1/T), with one T for all predictions:
    :func:`wellcal.recalibration.apply_temperature` lists the families. T is chosen on held-out data, by
    likelihood or by calibration error. Means of predicted numbers, and most probable classes,
    do not change.

    Parameters
    ----------
    bounds
        Lowest and highest temperature that are considered.

    Attributes
    ----------
    temperature_
        The temperature found.
    objective_
        "nll" or "skce".
    before_, after_
        The objective on the fitting data at temperature 1 and at `temperature_`: never worse. Their
        difference says nothing about other data; :func:`wellcal.recalibration.cross_fit` does.
    family_
        Family of the predictions; of mixtures, with the families of components.
    by_component_
        Whether they are mixtures, each component of which is scaled by itself.
    n_samples_
        Number of cases.
    kernel_
        Kernel of the objective "skce", else None.
    fitting_cases
        Targets and predictions that it was fitted to, for pictures; None before, and where it was stored.

    Notes
    -----
    The mean negative log-likelihood is convex in 1/T for each family but mixtures, so that its minimum is
    found whatever T is.

    The objective "skce" is the unbiased estimate with a kernel that is held fixed while T varies, and whose
    factor on predictions sees the predictions as they were given. Scaling is one to one, so that nothing is
    lost; with a kernel on scaled predictions, T to infinity would look calibrated for balanced classes, all
    predictions being uniform then. `before_` and `after_` are values of :func:`wellcal.skce` for the
    predictions given and scaled. Where the latter is not smaller, T stays 1.

    One temperature mends predictions that are too certain, or not certain enough, all by the same amount. It
    cannot move a mean, and trades classes off against each other.

    Choose T on data that the model was not trained on, and test calibration on yet other data.

    References
    ----------
    Widmann, Lindsten, Zachariah (2021), appendix "Temperature scaling"; Guo, Pleiss, Sun, Weinberger (2017).

    Examples
    --------
    >>> import numpy as np, wellcal as wc
    >>> rng = np.random.default_rng(0)
    >>> mu = rng.normal(size=500)
    >>> y = rng.normal(mu, 1.0)
    >>> overconfident = wc.Normal(mu, 0.5 * np.ones(500))
    >>> scaling = TemperatureScaling().fit(y, overconfident)
    >>> round(scaling.temperature_, 1)
    3.5
    >>> scaling.transform(overconfident).scale[:2].round(2)
    array([0.94, 0.94])
    """

    def __init__(self, *, bounds: tuple[float, float] = (1e-4, 1e4)) -> None:
        self.bounds = bounds

    # -- fitting -----------------------------------------------------------------------------

    @reported
    def fit(
        self,
        y: object,
        pred: object,
        objective: str = "nll",
        *,
        kernel: Kernel | None = None,
        estimator: str = "unbiased",
        block_size: Any = None,
        expectations: str | Lowering = "auto",
        engine: str | Engine = "auto",
        progress: bool | Listener | None = None,
    ) -> Self:
        """Find the temperature.

        Parameters
        ----------
        y
            Observed targets, one for each prediction.
        pred
            Predictions of a family that :func:`wellcal.recalibration.apply_temperature` lists, or a mixture
            of such.
        objective
            "nll": least mean negative log-likelihood; "skce": least squared kernel calibration error.
        kernel, estimator, block_size, expectations, engine
            For "skce", as in :func:`wellcal.skce`. None takes the default kernel of the predictions given.
            The biased estimator is not offered: its bias depends on the temperature.
        progress
            As in :func:`wellcal.skce`.

        Returns
        -------
        self

        Notes
        -----
        Arithmetic is NumPy's in double precision, wherever the arrays come from. "nll" costs O(n) for each of
        about 60 temperatures, and for classes, by Newton's method, of about 10; "skce" about 20 times what
        :func:`wellcal.skce` costs, for which ``estimator="block"`` is linear in n, and a
        :class:`wellcal.Lowering` with fewer nodes quicker where expectations are numerical.
        """
        bounds = _checked_bounds(self.bounds)
        _check_options(objective, kernel, estimator, block_size)
        targets, predictions = numpy_data(y, pred)
        if objective == "nll":
            found = fit_likelihood(targets, predictions, bounds)
        else:
            options: dict[str, Any] = {"estimator": estimator, "block_size": block_size}
            found = fit_calibration(
                targets,
                predictions,
                bounds,
                kernel=kernel,
                expectations=expectations,
                engine=engine,
                **options,
            )
        _warn_at_bound(found, objective)
        self.temperature_ = found.temperature
        self.objective_ = objective
        self.before_, self.after_ = found.before, found.after
        self.kernel_ = found.kernel
        self.family_ = family_name(predictions)
        self.by_component_ = isinstance(predictions, Mixture)
        self.n_samples_ = len(predictions)
        self._cases = targets, predictions
        self.__dict__.pop("_pictures", None)  # of an earlier fit
        return self

    @property
    def fitting_cases(self) -> tuple[Any, Any] | None:
        """Targets and predictions that it was fitted to, in NumPy, for pictures; they are not stored."""
        return self.__dict__.get("_cases")

    def __getstate__(self) -> dict[str, Any]:
        """What travels to other processes, and into files: no cases."""
        return {name: x for name, x in self.__dict__.items() if name not in ("_cases", "_pictures")}

    def transform(self, pred: object) -> Any:
        """Scaled predictions, of the same family and in the same array library, with gradients.

        Parameters
        ----------
        pred
            Predictions of the family that the temperature was fitted to.

        Returns
        -------
        Predictions
        """
        self._check_fitted("transform")
        predictions = converted_argument(pred, "pred")
        check_supported(predictions)
        if family_name(predictions) != self.family_:
            raise TypeError(
                f"pred: the temperature was fitted to {self.family_}, found {family_name(predictions)}; "
                "fit a TemperatureScaling for each family"
            )
        return apply_temperature(predictions, self.temperature_)

    def __sklearn_is_fitted__(self) -> bool:
        return hasattr(self, "temperature_")

    def _check_fitted(self, what: str) -> None:
        if not self.__sklearn_is_fitted__():
            raise NotFittedError(
                f"this TemperatureScaling has no temperature yet: call fit(y, pred) before {what}"
            )

    # -- parameters, in the way of scikit-learn ----------------------------------------------

    def get_params(self, deep: bool = True) -> dict[str, Any]:
        """Parameters of the constructor."""
        return {"bounds": self.bounds}

    def set_params(self, **params: Any) -> Self:
        """Change parameters of the constructor."""
        for name, value in params.items():
            if name != "bounds":
                raise ValueError(f"TemperatureScaling has no parameter {name!r}; it has bounds")
            self.bounds = value
        return self

    # -- comparison and storage ----------------------------------------------------------------

    def compared(self) -> dict[str, Any]:
        """What decides whether two scalings are equal: their bounds, and all that was found."""
        if not self.__sklearn_is_fitted__():
            return {"bounds": self.bounds}
        return {**self.to_dict(), "kernel": self.kernel_}

    def to_dict(self) -> dict[str, Any]:
        """The fitted scaling as plain values, ready for JSON."""
        self._check_fitted("saving")
        return {
            "kind": _KIND,
            "version": _VERSION,
            "bounds": list(self.bounds),
            "temperature": self.temperature_,
            "objective": self.objective_,
            "before": presentation.plain(self.before_),
            "after": presentation.plain(self.after_),
            "family": self.family_,
            "by_component": self.by_component_,
            "n_samples": self.n_samples_,
            "kernel": None if self.kernel_ is None else kernel_to_dict(self.kernel_),
        }

    @classmethod
    def from_dict(cls, plain: dict[str, Any]) -> Self:
        """The scaling again. A kernel that holds a function comes back as None."""
        with reading(_WHAT):
            return cls._read(plain)

    @classmethod
    def _read(cls, plain: Any) -> Self:
        given = mapping(plain, "it")
        if given.get("kind") != _KIND:
            raise ValueError(f"kind must be {_KIND!r}, found {short(given.get('kind'))}")
        if given.get("version") != _VERSION:
            raise ValueError(
                f"it was stored in version {short(given.get('version'))} of the format, and this wellcal "
                f"reads version {_VERSION}"
            )
        found = _STORED(given)
        scaling = cls(bounds=_checked_bounds(found["bounds"]))
        scaling.temperature_ = float(found["temperature"])
        scaling.objective_ = found["objective"]
        scaling.before_, scaling.after_ = found["before"], found["after"]
        scaling.family_, scaling.n_samples_ = found["family"], found["n_samples"]
        scaling.by_component_ = found["by_component"]
        scaling.kernel_ = found["kernel"]
        return scaling

    def save(self, path: str | os.PathLike[str]) -> None:
        """Write JSON to `path`: the file is there in full or not at all."""
        check_suffix(path, "a recalibrator", ".json", "")
        write_whole(path, json.dumps(self.to_dict(), indent=2, allow_nan=False) + "\n")

    @classmethod
    def load(cls, path: str | os.PathLike[str]) -> Self:
        """Read what `save` wrote."""
        with reading(_WHAT, os.fspath(path)):
            return cls._read(read_json(path))

    # -- for people --------------------------------------------------------------------------

    def _headline(self) -> str:
        if not self.__sklearn_is_fitted__():
            return f"TemperatureScaling(bounds={self.bounds})"
        how = ", each component by itself" if self.by_component_ else ""
        return f"TemperatureScaling: T = {self.temperature_:.4g} for {self.family_}{how}"

    def _rows(self) -> list[presentation.Row]:
        if not self.__sklearn_is_fitted__():
            return []
        certain = "less" if self.temperature_ > 1.0 else "more"
        name = {"nll": "NLL", "skce": "SKCE"}[self.objective_]
        return [
            ("meaning", "unchanged" if self.temperature_ == 1.0 else f"predictions become {certain} certain"),
            (name, f"{self.before_:.6g} before, {self.after_:.6g} after, on the cases it was fitted to"),
            ("cases", f"{self.n_samples_:,}"),
        ]


def _checked_bounds(bounds: Any) -> tuple[float, float]:
    try:
        low, high = bounds
    except Exception:
        raise ValueError(
            f"bounds must be two temperatures, lowest and highest, found {described(bounds)}"
        ) from None
    low, high = (float(positive_number(bound, "bounds")) for bound in (low, high))
    if not low < high:
        raise ValueError(
            f"bounds must be the lowest and then the highest temperature, found {described(bounds)}"
        )
    return low, high


def _check_options(objective: object, kernel: object, estimator: object, block_size: object) -> None:
    one_of(objective, "objective", OBJECTIVES)
    one_of(estimator, "estimator", ("unbiased", "block"))
    if objective == "nll" and (kernel is not None or estimator != "unbiased" or block_size is not None):
        raise ValueError('kernel, estimator and block_size are for objective="skce" only')
    if estimator != "block" and block_size is not None:
        raise ValueError(f'block_size is for estimator="block" only, found estimator={estimator!r}')


def numpy_data(y: object, pred: object) -> tuple[Any, Any]:
    """Checked targets (labels stay labels) and predictions in NumPy and double precision."""
    _, predictions = check_inputs(y, pred)
    check_supported(predictions)
    if is_traced(y, predictions.like):
        raise TypeError("fit looks at values and cannot be traced: call it outside of jax.jit and jax.grad")
    return to_numpy(predictions.align(y)), in_numpy(predictions)


def _warn_at_bound(found: Fitted, objective: str) -> None:
    if found.at_bound:
        advise(
            f"the objective {objective!r} still falls at temperature {found.temperature:.3g}, an end of "
            "bounds: the fitting data may be too few, or need another remedy than a temperature"
        )


_STORED = Schema(
    {
        "kind": text,
        "version": whole(),
        "bounds": listed(positive_number, length=2),
        "temperature": positive_number,
        "objective": word(*OBJECTIVES),
        "before": number(infinite=True),
        "after": number(infinite=True),
        "family": text,
        "by_component": flag,
        "n_samples": whole(least=1),
        "kernel": optional(kernel_from_dict),
    },
    {"by_component": False},
)
