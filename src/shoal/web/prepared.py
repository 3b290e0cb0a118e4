"""What the screens show of a release, computed once, while the run still tells its progress."""

from __future__ import annotations

from starlette.exceptions import HTTPException

from shoal.release import Release
from shoal.report.drawings import risk_plot
from shoal.report.essentials import found_before
from shoal.report.summary import Summary, summary
from shoal.report.svg import plot_svg
from shoal.report.wording import counted_unit
from shoal.web.nodes import lattice_of, neighbours_of, node_list
from shoal.web.pages import texts
from shoal.web.workspace import WebRun


def release_of(run: WebRun) -> Release:
    """The release, if it is still in memory."""
    if run.release is None:
        raise HTTPException(410, texts().explore.forgotten)
    return run.release


def summary_of(run: WebRun) -> Summary:
    """What a report tells of the release, computed once."""
    if "summary" not in run.cache:
        run.cache["summary"] = summary(release_of(run))
    contents: Summary = run.cache["summary"]
    return contents


def prepare(run: WebRun) -> None:
    """Compute what the screen shows, while the run still tells its progress."""
    release, contents = release_of(run), summary_of(run)
    plot = risk_plot(contents.bins, counted_unit(release.policy))
    run.cache["charts"] = {"risk": plot_svg(plot, "risk", texts().explore.risk)}
    run.cache["before"] = found_before(release)
    visits = run.visits
    neighbours_of(release, visits)
    run.cache["nodes"] = node_list(release, visits)
    run.cache["lattice"] = lattice_of(release, visits)
