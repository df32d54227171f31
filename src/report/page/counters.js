// Numbers that change, as thin steps in the row of their core; and who ends a wait, or should: an arrow to who waits.

const kCounterHeight = 14; // pixels of a row
const kMostCounters = 6; // of a row
const kCounterBlock = 64;

class Counter {
  constructor(fields) {
    this.name = fields.text("name") || "counter";
    this.omitted = fields.number("omitted") ?? 0;
    const {time, value} = columns(fields, {time: Float64Array, value: Float64Array});
    this.time = time;
    this.value = value.map(bounded);
    this.summarise();
  }

  // The least and the most of each block, so that a pixel of many values costs little.
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

  // Which value holds at a time; -1: none is known yet.
  at(time) {
    return upperBound(this.time, time) - 1;
  }

  // low and high: of the values [first, last).
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

// Steps of a counter in `height` lines of a strip: from each pixel's value up or down to the next one's.
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

// Who provides, or holds, what somebody waits for.
class Flows {
  constructor(fields) {
    const none = {to_time: [], to_track: [], from_time: [], from_track: [], text: []};
    this.all = fields
      ? columns(fields, {
          to_time: Float64Array,
          to_track: Uint32Array,
          from_time: Float64Array,
          from_track: Uint32Array,
          text: Uint32Array,
        })
      : none;
    this.to = new Map(); // by the track of who waits: numbers, in the order of time
    this.all.to_track.forEach((track, i) => {
      if (this.to.has(track)) this.to.get(track).push(i);
      else this.to.set(track, [i]);
    });
  }

  // Those that end a wait of this track in (from, to], at most `most` of them, the newest.
  endingWait(track, from, to, most) {
    const {to_time, to_track, from_time, from_track, text} = this.all;
    const numbers = this.to.get(track) ?? [];
    const first = partitionPoint(i => to_time[numbers[i]] > from, numbers.length);
    const last = partitionPoint(i => to_time[numbers[i]] > to, numbers.length);
    return numbers.slice(Math.max(first, last - most), last).map(i => ({
      from_track: from_track[i],
      from_time: bounded(from_time[i]),
      to_track: to_track[i],
      to_time: bounded(to_time[i]),
      text: text[i],
    }));
  }
}

// The first number below `end` of which something is true, as of all behind it.
function partitionPoint(is, end) {
  let begin = 0;
  while (begin < end) {
    const middle = (begin + end) >> 1;
    if (is(middle)) end = middle;
    else begin = middle + 1;
  }
  return begin;
}

const kMostArrows = 16;
const kEndingStates = [kState.waiting, kState.ready]; // what somebody else ends

// The flows of the wait that is selected; none where something else is.
function flowsOf(report, selection) {
  const lane =
    selection?.depth >= 0 && selection.index >= 0
      ? selection.track.lanes[selection.depth]
      : undefined;
  if (!lane || !kEndingStates.includes(lane.state[selection.index])) return [];
  return report.flows.endingWait(
    selection.track.id,
    lane.from[selection.index],
    lane.to[selection.index],
    kMostArrows
  );
}

function flowWords(report, selection) {
  return flowsOf(report, selection)
    .slice(-3)
    .map(
      flow =>
        `${shortened(visible(report.string(flow.text)), 120)} ← ${shortened(visible(report.trackName(flow.from_track)), 60)}`
    )
    .join(", ");
}
