// The rows of the timeline: where each lies, in pixels from the top of the first.

const kRulerHeight = 26;
const kRowPadding = 3;
const kLaneHeight = 15;
const kNestedLaneHeight = 10;
const kTickHeight = 9;
const kLeastWidth = 3; // of what a reader must not overlook
// The depths of a row: its lanes count from 0 up, its counters from kFirstCounterDepth down.
const kEventDepth = -1;
const kFirstCounterDepth = -2;

class Rows {
  constructor(tracks) {
    this.list = [];
    let top = 0;
    for (const track of tracks) {
      const lanes = Math.max(1, track.lanes.length);
      const ticks = track.events.time.length > 0;
      const counters = track.counters.slice(0, kMostCounters);
      const height =
        2 * kRowPadding +
        kLaneHeight +
        (lanes - 1) * kNestedLaneHeight +
        counters.length * kCounterHeight +
        (ticks ? kTickHeight + 1 : 0);
      this.list.push({track, top, height, ticks, counters});
      top += height;
    }
    this.tops = Float64Array.from(this.list, row => row.top);
    this.height = top;
  }

  // Returns the row at `y` from the top of the first.
  at(y) {
    return this.list[Math.max(0, upperBound(this.tops, y) - 1)];
  }

  laneTop(row, depth) {
    return (
      row.top + kRowPadding + (depth === 0 ? 0 : kLaneHeight + (depth - 1) * kNestedLaneHeight)
    );
  }

  counterTop(row, number) {
    return this.laneTop(row, Math.max(1, row.track.lanes.length)) + number * kCounterHeight;
  }

  // Returns the row of a track; undefined where it is not shown.
  ofTrack(track) {
    this.rowByTrack ??= new Map(this.list.map(row => [row.track.id, row]));
    return this.rowByTrack.get(track);
  }

  // Returns the depth of the lane, the events or the counter at `y`.
  depthAt(row, y) {
    const below = y - row.top - kRowPadding;
    if (row.ticks && below >= row.height - 2 * kRowPadding - kTickHeight - 1) return kEventDepth;
    const counter = Math.floor((y - this.counterTop(row, 0)) / kCounterHeight);
    if (counter >= 0 && row.counters.length > 0)
      return kFirstCounterDepth - Math.min(counter, row.counters.length - 1);
    return below < kLaneHeight
      ? 0
      : Math.min(
          1 + Math.floor((below - kLaneHeight) / kNestedLaneHeight),
          Math.max(0, row.track.lanes.length - 1)
        );
  }
}
