"""Policy: the frozen specification of a release, built by the library, the command line and the page."""

from __future__ import annotations

import math
import re
import tomllib
from collections.abc import Iterable, Mapping
from fractions import Fraction
from pathlib import Path
from typing import Annotated, Any, Literal, Self, get_args

from pydantic import (
    BaseModel,
    ConfigDict,
    Field,
    SerializerFunctionWrapHandler,
    ValidationError,
    ValidationInfo,
    field_validator,
    model_serializer,
    model_validator,
)

from shoal.errors import OutputError, PolicyError
from shoal.models import PopulationModel, PrivacyModel, Requirement, SensitiveModel
from shoal.models.forbidden import ForbiddenResult, MatchedResult
from shoal.models.learned import Forbidden
from shoal.models.measured import Limit, MeasuredLimit
from shoal.models.size import KAnonymity
from shoal.policy.presets import PRESETS, PresetName
from shoal.table.bounds import collisions
from shoal.table.builders import File, Mask, Spec
from shoal.table.centres import CENTRES
from shoal.table.dates import Dates
from shoal.table.notation import DecimalMark
from shoal.table.spelling import Spelling
from shoal.text import toml
from shoal.text.jsonable import DEEPEST, nested_deeper
from shoal.text.showing import Shown

Role = Literal["identifier", "quasi", "sensitive", "plain"]
Algorithm = Literal[
    "optimal",
    "exhaustive",
    "mingen",
    "samarati",
    "k_minimal",
    "incognito",
    "ola",
    "flash",
    "datafly",
    "k_optimize",
    "top_down",
    "genetic",
    "annealing",
    "mondrian",
    "mondrian_relaxed",
    "forest",
    "forest_generalize",
    "cover",
    "local",
    "local_suppression",
    "suppress_records",
    "suppress_columns",
    "suppress_cells",
    "mdav",
]
Objective = Literal[
    "loss",
    "arx-loss",
    "discernibility",
    "average-class",
    "height",
    "precision",
    "entropy",
    "ambiguity",
    "classification",
]


class _Frozen(BaseModel):
    # hide_input: what a policy lists, the values of a tree, say, may be values of the data.
    model_config = ConfigDict(frozen=True, extra="forbid", strict=True, hide_input_in_errors=True)


_QUASI_ONLY = {"min_level", "max_level", "only", "weight", "after", "cells"}

Cell = Literal["hierarchy", "range", "set", "mean", "median", "mode"]


class Column(_Frozen):
    """The role of a column and how it may be generalized."""

    role: Role = Field(
        description="`identifier`: identifies a person directly; it is removed. `quasi`: an outsider may know it; "
        "it is generalized, and it defines the classes. `sensitive`: must not be disclosed; it is kept and "
        "protected by the requirements on it. `plain`: kept unchanged and not protected."
    )
    hierarchy: Spec | None = Field(
        default=None,
        description="How a quasi-identifier may be generalized, or how similar the values of a sensitive column are to "
        "each other. The default for a quasi-identifier is `{ flat = true }`; other roles have none.",
    )
    uncovered: Literal["error", "suppress"] = Field(
        default="error",
        description="How to treat a value that is missing from the hierarchy: `error` rejects the table and "
        "reports the number of such values, `suppress` generalizes them to the top.",
    )
    missing: tuple[str, ...] | None = Field(
        default=None,
        strict=False,
        description="Texts that mean a missing value in this column, instead of those for the whole table "
        "(`missing` at the top level): `[]` if none does, for example if `NA` is a country code.",
    )
    decimal: Literal[".", ","] = Field(
        default=".", description="The decimal mark of its numbers; they are released with a point."
    )
    thousands: Literal[".", ",", " ", "'"] | None = Field(
        default=None,
        description="The mark between groups of three digits in its numbers; they are released without it.",
    )
    min_level: int = Field(default=0, ge=0, description="The lowest level of the hierarchy that may be released.")
    max_level: int | None = Field(
        default=None, ge=0, description="The highest level that may be released; by default the top."
    )
    only: Literal["suppress"] | None = Field(
        default=None, description="Release the column unchanged or suppress it entirely, with no level in between."
    )
    weight: float = Field(
        default=1.0,
        gt=0,
        le=1e9,
        allow_inf_nan=False,
        strict=False,
        description="The weight of its cells in losses that sum over cells.",
    )
    after: str | None = Field(
        default=None,
        description="Another quasi-identifier: this column is generalized only once that one is at its "
        "highest allowed level.",
    )
    cells: Cell = Field(
        default="hierarchy",
        description="What an algorithm that mixes levels in a column writes into a cell: `hierarchy`, the lowest label "
        "that covers the class; `range`, the range of its values, in the order of the hierarchy; `set`, the set of its "
        "values; or a single value, their `mean`, `median` or `mode`.",
    )

    @model_validator(mode="after")
    def _hierarchy_has_a_use(self) -> Self:
        if self.hierarchy is not None and self.role in ("identifier", "plain"):
            raise ValueError(f"a column with role {self.role!r} is not generalized and takes no hierarchy")
        # By value, not by what was written: a certificate writes the defaults out, and is read back.
        given = {name for name in _QUASI_ONLY if getattr(self, name) != type(self).model_fields[name].default}
        if self.role != "quasi" and given:
            raise ValueError(f"only a column with role 'quasi' takes {', '.join(sorted(given))}")
        if self.only and given & {"min_level", "max_level"}:
            raise ValueError(
                "only = 'suppress' leaves no choice of levels and cannot be combined with min_level or max_level"
            )
        if self.only and self.cells in CENTRES:
            raise ValueError(
                f"only = 'suppress' shows a value unchanged or not at all and cannot be combined with cells = "
                f"'{self.cells}'"
            )
        if self.max_level is not None and self.max_level < self.min_level:
            raise ValueError("max_level must be at least min_level")
        if self.decimal == self.thousands:
            raise ValueError("decimal and thousands are the same mark: numbers would be ambiguous")
        if self.thousands == "." and self.cells in ("mean", "median"):
            raise ValueError(
                f"cells = '{self.cells}' writes decimal points, which thousands = '.' would read as thousands marks"
            )
        _check_missing(self.missing or ())
        return self


