"""
Quantiles of gradient boosting
==============================

Gradient boosting with the pinball loss predicts quantiles, one model for each
level. Do the intervals between them cover what they promise? The data are 442
patients with diabetes, which come with scikit-learn.
"""

# %%
# Five models, five levels
# ------------------------
# Levels that are fitted one by one may cross: ``sort=True`` puts them in order.
import numpy as np
from sklearn.datasets import load_diabetes
from sklearn.ensemble import GradientBoostingRegressor
from sklearn.model_selection import train_test_split

import wellcal as wc

x, progression = load_diabetes(return_X_y=True)
x_train, x_test, y_train, y = train_test_split(x, progression, test_size=0.5, random_state=0)
levels = [0.05, 0.25, 0.5, 0.75, 0.95]


def quantiles(trees):
    """One model for each level."""
    values = []
    for level in levels:
        model = GradientBoostingRegressor(loss="quantile", alpha=level, n_estimators=trees, random_state=0)
        values.append(model.fit(x_train, y_train).predict(x_test))
    return wc.Quantiles(levels, np.stack(values, axis=1), sort=True)


many, few = quantiles(100), quantiles(15)

# %%
# The verdict
# -----------
# With 100 trees for each level, the default, quantiles follow the training cases too
# closely: intervals are too short for new ones.
tested = wc.calibration_test(y, many, rng=0)
tested

# %%
wc.interval_coverage(y, many)

# %%
# What it looks like
# ------------------
# Below each level there should be as many outcomes as it says.
display = wc.displays.QuantileCalibrationDisplay.from_predictions(y, many, name="100 trees")
wc.displays.QuantileCalibrationDisplay.from_predictions(y, few, name="15 trees", ax=display.ax_)

# %%
# Which of the two is better?
# ---------------------------
# On the same cases, with intervals for the differences. 15 trees pass the test and
# 100 do not; 221 cases are too few to say that one is better than the other.
compared = wc.compare(y, {"100 trees": many, "15 trees": few}, rng=0)
print(compared)
wc.displays.ComparisonDisplay.from_result(compared, measure="centre and spread")
