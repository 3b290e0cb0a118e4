"""If these fail, a hierarchy has other labels than its specification says."""

from decimal import Decimal
from pathlib import Path
from typing import Any

import pytest
from pydantic import BaseModel, ConfigDict, TypeAdapter, ValidationError

from shoal.errors import HierarchyError, UncoveredValueError
from shoal.hierarchies.builders import Dates, File, Flat, Intervals, Mask, Spec, Tree, build
from shoal.hierarchies.hierarchy import Hierarchy
from shoal.notation.numbers import parse_number

SPEC: TypeAdapter[Any] = TypeAdapter(Spec)


def made(spec: Any, values: list[str], *, nulls: bool = False, uncovered: Any = "error", folder: Path = Path()):
    given = None if spec is None else SPEC.validate_python(spec)
    return build("c", given, values, nulls=nulls, uncovered=uncovered, folder=folder)


def climb(hierarchy: Hierarchy, value: str | None) -> list[str | None]:
    leaf = hierarchy.encode([value])[0]
    return [hierarchy.label(level, hierarchy.table[level, leaf]) for level in range(hierarchy.n_levels)]


def share(hierarchy: Hierarchy, value: str | None, level: int) -> float:
    return float(hierarchy.shares[level][hierarchy.table[level, hierarchy.encode([value])[0]]])


