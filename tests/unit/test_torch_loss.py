"""SKCELoss: its value, its gradient, precision, kernels, errors."""

from __future__ import annotations

import copy
from typing import Any

import numpy as np
import pytest
import torch
from torch import nn

import wellcal as wc
from wellcal.kernels import Delta, ExpDistance, Gaussian, TotalVariation, Wasserstein
from wellcal.torch import SKCELoss

rng = np.random.default_rng(0)
N = 24
MU, SIGMA = rng.normal(size=N), np.exp(rng.normal(0.0, 0.3, N))
Y = rng.normal(MU, 1.0)
KERNEL = ExpDistance(Wasserstein(), 0.8) @ Gaussian(0.9)
PROBS = rng.dirichlet(np.ones(3), N)
LABELS = rng.integers(0, 3, N)


def tensors(*arrays: Any, dtype: torch.dtype = torch.float64) -> list[torch.Tensor]:
    return [torch.tensor(a, dtype=dtype, requires_grad=True) for a in arrays]


def test_the_value_and_gradient_are_those_of_skce() -> None:
    m, s = tensors(MU, SIGMA)
    loss = SKCELoss(weight=3.0, kernel=KERNEL)(torch.tensor(Y), wc.Normal(m, s))
    loss.backward()
    a, b = tensors(MU, SIGMA)
    expected = 3.0 * wc.skce(Y, wc.Normal(a, b), kernel=KERNEL).value
    expected.backward()
    torch.testing.assert_close(loss, expected, rtol=1e-13, atol=0)
    torch.testing.assert_close([m.grad, s.grad], [a.grad, b.grad], rtol=1e-12, atol=1e-15)


def test_blocks() -> None:
    m, s = tensors(MU, SIGMA)
    loss = SKCELoss(kernel=KERNEL, estimator="block", block_size=4)(torch.tensor(Y), wc.Normal(m, s))
    expected = wc.skce(Y, wc.Normal(MU, SIGMA), kernel=KERNEL, estimator="block", block_size=4)
    assert float(loss.detach()) == pytest.approx(float(expected), rel=1e-12)


def test_mini_batches_are_unbiased() -> None:
    """The mean over all mini-batches of a partition-free design is the value of all cases."""
    pred = wc.Normal(torch.tensor(MU[:6]), torch.tensor(SIGMA[:6]))
    y = torch.tensor(Y[:6])
    loss = SKCELoss(kernel=KERNEL)
    pairs = [[i, j] for i in range(6) for j in range(i)]
    mean = sum(float(loss(y[p], pred[p])) for p in pairs) / len(pairs)
    assert mean == pytest.approx(
        float(wc.skce(Y[:6], wc.Normal(MU[:6], SIGMA[:6]), kernel=KERNEL)), rel=1e-12
    )


FAMILIES: dict[str, tuple[Any, Any]] = {
    "probabilities": (torch.tensor(LABELS), torch.tensor(PROBS)),
    "pair": (torch.tensor(Y), (torch.tensor(MU), torch.tensor(SIGMA))),
    "torch.distributions": (
        torch.tensor(Y),
        torch.distributions.Laplace(torch.tensor(MU), torch.tensor(SIGMA)),
    ),
    "mixture": (
        torch.tensor(Y),
        wc.Mixture([wc.Normal(torch.tensor(MU), torch.tensor(s * SIGMA)) for s in (0.5, 2.0)]),
    ),
    "vectors": (torch.randn(N, 2).double(), wc.DiagonalNormal(torch.zeros(N, 2), torch.ones(N, 2))),
    "counts": (torch.tensor(LABELS), wc.Poisson(torch.tensor(SIGMA))),
    "samples": (torch.tensor(Y), wc.Samples(torch.randn(N, 5).double())),
}


@pytest.mark.parametrize("name", FAMILIES)
def test_families(name: str) -> None:
    y, pred = FAMILIES[name]
    loss = SKCELoss()(y, pred)
    assert loss.shape == ()
    assert float(loss) == pytest.approx(float(wc.skce(y, pred)), rel=1e-5, abs=1e-9)


