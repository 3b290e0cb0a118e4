"""A folder with a small table about people and a policy for it, for tests that run the program."""

from __future__ import annotations

from pathlib import Path

SECRET = "Wilhelmina-Secret"  # stands for a cell: no message may ever contain it

POLICY = """
[columns]
name    = { role = "identifier" }
age     = { role = "quasi", hierarchy = { intervals = [10, 20] } }
zip     = { role = "quasi", hierarchy = { mask = "right" } }
disease = { role = "sensitive" }
note    = { role = "plain" }

[[require]]
model = "k-anonymity"
k = 2
[[require]]
model = "distinct-l-diversity"
l = 2
"""
HEADER = "name,age,zip,disease,note\n"
ROWS = [
    "Ada,21,02138,flu,x",
    "Bo,24,02138,hiv,y",
    "Cy,38,02139,flu,x",
    f"{SECRET},33,02139,{SECRET},{SECRET}",
]


class Place:
    """A folder with a table and a policy."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.data = folder / "people.csv"
        self.policy = folder / "policy.toml"
        self.output = folder / "release.csv"
        self.data.write_text(HEADER + "\n".join(ROWS) + "\n", encoding="utf-8")
        self.policy.write_text(POLICY, encoding="utf-8")
        self.inputs = self.names()

    def names(self) -> list[str]:
        return sorted(entry.name for entry in self.folder.iterdir())

    def anonymize(self, *more: str | Path) -> list[str]:
        return ["anonymize", str(self.data), "-p", str(self.policy), "-o", str(self.output), *map(str, more)]

    def check(self, data: Path, *more: str | Path) -> list[str]:
        return ["check", str(data), "-p", str(self.policy), *map(str, more)]
