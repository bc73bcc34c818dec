"""
An ensemble
===========

Five networks, each trained on its own resample of the patients, disagree more where
there are fewer data. A mixture of their predictions knows that; a single network
does not.
"""

# %%
# Five networks
# -------------
import numpy as np
from sklearn.datasets import load_diabetes
from sklearn.model_selection import train_test_split
from sklearn.neural_network import MLPRegressor
from sklearn.preprocessing import StandardScaler

import wellcal as wc

x, progression = load_diabetes(return_X_y=True)
x_train, x_test, y_train, y = train_test_split(x, progression, test_size=0.5, random_state=0)
scaler, unit = StandardScaler().fit(x_train), y_train.std()


def member(seed):
    """Predicted means, with the spread of the network's errors in training."""
    rows = np.random.default_rng(seed).integers(len(y_train), size=len(y_train))
    inside, targets = scaler.transform(x_train[rows]), y_train[rows]
    network = MLPRegressor(
        hidden_layer_sizes=(30,), solver="lbfgs", alpha=30.0, max_iter=2000, random_state=seed
    )
    network.fit(inside, targets / unit)
    spread = np.std(targets - unit * network.predict(inside))
    mean = unit * network.predict(scaler.transform(x_test))
    return wc.Normal(mean, np.full(len(y), spread))


members = [member(seed) for seed in range(5)]
models = {"one network": members[0], "ensemble of five": wc.Mixture(members)}

# %%
# The verdict
# -----------
# Errors in training are smaller than those on new cases, so that a network that goes by
# them is too sure. Of the ensemble this is not shown. (The penalty of the networks,
# ``alpha``, was chosen for the sake of this page: with less of it both are too sure,
# and both tests say so.)
results = {name: wc.calibration_test(y, p, rng=0) for name, p in models.items()}
for name, result in results.items():
    print(f"{name}: {result.verdict}\n")

# %%
# What it looks like
# ------------------
ax = None
for name, p in models.items():
    display = wc.displays.CoverageDisplay.from_predictions(y, p, name=name, result=results[name], ax=ax)
    ax = display.ax_

# %%
# Which is better, and by how much?
# ---------------------------------
# The ensemble has the better scores. That it is better calibrated than the network is not
# shown by 221 cases: one test that rejects and one that does not are no comparison.
compared = wc.compare(y, models, rng=0)
print(compared)
wc.displays.ComparisonDisplay.from_result(compared)
