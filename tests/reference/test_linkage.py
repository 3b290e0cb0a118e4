"""Distance linkage on microaggregated accounts of companies, against figures computed elsewhere."""

import pytest

from shoal.linkage import distance_linkage


@pytest.mark.parametrize(("scale", "share"), [("own", 0.288), ("original", 0.313)])
def test_mdav_at_3_leaves_so_many_companies_of_tarragona_to_be_found(shared, scale, share):
    original = shared / "data" / "sdc" / "in_tarragona.csv"
    masked = shared / "oracle" / "sdc" / "mdav_tarragona_k3.csv"
    columns = original.read_text(encoding="utf-8").splitlines()[0].split(",")
    found = distance_linkage(original, masked, numeric=columns, scale=scale, per="released", truth="position")
    assert found.of == 834
    assert found.risk == pytest.approx(share, abs=5e-4)
    # From the other side no company is singled out: three records look the same.
    back = distance_linkage(original, masked, numeric=columns, scale=scale, truth="position")
    assert back.ties.min() == 3
    assert back.risk <= 1 / 3
