"""Does a calibration error in the loss help? Networks on the Friedman problem, with and without it.

Networks that predict a mean and a standard deviation are trained by the negative log-likelihood (NLL) alone,
by NLL + weight * SKCE, and by NLL on four fifths of the cases followed by temperature scaling on the last
fifth. All are judged on cases that nobody has seen. Needs PyTorch: pip install wellcal[torch]

    python examples/training_with_skce.py              # 10 seeds, about two minutes
    python examples/training_with_skce.py --seeds 2
    python examples/training_with_skce.py --quick      # one seed, 100 cases, 25 steps: a few seconds
    python examples/training_with_skce.py --kernels    # kernels of the loss: of each batch, the first, fixed
"""

import argparse

import numpy as np
import torch
from torch import nn

import wellcal as wc
from wellcal.kernels import ExpDistance, Gaussian, Wasserstein
from wellcal.recalibration import TemperatureScaling
from wellcal.torch import SKCELoss

SETTINGS = {"100 cases": (100, 100), "1000 cases": (1000, 300)}  # training cases, steps of Adam
BATCH, TEST_CASES = 128, 500
# One kernel for all that are compared: its scales are about those of the targets, and of the noise.
KERNEL = ExpDistance(Wasserstein(), lengthscale=5.0) @ Gaussian(1.35)

LOSSES = {"NLL": None, "NLL + 10 SKCE": {"weight": 10.0}, "NLL + 30 SKCE": {"weight": 30.0}}
KERNELS = {
    "NLL": None,
    "of each mini-batch": {"weight": 10.0},
    "of the first one": {"weight": 10.0, "kernel": "first"},
    "fixed": {"weight": 10.0, "kernel": KERNEL},
}


def friedman(rng, n):
    """Friedman (1979): five inputs matter, five do not, and the noise has standard deviation 1."""
    x = rng.uniform(size=(n, 10))
    mean = 10 * np.sin(np.pi * x[:, 0] * x[:, 1]) + 20 * (x[:, 2] - 0.5) ** 2 + 10 * x[:, 3] + 5 * x[:, 4]
    return torch.tensor(x).float(), torch.tensor(mean + rng.normal(size=n)).float()


class Network(nn.Module):
    def __init__(self, y):
        super().__init__()
        self.layers = nn.Sequential(
            nn.Linear(10, 50), nn.ReLU(), nn.Linear(50, 50), nn.ReLU(), nn.Linear(50, 2)
        )
        self.centre, self.unit = y.mean(), y.std()

    def forward(self, x):
        mean, spread = self.layers(x).T
        scale = self.unit * (nn.functional.softplus(spread) + 1e-3)
        return wc.Normal(self.centre + self.unit * mean, scale)


def train(x, y, steps, options, seed):
    torch.manual_seed(seed)
    network, order = Network(y), torch.Generator().manual_seed(seed)
    optimizer = torch.optim.Adam(network.parameters(), lr=3e-3)
    calibration = SKCELoss(**options) if options else None
    for _ in range(steps):
        batch = torch.randperm(len(y), generator=order)[:BATCH]
        pred = network(x[batch])
        loss = -pred.log_prob(y[batch]).mean()
        if calibration:
            loss = loss + calibration(y[batch], pred)
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
    return network


def predictions(network, x):
    with torch.no_grad():
        pred = network(x)
    return wc.Normal(pred.loc.double().numpy(), pred.scale.double().numpy())


def judge(y, pred, seed):
    test = wc.calibration_test(y, pred, rng=seed, n_resamples=199, progress=False)
    return {
        "nll": -float(np.mean(pred.log_prob(y))),
        "mse": float(np.mean((y - pred.mean()) ** 2)),
        "skce": float(wc.skce(y, pred, kernel=KERNEL)),
        "pvalue": test.pvalue,
    }


def one_seed(n, steps, losses, seed, test_cases=TEST_CASES):
    """What each way of training comes to on the same data."""
    rng = np.random.default_rng(seed)
    (x, y), (x_new, y_new) = friedman(rng, n), friedman(rng, test_cases)
    target = y_new.double().numpy()
    found = {}
    for name, options in losses.items():
        found[name] = judge(target, predictions(train(x, y, steps, options, seed), x_new), seed)
    if losses is LOSSES:
        kept = n - n // 5
        network = train(x[:kept], y[:kept], steps, None, seed)
        scaling = TemperatureScaling().fit(y[kept:].double().numpy(), predictions(network, x[kept:]))
        found["NLL, then temperature"] = judge(target, scaling.transform(predictions(network, x_new)), seed)
    return found


def show(runs):
    """Medians over seeds, and how often training by NLL alone was beaten on the same data."""
    alone = {key: np.array([run["NLL"][key] for run in runs]) for key in ("nll", "skce")}
    for name in runs[0]:
        each = {key: np.array([run[name][key] for run in runs]) for key in runs[0][name]}
        middle = {key: np.median(values) for key, values in each.items()}
        rejected = f"{np.sum(each['pvalue'] < 0.05)}/{len(runs)}"
        better = [f"{np.sum(each[key] < alone[key])}/{len(runs)}" if name != "NLL" else "" for key in alone]
        print(
            f"  {name:21}  {middle['nll']:6.3f}  {middle['mse']:5.2f}  {middle['skce']:8.5f}  "
            f"{middle['pvalue']:7.3f}  {rejected:>8}  {better[0]:>10}  {better[1]:>11}"
        )


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--seeds", type=int, default=10)
    parser.add_argument("--kernels", action="store_true")
    parser.add_argument("--quick", action="store_true", help="one seed, 100 cases, 25 steps, 100 test cases")
    options = parser.parse_args()
    seeds, settings, test_cases = options.seeds, SETTINGS, TEST_CASES
    if options.quick:
        seeds, settings, test_cases = 1, {"100 cases": (100, 25)}, 100
    torch.set_num_threads(1)
    losses = KERNELS if options.kernels else LOSSES
    print(
        f"{test_cases} test cases; medians over seeds (there are {seeds}); tests that reject at level 0.05;"
    )
    print("seeds on which NLL and SKCE are better than by NLL alone")
    header = ("NLL", "MSE", "SKCE", "p-value", "rejected", "better NLL", "better SKCE")
    print(
        " " * 25 + "".join(f"{word:>{w}}" for word, w in zip(header, (6, 7, 10, 9, 10, 12, 13), strict=True))
    )
    for setting, (n, steps) in settings.items():
        print(f"{setting}, {steps} steps")
        show([one_seed(n, steps, losses, seed, test_cases) for seed in range(seeds)])


if __name__ == "__main__":
    main()
