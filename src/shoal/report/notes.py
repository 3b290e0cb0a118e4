"""What whoever answers for a release should know although it keeps its policy."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING

from shoal.models.base import SensitiveModel
from shoal.report.formats import share

if TYPE_CHECKING:
    from shoal.release import Release


def unguarded(release: Release) -> Iterator[str]:
    """Sensitive columns of which nothing is asked: that everybody is one of k does not hide what all of them have."""
    models = [model for model in release.policy.models if isinstance(model, SensitiveModel)]
    for name in release.policy.sensitive if release.verdicts.records else ():
        if not any(model.column in (None, name) for model in models):
            most = share(release.measured.columns[name]["alpha"], 1)
            yield f"nothing is required of {name}; there is a class in which {most} of the records have the same value"
