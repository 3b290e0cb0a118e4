"""Adult, 30,162 records, nine columns, k = 5: what the full-domain algorithms promise, against all 12,960 nodes."""

import gzip

import pytest

from adult import adult_policy
from shoal.engines.local import LocalEngine
from shoal.models.size import KAnonymity
from shoal.search import SEARCHES, Problem
from shoal.search.full_domain.incognito import satisfying
from shoal.search.full_domain.k_minimal import minimal_nodes
from shoal.search.problem import Terms

LIMITS = (0, 603)  # none, and two per cent


@pytest.fixture(scope="module")
def table(shared):
    folder = shared / "data" / "adult"
    return LocalEngine.of(folder / "adult.csv").count(adult_policy(folder)).table


@pytest.fixture(scope="module")
def nodes(shared):
    """Every node with the records that fail there and its loss, by a program that is not shoal."""
    found = {}
    with gzip.open(shared / "oracle" / "adult_9qi_k5_all_nodes.tsv.gz", "rt") as lines:
        header = next(lines).rstrip("\n").split("\t")
        suppressed, loss = header.index("suppressed_k5"), header.index("loss_geo_k5")
        for line in lines:
            fields = line.rstrip("\n").split("\t")
            found[tuple(map(int, fields[0].split(",")))] = (int(float(fields[suppressed])), float(fields[loss]))
    return found


def posed(table, limit):
    return Problem(table, (KAnonymity(k=5),), Terms(limit=limit, objective="arx-loss"))


def minimal(nodes):
    """The nodes with no neighbour below: what satisfies does so all the way up."""
    return {
        node
        for node in nodes
        if not any((*node[:j], level - 1, *node[j + 1 :]) in nodes for j, level in enumerate(node))
    }


@pytest.mark.parametrize("limit", LIMITS)
def test_incognito_lists_the_nodes_of_the_oracle_and_k_minimal_the_lowest_of_them(table, nodes, limit):
    within = {node for node, (suppressed, _) in nodes.items() if suppressed <= limit}
    assert set(satisfying(posed(table, limit))) == within
    listed = minimal_nodes(posed(table, limit))
    assert {one.node for one in listed} == minimal(within)
    assert all(one.suppressed == nodes[one.node][0] for one in listed)


@pytest.mark.parametrize("limit", LIMITS)
def test_each_algorithm_finds_what_it_promises_on_adult(table, nodes, limit):
    loss = {node: cost for node, (suppressed, cost) in nodes.items() if suppressed <= limit}
    least = min(map(sum, loss))
    lowest = [node for node in loss if sum(node) == least]
    promised = {
        "flash": loss,
        "incognito": loss,
        "optimal": loss,
        "ola": minimal(loss),
        "samarati": lowest,
        "k_minimal": lowest,
    }
    for name, among in promised.items():
        problem = posed(table, limit)
        recoding = SEARCHES[name](problem)
        assert recoding.node == min(among, key=loss.__getitem__), name
        assert recoding.n_evaluated < problem.lattice.n_nodes / 2
        assert recoding.proved == (name in ("flash", "incognito", "optimal") or (name == "ola" and limit == 0))
