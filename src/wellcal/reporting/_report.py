"""`report`: one call for what a person would ask."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from wellcal._arrays.checks import flag
from wellcal._arrays.namespaces import NDArray, to_numpy
from wellcal._arrays.progress import Listener, Stages, reported
from wellcal._arrays.round_numbers import how_many
from wellcal._arrays.seeds import as_generator, known_seed
from wellcal.comparison import Comparisons
from wellcal.comparison.models import prepare_models
from wellcal.comparison.result import names_in_words
from wellcal.comparison.several import compare_several
from wellcal.hypotests import calibration_test
from wellcal.hypotests.findings.families import findings_about
from wellcal.hypotests.findings.finding import LEVEL
from wellcal.hypotests.findings.reasons import ALPHA, Seen
from wellcal.hypotests.result import TestResult
from wellcal.hypotests.setup import numpy_batch, with_targets
from wellcal.predictions.base import check_inputs
from wellcal.predictions.target_leakage import without_targets
from wellcal.reporting.choosing import CITATION, choices_of, today
from wellcal.reporting.data import DRAWN, Data, ModelData, at_most, family_in_words, gathered
from wellcal.reporting.examples import groups_of_all, worst_groups
from wellcal.reporting.mending import mended
from wellcal.reporting.numbers import ece_of, error_of, numbers_of, scores_of
from wellcal.reporting.pieces import Mended, Segments, WorstGroup
from wellcal.reporting.result import NOT_SEARCHED, ModelReport, Report
from wellcal.reporting.segmenting import Segment, by_segment, in_part, segments_from
from wellcal.witnesses import Witness, witness
from wellcal.witnesses.compute import enough_resamples
from wellcal.witnesses.looking_again import as_computed, second_look

TESTED = 50_000
"""Cases that all tests of a report look at together; of more, a random part is taken."""

TESTED_IN_CLUSTERS = 20_000
"""The same where they come in clusters: random signs of these visit all pairs of cases."""

BANDS = "Limits of coverage, and bands of pictures, are those of independent cases: too narrow for clusters."
"""What a report of clusters does not honour them in."""

TEST, SEARCH, NUMBERS, COMPARISON, MENDING = 3.0, 2.0, 1.0, 1.0, 6.0
"""How long parts of a report take, about, for the time that is left: a segment takes 1."""

SEARCHED = 5_000
"""Cases in which groups are looked for, that models are compared on, and that are tested after mending."""


@reported
def report(
    y: object,
    pred: object,
    *,
    segments: object = None,
    recalibrate: bool = False,
    groups: object = None,
    weights: object = None,
    rng: int | np.random.Generator | None = None,
    n_resamples: int | None = None,
    progress: bool | Listener | None = None,
) -> Report:
    """Say what is wrong with a model's predictions, how much, where, and what would mend it.

    One test decides whether a model is called miscalibrated, that of :func:`wellcal.calibration_test`, at an
    error rate of 0.05, and everything else in the report follows it: where it finds nothing, nothing is said
    of groups of cases either.

    Parameters
    ----------
    y
        Observed targets, one for each case.
    pred
        Predictions: a batch such as ``wc.Normal(mu, sigma)``, or anything that :func:`wellcal.as_predictions`
        understands; or several models for the same cases by name, ``{"forest": p1, "boosting": p2}``.
    segments
        Variables by which cases are told apart, whether or not the model used them: a dictionary of labels,
        numbers or dates by name, a data frame, or a column. Numbers and dates, also as "2024-03-01",
        are cut into groups. Each group is tested by itself, with p-values adjusted for all of them.
    recalibrate
        Whether to try what recalibration on held-out cases would do
        (:func:`wellcal.recalibration.cross_fit`).
    groups
        Label of the cluster of each case (patient, account), where cases of one cluster depend on each other,
        for one model. Tests, findings, the size of the error, segments and standard errors of scores honour
        it; the search for groups of cases and recalibration, which cannot, are left out, and the limits of
        coverage, which do not, say so.
    weights
        A report counts all cases alike, and refuses weights with the reason.
    rng
        Seed or generator. The same seed gives the same report, and None is the default seed, 0, as in all
        functions: the verdict is that of :func:`wellcal.calibration_test`.
    n_resamples
        Resamples of all tests, as in :func:`wellcal.calibration_test`; None takes what they take by
        themselves.
    progress
        As in :func:`wellcal.calibration_test`: whether to show how far it is, and how long the rest will
        take; None does where standard error is a terminal. A function is called as
        ``progress(what, done, total)``, and ends the run by raising an error.

    Returns
    -------
    Report
        With `verdict`, `findings`, `models`, `comparison`, `figures`, `choices`; as text, in notebooks, as
        `to_dict`, `to_json`, and with `to_html(path)` as a page.

    Notes
    -----
    The cost is bounded: tests look at 50,000 cases at most (20,000 in clusters), shared among models; the
    search for groups, comparisons, the tests of recalibrated predictions and of a segment at 5,000, fewer for
    many models or segments. `sampled` says what looked at a part of the cases. Sizes and frequencies in
    findings, scores, coverage and calibration of quantiles look at all of them, and so do recalibration where
    a likelihood chooses the temperature, and the numbers that are told of groups: those that were found in a
    part of the cases, and do not stand out in all of them, are left out.

    Examples
    --------
    >>> import numpy as np, wellcal as wc
    >>> rng = np.random.default_rng(0)
    >>> mu = rng.normal(size=300)
    >>> found = wc.report(rng.normal(mu, 1.0), wc.Normal(mu, np.full(300, 0.7)), rng=0)
    >>> found.verdict
    'Miscalibrated (p <= 5.0e-05, the smallest that 20,000 resamples can give): spreads are ...'
    >>> list(found.best.scores)
    ['CRPS', 'NLL']
    """
    if weights is not None:
        raise ValueError(
            "weights: a report cannot honour them, since its tests, limits of coverage and recalibration "
            "count all cases alike; give them to wc.nll, wc.crps, wc.brier, wc.skce, wc.compare or wc.witness"
        )
    return report_of(
        gathered(y, pred),
        segments=segments,
        recalibrate=recalibrate,
        groups=groups,
        rng=rng,
        n_resamples=n_resamples,
    )


def report_of(
    data: Data,
    *,
    segments: object = None,
    recalibrate: bool = False,
    groups: object = None,
    rng: int | np.random.Generator | None = None,
    n_resamples: int | None = None,
) -> Report:
    """:func:`report` of cases that were gathered, and may be called otherwise than by their numbers."""
    recalibrate = flag(recalibrate, "recalibrate")
    count = None if n_resamples is None else enough_resamples(n_resamples, ALPHA)
    seed = _seed(rng)
    data = data if groups is None else data.in_clusters(groups)
    parts: list[Segment] = []
    notes: list[str] = []
    if segments is not None:
        in_order = without_targets(data.in_order, data.models[0].targets)
        parts, notes = segments_from(segments, len(data), in_order)
    some = len(data.models)
    stages = Stages("report", some * (TEST + COMPARISON * (some > 1) + _effort(parts, recalibrate)))
    plan = _Plan.of(data, seed, count, stages)
    tests = {model.name: plan.test(model) for model in data.models}
    comparison = plan.compared(tests) if some > 1 else None
    models = [plan.model(model, tests[model.name], parts, recalibrate) for model in data.models]
    if comparison is not None:
        models.sort(key=lambda model: comparison.ranking.index(model.name))
    made = Report(
        models=tuple(models),
        comparison=comparison,
        choices=choices_of(data, tests, seed),
        sampled=(*plan.sampled(models, comparison is not None), *notes, *in_part(parts)),
        n_samples=len(data),
        family=_family(data, [model.name for model in models]),
        made=today(),
        citation=CITATION,
    )
    made = made.with_data(data)
    stages.end()
    return made


def _effort(parts: list[Segment], recalibrate: bool) -> float:
    """What is done for one model after its test, in about the time that a kernel sum takes."""
    return SEARCH + NUMBERS + MENDING * recalibrate + float(len(parts))


def _seed(rng: Any) -> int:
    """The seed of all random numbers: the given one, that of all functions, or one that a generator draws."""
    generator = as_generator(rng)
    seed = known_seed(rng)
    return int(generator.integers(2**32)) if seed is None else seed


def _family(data: Data, order: list[str]) -> str:
    """Families in the order in which the models are named."""
    by_name = {model.name: model.predictions for model in data.models}
    words = list(dict.fromkeys(family_in_words(by_name[name]) for name in order))
    return "; ".join(words)


@dataclass(frozen=True)
class _Plan:
    """What looks at which cases.

    Attributes
    ----------
    data
        All cases.
    seed
        Of everything.
    n_resamples
        Of all tests; None for what they take by themselves.
    stages
        How far it is.
    rows
        Cases that are tested; None for all.
    fewer
        Of the tested cases, those that what takes longer looks at; None for all.
    """

    data: Data
    seed: int
    n_resamples: int | None
    stages: Stages
    rows: NDArray | None
    fewer: NDArray | None

    @classmethod
    def of(cls, data: Data, seed: int, n_resamples: int | None, stages: Stages) -> _Plan:
        rng = np.random.default_rng(seed)
        tested = TESTED if data.n_clusters is None else TESTED_IN_CLUSTERS
        rows = at_most(len(data), tested // len(data.models), rng)
        n_tested = len(data) if rows is None else len(rows)
        most = SEARCHED // max(1, len(data.models) // 2)
        return cls(data, seed, n_resamples, stages, rows, at_most(n_tested, most, rng))

    @property
    def searched(self) -> NDArray | None:
        """Cases that what takes longer looks at, among all."""
        if self.fewer is None:
            return self.rows
        return self.fewer if self.rows is None else self.rows[self.fewer]

    def sampled(self, models: Sequence[ModelReport], compared: bool) -> list[str]:
        """What looked at a part of the cases, in sentences."""
        n = len(self.data)
        said: list[str] = []
        if self.rows is not None:
            said.append(
                f"The p-value, and the size of the error, are those of {len(self.rows):,} of {n:,} cases, "
                f"drawn at random; findings, scores, coverage and quantiles are those of all."
            )
        groups = any(model.witness is not None for model in models)  # looked for where an error is found
        what = ["the search for groups"] if groups else []
        what += ["the comparison of models"] if compared else []
        mended = [model.mended for model in models if model.mended is not None]
        what += ["tests after recalibration"] if any(one.scored == n for one in mended) else []
        what += ["recalibration"] if any(one.scored < n for one in mended) else []
        if self.searched is not None and self.fewer is not None and what:
            listed = names_in_words([f"{what[0][0].upper()}{what[0][1:]}", *what[1:]])
            told = "; groups are told as they are in all of them" if groups else ""
            said.append(f"{listed} looked at {len(self.searched):,} of {n:,} cases, drawn at random{told}.")
        if n > DRAWN:
            said.append(f"Pictures show {DRAWN:,} of {n:,} cases, drawn at random.")
        return said

    # -- one after the other -------------------------------------------------------------------

    def test(self, model: ModelData) -> TestResult:
        some = model.some(self.rows)
        with self.stages.part(TEST):
            found = calibration_test(
                some.targets,
                some.predictions,
                rng=self.seed,
                n_resamples=self.n_resamples,
                keep_null=True,
                groups=some.clusters,
            )
        if self.rows is not None:  # sizes and frequencies are those of all cases
            checked, predictions = check_inputs(model.targets, model.predictions)
            targets = to_numpy(checked)
            pooled, draws = with_targets(targets, numpy_batch(predictions))
            seen = Seen(targets, pooled, draws is not None, model.clusters)
            found.__dict__["findings"] = findings_about(seen, found.pvalue, found.provenance)
        return found

    def compared(self, tests: dict[str, TestResult]) -> Comparisons:
        """All models, with the tests that were made of them."""
        some = [model.some(self.searched) for model in self.data.models]
        options = {"expectations": "auto", "engine": "auto", "n_resamples": None}
        given: dict[str, object] = {model.name: model.predictions for model in some}
        with self.stages.part(COMPARISON * len(some)):
            found = prepare_models(some[0].targets, given, None, LEVEL, None, self.seed, options, tests=tests)
            return compare_several(found)

    def model(
        self, model: ModelData, test: TestResult, parts: list[Segment], recalibrate: bool
    ) -> ModelReport:
        left_out: list[str] = [] if model.clusters is None else [BANDS]
        some = model.some(self.rows)
        rejected = test.pvalue <= ALPHA
        where: Witness | None = None
        groups: tuple[WorstGroup, ...] = ()
        with self.stages.part(SEARCH):
            if rejected:
                where = _tried(lambda: self._witness(model), left_out, NOT_SEARCHED)
            if where is not None:
                where, groups = self._groups(model, where, left_out)
        mending: Mended | None = None
        if recalibrate:
            with self.stages.part(MENDING):
                found = mended(model, test, self.searched, self.seed, self.n_resamples)
            mending = found if isinstance(found, Mended) else None
            left_out += [found] if isinstance(found, str) else []
        by_part: Segments | None = None
        if parts:
            with self.stages.part(float(len(parts))):
                by_part = by_segment(model, parts, self.seed, self.n_resamples)
        with self.stages.part(NUMBERS):
            coverage, quantiles = numbers_of(model)
            error = error_of(some, test)
        return ModelReport(
            name=model.name,
            test=test,
            kce=error,
            witness=where,
            worst_groups=groups,
            searched=None if where is None or self.searched is None else len(self.searched),
            scores=scores_of(model),
            coverage=coverage,
            quantiles=quantiles,
            ece=ece_of(model),
            mended=mending,
            segments=by_part,
            left_out=tuple(left_out),
        )

    def _groups(
        self, model: ModelData, where: Witness, left_out: list[str]
    ) -> tuple[Witness, tuple[WorstGroup, ...]]:
        """Groups as they are in all cases, where they were found in some; what does not hold is left out."""
        rows = self.searched
        if rows is None:
            return where, worst_groups(where, self.data, model, None)
        looked = second_look(where, as_computed(model.targets, model.predictions), model.predictions, rows)
        lost = sum(not one.holds for one in looked)
        if lost:
            left_out.append(
                f"{how_many(lost, 'group')} that stood out in {len(rows):,} cases, but not in all "
                f"{len(model):,}, "
                f"{'is' if lost == 1 else 'are'} not told."
            )
        held = tuple(one.after for one in looked if one.holds)
        seen = {**where.provenance, "searched": len(rows), "seen": len(model)}
        return replace(where, groups=held, provenance=seen), groups_of_all(
            where, looked, self.data, model, rows
        )

    def _witness(self, model: ModelData) -> Witness:
        if model.clusters is not None:
            raise ValueError("the search takes cases as independent, and these come in clusters")
        some = model.some(self.searched)
        options: dict[str, Any] = {} if self.n_resamples is None else {"n_resamples": self.n_resamples}
        return witness(some.targets, some.predictions, alpha=ALPHA, rng=self.seed, **options)


def _tried(run: Callable[[], Any], left_out: list[str], what: str) -> Any:
    """What runs, or None and a sentence that says why it does not."""
    try:
        return run()
    except (TypeError, ValueError) as error:
        left_out.append(f"{what}: {error}.")
        return None