def test_the_kernel_follows_each_batch_or_stays() -> None:
    first, second = (wc.Normal(torch.tensor(f * MU), torch.tensor(f * SIGMA)) for f in (1.0, 10.0))
    y = torch.tensor(10.0 * Y)
    following, fixed = SKCELoss(), SKCELoss(kernel="first")
    fixed(torch.tensor(Y), first)
    assert float(following(y, second)) == pytest.approx(float(wc.skce(y, second)), rel=1e-12)
    kernel = wc.default_kernel(first)
    assert float(fixed(y, second)) == pytest.approx(float(wc.skce(y, second, kernel=kernel)), rel=1e-12)
    assert abs(float(fixed(y, second)) / float(following(y, second)) - 1.0) > 1e-3


def test_a_state_carries_the_first_kernel() -> None:
    fixed = SKCELoss(kernel="first")
    assert fixed.state_dict() == {"_extra_state": None}
    pred = wc.Normal(torch.tensor(MU), torch.tensor(SIGMA))
    before = fixed(torch.tensor(Y), pred)
    restored = SKCELoss(kernel="first")
    restored.load_state_dict(copy.deepcopy(fixed.state_dict()))
    wide = wc.Normal(torch.tensor(MU), torch.tensor(5.0 * SIGMA))
    assert float(restored(torch.tensor(Y), wide)) == float(fixed(torch.tensor(Y), wide))
    assert float(restored(torch.tensor(Y), pred)) == float(before)


# -- precision ------------------------------------------------------------------------------------


@pytest.mark.parametrize("dtype", [torch.bfloat16, torch.float16])
def test_half_precision_costs_no_more_than_rounding_of_inputs(dtype: torch.dtype) -> None:
    m, s, y = (torch.tensor(a, dtype=dtype) for a in (MU, SIGMA, Y))
    leaf = m.clone().requires_grad_()
    loss = SKCELoss(kernel=KERNEL)(y, wc.Normal(leaf, s))
    assert loss.dtype == torch.float32
    exact = wc.skce(y.double(), wc.Normal(m.double(), s.double()), kernel=KERNEL)
    assert float(loss.detach()) == pytest.approx(float(exact), rel=1e-6)
    loss.backward()
    assert leaf.grad.dtype == dtype
    assert torch.isfinite(leaf.grad).all()
    assert float(leaf.grad.abs().sum()) > 0


@pytest.mark.parametrize("pred", ["pair", "default kernel"])
def test_half_precision_of_other_shapes(pred: str) -> None:
    m, s = (torch.tensor(a, dtype=torch.bfloat16) for a in (MU, SIGMA))
    given = (m, s) if pred == "pair" else wc.Normal(m, s)
    expected = float(wc.skce(Y, wc.Normal(m.double().numpy(), s.double().numpy())))
    assert float(SKCELoss()(torch.tensor(Y), given)) == pytest.approx(expected, rel=1e-5)


def test_half_precision_probabilities_are_normalised() -> None:
    probs = torch.softmax(torch.randn(N, 50, generator=torch.Generator().manual_seed(0)), dim=1)
    rough = probs.to(torch.bfloat16)
    kernel = ExpDistance(TotalVariation(), 0.3) @ Delta()
    labels = torch.randint(0, 50, (N,), generator=torch.Generator().manual_seed(1))
    loss = SKCELoss(kernel=kernel)(labels, rough)
    wide = rough.double()
    expected = wc.skce(labels, wc.Categorical(wide / wide.sum(1, keepdim=True)), kernel=kernel)
    assert float(loss) == pytest.approx(float(expected), rel=1e-5, abs=1e-8)


