"""Certificates against the files they speak of."""

from __future__ import annotations

import copy
import json
from pathlib import Path
from typing import Any

import jsonschema
import pyarrow as pa
import pytest
from typer.testing import CliRunner

import shoal
from shoal.cli.commands import app
from shoal.errors import DataError
from shoal.policy import Policy
from shoal.release.certificate import SCHEMA
from shoal.verify.certified import schema, verify_certificate
from shoal.verify.verification import Verification

PEOPLE = pa.table({
    "name": [f"p{i}" for i in range(24)],
    "age": [str(20 + i % 12) for i in range(24)],
    "zip": ["02138"] * 8 + ["02139"] * 8 + ["99501"] * 6 + ["10001"] * 2,
    "disease": ["flu", "hiv", "flu", "asthma"] * 6,
    "cost": [100 * (i % 5) for i in range(24)],
})  # fmt: skip

EVERY = [
    {"model": "k-anonymity", "k": 3},
    {"model": "maximum-risk", "max": 0.5},
    {"model": "p-sensitive", "p": 2, "k": 2},
    {"model": "alpha-k-anonymity", "alpha": 0.9, "k": 2},
    {"model": "distinct-l-diversity", "l": 2},
    {"model": "entropy-l-diversity", "l": 1.5},
    {"model": "recursive-l-diversity", "c": 9.0, "l": 2},
    {"model": "average-risk", "max": 0.5},
    {"model": "sample-uniqueness", "max": 0.5},
    {"model": "t-closeness", "t": 0.9},
    {"model": "basic-beta-likeness", "beta": 20.0},
    {"model": "enhanced-beta-likeness", "beta": 20.0},
    {"model": "delta-disclosure", "delta": 5.0, "absent": "ignore"},
]


def policy(
    *require: dict[str, Any], columns: dict[str, Any] | None = None, folder: Path | str = ".", **release: Any
) -> Policy:
    return Policy.of(
        {
            "columns": {
                "name": {"role": "identifier"},
                "age": {"role": "quasi", "hierarchy": {"intervals": [10]}},
                "zip": {"role": "quasi", "hierarchy": {"mask": "right"}},
                "disease": {"role": "sensitive"},
                "cost": {"role": "sensitive"},
                **(columns or {}),
            },
            "require": list(require) or [{"model": "k-anonymity", "k": 3}],
            "release": release,
        },
        folder,
    )


def saved(tmp_path: Path, asked: Policy, name: str = "release.csv") -> tuple[dict[str, Any], Path]:
    path = tmp_path / name
    return shoal.anonymize(PEOPLE, asked).save(path), path


def lines(found: Verification) -> dict[str, Any]:
    names = [line.name for line in found]
    assert len(names) == len(set(names))
    return {line.name: line for line in found}


def wrong(found: Verification) -> list[str]:
    return [line.name for line in found if line.holds is False]


# ── what holds ──────────────────────────────────────────────────────────────────────────────────────────────


@pytest.mark.parametrize("name", ["release.csv", "release.tsv", "release.parquet"])
def test_every_line_of_a_release_without_suppression(name: str, tmp_path: Path) -> None:
    certificate, path = saved(tmp_path, policy(*EVERY), name)
    assert certificate["output"]["suppressed"] == 0
    found = verify_certificate(certificate, path)
    assert found.holds
    told = lines(found)
    for model in policy(*EVERY).models:
        assert told[f"requirement: {model.summary}"].holds is True, model.summary
    assert told["measured.t"].holds is True  # nothing was dropped: the release has the original's distribution
    assert told["measured.columns.cost.delta"].holds is True
    untold = {line.name for line in found if line.holds is None}
    assert untold == {
        "signature",
        "input.hmac_sha256",
        "levels",
        "hierarchies",
        "search",
        "versions",
        "other findings",
        "created",
    } | {f"loss.{name}" for name in certificate["loss"] if name not in ("discernibility", "average-class")}


@pytest.mark.parametrize("algorithm", ["optimal", "mondrian", "local_suppression", "top_down"])
def test_dropped_records_leave_untold_what_compares_with_the_original(algorithm: str, tmp_path: Path) -> None:
    asked = policy({"model": "k-anonymity", "k": 3}, max_suppression=0.9, algorithm=algorithm)
    certificate, path = saved(tmp_path, asked)
    found = verify_certificate(certificate, path)
    assert found.holds
    dropped = certificate["output"]["suppressed"]
    told = lines(found)
    for figure in ("t", "beta", "enhanced_beta", "delta"):
        line = told[f"measured.{figure}"]
        assert line.holds is (None if dropped else True)
        assert line.why == (f"needs the original, because {dropped} records were dropped" if dropped else "")
    assert told["loss.discernibility"].holds is True
    assert told["measured.k"].holds is True


