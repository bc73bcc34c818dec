"""Reports that tests open: one of each kind, with names that would do harm if anybody took them for code."""

from __future__ import annotations

from collections.abc import Callable
from functools import cache
from typing import Any

import numpy as np

import wellcal as wc

HOSTILE = "<script>alert(1)</script>"
QUOTED = "\" onload='alert(2)' x=\""
ENDING = "</style></script><img src=x onerror=alert(3)>"
N = 240


def _classes() -> Any:
    rng = np.random.default_rng(0)
    logits = rng.normal(size=(N, 3))
    probs = np.exp(2.0 * logits) / np.exp(2.0 * logits).sum(axis=1, keepdims=True)
    truth = np.exp(logits) / np.exp(logits).sum(axis=1, keepdims=True)
    names = [HOSTILE, QUOTED, ENDING]
    y = np.array(names)[(rng.random((N, 1)) > truth.cumsum(axis=1)).sum(axis=1)]
    region = np.where(np.arange(N) % 2 == 0, HOSTILE, "South")
    return wc.report(
        y, wc.Categorical(probs, classes=names), segments={ENDING: region}, recalibrate=True, rng=0
    )


def _normals() -> Any:
    rng = np.random.default_rng(1)
    mu = 2.0 * rng.normal(size=N)
    return wc.report(rng.normal(mu, 1.4), {HOSTILE: wc.Normal(mu, np.ones(N))}, recalibrate=True, rng=0)


def _calibrated() -> Any:
    rng = np.random.default_rng(2)
    mu = 2.0 * rng.normal(size=N)
    return wc.report(rng.normal(mu, 1.0), wc.Normal(mu, np.ones(N)), rng=0)


def _counts() -> Any:
    rng = np.random.default_rng(3)
    rate = np.exp(rng.normal(1.0, 0.5, size=N))
    return wc.report(rng.poisson(rate * rng.gamma(2.0, 0.5, size=N)), wc.Poisson(rate), rng=0)


def _samples() -> Any:
    rng = np.random.default_rng(4)
    mu = rng.normal(size=N)
    draws = rng.normal(mu[:, None], 0.6, size=(N, 40))
    return wc.report(rng.normal(mu, 1.0), wc.Samples(draws), rng=0)


def _several() -> Any:
    rng = np.random.default_rng(5)
    mu, one = rng.normal(size=N), np.ones(N)
    models = {
        "honest": wc.Normal(mu, one),
        HOSTILE: wc.Normal(mu, 0.5 * one),
        "shifted $5 to $\\frac": wc.Normal(mu + 0.7, one),
    }
    return wc.report(rng.normal(mu, 1.0), models, rng=0)


def _ten() -> Any:
    rng = np.random.default_rng(6)
    mu = rng.normal(size=10)
    return wc.report(rng.normal(mu, 3.0), wc.Normal(mu, np.ones(10)), recalibrate=True, rng=0)


_MADE: dict[str, Callable[[], Any]] = {
    "classes": _classes,
    "normals": _normals,
    "calibrated": _calibrated,
    "counts": _counts,
    "samples": _samples,
    "several": _several,
    "ten": _ten,
}
KINDS = tuple(_MADE)


@cache
def made(kind: str) -> Any:
    """The report of this kind."""
    return _MADE[kind]()


@cache
def page_text(kind: str) -> str:
    """Its page."""
    return made(kind).to_html()
