// Where each row lies, from the top of the first.

const kRuler = 26;
const kPad = 3;
const kLane = 15;
const kNestedLane = 10;
const kTicks = 9;
const kFirstCounter = -2; // as depths are
const kLeastWide = 3; // pixels of what must not be overlooked

class Rows {
  constructor(tracks) {
    this.list = [];
    let top = 0;
    for (const track of tracks) {
      const lanes = Math.max(1, track.lanes.length);
      const ticks = track.events.time.length > 0;
      const counters = track.counters.slice(0, kMostCounters);
      const height =
        2 * kPad +
        kLane +
        (lanes - 1) * kNestedLane +
        counters.length * kCounter +
        (ticks ? kTicks + 1 : 0);
      this.list.push({track, top, height, ticks, counters});
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

  counter_top(row, number) {
    return this.lane_top(row, Math.max(1, row.track.lanes.length)) + number * kCounter;
  }

  // The row of a track; nothing: it is not shown.
  of(track) {
    this.of_track ??= new Map(this.list.map(row => [row.track.id, row]));
    return this.of_track.get(track);
  }

  // Which lane `y` is in; -1: in the events; -2 and less: in a counter, kFirstCounter minus its number.
  depth_at(row, y) {
    const below = y - row.top - kPad;
    if (row.ticks && below >= row.height - 2 * kPad - kTicks - 1) return -1;
    const counter = Math.floor((y - this.counter_top(row, 0)) / kCounter);
    if (counter >= 0 && row.counters.length > 0)
      return kFirstCounter - Math.min(counter, row.counters.length - 1);
    return below < kLane
      ? 0
      : Math.min(
          1 + Math.floor((below - kLane) / kNestedLane),
          Math.max(0, row.track.lanes.length - 1)
        );
  }
}
