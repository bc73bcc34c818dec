"""Number of cases for a given power, and the smallest error that a test would have found."""

from __future__ import annotations

import numpy as np
import pytest
from scipy import special, stats

import wellcal as wc
from wellcal.hypotests.power_search import Search
from wellcal.hypotests.sensitivity import (
    PRICE,
    PRICE_OF_FREQUENCIES,
    SmallestError,
    information,
    needed,
    smallest_error,
)
from wellcal.hypotests.truths import truth_of
from wellcal.measures.deviations import Cases

MU = np.linspace(-1.0, 1.0, 80)
PRED = wc.Normal(MU, np.ones(80))


# -- the search --------------------------------------------------------------------------------------------


def test_the_search_ends_where_a_known_curve_has_the_power() -> None:
    """Coins of known probability instead of tests."""
    rng = np.random.default_rng(31)
    right = ((special.ndtri(0.8) + 1.6) / 0.25) ** 2
    for start in (6, 90, 900):
        search, n = Search(0.8, 10_000), start
        for _ in range(40):
            search.add(n, 20, rng.binomial(20, special.ndtr(-1.6 + 0.25 * np.sqrt(n))))
            n = search.next(n)
        cases, low, high = search.answer()
        assert low is not None
        assert high is not None
        assert low <= right <= high
        assert abs(cases - right) < 0.15 * right


def test_the_search_gives_up_where_nothing_is_found() -> None:
    search, n = Search(0.8, 100), 50
    for _ in range(6):
        search.add(n, 20, 1)
        if search.hopeless:
            break
        n = search.next(n)
    assert search.hopeless
    assert search.answer() == (None, None, None)


# -- the truth ---------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("against", "words"),
    [
        (0.8, "spreads are 20% too small"),
        (1.5, "spreads are 50% too large"),
        ({"shift": -0.5}, "targets are 0.5 standard deviations too low"),
        ({"temperature": 0.5}, "temperature is 50% too low"),
        (wc.Normal(MU + 1.0, np.ones(80)), "targets follow the other predictions"),
    ],
)
def test_errors_in_words(against: object, words: str) -> None:
    assert truth_of(PRED, against).words == words


def test_targets_are_drawn_from_the_truth() -> None:
    rng, index = np.random.default_rng(32), np.repeat(np.arange(80), 200)
    batch = PRED[index]
    wide = truth_of(PRED, 0.5).draw(index, batch, rng) - batch.loc
    assert wide.std() == pytest.approx(2.0, rel=0.03)
    high = truth_of(PRED, {"shift": 0.7}).draw(index, batch, rng) - batch.loc
    assert high.mean() == pytest.approx(0.7, abs=0.03)
    other = truth_of(PRED, wc.Normal(MU + 3.0, np.ones(80))).draw(index, batch, rng) - batch.loc
    assert other.mean() == pytest.approx(3.0, abs=0.03)
    classes = wc.Bernoulli(np.full(10, 0.2))
    drawn = truth_of(classes, wc.Bernoulli(np.full(10, 0.9))).draw(np.zeros(2000, int), classes, rng)
    assert drawn.mean() == pytest.approx(0.9, abs=0.03)


def test_plans_are_reproducible_and_in_order() -> None:
    """All data sets are used, a seed gives the same plan, and larger errors need fewer cases."""
    found = wc.plan(
        PRED, against={"shift": 0.5}, method="exact", n_resamples=19, data_sets=200, alpha=0.1, rng=3
    )
    assert found.n_samples is not None
    assert found.data_sets == 200 == sum(sets for _, sets, _ in found.tried)
    again = wc.plan(
        PRED, against={"shift": 0.5}, method="exact", n_resamples=19, data_sets=200, alpha=0.1, rng=3
    )
    assert again == found
    fewer = wc.plan(PRED, against={"shift": 1.0}, method="exact", n_resamples=19, data_sets=60, alpha=0.1)
    assert int(fewer) < int(found)


def test_classes_and_labels() -> None:
    rng = np.random.default_rng(33)
    pred = wc.Categorical(rng.dirichlet(np.ones(3), 60), classes=["a", "b", "c"])
    found = wc.plan(pred, against=0.2, method="exact", n_resamples=19, data_sets=40, alpha=0.1, most=300)
    assert found.error == "temperature is 80% too low"


