"""The monitor: e-values by explicit sums, batches and single cases, saving and resuming, errors."""

import dataclasses
import json
import re
from itertools import product

import jax.numpy as jnp
import numpy as np
import pytest
import torch
from scipy import stats

import wellcal as wc
from wellcal._arrays.chunks import limited
from wellcal.engines import Tiled
from wellcal.hypotests.resampling.targets import draw_targets
from wellcal.hypotests.setup import pool_draws
from wellcal.kernels import Callable, Delta, ExpDistance, Gaussian, Joint, Wasserstein
from wellcal.monitoring.bets import ETAS, log_bets, standardised
from wellcal.monitoring.evidence import Evidence, held_back
from wellcal.monitoring.experts import Experts
from wellcal.monitoring.monitor import Monitor
from wellcal.monitoring.pasts import past_witness
from wellcal.monitoring.places import NODES, shared_places
from wellcal.monitoring.scores import Scores
from wellcal.monitoring.state import State
from wellcal.predictions.serialization import predictions_from_dict, predictions_to_dict
from wellcal.problem.target_resampling import IN_TURN, draw_in_turn

N = 60
rng = np.random.default_rng(17)
MU, SIGMA = rng.normal(size=N), np.exp(0.2 * rng.normal(size=N))
Y = rng.normal(MU + 0.5, SIGMA)
PRED = wc.Normal(MU, SIGMA)
KERNEL = ExpDistance(Wasserstein()) @ Gaussian()
PROBS = rng.dirichlet(np.ones(3), N)
VECTORS = rng.normal(size=(N, 2))

FAMILIES = {
    "Normal": (Y, PRED),
    "Bernoulli": (rng.integers(0, 2, N), wc.Bernoulli(PROBS[:, 0])),
    "Categorical": (np.array(list("abc"))[rng.integers(0, 3, N)], wc.Categorical(PROBS, classes=list("abc"))),
    "ordinal": (rng.integers(1, 4, N), wc.Categorical(PROBS, support=[1, 2, 3])),
    "Poisson": (rng.poisson(4.0, N), wc.Poisson(np.exp(MU))),
    "Laplace": (Y, wc.Laplace(MU, SIGMA)),
    "StudentT": (Y, wc.StudentT(4.0, MU, SIGMA)),
    "MultivariateNormal": (VECTORS, wc.MultivariateNormal(np.zeros((N, 2)), np.tile(np.eye(2), (N, 1, 1)))),
    "Mixture": (Y, wc.Mixture([PRED, wc.Laplace(MU + 1.0, SIGMA)])),
    "atoms": (Y, wc.Samples(rng.normal(MU[:, None], 1.0, (N, 5)), kind="atoms")),
    "draws": (Y, wc.Samples(rng.normal(MU[:, None], 1.0, (N, 5)))),
    "Quantiles": (Y, wc.Quantiles([0.1, 0.5, 0.9], MU[:, None] + np.array([-1.3, 0.0, 1.3]))),
}


NUMERICS = {"engine": Tiled(), "expectations": wc.Lowering(nodes=64)}


def small(**options):
    return Monitor(**{"rng": 3, "draws": 9, "warmup": 10, **options})


# -- bets ----------------------------------------------------------------------------------------------


def test_witness_of_the_past_by_hand():
    candidates = np.stack([Y[-3:], Y[-3:] + 1.0])
    found = past_witness(KERNEL, PRED, Y, candidates, windows=(7, 20), engine=Tiled())
    assert found.shape == (3, 2, 2)
    for (t, case), (k, window) in product(enumerate(range(N - 3, N)), enumerate((7, 20))):
        past = slice(case - window, case)
        likeness = np.exp(-np.hypot(MU[past] - MU[case], SIGMA[past] - SIGMA[case]))
        for r in range(2):
            at = candidates[r, t]
            variance = 1.0 + SIGMA[past] ** 2
            mean = np.exp(-0.5 * (MU[past] - at) ** 2 / variance) / np.sqrt(variance)
            expected = np.mean(likeness * (np.exp(-0.5 * (Y[past] - at) ** 2) - mean))
            assert found[t, k, r] == pytest.approx(expected, rel=1e-10)


@pytest.mark.parametrize("family", ["Normal", "far Normal", "Poisson", "Categorical", "Laplace"])
def test_witnesses_of_a_batch_are_those_of_its_cases(family):
    """What all new cases share, each would have found alone."""
    draw = np.random.default_rng(4)
    n, m = 150, 90
    loc, far = draw.normal(size=n), 1e6 if family == "far Normal" else 0.0
    pred = {
        "Poisson": lambda: wc.Poisson(np.exp(loc)),
        "Categorical": lambda: wc.Categorical(draw.dirichlet(np.ones(4), n)),
        "Laplace": lambda: wc.Laplace(loc, 1.0),
    }.get(family, lambda: wc.Normal(far + loc, np.exp(0.2 * loc)))()
    y = pred.check_targets(pred.sample(draw))
    at = np.concatenate([y[None, n - m :], draw_targets(pred[n - m :], draw, 19, y)])
    kernel = wc.default_kernel(pred)
    flat = np.swapaxes(at, 0, 1).ravel()
    places = shared_places(kernel.targets, pred[n - m :], flat, m)
    assert (places is None) == (family == "Laplace")
    if family == "Normal":
        assert places.cells > 0 < len(places.alone)
    options = {"windows": (7, 60, 100), "engine": Tiled()}
    found = past_witness(kernel, pred, y, at, **options)
    for k, t in enumerate(range(n - m, n)):
        alone = past_witness(kernel, pred[: t + 1], y[: t + 1], at[:, k : k + 1], **options)[0]
        np.testing.assert_allclose(found[k], alone, rtol=0.0, atol=1e-14)


@pytest.mark.parametrize("scale", [1e-9, 1e-2, 0.1])
def test_batches_of_narrow_predictions(scale):
    """Where candidates are nearly the same, a bet is on differences that nodes must not blur."""
    whole, single = small(kernel=KERNEL), small(kernel=KERNEL)
    pred = wc.Normal(MU, np.full(N, scale))
    y = pred.sample(5)
    whole.update(y, pred)
    for t in range(N):
        single.update(y[t : t + 1], pred[t])
    np.testing.assert_allclose(single.history, whole.history, rtol=1e-10)


