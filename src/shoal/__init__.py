"""shoal: turn a table about people into a release that is safe to publish, and prove it.

A fish hides in a shoal, a record in a crowd of at least k.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from shoal.alternatives.compare import compare as compare
    from shoal.alternatives.frontier import frontier as frontier
    from shoal.alternatives.k_minimal import k_minimal as k_minimal
    from shoal.alternatives.recommend import explore as explore
    from shoal.attacks.run import attack as attack
    from shoal.engines.data import Data as Data
    from shoal.errors import CannotTellError as CannotTellError
    from shoal.errors import DataError as DataError
    from shoal.errors import HierarchyError as HierarchyError
    from shoal.errors import InfeasibleError as InfeasibleError
    from shoal.errors import MissingValueError as MissingValueError
    from shoal.errors import OtherTableError as OtherTableError
    from shoal.errors import OutOfTimeError as OutOfTimeError
    from shoal.errors import OutputError as OutputError
    from shoal.errors import PolicyError as PolicyError
    from shoal.errors import ShoalError as ShoalError
    from shoal.errors import UncoveredValueError as UncoveredValueError
    from shoal.errors import UnreadableError as UnreadableError
    from shoal.errors import VerificationError as VerificationError
    from shoal.judge.original import compare_with_original as compare_with_original
    from shoal.pipeline import anonymize as anonymize
    from shoal.pipeline import check as check
    from shoal.pipeline import measure as measure
    from shoal.policy import Policy as Policy
    from shoal.propose.inspect import inspect as inspect
    from shoal.propose.preview import hierarchy as hierarchy
    from shoal.release import Release as Release
    from shoal.release.replay import replay as replay
    from shoal.release.signatures import make_keys as make_keys
    from shoal.release.signatures import sign as sign
    from shoal.transformer import Anonymizer as Anonymizer
    from shoal.utility.ranges import may_be as may_be
    from shoal.utility.ranges import read_ranges as read_ranges
    from shoal.verify.certified import verify_certificate as verify_certificate

# Loaded on first use: `shoal --help` needs none of them, nor what they import. No module has the name of
# a function here: importing it would replace the function by the module.
_HOME = {
    "Anonymizer": "transformer",
    "CannotTellError": "errors",
    "Data": "engines.data",
    "DataError": "errors",
    "HierarchyError": "errors",
    "InfeasibleError": "errors",
    "MissingValueError": "errors",
    "OtherTableError": "errors",
    "OutOfTimeError": "errors",
    "OutputError": "errors",
    "Policy": "policy.policy",
    "PolicyError": "errors",
    "Release": "release.release",
    "ShoalError": "errors",
    "UncoveredValueError": "errors",
    "UnreadableError": "errors",
    "VerificationError": "errors",
    "anonymize": "pipeline",
    "attack": "attacks.run",
    "check": "pipeline",
    "compare": "alternatives.compare",
    "compare_with_original": "judge.original",
    "explore": "alternatives.recommend",
    "frontier": "alternatives.frontier",
    "hierarchy": "propose.preview",
    "inspect": "propose.inspect",
    "k_minimal": "alternatives.k_minimal",
    "make_keys": "release.signatures",
    "may_be": "utility.ranges",
    "measure": "pipeline",
    "read_ranges": "utility.ranges",
    "replay": "release.replay",
    "sign": "release.signatures",
    "verify_certificate": "verify.certified",
}
_RENAMED = {"beside": "compare_with_original"}  # old names, for one more version

__version__ = "0.1.0"
# Without Anonymizer, which needs scikit-learn: `from shoal import *` works without it.
__all__ = [
    "CannotTellError",
    "Data",
    "DataError",
    "HierarchyError",
    "InfeasibleError",
    "MissingValueError",
    "OtherTableError",
    "OutOfTimeError",
    "OutputError",
    "Policy",
    "PolicyError",
    "Release",
    "ShoalError",
    "UncoveredValueError",
    "UnreadableError",
    "VerificationError",
    "anonymize",
    "attack",
    "check",
    "compare",
    "compare_with_original",
    "explore",
    "frontier",
    "hierarchy",
    "inspect",
    "k_minimal",
    "make_keys",
    "may_be",
    "measure",
    "read_ranges",
    "replay",
    "sign",
    "verify_certificate",
]


def __getattr__(name: str) -> Any:
    if name in _RENAMED:
        import warnings

        warnings.warn(f"shoal.{name} is shoal.{_RENAMED[name]} now", DeprecationWarning, stacklevel=2)
        name = _RENAMED[name]
    if name not in _HOME:
        raise AttributeError(f"module 'shoal' has no attribute {name!r}")
    from importlib import import_module

    return getattr(import_module(f"shoal.{_HOME[name]}"), name)


def __dir__() -> list[str]:
    return sorted([*_HOME, "__version__"])
