"""What the screens show of a release, computed once and as part of the run's progress."""

from __future__ import annotations

from starlette.exceptions import HTTPException

from shoal.release import Release
from shoal.report.drawings import risk_plot
from shoal.report.essentials import found_before
from shoal.report.summary import overview
from shoal.report.svg import plot_svg
from shoal.report.wording import counted_unit
from shoal.search.problem import Progress
from shoal.web.nodes import lattice_of, neighbours_of, node_list
from shoal.web.pages import texts
from shoal.web.workspace import WebRun


def release_of(run: WebRun) -> Release:
    """Return the release, if it is still in memory."""
    if run.release is None:
        raise HTTPException(410, texts().explore.forgotten)
    return run.release


def prepare(run: WebRun, progress: Progress = lambda *_: None) -> None:
    """Compute what the explore screen shows: counts and one figure, not the contents of a report."""
    release, visits = release_of(run), run.visits
    progress(texts().run.preparing, 0.0)
    contents = overview(release)
    plot = risk_plot(contents.bins, counted_unit(release.policy))
    charts = {"risk": plot_svg(plot, "risk", texts().explore.risk)}
    progress(texts().run.preparing, 0.5)
    before = found_before(release)
    progress(texts().run.preparing, 0.7)
    neighbours_of(release, visits)
    run.cache |= {
        "columns": contents.columns,
        "before": before,
        "nodes": node_list(release, visits),
        "lattice": lattice_of(release, visits),
        "charts": charts,  # last: where they are, all is
    }
    progress(texts().run.preparing, 1.0)