def test_candidates_at_nodes_are_what_is_known_there():
    """A value that is a node, and others of its cell, for a function that nodes know."""
    width = 4.0
    u = np.concatenate([width * (0.5 + NODES[[0, 7]]), np.linspace(0.0, 3.9, 198)])
    places = shared_places(Gaussian(1.0), PRED[:10], u, 10)
    assert (places.cells, len(places.targets)) == (1, 30)

    def bell(x):
        return np.exp(-0.5 * (x - 1.3) ** 2)

    found = places.at_candidates(np.tile(bell(places.targets), (10, 1, 1)))
    np.testing.assert_allclose(found.ravel(), bell(u), rtol=0.0, atol=1e-14)


def test_a_batch_looks_at_few_places():
    """A case of a batch needs one kernel value for each past case and few more, not one for each draw."""

    class Counting(Tiled):
        values = 0

        def rectangle(self, form, ops, a, b):
            found = super().rectangle(form, ops, a, b)
            Counting.values += found.size
            return found

    past, m = 400, 200
    draw = np.random.default_rng(5)
    pred = wc.Normal(draw.normal(size=past + m), 1.0)
    y = pred.sample(draw)
    monitor = Monitor(rng=0, engine=Counting())
    monitor.update(y[:past], pred[:past])
    Counting.values = 0
    monitor.update(y[past:], pred[past:])
    assert Counting.values < 1.5 * m * (past + m)
    Counting.values = 0
    monitor.update(y[-1:], pred[-1:])
    assert Counting.values == 21 * (past + m)


@pytest.mark.parametrize("family", sorted(IN_TURN, key=lambda family: family.__name__))
def test_families_that_draw_in_turn(family):
    """The random numbers of a case do not depend on the cases that come with it."""
    draw = np.random.default_rng(6)
    positive = np.exp(draw.normal(size=(3, 5)))
    pred = {
        wc.Bernoulli: lambda: wc.Bernoulli(positive[0] / 50.0),
        wc.Categorical: lambda: wc.Categorical(draw.dirichlet(np.ones(3), 5)),
        wc.DiagonalNormal: lambda: wc.DiagonalNormal(positive.T, positive.T),
        wc.MultivariateNormal: lambda: wc.MultivariateNormal(positive.T, np.tile(np.eye(3), (5, 1, 1))),
        wc.Poisson: lambda: wc.Poisson(20.0 * positive[0]),
        wc.Samples: lambda: wc.Samples(positive.T, kind="atoms"),
        wc.StudentT: lambda: wc.StudentT(*positive),
    }.get(family, lambda: family(*positive[:2]))()
    like = pred.check_targets(pred.sample(draw))
    together = draw_in_turn(pred, np.random.default_rng(7), 6, like)
    alone = np.random.default_rng(7)
    each = [draw_targets(one, alone, 6, like) for one in pred]
    np.testing.assert_array_equal(together, np.concatenate(each, axis=1))


def test_joint_kernels_take_the_same_way():
    def joint(p, y, q, z):
        distance = np.hypot(p.loc[:, None] - q.loc, p.scale[:, None] - q.scale)
        return np.exp(-distance) * np.exp(-0.5 * (y[:, None] - z) ** 2)

    candidates = np.stack([Y[-3:], Y[-3:] + 1.0])
    plain = past_witness(KERNEL, PRED, Y, candidates, windows=(7, 20), engine=Tiled())
    options = {"engine": Tiled(), "windows": (7, 20), "expectations": wc.Lowering(nodes=64)}
    np.testing.assert_allclose(past_witness(Joint(joint), PRED, Y, candidates, **options), plain, rtol=1e-7)
    doubled = past_witness(2.0 * KERNEL + KERNEL, PRED, Y, candidates, windows=(7, 20), engine=Tiled())
    np.testing.assert_allclose(doubled, 3.0 * plain, rtol=1e-12)


def test_bets_are_fair():
    """Over all places that the target may have among its draws, the mean of e is exactly 1."""
    u = rng.normal(size=(5, 8)) * 1e-3
    mean = np.mean([np.exp(log_bets(np.roll(u, k, axis=1))) for k in range(8)], axis=0)
    np.testing.assert_allclose(mean, 1.0, rtol=1e-13)


def test_bets_by_hand():
    u = np.array([[0.3, -0.1, 0.2, 0.0]])
    standard = (u - u.mean()) / u.std()
    np.testing.assert_allclose(standardised(u), standard, rtol=1e-13)
    expected = [4.0 * np.exp(eta * standard[0, 0]) / np.exp(eta * standard).sum() for eta in ETAS]
    np.testing.assert_allclose(np.exp(log_bets(standard))[0], expected, rtol=1e-13)
    np.testing.assert_array_equal(log_bets(standardised(np.full((2, 5), 0.7))), 0.0)  # nothing to bet on
    np.testing.assert_allclose(standardised(1e9 * u), standardised(u), rtol=1e-12)
    with pytest.raises(ValueError, match="the witness is not finite"):
        standardised(np.array([[np.nan, 1.0]]))


def test_evalue_by_the_sum_over_all_starts():
    """The recursion is the sum over experts and starts that the docstring writes down."""
    monitor = small(kernel=KERNEL)
    monitor.update(Y, PRED)
    generator = np.random.default_rng(3)
    experts = Experts.of(PRED, 1000)
    bets = np.empty((N, experts.count))
    for t in range(N):
        at = np.concatenate([Y[t : t + 1], PRED[t].draw(generator, 9)[:, 0]])[:, None]
        bets[t] = experts.log_bets(KERNEL, PRED[: t + 1], Y[: t + 1], at, **NUMERICS)[0]
    e = np.exp(bets)
    for t in (1, 2, 17, N):
        held = [0.35 * np.log(2) / np.log(2 + s) + 0.65 / np.sqrt(1 + s / 300) for s in range(t + 1)]
        total = held[t]
        for s in range(1, t + 1):
            total += (held[s - 1] - held[s]) * e[s - 1 : t].prod(axis=0).mean()
        assert monitor.history[t - 1] == pytest.approx(total, rel=1e-9)
    detector = small(kernel=KERNEL, run_length=50.0)
    detector.update(Y, PRED)
    assert detector.e_value == pytest.approx(sum(e[s:].prod(axis=0).mean() for s in range(N)), rel=1e-9)
    assert detector.status.pvalue is None