class TestIntervals:
    def test_labels_hold_their_values_at_both_ends(self):
        ages = made({"intervals": [5, 10, 20]}, ["20", "24", "25", "39", "40"])
        assert climb(ages, "20") == ["20", "20-24", "20-29", "20-39", "*"]
        assert climb(ages, "24") == ["24", "20-24", "20-29", "20-39", "*"]
        assert climb(ages, "25") == ["25", "25-29", "20-29", "20-39", "*"]
        assert climb(ages, "40") == ["40", "40-44", "40-49", "40-59", "*"]
        assert ages.leaf_order == "numeric"

    def test_leaves_are_in_numeric_order_and_keep_their_text(self):
        ages = made({"intervals": [5]}, ["100", "39", "9", "039", "39.0", "+9"])
        assert ages.leaves == ("+9", "9", "039", "39", "39.0", "100")
        assert climb(ages, "039") == ["039", "35-39", "*"]
        assert climb(ages, "39.0") == ["39.0", "35-39", "*"]

    def test_a_width_of_one_is_the_number_itself(self):
        assert climb(made({"intervals": [1, 10]}, ["020", "21"]), "020") == ["020", "20", "20-29", "*"]

    def test_a_negative_bound_puts_its_own_label_in_brackets(self):
        change = made({"intervals": [5]}, ["-10", "-6", "-5", "-1", "0", "4"])
        labels = ["[-10, -6]", "[-10, -6]", "[-5, -1]", "[-5, -1]", "0-4", "0-4"]
        assert [climb(change, value)[1] for value in change.leaves] == labels

    def test_a_negative_bound_may_come_from_the_origin(self):
        assert climb(made({"intervals": [10], "origin": 5}, ["0", "7"]), "0") == ["0", "[-5, 4]", "*"]

    def test_a_negative_single_number_needs_no_brackets(self):
        assert climb(made({"intervals": [1, 5]}, ["-3", "2"]), "-3") == ["-3", "-3", "[-5, -1]", "*"]

    def test_decimals_are_exact(self):
        doses = made({"intervals": [0.1, 0.5]}, [f"0.{i}" for i in range(10)] + ["0.30", "1.0"])
        for i in range(9):
            assert climb(doses, f"0.{i}")[1] == f"[{'0' if i == 0 else f'0.{i}'}, 0.{i + 1})"
        assert climb(doses, "0.30") == ["0.30", "[0.3, 0.4)", "[0, 0.5)", "*"]
        assert climb(doses, "0.5")[2] == "[0.5, 1)"
        assert climb(doses, "1.0")[1:3] == ["[1, 1.1)", "[1, 1.5)"]

    def test_one_decimal_anywhere_makes_the_column_half_open(self):
        assert climb(made({"intervals": [5]}, ["20", "20.5"]), "20")[1] == "[20, 25)"
        assert climb(made({"intervals": [5], "origin": 0.5}, ["20"]), "20")[1] == "[15.5, 20.5)"
        assert climb(made({"intervals": [5], "top": 22.5}, ["20"]), "20")[1] == "[20, 22.5)"

    def test_minus_zero_is_zero(self):
        zero = made({"intervals": [5]}, ["-0.0", "0", "4"])
        assert climb(zero, "-0.0") == ["-0.0", "0-4", "*"]

    def test_top_and_bottom_are_coded_from_level_0_on(self):
        values = ["3", "17", "19", "20", "79", "80", "81", "104"]
        ages = made({"intervals": [5, 20], "bottom": 18, "top": 81}, values)
        assert climb(ages, "104") == climb(ages, "81") == [">=81", ">=81", ">=81", "*"]
        assert climb(ages, "3") == climb(ages, "17") == ["<18", "<18", "<18", "*"]
        assert climb(ages, "19") == ["19", "18-19", "18-19", "*"]
        assert climb(ages, "80") == ["80", "80", "80", "*"]
        assert climb(ages, "79") == ["79", "75-79", "60-79", "*"]
        assert ages.table[0].tolist() == [0, 0, 1, 2, 3, 4, 5, 5]
        assert all("104" not in (label or "") for level in ages.labels for label in level)

    def test_bins_are_clipped_at_the_top(self):
        assert climb(made({"intervals": [20], "top": 90}, ["85", "95"]), "85") == ["85", "80-89", "*"]

    def test_everything_may_be_coded(self):
        old = made({"intervals": [5, 10], "top": 80}, ["90", "95"])
        assert old.labels == ((">=80",), (">=80",), (">=80",), ("*",))
        assert [level.tolist() for level in old.shares] == [[1.0], [1.0], [1.0], [1.0]]

    def test_shares_are_parts_of_the_datas_range(self):
        ages = made({"intervals": [5, 10], "bottom": 18, "top": 80}, ["10", "17", "20", "24", "60", "100"])
        assert share(ages, "20", 0) == 0
        assert share(ages, "20", 1) == pytest.approx(4 / 90)
        assert share(ages, "20", 2) == pytest.approx(9 / 90)
        assert share(ages, "10", 0) == share(ages, "17", 2) == pytest.approx(7 / 90)
        assert share(ages, "100", 0) == share(ages, "100", 1) == pytest.approx(20 / 90)
        assert share(ages, "60", 3) == 1

    def test_shares_are_clipped_to_the_datas_range(self):
        assert share(made({"intervals": [100]}, ["20", "30"]), "20", 1) == 1
        doses = made({"intervals": [1]}, ["0.5", "1.5", "2.5"])
        assert [share(doses, value, 1) for value in doses.leaves] == [0.25, 0.5, 0.25]

    def test_null_and_one_number(self):
        ages = made({"intervals": [5]}, ["20"], nulls=True)
        assert climb(ages, None) == [None, None, "*"]
        assert (share(ages, "20", 1), share(ages, "20", 2), share(ages, None, 1)) == (0, 1, 0)

    @pytest.mark.parametrize(
        "text",
        [
            "",
            " ",
            "NaN",
            "inf",
            "-Infinity",
            "1_000",
            "1,5",
            "0x1F",
            "٣",
            "1e999999999",
            "1e-500",
            "9" * 500,
            "--1",
            ".",
        ],
    )
    def test_what_is_no_sane_number_is_uncovered(self, text):
        assert parse_number(text) is None
        with pytest.raises(UncoveredValueError, match="'c': 1 of 2 distinct values are missing from"):
            made({"intervals": [5]}, ["20", text])
        ages = made({"intervals": [5]}, ["20", text], uncovered="suppress")
        assert climb(ages, text) == ["*", "*", "*"]
        assert share(ages, text, 0) == 1

    @pytest.mark.parametrize(("text", "label"), [("1e3", "1000-1004"), (" 12 ", "10-14"), (".0", "0-4"), ("5.", "5-9")])
    def test_numbers_may_be_written_in_many_ways(self, text, label):
        assert climb(made({"intervals": [5]}, [text]), text)[1] == label

    def test_very_large_and_very_small_numbers_stay_exact(self):
        wide = made({"intervals": [5]}, ["9007199254740993", "1e308"])
        assert climb(wide, "9007199254740993")[1] == "9007199254740990-9007199254740994"
        tiny = made({"intervals": [0.5]}, ["4.9e-324", "0.7"])
        assert climb(tiny, "4.9e-324")[1] == "[0, 0.5)"

    @pytest.mark.parametrize(
        ("fields", "message"),
        [
            ({"intervals": [5, 10, 25]}, "intervals: the width of level 3 must be a whole multiple"),
            ({"intervals": [0.2, 0.5]}, "intervals: the width of level 2"),
            ({"intervals": [5, 5]}, "intervals: the width of level 2"),
            ({"intervals": []}, "intervals: must be one or more widths"),
            ({"intervals": [0]}, "intervals: must be one or more widths, all positive"),
            ({"intervals": [-5, 10]}, "all positive"),
            ({"intervals": ["5"]}, "intervals.0: must be a number"),
            ({"intervals": [True]}, "intervals.0: must be a number"),
            ({"intervals": [float("nan")]}, "intervals.0: must be a number"),
            ({"intervals": [5], "top": float("inf")}, "top: must be a number"),
            ({"intervals": [5], "top": 20, "bottom": 20}, "bottom must be less than top"),
            (
                {"intervals": [5], "orgin": 2},
                "unknown key: orgin; allowed are intervals, boundaries, origin, log_from, bottom, top",
            ),
        ],
    )
    def test_mistakes_name_the_field(self, fields, message):
        with pytest.raises(ValidationError, match=message):
            SPEC.validate_python(fields)

    def test_a_tenth_fits_into_three_tenths(self):
        assert Intervals(intervals=(0.1, 0.3)).intervals == (Decimal("0.1"), Decimal("0.3"))

    def test_it_dumps_as_it_was_written(self):
        fields = {"intervals": [0.5, 1], "origin": 0, "bottom": None, "top": 80}
        dumped = SPEC.validate_python(fields).model_dump(mode="json")
        assert dumped == fields
        assert type(dumped["intervals"][1]) is int


