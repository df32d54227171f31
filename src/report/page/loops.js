// Draws the loop that a core is in: its places in a circle, and how often the core went round.

const kMostOnACircle = 12;

function loopsPart(report) {
  const loops = report.data.objects("loops");
  if (loops.length === 0) return undefined;
  const few = loops.slice(0, 8);
  const rest = loops.slice(8);
  return part(
    "loops",
    loops.length === 1 ? "The loop" : "The loops",
    element(
      "div",
      {class: "loops"},
      few.map(loop => loopFigure(report, loop))
    ),
    rest.length > 0 &&
      foldedLazily(plural(rest.length, "more loop"), () =>
        element(
          "div",
          {class: "loops"},
          rest.map(loop => loopFigure(report, loop))
        )
      )
  );
}

const kBasisTexts = {
  values: "registers and addresses repeat exactly",
  body: "the code between the places reproduces its own state",
  places: "only the places repeat; nothing tells a spin from a computation",
  lines: "log lines repeat exactly, time stamps aside",
};

function loopName(report, loop) {
  return loop.text("name") || report.trackName(loop.number("track")) || "a core";
}

function placeName(place) {
  return place.text("text") || place.text("function") || place.text("pc") || "?";
}

// What the core did last before the loop.
function wayList(loop) {
  const steps = loop.objects("way");
  if (steps.length === 0) return undefined;
  return element(
    "div",
    {class: "way"},
    element("p", {class: "quiet"}, "How it got there, the oldest first:"),
    element(
      "ol",
      {},
      steps.slice(-20).map(step =>
        element(
          "li",
          {},
          code(placeName(step), {most: 120}),
          " ",
          element("span", {class: "quiet"}, targetText(step.text("source"))),
          step
            .texts("callers")
            .slice(0, 8)
            .map(caller => [" ← ", code(caller, {most: 60})])
        )
      )
    ),
    element("p", {class: "quiet"}, "The loop:")
  );
}

function loopFigure(report, loop) {
  const name = loopName(report, loop);
  const places = loop.objects("places");
  const rounds = roundsText(loop);
  const duration = loop.number("for_s");
  const facts = [
    rounds,
    duration !== undefined &&
      `for ${report.times.counts ? `${duration} s` : report.times.length(duration * 1e9)}`,
    sinceCycle(loop),
    kBasisTexts[loop.text("basis")] ?? visible(loop.text("basis")),
    loop.number("interrupts") > 0 &&
      plural(loop.number("interrupts"), "interrupt") + " inside, taken out",
  ];
  return element(
    "figure",
    {class: "loop"},
    places.length > 0 && loopDrawing(name, places, loop),
    element(
      "figcaption",
      {},
      element("h3", {}, targetText(name)),
      wayList(loop),
      element("p", {class: "quiet"}, facts.filter(Boolean).join("; ")),
      element(
        "ol",
        {},
        places
          .slice(0, 40)
          .map(place =>
            element(
              "li",
              {},
              code(placeName(place), {most: 120}),
              " ",
              element(
                "span",
                {class: "quiet"},
                targetText(place.text("source")),
                place.text("pc") && placeName(place) !== place.text("pc")
                  ? [" ", targetText(place.text("pc"))]
                  : ""
              )
            )
          )
      ),
      omittedNote(places, 40, "more place")
    )
  );
}

function roundsText(loop) {
  const rounds = loop.number("rounds");
  if (!rounds) return "rounds not counted yet";
  return (loop.flag("at_least") ? "at least " : "") + plural(rounds, "round");
}

// In simulated time.
function sinceCycle(loop) {
  const cycle = loop.number("since_cycle");
  return cycle === undefined ? undefined : `since cycle ${grouped(cycle)}`;
}

function loopDrawing(name, places, loop) {
  const shown = places.slice(
    0,
    places.length > kMostOnACircle ? kMostOnACircle - 1 : kMostOnACircle
  );
  const labels = shown.map(placeName);
  if (shown.length < places.length) labels.push(`… ${places.length - shown.length} more`);
  const width = 520,
    height = Math.max(170, 34 * labels.length + 60),
    rx = 96,
    ry = height / 2 - 34;
  const point = angle => [width / 2 + rx * Math.sin(angle), height / 2 - ry * Math.cos(angle)];
  const angles = labels.map((_, i) => (2 * Math.PI * i) / labels.length);
  const label =
    `Loop of ${visible(name)}: ${plural(places.length, "place")}, ${roundsText(loop)}; ` +
    `${labels.map(text => shortText(text, 40)).join(", then ")}, and again`;
  const parts = angles.map(angle => arc(point, angle, angle + (2 * Math.PI) / labels.length));
  angles.forEach((angle, i) =>
    parts.push(...placeDrawing(point(angle), labels[i], i === 0, width))
  );
  parts.push(
    svgElement(
      "text",
      {x: width / 2, y: height / 2 - 4, class: "rounds"},
      loop.number("rounds")
        ? (loop.flag("at_least") ? "≥ " : "") + grouped(loop.number("rounds"))
        : "?"
    ),
    svgElement(
      "text",
      {x: width / 2, y: height / 2 + 15, class: "small"},
      loop.number("rounds") === 1 ? "time round" : "times round"
    )
  );
  return svgElement(
    "svg",
    {
      viewBox: `0 0 ${width} ${height}`,
      width,
      height,
      role: "img",
      "aria-label": label,
      class: "circle",
    },
    arrowHead("turn"),
    parts
  );
}

// Draws an arc of the circle with an arrow. It leaves room for the places at both ends.
function arc(point, from, to) {
  const room = Math.min(0.22, (to - from) / 5);
  const steps = 72;
  const at = i =>
    point(from + room + ((to - from - 2 * room) * i) / steps)
      .map(value => value.toFixed(1))
      .join(" ");
  return svgElement("path", {
    class: "turn",
    "marker-end": "url(#turn)",
    d: "M" + Array.from({length: steps + 1}, (_, i) => at(i)).join("L"),
  });
}

function placeDrawing([x, y], text, head, width) {
  const right = x > width / 2 + 5,
    left = x < width / 2 - 5;
  const anchor = right ? "start" : left ? "end" : "middle";
  const above = !right && !left && y < 80;
  const label = svgElement("text", {
    x: x + (right ? 11 : left ? -11 : 0),
    y: y + (right || left ? 4 : above ? -12 : 22),
    "text-anchor": anchor,
    class: "place",
  });
  label.append(shortText(text, right || left ? 20 : 40));
  if (label.textContent !== visible(text)) label.append(svgElement("title", {}, visible(text)));
  return [
    svgElement("circle", {cx: x, cy: y, r: head ? 6 : 4.5, class: head ? "dot head" : "dot"}),
    label,
  ];
}

function arrowHead(id) {
  return svgElement(
    "defs",
    {},
    svgElement(
      "marker",
      {
        id,
        viewBox: "0 0 8 8",
        refX: 7,
        refY: 4,
        markerWidth: 8,
        markerHeight: 8,
        orient: "auto",
        markerUnits: "userSpaceOnUse",
        class: id,
      },
      svgElement("path", {d: "M0 0L8 4L0 8Z"})
    )
  );
}
