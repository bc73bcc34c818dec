"""The monitor: e-values by explicit sums, batches and single cases, saving and resuming, errors."""

import dataclasses
import json

import jax.numpy as jnp
import numpy as np
import pytest
import torch

import wellcal as wc
from wellcal.engines import Tiled
from wellcal.kernels import Callable, Delta, ExpDistance, Gaussian, Joint, Wasserstein
from wellcal.monitoring.bets import ETAS, log_bets, past_witness
from wellcal.monitoring.monitor import Monitor
from wellcal.predictions.plain import predictions_from_dict, predictions_to_dict

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


def small(**options):
    return Monitor(**{"rng": 3, "draws": 9, "warmup": 10, **options})


# -- bets ----------------------------------------------------------------------------------------------


def test_witness_of_the_past_by_hand():
    candidates = np.stack([Y[-3:], Y[-3:] + 1.0])
    found = past_witness(KERNEL, PRED, Y, candidates, memory=20, engine=Tiled())
    for t, case in enumerate(range(N - 3, N)):
        past = slice(case - 20, case)
        likeness = np.exp(-np.hypot(MU[past] - MU[case], SIGMA[past] - SIGMA[case]))
        for r in range(2):
            at = candidates[r, t]
            variance = 1.0 + SIGMA[past] ** 2
            mean = np.exp(-0.5 * (MU[past] - at) ** 2 / variance) / np.sqrt(variance)
            expected = np.mean(likeness * (np.exp(-0.5 * (Y[past] - at) ** 2) - mean))
            assert found[t, r] == pytest.approx(expected, rel=1e-10)


def test_joint_kernels_take_the_same_way():
    def joint(p, y, q, z):
        distance = np.hypot(p.loc[:, None] - q.loc, p.scale[:, None] - q.scale)
        return np.exp(-distance) * np.exp(-0.5 * (y[:, None] - z) ** 2)

    candidates = np.stack([Y[-3:], Y[-3:] + 1.0])
    plain = past_witness(KERNEL, PRED, Y, candidates, memory=20, engine=Tiled())
    options = {"engine": Tiled(), "memory": 20, "expectations": wc.Lowering(nodes=64)}
    np.testing.assert_allclose(past_witness(Joint(joint), PRED, Y, candidates, **options), plain, rtol=1e-7)
    doubled = past_witness(2.0 * KERNEL + KERNEL, PRED, Y, candidates, memory=20, engine=Tiled())
    np.testing.assert_allclose(doubled, 3.0 * plain, rtol=1e-12)


def test_bets_are_fair():
    """Over all places that the target may have among its draws, the mean of e is exactly 1."""
    u = rng.normal(size=(5, 8)) * 1e-3
    mean = np.mean([np.exp(log_bets(np.roll(u, k, axis=1))) for k in range(8)], axis=0)
    np.testing.assert_allclose(mean, 1.0, rtol=1e-13)


def test_bets_by_hand():
    u = np.array([[0.3, -0.1, 0.2, 0.0]])
    standard = (u - u.mean()) / u.std()
    expected = [4.0 * np.exp(eta * standard[0, 0]) / np.exp(eta * standard).sum() for eta in ETAS]
    np.testing.assert_allclose(np.exp(log_bets(u))[0], expected, rtol=1e-13)
    np.testing.assert_array_equal(log_bets(np.full((2, 5), 0.7)), 0.0)  # nothing to bet on
    np.testing.assert_allclose(log_bets(1e9 * u), log_bets(u), rtol=1e-12)
    with pytest.raises(ValueError, match="the witness is not finite"):
        log_bets(np.array([[np.nan, 1.0]]))


def test_evalue_is_the_mean_of_products():
    monitor = small(kernel=KERNEL)
    monitor.update(Y, PRED)
    generator = np.random.default_rng(3)
    logs = np.zeros(len(ETAS))
    for t in range(N):
        drawn = PRED[t].draw(generator, 9)[:, 0]
        at = np.concatenate([Y[t : t + 1], drawn])
        u = past_witness(KERNEL, PRED[: t + 1], Y[: t + 1], at[:, None], memory=1000, engine=Tiled())
        logs += log_bets(u)[0]
        assert monitor.history[t] == pytest.approx(np.mean(np.exp(logs)), rel=1e-9)
    assert monitor.e_value == pytest.approx(np.mean(np.exp(logs)), rel=1e-9)
    assert monitor.history[0] == 1.0  # the first case has no past


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
    assert (whole.history[:10] == 1.0).all()  # no bets before the kernel is chosen
    assert (whole.history[10:] != 1.0).any()


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
    before = np.array(monitor.to_dict()["logs"])
    monitor.update(Y[20:], PRED[20:])
    state = monitor.to_dict()
    np.testing.assert_array_equal(state["targets"]["values"], Y[-12:])
    assert state["predictions"]["fields"]["loc"]["shape"] == [12]
    assert len(monitor.history) == 5
    assert monitor.n_samples == N
    # What is forgotten has no effect: another first case gives the same bets later.
    other = small(kernel=KERNEL, memory=12)
    other.update(np.concatenate([[1.0 - Y[0]], Y[1:20]]), PRED[:20])
    start = np.array(other.to_dict()["logs"])
    other.update(Y[20:], PRED[20:])
    assert (start != before).all()
    np.testing.assert_allclose(other.to_dict()["logs"] - start, state["logs"] - before, rtol=1e-9)


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
    state["logs"] = [2000.0] * 4
    state["largest"] = 2000.0
    state["alarm_at"] = 3
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
    with pytest.raises(RuntimeError, match="out of order"):
        monitor.update(Y, PRED)
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


def test_bad_states(tmp_path):
    for text, message in (
        ("{", "is not the state of a monitor"),
        ("[]", "not the state"),
        ("{}", "format must be 'wellcal monitor 2', found None"),
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
    assert repr(status).startswith("Monitor: no alarm; e-value ")
    assert "after 5 cases" in repr(status)
    assert json.loads(status.to_json()) == dataclasses.asdict(status)


def test_old_names_and_old_files_still_work():
    monitor = small(kernel=KERNEL)
    with pytest.warns(DeprecationWarning, match=r"MonitorStatus\.n_samples"):
        assert monitor.update(Y[:20], PRED[:20]).n_cases == 20
    with pytest.warns(DeprecationWarning, match=r"Monitor\.n_samples"):
        assert monitor.n_cases == 20
    state = {**monitor.to_dict(), "format": "wellcal monitor 1", "n_cases": 20}
    del state["n_samples"]
    assert Monitor.from_dict(state).to_dict() == monitor.to_dict()


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
