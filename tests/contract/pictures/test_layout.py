"""Places of boxes and ways of arrows."""

from __future__ import annotations

import time
from collections.abc import Iterator

import pytest

from rtlang.contract.params import SamplingParams
from rtlang.contract.pictures.layout import MAX_BOXES, Box, Drawing, draw
from rtlang.contract.request_graph import Generate, Node, Ref, RequestGraph, Text, all_nodes
from tests.support.long_tests import sized
from tests.support.programs.random_graphs import random_graph

PARAMS = SamplingParams(max_tokens=4)


def drawings(drawing: Drawing) -> Iterator[Drawing]:
    """A drawing and those in its frames."""
    yield drawing
    for box in drawing.boxes:
        for frame in box.frames:
            yield from drawings(frame.inside)


def overlap(first: Box, second: Box) -> bool:
    return (
        first.x < second.x + second.whole_width
        and second.x < first.x + first.whole_width
        and first.y < second.y + second.whole_height
        and second.y < first.y + first.whole_height
    )


def crosses(box: Box, a: tuple[float, float], b: tuple[float, float]) -> bool:
    """Whether a straight piece of an arrow, level or upright, has points inside of a box."""
    return (
        min(a[0], b[0]) < box.x + box.whole_width - 0.5
        and max(a[0], b[0]) > box.x + 0.5
        and min(a[1], b[1]) < box.y + box.whole_height - 0.5
        and max(a[1], b[1]) > box.y + 0.5
    )


@pytest.mark.parametrize("seed", range(sized(150)))
def test_nothing_overlaps_in_random_graphs(seed: int) -> None:
    for drawing in drawings(draw(random_graph(seed, most_nodes=25).nodes)):
        for number, box in enumerate(drawing.boxes):
            assert -0.01 <= box.x <= box.x + box.whole_width <= drawing.width + 0.01
            assert -0.01 <= box.y <= box.y + box.whole_height <= drawing.height + 0.01
            assert not any(overlap(box, other) for other in drawing.boxes[:number])
            for frame, other in zip(box.frames, box.frames[1:], strict=False):
                assert frame.x + frame.width < other.x
            for frame in box.frames:
                assert frame.x >= 0
                assert frame.x + frame.width <= box.whole_width + 0.01
                assert frame.y >= box.height
                assert frame.y + frame.height <= box.whole_height + 0.01
                assert frame.inside.width <= frame.width
                assert frame.inside.height < frame.height


@pytest.mark.parametrize("seed", range(sized(150)))
def test_no_arrow_crosses_a_box_in_random_graphs(seed: int) -> None:
    num_arrows = 0
    for drawing in drawings(draw(random_graph(seed, most_nodes=25).nodes)):
        for arrow in drawing.arrows:
            num_arrows += 1
            for a, b in zip(arrow.points, arrow.points[1:], strict=False):
                assert a[0] == pytest.approx(b[0]) or a[1] == pytest.approx(b[1])
                assert not any(crosses(box, a, b) for box in drawing.boxes)
                assert min(a[0], b[0]) >= 0
                assert max(a[0], b[0]) <= drawing.width
    assert num_arrows or len(list(all_nodes(random_graph(seed, most_nodes=25).nodes))) < 10


def test_a_sequence_is_one_straight_line() -> None:
    nodes: list[Node] = [Text(0, None, ("a",)), Generate(1, 0, "x", PARAMS), Text(2, 1, ("b",))]
    drawing = draw(nodes)
    assert len({box.middle for box in drawing.boxes}) == 1
    assert [len(arrow.points) for arrow in drawing.arrows] == [2, 2]


def test_every_box_holds_its_words() -> None:
    drawing = draw([Text(0, None, ("word " * 300,)), Generate(1, 0, "n" * 200, PARAMS)])
    assert all(box.width <= 250 for box in drawing.boxes)
    assert drawing.boxes[1].label.title.endswith("…")


def large(count: int) -> list[Node]:
    """Branches that all differ, each with a value that the next uses."""
    nodes: list[Node] = [Text(0, None, ("start",))]
    while len(nodes) < count:
        number = len(nodes)
        nodes.append(Generate(number, 0 if number % 5 == 1 else number - 1, f"v{number}", PARAMS))
        nodes.append(Text(number + 1, number, (f"{number} ", Ref(max(number - 2, 1)))))
    return nodes


def test_a_large_graph_is_cut_and_drawn_quickly() -> None:
    nodes = large(10_000)
    RequestGraph(tuple(nodes)).validate()
    started = time.process_time()
    drawing = draw(nodes)
    assert time.process_time() - started < 5
    assert len(drawing.boxes) == MAX_BOXES
    assert len(drawing.boxes) + drawing.num_hidden == len(nodes)


def test_hidden_nodes_inside_blocks_are_counted() -> None:
    for seed in range(40):
        graph = random_graph(seed, most_nodes=25)
        whole, cut = draw(graph.nodes), draw(graph.nodes, max_boxes=5)
        total = len(list(all_nodes(graph.nodes)))
        shown = sum(len(each.boxes) for each in drawings(cut))
        assert shown <= 5
        # texts that only end a message belong to the boxes above
        assert shown + cut.num_hidden <= total
        assert sum(len(each.boxes) for each in drawings(whole)) <= total