def _check_missing(missing: Iterable[str]) -> None:
    for text in missing:
        if text != text.strip():
            raise ValueError(
                "missing: surrounding spaces are ignored; write the text without them, and a blank text as ''"
            )
        if text and not text.strip("*"):
            raise ValueError("missing: '*' means a suppressed value")


class Options(_Frozen):
    """Options of the search and of the release."""

    algorithm: Algorithm = Field(default="optimal", description="The search algorithm.")
    objective: Objective = Field(default="loss", description="The loss to minimize.")
    max_suppression: float = Field(
        default=0.0,
        ge=0,
        le=1,
        strict=False,
        description="The largest share of records that may be suppressed, rounded down to whole records.",
    )
    suppressed: Literal["drop", "keep"] = Field(
        default="drop",
        description="`drop` removes suppressed records. `keep` keeps them with `*` in every "
        "quasi-identifier, if they pass "
        'as one class; cannot be combined with `nulls = "wildcard"`.',
    )
    nulls: Literal["category", "wildcard", "forbid"] = Field(
        default="category",
        description="A missing value in a quasi-identifier is a value of its own (`category`), matches any value "
        "(`wildcard`), or is an error (`forbid`, in sensitive columns too).",
    )
    matches: Literal["original", "released"] = Field(
        default="original",
        description='What a record must match enough of in `suppress_cells` with `nulls = "wildcard"`: records as they '
        "were (`original`), so that no record counts on what others hide; or as they are released (`released`), as "
        "`check` and sdcMicro count, which hides fewer cells and lets a released record fit fewer than k people. "
        "Only under k-anonymity.",
    )
    entity: str | None = Field(
        default=None,
        description="The identifier column that identifies people, if a person can have several records; k then counts "
        'people. Cannot be combined with `nulls = "wildcard"`.',
    )
    household: str | None = Field(
        default=None,
        description="The identifier column that identifies households; household risk is then reported too.",
    )
    dimension: Literal["range", "entropy", "gain"] = Field(
        default="range",
        description="Which column `mondrian` splits first: the one with the largest span relative to its domain "
        "(`range`), the one with the highest entropy relative to its domain (`entropy`), or the one whose split "
        "reduces the loss most per bit (`gain`).",
    )
    preference: Literal["least-absolute", "least-relative", "maximum-distribution", "least-suppression"] = Field(
        default="least-absolute",
        description="Which of the k-minimal generalizations `k_minimal` returns: the one with the smallest sum of "
        "levels (`least-absolute`), of levels relative to the heights (`least-relative`), the one with the most "
        "distinct tuples (`maximum-distribution`), or with the fewest suppressed records (`least-suppression`). "
        "`shoal.k_minimal(data, policy)` lists them all.",
    )
    label: str | None = Field(
        default=None,
        description="A sensitive column that a classifier will predict from the release: `top_down` then keeps the "
        "most predictive detail, and `release.loss` includes `classification`.",
    )
    seed: int = Field(
        default=0, ge=0, description="Key of the hash that orders the rows, and seed of randomized searches."
    )
    shuffle: bool = Field(
        default=True,
        description="Order the rows by that hash. `false` keeps the input order, which may disclose who is who.",
    )
    csv_formulas: Literal["escape", "keep"] = Field(
        default="escape",
        description="How to write texts to a CSV file that a spreadsheet would evaluate, such as `=A1`: with an "
        "apostrophe in front (`escape`), or unchanged (`keep`). Numbers stay numbers, and shoal reads such a "
        "file without the apostrophes.",
    )
    ranges: Literal["text", "bounds", "midpoint"] = Field(
        default="text",
        description="How to write released ranges of numbers and dates: as text only (`text`); with their first "
        "and last value in extra columns, `age_from` and `age_to` (`bounds`); or with the midpoint, `age_mid` "
        "(`midpoint`).",
    )
    time_budget: float | None = Field(
        default=None,
        gt=0,
        allow_inf_nan=False,
        strict=False,
        description="Time limit of the search in seconds; `datafly` ignores it.",
    )
    max_tuples: int | None = Field(
        default=None,
        ge=1,
        description="The largest number of distinct tuples that an engine may send to this machine; if there are more, "
        "counting starts from coarser levels, and a warning names them.",
    )