class TestMask:
    def test_the_lectures_zip_codes(self):
        zips = made({"mask": "right"}, ["35138", "35142", "35148", "35137", "35141"])
        assert climb(zips, "35138") == ["35138", "3513*", "351**", "35***", "3****", "*"]
        assert zips.n_levels == 6
        assert zips.leaves == ("35137", "35138", "35141", "35142", "35148")
        assert zips.leaf_order == "text"
        assert share(zips, "35142", 1) == 2 / 4

    def test_from_the_left(self):
        assert climb(made({"mask": "left"}, ["02138"]), "02138") == [
            "02138",
            "*2138",
            "**138",
            "***38",
            "****8",
            "*",
        ]

    def test_every_value_loses_characters_of_its_own(self):
        right = made({"mask": "right"}, ["12", "1234", ""])
        assert climb(right, "12") == ["12", "1*", "**", "**", "*"]
        assert climb(right, "1234") == ["1234", "123*", "12**", "1***", "*"]
        assert climb(right, "") == ["", "*", "*", "*", "*"]
        left = made({"mask": "left"}, ["12", "1234"])
        assert climb(left, "12") == ["12", "*2", "**", "**", "*"]

    def test_a_longer_value_changes_nothing_for_the_others(self):
        alone, beside = (made({"mask": "right"}, ["02138", "02139", *more]) for more in ([], ["02138-1234"]))
        assert climb(alone, "02138")[:5] == climb(beside, "02138")[:5] == ["02138", "0213*", "021**", "02***", "0****"]
        assert climb(beside, "02138-1234")[2] == "02138-12**"
        assert alone.top == beside.top == "*"

    def test_stars_in_the_data_join_what_they_look_like(self):
        zips = made({"mask": "right"}, ["351**", "35138", "35"])
        assert climb(zips, "351**")[2] == climb(zips, "35138")[2]

    def test_characters_count_not_bytes(self):
        assert climb(made({"mask": "right"}, ["Åß", "𝔘𝔫"]), "𝔘𝔫") == ["𝔘𝔫", "𝔘*", "*"]

    def test_a_lone_empty_text_has_a_top(self):
        assert climb(made({"mask": "right"}, [""]), "") == ["", "*"]

    def test_long_texts_are_refused_without_a_quote(self):
        with pytest.raises(HierarchyError, match="'c': a value has 65 characters"):
            made({"mask": "right"}, ["x" * 65])

    def test_the_side_is_named(self):
        with pytest.raises(ValidationError, match="mask: Input should be 'right' or 'left'"):
            SPEC.validate_python({"mask": "middle"})


