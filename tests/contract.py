"""What every search promises. One line in ``SEARCHES`` puts a new one through all of it (see test_contract.py)."""

from collections import Counter
from dataclasses import dataclass
from functools import cache

import pandas as pd

import shoal
from definitions import Case, Label, Sensitive, compatible, passes


@dataclass(frozen=True, eq=False)
class Task:
    """A table and what is asked of it; whether there is an answer is known."""

    rows: tuple[tuple[Label, ...], ...]  # quasi columns, then the sensitive one
    require: tuple[dict, ...]
    max_suppression: float = 0.0
    suppressed: str = "drop"
    nulls: str = "category"
    feasible: bool = True
    special: bool = False  # a search may decline it, with a PolicyError
    monotone: bool = True  # whether what satisfies still does when generalized; who prunes by that may decline else

    @property
    def quasi(self) -> list[str]:
        return [f"q{j}" for j in range(len(self.rows[0]) - 1)]

    @property
    def frame(self) -> pd.DataFrame:
        frame = pd.DataFrame(self.rows, columns=[*self.quasi, "s"], dtype="str")
        return frame.assign(serial=[f"{i:03}" for i in range(len(frame))], person=[f"p{i}" for i in range(len(frame))])

    def policy(self, algorithm: str, seed: int = 0) -> shoal.Policy:
        fields = {
            "columns": {
                **{name: {"role": "quasi", "hierarchy": {"mask": "right"}} for name in self.quasi},
                "s": {"role": "sensitive"},
                "serial": {"role": "plain"},
                "person": {"role": "identifier"},
            },
            "require": list(self.require),
            "release": {
                "max_suppression": self.max_suppression,
                "suppressed": self.suppressed,
                "nulls": self.nulls,
                "seed": seed,
            },
        }
        policy = shoal.Policy.of(fields)
        # Copied, not parsed: the contract asks about a search before a policy can name it.
        return policy.model_copy(update={"release": policy.release.model_copy(update={"algorithm": algorithm})})


def _cross(*columns):
    """Every combination, with codes that share beginnings, some often and some once."""
    rows = [(a, b, c) for a in columns[0] for b in columns[1] for c in columns[2]]
    return tuple(rows[i] for i in range(len(rows)) for _ in range(1 + i % 3))


ROWS = _cross(["11", "12", "21", "22", "23"], ["6", "7"], ["flu", "cold", "gout"])
K = {"model": "k-anonymity", "k": 4}

# Searches that look at a part of the lattice: their least may be more, and without generalizing there may be none.
WITHIN_A_PART = {"suppress_records", "suppress_columns"}
ONLY_SUPPRESSING = {"suppress_records"}

# Searches that prune by verdicts, and decline where these do not survive generalization.
BY_VERDICT = {"samarati", "k_minimal", "incognito", "ola", "flash"}

TASKS = {
    "k": Task(ROWS, (K,)),
    "k, some suppressed": Task(ROWS, ({**K, "k": 9},), 0.3),
    "k, suppressed kept as stars": Task(ROWS, ({**K, "k": 7},), 0.4, "keep"),
    "k and distinct values": Task(ROWS, (K, {"model": "distinct-l-diversity", "l": 3}), 0.1),
    "k and entropy": Task(ROWS, (K, {"model": "entropy-l-diversity", "l": 2.5}), 0.1, monotone=False),
    "k and entropy, nothing suppressed": Task(ROWS, (K, {"model": "entropy-l-diversity", "l": 2.5})),
    "k and closeness": Task(ROWS, (K, {"model": "t-closeness", "t": 0.2}), 0.1, monotone=False),
    "nulls": Task(tuple((None if i % 7 == 0 else a, b, c) for i, (a, b, c) in enumerate(ROWS)), (K,), 0.1),
    "nulls that match anything": Task(
        tuple((None if i % 5 == 0 else a, b, c) for i, (a, b, c) in enumerate(ROWS)),
        ({**K, "k": 8},),
        0.2,
        nulls="wildcard",
        special=True,
    ),
    "closeness alone": Task(ROWS, ({"model": "t-closeness", "t": 0.1},), 0.3, special=True),
    "equal rows": Task((("1", "2", "x"),) * 5, ({**K, "k": 5},)),
    "one row": Task((("1", "2", "x"),), ({**K, "k": 1},)),
    "k beyond the table": Task(ROWS, ({**K, "k": len(ROWS) + 1},), feasible=False),
    "k beyond the table, all may go": Task(ROWS, ({**K, "k": len(ROWS) + 1},), 1.0, feasible=False),
    "more values than there are": Task(ROWS, (K, {"model": "distinct-l-diversity", "l": 4}), 0.5, feasible=False),
}


