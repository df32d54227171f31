// The other parts of the report: findings, faults, threads, kernels, stacks, the bus, debug rings,
// the divergence from a healthy run, and how the program was run.

function findingsPart(report) {
  const findings = report.data.objects("findings");
  if (findings.length === 0) return undefined;
  return part(
    "findings",
    "Findings",
    findings.slice(0, 100).map((finding, i) =>
      folded(
        [
          targetText(finding.text("summary") || finding.text("kind"), {most: 300}),
          " ",
          targetText(finding.text("confidence"), {class: "quiet"}),
        ],
        i < 3,
        finding.list("lines").length > 0 &&
          element(
            "pre",
            {},
            finding
              .texts("lines")
              .map(text => shortText(text, 1000))
              .join("\n")
          ),
        finding.list("evidence").length > 0 && textList(finding.texts("evidence")),
        finding.list("doubts").length > 0 && [
          element("p", {}, "Not certain:"),
          textList(finding.texts("doubts")),
        ]
      )
    ),
    omittedNote(findings, 100, "more finding")
  );
}

function faultsPart(report) {
  const faults = report.data.objects("faults");
  if (faults.length === 0) return undefined;
  return part(
    "faults",
    "Faults",
    faults
      .slice(0, 100)
      .map(fault =>
        element(
          "div",
          {class: "fault"},
          element(
            "h3",
            {},
            targetText(fault.text("who")),
            ": ",
            targetText(fault.text("text"), {most: 400})
          ),
          element(
            "p",
            {class: "quiet"},
            code(fault.text("place"), {most: 200}),
            fault.number("time") !== undefined
              ? ` ${report.times.length(fault.number("time"))} before the end`
              : ""
          ),
          sourceExcerpt(fault)
        )
      ),
    omittedNote(faults, 100, "more fault")
  );
}

function sourceExcerpt(fault) {
  const source = fault.object("source");
  if (!source) return "";
  const first = source.number("first") ?? 1;
  const here = source.number("line");
  const lines = source
    .texts("lines")
    .slice(0, 200)
    .map((text, i) => {
      const number = first + i;
      return element(
        "span",
        number === here
          ? {class: "here", role: "mark", "aria-label": `line ${number}, where it happened`}
          : {},
        element(
          "span",
          {class: "number"},
          `${number === here ? "▶" : " "}${String(number).padStart(5)} `
        ),
        shortened(text.split("\t").map(visible).join("    "), 300)
      );
    });
  return element(
    "figure",
    {class: "source"},
    element(
      "figcaption",
      {},
      targetText(source.text("file"), {most: 200}),
      here === undefined ? "" : `:${here}`
    ),
    element(
      "pre",
      {tabindex: 0, role: "region", "aria-label": `Source of ${shortText(source.text("file"))}`},
      lines.map(line => [line, "\n"])
    )
  );
}

function threadsPart(report) {
  const threads = report.data.objects("threads");
  if (threads.length === 0) return undefined;
  const one = thread =>
    folded(
      [
        targetText(thread.text("name") || "thread"),
        " ",
        element(
          "span",
          {class: "quiet"},
          thread.text("id") ? [targetText(thread.text("id"), {most: 20}), " "] : "",
          targetText(thread.text("state"), {most: 30}),
          thread.text("wait") ? [": ", targetText(thread.text("wait"), {most: 160})] : "",
          thread.number("since") !== undefined
            ? `, for ${report.times.length(thread.number("since"))}`
            : "",
          thread.text("process")
            ? ["; process ", targetText(thread.text("process"), {most: 160})]
            : ""
        ),
      ],
      threads.length <= 4 || thread.flag("in_finding"),
      thread.list("frames").length === 0
        ? element("p", {class: "quiet"}, "No stack is known.")
        : element(
            "ol",
            {class: "frames", start: 0},
            thread
              .objects("frames")
              .slice(0, 200)
              .map(frame =>
                element(
                  "li",
                  {},
                  code(frame.text("function") || frame.text("pc") || "?", {most: 160}),
                  " ",
                  element(
                    "span",
                    {class: "quiet"},
                    [
                      frame.text("source"),
                      frame.text("module"),
                      frame.text("function") ? frame.text("pc") : "",
                    ]
                      .filter(Boolean)
                      .map(text => [targetText(text), " "])
                  )
                )
              )
          )
    );
  return part(
    "threads",
    "Threads",
    threads.slice(0, 60).map(one),
    threads.length > 60 &&
      foldedLazily(plural(threads.length - 60, "more thread"), () =>
        element("div", {}, threads.slice(60).map(one))
      )
  );
}

