"""Adult, the reference table: its columns, and policies for it."""

import shoal

COLUMNS = (
    "age",
    "education",
    "marital-status",
    "native-country",
    "occupation",
    "race",
    "salary-class",
    "sex",
    "workclass",
)
N = 30_162


def adult_policy(folder, *, k=5, sensitive=(), **release):
    """k-anonymity over all columns that are not sensitive, along the hierarchies in a folder."""
    columns = {
        name: {"role": "sensitive"}
        if name in sensitive
        else {"role": "quasi", "hierarchy": f"adult_hierarchy_{name}.csv"}
        for name in COLUMNS
    }
    fields = {"columns": columns, "require": [{"model": "k-anonymity", "k": k}], "release": release}
    return shoal.Policy.of(fields, folder)
