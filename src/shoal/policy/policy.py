"""Policy: the frozen specification of a release, built by the library, the command line and the page."""

from __future__ import annotations

import math
import re
import tomllib
from collections.abc import Mapping
from fractions import Fraction
from pathlib import Path
from typing import Annotated, Any, Self

import numpy as np
from pydantic import (
    BaseModel,
    Field,
    SerializerFunctionWrapHandler,
    ValidationError,
    ValidationInfo,
    field_validator,
    model_serializer,
    model_validator,
)

from shoal.errors import OutputError, PolicyError
from shoal.hierarchies.bounds import collisions
from shoal.hierarchies.builders import File, Mask
from shoal.hierarchies.dates import Dates
from shoal.hierarchies.spelling import Spelling
from shoal.models import PopulationModel, PrivacyModel, Requirement, SensitiveModel
from shoal.models.closeness import TCloseness
from shoal.models.forbidden import ForbiddenResult, MatchedResult
from shoal.models.learned import Forbidden
from shoal.models.measured import Limit, MeasuredLimit
from shoal.models.size import KAnonymity
from shoal.notation.forms import DecimalMark
from shoal.policy.coarsening import Coarsening
from shoal.policy.column import Column, Role, check_missing
from shoal.policy.explain import explained, hint
from shoal.policy.options import Options
from shoal.policy.part import FrozenPart
from shoal.policy.presets import PRESETS, PresetName
from shoal.text import toml
from shoal.text.bounded import read_bounded
from shoal.text.jsonable import DEEPEST, nested_deeper
from shoal.text.showing import Shown

MOST_BYTES, MOST_COLUMNS = 2**25, 10_000  # of a policy file


