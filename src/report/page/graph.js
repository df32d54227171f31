// Draws the waits-for graph: the cycle as a ring at the right, its waiters in columns to the left.

const kMostInAColumn = 14;
const kMostColumns = 8;
const kBoxWidth = 200;
const kSecondNameHeight = 14; // pixels of its line
const kBoxHeight = 54; // pixels of three lines

function graphPart(report) {
  const graph = report.data.object("graph");
  const nodes = graph ? withHeights(graph.objects("nodes").map(readNode)) : [];
  if (nodes.length === 0) return undefined;
  const known = new Map(nodes.map(node => [node.id, node]));
  const edges = graph
    .objects("edges")
    .map(edge => ({
      from: known.get(edge.text("from")),
      to: known.get(edge.text("to")),
      label: edge.text("label"),
      kind: edge.text("kind") || "waits",
    }))
    .filter(edge => edge.from && edge.to);
  const cycle = graph
    .list("cycle")
    .map(id => known.get(String(id)))
    .filter(Boolean);
  cycle.forEach((node, i) => {
    node.cycle = true;
    const next = cycle[(i + 1) % cycle.length];
    const edge = edges.find(
      each => each.from === node && each.to === next && each.kind !== "wakes"
    );
    if (edge) edge.cycle = true;
    else edges.push({from: node, to: next, label: "", kind: "waits", cycle: true});
  });
  const columns = intoColumns(nodes, edges, cycle);
  const shown = new Set(columns.flat());
  const omitted = nodes.length - shown.size;
  return part(
    "graph",
    "Waits-for graph",
    element(
      "p",
      {},
      cycle.length > 0
        ? element("strong", {class: "cycle-words"}, "Cycle: ")
        : "There is no cycle. ",
      cycle.length > 0 ? cycleWords(cycle) : ""
    ),
    withCycleInView(
      element(
        "div",
        {
          class: "scroll",
          tabindex: 0,
          role: "group",
          "aria-label": "The graph, which may be wider than the page",
        },
        graphDrawing(
          columns,
          edges.filter(edge => shown.has(edge.from) && shown.has(edge.to)),
          cycle
        )
      )
    ),
    omitted > 0 &&
      element(
        "p",
        {class: "quiet"},
        `${plural(omitted, "more", "more")} would not fit; the table has them.`
      )
  );
}

// Scrolls to the cycle. It is at the right, where a narrow window does not reach.
function withCycleInView(box) {
  const middle = box.querySelector(".cycle-word")?.getAttribute("x");
  if (middle) requestAnimationFrame(() => (box.scrollLeft = Number(middle) - box.clientWidth / 2));
  return box;
}

function readNode(node) {
  return {
    id: node.text("id"),
    name: node.text("name") || node.text("id"),
    state: node.text("state"),
    place: node.text("place"),
    waits_for: node.text("waits_for"),
    also: node.text("also"),
    first: node.flag("first"),
  };
}

// Gives all nodes one height, with room for a second name if a node has one.
function withHeights(nodes) {
  const height = kBoxHeight + (nodes.some(node => node.also) ? kSecondNameHeight : 0);
  return nodes.map(node => Object.assign(node, {height}));
}

function bothNames(node, most) {
  return shortText(node.name, most) + (node.also ? ` (${shortText(node.also, most)})` : "");
}

function cycleWords(cycle) {
  const names = cycle.slice(0, 20).map(node => bothNames(node, 40));
  return (
    names.join(" waits for ") +
    (cycle.length > 20 ? ` … ${cycle.length - 20} more` : "") +
    ` waits for ${names[0]}.`
  );
}