def test_the_interval_ends_where_the_search_did() -> None:
    """What a curve says of more cases than were considered is no answer."""
    search = Search(0.8, 120)
    for n, found in ((60, 11), (80, 14), (100, 16)):
        search.add(n, 20, found)
    answer, low, high = search.answer()
    assert answer is not None
    assert low is not None
    assert low < answer <= 120
    assert high is None
    plan = wc.PowerPlan(answer, low, high, 0.8, 0.05, "spreads are 20% too small", "auto", 199, 60, 120)
    assert repr(plan).startswith(f"{answer} cases ({low} or more) show")
    assert wc.PowerPlan.from_json(plan.to_json()) == plan
    wider = Search(0.8, 10_000)
    wider.tried = search.tried
    assert wider.answer()[2] > 120


def test_more_than_the_most() -> None:
    found = wc.plan(PRED, against=0.99, method="exact", n_resamples=19, alpha=0.1, data_sets=80, most=10)
    assert found.n_samples is None
    assert repr(found).startswith("More than 10 cases are needed to show that spreads are 1% too small")
    with pytest.raises(ValueError, match="more than 10 cases are needed"):
        int(found)
    assert wc.PowerPlan.from_json(found.to_json()) == found


@pytest.mark.parametrize(
    ("options", "error", "message"),
    [
        ({"against": 1.0}, ValueError, "against must be a ratio between 0.001 and 1000 other than 1"),
        ({"against": {"shift": 0.0}}, ValueError, "against must be a number other than 0 for shift"),
        ({"against": {"size": 2.0}}, ValueError, "kind of error in against"),
        ({"against": {"shift": 1.0, "spreads": 2.0}}, ValueError, "one kind of error, found 2"),
        ({"against": "large"}, TypeError, "against"),
        ({"against": PRED[:3]}, ValueError, "against and pred must have the same length, found 3 and 80"),
        ({"against": wc.Bernoulli(np.full(80, 0.5))}, ValueError, "targets of the same kind"),
        ({"against": 0.8, "method": np.zeros(3)}, TypeError, "method must be a name or a method"),
        ({"against": 0.8, "power": 1.2}, ValueError, "power must be between 0 and 1"),
        ({"against": 0.8, "power": 1e-320}, ValueError, "power must be above alpha = 0"),
        ({"against": 0.8, "n_resamples": 9}, ValueError, "n_resamples=9 cannot reject at alpha = 0.05"),
        ({"against": 0.8, "data_sets": 3}, ValueError, "data_sets must be a whole number"),
    ],
)
def test_what_is_refused(options: dict, error: type[Exception], message: str) -> None:
    with pytest.raises(error, match=message):
        wc.plan(PRED, **options)


def test_objects_have_no_error_by_a_number() -> None:
    words = wc.Samples([["a", "b"], ["b", "b"]])
    with pytest.raises(TypeError, match="Samples has no error by a number"):
        wc.plan(words, against=0.5)


# -- smallest errors ---------------------------------------------------------------------------------------


def test_information_of_known_families() -> None:
    """Spread of a normal: 2; of a Laplace: 1; mean of a Poisson: its rate; shift of a normal: 1."""
    n = 400
    zeros, ones = np.zeros(n), np.ones(n)
    assert information(wc.Normal(zeros, 2.0 * ones), "spreads") == pytest.approx(np.sqrt(2.0), rel=0.06)
    assert information(wc.Laplace(zeros, ones), "spreads") == pytest.approx(1.0, rel=0.06)
    assert information(wc.Poisson(4.0 * ones), "means") == pytest.approx(2.0, rel=0.06)
    assert information(wc.Normal(zeros, 2.0 * ones), "shift") == pytest.approx(1.0, rel=0.06)
    p = 0.3
    temperature = information(wc.Bernoulli(p * ones), "temperature")
    assert temperature == pytest.approx(np.sqrt(p * (1.0 - p)) * abs(np.log(p / (1.0 - p))), rel=0.06)
    assert information(wc.DiagonalNormal(np.zeros((n, 3)), np.ones((n, 3))), "spreads") == pytest.approx(
        np.sqrt(6.0), rel=0.06
    )
    fine = wc.Quantiles(
        np.linspace(0.02, 0.98, 49), np.tile(special.ndtri(np.linspace(0.02, 0.98, 49)), (n, 1))
    )
    assert 1.1 < information(fine, "spreads") < np.sqrt(2.0)


