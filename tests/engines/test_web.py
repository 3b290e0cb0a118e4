"""The page over a table in PostgreSQL."""

import re
from pathlib import Path

import pyarrow as pa

import shoal
from benches import Bench
from serving import served

PEOPLE = pa.table({"age": [20 + i % 30 for i in range(120)], "disease": ["flu", "cold", "gout"] * 40})


def test_a_table_in_postgres_goes_through_the_page(postgres: Bench, server: str, tmp_path: Path) -> None:
    name = postgres.load(PEOPLE).get_name()
    with served(tmp_path) as page:
        user = page.user()
        found = user.finished(user.post("/open", data=server, table=name))
        assert "120" in found.text, found.text
        draft = re.findall(r"/d/(\d+)/", found.path)[0]
        draft = re.findall(r"/d/(\d+)/", user.post(f"/d/{draft}/run", action="purpose", purpose="tables").path)[0]
        assert user.get(f"/d/{draft}/bars/0.svg").status == 200
        assert user.finished(user.get(f"/d/{draft}/column/0")).status == 200
        found = user.finished(user.post(f"/d/{draft}/run", action="start"))
        assert "This release satisfies its policy" in found.text, found.text
        run = page.workspace.runs[max(page.workspace.runs)]
        assert run.release is not None
        same = shoal.anonymize(PEOPLE, run.draft.policy)
        assert run.release.levels == same.levels