class TestDates:
    def test_every_unit(self):
        units = ["day", "week", "month", "quarter", "year", "decade"]
        births = made({"dates": units}, ["1964-04-12", "1964-04-08", "1964-04-15"])
        assert climb(births, "1964-04-12") == [
            "1964-04-12", "1964-04-12", "1964-04-08/1964-04-14", "1964-04", "1964-Q2", "1964", "1960s", "*",
        ]  # fmt: skip
        assert births.leaves == ("1964-04-08", "1964-04-12", "1964-04-15")
        assert births.leaf_order == "time"

    @pytest.mark.parametrize(
        ("day", "week"),
        [
            ("2023-02-28", "2023-02-22/2023-02-28"),
            ("2024-02-29", "2024-02-29/2024-02-29"),
            ("2023-12-31", "2023-12-29/2023-12-31"),
            ("2023-05-01", "2023-05-01/2023-05-07"),
        ],
    )
    def test_weeks_stay_within_their_month(self, day, week):
        assert climb(made({"dates": ["week"]}, [day]), day)[1] == week

    @pytest.mark.parametrize(("month", "quarter"), [("01", 1), ("03", 1), ("04", 2), ("09", 3), ("10", 4), ("12", 4)])
    def test_quarters(self, month, quarter):
        assert climb(made({"dates": ["quarter"]}, [f"1999-{month}-01"]), f"1999-{month}-01")[1] == f"1999-Q{quarter}"

    def test_the_lectures_births(self):
        spec = {"dates": ["month", "year"], "format": "%y/%m/%d", "pivot": 0}
        births = made(spec, ["64/04/12", "64/09/13", "63/03/15"])
        assert climb(births, "64/04/12") == ["64/04/12", "1964-04", "1964", "*"]
        assert births.leaves == ("63/03/15", "64/04/12", "64/09/13")

    def test_the_datafly_patients(self):
        births = made({"dates": ["year"], "format": "%m/%d/%y", "pivot": 30}, ["9/20/65", "10/23/64", "2/14/65"])
        assert climb(births, "9/20/65") == ["9/20/65", "1965", "*"]
        assert births.leaves == ("10/23/64", "2/14/65", "9/20/65")

    @pytest.mark.parametrize(
        ("pivot", "text", "year"),
        [
            (69, "68", "2068"),
            (69, "69", "1969"),
            (0, "00", "1900"),
            (100, "99", "2099"),
            (30, "29", "2029"),
            (30, "30", "1930"),
        ],
    )
    def test_two_digit_years_obey_the_pivot(self, pivot, text, year):
        assert climb(made({"dates": ["year"], "format": "%y", "pivot": pivot}, [text]), text)[1] == year

    def test_1900_had_no_leap_day(self):
        spec = {"dates": ["month"], "format": "%y-%m-%d"}
        assert climb(made(spec, ["00-02-29"]), "00-02-29")[1] == "2000-02"
        with pytest.raises(UncoveredValueError):
            made({**spec, "pivot": 0}, ["00-02-29"])

    def test_the_pivot_leaves_four_digit_years_alone(self):
        assert (
            climb(made({"dates": ["year"], "format": "%%y %d.%m.%Y"}, ["%y 12.04.2093"]), "%y 12.04.2093")[1] == "2093"
        )

    @pytest.mark.parametrize(
        "text",
        [
            "1964-04-12T23:59:59.5+02:00",
            "1964-04-12 00:00",
            "1964-04-12T24:00:00Z",
            "1964-04-12T10:00:00-0330",
            "1964-04-12",
        ],
    )
    def test_date_times_count_as_written(self, text):
        assert climb(made({"dates": ["day"]}, [text]), text)[1] == "1964-04-12"

    @pytest.mark.parametrize(
        "text",
        [
            "",
            "19640412",
            "1964-4-12",
            "1964-02-30",
            "0000-01-01",
            "1964-W15-1",
            "12.04.1964",
            "1964-04-12T99:00",
            "NaT",
        ],
    )
    def test_what_is_no_date_is_uncovered(self, text):
        births = made({"dates": ["year"]}, ["1964-04-12", text], uncovered="suppress")
        assert climb(births, text) == ["*", "*", "*"]
        assert births.domain == 1

    def test_years_have_four_digits(self):
        old = made({"dates": ["month", "quarter", "year", "decade"]}, ["0987-01-02"])
        assert climb(old, "0987-01-02")[1:] == ["0987-01", "0987-Q1", "0987", "0980s", "*"]

    @pytest.mark.parametrize(
        ("fields", "message"),
        [
            (
                {"dates": ["year", "month"]},
                "dates: must be one or more of day, week, month, quarter, year, decade",
            ),
            ({"dates": ["month", "month"]}, "dates: must be one or more"),
            ({"dates": []}, "dates: must be one or more"),
            ({"dates": ["century"]}, "dates.0: Input should be 'day', 'week'"),
            ({"dates": ["day"], "format": "%x"}, "format: does not know %x; allowed are %Y, %y"),
            ({"dates": ["day"], "format": "%d.%m"}, "format: must hold the year once"),
            ({"dates": ["day"], "format": "%y %Y-%m-%d"}, "format: must hold the year once"),
            (
                {"dates": ["day"], "format": "%Y-%m-%d %d"},
                "format: is not a format that dates can be read with",
            ),
            ({"dates": ["day"], "format": "%Y-%m"}, "dates: the format gives no more than the month"),
            ({"dates": ["month"], "format": "%Y"}, "dates: the format gives no more than the year"),
            ({"dates": ["day"], "pivot": 101}, "pivot: Input should be less than or equal to 100"),
            ({"dates": ["day"], "pivot": True}, "pivot: Input should be a valid integer"),
        ],
    )
    def test_mistakes_name_the_field(self, fields, message):
        with pytest.raises(ValidationError, match=message):
            SPEC.validate_python(fields)

    def test_a_format_may_tell_less_than_the_day(self):
        assert climb(made({"dates": ["quarter"], "format": "%Y-%m"}, ["1964-05"]), "1964-05")[1] == "1964-Q2"
        assert climb(made({"dates": ["day"], "format": "%Y %j"}, ["1964 366"]), "1964 366")[1] == "1964-12-31"


