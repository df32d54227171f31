// The timeline: which time and rows it shows, how wheel, mouse, keys and buttons change that, and
// what they select.

const kLeastNs = 8; // the shortest time that fills the width
const kSliceMs = 6; // A drawing that takes longer continues in the next frame.
const kPrintHeight = 1200; // pixels at most
const kPrimaryButton = 0; // PointerEvent.button

class Timeline {
  constructor(report) {
    this.report = report;
    this.tracks = report.tracks.filter(
      track =>
        track.kind !== "stream" ||
        track.lanes.length > 0 ||
        track.events.time.length > 0 ||
        track.counters.length > 0
    );
    this.rows = new Rows(this.tracks);
    this.whole = extent(report);
    this.view = {...this.whole, scroll: 0, pointer: undefined};
    const {window} = report;
    if (window?.from < window?.to) {
      const room = (window.to - window.from) / 10;
      this.show(window.from - room, window.to + room);
    }
    this.selection = undefined;
    this.redraws = {first: 0, count: 0, slowest: 0, longestFrame: 0, onChange: () => {}};
    this.finder = new EventFinder(this);
    this.build();
  }

  build() {
    this.canvas = element("canvas", {
      id: "timeline-canvas",
      tabindex: 0,
      role: "application",
      "aria-describedby": "timeline-readout",
      "aria-label":
        `Timeline of ${plural(this.tracks.length, "row")}. Left and right arrows move in time, ` +
        "up and down choose a row, plus and minus zoom, " +
        "comma and full stop go from event to event.",
    });
    this.spacer = element("div", {class: "spacer"}, this.canvas);
    this.frame = element("div", {class: "frame", tabindex: -1}, this.spacer);
    this.readout = element(
      "p",
      {id: "timeline-readout", "aria-live": "polite"},
      "Point at something, or focus the timeline and press the arrow keys."
    );
    this.range = element("output", {id: "timeline-range", "aria-label": "Time shown"});
    this.section = part(
      "timeline",
      "Timeline",
      this.toolbar(),
      this.frame,
      this.readout,
      this.legend()
    );
    this.listen();
  }

  toolbar() {
    const rows = element("input", {
      id: "row-filter",
      type: "search",
      placeholder: "rows: name or state",
      "aria-label": "Show only rows with this name or state",
      oninput: () => this.filter(rows.value),
    });
    return element(
      "div",
      {class: "tools", role: "toolbar", "aria-label": "Timeline"},
      button("◀", "Earlier", () => this.pan(-0.25)),
      button("▶", "Later", () => this.pan(0.25)),
      button("+", "Zoom in", () => this.zoom(0.5)),
      button("−", "Zoom out", () => this.zoom(2)),
      button("Whole", "Show the whole time", () => this.show(this.whole.from, this.whole.to)),
      this.report.trigger?.time !== undefined &&
        button("Trigger", "Show the trigger", () => this.centre(this.report.trigger.time)),
      this.range,
      rows,
      this.finder.tools()
    );
  }

  legend() {
    const used = new Set(this.tracks.flatMap(track => track.lanes.flatMap(lane => lane.used)));
    if (this.tracks.some(track => track.stale.length > 0)) used.add(kState.stale);
    if (this.tracks.some(track => track.gaps.length > 0)) used.add(kState.gap);
    const names = [...used]
      .sort((a, b) => a - b)
      .map(state =>
        element(
          "li",
          {},
          element("span", {
            class: "swatch " + kStateNames[state].replace(" ", "-"),
            "aria-hidden": "true",
          }),
          kStateNames[state]
        )
      );
    if (this.tracks.some(track => track.idle.length > 0))
      names.push(
        element("li", {}, element("span", {class: "swatch idle", "aria-hidden": "true"}), "idle")
      );
    if (this.tracks.some(track => track.events.time.length > 0))
      names.push(
        element("li", {}, element("span", {class: "swatch event", "aria-hidden": "true"}), "events")
      );
    if (this.tracks.some(track => track.counters.length > 0))
      names.push(
        element(
          "li",
          {},
          element("span", {class: "swatch counter", "aria-hidden": "true"}),
          "counters"
        )
      );
    const most = Math.max(0, ...this.tracks.map(track => track.counters.length));
    const omitted = this.tracks.reduce((sum, track) => sum + track.events.omitted, 0);
    return element(
      "div",
      {class: "legend"},
      element("ul", {"aria-label": "Legend"}, names),
      element(
        "p",
        {class: "quiet hint"},
        "Click into it, then the wheel zooms; drag moves; Shift-drag zooms to what is marked; " +
          "? lists the keys."
      ),
      most > kMostCounters &&
        element(
          "p",
          {class: "quiet"},
          `Of the counters of a row the first ${kMostCounters} are drawn; hangscope export has all.`
        ),
      omitted > 0 &&
        element(
          "p",
          {class: "quiet"},
          `${plural(omitted, "older event")} of the snapshot ` +
            `${omitted === 1 ? "is" : "are"} not in this report.`
        )
    );
  }