def test_closeness_is_untold_where_records_were_dropped(tmp_path: Path) -> None:
    close = {"model": "t-closeness", "t": 0.9, "distance": "ordered"}
    asked = policy({"model": "k-anonymity", "k": 4}, close, max_suppression=0.3)
    certificate, path = saved(tmp_path, asked)
    assert certificate["output"]["suppressed"] > 0
    found = verify_certificate(certificate, path)
    told = lines(found)
    assert told["requirement: 4-anonymity"].holds is True
    (line,) = (line for name, line in told.items() if name.startswith("requirement: 0.9-closeness"))
    assert (line.holds, line.found) == (None, None)
    assert (found.outcome, found.holds) == ("unknown", False)
    assert "needs the original, because" in found.sentence
    with_it = verify_certificate(certificate, path, original=PEOPLE)
    assert with_it.outcome == "holds"
    assert float(f"{lines(with_it)[line.name].found:.2g}") == line.claimed  # the certificate has two digits
    assert lines(with_it)["measured.t"].holds is True


def test_equal_distances_are_told_as_far_as_the_dropped_records_can_move_the_whole(tmp_path: Path) -> None:
    def told(t: float, suppressed: int = 2) -> str:
        certificate = copy.deepcopy(proof)
        certificate["policy"]["require"][1]["t"] = t
        certificate["requirements"][1]["asked"] = f"{t:g}-closeness (equal)"
        certificate["input"]["records"] += suppressed - proof["output"]["suppressed"]
        certificate["output"]["suppressed"] = suppressed
        (line,) = (line for line in verify_certificate(certificate, path) if "closeness" in line.name)
        return {True: "holds", False: "fails", None: "unknown"}[line.holds]

    close = {"model": "t-closeness", "t": 0.9}
    proof, path = saved(tmp_path, policy({"model": "k-anonymity", "k": 4}, close, max_suppression=0.3))
    n, dropped = proof["output"]["records"], proof["output"]["suppressed"]
    own = shoal.measure(path, quasi=["age", "zip"], sensitive=["disease", "cost"])["t"]
    moved = dropped / (n + dropped)
    assert 0 < moved < own < own + moved < 0.9
    assert told(0.9, dropped) == "holds"
    assert told(round(own + moved + 0.01, 6), dropped) == "holds"
    assert told(round(own, 6), dropped) == "unknown"
    assert told(round(own - moved - 0.01, 6), dropped) == "fails"


def test_stars_that_stay(tmp_path: Path) -> None:
    asked = policy(*EVERY, max_suppression=0.5, suppressed="keep")
    certificate, path = saved(tmp_path, asked)
    found = verify_certificate(certificate, path)
    assert found.holds
    assert lines(found)["measured.t"].holds is True
    assert lines(found)["loss.discernibility"].holds is (None if certificate["output"]["suppressed"] else True)


def test_persons_are_not_told_apart_in_a_release(tmp_path: Path) -> None:
    asked = policy({"model": "k-anonymity", "k": 2}, {"model": "distinct-l-diversity", "l": 2}, entity="name")
    certificate, path = saved(tmp_path, asked)
    told = lines(verify_certificate(certificate, path))
    assert told["requirement: 2-anonymity"].holds is None
    assert "identifies people" in told["requirement: 2-anonymity"].why
    assert told["measured.k"].holds is None
    assert told["measured.l"].holds is True
    assert verify_certificate(certificate, path).outcome == "unknown"


def test_a_certificate_that_hides_behind_persons_is_refuted(tmp_path: Path) -> None:
    release = shoal.anonymize(PEOPLE, policy({"model": "k-anonymity", "k": 1}))  # which leaves it as it is
    honest = release.save(tmp_path / "ones.csv")
    assert release.measured["k"] == 1
    forged = copy.deepcopy(honest)
    forged["policy"]["release"]["entity"] = "name"
    forged["policy"]["require"] = [{"model": "k-anonymity", "k": 5}]
    forged["requirements"][0] |= {"asked": "5-anonymity", "worst": 5.0}
    forged["measured"] |= {"k": 5, "uniques": 0, "risk_max": 0.2, "risk_mean": 0.1, "sample_uniqueness": 0.0}
    found = verify_certificate(forged, tmp_path / "ones.csv")
    assert found.outcome == "fails"
    assert set(wrong(found)) >= {"requirement: 5-anonymity", "measured.k", "measured.risk_max", "measured.uniques"}
    proof = tmp_path / "proof.json"
    proof.write_text(json.dumps(forged), encoding="utf-8")
    done = CliRunner().invoke(app, ["verify", str(proof), str(tmp_path / "ones.csv")])
    assert done.exit_code == 1
    assert "The certificate does not hold" in done.stdout


