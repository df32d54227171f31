// A strip is an image whose pixels are set by hand, where the rectangles would be too many for a
// canvas. It holds a line for each crowded lane and several lines for the events of a row. A line
// stays as long as the same time is shown.

class Strip {
  constructor() {
    this.canvas = document.createElement("canvas");
    this.context = this.canvas.getContext("2d");
    this.used = this.flushed = 0;
  }

  // Makes room for `lines` lines of `width` pixels. The former lines are gone.
  resize(width, lines) {
    this.canvas.width = this.width = Math.max(1, width);
    this.canvas.height = this.capacity = Math.max(1, lines);
    this.image = this.context.createImageData(this.width, this.capacity);
    this.pixels = new Uint32Array(this.image.data.buffer);
    this.used = this.flushed = 0;
  }

  clear() {
    this.pixels.fill(0, 0, this.used * this.width);
    this.used = this.flushed = 0;
  }

  // Returns the first of `count` clear lines. The caller makes sure that there is room.
  reserve(count) {
    const first = this.used;
    this.used += count;
    return first;
  }

  // Must be called between filling and drawing. One call for all lines costs little.
  flush() {
    if (this.used > this.flushed)
      this.context.putImageData(
        this.image,
        0,
        0,
        0,
        this.flushed,
        this.width,
        this.used - this.flushed
      );
    this.flushed = this.used;
  }

  draw(context, first, count, x, y, width, height) {
    context.imageSmoothingEnabled = false;
    context.drawImage(this.canvas, 0, first, this.width, count, x, y, width, height);
  }
}

// Returns "#aabbcc" as a pixel of an image on a little-endian machine, as all are.
function pixelOf(colour) {
  const rgb = parseInt(colour.slice(1), 16);
  return (0xff000000 | ((rgb & 0xff) << 16) | (rgb & 0xff00) | (rgb >> 16)) >>> 0;
}

const kLongSpanWidth = 24; // A span of so many pixels is drawn by itself.
const kPieceWidth = 128; // pixels of a line that are set without a pause

// Fills a line, one state for each pixel, and pauses after each piece of it. Adds the indices of
// the long spans to `longSpans`. Returns the line.
function* fillLane(lane, first, last, view, scale, strip, colours, longSpans) {
  const line = strip.reserve(1);
  for (let x = 0, i = first; x < strip.width; x += kPieceWidth) {
    i = fillLanePiece(
      lane,
      i,
      last,
      x,
      Math.min(strip.width, x + kPieceWidth),
      view,
      scale,
      strip,
      line,
      colours,
      longSpans
    );
    yield;
  }
  return line;
}

// Fills the pixels [x, end) of a line. `i` is the first span that begins in them or later. Returns
// the first span that begins after them.
function fillLanePiece(lane, i, last, x, end, view, scale, strip, line, colours, longSpans) {
  const {width, pixels} = strip;
  for (; x < end; ++x) {
    const next = advance(lane.from, view.from + (x + 1) / scale, i, last);
    if (next > i) pixels[line * width + x] = colours[lane.dominantState(i, next)];
    // No span begins in this pixel, but the one before may still last.
    else if (i > 0 && lane.to[i - 1] > view.from + x / scale)
      pixels[line * width + x] = colours[lane.state[i - 1]];
    if (
      next > i &&
      (lane.to[next - 1] - Math.max(view.from, lane.from[next - 1])) * scale >= kLongSpanWidth
    )
      longSpans.push(next - 1);
    i = next;
  }
  return i;
}

// Fills `height` lines with ticks; a tick is taller where its pixel has more events.
function fillTicks(times, view, scale, strip, colour, height) {
  const line = strip.reserve(height);
  const {width, pixels} = strip;
  let i = lowerBound(times, view.from);
  const last = upperBound(times, view.to);
  const few = last - i <= width;
  while (i < last) {
    const x = Math.min(width - 1, Math.floor((times[i] - view.from) * scale));
    const end = Math.max(i + 1, advance(times, view.from + (x + 1) / scale, i, last));
    const tall = few ? height : Math.min(height, 3 + ((31 - Math.clz32(end - i)) >> 1));
    for (let at = (line + height - tall) * width + x, y = 0; y < tall; ++y, at += width)
      pixels[at] = colour;
    i = end;
  }
  return line;
}

// Does what lowerBound does, faster where the result is near `begin`.
function advance(values, time, begin, end) {
  let step = 1;
  while (begin + step < end && values[begin + step] < time) step *= 2;
  return lowerBound(values, time, begin + (step >> 1), Math.min(end, begin + step));
}