def test_the_smallest_error_of_few_counts_is_found_on_both_sides() -> None:
    """The total of 20 counts of mean 2 is a count of mean 40, whose tails are known."""
    pred = wc.Poisson(np.full(20, 2.0))
    least = smallest_error(Cases(np.full(20, 2.0), pred, wc.default_kernel(pred)))
    assert least is not None
    totals = np.arange(200)
    found = 2.0 * np.minimum(stats.poisson.cdf(totals, 40.0), stats.poisson.sf(totals - 1, 40.0)) <= 0.05 / 15

    def power(ratio: float) -> float:
        return float(stats.poisson.pmf(totals[found], 40.0 / ratio).sum())

    sides = [power(1.0 + least.share), power(1.0 / (1.0 + least.share))]
    assert min(sides) > 0.74  # 0.8, and three standard errors of 400 sets
    nearer = (1.0 + least.share) ** 0.85
    assert min(power(nearer), power(1.0 / nearer)) < 0.74


@pytest.mark.parametrize("n", [20, 60, 400])
def test_coins_have_a_smallest_error_in_how_often_they_fall(n: int) -> None:
    """Temperatures say nothing of them; how many of n outcomes there are is binomial, with known tails."""
    coin = wc.Bernoulli(np.full(n, 0.5))
    least = smallest_error(Cases(np.zeros(n, dtype=int), coin, wc.default_kernel(coin)))
    assert least is not None
    assert (least.kind, least.beyond) == ("frequencies", False)
    totals = np.arange(n + 1)
    level = 0.05 / PRICE_OF_FREQUENCIES
    found = 2.0 * np.minimum(stats.binom.cdf(totals, n, 0.5), stats.binom.sf(totals - 1, n, 0.5)) <= level

    def power(share: float) -> float:
        return float(stats.binom.pmf(totals[found], n, share).sum())

    assert power(0.5 + least.share) > 0.72  # 0.8, less three standard errors of 400 sets and a step of counts
    assert power(0.5 + 0.8 * least.share) < 0.74


def test_the_smallest_error_of_coins_is_found() -> None:
    """By the test itself, with power 0.7 at least."""
    coin = wc.Bernoulli(np.full(80, 0.5))
    least = smallest_error(Cases(np.zeros(80, dtype=int), coin, wc.default_kernel(coin)))
    found = 0
    for rng in np.random.default_rng(11).spawn(100):
        y = (rng.random(80) < 0.5 - least.share).astype(int)
        found += wc.calibration_test(y, coin, n_resamples=199, rng=rng).rejected
    assert found >= stats.binom.ppf(0.01, 100, 0.7)


@pytest.mark.parametrize("side", [-1.0, 1.0])
def test_predictions_that_are_alike_and_no_coin_find_both_sides_alike(side: float) -> None:
    """A temperature of these has two sides of which one is hardly ever found."""
    pred = wc.Bernoulli(np.full(400, 0.4))
    least = smallest_error(Cases(np.zeros(400, dtype=int), pred, wc.default_kernel(pred)))
    assert least.kind == "frequencies"
    found = stats.binom.cdf(np.arange(401), 400, 0.4 + side * least.share)
    totals = np.arange(401)
    below, above = stats.binom.cdf(totals, 400, 0.4), stats.binom.sf(totals - 1, 400, 0.4)
    rejected = 2.0 * np.minimum(below, above) <= 0.05 / PRICE_OF_FREQUENCIES
    power = float(np.diff(found, prepend=0.0)[rejected].sum())
    assert 0.72 < power < 0.88


