"""Attacks on a release, and their stories: who would be found in the original, and who in the release."""

from __future__ import annotations

from collections.abc import Sequence

from starlette.datastructures import FormData
from starlette.exceptions import HTTPException
from starlette.requests import Request
from starlette.responses import Response

from shoal.attacks.stories import Story
from shoal.engines.base import Rows
from shoal.report.intrusion import stories_within_budget, within_budget
from shoal.search.problem import Progress
from shoal.web.pages import get, pages_of, post, run_of, texts, workspace_of
from shoal.web.prepared import release_of


def _attack(request: Request, _: FormData) -> Response:
    """Attack the release, and tell the stories of a few people."""
    pages, workspace, run = pages_of(request), workspace_of(request), run_of(request)
    release = release_of(run)

    def work(progress: Progress) -> str:
        progress(texts().explore.attacking, 0)
        run.attacks = within_budget(release)
        run.release = release.with_attacks(run.attacks)
        progress(texts().stories.telling, 0.5)
        run.cache["stories"] = stories_within_budget(release)
        return f"/runs/{run.number}/explore#attacks-h"

    return pages.follow(workspace.jobs.start(texts().explore.attacking, work, f"/runs/{run.number}/explore"))


def _show(request: Request) -> Response:
    """Tell the stories without a value of the original."""
    return _page(request, values=False)


def _show_values(request: Request, _: FormData) -> Response:
    """Tell them with the values that the intruder knows and learns: only when asked, at no address of its own."""
    return _page(request, values=True)


def _page(request: Request, *, values: bool) -> Response:
    pages, run = pages_of(request), run_of(request)
    release = release_of(run)
    stories: Sequence[Story] | None = run.cache.get("stories")
    if not stories:
        raise HTTPException(404, texts().errors.gone)
    table = release.rows.table if isinstance(release.rows, Rows) else None
    released = {
        story.why: [table[name][story.record].as_py() for name in release.policy.quasi]
        for story in stories
        if table is not None and story.record is not None
    }
    return pages.render(
        "stories.html",
        "explore",
        run=run,
        release=release,
        stories=stories,
        released=released,
        names=release.policy.quasi,
        values=values,
    )


ROUTES = [
    post("/runs/{run:int}/attack", _attack),
    get("/runs/{run:int}/stories", _show),
    post("/runs/{run:int}/stories", _show_values),
]
