// Paints the visible part of the timeline, with at most a few rectangles for each pixel, however
// long the recording is. A drawing is made in slices, so that no frame waits for a long one. Lanes
// are filled again only when another time is shown.

const kFonts = {
  name: "12px system-ui, sans-serif",
  text: "11px system-ui, sans-serif",
  small: "9px system-ui, sans-serif",
  strong: "bold 11px system-ui, sans-serif",
};
const kMostCachedTexts = 20000;

class Painter {
  constructor(canvas, report) {
    this.canvas = canvas;
    this.context = canvas.getContext("2d", {alpha: false});
    this.report = report;
    this.rectangles = kStateNames.map(() => []);
    this.strip = new Strip();
    this.stripLines = new Map(); // by lane, counter, events or hits: their first line in the strip
    this.stripView = {};
    this.texts = new Map();
    this.restyle();
    this.loadFonts();
  }

  // The first text in a font waits until the font is loaded.
  loadFonts() {
    for (const font of Object.values(kFonts)) {
      this.context.font = font;
      this.context.measureText("0 −1.5 µs …①");
    }
  }

  restyle() {
    this.palette = new Palette(this.context);
    this.stripView = {};
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
    this.strip.resize(Math.floor(width - this.gutter), 2 * height);
    this.stripView = {};
  }

  x(time) {
    return this.gutter + (time - this.view.from) * this.scale;
  }

  // Draws a slice at each step, until it is done. The caller drops the drawing and begins another
  // one when the canvas is resized or the style changes. `view` has from, to, scroll and pointer;
  // `selection` has track, depth, index and time, as Timeline.findAt returns them.
  *draw(view, rows, selection, hits) {
    const {context, width, height} = this;
    this.view = view;
    this.scale = (width - this.gutter) / (view.to - view.from);
    this.rows = rows;
    const last = lowerBound(rows.tops, view.scroll + height - kRulerHeight);
    const seen = rows.list.slice(Math.max(0, upperBound(rows.tops, view.scroll) - 1), last);
    yield* this.prepare(seen, hits);
    context.setTransform(this.ratio, 0, 0, this.ratio, 0, 0);
    context.textBaseline = "middle";
    yield* this.drawRuler();
    for (const row of seen) {
      context.save();
      context.beginPath();
      context.rect(0, kRulerHeight, width, height - kRulerHeight);
      context.clip();
      context.translate(0, kRulerHeight - view.scroll);
      yield* this.drawRow(row, selection, hits);
      context.restore();
      yield;
    }
    const end = kRulerHeight + rows.height - view.scroll;
    if (end < height) this.fillBox(this.palette.ground, 0, end, width, height - end);
    this.dimOutside();
    this.drawTimeLines(selection);
    this.drawArrows(rows, selection);
  }

  // Fills the strip for all rows, so that its pixels reach the canvas in one call.
  *prepare(rows, hits) {
    const {view, strip, stripLines} = this;
    const {from, to} = this.stripView;
    if (from !== view.from || to !== view.to) this.resetStrip(view);
    const fresh = rows
      .flatMap(row => this.stripJobs(row, hits))
      .filter(job => !stripLines.has(job.source));
    if (strip.used + fresh.reduce((sum, job) => sum + job.lines, 0) > strip.capacity) {
      this.resetStrip(view);
      return yield* this.prepare(rows, hits);
    }
    yield;
    for (const job of fresh) {
      stripLines.set(job.source, yield* job.fill());
      yield;
    }
    strip.flush();
    yield;
  }

  // Returns what a row needs of the strip: for which source, how many lines, and how to fill them.
  stripJobs({track, ticks, counters}, hits) {
    const {view, scale, strip, palette} = this;
    const found = ticks ? hits?.get(track) : undefined;
    const jobs = track.lanes.map(lane => ({
      source: lane,
      lines: 1,
      fill: () => this.layOutLane(lane),
    }));
    const tick = (source, times, pixel) =>
      jobs.push({
        source,
        lines: kTickHeight,
        *fill() {
          return fillTicks(times, view, scale, strip, pixel, kTickHeight);
        },
      });
    for (const counter of counters) {
      jobs.push({
        source: counter,
        lines: kCounterHeight - 2,
        *fill() {
          return fillCounter(counter, view, scale, strip, palette.counterPixel, kCounterHeight - 2);
        },
      });
    }
    if (ticks) tick(track.events, track.events.time, palette.eventPixel);
    if (found) tick(found, found.times, palette.hitPixel);
    return jobs;
  }