// Returns the columns from right to left. The first holds the cycle and the nodes that wait for
// none; each other holds the waiters of the column before it.
function intoColumns(nodes, edges, cycle) {
  const waits = edges.filter(edge => edge.kind !== "wakes");
  const waiting = new Set(waits.map(edge => edge.from));
  const concerned = new Set(edges.flatMap(edge => [edge.from, edge.to]));
  const ends = [
    ...cycle,
    ...nodes.filter(node => !node.cycle && !waiting.has(node) && concerned.has(node)),
  ];
  if (ends.length === 0) ends.push(...nodes.filter(node => concerned.has(node)).slice(0, 1));
  const distance = new Map(ends.map(node => [node, 0]));
  const waiters = new Map();
  for (const edge of waits) {
    if (waiters.has(edge.to)) waiters.get(edge.to).push(edge.from);
    else waiters.set(edge.to, [edge.from]);
  }
  for (const node of distance.keys()) {
    for (const waiter of waiters.get(node) ?? [])
      if (!distance.has(waiter)) distance.set(waiter, distance.get(node) + 1);
  }
  // Nodes without an edge stand beside those that wait for none.
  for (const node of nodes)
    if (!distance.has(node)) distance.set(node, concerned.has(node) ? 1 : 0);
  const columns = [];
  for (const node of [...distance.keys()].sort((a, b) => concerned.has(b) - concerned.has(a))) {
    const column = (columns[distance.get(node)] ??= []);
    if (
      node.cycle ||
      column.length < kMostInAColumn + (distance.get(node) === 0 ? cycle.length : 0)
    )
      column.push(node);
  }
  return columns.filter(Boolean).slice(0, kMostColumns);
}

// Places every node; returns the size of the drawing and the centre of the ring.
function layOut(columns, cycle) {
  const gap = 140;
  const boxHeight = columns.flat()[0].height;
  const alone = columns[0].filter(node => !node.cycle);
  const rx = cycle.length > 1 ? Math.max(150, cycle.length * 44) : 0;
  const ry = cycle.length > 2 ? Math.max(80, cycle.length * 26) : 0;
  const ringHeight = cycle.length > 0 ? 2 * ry + boxHeight + 70 : 0;
  const lists = columns.slice(1).toReversed();
  const heightOf = list => list.length * (boxHeight + 22);
  const height = Math.max(ringHeight + heightOf(alone), ...lists.map(heightOf)) + 20;
  let left = 10;
  for (const list of lists) {
    list.forEach((node, i) =>
      Object.assign(node, {
        x: left + kBoxWidth / 2,
        y: (height - heightOf(list)) / 2 + (i + 0.5) * (boxHeight + 22),
      })
    );
    left += kBoxWidth + gap;
  }
  const centre = left + kBoxWidth / 2 + rx;
  const top = (height - ringHeight - heightOf(alone)) / 2;
  // Two nodes stand beside each other. More go round from the top, in the order of waiting.
  const turn = cycle.length === 2 ? -Math.PI / 2 : 0;
  cycle.forEach((node, i) => {
    const angle = turn + (2 * Math.PI * i) / cycle.length;
    Object.assign(node, {
      x: centre + rx * Math.sin(angle),
      y: top + ringHeight / 2 - ry * Math.cos(angle),
    });
  });
  alone.forEach((node, i) =>
    Object.assign(node, {
      x: cycle.length > 0 ? centre : left + kBoxWidth / 2,
      y: top + ringHeight + (i + 0.5) * (boxHeight + 22),
    })
  );
  const width =
    (cycle.length > 0 ? centre + rx : left + kBoxWidth / 2) +
    kBoxWidth / 2 +
    (cycle.length === 1 ? 70 : 10);
  return {width, height, centre: {x: centre, y: top + ringHeight / 2}};
}

function graphDrawing(columns, edges, cycle) {
  const {width, height, centre} = layOut(columns, cycle);
  const label =
    "Waits-for graph. " +
    edges
      .slice(0, 60)
      .map(
        edge =>
          shortText(edge.from.name, 40) +
          (edge.kind === "wakes" ? " is woken by " : " waits for ") +
          shortText(edge.to.name, 40) +
          (edge.label ? ` (${shortText(edge.label, 40)})` : "") +
          (edge.cycle ? ", part of the cycle" : "")
      )
      .join("; ");
  const parts = edges.flatMap(edge => edgeDrawing(edge, centre, cycle.length));
  const words =
    cycle.length > 0
      ? [
          svgElement(
            "text",
            {x: centre.x + (cycle.length === 1 ? 130 : 0), y: centre.y + 5, class: "cycle-word"},
            "cycle"
          ),
        ]
      : [];
  return svgElement(
    "svg",
    {
      viewBox: `0 0 ${width} ${height}`,
      width,
      height,
      role: "img",
      "aria-label": label,
      class: "graph",
    },
    arrowHead("arrow"),
    arrowHead("red-arrow"),
    parts,
    words,
    columns.flat().map(node => nodeDrawing(node, centre))
  );
}

function textLine(x, y, text, most, more) {
  const whole = visible(text);
  const short = shortened(whole, most);
  return svgElement(
    "text",
    {x, y, ...more},
    short,
    short === whole ? "" : svgElement("title", {}, whole)
  );
}

