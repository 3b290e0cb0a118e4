"""The nodes that a search evaluated, as the search saw them."""

import pyarrow as pa
import pytest

import shoal
from shoal.recoding import FullDomain
from shoal.search.full_domain.visits import Visits

PEOPLE = pa.table(
    {
        "age": [20 + i % 30 for i in range(120)],
        "zip": [f"35{i % 7}{i % 3}" for i in range(120)],
        "who": [f"p{i // 2}" for i in range(120)],
        "ill": ["flu", "gout", "none"] * 40,
    }
)


def policy_with(algorithm: str, **release: object) -> shoal.Policy:
    return shoal.Policy.of(
        {
            "columns": {
                "age": {"role": "quasi", "hierarchy": {"intervals": [5, 10]}},
                "zip": {"role": "quasi", "hierarchy": {"mask": "right"}},
                "who": {"role": "identifier"},
                "ill": {"role": "sensitive"},
            },
            "require": [{"model": "k-anonymity", "k": 4}],
            "release": {"algorithm": algorithm, "max_suppression": 0.1, **release},
        }
    )


@pytest.mark.parametrize("entity", [{}, {"entity": "who"}], ids=["records", "people"])
@pytest.mark.parametrize("algorithm", ["optimal", "flash", "exhaustive"])
def test_every_visited_node_is_released_with_the_figures_that_were_told(
    algorithm: str, entity: dict[str, object]
) -> None:
    policy = policy_with(algorithm, **entity)
    visits = Visits()
    release = shoal.anonymize(PEOPLE, policy, visits=visits)
    recoding = release.recoding
    assert isinstance(recoding, FullDomain)
    assert visits.best is not None
    assert visits.best.node == recoding.node
    assert visits.best.loss == pytest.approx(release.loss["loss"])
    assert visits.best.risk == pytest.approx(release.measured["risk_max"])
    if algorithm == "exhaustive":
        assert len(visits.of) == recoding.n_nodes
    for visit in visits.of.values():
        fields = policy.model_dump(mode="json", exclude_none=True)
        for name, level in zip(policy.quasi, visit.node, strict=True):
            fields["columns"][name] |= {"min_level": level, "max_level": level}
        held = shoal.Policy.of(fields)
        if not visit.feasible:
            with pytest.raises(shoal.InfeasibleError):
                shoal.anonymize(PEOPLE, held)
            continue
        built = shoal.anonymize(PEOPLE, held)
        assert built.suppressed == visit.suppressed
        assert built.measured["risk_max"] == pytest.approx(visit.risk)
        assert built.loss["loss"] == pytest.approx(visit.loss)
    barren = [visit.node for visit in visits.of.values() if visit.barren]
    feasible = [visit.node for visit in visits.of.values() if visit.feasible]
    assert not any(all(a <= b for a, b in zip(low, high, strict=True)) for low in feasible for high in barren)


def test_a_release_is_the_same_whether_its_visits_are_recorded_or_not() -> None:
    policy = policy_with("optimal")
    plain, recorded = shoal.anonymize(PEOPLE, policy), shoal.anonymize(PEOPLE, policy, visits=Visits())
    assert plain.table.equals(recorded.table)
    assert plain.recoding.n_evaluated == recorded.recoding.n_evaluated