class Policy(FrozenPart, Shown):
    """Roles and hierarchies of the columns, requirements, and options of the release.

    >>> import shoal
    >>> age = {"role": "quasi", "hierarchy": {"intervals": [10]}}
    >>> policy = shoal.Policy.of({"columns": {"age": age}, "require": [{"model": "k-anonymity", "k": 5}]})
    >>> policy.quasi, policy.with_release(max_suppression=0.02).allowance(1000)
    (('age',), 20)
    """

    columns: dict[str, Column] = Field(description="The role and options of every column of the table, by name.")
    require: tuple[Annotated[Requirement | Limit, Field(discriminator="model")], ...] = Field(
        default=(), description="The requirements: at least one, unless a preset provides them."
    )
    forbid: tuple[Forbidden, ...] = Field(
        default=(), description="Results that must not come out when an algorithm runs on the release."
    )
    preset: PresetName | None = Field(
        default=None, description="The name of a published rule whose requirements are added; not legal advice."
    )
    release: Options = Field(default=Options(), description="Options of the search and of the release.")
    missing: tuple[str, ...] = Field(
        default=(),
        strict=False,
        description="Texts that mean a missing value in every column, such as `NA` or `-`; `''` for empty and "
        "blank texts. Surrounding spaces are ignored.",
    )
    folder: Path = Field(Path(), exclude=True, repr=False, strict=False)  # hierarchy files are found from here

    def __init__(self, /, **fields: Any) -> None:
        if nested_deeper(fields, DEEPEST):
            raise PolicyError(
                f"policy: nested more than {DEEPEST} levels deep", "put a hierarchy with many levels into a file"
            )
        try:
            super().__init__(**fields)
        except ValidationError as error:
            raise PolicyError("policy: " + "\npolicy: ".join(explained(error)), hint(error, _own_fields())) from None

    @field_validator("require", "forbid", mode="before")
    @classmethod
    def _a_list_will_do(cls, given: Any, info: ValidationInfo) -> Any:
        if isinstance(given, Mapping):
            raise ValueError(f"should be a list: write [[{info.field_name}]], with double brackets, above each entry")
        return tuple(given) if isinstance(given, list) else given

    @model_serializer(mode="wrap")
    def _without_an_empty_list(self, handler: SerializerFunctionWrapHandler) -> dict[str, Any]:
        fields: dict[str, Any] = handler(self)
        if not fields.get("forbid"):  # certificates of policies without it keep their bytes
            fields.pop("forbid", None)
        return fields

    @model_validator(mode="after")
    def _consistent(self) -> Self:
        check_missing(self.missing)
        if not self.quasi:
            raise ValueError("columns: at least one column needs role 'quasi'")
        if not self.require and self.preset is None:
            raise ValueError('require: add at least one model, such as { model = "k-anonymity", k = 5 }')
        for i, model in enumerate(self.require):
            if isinstance(model, SensitiveModel):
                self._check_sensitive(i, model)
            if isinstance(model, MeasuredLimit) and model.needs_sensitive and not self.sensitive:
                raise ValueError(f"require.{i}: {model.model} needs a column with role 'sensitive'")
            if isinstance(model, KAnonymity) and model.columns is not None:
                self._check_set(i, model.columns)
        for i, result in enumerate(self.forbid):
            self._check_result(i, result)
        if self.preset == "hipaa-safe-harbor":
            self._check_safe_harbor()
        for name, column in self.columns.items():
            if column.after is not None and (column.after == name or column.after not in self.quasi):
                raise ValueError(f"columns.{name}.after: {column.after!r} is not another column with role 'quasi'")
        for name in self.columns:
            self._check_after(name)
        if self.release.entity is not None:
            self._check_entity(self.release.entity)
        if self.release.household is not None:
            self._check_key("household", self.release.household, "households")
        if self.release.objective == "classification" and self.release.label is None:
            raise ValueError("release.label: objective 'classification' needs a sensitive column to predict")
        if self.release.label is not None and self.release.label not in self.sensitive:
            raise ValueError(f"release.label: {self.release.label!r} is not a column with role 'sensitive'")
        for name, collision in collisions(self).items():
            raise ValueError(
                f"release.ranges: {self.release.ranges!r} adds a column {name!r} next to {collision!r}, but there is "
                "one with this name: rename it"
            )
        if len({model.population for model in self.models if isinstance(model, PopulationModel)}) > 1:
            raise ValueError("require: name one population for all models that need it")
        if self.population is not None and self.release.nulls == "wildcard":
            raise ValueError("release.nulls: 'wildcard' cannot be combined with a population; use 'category'")
        if self.release.suppressed == "keep" and self.release.nulls == "wildcard":
            raise ValueError(
                "release.suppressed: 'keep' cannot be combined with nulls = 'wildcard': a null would match '*'"
            )
        return self

    def _check_sensitive(self, i: int, model: SensitiveModel) -> None:
        if not self.sensitive:
            raise ValueError(f"require.{i}: {model.model} needs a column with role 'sensitive'")
        if model.column is not None and model.column not in self.sensitive:
            raise ValueError(
                f"require.{i}.column: {model.column!r} does not have role 'sensitive'; "
                f"sensitive columns: {', '.join(self.sensitive)}"
            )
        covered = self.sensitive if model.column is None else (model.column,)
        coarse = [name for name in covered if getattr(self.columns[name].released, "level", None)]
        if isinstance(model, TCloseness) and model.distance == "hierarchical" and coarse:
            raise ValueError(
                f"require.{i}: distance 'hierarchical' needs the values of {coarse[0]!r}, and a level above is released"
            )

    def _check_result(self, i: int, result: ForbiddenResult) -> None:
        if strange := [name for name in result.columns if name not in (*self.quasi, *self.sensitive)]:
            raise ValueError(
                f"forbid.{i}: {', '.join(map(repr, strange))} has neither role 'quasi' nor 'sensitive', and only such "
                "columns are protected"
            )
        if isinstance(result, MatchedResult) and result.enforce and not set(result.columns) & set(self.quasi):
            raise ValueError(f"forbid.{i}: enforce suppresses cells of quasi-identifiers, and it names none")

    def _check_safe_harbor(self) -> None:
        for name in self.quasi:
            spec = self.columns[name].hierarchy
            if isinstance(spec, Dates | Mask):
                kind = "date" if isinstance(spec, Dates) else "zip"
                raise ValueError(
                    f'columns.{name}.hierarchy: the preset requires {{ safe_harbor = "{kind}" }}, '
                    "which never shows more than the rule allows"
                )

    def _check_set(self, i: int, columns: tuple[str, ...]) -> None:
        strange = [name for name in columns if name not in self.quasi]
        if strange or len(set(columns)) < len(columns):
            raise ValueError(
                f"require.{i}.columns: must be different columns with role 'quasi', and "
                + (f"{', '.join(map(repr, strange))} is not" if strange else "one is named twice")
            )

    def _check_after(self, name: str) -> None:
        """Reject columns that wait for each other."""
        waiting = [name]
        while (after := self.columns[waiting[-1]].after) is not None:
            if after in waiting:
                circle = " → ".join(map(repr, [*waiting[waiting.index(after) :], after]))
                raise ValueError(f"columns.{name}.after: forms a cycle: {circle}; remove one of them")
            waiting.append(after)

    def _check_entity(self, entity: str) -> None:
        self._check_key("entity", entity, "persons")
        if self.release.nulls == "wildcard":
            raise ValueError("release.entity: people cannot be counted with nulls = 'wildcard'; use 'category'")

    def _check_key(self, field: str, name: str, whom: str) -> None:
        if name not in self.columns:
            raise ValueError(f"release.{field}: no column {name!r} under columns")
        if self.columns[name].role != "identifier":
            raise ValueError(f"release.{field}: {name!r} identifies {whom}, so its role must be 'identifier'")

    def __eq__(self, other: object) -> bool:
        # Where the policy was read from is not part of what it asks.
        return isinstance(other, Policy) and self._asked == other._asked

    def __hash__(self) -> int:
        return hash(self._asked)

    @property
    def _asked(self) -> object:
        return _comparable(self.model_dump(mode="json"))

    @property
    def models(self) -> tuple[PrivacyModel, ...]:
        """All requirements: those of the preset, then those of the policy."""
        preset = () if self.preset is None else PRESETS[self.preset].models
        return (*preset, *(model for model in self.require if not isinstance(model, MeasuredLimit)))

    @property
    def limits(self) -> tuple[MeasuredLimit, ...]:
        """Limits on the results of attacks on the finished release; ``release.aim`` tries policies until they hold."""
        preset = () if self.preset is None else PRESETS[self.preset].limits
        measured = (model for model in self.require if isinstance(model, MeasuredLimit))
        return (*(limit for limit in preset if self.sensitive or not limit.needs_sensitive), *measured)

    def having(self, role: Role) -> tuple[str, ...]:
        """Return the columns with this role, in the order of the policy."""
        return tuple(name for name, column in self.columns.items() if column.role == role)

    @property
    def quasi(self) -> tuple[str, ...]:
        """The quasi-identifiers: columns that an intruder can link on."""
        return self.having("quasi")

    @property
    def sensitive(self) -> tuple[str, ...]:
        """The columns that must not be disclosed."""
        return self.having("sensitive")

    @property
    def identifiers(self) -> tuple[str, ...]:
        """The columns that are removed."""
        return self.having("identifier")

    @property
    def spellings(self) -> dict[str, Spelling]:
        """How the cells of each column are spelled."""
        return {
            name: Spelling(self.missing if column.missing is None else column.missing, column.decimal, column.thousands)
            for name, column in self.columns.items()
        }

    @property
    def coarsened(self) -> dict[str, Coarsening]:
        """The sensitive columns that are released coarser than they are, and how."""
        return {name: column.released for name, column in self.columns.items() if column.released is not None}

    @property
    def enforced(self) -> tuple[MatchedResult, ...]:
        """The forbidden results that are hidden by suppressing cells."""
        return tuple(result for result in self.forbid if isinstance(result, MatchedResult) and result.enforce)

    @property
    def marks(self) -> dict[str, DecimalMark]:
        """The decimal marks of the columns that specify one."""
        return {name: mark for name, spelling in self.spellings.items() if (mark := spelling.mark) is not None}

    @property
    def files(self) -> tuple[Path, ...]:
        """The hierarchy and population files that the policy names."""
        specs = [column.hierarchy for column in self.columns.values()]
        names = [spec.path for spec in specs if isinstance(spec, File)]
        return tuple(self.folder / name for name in [*names, *([self.population] if self.population else [])])

    @property
    def population(self) -> str | None:
        """The population table, if a requirement names one."""
        named = {model.population for model in self.models if isinstance(model, PopulationModel)}
        return next(iter(named), None)

    def of_all_levels(self) -> Policy:
        """Return the policy without limits on levels: another release may show labels that this one may not."""
        free = {"min_level": 0, "max_level": None, "only": None}
        columns = {name: column.model_copy(update=free) for name, column in self.columns.items()}
        return self.model_copy(update={"columns": columns})

    def allowance(self, n_records: int) -> int:
        """Return how many of ``n_records`` may be suppressed; exact, because 0.29 · 100 in floats is below 29."""
        return math.floor(Fraction(str(self.release.max_suppression)) * n_records)

    @classmethod
    def load(cls, path: str | Path) -> Policy:
        """Read a policy from a TOML file; hierarchy files are relative to it."""
        path = Path(path)
        try:
            text = read_bounded(path, MOST_BYTES).decode("utf-8-sig")
        except OSError as error:
            raise PolicyError(
                f"policy {path} cannot be read ({error.strerror})",
                "shoal.inspect proposes one",
                option="shoal inspect DATA -o policy.toml",
            ) from None
        except UnicodeDecodeError:
            raise PolicyError(f"policy {path} is not UTF-8 text") from None
        except ValueError:
            raise PolicyError(f"policy {str(path)!r}: not a valid file name") from None
        return cls.parse(text, folder=path.parent)

    @classmethod
    def parse(cls, text: str, folder: str | Path = ".") -> Policy:
        """Read a policy from TOML text."""
        try:
            fields = tomllib.loads(text)
        except tomllib.TOMLDecodeError as error:
            # Some messages quote a key or a character, which may come from the data: of these only the place is told.
            message = str(error)
            at = re.search(r"\(at [^()]*\)$", message)
            detail = message if not re.search(r"['\"]", message) else at[0] if at else "(a key is repeated)"
            raise PolicyError(f"policy: not valid TOML: {detail}") from None
        except RecursionError:
            raise PolicyError("policy: not valid TOML: too many nested brackets") from None
        except ValueError:
            raise PolicyError("policy: not valid TOML: a number has too many digits") from None
        return cls.of(fields, folder)

    @classmethod
    def of(cls, fields: dict[str, Any], folder: str | Path = ".") -> Policy:
        """Build a policy from plain values, with errors that name the field."""
        if not isinstance(fields, dict) or not all(isinstance(name, str) for name in fields):
            raise PolicyError("policy: must be a dict with string keys")
        columns = fields.get("columns")
        if isinstance(columns, Mapping) and len(columns) > MOST_COLUMNS:
            raise PolicyError(f"policy: {len(columns)} columns; a policy describes at most {MOST_COLUMNS:,}")
        if "folder" in fields:  # ours: a file cannot say where it lies
            raise PolicyError("policy: folder: unknown field", f"fields: {', '.join(_own_fields())}")
        if not nested_deeper(fields, DEEPEST):  # else an error below
            fields = _without_numpy(fields)
        return cls(**fields, folder=folder)

    def with_columns(self, **columns: Any) -> Policy:
        """Return a copy with changed columns: a role, or fields such as ``{"role": "quasi", "cells": "set"}``.

        Fields that are not given stay as they are, unless the role changes. Requirements on a column that is no longer
        sensitive are dropped.
        """
        fields = self.model_dump(mode="json", exclude_none=True)
        fields["columns"] = {name: _given(column) for name, column in self.columns.items()}
        for name, change in columns.items():
            before = fields["columns"].get(name, {})
            new = {"role": change} if isinstance(change, str) else dict(change)
            stays = before if new.get("role", before.get("role")) == before.get("role") else {}
            fields["columns"][name] = {**stays, **new}
            if before.get("role") == "sensitive" and not stays:
                fields["require"] = [model for model in fields["require"] if model.get("column") != name]
        return Policy.of(fields, self.folder)

    def with_release(self, **options: Any) -> Policy:
        """Return a copy with changed options of the release."""
        fields = self.model_dump(mode="json", exclude_none=True)
        fields["columns"] = {name: _given(column) for name, column in self.columns.items()}
        return Policy.of({**fields, "release": {**fields["release"], **options}}, self.folder)

    def to_toml(self) -> str:
        """Format the policy as TOML that reads back equal."""
        top = {"preset": self.preset} if self.preset is not None else {}
        lines = _fields({**top, **({"missing": self.missing} if self.missing else {})})
        lines += ["", "[columns]"] if lines else ["[columns]"]
        lines += [f"{toml.key(name)} = {toml.value(_given(column))}" for name, column in self.columns.items()]
        for model in self.require:
            lines += ["", "[[require]]", *_fields({"model": model.model, **_given(model)})]
        for result in self.forbid:
            lines += ["", "[[forbid]]", *_fields({"result": result.result, **_given(result)})]
        lines += ["", "[release]", *_fields(self.release.model_dump(exclude_none=True))]
        return "\n".join(lines) + "\n"

    def save(self, path: str | Path) -> None:
        """Write the policy as TOML."""
        try:
            Path(path).write_text(self.to_toml(), encoding="utf-8")
        except (OSError, ValueError) as error:
            reason = error.strerror if isinstance(error, OSError) else "not a valid file name"
            raise OutputError(f"policy {str(path)!r} cannot be written ({reason})") from None