@pytest.mark.parametrize("cases", [N, 150])  # in tiles, and in features with derivatives
@pytest.mark.parametrize(
    "family", ["DiagonalNormal", "Normal", "Categorical", "MultivariateNormal", "Samples"]
)
def test_autocast_changes_nothing(family: str, cases: int) -> None:
    """A product of matrices would be rounded to 8 bits, were it one of numbers with 32."""
    loc = torch.randn(cases, 6, generator=torch.Generator().manual_seed(2))
    y = torch.randn(cases, 6, generator=torch.Generator().manual_seed(3))
    given: dict[str, Any] = {
        "DiagonalNormal": lambda: (y, wc.DiagonalNormal(loc, torch.ones(cases, 6))),
        "Normal": lambda: (y[:, 0], wc.Normal(loc[:, 0], loc[:, 1].exp())),
        "Categorical": lambda: (y.argmax(dim=1), wc.Categorical(loc.softmax(dim=1))),
        "MultivariateNormal": lambda: (y, wc.MultivariateNormal(loc, torch.eye(6).expand(cases, 6, 6))),
        "Samples": lambda: (y[:, 0], wc.Samples(loc)),
    }
    own, pred = given[family]()
    outside = SKCELoss()(own, pred)
    with torch.autocast("cpu", dtype=torch.bfloat16):
        assert torch.equal(SKCELoss()(own, pred), outside)


def test_gradients_flow_under_autocast() -> None:
    y = torch.randn(N, 6, generator=torch.Generator().manual_seed(3))
    with torch.autocast("cpu", dtype=torch.bfloat16):
        layer = nn.Linear(6, 1)
        out = layer(y)[:, 0]
        assert out.dtype == torch.bfloat16
        SKCELoss()(y[:, 0], wc.Normal(out, torch.ones(N))).backward()
    assert torch.isfinite(layer.weight.grad).all()


def test_training_under_autocast_learns() -> None:
    torch.manual_seed(0)
    x = torch.randn(128, 4)
    y = x.sum(dim=1) + torch.randn(128)
    spread = nn.Parameter(torch.tensor(-1.5))
    optimizer = torch.optim.Adam([spread], lr=0.15)
    loss = SKCELoss(kernel=ExpDistance(Wasserstein()) @ Gaussian(0.5))
    for _ in range(30):
        optimizer.zero_grad()
        with torch.autocast("cpu", dtype=torch.bfloat16):
            pred = wc.Normal(x.sum(dim=1), torch.exp(spread).expand(128))
            value = loss(y, pred)
        value.backward()
        optimizer.step()
    assert float(torch.exp(spread.detach())) == pytest.approx(1.0, abs=0.25)


# -- errors ---------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("options", "error", "message"),
    [
        ({"estimator": "biased"}, ValueError, "too certain"),
        ({"block_size": 3}, ValueError, 'for estimator="block" only'),
        ({"kernel": "last"}, ValueError, "known are first or a kernel, or None"),
        ({"kernel": Gaussian()}, TypeError, "pairs of prediction and target"),
    ],
)
def test_bad_options(options: dict[str, Any], error: type[Exception], message: str) -> None:
    with pytest.raises(error, match=message):
        SKCELoss(**options)


def test_bad_arguments() -> None:
    pred = wc.Normal(torch.zeros(3), torch.ones(3))
    with pytest.raises(TypeError, match="truth first"):
        SKCELoss()(pred, torch.zeros(3))
    with pytest.raises(TypeError, match="made of tensors"):
        SKCELoss()(np.zeros(3), wc.Normal(np.zeros(3), np.ones(3)))
    with pytest.raises(ValueError, match="drop_last=True"):
        SKCELoss()(torch.zeros(1), pred[:1])
    with pytest.raises(ValueError, match="y is not finite in row 2"):
        SKCELoss()(torch.tensor([0.0, 0.0, torch.nan]), pred)


def test_its_representation_in_a_model() -> None:
    assert "weight=2, kernel=default of each mini-batch" in repr(nn.Sequential(SKCELoss(weight=2.0)))
    assert "block_size=8" in repr(SKCELoss(kernel="first", estimator="block", block_size=8))