def test_limits_on_attacks_are_told_with_the_original(tmp_path: Path) -> None:
    asked = policy({"model": "k-anonymity", "k": 8}, {"model": "singling-out-risk", "max": 0.0})
    certificate, path = saved(tmp_path, asked)
    alone = verify_certificate(certificate, path)
    assert alone.outcome == "unknown"
    assert lines(alone)["requirement: singling out risk at most 0, measured"].why == "needs the original"
    assert verify_certificate(certificate, path, original=PEOPLE).outcome == "holds"
    older = copy.deepcopy(certificate)
    older["requirements"].pop()  # they told of limits under attacks alone
    assert verify_certificate(older, path).outcome == "unknown"
    proof, data = tmp_path / "proof.json", tmp_path / "people.csv"
    PEOPLE.to_pandas().to_csv(data, index=False)
    for exit_code, change, more in (
        (2, {}, []),
        (0, {}, ["--original", str(data)]),
        (1, {"max": 0.5, "model": "average-risk"}, []),  # which the certificate does not speak of
    ):
        changed = copy.deepcopy(certificate)
        changed["policy"]["require"][1] |= change
        proof.write_text(json.dumps(changed), encoding="utf-8")
        done = CliRunner().invoke(app, ["verify", str(proof), str(path), *more])
        assert done.exit_code == exit_code, done.output


def test_a_raw_table_behind_a_certificate_is_attacked(tmp_path: Path) -> None:
    asked = policy({"model": "k-anonymity", "k": 1}, {"model": "singling-out-risk", "max": 1.0})
    certificate, path = saved(tmp_path, asked)
    certificate["policy"]["require"][1]["max"] = 0.0
    certificate["requirements"][1]["asked"] = "singling out risk at most 0, measured"
    assert verify_certificate(certificate, path).outcome == "unknown"
    found = verify_certificate(certificate, path, original=PEOPLE)
    assert wrong(found) == ["requirement: singling out risk at most 0, measured"]


def test_an_original_of_another_size_is_none(tmp_path: Path) -> None:
    certificate, path = saved(tmp_path, policy())
    assert wrong(verify_certificate(certificate, path, original=pa.concat_tables([PEOPLE, PEOPLE]))) == ["original"]


def test_a_population_is_not_in_a_release(tmp_path: Path) -> None:
    PEOPLE.to_pandas().to_csv(tmp_path / "everybody.csv", index=False)
    asked = policy({"model": "k-map", "k": 2, "population": "everybody.csv"}, folder=tmp_path)
    certificate, path = saved(tmp_path, asked)
    told = lines(verify_certificate(certificate, path))
    assert [line.holds for name, line in told.items() if name.startswith("requirement")] == [None]
    assert told["measured.k_map"].why == "needs the population"
    assert told["measured.k"].holds is True


def test_a_hierarchy_is_taken_from_the_policy_of_the_reader_and_no_path_of_a_certificate_is_opened(
    tmp_path: Path,
) -> None:
    (tmp_path / "disease.csv").write_text("flu;common;*\nasthma;common;*\nhiv;rare;*\n", encoding="utf-8")
    columns = {"disease": {"role": "sensitive", "hierarchy": "disease.csv"}}
    close = {"model": "t-closeness", "t": 0.9, "column": "disease", "distance": "hierarchical"}
    certificate, path = saved(
        tmp_path, policy({"model": "k-anonymity", "k": 3}, close, columns=columns, folder=tmp_path)
    )
    beside = tmp_path / "certificate.json"
    beside.write_text(json.dumps(certificate), encoding="utf-8")
    own = policy({"model": "k-anonymity", "k": 3}, close, columns=columns, folder=tmp_path)
    found = lines(verify_certificate(beside, path, policy=own))
    assert found["measured.columns.disease.t"].holds is True
    assert found["your policy: 3-anonymity"].holds is True
    found = lines(verify_certificate(beside, path))  # the file is there
    assert found["measured.columns.disease.t"].why.startswith("needs the hierarchy of 'disease'")
    assert found["measured.columns.cost.t"].holds is True
    assert found["measured.t"].holds is None
    (line,) = (line for name, line in found.items() if "closeness" in name)
    assert line.holds is None


