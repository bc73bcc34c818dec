"""
A scikit-learn classifier
=========================

Three classifiers say how probable it is that a marriage has seen an affair: a
survey of 6,366 women of 1974, which comes with statsmodels. Half of the cases
train them, the other half asks: of those for which a model said 30%, is it 30%?
"""

# %%
# The models
# ----------
import statsmodels.api as sm
from sklearn.ensemble import RandomForestClassifier
from sklearn.linear_model import LogisticRegression
from sklearn.model_selection import train_test_split
from sklearn.naive_bayes import GaussianNB

import wellcal as wc

survey = sm.datasets.fair.load_pandas().data
x, affair = survey.drop(columns="affairs"), (survey["affairs"] > 0).astype(int)
x_train, x_test, y_train, y = train_test_split(x, affair, test_size=0.5, random_state=0)

models = {
    "logistic regression": LogisticRegression(max_iter=2000),
    "random forest": RandomForestClassifier(n_estimators=100, random_state=0),
    "naive Bayes": GaussianNB(),
}
pred = {name: wc.as_predictions(model.fit(x_train, y_train), x_test) for name, model in models.items()}

# %%
# Is it chance?
# -------------
# p-values are exact, and a verdict says what kind of error was found and how large
# it is. None of the three is perfect; the test is just not sure what is wrong with
# the first, and says "perhaps".
results = {name: wc.calibration_test(y, p, rng=0) for name, p in pred.items()}
for name, result in results.items():
    print(f"{name}: {result.verdict}\n")

# %%
# What it looks like
# ------------------
# What the model said against how often it happened. The points of 95 of 100
# calibrated models all lie in the grey band. The trees of the forest have learnt the
# survey by heart, and its probabilities are too close to 0 and 1.
wc.displays.ReliabilityDisplay.from_predictions(
    y, pred["random forest"], name="random forest", result=results["random forest"], rng=0
)

# %%
# All three on one axes: give the axes of one model to the next.
ax = None
for name, p in pred.items():
    display = wc.displays.ReliabilityDisplay.from_predictions(y, p, name=name, ax=ax, rng=0)
    ax = display.ax_

# %%
# How large is it?
# ----------------
# With thousands of cases nearly every model is rejected. The yardstick says which simple
# error would be as large; the score judges calibration and sharpness together.
for name, result in results.items():
    score = float(wc.brier(y, pred[name]))
    print(f"{name}: Brier score {score:.3f}, {result.yardstick.sentence}")

# %%
# Mend it
# -------
# One number, the temperature, flattens all probabilities. It is found on four fifths
# of the cases and judged on the fifth that it has not seen, five times over.
# For naive Bayes it helps, and is not enough: a bent curve is not mended by one number.
# Isotonic regression, which scikit-learn has, can do more.
from wellcal.recalibration import cross_fit

mended = cross_fit(y, pred["naive Bayes"], rng=0)
print(mended)
wc.displays.RecalibrationDisplay.from_result(mended)
