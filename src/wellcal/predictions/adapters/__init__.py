"""Foreign objects as batches of predictions.

Nothing foreign is imported here: an object of scipy.stats or torch.distributions brings its library along.
"""

from __future__ import annotations

from typing import Any

from wellcal._arrays.namespaces import handed_over
from wellcal.predictions import Predictions
from wellcal.predictions.adapters import arrays, scipy_stats, torch_distributions
from wellcal.predictions.adapters.registry import ADAPTERS, converted, converted_argument
from wellcal.predictions.adapters.scipy_stats import ScipyContinuous

__all__ = ["ADAPTERS", "ScipyContinuous", "as_predictions", "converted_argument"]

# The last is asked first: an array is what remains.
for _recognises, _convert, _kind, _in_lists in (
    (arrays.is_table, arrays.from_probabilities, "probabilities of shape (n,) or (n, C)", False),
    (tuple, arrays.from_pair, "a tuple (mu, sigma)", False),
    (scipy_stats.is_scipy, scipy_stats.from_scipy, "a frozen scipy.stats distribution", True),
    (torch_distributions.is_torch, torch_distributions.from_torch, "a torch.distributions object", True),
    (arrays.is_list_of_objects, arrays.from_list, "a list of single distributions of one family", False),
):
    ADAPTERS.register(_recognises, kind=_kind, in_lists=_in_lists)(_convert)


@handed_over
def as_predictions(obj: object, X: Any = None, /, **roles: Any) -> Predictions:
    """Turn what a model returned into a batch of predictions.

    =========================================  ====================================================
    given                                      becomes
    =========================================  ====================================================
    predictions                                themselves
    probabilities ``(n,)``                     `Bernoulli`
    probabilities ``(n, C)``                   `Categorical`; columns of a data frame name the classes
    ``(mu, sigma)``, both ``(n,)``             `Normal`; a number or 0-d array stands for all rows
    ``(mu, sigma)``, both ``(n, d)``           `DiagonalNormal`
    ``(mu, cov)``, ``(n, d)``, ``(n, d, d)``   `MultivariateNormal`
    ``(mu, cov)``, ``(n, d)``, ``(d, d)``      the same with one covariance for all, where n and d differ
    frozen scipy.stats distribution            its family; any other continuous scalar distribution
                                               becomes `ScipyContinuous`, any other discrete one with a
                                               finite support a `Categorical` over its values
    torch.distributions object                 its family, with gradients to its parameters
    list of single distributions               one batch of their family
    what an adapter of yours recognises        what it makes of it
    =========================================  ====================================================

    Both of scipy.stats' infrastructures are understood, ``stats.norm(mu, sigma)`` and
    ``stats.Normal(mu=mu, sigma=sigma)``. A distribution with scalar parameters is a batch of one, and an
    object that holds one as its attribute `dist`, as NGBoost's do, counts as that. An ensemble is not a list
    but a `Mixture`. Columns and data frames of pandas keep their index, also where they are the `X` of a
    model: see :class:`wellcal.Predictions`. Random variables of the newer infrastructure have none:
    scipy.stats makes arrays of their parameters.

    With `X`, ``as_predictions(model, X)`` is what a fitted model predicts for these cases:

    =========================================  ====================================================
    model                                      becomes
    =========================================  ====================================================
    classifier with `predict_proba`            `Bernoulli` or `Categorical`, with its `classes_`
    regressor whose `predict` takes            `Normal`: Gaussian processes, Bayesian ridge
    `return_std`
    NGBoost, or others with `pred_dist`        the family that it predicts; of a classifier the classes
    fitted results of statsmodels              the family of a generalised linear or count model;
                                               `StudentT` for linear regression; `Bernoulli` or
                                               `Categorical` for Logit, Probit and MNLogit, with the classes
                                               that its targets had; grades for OrderedModel, whose
                                               support are targets that were numbers, and places of
                                               those that were ordered categories
    ``{0.1: low, 0.5: median, 0.9: high}``     `Quantiles`, from a regressor for each level
    list of models                             `Mixture` of what each predicts
    function of `X`, PyTorch module            what its result becomes; a module is given tensors in its
                                               precision and on its device where `X` is another array
    =========================================  ====================================================

    Pipelines and searches of scikit-learn count as the estimator that predicts in them.

    Parameters
    ----------
    obj
        One of the above, with arrays that stay in their library and on their device; or, with a role, a data
        frame of pandas, polars or pyarrow.
    X
        Cases to predict, as the model takes them, where `obj` is a model.
    roles
        Which columns of a data frame are what: exactly one keyword. There is one for each family, named after
        it (`normal`, `student_t`, `negative_binomial`, also for families of your own), and takes a column for
        each parameter, in the order of the constructor or by name; a number stands for all rows.

        ==========================================  ======================================================
        role                                        becomes
        ==========================================  ======================================================
        ``normal=("mu", "sigma")``                  `Normal`; ``{"loc": "mu", "scale": 2.0}`` by name
        ``bernoulli="p"``, ``poisson="rate"``       families of one parameter
        ``probs="p_*"``                             `Categorical`, whose classes are what the star stands for
        ``probs=["cat", "dog"]``                    `Categorical`, whose classes are the names of the columns
        ``samples="draw_0:draw_99"``                `Samples`; all numbers of a range must be there
        ``quantiles="q*"``                          `Quantiles`, with levels from names: q_0.1, q10, q97.5
        ``quantiles={0.1: "low", 0.9: "high"}``     `Quantiles`
        ``diagonal_normal=("mu_*", "sigma_*")``     `DiagonalNormal`; stars that stand for the same belong
                                                    together
        ``multivariate_normal=("mu_*", "cov_*")``   `MultivariateNormal`; entries row by row, or the lower
                                                    triangle
        ``mixture=[{"poisson": "rate"}, ...]``      `Mixture`, of equal weights, or with a column for each:
                                                    ``{"poisson": "rate", "weight": "w"}``
        ==========================================  ======================================================

        :func:`wellcal.guess_roles` proposes a role by the names of columns.

    Examples
    --------
    >>> import numpy as np
    >>> from scipy import stats
    >>> as_predictions(np.array([[0.2, 0.8], [0.6, 0.4], [0.5, 0.5]]))
    <Categorical: 3 predictions>
    >>> as_predictions((np.array([0.0, 1.0]), 0.5))
    <Normal: 2 predictions>
    >>> as_predictions(stats.gamma([1.0, 2.0, 3.0], scale=2.0)).mean()
    array([2., 4., 6.])
    >>> as_predictions([stats.norm(0.0, 1.0), stats.norm(2.0, 0.5)])
    <Normal: 2 predictions>
    >>> import pandas as pd
    >>> frame = pd.DataFrame({"p_cat": [0.2, 0.6], "p_dog": [0.8, 0.4]})
    >>> as_predictions(frame, probs="p_*").labels()
    array(['cat', 'dog'], dtype='<U3')
    >>> from sklearn.linear_model import BayesianRidge
    >>> X = np.arange(6.0)[:, None]
    >>> as_predictions(BayesianRidge().fit(X, [0.1, 1.0, 1.9, 3.2, 3.9, 5.1]), X)
    <Normal: 6 predictions>
    """
    if X is not None:
        if roles:
            raise TypeError(
                f"X and a role were given ({next(iter(roles))}=): X is for models, roles for frames"
            )
        from wellcal.predictions.adapters.models import from_model  # imports all families

        return from_model(obj, X)
    if roles:
        from wellcal.predictions.column_roles import (
            from_columns,  # it needs all families, and is seldom needed
        )

        return from_columns(obj, roles)
    return converted(obj)
