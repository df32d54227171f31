// The tracks of the data: cores, CPUs, tasks and threads; and the report, which all parts read.

// The states of tracks, not of spans, that need a reader's attention.
const kStuckStates = ["waiting", "halted", "silent"];

class Track {
  constructor(fields, index) {
    this.fields = fields;
    this.id = fields.number("id") ?? index;
    this.kind = fields.text("kind") || "core";
    this.name = fields.text("name") || `${this.kind} ${this.id}`;
    this.parent = fields.number("parent");
    this.state = fields.text("state");
    this.what = fields.text("what");
    this.since = fields.number("since");
    this.place = fields.text("place");
    this.first = fields.flag("first");
    this.covered = fields.ranges("covered");
    this.idle = fields.ranges("idle");
    this.stale = fields.ranges("stale");
    this.gaps = fields.objects("gaps").map(gap => ({
      from: gap.number("from") ?? 0,
      to: gap.number("to") ?? 0,
      why: gap.text("why"),
      amount: gap.text("amount"),
    }));
    this.ranges = {
      covered: new Ranges(this.covered),
      idle: new Ranges(this.idle),
      stale: new Ranges(this.stale),
      gaps: new Ranges(this.gaps.map(gap => [gap.from, gap.to])),
    };
    this.lanes = [];
    this.counters = [];
    this.events = readEvents(undefined);
    this.depth = 0;
  }

  // Decodes the columns, which takes time where there are many spans and events.
  decode(strings) {
    this.lanes = readLanes(this.fields.object("spans"), this.finalSpan(strings));
    this.events = readEvents(this.fields.object("events"));
    this.counters = this.fields.objects("counters").map(fields => new Counter(fields));
  }

  // Returns the span of the state at the end, which lasts until then even if no event says so.
  finalSpan(strings) {
    if (!["waiting", "halted"].includes(this.state) || !(this.since < 0)) return undefined;
    return {from: this.since, to: 0, state: kState[this.state], text: strings.push(this.what) - 1};
  }

  get hasState() {
    return this.kind !== "stream" && (this.state !== "" || this.place !== "" || this.what !== "");
  }

  get inTrouble() {
    return this.first || kStuckStates.includes(this.state);
  }
}

class Report {
  constructor(data) {
    this.data = data;
    this.times = new Times(data.text("clock") === "counts");
    this.strings = [...data.list("strings")];
    this.kinds = data
      .objects("kinds")
      .map(kind => ({name: kind.text("name"), category: kind.text("category")}));
    this.tracks = inTree(data.objects("tracks").map((fields, i) => new Track(fields, i)));
    this.trackById = new Map(this.tracks.map(track => [track.id, track]));
    const window = data.object("window");
    this.window = window && {
      from: window.number("from"),
      to: window.number("to") ?? 0,
      policy: window.text("policy"),
      limited_by: window.text("limited_by"),
    };
    this.flows = new Flows(undefined);
    const trigger = data.object("trigger");
    this.trigger = trigger && {time: trigger.number("time"), text: trigger.text("text")};
  }

  // Decodes the columns of the flows, which takes time where there are many.
  decodeFlows() {
    this.flows = new Flows(this.data.object("flows"));
  }

  string(index) {
    const text = this.strings[index];
    return typeof text === "string" ? text : "";
  }

  kind(index) {
    return this.kinds[index] ?? {name: `event ${index}`, category: ""};
  }

  trackName(track) {
    return this.trackById.get(track)?.name ?? "";
  }

  eventText(track, i) {
    const text = this.string(track.events.text[i]);
    const {name, category} = this.kind(track.events.kind[i]);
    return name + (text === "" ? "" : "  " + text) + (category === "" ? "" : `  (${category})`);
  }
}

// Puts each track after its parent. A track whose parents are missing, or form a cycle, is a root.
function inTree(tracks) {
  const known = new Map(tracks.map(track => [track.id, track]));
  const children = new Map();
  const roots = [];
  for (const track of tracks) {
    if (!known.has(track.parent) || track.parent === track.id) roots.push(track);
    else if (children.has(track.parent)) children.get(track.parent).push(track);
    else children.set(track.parent, [track]);
  }
  const ordered = new Set();
  const walk = (start, depth) => {
    const open = [[start, depth]];
    while (open.length > 0) {
      const [track, level] = open.pop();
      if (ordered.has(track)) continue;
      track.depth = Math.min(level, 4);
      ordered.add(track);
      for (const child of (children.get(track.id) ?? []).toReversed())
        open.push([child, level + 1]);
    }
  };
  for (const root of roots) walk(root, 0);
  for (const track of tracks) walk(track, 0);
  return [...ordered];
}

// Returns the time from the oldest to the newest entry, and a little room on both sides.
function extent(report) {
  let from = Math.min(report.window?.from ?? 0, report.trigger?.time ?? 0);
  let to = Math.max(report.window?.to ?? 0, report.trigger?.time ?? 0);
  const include = (begin, end) => {
    if (Number.isFinite(begin)) from = Math.min(from, begin);
    if (Number.isFinite(end)) to = Math.max(to, end);
  };
  for (const track of report.tracks) {
    for (const [begin, end] of [...track.covered, ...track.stale]) include(begin, end);
    for (const gap of track.gaps) include(gap.from, gap.to);
    for (const lane of track.lanes)
      if (lane.size > 0) include(lane.from[0], lane.to[lane.size - 1]);
    if (track.events.time.length > 0) include(track.events.time[0], track.events.time.at(-1));
    for (const counter of track.counters)
      if (counter.time.length > 0) include(counter.time[0], counter.time.at(-1));
  }
  const room = Math.max((to - from) * 0.02, kLeastNs);
  return {from: from - room, to: to + room};
}
