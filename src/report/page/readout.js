// Describes in words what the timeline shows at one point.

// `found` has track, depth, index and time, as Timeline.findAt returns them.
function describe(report, found) {
  const {track, depth, index, time} = found;
  const {times} = report;
  const name = shortText(track.name);
  if (index < 0)
    return [
      name,
      track.state,
      visible(track.what),
      shortText(track.place),
      gapAt(report, track, time),
    ]
      .filter(Boolean)
      .join(" · ");
  if (depth === kEventDepth)
    return [name, times.exact(time), shortText(report.eventText(track, index), 600)].join(" · ");
  if (depth <= kFirstCounterDepth) {
    const counter = track.counters[kFirstCounterDepth - depth];
    const value = `${shortText(counter.name)} ${grouped(counter.value[index])}`;
    const since = times.exact(counter.time[index]);
    const range = `between ${grouped(counter.least)} and ${grouped(counter.most)}`;
    return `${name} · ${value} from ${since} on · ${range}`;
  }
  const lane = track.lanes[depth];
  const from = lane.from[index],
    to = lane.to[index];
  const text = visible(report.string(lane.text[index]));
  return [
    name,
    kStateNames[lane.state[index]] + (text ? " " + shortened(text, 300) : ""),
    `${times.length(to - from)}, from ${times.exact(from)} to ${times.exact(to)}`,
    flowWords(report, found),
    gapAt(report, track, time),
  ]
    .filter(Boolean)
    .join(" · ");
}

function gapAt(report, track, time) {
  if (time === undefined) return "";
  const gap = track.gaps.find(each => time >= each.from && time <= each.to);
  if (gap) {
    const why = [gap.why, gap.amount].filter(Boolean).map(visible).join(", ");
    return `gap of ${report.times.length(gap.to - gap.from)}: ${why}`;
  }
  if (track.stale.some(([from, to]) => time >= from && time <= to))
    return "stale: older than the window's other cores";
  return track.idle.some(([from, to]) => time >= from && time <= to) ? "idle" : "";
}
