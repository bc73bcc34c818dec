"""Which engine runs a problem: the one that was named, or the best that can."""

from __future__ import annotations

from typing import NamedTuple, TypeVar

from wellcal._arrays.checks import described, one_of
from wellcal.engines.base import Engine
from wellcal.problem.problem import Problem

Registered = TypeVar("Registered", bound=Engine)


class _Entry(NamedTuple):
    engine: Engine
    priority: float
    fewest: int


_ENGINES: dict[str, _Entry] = {}


def register_engine(
    engine: Registered, *, priority: float = 0.0, fewest: int = 0, replace: bool = False
) -> Registered:
    """Make an engine known by its name, and to ``engine="auto"``.

    Parameters
    ----------
    engine
        The engine. Its `name` must be new, unless `replace` says otherwise.
    priority
        "auto" takes the engine of the highest priority among those that support the problem and pay, and of
        equal ones the one that was registered first; `Tiled` has 0 and supports everything. An engine with
        a negative priority is taken only by name.
    fewest
        Cases from which "auto" considers it.
    replace
        Whether an engine of that name is replaced.

    Examples
    --------
    >>> import numpy as np, wellcal as wc
    >>> class OneThread(wc.engines.Tiled):
    ...     name = "one thread"
    >>> register_engine(OneThread(threads=1), priority=-1.0).name
    'one thread'
    >>> pred = wc.Normal(np.zeros(3), np.ones(3))
    >>> wc.skce([0.1, 0.2, 0.9], pred, engine="one thread").provenance["engine"]
    'one thread'
    >>> forget_engine("one thread")
    """
    if engine.name == "auto" or (engine.name in _ENGINES and not replace):
        raise ValueError(f"there is an engine {engine.name!r} already; take another name, or replace=True")
    _ENGINES[engine.name] = _Entry(engine, priority, fewest)
    return engine


def forget_engine(name: str) -> None:
    """Undo :func:`register_engine`."""
    del _ENGINES[name]


def choose_engine(engine: str | Engine, problem: Problem | None = None) -> Engine:
    """An engine by name or as given, which must support the problem; "auto" is the best that does.

    Where cases meet locations, `wellcal.problem.problem.outline` is what engines are asked about.
    Without a problem nothing is asked.

    Examples
    --------
    >>> import numpy as np, wellcal as wc
    >>> from wellcal.problem.problem import prepare
    >>> problem = prepare(np.zeros(2), wc.Normal(np.zeros(2), np.ones(2)))
    >>> choose_engine("auto", problem)
    Tiled(tile=None, threads=None, precision='auto')
    """
    if isinstance(engine, Engine):
        return _checked(engine, problem)
    if not isinstance(engine, str):  # pyright: ignore[reportUnnecessaryIsInstance]  # users get it wrong
        raise TypeError(f"engine must be a name, or an engine such as Tiled(), found {described(engine)}")
    if engine != "auto":
        return _checked(_ENGINES[one_of(engine, "engine", ("auto", *_ENGINES))].engine, problem)
    ordered = sorted((e for e in _ENGINES.values() if e.priority >= 0), key=lambda e: -e.priority)
    return next(e.engine for e in ordered if _is_for(e, problem))


def _is_for(entry: _Entry, problem: Problem | None) -> bool:
    engine = entry.engine
    if problem is None:
        return entry.fewest == 0
    return problem.n >= entry.fewest and engine.supports(problem).possible and engine.pays(problem)


def _checked(engine: Engine, problem: Problem | None) -> Engine:
    support = None if problem is None else engine.supports(problem)
    if support is not None and not support:
        reason = f"the engine {engine.name!r} cannot run this problem: {support.reason}"
        raise ValueError(f'{reason}; take engine="auto"')
    return engine