// Shows a list of objects as a table of at most `most` rows.
function listPart(report, name, heading, columns, most = 500) {
  const list = report.data.objects(name);
  if (list.length === 0) return undefined;
  const rows = list.slice(0, most).map(item => columns.map(([, show]) => show(item)));
  return part(
    name,
    heading,
    table(
      heading,
      columns.map(([title]) => title),
      rows
    ),
    omittedNote(list, most, "more", "more")
  );
}

function bytesText(number) {
  if (number === undefined) return "";
  const units = ["bytes", "KiB", "MiB", "GiB", "TiB"];
  let unit = 0;
  while (number >= 10240 && unit < units.length - 1) {
    number /= 1024;
    ++unit;
  }
  return `${grouped(unit === 0 ? number : Number(number.toFixed(1)))} ${units[unit]}`;
}

function kernelsPart(report) {
  return listPart(report, "kernels", "Kernels", [
    ["Who", item => targetText(item.text("who"))],
    ["Kernel", item => code(item.text("name"), {most: 160})],
    ["Launch", item => targetText(item.text("launch"))],
  ]);
}

function stacksPart(report) {
  const used = item => {
    const whole = item.number("bytes"),
      free = item.number("lowest") ?? item.number("free");
    if (!whole || free === undefined) return "";
    const usedPart = Math.max(0, Math.min(1, 1 - free / whole));
    return element(
      "span",
      {class: "used"},
      element("meter", {min: 0, max: 1, value: usedPart, high: 0.9, "aria-label": "used at most"}),
      ` ${Math.round(usedPart * 100)} %`
    );
  };
  return listPart(report, "stacks", "Stacks", [
    ["Who", item => targetText(item.text("who"))],
    ["Size", item => bytesText(item.number("bytes"))],
    ["Free now", item => bytesText(item.number("free"))],
    ["Free at the least", item => bytesText(item.number("lowest"))],
    ["Used at most", used],
  ]);
}

function busPart(report) {
  const when = item =>
    item.number("time") === undefined
      ? ""
      : `${report.times.length(item.number("time"))} before the end`;
  return listPart(report, "bus", "Bus violations", [
    ["Who", item => targetText(item.text("who"))],
    ["What", item => targetText(item.text("text"), {most: 300})],
    ["When", when],
  ]);
}

const kDebugValues = 32; // shown of a ring at first

function debugPart(report) {
  const rings = report.data.objects("debug");
  if (rings.length === 0) return undefined;
  const row = value => [
    targetText(value.text("order")),
    targetText(value.text("core")),
    code(value.text("value")),
  ];
  const values = (ring, title, from, to) =>
    table(
      `Debug ring of ${shortText(ring.text("who"))}, ${title}`,
      ["Order", "Core", "Value"],
      ring.objects("values").slice(from, to).map(row)
    );
  const one = ring => {
    const count = ring.objects("values").length;
    return folded(
      [
        targetText(ring.text("who")),
        " ",
        element("span", {class: "quiet"}, plural(ring.list("values").length, "value")),
      ],
      rings.length <= 2,
      values(ring, "newest first", 0, kDebugValues),
      count > kDebugValues &&
        folded(
          `${count - kDebugValues} older ones`,
          false,
          values(ring, "older ones", kDebugValues, 500)
        )
    );
  };
  return part("debug", "Debug rings", rings.slice(0, 200).map(one));
}

function wordsPart(report) {
  const words = report.data.objects("words");
  if (words.length === 0) return undefined;
  const of = word => [word.text("memory"), word.text("of")].filter(Boolean).join(": ");
  const row = (word, i) => [
    i > 0 && of(words[i - 1]) === of(word) ? "" : targetText(of(word)),
    targetText(word.text("name")),
    code(word.text("text")),
  ];
  const most = 1000;
  return part(
    "words",
    "Words of the program",
    report.data.text("words_of") === "findings" &&
      element("p", {class: "quiet"}, "As they were when the findings were reported."),
    table("Words of the program", ["Of", "Word", "Value"], words.slice(0, most).map(row)),
    omittedNote(words, most, "more", "more")
  );
}

