// The last events side by side: a column for each core, a row for each event in the order of time.

const kFirstRows = 60;
const kMostRows = 2000;

class RecentEvents {
  constructor(report) {
    this.report = report;
    this.tracks = report.tracks.filter(track => track.events.time.length > 0);
    this.waitingNames = new Set(
      (report.data.object("graph")?.objects("nodes") ?? [])
        .filter(node => node.text("state") === "waiting")
        .map(node => node.text("name"))
    );
    // Cores in trouble come first; the others keep the order of the data.
    this.tracks = this.tracks
      .map((track, i) => ({
        track,
        rank: track.first ? 0 : track.inTrouble || this.waitingNames.has(track.name) ? 1 : 2,
        i,
      }))
      .sort((a, b) => a.rank - b.rank || a.i - b.i)
      .map(each => each.track);
    this.columns = Math.max(
      2,
      Math.min(8, Math.floor((Math.min(window.innerWidth, 1480) - 230) / 170))
    );
    this.page = 0;
    this.rows = kFirstRows;
    if (this.tracks.length === 0) return;
    this.box = element("div", {});
    this.words = element("span", {class: "quiet", "aria-live": "polite"});
    const turn = by => {
      const pages = Math.ceil(this.tracks.length / this.columns);
      this.page = (this.page + by + pages) % pages;
      this.show();
    };
    const many = this.tracks.length > this.columns;
    this.section = part(
      "recent",
      "Last events, side by side",
      element(
        "div",
        {class: "tools"},
        many && [
          button("◀", "Cores before", () => turn(-1)),
          button("▶", "Cores behind", () => turn(1)),
        ],
        this.words
      ),
      this.box
    );
    this.show();
  }

  // Returns the newest events of these tracks, newest first, and whether there are more.
  newest(tracks) {
    const next = tracks.map(track => track.events.time.length - 1);
    const rows = [];
    while (rows.length < this.rows) {
      let newest = -1;
      for (let i = 0; i < tracks.length; ++i) {
        if (
          next[i] >= 0 &&
          (newest < 0 || tracks[i].events.time[next[i]] > tracks[newest].events.time[next[newest]])
        )
          newest = i;
      }
      if (newest < 0) return {rows, more: false};
      rows.push({column: newest, event: next[newest]--});
    }
    return {rows, more: next.some(i => i >= 0)};
  }

  show() {
    const {report} = this;
    const before = this.page * this.columns;
    const tracks = this.tracks.slice(before, before + this.columns);
    const all = `${plural(this.tracks.length, "row")} with events`;
    this.words.textContent =
      this.tracks.length > this.columns
        ? `${before + 1} to ${before + tracks.length} of ${all}`
        : "";
    const {rows, more} = this.newest(tracks);
    rows.reverse();
    const oldest = rows.length > 0 ? tracks[rows[0].column].events.time[rows[0].event] : 0;
    const body = element("tbody", {});
    let trigger = report.trigger?.time;
    if (trigger !== undefined && trigger < oldest) trigger = undefined;
    const triggerRow = () =>
      element(
        "tr",
        {class: "trigger"},
        element("th", {scope: "row"}, report.times.exact(report.trigger.time, oldest)),
        element(
          "td",
          {colspan: tracks.length},
          "trigger",
          report.trigger.text ? [": ", targetText(report.trigger.text, {most: 200})] : ""
        )
      );
    for (const {column, event} of rows) {
      const track = tracks[column];
      const time = track.events.time[event];
      if (trigger !== undefined && time > trigger) {
        body.append(triggerRow());
        trigger = undefined;
      }
      body.append(
        this.eventRow(tracks.length, column, report.times.exact(time, oldest), track, event)
      );
    }
    if (trigger !== undefined) body.append(triggerRow());
    const older =
      more &&
      this.rows < kMostRows &&
      element(
        "button",
        {
          type: "button",
          onclick: () => {
            this.rows = Math.min(kMostRows, this.rows * 3);
            this.show();
          },
        },
        "Show older ones"
      );
    this.box.replaceChildren(
      ...[
        older,
        element(
          "div",
          {class: "scroll recent", tabindex: 0, role: "region", "aria-label": "Last events"},
          element(
            "table",
            {class: "recent"},
            element("caption", {class: "unseen"}, "Last events of each core, oldest first"),
            element(
              "thead",
              {},
              element(
                "tr",
                {},
                element("th", {scope: "col"}, "Time"),
                tracks.map(track =>
                  element(
                    "th",
                    {scope: "col"},
                    targetText(track.name, {most: 40}),
                    track.first ? element("span", {class: "badge first"}, "first to stop") : ""
                  )
                )
              )
            ),
            body
          )
        ),
      ].filter(Boolean)
    );
    this.scrollToEnd();
  }

  // Shows the newest events. The page calls this again once the table is in it.
  scrollToEnd() {
    this.box.lastChild.scrollTop = this.box.lastChild.scrollHeight;
  }

  eventRow(columns, column, time, track, event) {
    const cells = Array.from({length: columns}, () => element("td", {}));
    const name = this.report.kind(track.events.kind[event]).name;
    const text = this.report.string(track.events.text[event]);
    cells[column].append(
      targetText(name, {tag: "b", most: 60}),
      text ? " " : "",
      text ? targetText(text, {most: 100}) : ""
    );
    return element("tr", {}, element("th", {scope: "row"}, time), cells);
  }
}
