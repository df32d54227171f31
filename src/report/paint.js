// Paints the timeline: only what is visible, and at most a few rectangles for each pixel, however much there is.

const kRuler = 26;
const kPad = 3;
const kLane = 15;
const kNestedLane = 10;
const kTicks = 9;

// The style sheet's colours, and patterns, so that states differ without colour, too.
class Palette {
  constructor(context) {
    const style = getComputedStyle(document.documentElement);
    const colour = name => style.getPropertyValue("--" + name).trim();
    for (const name of [
      "ground",
      "panel",
      "text",
      "quiet",
      "line",
      "accent",
      "danger",
      "event",
      "hit",
      "idle",
      "covered",
      "selected",
    ])
      this[name] = colour(name);
    this.hatch = colour("hatch");
    this.state = kStates.map(state => colour("state-" + state.replace(" ", "-")));
    this.pixels = Uint32Array.from(this.state, pixelOf);
    this.event_pixel = pixelOf(this.event);
    this.hit_pixel = pixelOf(this.hit);
    this.label = kStates.map(state => colour("on-" + state.replace(" ", "-")) || this.text);
    const hatchings = {waiting: this.stripes, halted: this.checks, stale: this.dots, gap: this.crosses};
    this.fills = kStates.map((state, i) =>
      hatchings[state] ? this.pattern(context, this.state[i], hatchings[state]) : this.state[i]
    );
  }

  pattern(context, ground, draw) {
    const tile = document.createElement("canvas");
    tile.width = tile.height = 8;
    const pen = tile.getContext("2d");
    pen.fillStyle = ground;
    pen.fillRect(0, 0, 8, 8);
    pen.strokeStyle = pen.fillStyle = this.hatch;
    draw(pen);
    return context.createPattern(tile, "repeat");
  }

  stripes(pen) {
    pen.beginPath();
    for (const x of [-8, 0, 8]) {
      pen.moveTo(x, 8);
      pen.lineTo(x + 8, 0);
    }
    pen.stroke();
  }

  crosses(pen) {
    pen.beginPath();
    for (const x of [-8, 0, 8]) {
      pen.moveTo(x, 8);
      pen.lineTo(x + 8, 0);
      pen.moveTo(x, 0);
      pen.lineTo(x + 8, 8);
    }
    pen.stroke();
  }

  checks(pen) {
    pen.fillRect(0, 0, 4, 4);
    pen.fillRect(4, 4, 4, 4);
  }

  dots(pen) {
    pen.fillRect(1, 1, 2, 2);
    pen.fillRect(5, 5, 2, 2);
  }
}

// Where each row lies, from the top of the first.
class Rows {
  constructor(tracks) {
    this.list = [];
    let top = 0;
    for (const track of tracks) {
      const lanes = Math.max(1, track.lanes.length);
      const ticks = track.events.time.length > 0;
      const height = 2 * kPad + kLane + (lanes - 1) * kNestedLane + (ticks ? kTicks + 1 : 0);
      this.list.push({track, top, height, ticks});
      top += height;
    }
    this.tops = Float64Array.from(this.list, row => row.top);
    this.height = top;
  }

  // The row at `y` from the top of the first.
  at(y) {
    return this.list[Math.max(0, firstAfter(this.tops, y) - 1)];
  }

  lane_top(row, depth) {
    return row.top + kPad + (depth === 0 ? 0 : kLane + (depth - 1) * kNestedLane);
  }

  // Which lane `y` is in; -1: in the events.
  depth_at(row, y) {
    const below = y - row.top - kPad;
    if (row.ticks && below >= row.height - 2 * kPad - kTicks - 1) return -1;
    return below < kLane
      ? 0
      : Math.min(1 + Math.floor((below - kLane) / kNestedLane), Math.max(0, row.track.lanes.length - 1));
  }
}

class Painter {
  constructor(canvas, report) {
    this.canvas = canvas;
    this.context = canvas.getContext("2d", {alpha: false});
    this.report = report;
    this.rectangles = kStates.map(() => []);
    this.strip = new Strip();
    this.totals = new Float64Array(kStates.length);
    this.shown = new Map();
    this.restyle();
  }

