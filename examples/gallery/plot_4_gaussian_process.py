"""
A Gaussian process
==================

What households spend on food, by income: Engel's data of 1857, which come with
statsmodels. A Gaussian process with one noise level for all is wrong about most
households, and nearly right on average.
"""

# %%
# The model
# ---------
import numpy as np
import statsmodels.api as sm
from sklearn.gaussian_process import GaussianProcessRegressor
from sklearn.gaussian_process.kernels import RBF, ConstantKernel, WhiteKernel
from sklearn.model_selection import train_test_split

import wellcal as wc

households = sm.datasets.engel.load_pandas().data
income, food = households[["income"]].to_numpy(), households["foodexp"].to_numpy()
x_train, x_test, y_train, y = train_test_split(income, food, test_size=0.5, random_state=0)


def gaussian_process(x_train, y_train, x_test):
    """Predicted means and standard deviations of new outcomes, noise included."""
    kernel = ConstantKernel(4.0) * RBF(2.0) + WhiteKernel(0.1)
    centre, unit = x_train.mean(), x_train.std()
    model = GaussianProcessRegressor(kernel, normalize_y=True)
    model.fit((x_train - centre) / unit, y_train)
    return model.predict((x_test - centre) / unit, return_std=True)


pred = wc.Normal(*gaussian_process(x_train, y_train, x_test))

# %%
# The verdict
# -----------
# If all households are counted, intervals of 80% and more cover what they promise, and
# those of 50% cover more than that:
wc.interval_coverage(y, pred)

# %%
# But calibration is asked for each prediction, not on average:
tested = wc.calibration_test(y, pred, rng=0)
tested

# %%
# Where?
# ------
# Residuals in units of the predicted spread. The three lines should stay at the
# heights that are marked on the right. They open like a fan: poor households vary less
# than predicted, rich ones more.
wc.displays.ResidualDisplay.from_predictions(y, pred, against="mean", name="Gaussian process", result=tested)

# %%
# The witness looks at all groups of cases, and says in sentences which of them err.
where = wc.witness(y, pred, rng=0)
print(where)
wc.displays.WitnessDisplay.from_result(where)

# %%
# Mend the model
# --------------
# Spending varies in proportion to itself. The same process on logarithms predicts
# log-normal distributions: better by far, and not yet perfect.
logs = gaussian_process(np.log(x_train), np.log(y_train), np.log(x_test))
mended = wc.LogNormal(*logs)
after = wc.calibration_test(y, mended, rng=0)
print(after.verdict)
print(f"CRPS {float(wc.crps(y, pred)):.1f} before, {float(wc.crps(y, mended)):.1f} after")
wc.displays.ResidualDisplay.from_predictions(y, mended, against="mean", name="on logarithms", result=after)
