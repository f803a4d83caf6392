"""The step graph as SVG: boxes for steps, lines for what ties them."""

from __future__ import annotations

from itertools import pairwise
from typing import TYPE_CHECKING

from commlang.draw.graph import make_graph
from commlang.draw.graph_layout import HEIGHT, WIDTH, lay_out
from commlang.draw.styles import NAMES
from commlang.draw.styles import STYLE as COLOURS
from commlang.draw.svg import CHARACTER, document, element, fitted, label, mark, number, text

if TYPE_CHECKING:
    from commlang.draw.graph import Edge, Graph, Node
    from commlang.draw.graph_layout import Layout
    from commlang.draw.subject import Subject

MARGIN, TOP, SIDE = 14.0, 98.0, 16.0
"""Room around, above, and beside the graph for each edge that leads back."""
STYLE = (
    COLOURS
    + """\
.box{fill:var(--lane);stroke:var(--dim)}.box.hot{stroke:var(--alarm);stroke-width:2.5}
.tie{fill:none;stroke:var(--dim);stroke-width:1.2;marker-end:url(#cl-tie)}
.tie.message{stroke:var(--message);stroke-width:2}
.tie.collective{stroke:var(--collective);stroke-width:2}
.tie.async{stroke-dasharray:2 3}.tie.back{stroke-dasharray:7 4}
.tie.hot{stroke:var(--alarm);stroke-width:2.5}
.halo{stroke:var(--paper);stroke-width:4;paint-order:stroke}
"""
)
HEADS = """\
<defs><marker id="cl-tie" viewBox="0 0 8 8" refX="7" refY="4" markerWidth="8" markerHeight="8" \
markerUnits="userSpaceOnUse" orient="auto"><path d="M0 0L8 4L0 8Z" fill="context-stroke"/></marker>\
</defs>"""


def svg(subject: Subject) -> str:
    """The step graph of a subject."""
    graph = make_graph(subject)
    layout = lay_out(graph)
    backs = sum(layout.layer[e.target] < layout.layer[e.source] for e in graph.edges)
    keys, ends = _legend(graph, backs)
    right = max(
        MARGIN + layout.width + backs * SIDE + 40,
        ends,
        560.0,
        *(len(note) * CHARACTER + MARGIN for note in graph.notes),
    )
    bottom = TOP + layout.height + 30
    body = [
        HEADS,
        text(MARGIN, 22, fitted(subject.title, right / 8.2 * CHARACTER), class_="title"),
        text(MARGIN, 40, graph.notes[0], class_="dim"),
        *keys,
        *_ties(graph, layout),
        *[_box(node, layout) for node in graph.nodes.values()],
        *[text(MARGIN, bottom + 16 * at, note) for at, note in enumerate(graph.notes[1:])],
    ]
    height = bottom + 16 * (len(graph.notes) - 1)
    return document(right + MARGIN, height, body, title=subject.title, style=STYLE)


def _at(layout: Layout, node: int) -> tuple[float, float]:
    x, y = layout.at[node]
    return MARGIN + x, TOP + y


def _box(node: Node, layout: Layout) -> str:
    x, y = _at(layout, node.number)
    if node.join:
        return element("circle", cx=x, cy=y, r=4, class_="l")
    left, top = x - WIDTH / 2, y - HEIGHT / 2
    hot = " hot" if node.critical else ""
    size = {"x": left, "y": top, "width": WIDTH, "height": HEIGHT}
    critical = ", on the critical path" if node.critical else ""
    tip = f"{node.text} · {node.told()} · {node.events:,} events · {node.place}{critical}"
    return mark(
        tip,
        element("rect", class_=f"box{hot}", rx=4, **size),
        element("rect", class_=f"b {node.family}", rx=2, **_stripe(left, top)),
        label(left + 17, top + 17, node.text, WIDTH - 24),
        label(left + 17, top + 32, node.told(), WIDTH - 24, class_="dim small"),
    )


def _stripe(left: float, top: float) -> dict[str, float]:
    return {"x": left + 4, "y": top + 4, "width": 6.0, "height": HEIGHT - 8}


def _ties(graph: Graph, layout: Layout) -> list[str]:
    """All edges, those on the critical path last, so that nothing hides them."""
    parts: list[str] = []
    lane = 0
    for edge in sorted(graph.edges, key=lambda e: e.critical):
        way = layout.layer[edge.target] - layout.layer[edge.source]
        if way < 0:
            path, spot = _around(layout, edge, lane)
            lane += 1
        else:
            path, spot = _down(layout, edge) if way else _across(layout, edge)
        names = f"tie {edge.kind}{' back' if way < 0 else ''}{' hot' if edge.critical else ''}"
        drawn = [element("path", class_=names, d=path)]
        if edge.short:
            drawn.append(text(*spot, edge.short, class_="small dim mid halo"))
        one, other = graph.nodes[edge.source], graph.nodes[edge.target]
        told = ", ".join(f"{n:,} {kind}" for kind, n in edge.counts.items())
        parts.append(mark(f"{one.text or '·'} → {other.text or '·'}: {told}", *drawn))
    return parts


