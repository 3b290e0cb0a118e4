"""V. Verykios, A. Elmagarmid, E. Bertino, Y. Saygin, E. Dasseni, "Association rule hiding", TKDE 16(4), 2004.

Six transactions over the items A, B and C. The rule AC → B has support 50 % and confidence 75 %; a miner with a minimum
support of 33 % and a minimum confidence of 70 % finds it.
"""

from __future__ import annotations

import pyarrow as pa
import pytest

from shoal.engines.base import Rows
from shoal.judge.mining import mine
from shoal.policy import Policy

BASKETS = ["ABC", "ABC", "ABC", "AB", "A", "AC"]


def judged(support: float, confidence: float, baskets: list[str] = BASKETS) -> tuple[str, float]:
    policy = Policy.of(
        {
            "columns": {item: {"role": "quasi"} for item in "ABC"},
            "require": [{"model": "k-anonymity", "k": 1}],
            "forbid": [
                {
                    "result": "rule",
                    "when": {"A": 1, "C": 1},
                    "then": {"B": 1},
                    "support": support,
                    "confidence": confidence,
                }
            ],
        }
    )
    rows = Rows(pa.table({item: [str(int(item in basket)) for basket in baskets] for item in "ABC"}))
    verdict = policy.forbid[0].judge(mine(rows, policy))
    return verdict.outcome, verdict.worst


def test_the_rule_comes_out_at_the_thresholds_of_the_paper():
    assert judged(0.33, 0.7) == ("fails", 0.75)
    assert judged(0.5, 0.75) == ("fails", 0.75)  # met exactly


@pytest.mark.parametrize(("support", "confidence"), [(0.51, 0.7), (0.33, 0.76)])
def test_it_does_not_at_higher_ones(support, confidence):
    assert judged(support, confidence) == ("holds", 0.75)


def test_taking_an_item_out_of_a_transaction_hides_it():
    assert judged(0.33, 0.7, ["AC", *BASKETS[1:]]) == ("holds", 0.5)  # the paper's way: B leaves the first basket
