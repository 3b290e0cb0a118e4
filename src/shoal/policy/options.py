"""What a policy says about the search and the release."""

from __future__ import annotations

from typing import Literal

from pydantic import Field

from shoal.policy.part import FrozenPart

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
    "single_dimensional",
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


class Options(FrozenPart):
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
        default=0,
        ge=0,
        lt=10**100,
        description="Key of the hash that orders the rows, and seed of randomized searches.",
    )
    shuffle: bool = Field(
        default=True,
        description="Order the rows by that hash. `false` keeps the input order, which may disclose who is who.",
    )
    csv_dialect: Literal["input", "plain"] = Field(
        default="input",
        description="How a CSV file is written: with the separator, encoding, byte order mark and decimal marks of the "
        "CSV file that was read (`input`), or with its separator in UTF-8 without a mark and with decimal points "
        "(`plain`). `.tsv` files have tabs.",
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
    aim: bool = Field(
        default=False,
        description="Where a limit on an attack does not hold, try stricter requirements until it does: a larger k for "
        "limits on singling out and linkage, a smaller `limited-gain` for limits on inference. The certificate states "
        "those that were reached.",
    )
    max_tuples: int | None = Field(
        default=None,
        ge=1,
        description="The largest number of distinct tuples that an engine may send to this machine; if there are more, "
        "counting starts from coarser levels, and a finding names them.",
    )