  // Few spans are drawn one by one; many share a line of the strip, but for the long ones.
  *layOutLane(lane) {
    const {view, scale, strip, palette} = this;
    const [first, last] = lane.range(view.from, view.to);
    const spans = [];
    if (last - first > strip.width / 8)
      return {
        line: yield* fillLane(lane, first, last, view, scale, strip, palette.pixels, spans),
        spans,
      };
    for (let i = first; i < last; ++i) spans.push(i);
    return {line: undefined, spans};
  }

  // Empties the strip for another time.
  resetStrip({from, to}) {
    this.strip.clear();
    this.stripLines.clear();
    this.stripView = {from, to};
  }

  *drawRow(row, selection, hits) {
    const {context, palette, gutter, width, stripLines} = this;
    const {track} = row;
    this.fillBox(
      selection?.track === track ? palette.selected : palette.ground,
      0,
      row.top,
      width,
      row.height
    );
    this.fillBox(palette.line, 0, row.top + row.height - 1, width, 1);
    this.drawName(row);
    context.save();
    context.beginPath();
    context.rect(gutter, row.top, width - gutter, row.height);
    context.clip();
    const top = row.top + kRowPadding;
    this.drawRanges(palette.covered, track.ranges.covered, top, kLaneHeight);
    this.drawRanges(palette.idle, track.ranges.idle, top + kLaneHeight / 2 - 1, 2);
    for (const [depth, lane] of track.lanes.entries()) {
      this.drawLane(
        lane,
        stripLines.get(lane),
        this.rows.laneTop(row, depth),
        depth === 0 ? kLaneHeight : kNestedLaneHeight
      );
      yield;
    }
    for (const [number, counter] of row.counters.entries()) {
      this.drawCounter(counter, stripLines.get(counter), this.rows.counterTop(row, number));
      yield;
    }
    this.drawRanges(palette.fills[kState.stale], track.ranges.stale, top, kLaneHeight, "stale");
    this.drawRanges(palette.fills[kState.gap], track.ranges.gaps, top, kLaneHeight, "gap");
    const found = hits?.get(track);
    if (row.ticks)
      this.drawTicks(
        stripLines.get(track.events),
        found && stripLines.get(found),
        row.top + row.height - kRowPadding - kTickHeight
      );
    if (selection?.track === track) this.drawSelection(row, selection);
    context.restore();
  }

  fillBox(fill, x, y, width, height) {
    this.context.fillStyle = fill;
    this.context.fillRect(x, y, width, height);
  }

  // Draws each range at least kLeastWidth pixels wide.
  drawRanges(fill, ranges, y, height, label) {
    ranges.forEachVisible(this.view, kLeastWidth / this.scale, (from, to) => {
      const left = Math.max(this.x(from), this.gutter - 10);
      const right = Math.min(this.x(to), this.width + 10);
      this.fillBox(fill, left, y, Math.max(right - left, kLeastWidth), height);
      if (label) this.drawCaption(label, this.palette.text, left, right, y, height, fill);
    });
  }

  drawCaption(text, colour, left, right, y, height, plate) {
    left = Math.max(left, this.gutter);
    const room = Math.min(right, this.width) - left - 6;
    if (room < 34) return;
    const {context} = this;
    context.font = height < kLaneHeight ? kFonts.small : kFonts.text;
    const words = shortened(text, Math.max(4, Math.floor(room / (height < kLaneHeight ? 5 : 6.2))));
    if (plate && typeof plate !== "string")
      this.fillBox(
        this.palette.ground,
        left + 2,
        y + 2,
        Math.min(room, context.measureText(words).width) + 4,
        height - 4
      );
    context.fillStyle = colour;
    context.fillText(words, left + 4, y + height / 2 + 0.5, room);
  }

  drawLane(lane, {line, spans}, y, height) {
    if (line !== undefined)
      this.strip.draw(this.context, line, 1, this.gutter, y, this.strip.width, height);
    for (const i of spans) this.addRectangle(lane, i);
    for (let state = 0; state < kStateNames.length; ++state) {
      const list = this.rectangles[state];
      if (list.length === 0) continue;
      this.context.fillStyle = this.palette.fills[state];
      for (let i = 0; i < list.length; i += 2)
        this.context.fillRect(list[i], y, list[i + 1], height);
      list.length = 0;
    }
    for (const i of spans) this.drawSpanCaption(lane, i, y, height);
  }