def test_scores_by_hand():
    """The place of a target in its prediction, its square, and the log probability."""
    at = np.stack([Y, Y + 1.0, Y - 2.0])
    z = ((at - MU) / SIGMA).T
    found = Scores.of(PRED).at(PRED, at)
    np.testing.assert_allclose(found[:, 0], z, rtol=1e-7)
    np.testing.assert_allclose(found[:, 1], (z**2 - 1.0) / np.sqrt(2.0), rtol=1e-7, atol=1e-7)
    heavy = wc.Laplace(MU, SIGMA)
    found = Scores.of(heavy).at(heavy, at)
    np.testing.assert_allclose(found[:, 2], standardised(-np.abs(z)), rtol=1e-9, atol=1e-9)
    pred = FAMILIES["Categorical"][1]
    classes = np.array([np.arange(N) % 3, (np.arange(N) + 1) % 3])
    found = Scores.of(pred).at(pred, classes)
    for c in range(3):
        np.testing.assert_array_equal(found[:, 1 + c], standardised((c == classes.T) * 1.0))


def test_far_and_impossible_targets_have_finite_bets():
    far = small(kernel=KERNEL)
    assert far.update([1e6, -1e6], wc.Normal(np.zeros(2), 1e-3 * np.ones(2))).e_value > 1.0
    never = small()
    assert never.update([2, 2], wc.Categorical([[0.5, 0.5, 0.0], [0.5, 0.5, 0.0]])).e_value > 1.0


@pytest.mark.parametrize("family", FAMILIES)
def test_every_bet_is_fair(family):
    """Wherever among the candidates the target is, the mean bet of every expert is one: for each family."""
    y, pred = (part[:13] for part in FAMILIES[family])
    monitor = small()
    monitor.update(y[:12], pred[:12])
    exchanged, targets = family == "draws", pred.check_targets(y)
    known = pool_draws(targets, pred) if exchanged else pred
    if exchanged:
        pool = np.swapaxes(known.values, 0, 1)[:, 12:]
    else:
        pool = draw_targets(known[12:], np.random.default_rng(1), 6, targets)
    experts = Experts.of(known, 1000, exchanged=exchanged)
    assert experts.count == len(monitor.to_dict()["evidence"]["logs"])
    wins = []
    for k in range(len(pool)):
        at = np.roll(pool, -k, axis=0)
        seen = np.concatenate([targets[:12], at[0]])
        wins.append(experts.log_bets(monitor.kernel, known, seen, at, **NUMERICS)[0])
    np.testing.assert_allclose(np.mean(np.exp(wins), axis=0), 1.0, rtol=1e-9)
    assert (np.std(wins, axis=0) > 0).mean() > 0.5


@pytest.mark.parametrize("pred", [wc.Bernoulli([0.3]), wc.Categorical([[0.2, 0.3, 0.5]]), wc.Poisson([0.4])])
def test_expected_bets_by_enumeration(pred):
    """Over all targets and pairs of draws, with their probabilities, every bet is worth one."""
    if isinstance(pred, wc.Poisson):
        values = np.arange(7.0)
        probs = np.exp(pred.log_prob(values[:, None]))[:, 0]
    else:
        probs = pred.class_probs()[0]
        values = np.arange(len(probs))
    y = pred[[0] * 4].check_targets([0, 1, 1, 0])
    experts, kernel = Experts.of(pred, 1000), wc.default_kernel(pred[[0] * 4])
    worth = np.zeros(experts.count)
    for places in product(range(len(values)), repeat=3):
        at = values[list(places)].astype(y.dtype)[:, None]
        bet = experts.log_bets(kernel, pred[[0] * 5], np.concatenate([y, at[0]]), at, **NUMERICS)[0]
        worth += probs[list(places)].prod() * np.exp(bet)
    np.testing.assert_allclose(worth, probs.sum() ** 3, rtol=1e-9)
    assert probs.sum() == pytest.approx(1.0, abs=1e-5)


def test_expected_bets_by_quadrature():
    """The same for a continuous family: a target and one draw, by Gauss-Legendre in their quantiles."""
    nodes, weights = np.polynomial.legendre.leggauss(12)
    pred, y = wc.Laplace([0.4] * 5, [1.3] * 5), np.array([0.1, 2.0, -1.0, 0.7])
    places = pred[0].quantile((0.5 + 0.5 * nodes)[:, None])[:, 0]
    experts, kernel = Experts.of(pred, 1000), wc.default_kernel(pred)
    worth = np.zeros(experts.count)
    for i, j in product(range(12), repeat=2):
        at = places[[i, j]][:, None]
        bet = experts.log_bets(kernel, pred, np.append(y, at[0]), at, **NUMERICS)[0]
        worth += 0.25 * weights[i] * weights[j] * np.exp(bet)
    np.testing.assert_allclose(worth, 1.0, rtol=1e-12)


# -- when it began ---------------------------------------------------------------------------------------


def test_onset_by_the_sums_of_bets():
    """The onset is where the sum of the best expert was lowest, and the interval where it was nearly so."""
    bets = 0.3 * np.random.default_rng(8).normal(size=(400, 3)) + np.array([-0.05, 0.0, -0.05])
    bets[250:, 0] += 0.2
    width = np.log(40.0)
    evidence = Evidence.start(3, detector=False)
    for start in range(0, 400, 37):  # any parts
        evidence, _ = evidence.advance(bets[start : start + 37], detector=False)
    evidence.check(400, 3, detector=False)
    sums = np.concatenate([np.zeros((1, 3)), np.cumsum(bets, axis=0)])
    np.testing.assert_allclose(evidence.sums, sums[-1], rtol=1e-12)
    np.testing.assert_array_equal(evidence.low_at, sums.argmin(axis=0))
    for k in range(3):
        near = np.flatnonzero(sums[:, k] <= sums[:, k].min() + width)
        assert evidence.late[k] == near[-1]
        wider = np.flatnonzero(sums[:, k] <= sums[:, k].min() + 1.25 * width)
        assert wider[0] <= evidence.passed[k, -1] <= near[0]
    best, case, first, last = evidence.onset(np.zeros(3, int))
    won = sums[-1] - sums  # by those who started then
    assert (best, case) == (0, evidence.low_at[0] + 1)
    likely = np.flatnonzero(won.max(axis=1) >= won.max() - width)
    likelier = np.flatnonzero(won.max(axis=1) >= won.max() - 1.25 * width)
    assert likelier[0] <= first - 1 <= likely[0]
    assert last - 1 >= likely[-1]
    assert first - evidence.onset(np.array([12, 0, 0]))[2] == 12