class TestTree:
    def test_race_to_person(self):
        race = made({"tree": {"person": ["asian", "black", "white"]}}, ["white", "black"])
        assert climb(race, "black") == ["black", "person"]
        assert race.leaves == ("asian", "black", "white")
        assert race.leaf_order == "given"

    @pytest.mark.parametrize("single", [["single"], "single"])
    def test_single_stays(self, single):
        tree = {"*": {"been_married": ["divorced", "married", "widow"], "single": single}}
        marital = made({"tree": tree}, ["single"])
        assert climb(marital, "single") == ["single", "single", "*"]
        assert climb(marital, "widow") == ["widow", "been_married", "*"]

    def test_lists_mix_groups_and_values_and_short_branches_repeat_the_leaf(self):
        tree = {"*": [{"been_married": ["divorced", {"now": ["married"]}]}, "single"]}
        marital = made({"tree": tree}, [])
        assert climb(marital, "married") == ["married", "now", "been_married", "*"]
        assert climb(marital, "divorced") == ["divorced", "divorced", "been_married", "*"]
        assert climb(marital, "single") == ["single", "single", "single", "*"]

    def test_scalars_become_their_text(self):
        assert made({"tree": {"*": [1, 2.5, True, False]}}, []).leaves == ("1", "2.5", "true", "false")

    @pytest.mark.parametrize("tree", [{"a": ["x"], "b": ["y"]}, ["x", "y"], [{"*": ["x"]}, "y"]])
    def test_more_than_one_root_breaks_c2(self, tree):
        with pytest.raises(HierarchyError, match=r"'c': the top level has 2 labels instead of one \(C2\)"):
            made({"tree": tree}, ["x"])

    def test_a_leaf_given_twice_breaks_c1(self):
        with pytest.raises(HierarchyError, match=r"'c': 1 values have more than one entry at level 0 \(C1\)"):
            made({"tree": {"*": {"a": ["x", "y"], "b": ["x"]}}}, ["x"])

    def test_a_group_in_two_places_breaks_c1(self):
        tree = {"*": {"north": {"city": ["x"]}, "south": {"city": ["y"]}}}
        with pytest.raises(HierarchyError, match="1 labels at level 1 have more than one parent at level 2"):
            made({"tree": tree}, ["x"])

    @pytest.mark.parametrize("tree", [{}, [], {"*": []}, {"*": {"a": {}}}])
    def test_groups_have_values(self, tree):
        with pytest.raises(ValidationError, match="tree: has a group without values"):
            SPEC.validate_python({"tree": tree})

    def test_null_is_no_leaf(self):
        with pytest.raises(ValidationError, match="tree: must be made of groups"):
            SPEC.validate_python({"tree": {"*": [None]}})

    def test_the_loss_divides_by_all_leaves_and_null(self):
        tree = {"*": {"been_married": ["divorced", "married", "widow"], "single": ["single"]}}
        assert share(made({"tree": tree}, ["widow"]), "widow", 1) == 2 / 3
        assert share(made({"tree": tree}, ["widow"], nulls=True), "widow", 1) == 2 / 4


