// Flows: who ends a wait, or should. The timeline draws an arrow from there to the waiter.

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
    this.to = new Map(); // by the waiter's track: indices of flows, in the order of time
    this.all.to_track.forEach((track, i) => {
      if (this.to.has(track)) this.to.get(track).push(i);
      else this.to.set(track, [i]);
    });
  }

  // Returns the newest flows, at most `most`, that end a wait of this track in (from, to].
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

// Returns the first number below `end` for which is() holds, as it does for all numbers after it.
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
const kEndingStates = [kState.waiting, kState.ready]; // Another subject ends these.

// Returns the flows of the selected wait; none where something else is selected.
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
        shortText(report.string(flow.text), 120) +
        " ← " +
        shortText(report.trackName(flow.from_track), 60)
    )
    .join(", ");
}
