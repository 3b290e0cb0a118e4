"""Every released cell reads back as something that its original could be, whoever wrote it."""

import numpy as np
import pandas as pd
from hypothesis import given, settings
from hypothesis import strategies as st

import shoal
from shoal.utility.reading import Pair

ALGORITHMS = ["optimal", "mondrian", "mondrian_relaxed", "k_optimize", "top_down", "forest_generalize", "mdav"]
TREE = {"tree": {"any": {"a, b": ["a", "b"], "{c}": ["c, d", 'e"']}}}
COLUMNS = {
    "age": ([str(n) for n in range(15, 95, 4)], {"intervals": [5, 20], "bottom": 18, "top": 85}),
    "dose": (["-2.5", "-1", "0", "0.5", "1.25", "3", "1e1"], {"intervals": [1, 5]}),
    "zip": (["35138", "35142", "351", "9", "40000"], {"mask": "right"}),
    "day": (["2001-02-03", "2001-02-28", "2001-03-01", "2004-12-31"], {"dates": ["month", "year"]}),
    "kind": (["a", "b", "c, d", 'e"'], TREE),
}


@settings(max_examples=40, deadline=None)
@given(
    st.sampled_from(ALGORITHMS),
    st.sampled_from(["hierarchy", "range", "set"]),
    st.sets(st.sampled_from(sorted(COLUMNS)), min_size=1, max_size=3),
    st.booleans(),
    st.integers(0, 10**6),
)
def test_a_cell_reads_back_as_what_its_original_is_among(algorithm, cells, names, nulls, seed):
    draw = np.random.default_rng(seed)
    n = 24
    frame = pd.DataFrame({name: draw.choice(COLUMNS[name][0], n) for name in sorted(names)}, dtype="str")
    if nulls:
        frame.loc[0, min(names)] = None
    policy = shoal.Policy.of({
        "columns": {
            **{name: {"role": "quasi", "hierarchy": COLUMNS[name][1], "cells": cells} for name in sorted(names)},
            "serial": {"role": "plain"},
        },
        "require": [{"model": "k-anonymity", "k": 3}],
        "release": {"algorithm": algorithm, "time_budget": 600},
    })  # fmt: skip
    release = shoal.anonymize(frame.assign(serial=[f"{i:02}" for i in range(n)]), policy)
    place = release.table["serial"].astype(int).to_numpy()
    pair = Pair.of(frame, release.table, policy)
    assert pair.unknown == {}
    for column in pair.columns:
        likely = column.masses[column.released].toarray()
        assert (likely[np.arange(len(place)), column.original[place]] > 0).all(), column.name
