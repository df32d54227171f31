// Describes in words what the timeline shows at one point.

// `found` has track, depth, index and time, as Timeline.findAt returns them.
function describe(report, found) {
  const {track, depth, index, time} = found;
  const {times} = report;
  const name = shortened(visible(track.name));
  if (index < 0)
    return [
      name,
      track.state,
      visible(track.what),
      shortened(visible(track.place)),
      gapAt(report, track, time),
    ]
      .filter(Boolean)
      .join(" · ");
  if (depth === kEventDepth)
    return `${name} · ${times.exact(time)} · ${shortened(visible(report.eventText(track, index)), 600)}`;
  if (depth <= kFirstCounterDepth) {
    const counter = track.counters[kFirstCounterDepth - depth];
    return `${name} · ${shortened(visible(counter.name))} ${grouped(counter.value[index])} from ${times.exact(counter.time[index])} on · between ${grouped(counter.least)} and ${grouped(counter.most)}`;
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
  if (gap)
    return `gap of ${report.times.length(gap.to - gap.from)}: ${[visible(gap.why), visible(gap.amount)].filter(Boolean).join(", ")}`;
  if (track.stale.some(([from, to]) => time >= from && time <= to))
    return "stale: older than the window's other cores";
  return track.idle.some(([from, to]) => time >= from && time <= to) ? "idle" : "";
}
