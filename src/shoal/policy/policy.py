"""Policy: what was asked for, frozen. Library, command line and page all build one."""

from __future__ import annotations

import math
import re
import tomllib
from collections.abc import Iterable, Mapping
from fractions import Fraction
from pathlib import Path
from typing import Annotated, Any, Literal, Self, get_args

from pydantic import BaseModel, ConfigDict, Field, ValidationError, field_validator, model_validator

from shoal.errors import OutputError, PolicyError
from shoal.models import PopulationModel, PrivacyModel, Requirement, SensitiveModel
from shoal.models.measured import Limit, MeasuredLimit
from shoal.models.size import KAnonymity
from shoal.policy.presets import PRESETS
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


PresetName = Literal[
    "hipaa-safe-harbor",
    "cms-cell",
    "ema-0070",
    "ema-0070-convention",
    "health-canada",
    "health-canada-convention",
    "cihi-public",
    "wp216",
    "lecture-low",
    "lecture-medium",
    "lecture-high",
]


class _Frozen(BaseModel):
    # hide_input: what a policy lists, the values of a tree, say, may be values of the data.
    model_config = ConfigDict(frozen=True, extra="forbid", strict=True, hide_input_in_errors=True)


_QUASI_ONLY = {"min_level", "max_level", "only", "weight", "after", "cells"}

Cell = Literal["hierarchy", "range", "set", "mean", "median", "mode"]


class Column(_Frozen):
    """What a column is to an intruder, and how it may be generalized."""

    role: Role = Field(
        description="`identifier`: leads straight to a person, and is removed. `quasi`: an outsider may know it; it is "
        "generalized, and classes are formed by it. `sensitive`: must not be learned; it is kept, and guarded by the "
        "requirements that look at it. `plain`: kept as it is, and judged by nothing."
    )
    hierarchy: Spec | None = Field(
        default=None,
        description="How a quasi column may be generalized, or how the values of a sensitive column lie to one "
        "another. Left out, a quasi column has `{ flat = true }`; other roles take none.",
    )
    uncovered: Literal["error", "suppress"] = Field(
        default="error",
        description="What becomes of a value that has no place in the hierarchy: `error` refuses the table with the "
        "number of such values, `suppress` sends them to the top.",
    )
    missing: tuple[str, ...] | None = Field(
        default=None,
        strict=False,
        description="Texts that stand for a missing value in this column, instead of those of the table (`missing` at "
        "the top): `[]` where none does, as `NA` in a column of countries.",
    )
    decimal: Literal[".", ","] = Field(
        default=".", description="What its numbers have before their decimals; they are released with a point."
    )
    thousands: Literal[".", ",", " ", "'"] | None = Field(
        default=None, description="What its numbers have between groups of three digits; they are released without."
    )
    min_level: int = Field(default=0, ge=0, description="Never less general than this level of the hierarchy.")
    max_level: int | None = Field(
        default=None, ge=0, description="Never more general than this level; the top when left out."
    )
    only: Literal["suppress"] | None = Field(
        default=None, description="The column stays as it is or is hidden altogether: no level between."
    )
    weight: float = Field(
        default=1.0,
        gt=0,
        le=1e9,
        allow_inf_nan=False,
        strict=False,
        description="How much its cells count in the losses that add up cells.",
    )
    after: str | None = Field(
        default=None,
        description="A quasi column: this one is generalized only where that one is as general as it may get.",
    )
    cells: Cell = Field(
        default="hierarchy",
        description="What an algorithm that mixes levels in one column writes in a cell: `hierarchy`, the lowest label "
        "that covers the class; `range`, of its values, in the order of the hierarchy's leaves; `set`, the values "
        "themselves; or one value for all, their `mean`, `median` or `mode`.",
    )

    @model_validator(mode="after")
    def _hierarchy_has_a_use(self) -> Self:
        if self.hierarchy is not None and self.role in ("identifier", "plain"):
            raise ValueError(f"a column with role {self.role!r} is not generalized: it takes no hierarchy")
        # By value, not by what was written: a certificate writes the defaults out, and is read back.
        given = {name for name in _QUASI_ONLY if getattr(self, name) != type(self).model_fields[name].default}
        if self.role != "quasi" and given:
            raise ValueError(f"only a quasi column takes {', '.join(sorted(given))}")
        if self.only and given & {"min_level", "max_level"}:
            raise ValueError("only = 'suppress' leaves no levels to choose: it takes neither min_level nor max_level")
        if self.only and self.cells in CENTRES:
            raise ValueError(
                f"only = 'suppress' shows a value as it is or not at all, and cells = '{self.cells}' neither"
            )
        if self.max_level is not None and self.max_level < self.min_level:
            raise ValueError("max_level must be at least min_level")
        if self.decimal == self.thousands:
            raise ValueError("decimal and thousands are the same mark: numbers cannot be told")
        if self.thousands == "." and self.cells in ("mean", "median"):
            raise ValueError(
                f"cells = '{self.cells}' writes decimal points, which thousands = '.' would take for thousands marks"
            )
        _check_missing(self.missing or ())
        return self