  restyle() {
    this.palette = new Palette(this.context);
  }

  resize(width, height) {
    const ratio = window.devicePixelRatio || 1;
    this.width = width;
    this.height = height;
    this.gutter = width < 700 ? 110 : 180;
    this.canvas.width = Math.round(width * ratio);
    this.canvas.height = Math.round(height * ratio);
    this.canvas.style.height = height + "px";
    this.ratio = ratio;
  }

  x(time) {
    return this.gutter + (time - this.view.from) * this.scale;
  }

  // `view`: from, to, scroll, pointer; `selection`: a row and what of it.
  paint(view, rows, selection, hits) {
    const {context, palette, width, height} = this;
    this.view = view;
    this.scale = (width - this.gutter) / (view.to - view.from);
    this.rows = rows;
    context.setTransform(this.ratio, 0, 0, this.ratio, 0, 0);
    context.fillStyle = palette.ground;
    context.fillRect(0, 0, width, height);
    context.textBaseline = "middle";
    context.save();
    context.beginPath();
    context.rect(0, kRuler, width, height - kRuler);
    context.clip();
    context.translate(0, kRuler - view.scroll);
    const last = firstFrom(rows.tops, view.scroll + height - kRuler);
    const seen = rows.list.slice(Math.max(0, firstAfter(rows.tops, view.scroll) - 1), last);
    const prepared = this.prepare(seen, hits);
    seen.forEach((row, i) => this.row(row, selection, prepared[i]));
    context.restore();
    this.outside();
    this.ruler();
    this.lines(selection);
  }

  // What goes through the strip, of all rows at once: it is handed over only once.
  prepare(rows, hits) {
    const {strip, view, scale, palette} = this;
    strip.begin(
      Math.floor(this.width - this.gutter),
      rows.reduce((sum, row) => sum + row.track.lanes.length + (row.ticks ? 2 * kTicks : 0), 0)
    );
    const prepared = rows.map(({track, ticks}) => ({
      lanes: track.lanes.map(lane => {
        const [first, last] = lane.range(view.from, view.to);
        if (last - first <= strip.width / 8)
          return {line: -1, spans: Array.from({length: Math.max(0, last - first)}, (_, i) => first + i)};
        const spans = [];
        return {line: crowdLine(lane, first, last, view, scale, strip, palette.pixels, this.totals, spans), spans};
      }),
      ticks: ticks ? tickLines(track.events.time, view, scale, strip, palette.event_pixel, kTicks) : -1,
      hits:
        ticks && hits?.has(track)
          ? tickLines(hits.get(track).times, view, scale, strip, palette.hit_pixel, kTicks)
          : -1,
    }));
    strip.end();
    return prepared;
  }

  row(row, selection, prepared) {
    const {context, palette, gutter, width} = this;
    const {track} = row;
    if (selection?.track === track) this.box(palette.selected, 0, row.top, width, row.height);
    this.box(palette.line, 0, row.top + row.height - 1, width, 1);
    context.save();
    context.beginPath();
    context.rect(gutter, row.top, width - gutter, row.height);
    context.clip();
    const top = row.top + kPad;
    for (const [from, to] of track.covered) this.span(palette.covered, from, to, top, kLane);
    for (const [from, to] of track.idle) this.span(palette.idle, from, to, top + kLane / 2 - 1, 2);
    track.lanes.forEach((lane, depth) =>
      this.lane(lane, prepared.lanes[depth], this.rows.lane_top(row, depth), depth === 0 ? kLane : kNestedLane)
    );
    for (const [from, to] of track.stale) this.span(palette.fills[4], from, to, top, kLane, "stale");
    for (const gap of track.gaps) this.span(palette.fills[5], gap.from, gap.to, top, kLane, "gap");
    if (row.ticks) this.ticks(prepared, row.top + row.height - kPad - kTicks);
    if (selection?.track === track) this.mark(row, selection);
    context.restore();
    this.name(row);
  }