def test_onset_is_that_of_the_largest_evidence():
    """What comes after the largest evidence does not date the change anew, also within one batch."""
    bets = np.full((60, 2), -0.1)
    bets[10:30, 0] = 0.5
    bets[30:] = [-1.0, 0.02]
    options = {"log_threshold": np.log(20.0), "detector": False, "history_size": 9}
    lags = np.zeros(2, int)
    once = State(n_samples=60).betted(bets, lags, **options)
    state = State()
    for t in range(60):
        state = dataclasses.replace(state, n_samples=t + 1).betted(bets[t : t + 1], lags, **options)
    assert once.onset == state.onset
    assert (once.onset.case, once.onset.expert) == (11, 0)
    assert once.alarm_at == state.alarm_at
    assert once.largest == pytest.approx(state.largest, rel=1e-12)


def test_an_alarm_is_not_before_its_onset():
    """Unless a second change, with an interval of its own, is the larger one."""
    options = {"log_threshold": np.log(20.0), "detector": False, "history_size": 9}
    bets = np.full((60, 2), -0.01)
    bets[5:, 0], bets[25:, 1] = 0.6, 2.0  # the second is right later, and wins more
    state = State(n_samples=60).betted(bets, np.zeros(2, int), **options)
    assert state.alarm_at < 25
    assert (state.onset.expert, state.onset.case) == (1, state.alarm_at)
    assert state.onset.first <= state.onset.last == state.alarm_at
    bets = np.full((90, 1), -1.0)
    bets[5:15], bets[60:] = 1.0, 3.0
    state = State(n_samples=90).betted(bets, np.zeros(1, int), **options)
    assert state.alarm_at < 15
    assert state.onset.first <= 61 == state.onset.case


def test_shares_of_all_starts_are_one():
    shares = np.array([held_back(t) for t in range(10_000)])
    assert shares[0] == 1.0
    assert (np.diff(shares) < 0).all()
    assert held_back(10**15) < 0.1


def test_change_says_since_when_how_much_and_where():
    draw = np.random.default_rng(5)
    mu = draw.normal(size=400)
    pred = wc.Normal(mu, np.ones(400))
    y = draw.normal(mu + np.where(np.arange(400) >= 250, 1.0, 0.0), 1.0)
    monitor = Monitor(rng=0, draws=19)
    with pytest.raises(ValueError, match="there was no alarm"):
        monitor.change()
    status = monitor.update(y, pred)
    assert status.onset_interval[0] <= 251 <= status.onset_interval[1]
    assert "since about case" in repr(status)
    change = monitor.change(rng=1, n_resamples=99)
    assert change.n_samples == 400 - change.onset + 1
    z = (y - mu)[change.onset - 1 :]
    assert change.shift == pytest.approx(z.mean(), rel=1e-6)
    assert change.spread == pytest.approx(z.std(), rel=1e-6)
    assert change.shift_interval[0] < 1.0 < change.shift_interval[1]
    assert change.findings[0].kind == "shift"
    assert change.findings[0].size == pytest.approx(z.mean(), rel=0.05)
    assert change.verdict.startswith(f"Miscalibrated since about case {change.onset}")
    assert change.verdict.endswith(f"{change.findings[0].sentence}.")
    assert change.witness.groups
    assert wc.MonitorChange.from_json(change.to_json()) == change
    # A model that was mended: the change is still told as it was known at the alarm.
    later = monitor.update(pred.sample(7), pred)
    assert later.onset == status.onset
    monitor.restart()
    assert monitor.update(pred[:3].sample(8), pred[:3]).alarm_at is None
    assert monitor.n_samples == 803
    again = monitor.update(mu[:60] + 2.0, pred[:60])
    assert 800 < again.onset_interval[0] <= 804 <= again.onset_interval[1] <= again.alarm_at
    assert Monitor.from_dict(json.loads(json.dumps(monitor.to_dict()))).status == again


def test_what_won_is_told_without_the_name_of_an_error():
    """A large shift is seen by squares first, which is no wrong spread."""
    monitor = Monitor(rng=1)
    rng = np.random.default_rng(3)
    monitor.update(rng.normal(size=60) + 3.0, wc.Normal(np.zeros(60), np.ones(60)))
    change = monitor.change(rng=0)
    assert change.topic == "spread"
    assert change.findings[0].kind == "shift"
    assert "on how far targets lie from the middle of their predictions" in repr(change)
    assert "on spread" not in repr(change)


def test_sizes_of_changes_of_vectors_and_classes():
    draw = np.random.default_rng(6)
    loc = draw.normal(size=(90, 2))
    monitor = small()
    y = loc + draw.normal(size=(90, 2)) * [2.5, 1.0] + [0.0, 1.5]
    monitor.update(y, wc.DiagonalNormal(loc, np.ones((90, 2))))
    change = monitor.change(rng=0, n_resamples=19)
    text = repr(change)
    z = (y - loc)[change.onset - 1 :]
    ratio = 1.0 / np.sqrt(np.mean((z[:, 0] - z[:, 0].mean()) ** 2))
    assert f"coordinate 1: spreads are {100.0 * (1.0 - ratio):.0f}% too small" in text
    assert f"coordinate 2: targets are {z[:, 1].mean():.2g} standard deviations too high" in text
    assert f"SKCE   {change.witness.estimate.value:.4g} +- " in text
    for probs, classes in ((np.full((90, 2), 0.5), ["no", "yes"]), (np.full((90, 3), 1 / 3), list("abc"))):
        monitor = small()
        monitor.update([classes[1]] * 90, wc.Categorical(probs, classes=classes))
        found = monitor.change(rng=0, n_resamples=19)
        assert f"class {classes[1]!r}" in found.verdict


