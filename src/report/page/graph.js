// The waits-for graph: the cycle as a ring at the right, who waits for it in columns to the left.

const kMostInAColumn = 14;
const kMostColumns = 8;
const kBoxWide = 200;
const kSecondName = 14; // the line of one
const kBoxHigh = 54; // of three lines

function graphPart(report) {
  const graph = report.data.object_of("graph");
  const nodes = graph ? sized(graph.objects("nodes").map(readNode)) : [];
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
  const left_out = nodes.length - shown.size;
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
    left_out > 0 &&
      element(
        "p",
        {class: "quiet"},
        `${plural(left_out, "more", "more")} would not fit; the table has them.`
      )
  );
}

// It is at the right, and who waits for it would be all that a narrow window shows.
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

// All of one height: a line more where somebody has a second name.
function sized(nodes) {
  const high = kBoxHigh + (nodes.some(node => node.also) ? kSecondName : 0);
  return nodes.map(node => Object.assign(node, {high}));
}

function bothNames(node, most) {
  return (
    shortened(visible(node.name), most) +
    (node.also ? ` (${shortened(visible(node.also), most)})` : "")
  );
}

function cycleWords(cycle) {
  const names = cycle.slice(0, 20).map(node => bothNames(node, 40));
  return (
    names.join(" waits for ") +
    (cycle.length > 20 ? ` … ${cycle.length - 20} more` : "") +
    ` waits for ${names[0]}.`
  );
}

// The last column: the cycle, and who waits for nobody. Each before: who waits for one of the column behind.
function intoColumns(nodes, edges, cycle) {
  const waits = edges.filter(edge => edge.kind !== "wakes");
  const waiting = new Set(waits.map(edge => edge.from));
  const concerned = new Set(edges.flatMap(edge => [edge.from, edge.to]));
  const ends = [
    ...cycle,
    ...nodes.filter(node => !node.cycle && !waiting.has(node) && concerned.has(node)),
  ];
  if (ends.length === 0) ends.push(...nodes.filter(node => concerned.has(node)).slice(0, 1));
  const far = new Map(ends.map(node => [node, 0]));
  const before = new Map();
  for (const edge of waits) {
    if (before.has(edge.to)) before.get(edge.to).push(edge.from);
    else before.set(edge.to, [edge.from]);
  }
  for (const node of far.keys()) {
    for (const waiter of before.get(node) ?? [])
      if (!far.has(waiter)) far.set(waiter, far.get(node) + 1);
  }
  // Others stand alone, beside those that wait for nobody.
  for (const node of nodes) if (!far.has(node)) far.set(node, concerned.has(node) ? 1 : 0);
  const columns = [];
  for (const node of [...far.keys()].sort((a, b) => concerned.has(b) - concerned.has(a))) {
    const column = (columns[far.get(node)] ??= []);
    if (node.cycle || column.length < kMostInAColumn + (far.get(node) === 0 ? cycle.length : 0))
      column.push(node);
  }
  return columns.filter(Boolean).slice(0, kMostColumns);
}

// Places every node and returns the size of the whole.
function lay(columns, cycle) {
  const gap = 140;
  const box_high = columns.flat()[0].high;
  const alone = columns[0].filter(node => !node.cycle);
  const rx = cycle.length > 1 ? Math.max(150, cycle.length * 44) : 0;
  const ry = cycle.length > 2 ? Math.max(80, cycle.length * 26) : 0;
  const ring_high = cycle.length > 0 ? 2 * ry + box_high + 70 : 0;
  const lists = columns.slice(1).toReversed();
  const high_of = list => list.length * (box_high + 22);
  const high = Math.max(ring_high + high_of(alone), ...lists.map(high_of)) + 20;
  let left = 10;
  for (const list of lists) {
    list.forEach((node, i) =>
      Object.assign(node, {
        x: left + kBoxWide / 2,
        y: (high - high_of(list)) / 2 + (i + 0.5) * (box_high + 22),
      })
    );
    left += kBoxWide + gap;
  }
  const centre = left + kBoxWide / 2 + rx;
  const top = (high - ring_high - high_of(alone)) / 2;
  // Two stand beside each other, more from the top on, in the order of waiting.
  const turn = cycle.length === 2 ? -Math.PI / 2 : 0;
  cycle.forEach((node, i) => {
    const angle = turn + (2 * Math.PI * i) / cycle.length;
    Object.assign(node, {
      x: centre + rx * Math.sin(angle),
      y: top + ring_high / 2 - ry * Math.cos(angle),
    });
  });
  alone.forEach((node, i) =>
    Object.assign(node, {
      x: cycle.length > 0 ? centre : left + kBoxWide / 2,
      y: top + ring_high + (i + 0.5) * (box_high + 22),
    })
  );
  const wide =
    (cycle.length > 0 ? centre + rx : left + kBoxWide / 2) +
    kBoxWide / 2 +
    (cycle.length === 1 ? 70 : 10);
  return {wide, high, centre: {x: centre, y: top + ring_high / 2}};
}