def test_nulls_that_match_anything(tmp_path: Path) -> None:
    table = pa.table({"q": pa.array([None, "a", "a", "b", "b", None]), "s": list("xyxyxy")})
    asked = Policy.of({
        "columns": {"q": {"role": "quasi"}, "s": {"role": "sensitive"}},
        "require": [{"model": "k-anonymity", "k": 3}],
        "release": {"nulls": "wildcard"},
    })  # fmt: skip
    certificate = shoal.anonymize(table, asked).save(tmp_path / "r.csv")
    found = verify_certificate(certificate, tmp_path / "r.csv")
    assert found.holds
    assert lines(found)["measured.k"].found == certificate["measured"]["k"] == 4


def test_a_frame_and_its_own_certificate() -> None:
    release = shoal.anonymize(PEOPLE, policy(*EVERY))
    assert shoal.verify_certificate(release.certificate, release.table).holds


# ── what does not ───────────────────────────────────────────────────────────────────────────────────────────

LIES = {
    "output.sha256": lambda c: c["output"].update(sha256="0" * 64),
    "output.records": lambda c: c["output"].update(records=23),
    "input.records": lambda c: c["input"].update(records=25),
    "output.suppressed": lambda c: (c["output"].update(suppressed=2), c["input"].update(records=26)),
    "requirement: 3-anonymity": lambda c: c["requirements"][0].update(worst=99.0),
    "requirements": lambda c: c["requirements"].pop(),
    "measured.k": lambda c: c["measured"].update(k=c["measured"]["k"] + 1),
    "measured.entropy_l": lambda c: c["measured"].update(entropy_l=c["measured"]["entropy_l"] * 1.001),
    "measured.recursive_c": lambda c: c["measured"].update(recursive_c="inf"),
    "measured.columns.disease.t": lambda c: c["measured"]["columns"]["disease"].update(t=0.0),
    "measured.columns.cost.invented": lambda c: c["measured"]["columns"]["cost"].update(invented=1),
    "loss.discernibility": lambda c: c["loss"].update(discernibility=1.0),
    "seed": lambda c: c.update(seed=7),
    "preset": lambda c: c.update(preset={"name": "wp216", "citation": "", "note": ""}),
    "levels": lambda c: c["policy"]["columns"]["age"].update(min_level=1 + (c["levels"]["age"] or 0)),
    "attacks": lambda c: c["policy"]["require"].append({"model": "linkage-risk", "max": 0.1}),
}


@pytest.mark.parametrize("name", LIES)
def test_a_lie_is_named(name: str, tmp_path: Path) -> None:
    certificate, path = saved(tmp_path, policy(*EVERY))
    lie = copy.deepcopy(certificate)
    LIES[name](lie)
    found = verify_certificate(lie, path)
    assert not found.holds
    assert name in wrong(found)
    if name not in ("output.suppressed", "input.records"):  # which other figures hang on
        assert wrong(found) == [name]


def test_other_lies_about_a_requirement_or_a_level(tmp_path: Path) -> None:
    certificate, path = saved(tmp_path, policy(*EVERY))
    lie = copy.deepcopy(certificate)
    lie["requirements"][0]["figure"] = "another"
    assert wrong(verify_certificate(lie, path)) == [f"requirement: {certificate['requirements'][0]['asked']}"]
    lie = copy.deepcopy(certificate)
    lie["levels"]["invented"] = 1
    assert wrong(verify_certificate(lie, path)) == ["levels"]


def test_a_stricter_policy_than_was_kept(tmp_path: Path) -> None:
    certificate, path = saved(tmp_path, policy({"model": "k-anonymity", "k": 3}))
    certificate["policy"]["require"][0]["k"] = 100
    certificate["requirements"][0].update(asked="100-anonymity", worst=100.0)
    found = verify_certificate(certificate, path)
    (line,) = (line for line in found if line.name.startswith("requirement"))
    assert line.holds is False
    assert "records fail" in line.why


