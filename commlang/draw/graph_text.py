"""The step graph as text, as Mermaid's flowchart and as Graphviz's DOT."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

from commlang.draw.graph import make_graph

if TYPE_CHECKING:
    from commlang.draw.graph import Edge, Node
    from commlang.draw.subject import Subject

SHORT = 60
"""Characters of a statement in a label."""
_MERMAID = re.compile(r"[^\w .,:=()+*/@→←×·|-]", re.ASCII)


def text(subject: Subject) -> str:
    """Nodes in program order, each with what it leads to; `*` is on the critical path."""
    graph = make_graph(subject)
    number = {one: at for at, one in enumerate(graph.nodes, 1)}
    width = max((min(len(node.text), SHORT) for node in graph.nodes.values()), default=0)
    facts = max((len(node.told()) for node in graph.nodes.values() if not node.join), default=0)
    lines = [subject.title, *graph.notes, ""]
    for one, node in graph.nodes.items():
        star = "*" if node.critical else " "
        words = "(these come before those)" if node.join else _short(node.text)
        told = "" if node.join else node.told()
        out = ", ".join(
            f"{number[e.target]}{f' ({e.told()})' if e.told() else ''}"
            for e in sorted(graph.edges, key=lambda e: number[e.target])
            if e.source == one
        )
        line = f"{star}{number[one]:>4}  {words:<{width}}  {told:<{facts}}"
        line += f"  → {out}" if out else ""
        lines.append(line.rstrip())
    return "\n".join([*lines, ""])


def mermaid(subject: Subject) -> str:
    """A flowchart for Mermaid, https://mermaid.js.org/syntax/flowchart.html."""
    graph = make_graph(subject)
    number = {one: f"n{at}" for at, one in enumerate(graph.nodes, 1)}
    lines = ["flowchart TD", *(f"    %% {_plain(line)}" for line in (subject.title, *graph.notes))]
    for one, node in graph.nodes.items():
        shape = "(( ))" if node.join else f'["{_entities(node)}"]'
        lines.append(f"    {number[one]}{shape}")
    arrows = {"message": "==>", "collective": "==>", "async": "-.->", "order": "-->"}
    for edge in graph.edges:
        told = f'|"{edge.told()}"|' if edge.told() else ""
        arrow = "-.->" if edge.back and edge.kind == "order" else arrows[edge.kind]
        lines.append(f"    {number[edge.source]} {arrow}{told} {number[edge.target]}")
    hot = [number[one] for one, node in graph.nodes.items() if node.critical]
    lines.append("    classDef critical stroke:#cc0044,stroke-width:3px")
    lines += [f"    class {','.join(hot)} critical"] if hot else []
    ties = [str(at) for at, edge in enumerate(graph.edges) if edge.critical]
    lines += [f"    linkStyle {','.join(ties)} stroke:#cc0044,stroke-width:3px"] if ties else []
    return "\n".join([*lines, ""])


def dot(subject: Subject) -> str:
    """A digraph for Graphviz, https://graphviz.org/doc/info/lang.html."""
    graph = make_graph(subject)
    number = {one: f"n{at}" for at, one in enumerate(graph.nodes, 1)}
    lines = [
        f"digraph {_quoted(subject.program.name)} {{",
        f"    label={_quoted(chr(10).join((subject.title, *graph.notes)))};",
        '    node [shape=box, style=rounded, fontname="sans-serif", fontsize=10];',
        '    edge [fontname="sans-serif", fontsize=9];',
    ]
    lines += [f"    {number[one]} [{_dot_node(node)}];" for one, node in graph.nodes.items()]
    for edge in graph.edges:
        styles = _dot_edge(edge)
        ends = f"{number[edge.source]} -> {number[edge.target]}"
        lines.append(f"    {ends} [{styles}];" if styles else f"    {ends};")
    return "\n".join([*lines, "}", ""])


def _dot_node(node: Node) -> str:
    if node.join:
        return "shape=point"
    hot = ', color="#cc0044", penwidth=2' if node.critical else ""
    told = _quoted(f"{_short(node.text)}\n{node.told()}")
    return f"label={told}, tooltip={_quoted(node.place)}{hot}"


def _dot_edge(edge: Edge) -> str:
    styles = [f"label={_quoted(edge.told())}"] if edge.told() else []
    if edge.back:
        styles += ["style=dashed"] if edge.kind == "order" else []
        styles.append("constraint=false")
    elif edge.kind == "async":
        styles.append("style=dotted")
    if edge.critical:
        styles.append('color="#cc0044", penwidth=2')
    elif edge.kind in ("message", "collective"):
        styles.append("penwidth=2")
    return ", ".join(styles)


def _short(words: str) -> str:
    words = _plain(words)
    return words if len(words) <= SHORT else words[: SHORT - 1] + "…"


def _plain(words: str) -> str:
    """A line without characters that would end it, or turn what stands around them."""
    return "".join(c if c.isprintable() else " " for c in words)


def _quoted(words: str) -> str:
    """A string of DOT, with line breaks as its own escape."""
    lines = [_plain(line).replace("\\", "\\\\").replace('"', '\\"') for line in words.split("\n")]
    return '"' + "\\n".join(lines) + '"'


def _entities(node: Node) -> str:
    """A label of Mermaid: what could be markup as entity codes, in which `#35;` is `#`."""
    lines = (_short(node.text), node.told())
    return "<br/>".join(_MERMAID.sub(lambda found: f"#{ord(found[0])};", line) for line in lines)
