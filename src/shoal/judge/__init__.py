"""Verdicts on requirements: a recount of the release and one function that judges."""

from shoal.judge.judge import Gaps, as_attackers_see, failing_classes, judge_release, judge_results, require

__all__ = ["Gaps", "as_attackers_see", "failing_classes", "judge_release", "judge_results", "require"]