def test_a_changed_file(tmp_path: Path) -> None:
    certificate, path = saved(tmp_path, policy(*EVERY))
    text = path.read_text(encoding="utf-8").splitlines()
    path.write_text("\n".join([*text[:-1], text[-1].replace(text[-1].split(",")[1], "77777")]) + "\n", encoding="utf-8")
    found = wrong(verify_certificate(certificate, path))
    assert {"output.sha256", "measured.classes", "measured.k", "requirement: 3-anonymity"} <= set(found)
    assert "output.records" not in found


def test_other_columns_are_a_line_that_does_not_hold(tmp_path: Path) -> None:
    certificate, _ = saved(tmp_path, policy(*EVERY))
    release = shoal.anonymize(PEOPLE, policy(*EVERY)).table
    more = verify_certificate(certificate, release.append_column("extra", pa.array(["x"] * release.num_rows)))
    assert "columns" in wrong(more)
    assert lines(more)["columns"].why == "the policy has no 'extra'"
    fewer = verify_certificate(certificate, release.drop_columns(["age"]))
    assert lines(fewer)["columns"].why == "the file has no 'age'"
    other = verify_certificate(certificate, release.rename_columns({"disease": "illness"}))
    assert lines(other)["columns"].why == "the policy has no 'illness'; the file has no 'disease'"


def test_an_identifier_that_came_back(tmp_path: Path) -> None:
    certificate, _ = saved(tmp_path, policy(*EVERY))
    release = shoal.anonymize(PEOPLE, policy(*EVERY)).table
    found = verify_certificate(certificate, release.append_column("name", pa.array(["x"] * release.num_rows)))
    assert "identifiers" in wrong(found)


# ── the schema ──────────────────────────────────────────────────────────────────────────────────────────────


def test_the_schema_is_one_and_names_its_version() -> None:
    jsonschema.Draft202012Validator.check_schema(schema())
    assert schema()["properties"]["schema"]["const"] == SCHEMA
    assert schema()["$id"].endswith(SCHEMA.rpartition("/")[2])


@pytest.mark.parametrize(
    "options", [{}, {"algorithm": "mondrian"}, {"max_suppression": 0.4}, {"time_budget": 5.0}, {"seed": 7}]
)
def test_every_certificate_keeps_the_schema_and_has_no_field_that_it_does_not_name(options: dict[str, Any]) -> None:
    certificate = shoal.anonymize(PEOPLE, policy(**options)).certificate
    jsonschema.Draft202012Validator(schema()).validate(certificate)
    assert set(certificate) == set(schema()["properties"]) - {"signature"}
    preset = Policy.of({**policy().model_dump(mode="json", exclude_none=True), "preset": "lecture-low"})
    jsonschema.Draft202012Validator(schema()).validate(shoal.anonymize(PEOPLE, preset).certificate)


@pytest.mark.parametrize(
    "field", ["schema", "policy", "input", "output", "requirements", "measured", "loss", "created"]
)
def test_a_certificate_without_a_field_is_none(field: str, tmp_path: Path) -> None:
    certificate, path = saved(tmp_path, policy())
    del certificate[field]
    with pytest.raises(DataError, match="does not match the schema"):
        verify_certificate(certificate, path)


def test_messages_do_not_quote(tmp_path: Path) -> None:
    certificate, path = saved(tmp_path, policy())
    certificate["input"]["hmac_sha256"] = "Ada Lovelace"
    with pytest.raises(DataError, match=r"does not match the schema .*: input\.hmac_sha256 ") as caught:
        verify_certificate(certificate, path)
    assert "Ada" not in str(caught.value)
    certificate, _ = saved(tmp_path, policy(), "other.csv")
    certificate["policy"]["columns"]["age"]["role"] = "secret"
    with pytest.raises(DataError, match="contains no valid policy"):
        verify_certificate(certificate, path)


# ── the command ─────────────────────────────────────────────────────────────────────────────────────────────


