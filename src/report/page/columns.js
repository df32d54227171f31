// The columns of spans and events: typed arrays in the order of time. A binary search finds the
// visible part; sums over blocks of spans give the state of a pixel that covers many of them.

// The states of spans and their names. docs/report-data.md gives the numbers, which
// src/report/report_timeline.cc writes: those of SliceState in src/export/timeline.h.
const kState = {
  running: 0,
  waiting: 1,
  ready: 2,
  halted: 3,
  stale: 4,
  gap: 5,
  function: 6,
  "system call": 7,
  interrupt: 8,
  other: 9,
};
const kStateNames = Object.keys(kState);
const kBlockSize = 8; // spans
const kDeepest = 7; // A span that is nested deeper is drawn at this depth.
const kNoSlot = 255;

// Returns the first index from `begin` whose value is not below `time`.
function lowerBound(values, time, begin = 0, end = values.length) {
  while (begin < end) {
    const middle = (begin + end) >> 1;
    if (values[middle] < time) begin = middle + 1;
    else end = middle;
  }
  return begin;
}

// Returns the first index whose value is above `time`.
function upperBound(values, time, begin = 0, end = values.length) {
  while (begin < end) {
    const middle = (begin + end) >> 1;
    if (values[middle] <= time) begin = middle + 1;
    else end = middle;
  }
  return begin;
}

function decodeBase64(text) {
  if (Uint8Array.fromBase64) return Uint8Array.fromBase64(text);
  const raw = atob(text);
  const bytes = new Uint8Array(raw.length);
  for (let i = 0; i < raw.length; ++i) bytes[i] = raw.charCodeAt(i);
  return bytes;
}

// Decodes a column. Its bytes are little-endian, as is every machine that runs a browser. A damaged
// column is empty.
function column(fields, name, Type) {
  const text = fields.get(name, value => typeof value === "string", "text") ?? "";
  try {
    const bytes = decodeBase64(text);
    return new Type(bytes.buffer, 0, Math.floor(bytes.length / Type.BYTES_PER_ELEMENT));
  } catch {
    fields.troubles.add(`Not shown: ${fields.where}${name} is damaged.`);
    return new Type(0);
  }
}

// Returns the columns cut to one length and sorted by the first of them.
function columns(fields, types) {
  let all = Object.entries(types).map(([name, Type]) => column(fields, name, Type));
  const claimed = fields.number("n");
  const n = Math.min(...all.map(values => values.length), claimed ?? Infinity);
  if (all.some(values => values.length !== n) || (claimed !== undefined && claimed !== n)) {
    fields.troubles.add(`Incomplete: of ${fields.where.slice(0, -1)} only ${n} are whole.`);
    all = all.map(values => values.subarray(0, n));
  }
  if (!isAscending(all[0])) {
    fields.troubles.add(
      `Damaged: ${fields.where.slice(0, -1)} are not in the order of time; shown as if they were.`
    );
    const order = Array.from(all[0].keys())
      .filter(i => !Number.isNaN(all[0][i]))
      .sort((a, b) => all[0][a] - all[0][b]);
    all = all.map(values => values.constructor.from(order, i => values[i]));
  }
  return Object.fromEntries(Object.keys(types).map((name, i) => [name, all[i]]));
}

function isAscending(values) {
  for (let i = 1; i < values.length; ++i) if (!(values[i] >= values[i - 1])) return false;
  return values.length === 0 || !Number.isNaN(values[0]);
}

// Limits a number so that arithmetic on it stays finite.
function bounded(time) {
  return Math.max(-1e18, Math.min(1e18, time)) || 0;
}

// The spans of one depth. None overlaps the next.
class Lane {
  constructor(size) {
    this.from = new Float64Array(size);
    this.to = new Float64Array(size);
    this.state = new Uint8Array(size);
    this.text = new Uint32Array(size);
    this.size = 0;
  }

  append(from, to, state, text) {
    const i = this.size++;
    from = bounded(from);
    to = bounded(to);
    if (i > 0 && this.to[i - 1] > from) this.to[i - 1] = from;
    this.from[i] = from;
    this.to[i] = Math.max(from, to);
    this.state[i] = Math.min(state, kState.other);
    this.text[i] = text;
  }

  // `used` lists the states that occur. sums[block * used.length + u] is the time in the state
  // used[u] before the block.
  summarise() {
    this.slots = new Uint8Array(kStateNames.length).fill(kNoSlot);
    this.used = [];
    for (let i = 0; i < this.size; ++i) {
      if (this.slots[this.state[i]] === kNoSlot)
        this.slots[this.state[i]] = this.used.push(this.state[i]) - 1;
    }
    const wide = this.used.length;
    const blocks = Math.floor(this.size / kBlockSize);
    this.sums = new Float64Array((blocks + 1) * wide);
    this.totals = new Float64Array(wide);
    for (let block = 0; block < blocks; ++block) {
      this.addTimes(block * kBlockSize, (block + 1) * kBlockSize);
      this.sums.set(this.totals, (block + 1) * wide);
    }
  }