@pytest.mark.parametrize(
    ("pred", "told"),
    [
        (wc.Bernoulli(np.full(200, 0.5)), "200 cases would have shown frequencies that are "),
        (wc.Bernoulli(np.full(400, 0.4)), "400 cases would have shown frequencies that are "),
        (
            wc.Categorical(np.tile([0.4, 0.35, 0.25], (400, 1))),
            "400 cases would have shown frequencies that are ",
        ),
        (wc.Bernoulli(np.linspace(0.49, 0.51, 200)), "200 cases would have shown frequencies that are "),
        (wc.Categorical(np.full((200, 3), 1 / 3)), "200 cases would have shown frequencies that are "),
        (
            wc.Bernoulli(np.full(3, 0.5)),
            "3 cases are too few to show even frequencies that are 50 percentage",
        ),
        (wc.Bernoulli(np.linspace(0.1, 0.9, 200)), "200 cases would have shown a temperature that is "),
    ],
)
def test_classes_that_are_found_calibrated_say_what_would_have_shown(pred: wc.Predictions, told: str) -> None:
    for seed in range(3):
        found = wc.calibration_test(pred.sample(np.random.default_rng(seed)), pred, n_resamples=99)
        if not found.rejected:
            break
    assert f"). {told}" in found.verdict
    assert wc.TestResult.from_json(found.to_json()).verdict == found.verdict


def test_clusters_of_alike_coins_show_less() -> None:
    coin, falls = wc.Bernoulli(np.full(90, 0.5)), np.tile([0, 1, 1], 30)
    clusters = np.arange(90) // 3
    alone = smallest_error(Cases(falls, coin, wc.default_kernel(coin)))
    alike = smallest_error(Cases(np.sort(falls), coin, wc.default_kernel(coin), groups=clusters))
    assert alike.clusters == 30
    assert alike.share > 1.5 * alone.share


@pytest.mark.parametrize(("draws", "n"), [(200, 40), (2, 200), (5, 200)])
def test_the_smallest_error_of_draws_is_that_of_what_they_were_drawn_from_or_larger(
    draws: int, n: int
) -> None:
    """A target is one of N exchangeable values, whose kurtosis is 3 (N - 1) / (N + 1) for normal ones."""
    for seed in range(5):
        rng = np.random.default_rng([5, seed])
        mu = rng.normal(size=n)
        said = wc.Samples(mu[:, None] + rng.normal(size=(n, draws)), axis=1)
        found = wc.calibration_test(rng.normal(mu), said, n_resamples=19)
        if not found.rejected:
            break
    assert found.smallest_error is not None
    normal = wc.Normal(mu, np.ones(n))
    known = np.log1p(smallest_error(Cases(mu, normal, wc.default_kernel(normal))).share)
    size, kurtosis = draws + 1, 3.0 * draws / (draws + 2.0)
    seen = (1.0 - 1.0 / size) * np.sqrt((kurtosis - 1.0) / 2.0)
    assert np.log1p(found.smallest_error.share) == pytest.approx(known / seen, rel=0.15)


def test_the_smallest_error_shrinks_with_the_number_of_cases() -> None:
    kernel = wc.default_kernel(PRED)
    found = [smallest_error(Cases(MU, PRED[:n], kernel)) for n in (20, 80)]
    assert found[0].share > found[1].share
    many = wc.Normal(np.tile(MU, 2), np.ones(160))
    formula = np.log1p(smallest_error(Cases(np.tile(MU, 2), many, kernel)).share)
    assert formula == pytest.approx(needed(0.8, 0.05 / PRICE) / np.sqrt(2.0 * 160), rel=0.1)
    one = smallest_error(Cases(MU[:1], PRED[:1], kernel))
    assert one is not None
    assert one.beyond, "nothing could be found in one case"
    alone = smallest_error(Cases(MU, PRED, kernel, groups=np.arange(80)))
    assert alone.share == found[1].share, "clusters of one case are independent cases"


@pytest.mark.parametrize("clusters", [6, 10, 50, 1000])
def test_what_is_needed_with_clusters_has_the_power_of_a_t_test(clusters: int) -> None:
    level, freedom = 0.05 / PRICE, clusters - 1
    beyond = stats.t.isf(0.5 * level, freedom)
    assert 0.8 <= stats.nct.sf(beyond, freedom, needed(0.8, level, clusters)) < 0.85


