"""Old names keep working for one version, and say the new ones to whoever wrote the call."""

from __future__ import annotations

import inspect
import sys
import types
import warnings
from typing import Any

import pytest

from wellcal._arrays.deprecation import renamed_arguments, renamed_attribute, renamed_names


@pytest.fixture
def old_module():
    module: Any = types.ModuleType("old_module")
    module.__getattr__ = renamed_names("old_module", {"Old": "fractions.Fraction", "numbers": "numbers"})
    sys.modules["old_module"] = module
    yield module
    del sys.modules["old_module"]


def test_a_renamed_name_is_the_new_object_and_warns_the_one_who_asks_for_it(old_module):
    from fractions import Fraction

    with pytest.warns(
        DeprecationWarning, match=r"old_module\.Old is deprecated.*use fractions\.Fraction"
    ) as w:
        assert old_module.Old is Fraction
    assert w[0].filename == __file__
    with pytest.warns(DeprecationWarning, match="Old"):
        from old_module import Old
    assert Old is Fraction


def test_a_name_may_lead_to_a_module(old_module):
    import numbers

    with pytest.warns(DeprecationWarning, match="use numbers"):
        assert old_module.numbers is numbers


def test_other_names_are_not_there(old_module):
    with pytest.raises(AttributeError, match="module 'old_module' has no attribute 'Other'"):
        _ = old_module.Other
    assert not hasattr(old_module, "Other")


@renamed_arguments(at="locations", n="n_samples")
def look(y: float, locations: int = 0, *, n_samples: int = 1) -> tuple[float, int, int]:
    """Look."""
    return y, locations, n_samples


def test_a_renamed_argument_arrives_under_its_new_name():
    with pytest.warns(DeprecationWarning, match=r"look\(at=\.\.\.\).*use look\(locations=\.\.\.\)") as w:
        assert look(1.0, at=3) == (1.0, 3, 1)  # pyright: ignore[reportCallIssue]
    assert w[0].filename == __file__
    with pytest.warns(DeprecationWarning, match="look") as w:
        assert look(1.0, at=3, n=5) == (1.0, 3, 5)  # pyright: ignore[reportCallIssue]
    assert len(w) == 2


def test_new_names_do_not_warn_and_the_signature_has_only_them():
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        assert look(1.0, 2) == look(1.0, locations=2) == (1.0, 2, 1)
    assert list(inspect.signature(look).parameters) == ["y", "locations", "n_samples"]
    assert look.__doc__ == "Look."


def test_both_names_at_once_are_an_error():
    with pytest.raises(TypeError, match="takes locations, which was called at before, and not both"):
        look(1.0, locations=2, at=3)  # pyright: ignore[reportCallIssue]


class Thing:
    """With an argument and an attribute that have new names."""

    @renamed_arguments(level="alpha")
    def __init__(self, *, alpha: float = 0.05) -> None:
        self.alpha = alpha

    level = renamed_attribute("level", "alpha")


def test_arguments_and_attributes_of_a_class():
    with pytest.warns(DeprecationWarning, match=r"Thing\(level=\.\.\.\).*Thing\(alpha=\.\.\.\)"):
        thing = Thing(level=0.1)  # pyright: ignore[reportCallIssue]
    with pytest.warns(DeprecationWarning, match=r"Thing\.level is deprecated.*Thing\.alpha") as w:
        assert thing.level == 0.1
    assert w[0].filename == __file__
