// Who ends a wait, or should: an arrow to who waits.

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