  listen() {
    const {canvas} = this;
    canvas.addEventListener("wheel", event => this.onWheel(event), {passive: false});
    canvas.addEventListener("pointerdown", event => this.onPress(event));
    canvas.addEventListener("pointermove", event => this.onMove(event));
    canvas.addEventListener("pointerup", event => this.onRelease(event));
    canvas.addEventListener("pointercancel", () => {
      this.drag = undefined;
    });
    canvas.addEventListener("pointerleave", () => this.hover(undefined));
    canvas.addEventListener("dblclick", event => this.zoom(0.25, this.timeAt(event.offsetX)));
    canvas.addEventListener("keydown", event => this.onKey(event));
    canvas.addEventListener("focus", () => this.redraw());
    this.frame.addEventListener("scroll", () => {
      this.view.scroll = this.frame.scrollTop;
      this.redraw();
    });
    matchMedia("(prefers-color-scheme: dark)").addEventListener("change", () => this.restyle());
    window.addEventListener("beforeprint", () => this.print(true));
    window.addEventListener("afterprint", () => this.print(false));
  }

  // The page calls this once the timeline is in it.
  start() {
    this.painter = new Painter(this.canvas, this.report);
    new ResizeObserver(() => this.resize()).observe(this.frame);
    this.resize();
  }

  restyle() {
    this.painter?.restyle();
    this.drawing = undefined;
    this.redraw();
  }

  // Gives a printer as many rows as fit on a page, in the colours of the light scheme.
  print(on) {
    if (!this.painter) return;
    document.documentElement.classList.toggle("printing", on);
    this.frame.style.height = on
      ? Math.min(this.rows.height + kRulerHeight, kPrintHeight) + "px"
      : "";
    this.painter.restyle();
    this.resize();
    this.beginDrawing();
    this.continueDrawing(Infinity);
  }

  resize() {
    const most = document.documentElement.classList.contains("printing")
      ? kPrintHeight
      : Math.max(260, Math.round(window.innerHeight * 0.6));
    const height = Math.min(this.rows.height + kRulerHeight, most);
    this.frame.style.height = height + "px";
    this.spacer.style.height = this.rows.height + kRulerHeight + "px";
    this.painter.resize(this.spacer.clientWidth, height);
    this.drawing = undefined;
    this.redraw();
  }

  redraw() {
    this.outdated = true;
    this.requestFrame();
  }

  requestFrame() {
    if (this.frameRequested || !this.painter) return;
    this.frameRequested = true;
    requestAnimationFrame(() => this.drawFrame());
  }

  // Finishes a drawing before it begins the next, so that constant movement still shows drawings.
  drawFrame() {
    this.frameRequested = false;
    const begin = performance.now();
    if (!this.drawing && this.outdated) this.beginDrawing();
    this.continueDrawing(begin + kSliceMs);
    const took = performance.now() - begin;
    this.drawingMs += took;
    this.redraws.longestFrame = Math.max(this.redraws.longestFrame, took);
    if (!this.drawing) this.countRedraw(this.drawingMs);
    this.canvas.toggleAttribute("data-drawing", this.drawing !== undefined || this.outdated);
    if (this.drawing || this.outdated) this.requestFrame();
  }

  beginDrawing() {
    this.outdated = false;
    this.drawingMs = 0;
    this.drawing = this.painter.draw({...this.view}, this.rows, this.selection, this.finder.hits);
    this.showRange();
  }

  continueDrawing(until) {
    while (this.drawing) {
      if (this.drawing.next().done) this.drawing = undefined;
      else if (performance.now() >= until) return;
    }
  }

  showRange() {
    const {times} = this.report;
    const {from, to} = this.view;
    const step = (to - from) / 200,
      around = Math.max(Math.abs(from), Math.abs(to));
    const [begin, end] = [from, to].map(time => times.mark(time, step, around));
    this.range.value = `${begin} to ${end} (${times.length(to - from)})`;
    this.range.dataset.from = from;
    this.range.dataset.to = to;
  }

