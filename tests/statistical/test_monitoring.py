"""Fair bets, false alarms and delays of the monitor, with fixed seeds; `benchmarks` has the long version."""

from itertools import count, tee

import numpy as np
import pytest

import wellcal as wc
from wellcal.monitoring.monitor import Monitor

from .designs import check_mean, check_rate, check_rates

ALPHA = 0.2  # a high rate, at which few streams say more
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


STREAMS = {"independent": independent, "autoregressive": autoregressive, "classes": classes}


@pytest.mark.parametrize("stream", STREAMS)
def test_false_alarms_over_many_steps(stream):
    """Alarms ever in 500 steps come at most at rate alpha; their e-values say when."""
    factors = []

    def alarmed(r):
        rng = np.random.default_rng([21, r])
        monitor = Monitor(rng=rng, **QUICK)
        status = monitor.update(*STREAMS[stream](rng, STEPS))
        # The rate of alarms has an upper bound only: a doubled alpha shows here, whatever the stream.
        reached = np.flatnonzero(monitor.history >= (1.0 - 1e-9) / ALPHA)
        assert status.alarm_at == (reached[0] + 1 if len(reached) else None)
        assert status.pvalue == pytest.approx(min(1.0, 1.0 / monitor.history.max()), rel=1e-12)
        factors.append(bets(monitor))
        return status.alarm

    check_rate("monitor, false alarms", map(alarmed, count()))
    check_mean("monitor, fair bets over many steps", np.concatenate(factors[:10]), 1.0, find=0.03)


def bets(monitor):
    """Factors of the e-value: each has a mean of one given the past."""
    history = np.concatenate([[1.0], monitor.history])
    return history[1:] / history[:-1]


@pytest.mark.parametrize("stream", STREAMS)
def test_expected_evalue_is_one(stream):
    """The mean of the e-value after a fixed number of cases is one: not two, as at twice alpha.

    So is the mean of each factor: one that would double the e-value over ten cases is found.
    """
    values, factors = [], []
    for r in range(200):
        rng = np.random.default_rng([22, r])
        monitor = Monitor(rng=rng, warmup=5, draws=9)
        values.append(monitor.update(*STREAMS[stream](rng, 15)).e_value)
        factors.append(bets(monitor))
    check_mean("monitor, e-value at a fixed time", values, 1.0, find=1.0)
    check_mean("monitor, fair bets", np.concatenate(factors), 1.0, find=2.0**0.1 - 1.0)


def test_a_shift_is_found():
    """A shift by one standard deviation is found within 60 cases, and one by half of that within 200."""

    def missed(shift, cases):
        for r in count():
            rng = np.random.default_rng([23, r])
            y, pred = independent(rng, cases)
            yield not Monitor(rng=rng, draws=19).update(y + shift * pred.scale, pred).alarm

    check_rate("monitor, missed shifts", missed(1.0, 60))
    check_rate("monitor, missed shifts", missed(0.5, 200))


def test_expected_detector_is_the_number_of_cases():
    """An e-detector less the number of cases is a martingale: that is what its run length rests on."""
    values = []
    for r in range(200):
        rng = np.random.default_rng([25, r])
        monitor = Monitor(rng=rng, warmup=5, draws=9, run_length=100.0)
        values.append(monitor.update(*independent(rng, 15)).e_value / 15.0)
    check_mean("monitor, detector at a fixed time", values, 1.0, find=1.0)


LATE = {"shift": (0.8, 1.0), "wide": (0.0, 1.8), "narrow": (0.0, 0.5)}
"""Mean and spread of the standardised targets after the change."""


def test_late_changes_are_found_and_dated():
    """After 300 cases without fault a change is found within 100, and its onset is in its interval."""

    def outcomes():
        for r in count():
            missed, misdated = {}, {}
            for kind, (mean, spread) in LATE.items():
                rng = np.random.default_rng([26, r])
                _, pred = independent(rng, 400)
                z = rng.normal(size=400)
                z[300:] = mean + spread * z[300:]
                status = Monitor(rng=rng, draws=19, memory=60).update(pred.loc + pred.scale * z, pred)
                missed[kind] = not status.alarm
                first, last = status.onset_interval or (301, 301)
                misdated[kind] = not first <= 301 <= last
            yield missed, misdated

    found, dated = tee(outcomes())
    check_rates("monitor, missed late changes", list(LATE), (missed for missed, _ in found))
    check_rates("monitor, missed onsets", list(LATE), (misdated for _, misdated in dated))


def test_a_wrong_spread_and_wrong_classes_are_found():
    rng = np.random.default_rng(24)
    pred = wc.Bernoulli(rng.uniform(size=400))
    y = rng.uniform(size=400) < pred.probs**2
    assert Monitor(rng=0, draws=19).update(y, pred).alarm
    _, wide = independent(rng, 800)
    assert Monitor(rng=0, draws=19).update(rng.normal(wide.loc, 2.5 * wide.scale), wide).alarm
