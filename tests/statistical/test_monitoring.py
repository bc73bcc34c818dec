"""False alarms and delays of the monitor, with fixed seeds; `benchmarks` has the long version."""

import numpy as np
import pytest
from scipy import stats

import wellcal as wc
from wellcal.monitoring.monitor import Monitor

ALPHA = 0.2  # a high level, at which few streams say more
STEPS = 500
QUICK = {"draws": 9, "memory": 60, "alpha": ALPHA}


def independent(rng, n):
    pred = wc.Normal(rng.normal(size=n), np.exp(0.3 * rng.normal(size=n)))
    return pred.sample(rng), pred


def autoregressive(rng, n):
    """Forecasts from the last target: the targets are not independent given all forecasts."""
    y = np.zeros(n + 1)
    for t in range(n):
        y[t + 1] = 0.8 * y[t] + rng.normal()
    return y[1:], wc.Normal(0.8 * y[:-1], np.ones(n))


def classes(rng, n):
    pred = wc.Bernoulli(rng.uniform(size=n))
    return pred.sample(rng), pred


@pytest.mark.parametrize("stream", [independent, autoregressive, classes])
def test_false_alarms_over_many_steps(stream):
    """Alarms ever in 500 steps, at most alpha: within a binomial's 99.9% range from above."""
    rng = np.random.default_rng(21)
    streams = 16
    alarms = sum(Monitor(rng=rng, **QUICK).update(*stream(rng, STEPS)).alarm for _ in range(streams))
    assert alarms <= stats.binom.ppf(0.999, streams, ALPHA)


def test_expected_evalue_is_one():
    """E of the e-value after a fixed number of cases is 1: here its mean over short streams."""
    rng = np.random.default_rng(22)
    values = [Monitor(rng=rng, warmup=5, draws=9).update(*independent(rng, 15)).e_value for _ in range(200)]
    assert abs(np.mean(values) - 1.0) < 4.0 * np.std(values) / np.sqrt(len(values))


def test_a_shift_is_found():
    """A shift by one standard deviation is found soon, and one by half of that somewhat later."""
    rng = np.random.default_rng(23)

    def delay(shift):
        found = []
        for _ in range(15):
            y, pred = independent(rng, 200)
            found.append(Monitor(rng=rng, draws=19).update(y + shift * pred.scale, pred).alarm_at or 999)
        return np.median(found)

    large, small = delay(1.0), delay(0.5)
    assert large < 50
    assert large < small < 120


def test_a_wrong_spread_and_wrong_classes_are_found():
    rng = np.random.default_rng(24)
    pred = wc.Bernoulli(rng.uniform(size=400))
    y = rng.uniform(size=400) < pred.probs**2
    assert Monitor(rng=0, draws=19).update(y, pred).alarm
    _, wide = independent(rng, 800)
    assert Monitor(rng=0, draws=19).update(rng.normal(wide.loc, 2.5 * wide.scale), wide).alarm
