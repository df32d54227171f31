// Where each row lies, from the top of the first.

const kRuler = 26;
const kPad = 3;
const kLane = 15;
const kNestedLane = 10;
const kTicks = 9;
const kLeastWide = 3; // pixels of what must not be overlooked

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