  // Counts the first redraw by itself: it also loads fonts.
  countRedraw(took) {
    const {redraws} = this;
    if (redraws.first === 0) redraws.first = took;
    else redraws.slowest = Math.max(redraws.slowest, took);
    ++redraws.count;
    redraws.onChange();
  }

  show(from, to) {
    const least = Math.min(kLeastNs, this.whole.to - this.whole.from);
    const length = Math.max(least, Math.min(to - from, this.whole.to - this.whole.from));
    const begin = Math.max(this.whole.from, Math.min(from, this.whole.to - length));
    this.view.from = begin;
    this.view.to = begin + length;
    this.redraw();
  }

  pan(share) {
    const step = (this.view.to - this.view.from) * share;
    this.show(this.view.from + step, this.view.to + step);
  }

  // The time `at` stays where it is.
  zoom(factor, at = this.selectedTimeInView() ?? (this.view.from + this.view.to) / 2) {
    const least = kLeastNs / (this.view.to - this.view.from);
    const by = Math.max(factor, least);
    this.show(at - (at - this.view.from) * by, at + (this.view.to - at) * by);
  }

  selectedTimeInView() {
    const time = this.selection?.time;
    return time !== undefined && time >= this.view.from && time <= this.view.to ? time : undefined;
  }

  centre(time) {
    const half = (this.view.to - this.view.from) / 2;
    this.show(time - half, time + half);
  }

  timeAt(x) {
    const {gutter, width} = this.painter;
    return (
      this.view.from +
      (Math.max(0, x - gutter) / (width - gutter)) * (this.view.to - this.view.from)
    );
  }

  onWheel(event) {
    const across = event.shiftKey
      ? event.deltaY || event.deltaX
      : Math.abs(event.deltaX) > Math.abs(event.deltaY)
        ? event.deltaX
        : 0;
    // A wheel that scrolls the page past the timeline must not zoom it.
    if (document.activeElement !== this.canvas && !event.ctrlKey && !event.metaKey && across === 0)
      return;
    event.preventDefault();
    const pixels = event.deltaMode === WheelEvent.DOM_DELTA_LINE ? 16 : 1;
    if (across !== 0) this.pan((across * pixels) / this.painter.width);
    else
      this.zoom(
        Math.exp(Math.max(-1, Math.min(1, event.deltaY * pixels * 0.002))),
        this.timeAt(event.offsetX)
      );
  }

  onPress(event) {
    if (event.button !== kPrimaryButton) return;
    this.canvas.setPointerCapture(event.pointerId);
    this.drag = {
      x: event.offsetX,
      from: this.view.from,
      to: this.view.to,
      moved: false,
      mark: event.shiftKey,
    };
  }

  onMove(event) {
    const {drag} = this;
    if (!drag) return this.hover(event);
    const shift = event.offsetX - drag.x;
    drag.moved ||= Math.abs(shift) > 3;
    if (!drag.moved || drag.mark) return this.hover(event);
    const time = (shift / (this.painter.width - this.painter.gutter)) * (drag.to - drag.from);
    this.show(drag.from - time, drag.to - time);
  }

  onRelease(event) {
    const {drag} = this;
    this.drag = undefined;
    if (!drag) return;
    if (drag.moved && drag.mark) {
      const ends = [this.timeAt(drag.x), this.timeAt(event.offsetX)].sort((a, b) => a - b);
      this.show(ends[0], ends[1]);
    } else if (!drag.moved) {
      this.select(this.findAt(event.offsetX, event.offsetY));
    }
  }

  hover(event) {
    this.view.pointer = event?.offsetX;
    const found = event && this.findAt(event.offsetX, event.offsetY);
    this.canvas.style.cursor = found && found.index >= 0 ? "pointer" : "";
    this.showReadout(found && found.index >= 0 ? found : (this.selection ?? found));
    this.redraw();
  }

  // Returns what lies at a point of the canvas: a track, the depth in its row, the index of the
  // span, event or value there (-1: none), and the time.
  findAt(x, y) {
    if (y < kRulerHeight || this.rows.list.length === 0) return undefined;
    const below = y - kRulerHeight + this.view.scroll;
    if (below >= this.rows.height) return undefined;
    const row = this.rows.at(below);
    const time = this.timeAt(x);
    const depth = this.rows.depthAt(row, below);
    if (x < this.painter.gutter) return {track: row.track, depth: 0, index: -1, time: undefined};
    if (depth >= 0) return this.spanAt(row.track, depth, time);
    if (depth <= kFirstCounterDepth)
      return {
        track: row.track,
        depth,
        index: row.counters[kFirstCounterDepth - depth].at(time),
        time,
      };
    const near = this.nearest(row.track, time);
    const far = (6 * (this.view.to - this.view.from)) / (this.painter.width - this.painter.gutter);
    if (near < 0 || Math.abs(row.track.events.time[near] - time) > far)
      return {track: row.track, depth, index: -1, time};
    return {track: row.track, depth, index: near, time: row.track.events.time[near]};
  }

