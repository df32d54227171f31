// Where there is more than a canvas can be told of in time, pixels are set by hand: a strip holds a line of them for
// each crowded lane, and several for the events of a row.

class Strip {
  constructor() {
    this.canvas = document.createElement("canvas");
    this.context = this.canvas.getContext("2d");
  }

  // For as many lines of `width` pixels as are visible.
  begin(width, lines) {
    if (this.canvas.width !== width || this.canvas.height < lines) {
      this.canvas.width = Math.max(1, width);
      this.canvas.height = Math.max(this.canvas.height, lines, 1);
      this.image = this.context.createImageData(this.canvas.width, this.canvas.height);
      this.pixels = new Uint32Array(this.image.data.buffer);
    }
    this.width = this.canvas.width;
    this.used = 0;
  }

  // The first of `count` lines that are clear.
  take(count) {
    const first = this.used;
    this.used += count;
    this.pixels.fill(0, first * this.width, this.used * this.width);
    return first;
  }

  // To be called before `draw`, once all lines are filled.
  end() {
    if (this.used > 0) this.context.putImageData(this.image, 0, 0, 0, 0, this.width, this.used);
  }

  draw(context, first, count, x, y, width, height) {
    context.imageSmoothingEnabled = false;
    context.drawImage(this.canvas, 0, first, this.width, count, x, y, width, height);
  }
}

// "#aabbcc" as a pixel of an image, on a machine that keeps the lowest byte first, as all do.
function pixelOf(colour) {
  const rgb = parseInt(colour.slice(1), 16);
  return (0xff000000 | ((rgb & 0xff) << 16) | (rgb & 0xff00) | (rgb >> 16)) >>> 0;
}

const kLong = 24; // pixels from which on a span is shown for itself

// One state for each pixel of a line; the numbers of the long spans go to `long`.
function crowdLine(lane, first, last, view, scale, strip, colours, totals, long) {
  const line = strip.take(1);
  const {width, pixels} = strip;
  let i = first;
  for (let x = 0; x < width; ++x) {
    const end = advance(lane.from, view.from + (x + 1) / scale, i, last);
    if (end > i) pixels[line * width + x] = colours[lane.state_of(i, end, totals)];
    // Nothing begins in this pixel: what began before may still last.
    else if (i > first && lane.to[i - 1] > view.from + x / scale) pixels[line * width + x] = colours[lane.state[i - 1]];
    if (end > i && (lane.to[end - 1] - Math.max(view.from, lane.from[end - 1])) * scale >= kLong) long.push(end - 1);
    i = end;
  }
  return line;
}

// Ticks, the higher the more of them there are in a pixel.
function tickLines(times, view, scale, strip, colour, height) {
  const line = strip.take(height);
  const {width, pixels} = strip;
  let i = firstFrom(times, view.from);
  const last = firstAfter(times, view.to);
  const few = last - i <= width;
  while (i < last) {
    const x = Math.min(width - 1, Math.floor((times[i] - view.from) * scale));
    const end = Math.max(i + 1, advance(times, view.from + (x + 1) / scale, i, last));
    const tall = few ? height : Math.min(height, 3 + Math.floor(Math.log2(end - i) / 2));
    for (let y = height - tall; y < height; ++y) pixels[(line + y) * width + x] = colour;
    i = end;
  }
  return line;
}

// Like firstFrom, for steps that are mostly short.
function advance(values, time, begin, end) {
  let step = 1;
  while (begin + step < end && values[begin + step] < time) step *= 2;
  return firstFrom(values, time, begin + (step >> 1), Math.min(end, begin + step));
}