def may_decline(task: Task, algorithm: str) -> bool:
    """Whether a PolicyError is an answer."""
    return task.special or (not task.monotone and algorithm in BY_VERDICT)


@cache
def released(task: Task, algorithm: str) -> shoal.Release:
    """The answer that most promises are about."""
    return shoal.anonymize(task.frame, task.policy(algorithm))


def rows_of(frame: pd.DataFrame) -> list[tuple]:
    columns = [[None if pd.isna(value) else value for value in frame[name]] for name in frame.columns]
    return list(zip(*columns, strict=True))


def the_model_holds_on_the_release(task: Task, algorithm: str) -> None:
    """Every class of the released rows, counted here, satisfies every requirement."""
    table = released(task, algorithm).table
    values = tuple(row[-1] for row in task.rows)
    column = Sensitive("s", values, tuple(dict.fromkeys(sorted(values))))
    case = Case((), ((),) * len(values), task.require, {"s": column})
    tuples = dict(zip(map(int, table["serial"]), rows_of(table[task.quasi]), strict=True))
    for mine in set(tuples.values()):
        wildcard = task.nulls == "wildcard"
        E = [i for i, other in tuples.items() if (compatible(mine, other) if wildcard else mine == other)]
        assert all(passes(case, model, E) for model in task.require)


def identifiers_are_gone_and_everything_else_is_there(task: Task, algorithm: str) -> None:
    table = released(task, algorithm).table
    assert list(table.columns) == [name for name in task.frame.columns if name != "person"]
    illness = dict(zip(task.frame["serial"], task.frame["s"], strict=True))
    assert all(illness[serial] == s for serial, s in zip(table["serial"], table["s"], strict=True))


def suppression_stays_within_the_limit(task: Task, algorithm: str) -> None:
    release = released(task, algorithm)
    assert 0 <= release.suppressed <= int(task.max_suppression * len(task.rows))
    left = len(task.rows) - (release.suppressed if task.suppressed == "drop" else 0)
    assert len(release.table) == left


def shuffled_rows_and_the_same_seed_give_the_same_release_and_leave_the_input_untouched(
    task: Task, algorithm: str
) -> None:
    """Another order of the rows changes nothing, and so neither does asking again."""
    frame = task.frame.sample(frac=1, random_state=1)
    before = frame.copy(deep=True)
    other = shoal.anonymize(frame, task.policy(algorithm))
    pd.testing.assert_frame_equal(frame, before)
    release = released(task, algorithm)
    assert rows_of(other.table) == rows_of(release.table)
    assert other.table.dtypes.equals(release.table.dtypes)
    assert other.levels == release.levels
    assert dict(other.loss) == dict(release.loss)


def the_figures_of_the_release_are_those_of_its_rows(task: Task, algorithm: str) -> None:
    release = released(task, algorithm)
    sizes = Counter(rows_of(release.table[task.quasi]))
    assert release.classes == len(sizes)
    if task.nulls == "category":
        assert release.measured["k"] == min(sizes.values())


PROMISES = (
    the_model_holds_on_the_release,
    identifiers_are_gone_and_everything_else_is_there,
    suppression_stays_within_the_limit,
    shuffled_rows_and_the_same_seed_give_the_same_release_and_leave_the_input_untouched,
    the_figures_of_the_release_are_those_of_its_rows,
)