function numbersPart(report) {
  const tables = report.data.objects("numbers");
  if (tables.length === 0) return undefined;
  const one = numbers => {
    const title = [numbers.text("memory"), numbers.text("title")].filter(Boolean).join(": ");
    const rows = numbers.list("rows").filter(Array.isArray);
    const most = 500;
    return [
      element("h3", {}, targetText(title, {most: 160})),
      numbers.text("note") &&
        element("p", {class: "quiet"}, targetText(numbers.text("note"), {most: 2000})),
      rows.length === 0
        ? element("p", {}, "None.")
        : table(
            shortText(title, 160),
            numbers.texts("columns").map(column => targetText(column)),
            rows.slice(0, most).map(row => row.map(cell => targetText(String(cell), {most: 160})))
          ),
      omittedNote(rows, most, "more", "more"),
    ];
  };
  return part("numbers", "Numbers from the events", tables.slice(0, 100).map(one));
}

function divergencePart(report) {
  const divergence = report.data.object("divergence");
  if (!divergence) return undefined;
  const healthy = divergence.text("healthy") || "the healthy run";
  return part(
    "divergence",
    "Where it left the healthy run",
    element("p", {class: "quiet"}, "Compared with ", targetText(healthy, {most: 160})),
    divergence
      .objects("cores")
      .slice(0, 64)
      .map((core, i) =>
        folded(
          [
            targetText(core.text("name")),
            " ",
            element("span", {class: "quiet"}, targetText(core.text("verdict"), {most: 240})),
          ],
          i < 4,
          divergedCore(report, core)
        )
      )
  );
}

function divergedCore(report, core) {
  // Runs with no common step have no first difference.
  const matched = (core.number("matched") ?? core.list("common").length) > 0;
  const step = (fields, first) => {
    const differs = first && fields && matched;
    const cell = element("td", differs ? {class: "differs"} : {});
    if (fields) {
      if (differs) cell.append(element("span", {class: "badge hang"}, "first difference"), " ");
      cell.append(
        targetText(fields.text("text"), {most: 160}),
        " ",
        code(fields.text("place"), {most: 100})
      );
    } else if (first && matched) {
      cell.append(
        element("span", {class: "badge hang"}, "first difference"),
        " ",
        element("span", {class: "quiet"}, "nothing more")
      );
    }
    return cell;
  };
  const common = core.objects("common"),
    healthy = core.objects("healthy"),
    hung = core.objects("hung");
  const rows = common
    .slice(-50)
    .map(fields =>
      element(
        "tr",
        {class: "common"},
        element(
          "td",
          {colspan: 2},
          targetText(fields.text("text"), {most: 160}),
          " ",
          code(fields.text("place"), {most: 100})
        )
      )
    );
  for (let i = 0; i < Math.min(100, Math.max(healthy.length, hung.length)); ++i)
    rows.push(element("tr", {}, step(healthy[i], i === 0), step(hung[i], i === 0)));
  const note = [
    core.number("matched") !== undefined &&
      `${plural(core.number("matched"), "step")} in common before`,
    visible(core.text("note")),
  ]
    .filter(Boolean)
    .join("; ");
  return [
    note && element("p", {class: "quiet"}, shortened(note, 400)),
    rows.length > 0 &&
      element(
        "div",
        {class: "scroll"},
        element(
          "table",
          {class: "divergence"},
          element("caption", {class: "unseen"}, `Steps of ${shortText(core.text("name"))}`),
          element(
            "thead",
            {},
            element(
              "tr",
              {},
              element("th", {scope: "col"}, "The healthy run went on with"),
              element("th", {scope: "col"}, "This one")
            )
          ),
          element("tbody", {}, rows)
        )
      ),
  ];
}

function runPart(report) {
  const pairs = report.data.list("run").filter(pair => Array.isArray(pair) && pair.length >= 2);
  pairs.push(...[triggerPair(report), windowPair(report)].filter(Boolean));
  if (pairs.length === 0) return undefined;
  return part(
    "run",
    "The run",
    element(
      "dl",
      {},
      pairs.flatMap(([name, value]) => [
        targetText(name, {tag: "dt"}),
        targetText(value, {tag: "dd", most: 2000}),
      ])
    )
  );
}

function triggerPair({trigger, times}) {
  if (!trigger) return undefined;
  return [
    "trigger",
    [trigger.text, trigger.time !== undefined && `at ${times.exact(trigger.time)}`]
      .filter(Boolean)
      .join(", "),
  ];
}

function windowPair({window, times}) {
  if (!window || window.from === undefined) return undefined;
  const range = `${times.exact(window.from)} to ${times.exact(window.to)}`;
  const policy = window.policy && `policy "${window.policy}"`;
  return [
    "window",
    [range, policy, window.limited_by && `limited by ${window.limited_by}`]
      .filter(Boolean)
      .join(", "),
  ];
}
