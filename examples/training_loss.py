"""Recalibrate an over-confident regression model by descending its calibration error.

A network is often right about the mean and wrong about the spread. Here its standard deviations are
multiplied by one factor, which is learned from held-out data by gradient descent on the negative log
likelihood plus the squared kernel calibration error. Needs PyTorch: pip install wellcal[torch]
"""

import torch

import wellcal as wc
from wellcal.kernels import ExpDistance, Gaussian, Wasserstein

generator = torch.Generator().manual_seed(0)
n = 256
mu = torch.randn(n, generator=generator, dtype=torch.float64)
sigma = torch.full((n,), 0.3, dtype=torch.float64)
y = mu + torch.randn(n, generator=generator, dtype=torch.float64)  # the truth: standard deviation 1

kernel = ExpDistance(Wasserstein()) @ Gaussian()  # one kernel throughout, so that errors can be compared
log_factor = torch.zeros((), dtype=torch.float64, requires_grad=True)
optimizer = torch.optim.Adam([log_factor], lr=0.1)


def rescaled() -> wc.Normal:
    return wc.Normal(mu, sigma * log_factor.exp())


before = wc.skce(y, rescaled(), kernel=kernel).value.item()
for _ in range(60):
    optimizer.zero_grad()
    error = wc.skce(y, rescaled(), kernel=kernel).value
    loss = error - rescaled().log_prob(y).mean()
    loss.backward()
    optimizer.step()
after = wc.skce(y, rescaled(), kernel=kernel).value.item()

print(f"standard deviation: {sigma[0]:.2f} predicted, {sigma[0] * log_factor.exp():.2f} learned, 1.00 true")
print(f"SKCE: {before:.4f} before, {after:.4f} after")