  box(fill, x, y, width, height) {
    this.context.fillStyle = fill;
    this.context.fillRect(x, y, width, height);
  }

  // What is short is drawn all the same.
  span(fill, from, to, y, height, label) {
    const {view} = this;
    if (to < view.from || from > view.to) return;
    const left = Math.max(this.x(from), this.gutter - 10);
    const right = Math.min(this.x(to), this.width + 10);
    this.box(fill, left, y, Math.max(right - left, 3), height);
    if (label) this.caption(label, this.palette.text, left, right, y, height, fill);
  }

  caption(text, colour, left, right, y, height, plate) {
    left = Math.max(left, this.gutter);
    const room = Math.min(right, this.width) - left - 6;
    if (room < 34) return;
    const {context} = this;
    context.font = `${height < kLane ? 9 : 11}px system-ui, sans-serif`;
    const words = shortened(text, Math.max(4, Math.floor(room / (height < kLane ? 5 : 6.2))));
    if (plate && typeof plate !== "string")
      this.box(this.palette.ground, left + 2, y + 2, Math.min(room, context.measureText(words).width) + 4, height - 4);
    context.fillStyle = colour;
    context.fillText(words, left + 4, y + height / 2 + 0.5, room);
  }

  lane(lane, {line, spans}, y, height) {
    if (line >= 0) this.strip.draw(this.context, line, 1, this.gutter, y, this.strip.width, height);
    for (const i of spans) this.single(lane, i);
    for (let state = 0; state < kStates.length; ++state) {
      const list = this.rectangles[state];
      if (list.length === 0) continue;
      this.context.fillStyle = this.palette.fills[state];
      for (let i = 0; i < list.length; i += 2) this.context.fillRect(list[i], y, list[i + 1], height);
      list.length = 0;
    }
    for (const i of spans) this.span_caption(lane, i, y, height);
  }

  single(lane, i) {
    const left = Math.max(this.x(lane.from[i]), this.gutter - 10);
    const right = Math.min(this.x(lane.to[i]), this.width + 10);
    // A pixel between neighbours, where there is room for it.
    this.rectangles[lane.state[i]].push(left, Math.max(right - left - (right - left > 4 ? 1 : 0), 1));
  }

  span_caption(lane, i, y, height) {
    const left = this.x(lane.from[i]);
    const right = this.x(lane.to[i]);
    if (Math.min(right, this.width) - Math.max(left, this.gutter) < 40) return;
    const state = lane.state[i];
    const text = this.visible_string(lane.text[i]) || kStates[state];
    this.caption(text, this.palette.label[state], left, right, y, height, this.palette.fills[state]);
  }

  // The events of a row; those that were searched for stand out.
  ticks(prepared, y) {
    this.strip.draw(this.context, prepared.ticks, kTicks, this.gutter, y, this.strip.width, kTicks);
    if (prepared.hits >= 0)
      this.strip.draw(this.context, prepared.hits, kTicks, this.gutter, y - 3, this.strip.width, kTicks + 3);
  }

  mark(row, selection) {
    const {context, palette} = this;
    const {track, depth, index} = selection;
    context.strokeStyle = palette.accent;
    context.lineWidth = 2;
    if (depth === -1 && index >= 0) {
      const x = Math.round(this.x(track.events.time[index]));
      context.strokeRect(x - 3, row.top + row.height - kPad - kTicks - 2, 7, kTicks + 3);
    } else if (index >= 0) {
      const lane = track.lanes[depth];
      const left = Math.max(this.x(lane.from[index]), this.gutter);
      context.strokeRect(
        left,
        this.rows.lane_top(row, depth),
        Math.max(3, Math.min(this.x(lane.to[index]), this.width - 1) - left),
        depth === 0 ? kLane : kNestedLane
      );
    }
  }

  name(row) {
    const {context, palette, gutter} = this;
    const {track} = row;
    const left = 6 + track.depth * 12;
    context.fillStyle = palette.text;
    context.font = "12px system-ui, sans-serif";
    const suffix = track.first ? " ①" : "";
    context.fillText(
      this.cut(visible(track.name), gutter - left - 8 - (suffix ? 16 : 0)) + suffix,
      left,
      row.top + kPad + kLane / 2 + 0.5
    );
    this.box(palette.line, gutter - 1, row.top, 1, row.height);
  }

