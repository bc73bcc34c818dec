"""Calibration of a model whose targets are words: samples, and a kernel of one's own.

Nothing but a similarity of two targets is needed. A toy model completes sentences by drawing words; two
words are alike if they share letters.
"""

import numpy as np

import wellcal as wc
from wellcal.kernels import Callable, ExpDistance, MaximumMeanDiscrepancy

WORDS = np.array(["sun", "sunny", "rain", "rainy", "snow"], dtype=object)
LETTERS = sorted(set("".join(WORDS)))
rng = np.random.default_rng(0)


def shared_letters(x, y):
    """Letters in common over letters in either, for all pairs: the Jaccard kernel, positive definite."""
    has = [np.array([[letter in word for letter in LETTERS] for word in words], float) for words in (x, y)]
    common = has[0] @ has[1].T
    return common / (has[0].sum(1)[:, None] + has[1].sum(1) - common)


def draw(probs, size):
    return np.stack([rng.choice(WORDS, size=size, p=row) for row in probs])


probs = rng.dirichlet(np.ones(len(WORDS)), size=200)
y = draw(probs, 1)[:, 0]
on_words = Callable(shared_letters, vectorized=True, positive_definite=True, bounded=True)
kernel = ExpDistance(MaximumMeanDiscrepancy(on_words), lengthscale=0.3, power=2.0) @ on_words

for name, predicted in {"law of the targets": probs, "words in reverse order": probs[:, ::-1]}.items():
    estimate = wc.skce(y, wc.Samples(draw(predicted, 20)), kernel=kernel)
    print(f"{name:>22}: SKCE {estimate.value:+.4f}, standard error {estimate.standard_error:.4f}")