def test_exit_codes(tmp_path: Path) -> None:
    certificate, path = saved(tmp_path, policy(*EVERY))
    proof = tmp_path / "certificate.json"
    proof.write_text(json.dumps(certificate), encoding="utf-8")
    run = CliRunner().invoke
    done = run(app, ["verify", str(proof), str(path)])
    assert done.exit_code == 0
    assert "Every requirement holds, and nothing contradicts the certificate" in " ".join(done.stdout.split())
    printed = json.loads(run(app, ["verify", str(proof), str(path), "--json"]).stdout)
    assert (printed["outcome"], printed["holds"]) == ("holds", True)
    assert {"name", "claimed", "found", "holds", "why", "required"} == set(printed["lines"][0])
    certificate["measured"]["k"] = 99
    proof.write_text(json.dumps(certificate), encoding="utf-8")
    done = run(app, ["verify", str(proof), str(path)])
    assert done.exit_code == 1
    assert "The certificate does not hold: measured.k." in done.stdout
    quiet = run(app, ["verify", str(proof), str(path), "-q"])
    assert (quiet.exit_code, quiet.stdout) == (1, "")
    swapped = run(app, ["verify", str(path), str(proof)])
    assert swapped.exit_code == 2
    assert "is not JSON" in swapped.stderr
    assert run(app, ["verify", str(tmp_path / "none.json"), str(path)]).exit_code == 2


def test_report_of_the_command_line(tmp_path: Path) -> None:
    data, asked = tmp_path / "people.csv", tmp_path / "policy.toml"
    PEOPLE.to_pandas().to_csv(data, index=False)
    policy().save(asked)
    out, page = tmp_path / "safe.csv", tmp_path / "report.html"
    base = ["anonymize", str(data), "-p", str(asked)]
    run = CliRunner().invoke
    assert run(app, [*base, "-o", str(out), "--report", str(out)]).exit_code == 2
    assert not out.exists()
    assert run(app, [*base, "--frontier", "k=2,3", "--report", str(page)]).exit_code == 2
    done = run(app, [*base, "-o", str(out), "--report", str(page)])
    assert done.exit_code == 0
    assert "This release satisfies its policy" in page.read_text(encoding="utf-8")
    out.unlink()
    again = run(app, [*base, "-o", str(out), "--report", str(page)])
    assert (again.exit_code, out.exists()) == (2, False)  # the report exists: said before the work


@pytest.mark.parametrize("option", ["--report", "--certificate", "--recoding"])
def test_a_frontier_is_of_many_releases_and_these_files_are_of_one(option: str, tmp_path: Path) -> None:
    data, asked = tmp_path / "people.csv", tmp_path / "policy.toml"
    PEOPLE.to_pandas().to_csv(data, index=False)
    policy().save(asked)
    file = tmp_path / "file"
    done = CliRunner().invoke(app, ["anonymize", str(data), "-p", str(asked), "--frontier", "k=2", option, str(file)])
    assert done.exit_code == 2
    assert f"{option} applies to a single one" in done.output
    assert not file.exists()


def test_attacks_for_the_report_and_the_certificate(tmp_path: Path) -> None:
    data, asked = tmp_path / "people.csv", tmp_path / "policy.toml"
    PEOPLE.to_pandas().to_csv(data, index=False)
    policy().save(asked)
    out, page, proof = tmp_path / "safe.csv", tmp_path / "report.html", tmp_path / "proof.json"
    base = ["anonymize", str(data), "-p", str(asked), "--attacks"]
    written = ["-o", str(out), "--report", str(page), "--certificate", str(proof)]
    done = CliRunner().invoke(app, [*base, *written])
    assert done.exit_code == 0
    assert "linkability:" in done.output
    assert "identity linking" in page.read_text(encoding="utf-8")
    assert json.loads(proof.read_text(encoding="utf-8"))["attacks"]["attacks"]
    assert verify_certificate(proof, out).holds
    assert CliRunner().invoke(app, [*base, "--frontier", "k=2"]).exit_code == 2


def test_help_tells_the_whole_sentence_of_every_command() -> None:
    shown = " ".join(CliRunner().invoke(app, ["--help"]).output.split())
    assert "..." not in shown.partition("Commands:")[2]
    for command in app.registered_commands:
        assert command.callback is not None
        assert " ".join((command.callback.__doc__ or "").partition("\n")[0].split()) in shown


def test_a_finding_with_a_field_or_a_kind_that_nobody_knows(tmp_path: Path) -> None:
    certificate, path = saved(tmp_path, policy())
    line = {"kind": "x", "severity": "note", "fact": "A fact", "remedy": "", "columns": [], "people": None}
    other = copy.deepcopy(certificate) | {"findings": [*certificate["findings"], line]}
    assert "x" in [finding.kind for finding in verify_certificate(other, path).findings]
    line["person"] = "p1"
    with pytest.raises(DataError, match=r"findings\.\d+ \(additionalProperties\)"):
        verify_certificate(other, path)
    with pytest.raises(DataError, match=r"schema \(const\)"):
        verify_certificate(certificate | {"schema": {"a": 1}}, path)