  addRectangle(lane, i) {
    const left = Math.max(this.x(lane.from[i]), this.gutter - 10);
    const right = Math.min(this.x(lane.to[i]), this.width + 10);
    // One pixel stays free between neighbours where there is room for it.
    this.rectangles[lane.state[i]].push(
      left,
      Math.max(right - left - (right - left > 4 ? 1 : 0), 1)
    );
  }

  drawSpanCaption(lane, i, y, height) {
    const left = this.x(lane.from[i]);
    const right = this.x(lane.to[i]);
    if (Math.min(right, this.width) - Math.max(left, this.gutter) < 40) return;
    const state = lane.state[i];
    const text = this.visibleString(lane.text[i]) || kStateNames[state];
    this.drawCaption(
      text,
      this.palette.label[state],
      left,
      right,
      y,
      height,
      this.palette.fills[state]
    );
  }

  drawCounter(counter, line, y) {
    this.strip.draw(
      this.context,
      line,
      kCounterHeight - 2,
      this.gutter,
      y + 1,
      this.strip.width,
      kCounterHeight - 2
    );
  }

  // Draws the events of a row. Those that a search found stand out.
  drawTicks(line, found, y) {
    this.strip.draw(this.context, line, kTickHeight, this.gutter, y, this.strip.width, kTickHeight);
    if (found !== undefined)
      this.strip.draw(
        this.context,
        found,
        kTickHeight,
        this.gutter,
        y - 3,
        this.strip.width,
        kTickHeight + 3
      );
  }

  drawSelection(row, selection) {
    const {context, palette} = this;
    const {track, depth, index} = selection;
    if (depth <= kFirstCounterDepth) return;
    context.strokeStyle = palette.accent;
    context.lineWidth = 2;
    if (depth === kEventDepth && index >= 0) {
      const x = Math.round(this.x(track.events.time[index]));
      context.strokeRect(
        x - 3,
        row.top + row.height - kRowPadding - kTickHeight - 2,
        7,
        kTickHeight + 3
      );
    } else if (index >= 0) {
      const lane = track.lanes[depth];
      const left = Math.max(this.x(lane.from[index]), this.gutter);
      context.strokeRect(
        left,
        this.rows.laneTop(row, depth),
        Math.max(3, Math.min(this.x(lane.to[index]), this.width - 1) - left),
        depth === 0 ? kLaneHeight : kNestedLaneHeight
      );
    }
  }

  drawName(row) {
    const {context, palette, gutter} = this;
    const {track} = row;
    const left = 6 + track.depth * 12;
    context.fillStyle = palette.text;
    context.font = kFonts.name;
    const suffix = track.first ? " ①" : "";
    context.fillText(
      this.fittingText(visible(track.name), gutter - left - 8 - (suffix ? 16 : 0)) + suffix,
      left,
      row.top + kRowPadding + kLaneHeight / 2 + 0.5
    );
    context.fillStyle = palette.quiet;
    context.font = kFonts.small;
    row.counters.forEach((counter, number) => {
      const range = `${grouped(counter.least)} to ${grouped(counter.most)}`;
      context.fillText(
        this.fittingText(`${visible(counter.name)}, ${range}`, gutter - left - 18),
        left + 10,
        this.rows.counterTop(row, number) + kCounterHeight / 2
      );
    });
    this.fillBox(palette.line, gutter - 1, row.top, 1, row.height);
  }

  // Returns the text cut to what fits into `room` pixels.
  fittingText(text, room) {
    return this.cached(text + "\0" + room, () => {
      const fits = most => this.context.measureText(shortened(text, most)).width <= room;
      let most = Math.min(text.length, 60);
      if (fits(most)) return shortened(text, most);
      let least = 3;
      while (least + 1 < most) {
        const middle = (least + most) >> 1;
        if (fits(middle)) least = middle;
        else most = middle;
      }
      return shortened(text, least);
    });
  }

  visibleString(index) {
    return this.cached(index, () => visible(this.report.string(index).slice(0, 300)));
  }

  // Makes a text only once; forgets all of them when they become too many.
  cached(key, make) {
    let text = this.texts.get(key);
    if (text !== undefined) return text;
    text = make();
    if (this.texts.size > kMostCachedTexts) this.texts.clear();
    this.texts.set(key, text);
    return text;
  }