class TestFile:
    def write(self, folder: Path, text: str | bytes) -> str:
        (folder / "h.csv").write_bytes(text.encode() if isinstance(text, str) else text)
        return "h.csv"

    @pytest.mark.parametrize("mark", [";", ",", "\t"])
    @pytest.mark.parametrize("end", ["\n", "\r\n"])
    @pytest.mark.parametrize("start", ["", "\ufeff"])
    def test_any_delimiter_line_end_and_mark(self, tmp_path, mark, end, start):
        lines = ["b;x;*", "", "a;x;*", "   ", "c;y;*"]
        name = self.write(tmp_path, start + end.join(lines).replace(";", mark))
        jobs = made(name, ["a"], folder=tmp_path)
        assert jobs.leaves == ("b", "a", "c")
        assert climb(jobs, "a") == ["a", "x", "*"]
        assert share(jobs, "a", 1) == 1 / 2
        assert jobs.leaf_order == "given"

    def test_labels_may_hold_other_delimiters_quotes_and_line_breaks(self, tmp_path):
        name = self.write(tmp_path, 'Smith, J;[0, 10[;*\n"a;""b""\nc";"[0, 10[";*\nd\u2028e;x,y;*\n')
        jobs = made(name, [], folder=tmp_path)
        assert jobs.leaves == ("Smith, J", 'a;"b"\nc', "d\u2028e")
        assert jobs.labels[1] == ("[0, 10[", "x,y")

    def test_the_delimiter_is_the_one_that_leads_to_one_top(self, tmp_path):
        jobs = made(self.write(tmp_path, "a;1,x,*\nb;2,y,*\n"), [], folder=tmp_path)
        assert climb(jobs, "a;1") == ["a;1", "x", "*"]

    def test_text_stays_text(self, tmp_path):
        jobs = made(self.write(tmp_path, "02138;x;*\n;none;*\nNA;none;*\n"), ["", "02138"], folder=tmp_path)
        assert jobs.leaves == ("02138", "", "NA")
        with pytest.raises(UncoveredValueError):
            made("h.csv", ["2138"], folder=tmp_path)

    def test_a_line_twice_counts_once(self, tmp_path):
        assert made(self.write(tmp_path, "a;x;*\nb;x;*\na;x;*\n"), ["a"], folder=tmp_path).leaves == (
            "a",
            "b",
        )

    @pytest.mark.parametrize(
        ("text", "message"),
        [
            ("a;x;*\na;y;*\nb;y;*\n", r"1 values have more than one path from level 0 \(C1\)"),
            ("a;x;p;*\nb;x;q;*\n", r"1 labels at level 1 have more than one parent at level 2 \(C1\)"),
            ("a;x\nb;y\n", r"the top level has 2 labels instead of one \(C2\)"),
            ("a\nb\n", "C2"),
            ('a;x;*\n\n"b\nb";x;*\nc;*\n', "line 5 has 2 fields, the first row 3"),
            ("", "is empty"),
            ("\ufeff\n  \n", "is empty"),
            (b"a;\xff;*\n", "is not UTF-8 text"),
        ],
    )
    def test_what_is_wrong_is_told_without_values(self, tmp_path, text, message):
        with pytest.raises(HierarchyError, match=message) as caught:
            made(self.write(tmp_path, text), ["a"], folder=tmp_path)
        assert "column 'c'" in caught.value.message
        assert str(tmp_path) not in str(caught.value)

    def test_a_missing_file_is_named_as_the_policy_names_it(self, tmp_path):
        with pytest.raises(HierarchyError, match=r"hierarchy file 'sub/jobs\.csv': does not exist") as caught:
            made("sub/jobs.csv", ["a"], folder=tmp_path)
        assert str(tmp_path) not in str(caught.value)

    def test_a_folder_or_an_impossible_name_cannot_be_read(self, tmp_path):
        (tmp_path / "sub").mkdir()
        for name in ["sub", "nul\0l"]:
            with pytest.raises(HierarchyError, match="cannot be read"):
                made(name, ["a"], folder=tmp_path)

    def test_an_absolute_path_stays_absolute(self, tmp_path):
        name = str(tmp_path / self.write(tmp_path, "a;*\n"))
        assert made(name, ["a"], folder=Path("elsewhere")).leaves == ("a",)

    def test_one_line_is_a_hierarchy_of_one_leaf(self, tmp_path):
        assert made(self.write(tmp_path, "a\n"), ["a"], nulls=True, folder=tmp_path).labels == (
            ("a", None),
            ("*",),
        )


