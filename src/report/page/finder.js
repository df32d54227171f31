// Finds events by their text. It searches each text once, however many events have it.

class EventFinder {
  constructor(timeline) {
    this.timeline = timeline;
    this.report = timeline.report;
    this.hits = undefined; // by track: the times and indices of events; undefined: no search
    this.count = element("output", {id: "event-hits", "aria-live": "polite"});
    this.field = element("input", {
      id: "event-search",
      type: "search",
      placeholder: "find events",
      "aria-label": "Find events by name or text",
      oninput: () => this.search(this.field.value),
      onkeydown: event => this.onKey(event),
    });
  }

  tools() {
    return element(
      "span",
      {class: "search"},
      this.field,
      button("↑", "Previous event found", () => this.step(-1)),
      button("↓", "Next event found", () => this.step(1)),
      this.count
    );
  }

  onKey(event) {
    if (event.key !== "Enter") return;
    event.preventDefault();
    this.step(event.shiftKey ? -1 : 1);
  }

  search(words) {
    const query = words.trim().toLowerCase();
    this.hits = query === "" ? undefined : new Map();
    let found = 0;
    if (this.hits) {
      const has = text => typeof text === "string" && text.toLowerCase().includes(query);
      const texts = Uint8Array.from(this.report.strings, has);
      const kinds = Uint8Array.from(
        this.report.kinds,
        kind => has(kind.name) || has(kind.category)
      );
      for (const track of this.timeline.tracks) found += this.searchTrack(track, texts, kinds);
    }
    this.count.value = this.hits ? plural(found, "event") : "";
    this.timeline.redraw();
  }

  searchTrack(track, texts, kinds) {
    const {time, kind, text} = track.events;
    const matches = i => texts[text[i]] === 1 || kinds[kind[i]] === 1;
    let found = 0;
    for (let i = 0; i < time.length; ++i) if (matches(i)) ++found;
    if (found === 0) return 0;
    const hit = {times: new Float64Array(found), events: new Uint32Array(found)};
    for (let i = 0, next = 0; i < time.length; ++i) {
      if (!matches(i)) continue;
      hit.times[next] = time[i];
      hit.events[next++] = i;
    }
    this.hits.set(track, hit);
    return found;
  }

  // Goes to the next hit in the order of time over all rows. After the last comes the first.
  step(by) {
    if (!this.hits || this.hits.size === 0) return;
    const rows = this.timeline.rows.list
      .map(row => row.track)
      .filter(track => this.hits.has(track));
    const here = this.timeline.selection;
    const at =
      here?.time === undefined
        ? undefined
        : {
            time: here.time,
            row: rows.indexOf(here.track),
            event: here.depth === kEventDepth ? here.index : -1,
          };
    const found = this.nearest(rows, by, at) ?? this.nearest(rows, by, undefined);
    if (found) this.timeline.goTo(this.timeline.eventAt(found.track, found.event));
  }

  nearest(rows, by, at) {
    let best;
    rows.forEach((track, row) => {
      const {times, events} = this.hits.get(track);
      const i = by > 0 ? nextHit(times, events, row, at) : previousHit(times, events, row, at);
      if (i < 0 || i >= times.length) return;
      const nearer = by > 0 ? best && times[i] < best.time : best && times[i] >= best.time;
      if (!best || nearer) best = {track, time: times[i], event: events[i]};
    });
    return best;
  }
}

// Events of one time are in the order of their rows, then of their indices.
function nextHit(times, events, row, at) {
  if (!at) return 0;
  if (row > at.row) return lowerBound(times, at.time);
  if (row < at.row || at.event < 0) return upperBound(times, at.time);
  return upperBound(events, at.event);
}

function previousHit(times, events, row, at) {
  if (!at) return times.length - 1;
  if (row < at.row) return upperBound(times, at.time) - 1;
  if (row > at.row || at.event < 0) return lowerBound(times, at.time) - 1;
  return lowerBound(events, at.event) - 1;
}
