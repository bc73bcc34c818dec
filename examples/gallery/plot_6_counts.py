"""
Counts with statsmodels
=======================

How often people see a doctor: the RAND health insurance experiment, which comes
with statsmodels. Poisson regression is the first thing that one tries, and visits
are far more dispersed than it allows.

A row of these data is a year of a person, below the years before it, from which it
differs in the visits alone. Years of one person are not independent: one of each is
taken here, so that nobody is both in the training data and in those that judge.
"""

# %%
# Two regressions
# ---------------
import numpy as np
import statsmodels.api as sm

import wellcal as wc

data = sm.datasets.randhie.load_pandas()
first_years = np.flatnonzero((data.exog != data.exog.shift()).any(axis=1))
rows = np.random.default_rng(0).permutation(first_years)[:2600]
x, visits = sm.add_constant(data.exog).iloc[rows], data.endog.iloc[rows]
x_train, x_test, y_train, y = x[:2000], x[2000:], visits[:2000], visits[2000:]

poisson = sm.Poisson(y_train, x_train).fit(disp=False)
negative = sm.NegativeBinomial(y_train, x_train).fit(disp=False, maxiter=200)
pred = {
    "Poisson": wc.as_predictions(poisson, x_test),
    "negative binomial": wc.as_predictions(negative, x_test),
}

# %%
# The verdict
# -----------
# Rows of pandas meet their targets by label, whatever their order. 600 cases keep this
# page quick. With 2,000 the negative binomial model is rejected too. A test that finds
# nothing has not shown that there is nothing.
results = {name: wc.calibration_test(y, p, rng=0) for name, p in pred.items()}
for name, result in results.items():
    print(f"{name}: {result.verdict}\n")

# %%
# What it looks like
# ------------------
# Where counts fall within their predictions. A count takes a whole piece of its
# prediction, and gets a random place in it; places of a calibrated model are uniform.
ax = None
for name, p in pred.items():
    display = wc.displays.PITDisplay.from_predictions(y, p, name=name, result=results[name], ax=ax, rng=0)
    ax = display.ax_

# %%
# Which is better, and by how much?
# ---------------------------------
compared = wc.compare(y, pred, rng=0)
print(compared)
wc.displays.ComparisonDisplay.from_result(compared, measure="CRPS")

# %%
# Is the better one right for everybody?
# --------------------------------------
# Segments that are named are looked at beside groups of similar predictions. Those of
# variables that a model has not used ask for more than calibration does.
segments = {
    "poor health": x_test["hlthp"].to_numpy() > 0,
    "many diseases": x_test["disea"].to_numpy() > 15,
}
wc.witness(y, pred["negative binomial"], segments=segments, rng=0)