class TestBuild:
    @pytest.mark.parametrize("spec", [None, {"flat": True}])
    def test_nothing_asked_is_flat(self, spec):
        sex = made(spec, ["M", "F"])
        assert sex.leaves == ("F", "M")
        assert climb(sex, "M") == ["M", "*"]
        assert sex.leaf_order == "text"

    def test_what_is_uncovered_is_counted(self):
        with pytest.raises(UncoveredValueError) as caught:
            build(
                "zip",
                Tree(tree={"*": ["a"]}),
                ["a", "secret", "hidden"],
                nulls=True,
                uncovered="error",
                folder=Path(),
            )
        assert caught.value.message == "column 'zip': 2 of 3 distinct values are missing from its hierarchy"
        assert 'uncovered = "suppress"' in (caught.value.hint or "")

    def test_the_leaf_for_uncovered_values_is_there_only_when_needed(self):
        assert made({"tree": {"*": ["a"]}}, ["a"], uncovered="suppress").uncovered is None
        grown = made({"tree": {"*": ["a"]}}, ["a", "b"], nulls=True, uncovered="suppress")
        assert (grown.leaves[:2], grown.uncovered, grown.domain) == (("a", None), 2, 2)
        assert climb(grown, "b") == ["*", "*"]

    @pytest.mark.parametrize("spec", [None, {"intervals": [5]}, {"mask": "right"}, {"dates": ["year"]}])
    def test_a_column_of_nulls_has_a_hierarchy(self, spec):
        nothing = made(spec, [], nulls=True)
        assert nothing.leaves == (None,)
        assert climb(nothing, None)[0] is None
        assert climb(nothing, None)[-1] == "*"
        assert all((level == 0).all() for level in nothing.shares)

    @pytest.mark.parametrize("spec", [None, {"intervals": [5]}, {"mask": "right"}, {"dates": ["year"]}])
    def test_the_order_of_the_data_does_not_matter(self, spec):
        values = ["2001-02-03", "7", "12", "x"]
        one = made(spec, values, uncovered="suppress")
        other = made(spec, values[::-1], uncovered="suppress")
        assert (one.leaves, one.labels, one.table.tolist()) == (
            other.leaves,
            other.labels,
            other.table.tolist(),
        )