def test_changes_that_are_older_than_memory_are_told_from_what_is_left():
    monitor = small(memory=30)
    monitor.update(Y + 1.0, PRED)
    assert monitor.status.onset < 30
    assert monitor.change(rng=0, n_resamples=19).n_samples == 30


def test_change_to_targets_that_are_all_alike():
    monitor = small()
    monitor.update(np.ones(60), wc.Normal(np.zeros(60), np.ones(60)))
    change = monitor.change(rng=0, n_resamples=19)
    assert (change.spread, change.spread_interval) == (0.0, (0.0, 0.0))


@pytest.mark.parametrize("family", FAMILIES)
def test_changes_of_every_family(family):
    """A change is described, whatever the family; the threshold is so low that chance reaches it."""
    monitor = small(alpha=0.99)
    assert monitor.update(*FAMILIES[family]).alarm
    change = monitor.change(rng=0, n_resamples=19)
    assert change.onset <= monitor.n_samples
    assert change.topic in ("witness", *Scores.of(FAMILIES[family][1]).names, "class 'a'", "class 'b'")
    assert repr(change).startswith("Miscalibrated since about case")
    assert (change.shift is None) == (family in ("Categorical", "MultivariateNormal", "Quantiles"))


# -- updates -------------------------------------------------------------------------------------------


@pytest.mark.parametrize("family", FAMILIES)
def test_batches_and_single_cases_agree(family):
    n = 30
    y, pred = (part[:n] for part in FAMILIES[family])
    whole, single, mixed = small(memory=12), small(memory=12), small(memory=12)
    whole.update(y, pred)
    for t in range(n):
        single.update(y[t : t + 1], pred[t])
    for start, stop in ((0, 7), (7, 20), (20, 21), (21, n)):
        mixed.update(y[start:stop], pred[start:stop])
    np.testing.assert_allclose(single.history, whole.history, rtol=1e-10)
    np.testing.assert_allclose(mixed.history, whole.history, rtol=1e-10)
    assert single.kernel == whole.kernel == mixed.kernel
    assert whole.status.alarm_at == single.status.alarm_at
    assert (whole.history[10:] != 1.0).any()
    # Without a kernel there are bets on what needs no past.
    assert (whole.history[:10] != 1.0).any() == bool(Scores.of(pred).names)


@pytest.mark.parametrize("family", FAMILIES)
def test_saved_and_resumed(family, tmp_path):
    y, pred = (part[:30] for part in FAMILIES[family])
    path = tmp_path / "state.json"
    for stop in (4, 18):  # before and after the kernel is chosen
        kept = small(memory=12)
        kept.update(y[:stop], pred[:stop])
        kept.save(path)
        resumed = Monitor.load(path)
        assert resumed.status == kept.status
        assert resumed.update(y[stop:], pred[stop:]) == kept.update(y[stop:], pred[stop:])
        np.testing.assert_array_equal(resumed.history, kept.history)
        assert resumed.to_dict() == kept.to_dict()
    assert [file.name for file in tmp_path.iterdir()] == ["state.json"]


@pytest.mark.parametrize("bits", [np.random.MT19937, np.random.Philox, np.random.SFC64])
def test_other_generators_resume(bits):
    kept = small(rng=np.random.Generator(bits(5)), kernel=KERNEL)
    kept.update(Y[:20], PRED[:20])
    resumed = Monitor.from_dict(json.loads(json.dumps(kept.to_dict())))
    assert resumed.update(Y[20:], PRED[20:]) == kept.update(Y[20:], PRED[20:])


def test_memory_is_bounded_and_recent():
    monitor = small(kernel=KERNEL, memory=12, history=5)
    monitor.update(Y[:20], PRED[:20])
    before = np.array(monitor.to_dict()["evidence"]["sums"])
    monitor.update(Y[20:], PRED[20:])
    state = monitor.to_dict()
    np.testing.assert_array_equal(state["targets"]["values"], Y[-12:])
    assert state["predictions"]["fields"]["loc"]["shape"] == [12]
    assert len(monitor.history) == 5
    assert monitor.n_samples == N
    # What is forgotten has no effect: another first case gives the same bets later.
    other = small(kernel=KERNEL, memory=12)
    other.update(np.concatenate([[1.0 - Y[0]], Y[1:20]]), PRED[:20])
    start = np.array(other.to_dict()["evidence"]["sums"])
    other.update(Y[20:], PRED[20:])
    assert (start != before).all()
    later = other.to_dict()["evidence"]["sums"] - start
    np.testing.assert_allclose(later, state["evidence"]["sums"] - before, rtol=1e-8)


def test_alarm():
    monitor = Monitor(kernel=KERNEL, rng=0, alpha=0.1)
    status = monitor.update(rng.normal(MU + 3.0, SIGMA), PRED)
    assert status.alarm
    assert monitor.alarm
    crossed = np.flatnonzero(monitor.history >= 10.0)[0] + 1
    assert status.alarm_at == crossed
    assert status.pvalue == pytest.approx(1.0 / monitor.history.max(), rel=1e-12)
    assert "alarm after" in repr(monitor)
    calm = monitor.update(PRED.sample(1), PRED)
    assert calm.alarm_at == crossed  # an alarm stays


def test_evidence_without_end_stays_finite_in_its_logarithm(tmp_path):
    monitor = Monitor(kernel=KERNEL, rng=0, draws=9)
    monitor.update(Y[:3], PRED[:3])
    state = monitor.to_dict()
    state["evidence"]["logs"] = [2000.0] * len(state["evidence"]["logs"])
    state["evidence"]["value"] = state["largest"] = 2000.0 + np.log(len(state["evidence"]["logs"]))
    state["alarm_at"] = 3
    state["onset"] = {"case": 1, "first": 1, "last": 1, "expert": 0}
    huge = Monitor.from_dict(state)
    huge.update(Y[:3], PRED[:3])
    assert huge.e_value == np.inf
    assert 0.0 <= huge.status.pvalue < 1e-300
    assert np.isfinite(huge.log_e_value)
    huge.save(tmp_path / "huge.json")


def test_kernel_from_reference_predictions():
    monitor = Monitor(reference=PRED, rng=0)
    assert monitor.kernel == wc.default_kernel(PRED)
    monitor.update(Y[:5], PRED[:5])
    assert (monitor.history[1:] != 1.0).all()  # bets from the second case on