class Policy(_Frozen, Shown):
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
            raise PolicyError("policy: " + "\npolicy: ".join(_explained(error)), _hint(error)) from None

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
        _check_missing(self.missing)
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
        for name, of in collisions(self).items():
            raise ValueError(
                f"release.ranges: {self.release.ranges!r} adds a column {name!r} next to {of!r}, but there is one "
                "with this name: rename it"
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
        """Limits on the results of attacks on the finished release; a search cannot aim at them."""
        preset = () if self.preset is None else PRESETS[self.preset].limits
        own = (model for model in self.require if isinstance(model, MeasuredLimit))
        return (*(limit for limit in preset if self.sensitive or not limit.needs_sensitive), *own)

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
            name: Spelling(self.missing if of.missing is None else of.missing, of.decimal, of.thousands)
            for name, of in self.columns.items()
        }

    @property
    def enforced(self) -> tuple[MatchedResult, ...]:
        """The forbidden results that are hidden by suppressing cells."""
        return tuple(result for result in self.forbid if isinstance(result, MatchedResult) and result.enforce)

    @property
    def marks(self) -> dict[str, DecimalMark]:
        """The decimal marks of the columns that specify one."""
        return {name: mark for name, of in self.spellings.items() if (mark := of.mark) is not None}

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
            text = path.read_text(encoding="utf-8-sig")
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
            told = message if not re.search(r"['\"]", message) else at[0] if at else "(a key is repeated)"
            raise PolicyError(f"policy: not valid TOML: {told}") from None
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
        if "folder" in fields:  # ours: a file cannot say where it lies
            raise PolicyError("policy: folder: unknown field", f"fields: {', '.join(_allowed(('folder',)))}")
        return cls(**fields, folder=folder)

    def with_columns(self, **columns: Any) -> Policy:
        """Return a copy with changed columns: a role, or fields such as ``{"role": "quasi", "cells": "set"}``.

        Fields that are not given stay as they are, unless the role changes.
        """
        fields = self.model_dump(mode="json", exclude_none=True)
        fields["columns"] = {name: _given(column) for name, column in self.columns.items()}
        for name, given in columns.items():
            before = fields["columns"].get(name, {})
            new = {"role": given} if isinstance(given, str) else dict(given)
            stays = before if new.get("role", before.get("role")) == before.get("role") else {}
            fields["columns"][name] = {**stays, **new}
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


def _explained(error: ValidationError) -> Iterable[str]:
    for problem in error.errors(include_url=False, include_input=False):
        place = problem["loc"]
        if place[:1] in (
            ("require",),
            ("forbid",),
        ):  # after the index comes the model's name, of which the index already tells
            place = place[:2] + place[3:]
        message = _MESSAGES.get(problem["type"], problem["msg"]).removeprefix("Value error, ")
        if place[:1] == ("forbid",) and problem["type"].startswith("union_tag"):
            message = message.replace("model", "result")
        yield f"{'.'.join(map(str, place))}: {message}" if place else message


def _hint(error: ValidationError) -> str | None:
    """Return the allowed values if a name is unknown or missing."""
    for problem in error.errors(include_url=False, include_input=False):
        if problem["type"] == "extra_forbidden":
            return "fields: " + ", ".join(_allowed(problem["loc"]))
        if problem["type"] in ("union_tag_not_found", "union_tag_invalid"):
            if problem["loc"][:1] == ("forbid",):
                return "results: " + ", ".join(_RESULTS)
            return "models: " + ", ".join(m.model_fields["model"].default for m in (*_MODELS, *_LIMITS))
    return None


def _allowed(place: tuple[int | str, ...]) -> list[str]:
    if len(place) == 1:
        return [name for name in Policy.model_fields if name != "folder"]
    if place[0] == "release":
        return list(Options.model_fields)
    if place[0] == "columns":
        return list(Column.model_fields)
    if place[0] == "forbid":
        return list(_RESULTS[str(place[2])].model_fields) if str(place[2]) in _RESULTS else list(_RESULTS)
    models = {m.model_fields["model"].default: m for m in (*_MODELS, *_LIMITS)}
    return list(models[str(place[2])].model_fields) if str(place[2]) in models else sorted(models)


_MODELS: tuple[type[PrivacyModel], ...] = get_args(get_args(Requirement)[0])
_LIMITS: tuple[type[MeasuredLimit], ...] = get_args(get_args(Limit)[0])

_RESULTS: dict[str, type[ForbiddenResult]] = {
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
