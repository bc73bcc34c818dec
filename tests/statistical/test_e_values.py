"""e-values of calibrated models, by simulation: they reach 1 / alpha with probability alpha at most.

That each bet is exactly fair is checked without simulation, in `tests/unit/hypotests/test_e_values.py`.
"""

from itertools import count

import numpy as np

import wellcal as wc
from wellcal.hypotests.e_values import evidence_against

from .designs import check_rates

N, ALPHA = 40, 0.2
FAMILIES = {
    "Bernoulli": lambda rng: wc.Bernoulli(rng.beta(1.0, 2.0, N)),
    "Categorical": lambda rng: wc.Categorical(rng.dirichlet(np.ones(4), N)),
    "Poisson": lambda rng: wc.Poisson(rng.gamma(2.0, 1.0, N)),
    "StudentT": lambda rng: wc.StudentT(2.5, rng.normal(size=N), 1.0),
    "DiagonalNormal": lambda rng: wc.DiagonalNormal(rng.normal(size=(N, 3)), 1.0),
}


def test_evidence_against_calibrated_models():
    def reached(r):
        rng = np.random.default_rng([71, r])
        out = {}
        for name, make in FAMILIES.items():
            pred = make(rng)
            y = pred.check_targets(pred.sample(rng))
            out[name] = evidence_against(y, pred).log_e >= -np.log(ALPHA)
        return out

    check_rates("e-values reach 1 / alpha", list(FAMILIES), map(reached, count()))