def test_kernel_from_the_first_predictions():
    monitor = small(warmup=15)
    assert "chosen from the first 15 predictions" in repr(monitor)
    monitor.update(Y[:14], PRED[:14])
    assert monitor.kernel is None
    monitor.update(Y[14:20], PRED[14:20])
    assert monitor.kernel == wc.default_kernel(PRED[:15])


def test_targets_have_no_say_in_the_kernel():
    one, other = small(), small()
    one.update(Y, PRED)
    other.update(-5.0 * Y, PRED)
    assert one.kernel == other.kernel


def test_draws_are_exchanged_and_nothing_is_drawn():
    y, pred = FAMILIES["draws"]
    monitor = small()
    before = monitor.to_dict()["generator"]
    monitor.update(y, pred)
    assert monitor.to_dict()["generator"] == before
    more = wc.Samples(rng.normal(size=(4, 9)))
    assert monitor.update(np.zeros(4), more).n_samples == N + 4  # another number of draws is welcome


def test_objects():
    words = np.array(list("abcd"), dtype=object)[rng.integers(0, 4, (15, 6))]
    kernel = Callable(lambda p, q: np.ones((len(p), len(q)))) @ Delta()
    monitor = Monitor(kernel, rng=0)
    monitor.update(["e"] * 15, wc.Samples(words))
    assert monitor.e_value > 1.0
    resumed = Monitor.from_dict(json.loads(json.dumps(monitor.to_dict())), kernel=kernel)
    assert resumed.update(["a"], wc.Samples(words[:1])) == monitor.update(["a"], wc.Samples(words[:1]))
    with pytest.raises(ValueError, match="holds a function, which a file cannot; give the kernel again"):
        Monitor.from_dict(monitor.to_dict())


@pytest.mark.parametrize("convert", [torch.tensor, jnp.asarray])
def test_other_libraries(convert):
    plain, other = small(kernel=KERNEL), small(kernel=KERNEL)
    plain.update(Y, PRED)
    other.update(convert(Y), wc.Normal(convert(MU), convert(SIGMA)))
    np.testing.assert_allclose(other.history, plain.history, rtol=1e-3)


# -- errors --------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("y", "pred", "kind", "message"),
    [
        (
            Y[:2],
            wc.Laplace(MU[:2], SIGMA[:2]),
            TypeError,
            "must be of one family, found Normal as earlier cases",
        ),
        (Y[:3], PRED[:2], ValueError, "y and predictions must have the same length, found 3 and 2"),
        ([0.0, np.inf], PRED[:2], ValueError, "y is not finite in row 1"),
        (PRED, Y, TypeError, "the order is"),
    ],
)
def test_a_bad_update_changes_nothing(y, pred, kind, message):
    monitor = small(kernel=KERNEL)
    monitor.update(Y[:20], PRED[:20])
    before = monitor.to_dict()
    with pytest.raises(kind, match=message):
        monitor.update(y, pred)
    assert monitor.to_dict() == before


def test_an_error_on_the_way_changes_nothing():
    calls = []

    def fragile(p, q):
        calls.append(1)
        if len(calls) > 30:
            raise RuntimeError("out of order")
        return np.ones((len(p), len(q)))

    monitor = small(kernel=Callable(fragile) @ Gaussian())
    monitor.update(Y[:5], PRED[:5])
    before = monitor.to_dict()
    with limited(work=1), pytest.raises(RuntimeError, match="out of order"):  # case by case
        monitor.update(Y, PRED)
    assert len(calls) == 31
    assert monitor.to_dict() == before


def test_classes_must_stay_the_same():
    monitor = small()
    monitor.update(
        ["a", "b"], wc.Categorical(PROBS[:2, :2] / PROBS[:2, :2].sum(1, keepdims=True), classes=["a", "b"])
    )
    with pytest.raises(ValueError, match="must have the same classes"):
        monitor.update(["a"], wc.Categorical([[0.5, 0.5]], classes=["b", "a"]))


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"alpha": 0.0}, "alpha must be between 0 and 1, found 0.0"),
        ({"alpha": 0.1, "run_length": 100}, "give either alpha, for false alarms ever, or run_length"),
        ({"run_length": 1.0}, "run_length must be more than 1 case, found 1"),
        ({"draws": 0}, "draws must be a whole number of at least 1, found 0"),
        ({"memory": 2.5}, "memory must be a whole number of at least 1, found 2.5"),
        ({"warmup": 30, "memory": 20}, "warmup must be at most memory, 20, found 30"),
        ({"kernel": KERNEL, "reference": PRED}, "give either kernel or reference"),
    ],
)
def test_bad_options(options, message):
    with pytest.raises(ValueError, match=message):
        Monitor(**options)
    with pytest.raises(TypeError, match="kernel must act on pairs"):
        Monitor(Gaussian())


def test_families_that_cannot_be_sampled():
    class Silent(wc.Normal):
        draw = wc.Predictions.draw

    with pytest.raises(TypeError, match="a monitor draws from the predictions: Silent cannot be sampled"):
        small().update(Y, Silent(MU, SIGMA))


@pytest.mark.parametrize("size", [1, 8])
def test_ties_with_quantiles_are_counted_over_all_updates(size):
    rng = np.random.default_rng(4)
    rate, levels = rng.gamma(3.0, 0.5, 300), np.array([0.1, 0.5, 0.9])
    y, values = rng.poisson(rate), stats.poisson.ppf(levels, rate[:, None])
    kept = [small()]

    def feed():
        for done in range(0, len(y), size):
            # Kept and resumed in between, as a job does that comes by each day.
            monitor = Monitor.from_dict(json.loads(json.dumps(kept[-1].to_dict())))
            monitor.update(y[done : done + size], wc.Quantiles(levels, values[done : done + size]))
            kept.append(monitor)

    with pytest.raises(wc.RowError, match=r"in \d+ of \d+ cases, with those before; among the new ones fir"):
        feed()
    last, seen = kept[-1], size * (len(kept) - 1)
    assert 0 < seen < 40
    assert last.to_dict()["ties"]["cases"] == last.n_samples == seen
    last.restart()
    assert last.to_dict()["ties"] is None


