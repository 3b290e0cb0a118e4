"""One party of a joint computation, as a process: runs the scenarios that it is given and prints a line for each.

``python joint_party.py NUMBER SCENARIOS``; the file SCENARIOS lists plans by party, null for a party that
stays away.
"""

from __future__ import annotations

import contextlib
import gc
import io
import json
import sys
from pathlib import Path
from typing import Any

import shoal
from shoal import smc


def taken_part(number: int, fields: dict[str, Any]) -> dict[str, Any]:
    timeout = fields.pop("timeout", 60)
    key = fields.pop("key", f"party{number}.key")
    tuples = {name: tuple(map(tuple, value)) for name, value in fields.items() if name in ("quantile", "regression")}
    lists = {name: tuple(value) for name, value in fields.items() if isinstance(value, list) and name not in tuples}
    plan = smc.SharePlan(**(fields | tuples | lists))
    try:
        told = smc.share(f"{number}.csv", plan, party=number, parties="parties.toml", key=key, timeout=timeout)
    except shoal.ShoalError as error:
        return {"error": f"{type(error).__name__}: {error}"}
    return told.as_dict()


def main() -> None:
    number, scenarios = int(sys.argv[1]), json.loads(Path(sys.argv[2]).read_text(encoding="utf-8"))
    for plans in scenarios:
        fields = plans[number - 1]
        if fields is None:
            print("null", flush=True)
            continue
        said = io.StringIO()
        with contextlib.redirect_stdout(said), contextlib.redirect_stderr(said):
            told = taken_part(number, fields)
        gc.collect()
        told["said"] = said.getvalue()
        told["left"] = sorted({type(x).__name__ for x in gc.get_objects()} & {"Runtime", "Link", "Links", "LocalRows"})
        print(json.dumps(told), flush=True)


if __name__ == "__main__":
    main()
