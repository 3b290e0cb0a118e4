"""What is wrong with a policy, in the words of its fields instead of those of Python."""

from __future__ import annotations

from collections.abc import Iterable
from typing import get_args

from pydantic import ValidationError

from shoal.models import PrivacyModel, Requirement
from shoal.models.forbidden import ForbiddenResult
from shoal.models.learned import Forbidden
from shoal.models.measured import Limit, MeasuredLimit
from shoal.policy.column import Column
from shoal.policy.options import Options

# What an entry of a policy may name.
MODELS: tuple[type[PrivacyModel], ...] = get_args(get_args(Requirement)[0])
LIMITS: tuple[type[MeasuredLimit], ...] = get_args(get_args(Limit)[0])
RESULTS: dict[str, type[ForbiddenResult]] = {
    kind.model_fields["result"].default: kind for kind in get_args(get_args(Forbidden)[0])
}

_A_TABLE = 'should be a table, such as { role = "quasi" } or { model = "k-anonymity", k = 5 }'
# Where pydantic would speak of Python, or of the machinery of unions.
_MESSAGES = {
    "extra_forbidden": "unknown field",
    "missing": "is missing",
    "tuple_type": "should be a list",
    "dict_type": _A_TABLE,
    "model_type": _A_TABLE,
    "model_attributes_type": _A_TABLE,
    "union_tag_not_found": "model is missing",
    "union_tag_invalid": "unknown model",
}


def explained(error: ValidationError) -> Iterable[str]:
    """Tell what is wrong, one line for each field."""
    for problem in error.errors(include_url=False, include_input=False):
        location = problem["loc"]
        if location[:1] in (("require",), ("forbid",)):  # after the index comes the model's name, which the index tells
            location = location[:2] + location[3:]
        message = _MESSAGES.get(problem["type"], problem["msg"]).removeprefix("Value error, ")
        if location[:1] == ("forbid",) and problem["type"].startswith("union_tag"):
            message = message.replace("model", "result")
        yield f"{'.'.join(map(str, location))}: {message}" if location else message


def hint(error: ValidationError, fields: Iterable[str]) -> str | None:
    """Return the allowed values if a name is unknown or missing; ``fields`` are those of the policy itself."""
    for problem in error.errors(include_url=False, include_input=False):
        if problem["type"] == "extra_forbidden":
            return "fields: " + ", ".join(fields if len(problem["loc"]) == 1 else _allowed(problem["loc"]))
        if problem["type"] in ("union_tag_not_found", "union_tag_invalid"):
            if problem["loc"][:1] == ("forbid",):
                return "results: " + ", ".join(RESULTS)
            return "models: " + ", ".join(m.model_fields["model"].default for m in (*MODELS, *LIMITS))
    return None


def _allowed(location: tuple[int | str, ...]) -> list[str]:
    """Return the fields of a part of the policy."""
    if location[0] == "release":
        return list(Options.model_fields)
    if location[0] == "columns":
        return list(Column.model_fields)
    if location[0] == "forbid":
        return list(RESULTS[str(location[2])].model_fields) if str(location[2]) in RESULTS else list(RESULTS)
    models = {m.model_fields["model"].default: m for m in (*MODELS, *LIMITS)}
    return list(models[str(location[2])].model_fields) if str(location[2]) in models else sorted(models)