def rounded(n, seed=0):
    """Temperatures and their quantiles, both rounded to tenths: right, and every hundredth is on one."""
    rng = np.random.default_rng(seed)
    levels, loc = np.array([0.1, 0.5, 0.9]), rng.normal(15.0, 5.0, n)
    y, values = rng.normal(loc, 3.0), loc[:, None] + 3.0 * stats.norm.ppf(levels)
    return np.round(y, 1), wc.Quantiles(levels, np.round(values, 1)), rng


def stored(monitor):
    return Monitor.from_dict(json.loads(json.dumps(monitor.to_dict())))


@pytest.mark.parametrize("size", [1, 20])
def test_a_monitor_that_refused_outcomes_takes_no_others(size):
    """Those that are not on quantiles, and would be taken, are a selection."""
    rng = np.random.default_rng(7)
    rate, levels = rng.uniform(2.0, 12.0, 60), np.array([0.1, 0.5, 0.9])
    y, pred = rng.poisson(rate), wc.Quantiles(levels, stats.poisson.ppf(levels, rate[:, None]))
    monitor, said, seen = small(), [], []
    for done in range(0, len(y), size):
        try:
            monitor.update(y[done : done + size], pred[done : done + size])
        except ValueError as error:
            said.append(str(error))
            seen.append((monitor.n_samples, monitor.e_value))
        monitor = stored(monitor) if done % 3 else monitor
    assert len(said) == (60 - seen[0][0]) // size > 1
    assert len(set(seen)) == 1
    refused = monitor.status.refused
    assert set(said[1:]) == {refused}
    assert re.match(r"y equals its own quantile of level 0\.\d in \d+ of \d+ cases: where outcomes", refused)
    assert said[0].endswith(refused.split(": where")[1])
    assert refused.endswith(
        "takes no others: restart it for those to come, or begin a new one, for all of them "
        "or for another family"
    )
    assert monitor.status.verdict == "Calibration cannot be judged: outcomes fall on their own quantiles."
    assert f"refused  {refused}" in repr(monitor)
    assert f"refused  {refused}" in repr(monitor.status)
    assert stored(monitor) == monitor
    assert wc.MonitorStatus.from_dict(monitor.status.to_dict()) == monitor.status
    monitor.restart()
    assert monitor.status.refused is None
    assert stored(monitor).update(y[:1], pred[:1]).n_samples == seen[0][0] + 1


def test_the_remedy_for_rounded_numbers_is_one():
    y, pred, rng = rounded(600)
    monitor = small()
    monitor.update(y[:100], pred[:100])
    with pytest.raises(wc.RowError, match=r"add centred noise as wide as the rounding to y; .* restart it"):
        monitor.update(y[100:400], pred[100:400])
    assert monitor.n_samples == 100
    y = y + rng.uniform(-0.05, 0.05, len(y))
    with pytest.raises(ValueError, match="takes no others"):
        monitor.update(y[100:400], pred[100:400])
    monitor.restart()
    assert monitor.update(y[100:], pred[100:]).refused is None
    assert monitor.to_dict()["ties"]["counts"] == [0, 0, 0]
    assert not monitor.alarm
    assert monitor.n_samples == 600


def test_a_few_outcomes_on_quantiles_are_no_reason():
    y, pred = FAMILIES["Quantiles"]
    y = np.array(y)
    y[[3, 12, 20]] = np.asarray(pred.values)[[3, 12, 20], 1]
    monitor = small()
    for case in range(len(y)):
        monitor.update(y[case : case + 1], pred[case : case + 1])
    assert monitor.to_dict()["ties"]["counts"] == [0, 3, 0]
    assert monitor.status.refused is None


def test_an_alarm_stands_where_later_cases_are_refused():
    y, pred, _ = rounded(300)
    monitor = small()
    monitor.update(y[:100] + 9.03, pred[:100])
    with pytest.raises(wc.RowError):
        monitor.update(np.asarray(pred.values)[100:, 1], pred[100:])
    assert monitor.status.verdict.startswith("Miscalibrated")
    assert "\n  refused  y equals its own quantile of level 0.5 in 200 of 300 cases" in repr(monitor.status)


def test_states_without_ties_are_of_earlier_versions():
    y, pred = FAMILIES["Quantiles"]
    monitor = small()
    monitor.update(y[:20], pred[:20])
    state = monitor.to_dict()
    ties = {"cases": 20, "levels": [0.1, 0.5, 0.9], "counts": [0, 0, 0]}
    assert state["ties"] == ties
    earlier = Monitor.from_dict({name: value for name, value in state.items() if name != "ties"})
    assert earlier.update(y[20:30], pred[20:30]) == monitor.update(y[20:30], pred[20:30])
    assert earlier.to_dict()["ties"] == {**ties, "cases": 10}
    for changed, message in (
        ({"counts": [0]}, r"ties\.levels and ties\.counts must have the 3 levels that predictions have"),
        ({"levels": [0.1, 0.5, 0.8]}, r"ties\.levels and ties\.counts must have the 3 levels that"),
        ({"cases": 21}, r"ties\.cases must be at most 20, .* found 21"),
        ({"counts": [0, 21, 0]}, r"at least the largest of ties\.counts, found 20"),
    ):
        with pytest.raises(ValueError, match=message):
            Monitor.from_dict({**state, "ties": {**ties, **changed}})
    normal = small()
    normal.update(Y[:20], PRED[:20])
    refused = {"cases": 20, "levels": [0.1, 0.5, 0.9], "counts": [0, 9, 0]}
    for monitor_of, found in ((normal, ties), (normal, refused), (small(), ties)):
        with pytest.raises(ValueError, match="ties must be null, as predictions say"):
            Monitor.from_dict({**monitor_of.to_dict(), "ties": found})
    with pytest.raises(ValueError, match=r"ties\.levels must be numbers strictly between 0 and 1, found 1"):
        Monitor.from_dict({**small().to_dict(), "ties": {**refused, "levels": [0.1, 0.5, 1.0]}})
    with pytest.raises(ValueError, match=r"ties\.cases must be at least the largest .* found 8"):
        Monitor.from_dict({**small().to_dict(), "ties": {**refused, "cases": 8}})
    with pytest.raises(ValueError, match="in 9 of 20 cases: where"):  # refused its first cases
        Monitor.from_dict({**small().to_dict(), "ties": refused}).update(y[:1], pred[:1])
    with pytest.raises(
        ValueError, match=r"levels of quantiles must be the same .* found 0\.5 after 0\.1, 0\.5,"
    ):
        monitor.update(y[30:31], wc.Quantiles([0.5], pred.values[30:31, 1:2]))