function graphDrawing(columns, edges, cycle) {
  const {wide, high, centre} = lay(columns, cycle);
  const label =
    "Waits-for graph. " +
    edges
      .slice(0, 60)
      .map(
        edge =>
          `${shortened(visible(edge.from.name), 40)} ${edge.kind === "wakes" ? "is woken by" : "waits for"} ${shortened(visible(edge.to.name), 40)}` +
          (edge.label ? ` (${shortened(visible(edge.label), 40)})` : "") +
          (edge.cycle ? ", part of the cycle" : "")
      )
      .join("; ");
  const parts = edges.flatMap(edge => edgeDrawing(edge, centre, cycle.length));
  const words =
    cycle.length > 0
      ? [
          drawing(
            "text",
            {x: centre.x + (cycle.length === 1 ? 130 : 0), y: centre.y + 5, class: "cycle-word"},
            "cycle"
          ),
        ]
      : [];
  return drawing(
    "svg",
    {
      viewBox: `0 0 ${wide} ${high}`,
      width: wide,
      height: high,
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

function line(x, y, text, most, more) {
  const whole = visible(text);
  const short = shortened(whole, most);
  return drawing(
    "text",
    {x, y, ...more},
    short,
    short === whole ? "" : drawing("title", {}, whole)
  );
}

// `centre`: of the ring; what is written over a box keeps away from the arrows on its inner side.
function nodeDrawing(node, centre) {
  const outer = node.cycle && node.x > centre.x + 1;
  const left = node.x - kBoxWide / 2,
    top = node.y - node.high / 2;
  const below = node.also ? kSecondName : 0;
  const state = [node.state, node.waits_for].filter(Boolean).join(": ");
  return drawing(
    "g",
    {class: "node" + (node.cycle ? " in-cycle" : "")},
    drawing("rect", {x: left, y: top, width: kBoxWide, height: node.high, rx: 6}),
    line(left + 9, top + 17, node.name, 24, {class: "name"}),
    node.first &&
      drawing(
        "text",
        {
          x: outer ? left + kBoxWide - 2 : left + 2,
          y: top - 5,
          class: "first",
          "text-anchor": outer ? "end" : "start",
        },
        "first to stop"
      ),
    node.also && line(left + 9, top + 32, node.also, 27, {class: "small"}),
    line(left + 9, top + 32 + below, state, 27, {class: "small"}),
    line(left + 9, top + 46 + below, node.place, 24, {class: "small where"})
  );
}

// Where a line from `node` towards a point leaves its box.
function border(node, x, y) {
  const dx = x - node.x,
    dy = y - node.y;
  const scale = Math.min(
    1,
    1 / Math.max(Math.abs(dx) / (kBoxWide / 2 + 3), Math.abs(dy) / (node.high / 2 + 3), 1e-9)
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
    const x = from.x + kBoxWide / 2;
    return [
      drawing("path", {
        ...style,
        d: `M${x} ${from.y - 12}C${x + 60} ${from.y - 30} ${x + 60} ${from.y + 30} ${x + 4} ${from.y + 12}`,
      }),
      edgeLabel(x + 30, from.y + 36, edge.label),
    ];
  }
  if (!edge.cycle && to.x - from.x > kBoxWide) return forwards(edge, style);
  const bend = bendOf(edge, centre, size);
  const [x0, y0] = border(from, ...bend),
    [x1, y1] = border(to, ...bend);
  const middle = [(x0 + 2 * bend[0] + x1) / 4, (y0 + 2 * bend[1] + y1) / 4];
  return [
    drawing("path", {
      ...style,
      d: `M${x0.toFixed(1)} ${y0.toFixed(1)}Q${bend[0].toFixed(1)} ${bend[1].toFixed(1)} ${x1.toFixed(1)} ${y1.toFixed(1)}`,
    }),
    edgeLabel(...middle, edge.label),
  ];
}

// From a column to one at its right.
function forwards({from, to, label}, style) {
  const x0 = from.x + kBoxWide / 2 + 2,
    x1 = to.x - kBoxWide / 2 - 3;
  const reach = Math.max(50, (x1 - x0) / 2);
  return [
    drawing("path", {
      ...style,
      d: `M${x0} ${from.y}C${x0 + reach} ${from.y} ${x1 - reach} ${to.y} ${x1} ${to.y}`,
    }),
    edgeLabel(x0 + 60, from.y, label, 16),
  ];
}

// Those of the cycle bow outwards; two that go back and forth keep apart.
function bendOf({from, to, cycle}, centre, size) {
  const x = (from.x + to.x) / 2,
    y = (from.y + to.y) / 2;
  if (!cycle) return [x + (to.y - from.y) * 0.08, y - (to.x - from.x) * 0.08 - 6];
  if (size === 2) return [x, y + (from.x < to.x ? -70 : 70)];
  return [x + (x - centre.x) * 0.35, y + (y - centre.y) * 0.35];
}

function edgeLabel(x, y, label, most = 22) {
  return label ? line(x, y - 4, label, most, {class: "edge-label"}) : "";
}
