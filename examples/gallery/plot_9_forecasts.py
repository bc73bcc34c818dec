"""
Forecasts in time
=================

Sunspots have been counted since 1700. An autoregression, fitted to the years before
1900, forecasts each later year from the years before it. A monitor bets against it,
year by year, and may be looked at after every one of them.
"""

# %%
# One year ahead
# --------------
import numpy as np
import statsmodels.api as sm
from statsmodels.tsa.ar_model import AutoReg

import wellcal as wc

sunspots = sm.datasets.sunspots.load_pandas().data
year, count = sunspots["YEAR"].to_numpy(), sunspots["SUNACTIVITY"].to_numpy()
later = year >= 1900


def forecasts(series, lags=9):
    """Normal forecasts of the later years, one year ahead of each."""
    fitted = AutoReg(series[~later], lags).fit()
    past = np.lib.stride_tricks.sliding_window_view(series, lags)[:-1, ::-1]
    mean = fitted.params[0] + past @ fitted.params[1:]
    return wc.Normal(mean[later[lags:]], np.sqrt(fitted.sigma2))


y, pred = count[later], forecasts(count)

# %%
# Watch it
# --------
# Each forecast knows the past, and so does each bet. For a model that keeps its
# promises the chance that the evidence ever reaches 20 is at most 1 in 20, however
# long it is watched.
monitor = wc.Monitor(rng=0)
monitor.update(y, pred)

# %%
change = monitor.change(rng=0)
print(change)
wc.displays.MonitorDisplay.from_result(monitor, change=change)

# %%
# What is wrong?
# --------------
# Errors are larger in years with many sunspots, and a constant spread does not know
# that.
wc.displays.ResidualDisplay.from_predictions(y, pred, against="mean", name="autoregression")

# %%
# Mend the model
# --------------
# The square root of a count varies about equally whatever the count is. Forecasts of
# the root can be watched as they are: calibration does not change with the scale on
# which targets and predictions are both looked at.
better = wc.Monitor(rng=0)
print(better.update(np.sqrt(y), forecasts(np.sqrt(count))))
wc.displays.MonitorDisplay.from_result(better)
