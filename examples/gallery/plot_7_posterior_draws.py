"""
Posterior draws
===============

A Bayesian regression gives draws. Draws of the mean are not draws of the outcome:
forgetting the noise is a common mistake, and no plot of the posterior shows it. The
data are 442 patients with diabetes, which come with scikit-learn.
"""

# %%
# A Gibbs sampler
# ---------------
# We model the square root of the progression. (Without the root, and with a wider prior,
# even the model with noise is rejected, with p about 0.03: its spread does not grow with
# the mean.) There are four chains of 25 draws, as PyMC, Stan or NumPyro would give them;
# one draw in ten is kept, so that they are close to independent.
import numpy as np
from sklearn.datasets import load_diabetes
from sklearn.model_selection import train_test_split

import wellcal as wc

x, progression = load_diabetes(return_X_y=True)
x = np.column_stack([np.ones(len(x)), x / x.std(axis=0)])
x_train, x_test, y_train, y = train_test_split(x, np.sqrt(progression), test_size=0.5, random_state=0)


def chain(rng, draws=25, thin=10, burn_in=50):
    """Coefficients and the variance of the noise, each given the other."""
    variance, kept = y_train.var(), []
    for step in range(burn_in + thin * draws):
        precision = x_train.T @ x_train / variance + np.eye(x.shape[1]) / 1e2
        root = np.linalg.cholesky(np.linalg.inv(precision))
        mean = root @ root.T @ x_train.T @ y_train / variance
        coefficients = mean + root @ rng.normal(size=x.shape[1])
        squares = np.sum((y_train - x_train @ coefficients) ** 2)
        variance = 0.5 * squares / rng.gamma(0.5 * len(y_train))
        if step >= burn_in and step % thin == 0:
            kept.append((coefficients, variance))
    return kept


rng = np.random.default_rng(0)
posterior = [chain(rng) for _ in range(4)]

# %%
# Two sets of draws
# -----------------
# Of shape (chain, draw, case); ``axis`` says which axes are draws.
mean = np.array([[x_test @ c for c, _ in draws] for draws in posterior])
noise = np.array([[v**0.5 for _, v in draws] for draws in posterior])[:, :, None]
outcome = rng.normal(mean, noise)
print(outcome.shape)

of_mean = wc.Samples(mean, axis=(0, 1))
of_outcome = wc.Samples(outcome, axis=(0, 1))

# %%
# The verdict
# -----------
# If the model is calibrated, a target and its draws are exchangeable, and the test
# uses exactly that.
tested = wc.calibration_test(y, of_mean, rng=0)
tested

# %%
right = wc.calibration_test(y, of_outcome, rng=0)
right

# %%
# Rank histograms
# ---------------
# The rank of each outcome among its draws. Most outcomes lie outside of the draws of
# the mean.
wc.displays.PITDisplay.from_predictions(y, of_mean, name="draws of the mean", result=tested)

# %%
wc.displays.PITDisplay.from_predictions(y, of_outcome, name="draws of the outcome", result=right)
