"""
A PyTorch network
=================

A small network learns to read handwritten digits (1,797 images, which come with
scikit-learn) until it makes no more errors in training. By then it is surer of
itself than it should be. Tensors go in as they are.
"""

# %%
# Train it
# --------
import torch
from sklearn.datasets import load_digits
from sklearn.model_selection import train_test_split

import wellcal as wc

images, digits = load_digits(return_X_y=True)
x_train, x_rest, y_train, y_rest = train_test_split(
    torch.tensor(images / 16, dtype=torch.float32),
    torch.tensor(digits),
    train_size=250,
    random_state=0,
)
x_valid, y_valid, x_test, y = x_rest[:500], y_rest[:500], x_rest[500:], y_rest[500:]

torch.manual_seed(0)
network = torch.nn.Sequential(torch.nn.Linear(64, 64), torch.nn.ReLU(), torch.nn.Linear(64, 10))
optimiser = torch.optim.Adam(network.parameters(), lr=0.01)
for _ in range(300):
    optimiser.zero_grad()
    torch.nn.functional.cross_entropy(network(x_train), y_train).backward()
    optimiser.step()


@torch.no_grad()
def predict(x):
    """Probabilities of the ten digits."""
    return wc.Categorical(torch.softmax(network(x).double(), dim=1))


pred = predict(x_test)

# %%
# The verdict
# -----------
tested = wc.calibration_test(y, pred, rng=0)
tested

# %%
# What it looks like
# ------------------
# Ten probabilities for each image are reduced to one question: is the likeliest digit
# right as often as the network says?
wc.displays.ReliabilityDisplay.from_predictions(y, pred, name="network", result=tested, rng=0)

# %%
# Mend it
# -------
# Temperature scaling, on images that were used neither for training nor for this test.
scaling = wc.TemperatureScaling().fit(y_valid, predict(x_valid))
print(scaling)
mended = scaling.transform(pred)
print(wc.calibration_test(y, mended, rng=0).verdict)
wc.displays.ReliabilityDisplay.from_predictions(y, mended, name="scaled", test=True, rng=0)

# %%
# As a metric, as a loss
# ----------------------
# :class:`wellcal.torch.CalibrationMetric` collects batches, as metrics of torchmetrics
# do. :class:`wellcal.torch.SKCELoss` is a loss: :doc:`/training` says what it is worth.
from wellcal.torch import CalibrationMetric

metric = CalibrationMetric("pvalue")
for batch in torch.arange(len(y)).split(256):
    metric.update(torch.softmax(network(x_test[batch]), dim=1), y[batch])
print(f"p = {float(metric.compute()):.3g}")
