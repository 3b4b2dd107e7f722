"""include_graph: draws which folder includes which as an SVG, without any dependency. Used by layering_test.py --graph.

Layers go from top to bottom: a folder stands above all folders that it includes. An edge that follows from other edges
(a -> c beside a -> b -> c) is left out, because 300 lines hide each other. Folders of a cycle and its edges are red.
"""
from html import escape

FILL = {"kernels": "#dfe8d8", "core": "#dbe6f4", "dist": "#f5e6cf", "launch": "#eadff0"}
HEIGHT, ROW, GAP, CHAR = 26, 74, 16, 6.9   # of a box, between two layers, between two boxes, of a letter


def cycles(edges):
    """The strongly connected components of more than one folder, as a list of sets (Tarjan)."""
    index, low, stack, found = {}, {}, [], []

    def visit(node):
        index[node] = low[node] = len(index)
        stack.append(node)
        for other in edges.get(node, ()):
            if other not in index:
                visit(other)
                low[node] = min(low[node], low[other])
            elif other in stack:
                low[node] = min(low[node], index[other])
        if low[node] == index[node]:
            component = set(stack[stack.index(node):])
            del stack[stack.index(node):]
            if len(component) > 1:
                found.append(component)

    for node in sorted(edges):
        if node not in index:
            visit(node)
    return found


def acyclic(edges, rings):
    """The edges that are in no cycle, and one direction of those that are: enough to give every folder a layer."""
    ring = {node: number for number, nodes in enumerate(rings) for node in nodes}
    return {node: {o for o in others if node not in ring or ring.get(o) != ring[node] or o < node}
            for node, others in edges.items()}


def reachable(edges):
    reach = {}

    def visit(node):
        if node not in reach:
            reach[node] = set()
            for other in edges.get(node, ()):
                reach[node] |= {other} | visit(other)
        return reach[node]

    for node in edges:
        visit(node)
    return reach


def reduced(edges):
    """Without the edges that follow from others."""
    reach = reachable(edges)
    return {node: {o for o in others if not any(o in reach.get(b, ()) for b in others if b != o)}
            for node, others in edges.items()}


def layers_of(edges):
    """folder -> layer; 0 is the lowest, and an edge always goes to a lower one."""
    layer = {}

    def visit(node):
        if node not in layer:
            layer[node] = 1 + max((visit(o) for o in edges.get(node, ())), default=-1)
        return layer[node]

    for node in edges:
        visit(node)
    return layer


def arrange(nodes, links, layer):
    """Rows of boxes and of bends (for edges longer than a layer), ordered so that few edges cross. Returns rows, paths."""
    rows = [[] for _ in range(max(layer.values()) + 1)]
    for node in sorted(nodes):
        rows[layer[node]].append(node)
    paths, below, above = {}, {}, {}
    for node, other in sorted(links):
        path = [node]
        for level in range(layer[node] - 1, layer[other], -1):
            path.append((node, other, level))
            rows[level].append(path[-1])
        path.append(other)
        paths[node, other] = path
        for a, b in zip(path, path[1:]):
            below.setdefault(a, []).append(b)
            above.setdefault(b, []).append(a)

    def sweep(sequence, neighbors, step):
        for level in sequence:
            place = {n: i / max(1, len(rows[level + step]) - 1) for i, n in enumerate(rows[level + step])}
            now = {n: i / max(1, len(rows[level]) - 1) for i, n in enumerate(rows[level])}
            mean = {n: sum(place[m] for m in neighbors[n]) / len(neighbors[n]) if neighbors.get(n) else now[n]
                    for n in rows[level]}
            rows[level].sort(key=lambda n: mean[n])

    for _ in range(24):
        sweep(range(1, len(rows)), below, -1)
        sweep(range(len(rows) - 2, -1, -1), above, 1)
    return rows, paths, below, above


def width_of(node):
    return 10 if isinstance(node, tuple) else CHAR * len(node) + 18


def spread(row, x):
    """Moves the boxes of a row apart, by the least sum of squared moves (pool adjacent violators)."""
    offset, blocks = [0.0], []   # a block: boxes that touch, as [sum of positions without offset, number]
    for a, b in zip(row, row[1:]):
        offset.append(offset[-1] + (width_of(a) + width_of(b)) / 2 + GAP)
    for node, before in zip(row, offset):
        blocks.append([x[node] - before, 1])
        while len(blocks) > 1 and blocks[-2][0] / blocks[-2][1] > blocks[-1][0] / blocks[-1][1]:
            total, count = blocks.pop()
            blocks[-1][0] += total
            blocks[-1][1] += count
    starts = [total / count for total, count in blocks for _ in range(count)]
    x.update((node, start + before) for node, start, before in zip(row, starts, offset))


