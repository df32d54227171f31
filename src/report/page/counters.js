// Counters: numbers that change over time, drawn as thin steps in the row of their core.

const kCounterHeight = 14; // pixels
const kMostCounters = 6; // drawn in a row
const kCounterBlock = 64; // values

class Counter {
  constructor(fields) {
    this.name = fields.text("name") || "counter";
    this.omitted = fields.number("omitted") ?? 0;
    const {time, value} = columns(fields, {time: Float64Array, value: Float64Array});
    this.time = time;
    this.value = value.map(bounded);
    this.summarise();
  }

  // Keeps the bounds of each block of values, so that a pixel of many values costs little.
  summarise() {
    const blocks = Math.ceil(this.value.length / kCounterBlock);
    this.lows = new Float64Array(blocks).fill(Infinity);
    this.highs = new Float64Array(blocks).fill(-Infinity);
    for (let i = 0; i < this.value.length; ++i) {
      const block = Math.floor(i / kCounterBlock);
      this.lows[block] = Math.min(this.lows[block], this.value[i]);
      this.highs[block] = Math.max(this.highs[block], this.value[i]);
    }
    this.least = this.lows.reduce((a, b) => Math.min(a, b), 0);
    this.most = this.highs.reduce((a, b) => Math.max(a, b), 0);
  }

  // Returns the index of the value that holds at a time; -1 before the first.
  at(time) {
    return upperBound(this.time, time) - 1;
  }

  // Sets low and high to the bounds of the values [first, last).
  findBounds(first, last) {
    this.low = Infinity;
    this.high = -Infinity;
    for (let i = first; i < last;) {
      const whole = i % kCounterBlock === 0 && i + kCounterBlock <= last;
      this.low = Math.min(this.low, whole ? this.lows[i / kCounterBlock] : this.value[i]);
      this.high = Math.max(this.high, whole ? this.highs[i / kCounterBlock] : this.value[i]);
      i += whole ? kCounterBlock : 1;
    }
  }
}

// Fills `height` lines of a strip with the steps of a counter, from each pixel's value up or down
// to the next one's. Returns the first line.
function fillCounter(counter, view, scale, strip, colour, height) {
  const line = strip.reserve(height);
  const {width, pixels} = strip;
  const {time, value, least, most} = counter;
  const y = number => Math.round(((most - number) / (most - least || 1)) * (height - 1));
  let i = lowerBound(time, view.from);
  let held = i > 0 ? value[i - 1] : undefined;
  for (let x = 0; x < width; ++x) {
    const next = advance(time, view.from + (x + 1) / scale, i, time.length);
    counter.findBounds(i, next);
    const low = Math.min(counter.low, held ?? Infinity);
    if (low === Infinity) continue;
    const bottom = y(low);
    for (let at = y(Math.max(counter.high, held ?? -Infinity)); at <= bottom; ++at)
      pixels[(line + at) * width + x] = colour;
    if (next > i) held = value[next - 1];
    i = next;
  }
  return line;
}