def _edge_of(node: int, y: float, way: int) -> float:
    """The lower or upper edge of a node, or a join's."""
    return y + way * (HEIGHT / 2 if node >= 0 else 4)


def _down(layout: Layout, edge: Edge) -> tuple[str, tuple[float, float]]:
    """From the foot of one node to the head of another, by the points between."""
    x1, y1 = _at(layout, edge.source)
    x2, y2 = _at(layout, edge.target)
    points = [(x1, _edge_of(edge.source, y1, 1))]
    for x, y in layout.passed.get((edge.source, edge.target), ()):
        points += [(MARGIN + x, TOP + y - HEIGHT / 2), (MARGIN + x, TOP + y + HEIGHT / 2)]
    points.append((x2, _edge_of(edge.target, y2, -1)))
    path = f"M{number(points[0][0])} {number(points[0][1])}"
    for (xa, ya), (xb, yb) in pairwise(points):
        if xa == xb:
            path += f"V{number(yb)}"
            continue
        half = (ya + yb) / 2
        path += (
            f"C{number(xa)} {number(half)} {number(xb)} {number(half)} {number(xb)} {number(yb)}"
        )
    middle = points[len(points) // 2 - 1], points[len(points) // 2]
    spot = (middle[0][0] + middle[1][0]) / 2, (middle[0][1] + middle[1][1]) / 2 + 4
    return path, spot


def _across(layout: Layout, edge: Edge) -> tuple[str, tuple[float, float]]:
    """To a node of the same layer: straight to a neighbour, below those between otherwise."""
    x1, y = _at(layout, edge.source)
    x2, _ = _at(layout, edge.target)
    way = 1 if x2 > x1 else -1
    mates = (n for n in layout.at if layout.layer[n] == layout.layer[edge.source])
    between = any(min(x1, x2) < _at(layout, n)[0] < max(x1, x2) for n in mates)
    if not between:
        a, b = x1 + way * WIDTH / 2, x2 - way * WIDTH / 2
        shift = -7 if way > 0 else 7
        height = number(y + shift)
        return f"M{number(a)} {height}H{number(b)}", ((a + b) / 2, y + shift - 4)
    foot = y + HEIGHT / 2
    path = f"M{number(x1 + way * 40)} {number(foot)}C{number(x1 + way * 60)} {number(foot + 26)} "
    path += f"{number(x2 - way * 60)} {number(foot + 26)} {number(x2 - way * 40)} {number(foot)}"
    return path, ((x1 + x2) / 2, foot + 18)


def _around(layout: Layout, edge: Edge, lane: int) -> tuple[str, tuple[float, float]]:
    """Back up, on the right of everything, each in a lane of its own; across between layers."""
    x1, y1 = _at(layout, edge.source)
    x2, y2 = _at(layout, edge.target)
    shift = 30 + 7 * (lane % 12)
    x1, x2 = (x + (shift if n >= 0 else 0) for x, n in ((x1, edge.source), (x2, edge.target)))
    foot, head = _edge_of(edge.source, y1, 1), _edge_of(edge.target, y2, -1)
    low, high = foot + 8 + lane % 4 * 3, head - 8 - lane % 4 * 3
    out = MARGIN + layout.width + 14 + lane * SIDE
    path = f"M{number(x1)} {number(foot)}V{number(low)}H{number(out - 6)}Q{number(out)} "
    path += f"{number(low)} {number(out)} {number(low - 6)}V{number(high + 6)}Q{number(out)} "
    path += f"{number(high)} {number(out - 6)} {number(high)}H{number(x2)}V{number(head)}"
    return path, (out, (y1 + y2) / 2)


def _legend(graph: Graph, backs: int) -> tuple[list[str], float]:
    """What colours and lines mean, of those that are there; and where the line ends."""
    families = {node.family for node in graph.nodes.values()}
    box = {"width": 8, "height": 12, "rx": 2}
    entries = [
        (element("rect", class_=f"b {key}", x=7, **box), words)
        for key, words in NAMES.items()
        if key in families
    ]
    kinds = {edge.kind for edge in graph.edges}
    lines = {"message": "message", "collective": "one call", "async": "waited for"}
    entries += [(_line(f"tie {kind}"), words) for kind, words in lines.items() if kind in kinds]
    if backs:
        entries.append((_line("tie back"), "to an earlier place"))
    if any(node.critical for node in graph.nodes.values()):
        entries.append((_line("tie hot"), "critical path"))
    x, parts = MARGIN, list[str]()
    for sample, words in entries:
        parts += [element("g", sample, transform=f"translate({round(x, 1)} 52)")]
        parts.append(text(x + 28, 62, words))
        x += 28 + len(words) * CHARACTER + 16
    return parts, x


def _line(names: str) -> str:
    return element("path", class_=names, d="M0 6H22")
