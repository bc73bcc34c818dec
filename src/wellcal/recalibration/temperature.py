"""Temperature scaling of predictions, family by family (paper, appendix "Temperature scaling")."""

from __future__ import annotations

from typing import Any

from wellcal._arrays.checks import positive_number, same_library
from wellcal._arrays.namespaces import is_array, is_jax, namespace
from wellcal.predictions import Mixture, Predictions
from wellcal.predictions.adapters import converted_argument
from wellcal.predictions.temperatures import Temperature, check_supported, tempered


def apply_temperature(pred: object, temperature: Temperature) -> Any:
    r"""Return predictions at another temperature: densities :math:`q \propto p^{1/T}`, family by family.

    ======================  ===================================  =============================  =========
    family                  reference measure                    what becomes of parameters     unchanged
    ======================  ===================================  =============================  =========
    Bernoulli               counting                             logit / T                      mode
    Categorical             counting                             softmax(log(probs) / T)        mode
    Normal, DiagonalNormal  Lebesgue                             scale * T^(1/2)                mean
    MultivariateNormal      Lebesgue                             cov * T                        mean
    Laplace                 Lebesgue                             scale * T                      mean
    PowerExponential        Lebesgue                             scale * T^(1/shape)            mean
    ... of vectors          Lebesgue                             cov * T^(2/shape)              mean
    Beta                    :math:`dx / (x (1 - x))`             a / T, b / T                   mean
    Dirichlet               :math:`dx / \prod_i x_i`             concentration / T              mean
    Mixture                 that of each of its components       those of its components        see Notes
    ======================  ===================================  =============================  =========

    Families of your own are scaled by the rule that :func:`wellcal.extend.temperature` registered for them.

    Temperatures above 1 make predictions less certain, those below 1 more certain.

    Parameters
    ----------
    pred
        Predictions of one of these families, or anything that :func:`wellcal.as_predictions` understands.
    temperature
        T, a positive number, or an array of one number through which gradients flow.

    Returns
    -------
    Predictions
        Of the same family, in the same array library.

    Notes
    -----
    A power of a mixture's density is no mixture of known components. Each component is scaled by itself,
    and the weights stay: that is not temperature scaling of the mixture, and what the scaling of components
    leaves unchanged (their means, for all families but classes) is unchanged in the mixture. For an ensemble
    of classifiers, ``wc.Categorical(mixture.class_probs())`` can be scaled as a whole.

    The mean of a Categorical with a support does change: it is the order of the probabilities that stays.
    The paper's `shape` of a power exponential distribution is half of the one here, and its reference
    measure for Dirichlet distributions is meant on the simplex, in any d - 1 of the coordinates. Densities
    reported by `log_prob` are with respect to Lebesgue measure throughout; the reference measure decides
    only what becomes of the parameters.

    Other families have no such closed form, or none at all temperatures: powers of a Poisson distribution
    are not Poisson distributions, and those of a heavy tail cannot be normalised.

    References
    ----------
    Widmann, Lindsten, Zachariah (2021), appendix "Temperature scaling"; Guo, Pleiss, Sun, Weinberger (2017),
    "On calibration of modern neural networks".

    Examples
    --------
    >>> import numpy as np, wellcal as wc
    >>> apply_temperature(wc.Normal(np.zeros(2), np.array([1.0, 2.0])), 4.0).scale
    array([2., 4.])
    >>> apply_temperature(wc.Categorical(np.array([[0.9, 0.1]])), 2.0).probs
    array([[0.75, 0.25]])
    """
    predictions = converted_argument(pred, "pred")
    check_supported(predictions)
    T = positive_number(temperature, "temperature")
    if is_array(T) and not is_jax(namespace(T)):  # JAX takes NumPy's arrays as its own
        same_library(pred=predictions.like, temperature=T)
    return tempered(predictions, T)


def family_name(predictions: Predictions) -> str:
    """Return the name of a family; of mixtures, with the families of the components."""
    if not isinstance(predictions, Mixture):
        return type(predictions).__name__
    names = sorted({type(part).__name__ for part in predictions.components})
    return f"Mixture of {', '.join(names)}"
