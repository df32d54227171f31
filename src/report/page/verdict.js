// The top of the page: what hangs, how sure that is and why, what is missing, who waits for whom.

const kConfidenceTexts = {
  possible: "possible: a guess that nothing acts on",
  likely: "likely: nothing seen speaks against it",
  certain: "certain: it cannot be otherwise",
};

function verdictPart(report, troubles) {
  const data = report.data;
  const section = element(
    "section",
    {id: "verdict", "aria-labelledby": "headline"},
    verdictHead(report),
    element("div", {class: "basis"}, evidenceSection(data), lostSection(data, troubles))
  );
  const lines = findingLines(data);
  section.append(
    ...[lines, subjectTable(report, lines !== undefined), lastOutput(report)].filter(Boolean)
  );
  return section;
}

// Shows the newest lines of each stream.
function lastOutput(report) {
  const outputs = report.data
    .objects("last_output")
    .filter(output => output.list("lines").length > 0);
  if (outputs.length === 0) return undefined;
  return element(
    "div",
    {id: "last-output"},
    element("h2", {}, "Printed last"),
    outputs.slice(0, 8).map(output => {
      const age = output.number("age_s");
      const unfinished = output.flag("unfinished") ? ", without an end of line" : "";
      return [
        element(
          "p",
          {class: "quiet"},
          targetText(output.text("stream"), {most: 48}),
          age === undefined ? "" : [", ", report.times.length(-age * 1e9), " before the verdict"],
          unfinished
        ),
        element(
          "pre",
          {},
          output
            .texts("lines")
            .slice(-5)
            .map(text => shortText(text, 240))
            .join("\n")
        ),
      ];
    })
  );
}

// Shows who waits for whom in the words of the first finding, where there is no graph.
function findingLines(data) {
  const lines = data.objects("findings")[0]?.texts("lines") ?? [];
  if (lines.length === 0 || (data.object("graph")?.list("nodes") ?? []).length > 0)
    return undefined;
  return element(
    "div",
    {id: "who-says"},
    element("h2", {}, "Who waits for whom"),
    element(
      "pre",
      {},
      lines
        .slice(0, 12)
        .map(text => shortText(text, 300))
        .join("\n")
    )
  );
}

function verdictHead(report) {
  const data = report.data;
  const headline = data.text("headline") || "Nobody reached a verdict on this recording.";
  const confidence = data.text("confidence");
  const hang = data.flag("hang");
  const state = data.text("state");
  return element(
    "header",
    {},
    element(
      "p",
      {class: "program"},
      targetText(data.text("title") || "a recording", {most: 160}),
      windowWords(report)
    ),
    element("h1", {id: "headline"}, targetText(headline, {most: 240})),
    element(
      "p",
      {class: "badges"},
      stateBadge(hang, state),
      confidence &&
        element("span", {id: "confidence"}, targetText(kConfidenceTexts[confidence] ?? confidence))
    )
  );
}

// A state that would be a hang if it were surer is "perhaps a hang", not "no hang".
function stateBadge(hang, state) {
  const unsure = !hang && ["looping", "silent", "starved", "deadlock", "fault"].includes(state);
  const well = !hang && ["progressing", "slow", "finished"].includes(state);
  const words = [
    hang ? "hang" : unsure ? "perhaps a hang" : well ? "no hang" : "",
    targetText(state, {most: 24}),
  ];
  const badgeClass = hang ? "hang" : well ? "well" : "";
  return element(
    "span",
    {class: "badge " + badgeClass, id: "state"},
    words[0],
    words[0] && state ? ": " : "",
    words[1]
  );
}

function windowWords(report) {
  const {window, times} = report;
  if (!window || window.from === undefined) return "";
  const cores = report.tracks.filter(track => ["core", "cpu"].includes(track.kind)).length;
  const limit = window.limited_by ? [", limited by ", targetText(window.limited_by)] : "";
  return [
    " · the last ",
    times.length(window.to - window.from),
    cores > 0 ? " of " + plural(cores, "core") : "",
    limit,
  ];
}

function evidenceSection(data) {
  const rests =
    data.list("evidence").length > 0
      ? data.texts("evidence")
      : (data.objects("findings")[0]?.texts("evidence") ?? []);
  const doubts = data.texts("doubts");
  return element(
    "div",
    {id: "evidence"},
    element("h2", {}, "What it rests on"),
    rests.length > 0 ? textList(rests) : element("p", {class: "quiet"}, "No evidence is given."),
    doubts.length > 0 && [element("h2", {}, "Not certain"), textList(doubts)]
  );
}

