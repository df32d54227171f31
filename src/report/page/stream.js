// The last lines of a stream. Only the visible ones are in the page, however many there are.

const kLineHeight = 18;
const kLinesPrinted = 60;
const kMostPixels = 2e7; // Browsers lay out nothing that is higher than some 30 million.

class StreamView {
  constructor(report, fields, index) {
    this.report = report;
    this.name = fields.text("name") || "stream";
    this.id = `stream-${index}`;
    this.read(fields);
    this.shown = this.rows; // what the filter leaves
    this.hits = []; // indices into `shown`
    this.current = -1;
    this.box = this.build(fields);
  }

  // Makes a row of each line and of each loss.
  read(fields) {
    const lost = new Map(
      fields.objects("lost").map(loss => [loss.number("before") ?? 0, loss.text("text")])
    );
    this.rows = [];
    fields.list("lines").forEach((line, i) => {
      if (lost.has(i)) this.rows.push({lost: lost.get(i)});
      if (isObject(line)) this.rows.push({line});
      else fields.check("lines", i, "object", false);
    });
    const end = fields.list("lines").length;
    for (const [before, text] of lost) if (before >= end) this.rows.push({lost: text});
    this.cores = [
      ...new Set(
        this.rows.map(row => row.line?.core).filter(core => this.report.trackById.has(core))
      ),
    ];
  }

  build(fields) {
    this.field = element("input", {
      type: "search",
      class: "stream-search",
      placeholder: "find in the lines",
      "aria-label": `Find in the lines of ${shortText(this.name)}`,
      oninput: () => this.search(),
      onkeydown: event => this.onKey(event),
    });
    this.count = element("output", {class: "stream-hits", "aria-live": "polite"});
    this.core = element(
      "select",
      {
        class: "stream-core",
        "aria-label": `Show only lines of ${shortText(this.name)} from this core`,
        onchange: () => this.filter(),
      },
      element("option", {value: ""}, "all cores"),
      this.cores
        .slice(0, 2000)
        .map(core => element("option", {value: core}, shortText(this.report.trackName(core), 60)))
    );
    this.space = element("div", {class: "space"});
    this.list = element(
      "div",
      {
        class: "lines",
        tabindex: 0,
        role: "region",
        "aria-label": `Last lines of ${shortText(this.name)}`,
        onscroll: () => this.show(),
      },
      this.space
    );
    const bytes = fields.number("bytes");
    const count = fields.list("lines").length;
    const lines =
      count === 0 ? "no line" : count === 1 ? "the last line" : `the last ${plural(count, "line")}`;
    const some = lines + (bytes ? ` of ${bytesText(bytes)}` : "");
    const words = count === 0 && !bytes ? "nothing came" : some;
    const heading = element(
      "h3",
      {},
      targetText(this.name),
      " ",
      element("span", {class: "quiet"}, words)
    );
    if (this.rows.length === 0) return element("div", {class: "stream", id: this.id}, heading);
    return element(
      "div",
      {class: "stream", id: this.id},
      heading,
      element(
        "div",
        {class: "tools", role: "toolbar", "aria-label": `Lines of ${shortText(this.name)}`},
        this.cores.length > 0 && this.core,
        this.field,
        button("↑", "Previous line found", () => this.step(-1)),
        button("↓", "Next line found", () => this.step(1)),
        this.count
      ),
      this.list,
      element("pre", {class: "printed"})
    );
  }

  // The page calls this once the view is in it.
  start() {
    if (this.rows.length === 0) return;
    this.layOut();
    this.list.scrollTop = this.list.scrollHeight;
    new ResizeObserver(() => this.show()).observe(this.list);
    this.show();
    window.addEventListener("beforeprint", () =>
      this.box.querySelector(".printed").replaceChildren(
        this.shown
          .slice(-kLinesPrinted)
          .map(row => this.rowText(row))
          .join("\n")
      )
    );
  }

  rowText(row) {
    return row.line
      ? visible(typeof row.line.text === "string" ? row.line.text : "")
      : `— ${visible(row.lost) || "something is missing"} —`;
  }

  layOut() {
    this.space.style.height = Math.min(this.shown.length * kLineHeight, kMostPixels) + "px";
    this.list.style.height = Math.min(Math.max(3, this.shown.length), 24) * kLineHeight + 14 + "px";
  }