def test_bad_states(tmp_path):
    for text, message in (
        ("{", "is not the state of a monitor"),
        ("[]", "not the state"),
        ("{}", "format must be 'wellcal monitor 4', found None"),
    ):
        (tmp_path / "state.json").write_text(text)
        with pytest.raises(ValueError, match=message):
            Monitor.load(tmp_path / "state.json")
    monitor = small(kernel=KERNEL)
    with pytest.raises(ValueError, match="kernel must be the one the monitor has"):
        Monitor.from_dict(monitor.to_dict(), kernel=ExpDistance(Wasserstein(), 2.0) @ Gaussian())
    with pytest.raises(ValueError, match="has not chosen one yet"):
        Monitor.from_dict(small().to_dict(), kernel=KERNEL)


def test_status_is_shown_and_handed_on():
    status = small(kernel=KERNEL).update(Y[:5], PRED[:5])
    assert repr(status).startswith("No miscalibration found in 5 cases (p = ")
    assert "after 5 cases" in repr(status)
    assert json.loads(status.to_json()) == dataclasses.asdict(status)
    detector = small(kernel=KERNEL, run_length=100.0)
    assert "at 100" in repr(detector)
    assert "p =" not in repr(detector.update(Y[:5], PRED[:5]))
    resumed = Monitor.from_dict(json.loads(json.dumps(detector.to_dict())))
    assert resumed.update(Y[5:], PRED[5:]) == detector.update(Y[5:], PRED[5:])


def test_old_files_are_refused_with_a_reason():
    monitor = small(kernel=KERNEL)
    monitor.update(Y[:20], PRED[:20])
    for earlier in ("wellcal monitor 1", "wellcal monitor 2", "wellcal monitor 3"):
        with pytest.raises(ValueError, match="its evidence cannot be continued; start a new monitor"):
            Monitor.from_dict({**monitor.to_dict(), "format": earlier})


# -- predictions as plain values -----------------------------------------------------------------------


@pytest.mark.parametrize("family", FAMILIES)
def test_predictions_come_back_to_the_last_digit(family):
    _, pred = FAMILIES[family]
    back = predictions_from_dict(json.loads(json.dumps(predictions_to_dict(pred))))
    assert type(back) is type(pred)
    np.testing.assert_array_equal(back.sample(0), pred.sample(0))
    for field in dataclasses.fields(pred):
        ours, theirs = getattr(pred, field.name), getattr(back, field.name)
        if isinstance(ours, np.ndarray):
            assert theirs.dtype == ours.dtype
            np.testing.assert_array_equal(theirs, ours)


def test_predictions_in_single_precision_and_objects():
    single = wc.Normal(MU.astype(np.float32), SIGMA.astype(np.float32))
    assert predictions_from_dict(predictions_to_dict(single)).loc.dtype == np.float32
    items = wc.Samples(np.array([[object(), object()]], dtype=object))
    with pytest.raises(TypeError, match="objects cannot be written as JSON"):
        predictions_to_dict(items)
    with pytest.raises(ValueError, match="there is no family 'Nothing'"):
        predictions_from_dict({"family": "Nothing", "fields": {}})


SINGLE = {
    "Normal": (1.3, wc.Normal(0.3, 1.0)),
    "StudentT": (1.3, wc.StudentT(4, 0.3, 1.0)),
    "LogNormal": (1.3, wc.LogNormal(0.3, 1.0)),
    "Gamma": (1.3, wc.Gamma(2.0, 1.0)),
    "Beta": (0.3, wc.Beta(2.0, 1.0)),
    "Laplace": (1.3, wc.Laplace(np.float64(0.3), 1)),
    "PowerExponential": (1.3, wc.PowerExponential(0.3, 1.0, 2.0)),
    "Poisson": (3, wc.Poisson(2.0)),
    "NegativeBinomial": (3, wc.NegativeBinomial(2.0, 0.5)),
    "Bernoulli": ("yes", wc.Bernoulli(0.3, classes=("no", "yes"))),
    "Categorical": ("b", wc.Categorical([0.2, 0.8], classes=["a", "b"])),
    "DiagonalNormal": ([0.1, 0.2], wc.DiagonalNormal([0.0, 1.0], 1.0)),
    "MultivariateNormal": ([0.1, 0.2], wc.MultivariateNormal([0.0, 1.0], [[1.0, 0.5], [0.5, 1.0]])),
    "Dirichlet": ([0.4, 0.6], wc.Dirichlet([1.0, 2.0])),
    "Mixture": (1.3, wc.Mixture([wc.Normal(0.3, 1.0), wc.Normal(1.0, 2.0)], [0.5, 0.5])),
    "Samples": (1.3, wc.Samples([0.3, 1.0, 2.0, 1.5])),
    "Quantiles": (1.3, wc.Quantiles([0.1, 0.5, 0.9], [0.0, 1.0, 2.0])),
}


@pytest.mark.parametrize("family", SINGLE)
def test_a_single_case_of_every_family_in_plain_numbers(family):
    y, pred = SINGLE[family]
    assert type(pred).__name__ == family
    assert len(pred) == 1
    single, batch = wc.Monitor(rng=0), wc.Monitor(rng=0)
    for _ in range(2):
        one, again = single.update(y, pred), batch.update([y], pred)
        assert one.n_samples == again.n_samples
        assert one.log_e_value == again.log_e_value


def test_single_cases_are_those_of_a_batch():
    """What is written in numbers is the row of a batch, in the library of the numbers."""
    assert wc.Normal(torch.tensor(0.3), torch.tensor(1.0)).loc.shape == (1,)
    np.testing.assert_array_equal(wc.MultivariateNormal([0.0, 1.0], np.eye(2)).cov, np.eye(2)[None])
    with pytest.raises(ValueError, match="found 3 and 1: the parameters are those of a single case"):
        wc.nll([1.0, 2.0, 3.0], wc.Normal(0.0, 1.0))
    with pytest.raises(ValueError, match="probs must be 2-dimensional"):
        wc.Categorical([0.4, 0.8, 0.1, 0.9])  # of class 1 in four cases
