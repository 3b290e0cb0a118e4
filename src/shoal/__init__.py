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
    from shoal.errors import ShoalError as ShoalError
    from shoal.judge.original import beside as beside
    from shoal.pipeline import anonymize as anonymize
    from shoal.pipeline import check as check
    from shoal.pipeline import measure as measure
    from shoal.policy import Policy as Policy
    from shoal.propose.inspect import inspect as inspect
    from shoal.propose.preview import hierarchy as hierarchy
    from shoal.release import Release as Release
    from shoal.release.signatures import make_keys as make_keys
    from shoal.release.signatures import sign as sign
    from shoal.transformer import Anonymizer as Anonymizer
    from shoal.utility.ranges import may_be as may_be
    from shoal.utility.ranges import read_ranges as read_ranges
    from shoal.verify.certified import verify_certificate as verify_certificate

# Loaded when first used: `shoal --help` needs none of them, and none of what they import. No module has the name of
# a function here: importing it would put the module in the function's place.
_HOME = {
    "Anonymizer": "transformer",
    "Policy": "policy.policy",
    "Release": "release.release",
    "ShoalError": "errors",
    "anonymize": "pipeline",
    "attack": "attacks.run",
    "beside": "judge.original",
    "check": "pipeline",
    "compare": "alternatives.compare",
    "explore": "alternatives.recommend",
    "frontier": "alternatives.frontier",
    "hierarchy": "propose.preview",
    "inspect": "propose.inspect",
    "k_minimal": "alternatives.k_minimal",
    "make_keys": "release.signatures",
    "may_be": "utility.ranges",
    "measure": "pipeline",
    "read_ranges": "utility.ranges",
    "sign": "release.signatures",
    "verify_certificate": "verify.certified",
}

__all__ = [  # without Anonymizer, which needs scikit-learn: `from shoal import *` works wherever shoal does
    "Policy",
    "Release",
    "ShoalError",
    "anonymize",
    "attack",
    "beside",
    "check",
    "compare",
    "explore",
    "frontier",
    "hierarchy",
    "inspect",
    "k_minimal",
    "make_keys",
    "may_be",
    "measure",
    "read_ranges",
    "sign",
    "verify_certificate",
]
__version__ = "0.1.0"


def __getattr__(name: str) -> Any:
    if name not in _HOME:
        raise AttributeError(f"module 'shoal' has no attribute {name!r}")
    from importlib import import_module

    return getattr(import_module(f"shoal.{_HOME[name]}"), name)
