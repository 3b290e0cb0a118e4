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
    from shoal.dp.asking import plan_query as plan_query
    from shoal.dp.asking import query as query
    from shoal.dp.budget import BudgetError as BudgetError
    from shoal.dp.ledger import Ledger as Ledger
    from shoal.dp.synthesis import plan_synthesis as plan_synthesis
    from shoal.dp.synthesis import synthesize as synthesize
    from shoal.engines.data import Data as Data
    from shoal.errors import CannotTellError as CannotTellError
    from shoal.errors import CiphertextError as CiphertextError
    from shoal.errors import DataError as DataError
    from shoal.errors import EmptyTableError as EmptyTableError
    from shoal.errors import HierarchyError as HierarchyError
    from shoal.errors import InfeasibleError as InfeasibleError
    from shoal.errors import MissingValueError as MissingValueError
    from shoal.errors import OtherTableError as OtherTableError
    from shoal.errors import OutOfTimeError as OutOfTimeError
    from shoal.errors import OutputError as OutputError
    from shoal.errors import PartyError as PartyError
    from shoal.errors import PolicyError as PolicyError
    from shoal.errors import PublicationError as PublicationError
    from shoal.errors import ShoalError as ShoalError
    from shoal.errors import UncoveredValueError as UncoveredValueError
    from shoal.errors import UnreadableError as UnreadableError
    from shoal.errors import VerificationError as VerificationError
    from shoal.integral.recurrence import integral_privacy as integral_privacy
    from shoal.judge.original import compare_with_original as compare_with_original
    from shoal.output.checking import check_output as check_output
    from shoal.output.regressing import check_regression as check_regression
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
    from shoal.utility.ranges import codebook as codebook
    from shoal.utility.ranges import may_be as may_be
    from shoal.utility.ranges import read_ranges as read_ranges
    from shoal.utility.ranges import read_sets as read_sets
    from shoal.verify.certified import verify_certificate as verify_certificate

# Loaded on first use: `shoal --help` needs none of them, nor what they import. No module has the name of
# a function here: importing it would replace the function by the module.
_HOME = {
    "Anonymizer": "transformer",
    "BudgetError": "dp.budget",
    "CannotTellError": "errors",
    "CiphertextError": "errors",
    "Data": "engines.data",
    "DataError": "errors",
    "EmptyTableError": "errors",
    "HierarchyError": "errors",
    "InfeasibleError": "errors",
    "Ledger": "dp.ledger",
    "MissingValueError": "errors",
    "OtherTableError": "errors",
    "OutOfTimeError": "errors",
    "OutputError": "errors",
    "PartyError": "errors",
    "Policy": "policy.policy",
    "PolicyError": "errors",
    "Release": "release.release",
    "ShoalError": "errors",
    "UncoveredValueError": "errors",
    "UnreadableError": "errors",
    "PublicationError": "errors",
    "VerificationError": "errors",
    "anonymize": "pipeline",
    "attack": "attacks.run",
    "check": "pipeline",
    "check_output": "output.checking",
    "check_regression": "output.regressing",
    "codebook": "utility.ranges",
    "compare": "alternatives.compare",
    "compare_with_original": "judge.original",
    "explore": "alternatives.recommend",
    "frontier": "alternatives.frontier",
    "hierarchy": "propose.preview",
    "inspect": "propose.inspect",
    "integral_privacy": "integral.recurrence",
    "k_minimal": "alternatives.k_minimal",
    "make_keys": "release.signatures",
    "may_be": "utility.ranges",
    "measure": "pipeline",
    "plan_query": "dp.asking",
    "plan_synthesis": "dp.synthesis",
    "query": "dp.asking",
    "read_ranges": "utility.ranges",
    "read_sets": "utility.ranges",
    "replay": "release.replay",
    "sign": "release.signatures",
    "synthesize": "dp.synthesis",
    "verify_certificate": "verify.certified",
}
_RENAMED = {"beside": "compare_with_original"}  # old names, for one more version

__version__ = "0.1.0"
# Without Anonymizer, which needs scikit-learn: `from shoal import *` works without it.
__all__ = [
    "BudgetError",
    "CannotTellError",
    "CiphertextError",
    "Data",
    "DataError",
    "EmptyTableError",
    "HierarchyError",
    "InfeasibleError",
    "Ledger",
    "MissingValueError",
    "OtherTableError",
    "OutOfTimeError",
    "OutputError",
    "PartyError",
    "Policy",
    "PolicyError",
    "PublicationError",
    "Release",
    "ShoalError",
    "UncoveredValueError",
    "UnreadableError",
    "VerificationError",
    "anonymize",
    "attack",
    "check",
    "check_output",
    "check_regression",
    "codebook",
    "compare",
    "compare_with_original",
    "explore",
    "frontier",
    "hierarchy",
    "inspect",
    "integral_privacy",
    "k_minimal",
    "make_keys",
    "may_be",
    "measure",
    "plan_query",
    "plan_synthesis",
    "query",
    "read_ranges",
    "read_sets",
    "replay",
    "sign",
    "synthesize",
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
