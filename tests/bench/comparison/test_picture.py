"""The picture is one file that shows every figure, and is well-formed."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from xml.etree import ElementTree

import pytest

from rtlang.bench.comparison.picture import PART_COLORS, check_picture_path, report_page, report_svg, write_picture
from rtlang.bench.comparison.report import Report, compare
from rtlang.bench.comparison.step_profile import PARTS, Profile
from rtlang.bench.machine import Environment
from rtlang.bench.measure import Measurement
from rtlang.bench.workloads.workload import Workload
from rtlang.contract.errors import ConfigError

RUN = Measurement(2.0, (2.0,), {(0, 1): (0.5, 1.0)}, {(0, 1): (5,) * 100}, 10, num_steps=4)


def report() -> Report:
    rows = (
        compare(
            Workload("shared", "", ()),
            [RUN, RUN],
            [replace(RUN, total_s=3.0), replace(RUN, total_s=5.0)],
            least_s=lambda run: 1.2,
        ),
        compare(Workload("<tree>", "", ()), [RUN], [replace(RUN, total_s=1.0)], least_s=lambda run: 0.5),
        compare(Workload("poisson", "", ()), [RUN], [], reason="it cannot wait"),
    )
    environment = Environment("rtlang bench", "a machine", "a model", "bfloat16", 1, {})
    profiles = (Profile("shared", 4, 2.0, {**dict.fromkeys(PARTS, 0.0), "linears": 1.5, "head": 0.4}, {}),)
    return Report(environment, rows, ("a <note>",), 8, 8, "vLLM", profiles)


def rects(svg: str) -> list[dict[str, str]]:
    root = ElementTree.fromstring(svg)
    return [dict(each.attrib) for each in root.iter("{http://www.w3.org/2000/svg}rect")]


def test_bars_are_as_long_as_their_ratios_and_shares() -> None:
    svg = report_svg(replace(report(), profiles=()))
    bars = {each["fill"]: float(each["width"]) for each in rects(svg) if "fill" in each and each["height"] == "16"}
    better, worse = bars["#3b82f6"], bars["#ef4444"]
    assert better / worse == pytest.approx(2.0 / 0.5, rel=1e-2)
    assert bars["#14b8a6"] == pytest.approx(0.25 * 190, abs=0.1)
    texts = [each.text for each in ElementTree.fromstring(svg).iter("{http://www.w3.org/2000/svg}text")]
    assert {"rtlang against vLLM", "2.00", "0.50", "60%", "25%", "<tree>", "baseline not run: it cannot wait"} <= set(
        texts
    )
    assert "2.00 times (1.50-2.50), output tokens a second" in svg


def test_parts_of_a_step_fill_their_share_and_have_a_legend() -> None:
    svg = report_svg(report())
    widths = [float(each["width"]) for each in rects(svg) if each.get("fill") in PART_COLORS and each["height"] == "16"]
    linears, head = widths[-2:]
    assert linears / head == pytest.approx(1.5 / 0.4, rel=1e-2)
    assert svg.count(">linears</text>") == 1
    assert "500.0 ms a step" in svg
    assert len(set(PART_COLORS)) == len(PART_COLORS) == len(PARTS)


def test_it_suits_light_and_dark_and_fetches_nothing() -> None:
    for written in (report_svg(report()), report_page(report())):
        assert "prefers-color-scheme:dark" in written
        assert "http" not in written.replace("http://www.w3.org/2000/svg", "")


def test_a_page_has_the_tables_and_the_facts() -> None:
    page = report_page(report())
    assert "<svg" in page
    assert "2.00 (1.50-2.50)" in page
    assert "a &lt;note&gt;" in page
    assert page.count("<table") == 2


def test_the_name_decides_the_form(tmp_path: Path) -> None:
    for suffix, start in ((".svg", "<svg"), (".html", "<!DOCTYPE html>")):
        path = tmp_path / f"picture{suffix}"
        check_picture_path(path)
        write_picture(report(), path)
        assert path.read_text(encoding="utf-8").startswith(start)
    with pytest.raises(ConfigError, match=r"ends with \.svg or \.html"):
        check_picture_path(tmp_path / "picture.png")
    with pytest.raises(ConfigError, match="parent folder"):
        check_picture_path(tmp_path / "none" / "picture.svg")
