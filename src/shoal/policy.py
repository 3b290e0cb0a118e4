"""Policy: what was asked for, frozen. Library, command line and page all build one."""

from __future__ import annotations

import math
import tomllib
from collections.abc import Iterable
from fractions import Fraction
from pathlib import Path
from typing import Any, Literal, Self

from pydantic import BaseModel, ConfigDict, Field, ValidationError, field_validator, model_validator

from shoal import toml
from shoal.errors import PolicyError
from shoal.models import PrivacyModel, Requirement, SensitiveModel
from shoal.table.builders import Spec

Role = Literal["identifier", "quasi", "sensitive", "plain"]
Algorithm = Literal["optimal", "exhaustive", "datafly"]
Objective = Literal["loss", "arx-loss", "discernibility", "average-class", "height", "precision", "entropy"]


class _Frozen(BaseModel):
    model_config = ConfigDict(frozen=True, extra="forbid", strict=True)


class Column(_Frozen):
    """What a column is to an intruder, and how it may be generalized."""

    role: Role
    hierarchy: Spec | None = None
    uncovered: Literal["error", "suppress"] = "error"

    @model_validator(mode="after")
    def _hierarchy_has_a_use(self) -> Self:
        if self.hierarchy is not None and self.role in ("identifier", "plain"):
            raise ValueError(f"a column with role {self.role!r} is not generalized: it takes no hierarchy")
        return self


class Options(_Frozen):
    """How the release is made."""

    algorithm: Algorithm = "optimal"
    objective: Objective = "loss"
    max_suppression: float = Field(default=0.0, ge=0, le=1, strict=False)  # share of records
    suppressed: Literal["drop", "keep"] = "drop"  # keep: the record stays, every quasi cell is *
    nulls: Literal["category", "wildcard", "forbid"] = "category"
    entity: str | None = None  # the column that tells persons apart, where one person has many records
    seed: int = Field(default=0, ge=0)
    shuffle: bool = True  # row order is a side channel; False keeps it


class Policy(_Frozen):
    """Roles and hierarchies of the columns, what must hold, and how to reach it."""

    columns: dict[str, Column]
    require: tuple[Requirement, ...]
    release: Options = Options()
    folder: Path = Field(Path(), exclude=True, repr=False)  # hierarchy files are found from here

    @field_validator("require", mode="before")
    @classmethod
    def _a_list_will_do(cls, require: Any) -> Any:
        return tuple(require) if isinstance(require, list) else require

    @model_validator(mode="after")
    def _consistent(self) -> Self:
        if not self.quasi:
            raise ValueError("columns: at least one column needs role 'quasi'")
        if not self.require:
            raise ValueError('require: ask for at least one model, such as { model = "k-anonymity", k = 5 }')
        for i, model in enumerate(self.require):
            if isinstance(model, SensitiveModel):
                self._check_sensitive(i, model)
        if self.release.entity is not None:
            self._check_entity(self.release.entity)
        if self.release.suppressed == "keep" and self.release.nulls == "wildcard":
            raise ValueError("release.suppressed: 'keep' does not go with nulls = 'wildcard', as a null would match the stars")
        return self

    def _check_sensitive(self, i: int, model: SensitiveModel) -> None:
        if not self.sensitive:
            raise ValueError(f"require.{i}: {model.model} needs a column with role 'sensitive'")
        if model.column is not None and model.column not in self.sensitive:
            raise ValueError(
                f"require.{i}.column: {model.column!r} does not have role 'sensitive'; "
                f"sensitive columns: {', '.join(self.sensitive)}"
            )

    def _check_entity(self, entity: str) -> None:
        if entity not in self.columns:
            raise ValueError(f"release.entity: no column {entity!r} under columns")
        if self.columns[entity].role != "identifier":
            raise ValueError(f"release.entity: {entity!r} tells persons apart, so its role must be 'identifier'")
        if self.release.nulls == "wildcard":
            raise ValueError("release.entity: persons cannot be counted with nulls = 'wildcard'; use 'category'")

    def __eq__(self, other: object) -> bool:
        # Where the policy was read from is not part of what it asks.
        return isinstance(other, Policy) and self.model_dump() == other.model_dump()

    def __hash__(self) -> int:
        return hash(self.to_toml())

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
            raise PolicyError(f"policy {path}: cannot be read ({error.strerror})") from None
        except UnicodeDecodeError:
            raise PolicyError(f"policy {path}: is not UTF-8 text") from None
        return cls.parse(text, folder=path.parent)

    @classmethod
    def parse(cls, text: str, folder: str | Path = ".") -> Policy:
        """Read a policy from TOML text."""
        try:
            fields = tomllib.loads(text)
        except tomllib.TOMLDecodeError as error:
            raise PolicyError(f"policy: not valid TOML: {error}") from None
        return cls.of(fields, folder)

    @classmethod
    def of(cls, fields: dict[str, Any], folder: str | Path = ".") -> Policy:
        """Build a policy from plain values, with errors that name the field."""
        try:
            return cls.model_validate({**fields, "folder": Path(folder)})
        except ValidationError as error:
            raise PolicyError("policy: " + "\npolicy: ".join(_explained(error)), _hint(error)) from None

    def to_toml(self) -> str:
        """The policy as TOML text that reads back equal."""
        lines = ["[columns]"]
        lines += [f"{toml.key(name)} = {toml.value(_given(column))}" for name, column in self.columns.items()]
        for model in self.require:
            lines += ["", "[[require]]", *_fields({"model": model.model, **_given(model)})]
        lines += ["", "[release]", *_fields(self.release.model_dump(exclude_none=True))]
        return "\n".join(lines) + "\n"

    def save(self, path: str | Path) -> None:
        """Write the policy as TOML."""
        Path(path).write_text(self.to_toml(), encoding="utf-8")


def _given(part: BaseModel) -> dict[str, Any]:
    return part.model_dump(mode="json", exclude_none=True, exclude_defaults=True)


def _fields(fields: dict[str, Any]) -> list[str]:
    return [f"{toml.key(k)} = {toml.value(v)}" for k, v in fields.items()]


def _explained(error: ValidationError) -> Iterable[str]:
    for problem in error.errors(include_url=False):
        message = problem["msg"].removeprefix("Value error, ")
        if problem["type"] == "extra_forbidden":
            message = "no such field"
        # A discriminated union puts the model's name into the path; the index already says which one it is.
        place = ".".join(str(part) for part in problem["loc"] if part not in _MODEL_NAMES)
        yield f"{place}: {message}" if place else message


def _hint(error: ValidationError) -> str | None:
    """What is allowed, where the mistake is an unknown field."""
    for problem in error.errors(include_url=False):
        if problem["type"] == "extra_forbidden":
            return "fields: " + ", ".join(_allowed(problem["loc"]))
    return None


def _allowed(place: tuple[int | str, ...]) -> list[str]:
    if len(place) == 1:
        return [name for name in Policy.model_fields if name != "folder"]
    if place[0] == "release":
        return list(Options.model_fields)
    if place[0] == "columns":
        return list(Column.model_fields)
    models = {m.model_fields["model"].default: m for m in _MODELS}
    return list(models[str(place[2])].model_fields) if str(place[2]) in models else sorted(models)


_MODELS: tuple[type[PrivacyModel], ...] = Requirement.__origin__.__args__  # type: ignore[attr-defined]
_MODEL_NAMES = {m.model_fields["model"].default for m in _MODELS}