  cut(text, room) {
    const key = text + "\0" + room;
    let cut = this.shown.get(key);
    if (cut !== undefined) return cut;
    let most = Math.min(text.length, 60);
    cut = shortened(text, most);
    while (most > 3 && this.context.measureText(cut).width > room) cut = shortened(text, --most);
    if (this.shown.size > 20000) this.shown.clear();
    this.shown.set(key, cut);
    return cut;
  }

  visible_string(index) {
    let text = this.shown.get(index);
    if (text !== undefined) return text;
    text = visible(this.report.string(index).slice(0, 300));
    if (this.shown.size > 20000) this.shown.clear();
    this.shown.set(index, text);
    return text;
  }

  // Time outside of the window is dimmed.
  outside() {
    const {window} = this.report;
    if (!window || window.from === undefined) return;
    const {context, gutter, width, height} = this;
    context.globalAlpha = 0.55;
    const begin = Math.min(this.x(window.from), width);
    const end = Math.max(this.x(window.to), gutter);
    if (begin > gutter) this.box(this.palette.panel, gutter, kRuler, begin - gutter, height - kRuler);
    if (end < width) this.box(this.palette.panel, end, kRuler, width - end, height - kRuler);
    context.globalAlpha = 1;
  }

  ruler() {
    const {context, palette, view, width, gutter} = this;
    this.box(palette.panel, 0, 0, width, kRuler);
    this.box(palette.line, 0, kRuler - 1, width, 1);
    context.font = "11px system-ui, sans-serif";
    context.fillStyle = palette.quiet;
    context.fillText(
      this.report.times.counts ? "counts before the end" : "time before the end",
      6,
      kRuler / 2,
      gutter - 12
    );
    const step = roundStep((view.to - view.from) / Math.max(2, (width - gutter) / 110));
    const around = Math.max(Math.abs(view.from), Math.abs(view.to));
    for (let time = Math.ceil(view.from / step) * step, n = 0; time <= view.to && n < 100; time += step, ++n) {
      const x = Math.round(this.x(time));
      this.box(palette.line, x, kRuler - 6, 1, 6);
      context.fillStyle = palette.quiet;
      const words = Math.abs(time) < step / 2 ? "end" : this.report.times.mark(time, step, around);
      context.fillText(words, Math.min(x + 4, width - 6 * words.length - 4), kRuler / 2);
    }
  }

  lines(selection) {
    const {context, palette, view, height, gutter} = this;
    const line = (time, colour, dash, label) => {
      if (time === undefined || time < view.from || time > view.to) return;
      const x = Math.round(this.x(time)) + 0.5;
      context.strokeStyle = colour;
      context.lineWidth = 1;
      context.setLineDash(dash);
      context.beginPath();
      context.moveTo(x, label ? 4 : kRuler);
      context.lineTo(x, height);
      context.stroke();
      context.setLineDash([]);
      if (!label) return;
      context.font = "bold 11px system-ui, sans-serif";
      const wide = context.measureText(label).width + 8;
      const left = Math.min(x, this.width - wide);
      this.box(colour, left, 3, wide, 16);
      context.fillStyle = palette.ground;
      context.fillText(label, left + 4, 11.5);
    };
    line(0, palette.quiet, [2, 2]);
    line(this.report.trigger?.time, palette.danger, [5, 3], "trigger");
    if (selection?.time !== undefined) line(selection.time, palette.accent, []);
    if (view.pointer !== undefined && view.pointer > gutter)
      line(view.from + (view.pointer - gutter) / this.scale, palette.quiet, [1, 3]);
  }
}

// 1, 2 or 5 times a power of ten, not below `least`.
function roundStep(least) {
  const power = 10 ** Math.floor(Math.log10(least));
  return power * [1, 2, 5, 10].find(factor => factor * power >= least * 0.999);
}