  // Dims the time outside of the window.
  dimOutside() {
    const {window} = this.report;
    if (!window || window.from === undefined) return;
    const {context, gutter, width, height} = this;
    context.globalAlpha = 0.55;
    const begin = Math.min(this.x(window.from), width);
    const end = Math.max(this.x(window.to), gutter);
    if (begin > gutter)
      this.fillBox(this.palette.panel, gutter, kRulerHeight, begin - gutter, height - kRulerHeight);
    if (end < width)
      this.fillBox(this.palette.panel, end, kRulerHeight, width - end, height - kRulerHeight);
    context.globalAlpha = 1;
  }

  *drawRuler() {
    const {context, palette, view, width, gutter} = this;
    this.fillBox(palette.panel, 0, 0, width, kRulerHeight);
    this.fillBox(palette.line, 0, kRulerHeight - 1, width, 1);
    context.font = kFonts.text;
    context.fillStyle = palette.quiet;
    context.fillText(
      this.report.times.counts ? "counts before the end" : "time before the end",
      6,
      kRulerHeight / 2,
      gutter - 12
    );
    yield;
    const step = roundStep((view.to - view.from) / Math.max(2, (width - gutter) / 110));
    const around = Math.max(Math.abs(view.from), Math.abs(view.to));
    for (
      let time = Math.ceil(view.from / step) * step, n = 0;
      time <= view.to && n < 100;
      time += step, ++n
    ) {
      const x = Math.round(this.x(time));
      this.fillBox(palette.line, x, kRulerHeight - 6, 1, 6);
      context.fillStyle = palette.quiet;
      const words = Math.abs(time) < step / 2 ? "end" : this.report.times.mark(time, step, around);
      context.fillText(words, Math.min(x + 4, width - 6 * words.length - 4), kRulerHeight / 2);
      yield;
    }
  }

  // Draws arrows to the selected wait, from who ends it, or should.
  drawArrows(rows, selection) {
    const {context, palette, view, width, height, gutter} = this;
    const flows = flowsOf(this.report, selection);
    if (flows.length === 0) return;
    context.save();
    context.beginPath();
    context.rect(gutter, kRulerHeight, width - gutter, height - kRulerHeight);
    context.clip();
    context.strokeStyle = context.fillStyle = palette.accent;
    context.lineWidth = 2;
    for (const flow of flows) {
      const from = rows.ofTrack(flow.from_track);
      const to = rows.ofTrack(flow.to_track);
      if (!from || !to) continue;
      const y = row => kRulerHeight - view.scroll + row.top + kRowPadding + kLaneHeight / 2;
      const x = time => Math.max(gutter + 6, Math.min(this.x(time), width - 6));
      this.drawArrow(x(flow.from_time), y(from), x(flow.to_time), y(to));
    }
    context.restore();
  }

  drawArrow(x0, y0, x1, y1) {
    const {context} = this;
    const up = y1 < y0 ? 1 : -1;
    context.beginPath();
    context.arc(x0, y0, 3, 0, 2 * Math.PI);
    context.fill();
    context.beginPath();
    context.moveTo(x0, y0);
    context.lineTo(x0, (y0 + y1) / 2);
    context.lineTo(x1, (y0 + y1) / 2);
    context.lineTo(x1, y1 + up * 5);
    context.stroke();
    context.beginPath();
    context.moveTo(x1, y1);
    context.lineTo(x1 - 4.5, y1 + up * 8);
    context.lineTo(x1 + 4.5, y1 + up * 8);
    context.fill();
  }

  drawTimeLines(selection) {
    const {context, palette, view, height, gutter} = this;
    const line = (time, colour, dash, label) => {
      if (time === undefined || time < view.from || time > view.to) return;
      const x = Math.round(this.x(time)) + 0.5;
      context.strokeStyle = colour;
      context.lineWidth = 1;
      context.setLineDash(dash);
      context.beginPath();
      context.moveTo(x, label ? 4 : kRulerHeight);
      context.lineTo(x, height);
      context.stroke();
      context.setLineDash([]);
      if (!label) return;
      context.font = kFonts.strong;
      const wide = context.measureText(label).width + 8;
      const left = Math.min(x, this.width - wide);
      this.fillBox(colour, left, 3, wide, 16);
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

// Returns 1, 2 or 5 times a power of ten, not below `least`.
function roundStep(least) {
  const power = 10 ** Math.floor(Math.log10(least));
  return power * [1, 2, 5, 10].find(factor => factor * power >= least * 0.999);
}