class TestSpec:
    @pytest.mark.parametrize(
        ("given", "kind"),
        [
            ("job.csv", File),
            ({"intervals": [5]}, Intervals),
            ({"mask": "left"}, Mask),
            ({"dates": ["year"]}, Dates),
            ({"tree": {"*": ["a"]}}, Tree),
            ({"flat": True}, Flat),
            (Flat(), Flat),
        ],
    )
    def test_the_key_chooses_and_a_dump_reads_back_equal(self, given, kind):
        spec = SPEC.validate_python(given)
        assert type(spec) is kind
        dumped = SPEC.dump_python(spec, mode="json", exclude_defaults=True)
        assert SPEC.validate_python(dumped) == spec
        if not isinstance(given, Flat):
            assert dumped == given

    @pytest.mark.parametrize("given", [{}, {"widths": [5]}, {"mask": "left", "flat": True}, 5, ["a"], True])
    def test_the_allowed_keys_are_listed(self, given):
        message = (
            "must be a file name, or have exactly one of the keys intervals, boundaries, mask, dates, times, codes, "
            "ordered, tree, flat"
        )
        with pytest.raises(ValidationError, match=message):
            SPEC.validate_python(given)

    @pytest.mark.parametrize("given", ["", {"flat": False}, {"flat": True, "x": 1}, {"tree": "a"}])
    def test_mistakes_within_are_found(self, given):
        with pytest.raises(ValidationError):
            SPEC.validate_python(given)

    def test_errors_do_not_quote_the_tree(self):
        with pytest.raises(ValidationError) as caught:
            Tree(tree={"*": ["secret", None]})
        assert "secret" not in str(caught.value)

    def test_it_fits_into_a_strict_model(self):
        class Column(BaseModel):
            model_config = ConfigDict(frozen=True, extra="forbid", strict=True)
            hierarchy: Spec | None = None

        assert Column.model_validate({"hierarchy": {"intervals": [5, 10]}}).hierarchy == Intervals(intervals=(5, 10))
        assert Column.model_validate({"hierarchy": "a.csv"}).hierarchy == File(path="a.csv")
        assert Column.model_validate({}).model_dump() == {"hierarchy": None}
        assert Column(hierarchy=File(path="a.csv")).model_dump(mode="json") == {"hierarchy": "a.csv"}
        with pytest.raises(ValidationError) as caught:
            Column.model_validate({"hierarchy": {"intervals": [5, 12]}})
        assert caught.value.errors()[0]["loc"] == ("hierarchy",)

    def test_it_is_frozen(self):
        with pytest.raises(ValidationError, match="frozen"):
            Mask(mask="left").mask = "right"
