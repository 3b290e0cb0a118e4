"""The search by thresholds of ``k_optimize``: discernibility under k-anonymity."""