  spanAt(track, depth, time) {
    for (let d = depth; d >= 0; --d) {
      const index = track.lanes[d]?.at(time) ?? -1;
      if (index >= 0) return {track, depth: d, index, time};
    }
    return {track, depth: 0, index: -1, time};
  }

  nearest(track, time) {
    const times = track.events.time;
    const behind = lowerBound(times, time);
    if (behind === 0) return times.length > 0 ? 0 : -1;
    return behind < times.length && times[behind] - time < time - times[behind - 1]
      ? behind
      : behind - 1;
  }

  select(found) {
    this.selection = found;
    this.showReadout(found);
    this.redraw();
  }

  showReadout(found) {
    const words = found ? describe(this.report, found) : "Nothing there.";
    if (this.readout.textContent !== words) this.readout.textContent = words;
  }

  onKey(event) {
    if (event.ctrlKey || event.altKey || event.metaKey) return;
    const actions = {
      ArrowLeft: () => this.pan(event.shiftKey ? -0.5 : -0.1),
      ArrowRight: () => this.pan(event.shiftKey ? 0.5 : 0.1),
      ArrowUp: () => this.moveRow(-1),
      ArrowDown: () => this.moveRow(1),
      "+": () => this.zoom(0.5),
      "=": () => this.zoom(0.5),
      "-": () => this.zoom(2),
      0: () => this.show(this.whole.from, this.whole.to),
      Home: () => this.show(this.whole.from, this.whole.from + this.view.to - this.view.from),
      End: () => this.show(this.whole.to - this.view.to + this.view.from, this.whole.to),
      ",": () => this.step(-1),
      ".": () => this.step(1),
      t: () => this.centre(this.report.trigger?.time ?? 0),
    };
    const action = actions[event.key];
    if (!action) return;
    event.preventDefault();
    action();
  }

  // Selects another row at the same time.
  moveRow(by) {
    const list = this.rows.list;
    if (list.length === 0) return;
    const now = list.findIndex(row => row.track === this.selection?.track);
    const row = list[now < 0 ? 0 : Math.max(0, Math.min(list.length - 1, now + by))];
    const time = this.selectedTimeInView() ?? (this.view.from + this.view.to) / 2;
    this.reveal(row);
    this.select(
      row.ticks
        ? this.eventAt(row.track, this.nearest(row.track, time))
        : this.spanAt(row.track, kDeepest, time)
    );
  }

  eventAt(track, index) {
    return {track, depth: kEventDepth, index, time: track.events.time[index]};
  }

  reveal(row) {
    const room = this.painter.height - kRulerHeight;
    if (row.top < this.view.scroll) this.frame.scrollTop = row.top;
    else if (row.top + row.height > this.view.scroll + room)
      this.frame.scrollTop = row.top + row.height - room;
  }

  // Goes to the next or previous event of the row; to a span where the row has no events.
  step(by) {
    if (!this.selection) return this.moveRow(0);
    const {track, depth, index} = this.selection;
    if (track.events.time.length > 0) {
      const next =
        depth === kEventDepth && index >= 0
          ? index + by
          : this.nearest(track, this.selection.time ?? this.view.to);
      return this.goTo(
        this.eventAt(track, Math.max(0, Math.min(track.events.time.length - 1, next)))
      );
    }
    const lane = track.lanes[Math.max(0, depth)];
    if (!lane || lane.size === 0) return;
    const next = Math.max(0, Math.min(lane.size - 1, (index >= 0 ? index : lane.size) + by));
    this.goTo({track, depth: Math.max(0, depth), index: next, time: lane.from[next]});
  }

  // Selects something and brings it into view.
  goTo(found) {
    const row = this.rows.list.find(candidate => candidate.track === found.track);
    if (row) this.reveal(row);
    if (found.time < this.view.from || found.time > this.view.to) this.centre(found.time);
    this.select(found);
  }

  filter(words) {
    const query = words.trim().toLowerCase();
    this.rows = new Rows(
      this.tracks.filter(track =>
        `${track.name} ${track.state} ${track.kind}`.toLowerCase().includes(query)
      )
    );
    this.frame.scrollTop = this.view.scroll = 0;
    this.selection = undefined;
    this.resize();
  }
}