def _check_missing(missing: Iterable[str]) -> None:
    for text in missing:
        if text != text.strip():
            raise ValueError("missing: blanks around a text do not count; write it without, and blanks alone as ''")
        if text and not text.strip("*"):
            raise ValueError("missing: stars stand for a value that was suppressed")


class Options(_Frozen):
    """How the release is made."""

    algorithm: Algorithm = Field(default="optimal", description="How the recoding is found.")
    objective: Objective = Field(default="loss", description="What is to be least.")
    max_suppression: float = Field(
        default=0.0,
        ge=0,
        le=1,
        strict=False,
        description="The share of the records that may be suppressed, rounded down to whole records.",
    )
    suppressed: Literal["drop", "keep"] = Field(
        default="drop",
        description="`drop` removes suppressed records. `keep` leaves them with `*` in every quasi cell, if these pass "
        'as a class; not together with `nulls = "wildcard"`.',
    )
    nulls: Literal["category", "wildcard", "forbid"] = Field(
        default="category",
        description="A missing quasi value is a value of its own (`category`), matches anything (`wildcard`), or is an "
        "error (`forbid`, in sensitive columns too).",
    )
    entity: str | None = Field(
        default=None,
        description="The identifier column that tells persons apart, where one person has many records; k then counts "
        'persons. Not together with `nulls = "wildcard"`.',
    )
    household: str | None = Field(
        default=None,
        description="The identifier column that tells households apart: the risk of whole households is reported too.",
    )
    dimension: Literal["range", "entropy", "gain"] = Field(
        default="range",
        description="Which column `mondrian` splits first: the one that spans the largest share of its domain "
        "(`range`), the one with the highest entropy in proportion to its domain (`entropy`), or the one whose split "
        "takes most off the loss for each bit that it spends (`gain`).",
    )
    preference: Literal["least-absolute", "least-relative", "maximum-distribution", "least-suppression"] = Field(
        default="least-absolute",
        description="Which of the k-minimal generalizations `k_minimal` answers with: the one that climbs the fewest "
        "levels (`least-absolute`), the fewest in proportion to the heights (`least-relative`), the one with the most "
        "distinct tuples (`maximum-distribution`), or with the fewest suppressed records (`least-suppression`). "
        "`shoal.k_minimal(data, policy)` lists them all.",
    )
    label: str | None = Field(
        default=None,
        description="A sensitive column that a classifier is to predict from the release: `top_down` then keeps what "
        "tells most about it, and `release.loss` has `classification`.",
    )
    seed: int = Field(default=0, ge=0, description="Key of the hash that orders the rows, and of searches by chance.")
    shuffle: bool = Field(
        default=True,
        description="Order the rows by that hash. `false` keeps the order of the input, which may tell who is who.",
    )
    csv_formulas: Literal["escape", "keep"] = Field(
        default="escape",
        description="What becomes of texts in a CSV file that a spreadsheet would compute, such as `=A1`: they get an "
        "apostrophe before them (`escape`), or stay as they are (`keep`). Numbers stay numbers, and shoal reads such a "
        "file without the apostrophes.",
    )
    ranges: Literal["text", "bounds", "midpoint"] = Field(
        default="text",
        description="How released ranges of numbers and dates are written: as texts only (`text`); with their first "
        "and last value beside them, `age_from` and `age_to` (`bounds`); or with the middle of numbers, `age_mid` "
        "(`midpoint`).",
    )
    time_budget: float | None = Field(
        default=None,
        gt=0,
        allow_inf_nan=False,
        strict=False,
        description="Seconds that the search may take; `datafly` ignores it.",
    )
    max_tuples: int | None = Field(
        default=None,
        ge=1,
        description="Distinct tuples that an engine may send to this machine; with more of them counting starts from "
        "coarser levels, and a note says which.",
    )


