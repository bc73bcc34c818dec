"""
NGBoost
=======

NGBoost predicts a whole distribution by boosting its parameters along the natural
gradient. Like all boosting it becomes surer of itself with every step. When is it
too sure?
"""

# %%
# Predictions after 50 and after 150 steps
# ----------------------------------------
from ngboost import NGBRegressor
from sklearn.datasets import load_diabetes
from sklearn.model_selection import train_test_split

import wellcal as wc

x, progression = load_diabetes(return_X_y=True)
x_train, x_test, y_train, y = train_test_split(x, progression, test_size=0.5, random_state=0)
model = NGBRegressor(n_estimators=150, learning_rate=0.02, random_state=0, verbose=False)
model.fit(x_train, y_train)


def after(steps):
    """Normal distributions, as the first steps of the model predict them."""
    found = model.pred_dist(x_test, max_iter=steps)
    return wc.Normal(found.loc, found.scale)


early, late = after(50), after(150)

# %%
# The verdict
# -----------
tested = wc.calibration_test(y, late, rng=0)
tested

# %%
# What it looks like
# ------------------
# Outcomes should fall into every part of their predictions equally often. Those of
# the late model fall into the tails too often: its spreads are too small.
wc.displays.PITDisplay.from_predictions(y, late, name="150 steps", result=tested)

# %%
# The same as a difference of distribution functions, which needs no bars, and shows
# both models clearly:
display = wc.displays.PITDisplay.from_predictions(y, late, kind="ecdf", name="150 steps")
wc.displays.PITDisplay.from_predictions(y, early, kind="ecdf", name="50 steps", ax=display.ax_)

# %%
# How many steps?
# ---------------
# CRPS judges calibration and sharpness together, the test calibration alone. Few steps
# leave spreads that are too large for easy cases; more make them too small.
for steps in (25, 50, 100, 150):
    pred = after(steps)
    verdict = wc.calibration_test(y, pred, rng=0).verdict
    print(f"{steps:4d} steps: CRPS {float(wc.crps(y, pred)):.1f}. {verdict}\n")