  filter() {
    const core = this.core.value === "" ? undefined : Number(this.core.value);
    this.shown =
      core === undefined ? this.rows : this.rows.filter(row => !row.line || row.line.core === core);
    this.layOut();
    this.search();
    this.list.scrollTop = this.list.scrollHeight;
    this.show();
  }

  search() {
    const query = this.field.value.toLowerCase();
    this.query = query;
    this.hits = [];
    if (query !== "")
      this.shown.forEach(
        (row, i) =>
          (row.lower ??= this.rowText(row).toLowerCase()).includes(query) && this.hits.push(i)
      );
    this.current = -1;
    this.showCount();
    // A search begins with the newest line.
    if (this.hits.length > 0) this.step(-1);
    else this.show();
  }

  showCount() {
    this.count.value =
      this.query === "" || this.query === undefined
        ? ""
        : this.hits.length === 0
          ? "not found"
          : this.current < 0
            ? plural(this.hits.length, "line")
            : `${grouped(this.current + 1)} of ${plural(this.hits.length, "line")}`;
  }

  onKey(event) {
    if (event.key !== "Enter") return;
    event.preventDefault();
    this.step(event.shiftKey ? 1 : -1);
  }

  step(by) {
    if (this.hits.length === 0) return;
    this.current =
      this.current < 0
        ? by < 0
          ? this.hits.length - 1
          : 0
        : (this.current + by + this.hits.length) % this.hits.length;
    this.showCount();
    const row = this.hits[this.current];
    const first = this.firstVisible();
    const room = Math.floor(this.list.clientHeight / kLineHeight);
    if (row < first || row >= first + room - 1)
      this.list.scrollTop = Math.max(0, row - room / 2) * this.pixelsPerRow();
    this.show();
  }

  pixelsPerRow() {
    return Math.min(kLineHeight, kMostPixels / Math.max(1, this.shown.length));
  }

  firstVisible() {
    return Math.floor(this.list.scrollTop / this.pixelsPerRow());
  }

  show() {
    const first = this.firstVisible();
    const count = Math.ceil(this.list.clientHeight / kLineHeight) + 2;
    const top = this.list.scrollTop - (this.list.scrollTop % this.pixelsPerRow());
    const rows = this.shown
      .slice(first, first + count)
      .map((row, i) => this.rowElement(row, first + i));
    const pane = element("div", {class: "pane"}, rows);
    pane.style.top = top + "px";
    this.space.replaceChildren(pane);
  }

  rowElement(row, i) {
    const current = this.current >= 0 && this.hits[this.current] === i;
    if (!row.line)
      return element("div", {class: "line lost" + (current ? " current" : "")}, this.rowText(row));
    const {time, core, text, offset} = row.line;
    return element(
      "div",
      {
        class: "line" + (current ? " current" : ""),
        title: Number.isFinite(offset) && `at byte ${grouped(offset)} of the stream`,
      },
      element(
        "span",
        {class: "when"},
        Number.isFinite(time) ? this.report.times.exact(time, 1e9) : ""
      ),
      this.cores.length > 0 &&
        element("span", {class: "whose"}, shortText(this.report.trackName(core), 24)),
      element(
        "span",
        {class: "text"},
        this.marked(shortText(typeof text === "string" ? text : "", 2000))
      )
    );
  }

  // Marks the hits in a text.
  marked(text) {
    if (!this.query) return text;
    const pieces = [];
    const lower = text.toLowerCase();
    let at = 0;
    for (
      let hit = lower.indexOf(this.query);
      hit >= 0 && pieces.length < 100;
      hit = lower.indexOf(this.query, at)
    ) {
      pieces.push(
        text.slice(at, hit),
        element("mark", {}, text.slice(hit, hit + this.query.length))
      );
      at = hit + this.query.length;
    }
    return [...pieces, text.slice(at)];
  }
}

function streamsPart(report) {
  const views = report.data
    .objects("streams")
    .slice(0, 64)
    .map((fields, i) => new StreamView(report, fields, i));
  if (views.length === 0) return undefined;
  return {
    section: part(
      "streams",
      "What it printed last",
      views.map(view => view.box)
    ),
    views,
  };
}