class Policy(_Frozen, Shown):
    """Roles and hierarchies of the columns, what must hold, and how to reach it."""

    columns: dict[str, Column] = Field(description="What each column is: every column of the table, by name.")
    require: tuple[Annotated[Requirement | Limit, Field(discriminator="model")], ...] = Field(
        default=(), description="What must hold: at least one requirement, unless a preset brings its own."
    )
    preset: PresetName | None = Field(
        default=None, description="A published rule by name, whose requirements are added; no legal advice."
    )
    release: Options = Field(default=Options(), description="How to get there.")
    missing: tuple[str, ...] = Field(
        default=(),
        strict=False,
        description="Texts that stand for a missing value in every column, such as `NA` or `-`; `''` for empty and "
        "blank ones. Blanks around a text do not count.",
    )
    folder: Path = Field(Path(), exclude=True, repr=False, strict=False)  # hierarchy files are found from here

    def __init__(self, /, **fields: Any) -> None:
        if nested_deeper(fields, DEEPEST):
            raise PolicyError(f"policy: nested more than {DEEPEST} deep", "a hierarchy of many levels goes into a file")
        try:
            super().__init__(**fields)
        except ValidationError as error:
            raise PolicyError("policy: " + "\npolicy: ".join(_explained(error)), _hint(error)) from None

    @field_validator("require", mode="before")
    @classmethod
    def _a_list_will_do(cls, require: Any) -> Any:
        if isinstance(require, Mapping):
            raise ValueError("should be a list: write [[require]], with two brackets, above each entry")
        return tuple(require) if isinstance(require, list) else require

    @model_validator(mode="after")
    def _consistent(self) -> Self:
        _check_missing(self.missing)
        if not self.quasi:
            raise ValueError("columns: at least one column needs role 'quasi'")
        if not self.require and self.preset is None:
            raise ValueError('require: ask for at least one model, such as { model = "k-anonymity", k = 5 }')
        for i, model in enumerate(self.require):
            if isinstance(model, SensitiveModel):
                self._check_sensitive(i, model)
            if isinstance(model, MeasuredLimit) and model.needs_sensitive and not self.sensitive:
                raise ValueError(f"require.{i}: {model.model} needs a column with role 'sensitive'")
            if isinstance(model, KAnonymity) and model.columns is not None:
                self._check_set(i, model.columns)
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
                f"release.ranges: {self.release.ranges!r} writes a column {name!r} beside {of!r}: rename it"
            )
        if len({model.population for model in self.models if isinstance(model, PopulationModel)}) > 1:
            raise ValueError("require: name one population for all models that need it")
        if self.population is not None and self.release.nulls == "wildcard":
            raise ValueError("release.nulls: 'wildcard' does not go with a population; use 'category'")
        if self.release.suppressed == "keep" and self.release.nulls == "wildcard":
            raise ValueError("release.suppressed: 'keep' does not go with nulls = 'wildcard': a null would match stars")
        return self

    def _check_sensitive(self, i: int, model: SensitiveModel) -> None:
        if not self.sensitive:
            raise ValueError(f"require.{i}: {model.model} needs a column with role 'sensitive'")
        if model.column is not None and model.column not in self.sensitive:
            raise ValueError(
                f"require.{i}.column: {model.column!r} does not have role 'sensitive'; "
                f"sensitive columns: {', '.join(self.sensitive)}"
            )

    def _check_safe_harbor(self) -> None:
        for name in self.quasi:
            spec = self.columns[name].hierarchy
            if isinstance(spec, Dates | Mask):
                kind = "date" if isinstance(spec, Dates) else "zip"
                raise ValueError(
                    f'columns.{name}.hierarchy: the preset asks for {{ safe_harbor = "{kind}" }}, '
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
        """Columns that wait for one another would wait for ever."""
        waiting = [name]
        while (after := self.columns[waiting[-1]].after) is not None:
            if after in waiting:
                circle = " → ".join(map(repr, [*waiting[waiting.index(after) :], after]))
                raise ValueError(f"columns.{name}.after: leads round in a circle: {circle}; leave one of them out")
            waiting.append(after)

    def _check_entity(self, entity: str) -> None:
        self._check_key("entity", entity, "persons")
        if self.release.nulls == "wildcard":
            raise ValueError("release.entity: persons cannot be counted with nulls = 'wildcard'; use 'category'")

    def _check_key(self, field: str, name: str, whom: str) -> None:
        if name not in self.columns:
            raise ValueError(f"release.{field}: no column {name!r} under columns")
        if self.columns[name].role != "identifier":
            raise ValueError(f"release.{field}: {name!r} tells {whom} apart, so its role must be 'identifier'")

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
        """All that must hold: the preset's requirements, then the policy's own."""
        preset = () if self.preset is None else PRESETS[self.preset].models
        return (*preset, *(model for model in self.require if not isinstance(model, MeasuredLimit)))

    @property
    def limits(self) -> tuple[MeasuredLimit, ...]:
        """What attacks on the finished release may find at most; no search aims at these."""
        preset = () if self.preset is None else PRESETS[self.preset].limits
        own = (model for model in self.require if isinstance(model, MeasuredLimit))
        return (*(limit for limit in preset if self.sensitive or not limit.needs_sensitive), *own)

    def having(self, role: Role) -> tuple[str, ...]:
        """The columns with this role, in the order of the policy."""
        return tuple(name for name, column in self.columns.items() if column.role == role)

    @property
    def quasi(self) -> tuple[str, ...]:
        """The columns that an intruder can link on."""
        return self.having("quasi")

    @property
    def sensitive(self) -> tuple[str, ...]:
        """The columns that must not be learned."""
        return self.having("sensitive")

    @property
    def identifiers(self) -> tuple[str, ...]:
        """The columns that never leave."""
        return self.having("identifier")

    @property
    def spellings(self) -> dict[str, Spelling]:
        """How the cells of each column are spelled."""
        return {
            name: Spelling(self.missing if of.missing is None else of.missing, of.decimal, of.thousands)
            for name, of in self.columns.items()
        }

    @property
    def marks(self) -> dict[str, DecimalMark]:
        """The decimal mark of the columns for which one is named."""
        return {name: mark for name, of in self.spellings.items() if (mark := of.mark) is not None}

    @property
    def files(self) -> tuple[Path, ...]:
        """The hierarchies and the population that it names."""
        specs = [column.hierarchy for column in self.columns.values()]
        names = [spec.path for spec in specs if isinstance(spec, File)]
        return tuple(self.folder / name for name in [*names, *([self.population] if self.population else [])])

    @property
    def population(self) -> str | None:
        """The table of the population, where a requirement names one."""
        named = {model.population for model in self.models if isinstance(model, PopulationModel)}
        return next(iter(named), None)

    def of_all_levels(self) -> Policy:
        """The policy without limits on levels: another release may show labels that this one may not."""
        free = {"min_level": 0, "max_level": None, "only": None}
        columns = {name: column.model_copy(update=free) for name, column in self.columns.items()}
        return self.model_copy(update={"columns": columns})

    def allowance(self, n_records: int) -> int:
        """How many of ``n_records`` may be suppressed; exact, as 0.29 · 100 in floats is below 29."""
        return math.floor(Fraction(str(self.release.max_suppression)) * n_records)

    @classmethod
    def load(cls, path: str | Path) -> Policy:
        """Read a policy from a TOML file; hierarchy files are found beside it."""
        path = Path(path)
        try:
            text = path.read_text(encoding="utf-8-sig")
        except OSError as error:
            raise PolicyError(
                f"policy {path}: cannot be read ({error.strerror})",
                "inspect proposes one",
                option="shoal inspect DATA -o policy.toml",
            ) from None
        except UnicodeDecodeError:
            raise PolicyError(f"policy {path}: is not UTF-8 text") from None
        except ValueError:
            raise PolicyError(f"policy {str(path)!r}: no file can have this name") from None
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
            raise PolicyError("policy: not valid TOML: too many brackets within brackets") from None
        except ValueError:
            raise PolicyError("policy: not valid TOML: a number has too many digits") from None
        return cls.of(fields, folder)

    @classmethod
    def of(cls, fields: dict[str, Any], folder: str | Path = ".") -> Policy:
        """Build a policy from plain values, with errors that name the field."""
        if not isinstance(fields, dict) or not all(isinstance(name, str) for name in fields):
            raise PolicyError("policy: must be a dict with texts for keys")
        if "folder" in fields:  # ours: a file cannot say where it lies
            raise PolicyError("policy: folder: no such field", f"fields: {', '.join(_allowed(('folder',)))}")
        return cls(**fields, folder=folder)

    def with_columns(self, **columns: Any) -> Policy:
        """The same policy with some columns as given: a role, or fields such as ``{"role": "quasi", "cells": "set"}``.

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
        """The same policy with some options of the release as given."""
        fields = self.model_dump(mode="json", exclude_none=True)
        fields["columns"] = {name: _given(column) for name, column in self.columns.items()}
        return Policy.of({**fields, "release": {**fields["release"], **options}}, self.folder)

    def to_toml(self) -> str:
        """The policy as TOML text that reads back equal."""
        top = {"preset": self.preset} if self.preset is not None else {}
        lines = _fields({**top, **({"missing": self.missing} if self.missing else {})})
        lines += ["", "[columns]"] if lines else ["[columns]"]
        lines += [f"{toml.key(name)} = {toml.value(_given(column))}" for name, column in self.columns.items()]
        for model in self.require:
            lines += ["", "[[require]]", *_fields({"model": model.model, **_given(model)})]
        lines += ["", "[release]", *_fields(self.release.model_dump(exclude_none=True))]
        return "\n".join(lines) + "\n"

    def save(self, path: str | Path) -> None:
        """Write the policy as TOML."""
        try:
            Path(path).write_text(self.to_toml(), encoding="utf-8")
        except (OSError, ValueError) as error:
            reason = error.strerror if isinstance(error, OSError) else "no file can have this name"
            raise OutputError(f"policy {str(path)!r}: cannot be written ({reason})") from None


PolicySource = Policy | Mapping[str, Any] | str | Path


def policy_of(given: PolicySource) -> Policy:
    """A policy as it is, from the file that a path names, or from plain values."""
    if isinstance(given, Policy):
        return given
    if isinstance(given, str | Path):
        return Policy.load(given)
    if isinstance(given, Mapping):
        return Policy.of(dict(given))
    raise PolicyError(
        f"policy: must be a shoal.Policy, the path of a TOML file or a dict, not {type(given).__name__}",
        "Policy.load reads one from a file, Policy.of makes one from a dict",
    )


def _comparable(value: Any) -> object:
    """Plain values such that equal ones hash alike, in whatever order their keys stand; true, 1 and 1.0 are three."""
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
        if place[:1] == ("require",):  # after the index comes the model's name, of which the index already tells
            place = place[:2] + place[3:]
        message = _MESSAGES.get(problem["type"], problem["msg"]).removeprefix("Value error, ")
        yield f"{'.'.join(map(str, place))}: {message}" if place else message


def _hint(error: ValidationError) -> str | None:
    """What is allowed, where a name is unknown or missing."""
    for problem in error.errors(include_url=False, include_input=False):
        if problem["type"] == "extra_forbidden":
            return "fields: " + ", ".join(_allowed(problem["loc"]))
        if problem["type"] in ("union_tag_not_found", "union_tag_invalid"):
            return "models: " + ", ".join(m.model_fields["model"].default for m in (*_MODELS, *_LIMITS))
    return None


def _allowed(place: tuple[int | str, ...]) -> list[str]:
    if len(place) == 1:
        return [name for name in Policy.model_fields if name != "folder"]
    if place[0] == "release":
        return list(Options.model_fields)
    if place[0] == "columns":
        return list(Column.model_fields)
    models = {m.model_fields["model"].default: m for m in (*_MODELS, *_LIMITS)}
    return list(models[str(place[2])].model_fields) if str(place[2]) in models else sorted(models)


_MODELS: tuple[type[PrivacyModel], ...] = get_args(get_args(Requirement)[0])
_LIMITS: tuple[type[MeasuredLimit], ...] = get_args(get_args(Limit)[0])

_A_TABLE = 'should be a table, such as { role = "quasi" } or { model = "k-anonymity", k = 5 }'
# Where pydantic would speak of Python, or of the machinery of unions.
_MESSAGES = {
    "extra_forbidden": "no such field",
    "missing": "is missing",
    "tuple_type": "should be a list",
    "dict_type": _A_TABLE,
    "model_type": _A_TABLE,
    "model_attributes_type": _A_TABLE,
    "union_tag_not_found": "name its model",
    "union_tag_invalid": "no such model",
}