function lostSection(data, troubles) {
  const lost = data.texts("lost");
  const notes = data.texts("notes");
  const box = element(
    "div",
    {id: "trouble-box", hidden: true},
    element("h2", {}, "Trouble with the data"),
    element("ul", {id: "troubles"})
  );
  const show = () => {
    box.hidden = troubles.list.length === 0;
    box
      .querySelector("ul")
      .replaceChildren(...troubles.list.map(text => targetText(text, {tag: "li", most: 400})));
  };
  troubles.onChange = show;
  show();
  return element(
    "div",
    {id: "lost"},
    element("h2", {}, "What was lost"),
    lost.length > 0 ? textList(lost) : element("p", {class: "quiet"}, "Nothing that is known of."),
    box,
    notes.length > 0 &&
      element(
        "details",
        {id: "notes"},
        element("summary", {class: "quiet"}, "Recording notes"),
        textList(notes)
      )
  );
}

// Returns the subjects of the waits-for graph, and the tracks and loops that it does not have.
// Those in a cycle come first.
function subjects(report) {
  const graph = report.data.object("graph");
  const cycle = new Set(graph ? graph.list("cycle").map(String) : []);
  const nodes = (graph?.objects("nodes") ?? []).map(node => ({
    name: node.text("name") || node.text("id"),
    state: node.text("state"),
    since: node.number("since"),
    waits_for: node.text("waits_for"),
    place: node.text("place"),
    also: node.text("also"),
    first: node.flag("first"),
    cycle: cycle.has(node.text("id")),
  }));
  const named = new Set(nodes.flatMap(node => [node.name, node.also]));
  const add = node => {
    if (!named.has(node.name)) nodes.push({first: false, cycle: false, ...node});
    named.add(node.name);
  };
  for (const track of report.tracks) {
    if (track.hasState)
      add({
        name: track.name,
        state: track.state,
        since: track.since,
        waits_for: track.what,
        place: track.place,
        first: track.first,
      });
  }
  for (const loop of report.data.objects("loops")) {
    const head = loop.objects("places")[0];
    const duration = loop.number("for_s");
    const place = head ? [placeName(head), head.text("source")].filter(Boolean).join(", ") : "";
    add({
      name: loopName(report, loop),
      state: "looping",
      since: duration === undefined || report.times.counts ? undefined : -duration * 1e9,
      since_cycle: sinceCycle(loop),
      waits_for: roundsText(loop),
      place,
    });
  }
  const rank = node =>
    (node.cycle ? 0 : 4) + (node.first ? 0 : 2) + (kStuckStates.includes(node.state) ? 0 : 1);
  return nodes.sort((a, b) => rank(a) - rank(b));
}

const kMostSubjects = 12;

function subjectTable(report, waitsShown) {
  const all = subjects(report);
  if (all.length === 0) return undefined;
  const waiting = all.some(node => node.state === "waiting");
  const headings = [
    "Who",
    "State",
    waiting ? "Waits for" : "What it does",
    "Where in the code",
    "Since (before the end)",
  ];
  const row = node => [
    [
      targetText(node.name, {most: 48}),
      node.also ? [" ", targetText(node.also, {most: 48, class: "quiet"})] : "",
      node.first ? element("span", {class: "badge first"}, "first to stop") : "",
      node.cycle ? element("span", {class: "badge hang"}, "cycle") : "",
    ],
    element(
      "span",
      {class: "state"},
      stateMark(node.state),
      targetText(node.state || "?", {most: 24})
    ),
    targetText(node.waits_for, {most: 72}),
    code(node.place, {most: 72}),
    [
      node.since === undefined
        ? element("span", {class: "quiet"}, "not known")
        : report.times.length(node.since),
      node.since_cycle ? element("span", {class: "quiet"}, ", ", node.since_cycle) : "",
    ],
  ];
  const box = element(
    "div",
    {id: "who"},
    element("h2", {}, waiting && !waitsShown ? "Who waits for whom" : "Who is where")
  );
  box.append(
    table(
      "Who waits for whom, since when, and where in the code",
      headings,
      all.slice(0, kMostSubjects).map(row),
      {class: "who"}
    )
  );
  if (all.length > kMostSubjects) {
    const rest = all.slice(kMostSubjects);
    box.append(
      foldedLazily(plural(rest.length, "more", "more"), () =>
        table("The others", headings, rest.map(row), {class: "who"})
      )
    );
  }
  return box;
}

// Puts a sign beside the word, since colour alone is not enough.
function stateMark(state) {
  const sign =
    {
      running: "▶",
      looping: "↻",
      ready: "▷",
      corrupt: "✗",
      waiting: "‖",
      halted: "■",
      silent: "○",
      idle: "·",
      ended: "✓",
      paused: "❚❚",
      unused: "–",
    }[state] ?? "?";
  return element(
    "span",
    {class: "mark " + (/^[a-z]+$/.test(state) ? state : ""), "aria-hidden": "true"},
    sign
  );
}