// `centre` is that of the ring. The words over a box stand at its outer side, away from the arrows
// on its inner side.
function nodeDrawing(node, centre) {
  const outer = node.cycle && node.x > centre.x + 1;
  const left = node.x - kBoxWidth / 2,
    top = node.y - node.height / 2;
  const below = node.also ? kSecondNameHeight : 0;
  const state = [node.state, node.waits_for].filter(Boolean).join(": ");
  return svgElement(
    "g",
    {class: "node" + (node.cycle ? " in-cycle" : "")},
    svgElement("rect", {x: left, y: top, width: kBoxWidth, height: node.height, rx: 6}),
    textLine(left + 9, top + 17, node.name, 24, {class: "name"}),
    node.first &&
      svgElement(
        "text",
        {
          x: outer ? left + kBoxWidth - 2 : left + 2,
          y: top - 5,
          class: "first",
          "text-anchor": outer ? "end" : "start",
        },
        "first to stop"
      ),
    node.also && textLine(left + 9, top + 32, node.also, 27, {class: "small"}),
    textLine(left + 9, top + 32 + below, state, 27, {class: "small"}),
    textLine(left + 9, top + 46 + below, node.place, 24, {class: "small where"})
  );
}

// Returns where a line from `node` towards a point leaves its box.
function borderPoint(node, x, y) {
  const dx = x - node.x,
    dy = y - node.y;
  const scale = Math.min(
    1,
    1 / Math.max(Math.abs(dx) / (kBoxWidth / 2 + 3), Math.abs(dy) / (node.height / 2 + 3), 1e-9)
  );
  return [node.x + dx * scale, node.y + dy * scale];
}

function edgeDrawing(edge, centre, size) {
  const {from, to} = edge;
  const style = {
    class: edge.cycle ? "edge in-cycle" : edge.kind === "wakes" ? "edge wakes" : "edge",
    "marker-end": edge.cycle ? "url(#red-arrow)" : "url(#arrow)",
  };
  if (from === to) {
    const x = from.x + kBoxWidth / 2;
    return [
      svgElement("path", {
        ...style,
        d:
          `M${x} ${from.y - 12}C${x + 60} ${from.y - 30} ` +
          `${x + 60} ${from.y + 30} ${x + 4} ${from.y + 12}`,
      }),
      edgeLabel(x + 30, from.y + 36, edge.label),
    ];
  }
  if (!edge.cycle && to.x - from.x > kBoxWidth) return forwardEdge(edge, style);
  const bend = bendOf(edge, centre, size);
  const [x0, y0] = borderPoint(from, ...bend),
    [x1, y1] = borderPoint(to, ...bend);
  const point = (...xy) => xy.map(value => value.toFixed(1)).join(" ");
  const middle = [(x0 + 2 * bend[0] + x1) / 4, (y0 + 2 * bend[1] + y1) / 4];
  return [
    svgElement("path", {...style, d: `M${point(x0, y0)}Q${point(...bend)} ${point(x1, y1)}`}),
    edgeLabel(...middle, edge.label),
  ];
}

// Draws an edge to a column further right.
function forwardEdge({from, to, label}, style) {
  const x0 = from.x + kBoxWidth / 2 + 2,
    x1 = to.x - kBoxWidth / 2 - 3;
  const reach = Math.max(50, (x1 - x0) / 2);
  return [
    svgElement("path", {
      ...style,
      d: `M${x0} ${from.y}C${x0 + reach} ${from.y} ${x1 - reach} ${to.y} ${x1} ${to.y}`,
    }),
    edgeLabel(x0 + 60, from.y, label, 16),
  ];
}

// Returns the control point of an edge's curve. Edges of the cycle bow outwards; two edges between
// the same nodes keep apart.
function bendOf({from, to, cycle}, centre, size) {
  const x = (from.x + to.x) / 2,
    y = (from.y + to.y) / 2;
  if (!cycle) return [x + (to.y - from.y) * 0.08, y - (to.x - from.x) * 0.08 - 6];
  if (size === 2) return [x, y + (from.x < to.x ? -70 : 70)];
  return [x + (x - centre.x) * 0.35, y + (y - centre.y) * 0.35];
}

function edgeLabel(x, y, label, most = 22) {
  return label ? textLine(x, y - 4, label, most, {class: "edge-label"}) : "";
}