def place(rows, below, above):
    """x of every box and bend: near its neighbors, and no box on another."""
    x = {node: 0.0 for row in rows for node in row}
    for row in rows:
        spread(row, x)
    for _ in range(60):
        for row in rows + rows[::-1]:
            for node in row:
                near = below.get(node, []) + above.get(node, [])
                if near:
                    x[node] = sum(x[m] for m in near) / len(near)
            spread(row, x)
    return x


def draw(edges, title):
    """edges: folder -> folders it includes. The SVG as a text."""
    edges = {node: set(others) for node, others in edges.items()}
    for others in list(edges.values()):
        for other in others:
            edges.setdefault(other, set())
    rings = cycles(edges)
    in_ring = set().union(*rings) if rings else set()
    tree = acyclic(edges, rings)
    layer = layers_of(tree)
    links = {(n, o) for n, others in reduced(tree).items() for o in others}
    red = {(n, o) for ring in rings for n in ring for o in edges[n] & ring}
    rows, paths, below, above = arrange(edges, links | {e for e in red if e[1] in tree[e[0]]}, layer)
    x = place(rows, below, above)
    left = min(x[n] - width_of(n) / 2 for n in x) - 20
    right = max(max(x[n] + width_of(n) / 2 for n in x) + 50, left + 720)
    bottom = 60 + ROW * len(rows)

    def y(node):
        level = node[2] if isinstance(node, tuple) else layer[node]
        return 60 + ROW * (len(rows) - 1 - level) + HEIGHT / 2

    out = [f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="{left:.0f} 0 {right - left:.0f} {bottom:.0f}" '
           f'width="{right - left:.0f}" height="{bottom:.0f}" font-family="sans-serif" font-size="12">',
           '<defs>' + "".join(f'<marker id="{name}" viewBox="0 0 8 8" refX="8" refY="4" markerWidth="7" markerHeight="7" '
                              f'orient="auto"><path d="M0 0 8 4 0 8z" fill="{color}"/></marker>'
                              for name, color in (("dark", "#667"), ("red", "#c22"))) + '</defs>',
           f'<rect x="{left:.0f}" width="100%" height="100%" fill="white"/>',
           f'<text x="{left + 20:.0f}" y="24" font-size="15">{escape(title)}</text>',
           f'<text x="{left + 20:.0f}" y="42" fill="#667">An arrow: the upper folder includes the lower one. Arrows that follow '
           f'from others are left out. ' + (f'{len(rings)} cycle(s), red.' if rings else 'No cycle.') + '</text>']
    for (node, other), path in sorted(paths.items()):
        ring = (node, other) in red
        points = [(x[path[0]], y(path[0]) + HEIGHT / 2)] + [(x[p], y(p)) for p in path[1:-1]]
        points.append((x[path[-1]], y(path[-1]) - HEIGHT / 2 - 1))
        d = f"M{points[0][0]:.1f} {points[0][1]:.1f}"
        for (ax, ay), (bx, by) in zip(points, points[1:]):
            d += f" C{ax:.1f} {(ay + by) / 2:.1f} {bx:.1f} {(ay + by) / 2:.1f} {bx:.1f} {by:.1f}"
        out.append(f'<path d="{d}" fill="none" stroke="{"#c22" if ring else "#99a"}" stroke-width="{1.8 if ring else 1.1}" '
                   f'marker-end="url(#{"red" if ring else "dark"})"/>')
    for node, other in sorted(red - set(paths)):   # the way back up: from the right side of a box to that of the other
        start, end = x[node] + width_of(node) / 2, x[other] + width_of(other) / 2 + 1
        bend = max(start, end) + 40
        out.append(f'<path d="M{start:.1f} {y(node):.1f} C{bend:.1f} {y(node):.1f} {bend:.1f} {y(other):.1f} '
                   f'{end:.1f} {y(other):.1f}" fill="none" stroke="#c22" stroke-width="1.8" marker-end="url(#red)"/>')
    for node in sorted(edges):
        color = "#f6c9c9" if node in in_ring else FILL.get(node.split("/")[0], "#eee")
        w = width_of(node)
        out.append(f'<rect x="{x[node] - w / 2:.1f}" y="{y(node) - HEIGHT / 2:.1f}" width="{w:.1f}" height="{HEIGHT}" rx="5" '
                   f'fill="{color}" stroke="#778"/>'
                   f'<text x="{x[node]:.1f}" y="{y(node) + 4:.1f}" text-anchor="middle">{escape(node)}</text>')
    return "\n".join(out) + "\n</svg>\n"
