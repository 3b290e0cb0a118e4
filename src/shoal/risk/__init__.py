"""Measured risk: the probability that a record is re-identified or a sensitive value disclosed."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from shoal.risk.belief import beliefs as beliefs
    from shoal.risk.identity import identity_risk as identity_risk
    from shoal.risk.individual import individual_risk as individual_risk
    from shoal.risk.intervals import interval_disclosure as interval_disclosure
    from shoal.risk.keys import frequencies as frequencies
    from shoal.risk.loglinear import log_linear_risk as log_linear_risk
    from shoal.risk.suda2 import suda as suda
    from shoal.risk.uniqueness import population_uniqueness as population_uniqueness

# Loaded when first used: only some of them need SciPy. No module has the name of a function here: importing it would
# put the module in the function's place.
_HOME = {
    "beliefs": "belief",
    "frequencies": "keys",
    "identity_risk": "identity",
    "individual_risk": "individual",
    "interval_disclosure": "intervals",
    "log_linear_risk": "loglinear",
    "population_uniqueness": "uniqueness",
    "suda": "suda2",
}

__all__ = [
    "beliefs",
    "frequencies",
    "identity_risk",
    "individual_risk",
    "interval_disclosure",
    "log_linear_risk",
    "population_uniqueness",
    "suda",
]


def __getattr__(name: str) -> Any:
    if name not in _HOME:
        raise AttributeError(f"module 'shoal.risk' has no attribute {name!r}")
    from importlib import import_module

    return getattr(import_module(f"shoal.risk.{_HOME[name]}"), name)