PolicySource = Policy | Mapping[str, Any] | str | Path


def policy_of(given: PolicySource) -> Policy:
    """Return a policy from a Policy, the path of a file, or plain values."""
    if isinstance(given, Policy):
        return given
    if isinstance(given, str | Path):
        return Policy.load(given)
    if isinstance(given, Mapping):
        return Policy.of(dict(given))
    raise PolicyError(
        f"the policy must be a shoal.Policy, the path of a TOML file or a dict, not {type(given).__name__}",
        "use Policy.load for a file, or Policy.of for a dict",
    )


def _without_numpy(value: Any) -> Any:
    """Return plain values with the numbers of NumPy as those of Python."""
    if isinstance(value, Mapping):
        return {name: _without_numpy(item) for name, item in value.items()}
    if isinstance(value, list):
        return list(map(_without_numpy, value))
    return value.item() if isinstance(value, np.generic) else value


def _own_fields() -> list[str]:
    return [name for name in Policy.model_fields if name != "folder"]


def _comparable(value: Any) -> object:
    """Convert to plain values that hash equally for any order of keys; true, 1 and 1.0 are different."""
    if isinstance(value, Mapping):
        return frozenset((key, _comparable(item)) for key, item in value.items())
    if isinstance(value, list | tuple):
        return tuple(map(_comparable, value))
    return type(value).__name__, value


def _given(part: BaseModel) -> dict[str, Any]:
    return part.model_dump(mode="json", exclude_none=True, exclude_defaults=True)


def _fields(fields: dict[str, Any]) -> list[str]:
    return [f"{toml.key(k)} = {toml.value(v)}" for k, v in fields.items()]
