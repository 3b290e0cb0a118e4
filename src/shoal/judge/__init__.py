"""Whether requirements hold: counted again, judged by one function, with every warning."""

from shoal.judge.judge import Gaps, as_seen, failing_classes, judged, require

__all__ = ["Gaps", "as_seen", "failing_classes", "judged", "require"]