def test_the_smallest_error_of_few_clusters_is_found() -> None:
    """Power of 100 data sets at 0.7 at least; a spread that counts as known is found in half of them."""
    clusters = np.repeat(np.arange(10), 5)
    x = np.linspace(-1.0, 1.0, 50)
    pred = wc.Normal(x, np.ones(50))
    found = 0
    for rng in np.random.default_rng(10).spawn(100):
        z = rng.normal(size=50)
        least = smallest_error(Cases(x + z, pred, wc.default_kernel(pred), groups=clusters))
        y = x + z * (1.0 + least.share)
        with pytest.warns(UserWarning, match="10 clusters"):
            found += wc.calibration_test(y, pred, groups=clusters, n_resamples=199, rng=rng).rejected
    assert found >= stats.binom.ppf(0.01, 100, 0.7)


def test_the_smallest_error_grows_with_the_likeness_of_cases_in_clusters() -> None:
    """Three copies of each case are worth a third of as many independent ones, whose spread is known."""
    z = np.random.default_rng(2).normal(size=100)
    mu, clusters = np.linspace(-1.0, 1.0, 300), np.repeat(np.arange(100), 3)
    pred = wc.Normal(mu, np.ones(300))
    kernel = wc.default_kernel(pred)
    copies = smallest_error(Cases(mu + np.repeat(z, 3), pred, kernel, groups=clusters))
    single = smallest_error(Cases(mu + np.repeat(z, 3), pred, kernel))
    unknown = needed(0.8, 0.05 / PRICE, clusters=100) / needed(0.8, 0.05 / PRICE)
    assert np.log1p(copies.share) == pytest.approx(unknown * np.sqrt(3.0) * np.log1p(single.share))
    result = wc.calibration_test(mu + np.repeat(z, 3), pred, groups=clusters, rng=0, n_resamples=99)
    assert not result.rejected
    assert "300 cases in 100 clusters would have shown spreads that are" in result.verdict
    assert result.verdict.endswith("wrong or more (power about .8).")
    assert wc.TestResult.from_json(result.to_json()).smallest_error == result.smallest_error


def test_a_test_that_finds_nothing_says_what_it_would_have_found() -> None:
    y = np.random.default_rng(35).normal(MU, 1.0)
    honest = wc.calibration_test(y, PRED, rng=0)
    assert honest.pvalue > 0.05
    assert str(honest.smallest_error) in repr(honest)
    assert str(honest.smallest_error).startswith("80 cases would have shown spreads that are ")
    assert wc.TestResult.from_json(honest.to_json()).smallest_error == honest.smallest_error
    assert wc.calibration_test(y + 2.0, PRED, rng=0).smallest_error is None
    assert wc.calibration_test(y, PRED, rng=0, method="exact").smallest_error is None


def test_a_test_that_could_find_nothing_says_so() -> None:
    """Ten outcomes show no temperature, and five clusters, whose signs have few patterns, hardly anything."""
    rng = np.random.default_rng(1)
    p = rng.uniform(0.05, 0.95, 10)
    few = wc.calibration_test((rng.uniform(size=10) < p).astype(int), wc.Bernoulli(p), rng=0)
    assert few.verdict.endswith(
        "10 cases are too few to show even a temperature that is wrong by a factor of 4 (power .8)."
    )
    assert wc.TestResult.from_json(few.to_json()) == few
    with pytest.warns(UserWarning, match="5 clusters have 16 different patterns"):
        rough = wc.calibration_test(PRED.sample(rng), PRED, groups=np.arange(80) % 5, rng=0)
    assert rough.pvalue > 0.05
    assert rough.verdict.endswith(
        "80 cases in 5 clusters are too few clusters to show an error of any size reliably."
    )
    assert wc.TestResult.from_json(rough.to_json()) == rough


def test_smallest_errors_in_words() -> None:
    assert str(SmallestError("temperature", 0.3, 2000, 0.9)) == (
        "2,000 cases would have shown a temperature that is 30% wrong or more (power .9)"
    )