  // Returns [first, last), the spans that overlap [from, to).
  range(from, to) {
    return [upperBound(this.to, from), lowerBound(this.from, to)];
  }

  // Returns the span at a time; -1 where there is none.
  at(time) {
    const i = upperBound(this.from, time) - 1;
    return i >= 0 && (this.to[i] > time || this.from[i] === time) ? i : -1;
  }

  // Returns the state in which the spans [first, last) spend the most time. Halts and gaps win over
  // every other state, since a reader must not overlook them.
  dominantState(first, last) {
    const {used, totals, sums} = this;
    const wide = used.length;
    if (wide === 1 || last === first + 1) return this.state[first];
    totals.fill(0);
    const begin = Math.ceil(first / kBlockSize);
    const end = Math.floor(last / kBlockSize);
    if (begin < end) {
      for (let u = 0; u < wide; ++u) totals[u] = sums[end * wide + u] - sums[begin * wide + u];
      this.addTimes(first, begin * kBlockSize);
      this.addTimes(end * kBlockSize, last);
    } else {
      this.addTimes(first, last);
    }
    let most = this.slots[this.state[first]];
    for (let u = 0; u < wide; ++u) {
      if (totals[u] > 0 && (used[u] === kState.halted || used[u] === kState.gap)) return used[u];
      if (totals[u] > totals[most]) most = u;
    }
    return used[most];
  }

  addTimes(first, last) {
    const {totals, slots, state, from, to} = this;
    for (let i = first; i < last; ++i) totals[slots[state[i]]] += to[i] - from[i];
  }
}

// Ranges of time [from, to] that may overlap, such as gaps and stale parts.
class Ranges {
  constructor(pairs) {
    const sorted = pairs
      .map(([from, to]) => [bounded(from), bounded(to)])
      .sort((a, b) => a[0] - b[0]);
    this.size = sorted.length;
    this.from = Float64Array.from(sorted, pair => pair[0]);
    // reach[i] is the latest end of the ranges 0 to i.
    this.reach = Float64Array.from(sorted, pair => pair[1]);
    for (let i = 1; i < this.size; ++i) this.reach[i] = Math.max(this.reach[i], this.reach[i - 1]);
  }

  // Calls draw(from, to) for the visible ranges. Ranges that begin less than `least` apart become
  // one, so that the calls are never more than the pixels have room for.
  forEachVisible(view, least, draw) {
    for (let i = lowerBound(this.reach, view.from); i < this.size && this.from[i] <= view.to;) {
      const begin = this.from[i];
      i = lowerBound(this.from, Math.max(begin + least, view.from), i + 1);
      draw(begin, this.reach[i - 1]);
    }
  }
}

// Returns a lane for each depth. `last` is a span that continues after the others, as far as they
// leave it room.
function readLanes(fields, last) {
  const {from, to, state, depth, text} = fields
    ? columns(fields, {
        from: Float64Array,
        to: Float64Array,
        state: Uint8Array,
        depth: Uint8Array,
        text: Uint32Array,
      })
    : {from: [], depth: []};
  const sizes = new Array(kDeepest + 1).fill(0);
  let end = -Infinity;
  for (let i = 0; i < from.length; ++i) {
    ++sizes[Math.min(depth[i], kDeepest)];
    if (depth[i] === 0) end = Math.max(end, bounded(to[i]));
  }
  const continues = last && end < last.to;
  if (continues) ++sizes[0];
  const lanes = sizes
    .slice(0, 1 + sizes.findLastIndex(size => size > 0))
    .map(size => new Lane(size));
  for (let i = 0; i < from.length; ++i)
    lanes[Math.min(depth[i], kDeepest)].append(from[i], to[i], state[i], text[i]);
  if (continues) lanes[0].append(Math.max(end, last.from), last.to, last.state, last.text);
  for (const lane of lanes) lane.summarise();
  return lanes;
}

function readEvents(fields) {
  if (!fields)
    return {
      time: new Float64Array(0),
      kind: new Uint32Array(0),
      text: new Uint32Array(0),
      omitted: 0,
    };
  return {
    ...columns(fields, {time: Float64Array, kind: Uint32Array, text: Uint32Array}),
    omitted: fields.number("omitted") ?? 0,
  };
}
