// Puts the report together: the verdict first, then the parts that take time.

const kHelp = [
  ["/", "find in the lines of the stream; else events"],
  ["e", "find events"],
  ["Enter Shift+Enter", "the next found, the one before"],
  ["?", "these keys"],
  ["g", "to the timeline, where:"],
  ["← →", "move in time; with Shift faster"],
  ["↑ ↓", "choose a row"],
  ["+ −", "zoom; 0 shows the whole"],
  [", .", "the event before, the next one"],
  ["Home End t", "to the beginning, the end, the trigger"],
  ["wheel", "zoom, once the timeline was clicked, or with Ctrl; with Shift: move"],
  ["drag", "move; with Shift: zoom to what is marked"],
];

function helpDialog() {
  const dialog = element(
    "dialog",
    {id: "help", "aria-labelledby": "help-heading"},
    element("h2", {id: "help-heading"}, "Keys"),
    element(
      "dl",
      {class: "keys"},
      kHelp.map(([keys, what]) => [
        element(
          "dt",
          {},
          keys.split(" ").map(key => [/^[a-z]{4,}$/.test(key) ? key : element("kbd", {}, key), " "])
        ),
        element("dd", {}, what),
      ])
    ),
    element("form", {method: "dialog"}, element("button", {}, "Close"))
  );
  document.body.append(dialog);
  return dialog;
}

class Page {
  constructor() {
    this.main = document.getElementById("main");
    this.parts = document.getElementById("parts");
    this.troubles = new Troubles();
    this.help = helpDialog();
    this.parts.append(
      button("?", "Keys", () => this.help.showModal(), {id: "help-button", class: "help"})
    );
    document.addEventListener("keydown", event => this.onKey(event));
    this.load();
  }

  load() {
    const holder = document.getElementById("hangscope-data");
    const text = holder.textContent;
    holder.remove();
    try {
      this.report = new Report(readData(text, this.troubles));
    } catch (error) {
      this.main.replaceChildren(
        element("h1", {id: "headline"}, "This report cannot be shown"),
        element("p", {role: "alert"}, error.message)
      );
      return;
    }
    document.title = shortText(
      [this.report.data.text("title"), this.report.data.text("headline")]
        .filter(Boolean)
        .join(": ") || "hangscope report",
      160
    );
    this.addPart("Verdict", () => verdictPart(this.report, this.troubles));
    document.getElementById("loading")?.remove();
    const waiting = element("p", {id: "waiting", class: "quiet"}, "Reading the recording …");
    this.main.append(waiting);
    // The rest waits until the verdict is on the screen.
    requestAnimationFrame(() =>
      setTimeout(() => {
        this.addRecording();
        waiting.remove();
        document.documentElement.dataset.ready = "";
      })
    );
  }

  addRecording() {
    const {report} = this;
    this.addPart("Divergence", () => divergencePart(report));
    for (const track of report.tracks)
      this.attempt(`the columns of ${visible(track.name)}`, () => track.decode(report.strings));
    this.attempt("the flows", () => report.decodeFlows());
    this.addPart("Timeline", () => {
      this.timeline = new Timeline(report);
      return this.timeline.tracks.length > 0 ? this.timeline.section : undefined;
    });
    this.attempt("the timeline", () => this.timeline?.section.isConnected && this.timeline.start());
    this.addPart("Loops", () => loopsPart(report));
    this.addPart("Graph", () => graphPart(report));
    let recent;
    this.addPart("Events", () => {
      recent = new RecentEvents(report);
      return recent.section;
    });
    if (recent?.section) recent.scrollToEnd();
    this.addPart("Faults", () => faultsPart(report));
    this.addPart("Findings", () => findingsPart(report));
    this.addPart("Threads", () => threadsPart(report));
    this.addPart("Output", () => {
      const streams = streamsPart(report);
      this.streams = streams?.views ?? [];
      return streams?.section;
    });
    for (const view of this.streams ?? []) this.attempt("a stream", () => view.start());
    this.addPart("Kernels", () => kernelsPart(report));
    this.addPart("Stacks", () => stacksPart(report));
    this.addPart("Bus", () => busPart(report));
    this.addPart("Debug rings", () => debugPart(report));
    this.addPart("Words", () => wordsPart(report));
    this.addPart("Numbers", () => numbersPart(report));
    this.addPart("Run", () => runPart(report));
    this.addFooter();
  }

  // Names a part that fails as a trouble, so that the others are still shown.
  attempt(what, make) {
    try {
      return make();
    } catch (error) {
      this.troubles.add(`Not shown: ${what} (${error.message}).`);
      return undefined;
    }
  }

  addPart(name, make) {
    const section = this.attempt(`the part "${name}"`, make);
    if (!section) return;
    this.main.append(section);
    this.parts.insertBefore(element("a", {href: "#" + section.id}, name), this.parts.lastChild);
  }

  addFooter() {
    const redraws = element("output", {
      id: "redraw-times",
      "aria-label": "Time that redraws of the timeline took",
    });
    document
      .getElementById("footer")
      .append("Made by hangscope. This file needs nothing besides itself. ", redraws);
    if (!this.timeline) return;
    let pending;
    this.timeline.redraws.onChange = () => {
      pending ??= setTimeout(() => {
        pending = undefined;
        const {first, count, slowest, longestFrame} = this.timeline.redraws;
        redraws.value =
          `The timeline was first drawn in ${first.toFixed(1)} ms; ` +
          `the slowest of ${plural(count - 1, "redraw")} since took ${slowest.toFixed(1)} ms; ` +
          `no frame more than ${longestFrame.toFixed(1)} ms.`;
      }, 300);
    };
    window.addEventListener("beforeprint", () =>
      document.querySelectorAll("details").forEach(box => {
        if (!box.open) box.dataset.closed = "";
        box.open = true;
      })
    );
    window.addEventListener("afterprint", () =>
      document.querySelectorAll("details[data-closed]").forEach(box => {
        box.open = false;
        delete box.dataset.closed;
      })
    );
  }

  onKey(event) {
    if (
      event.ctrlKey ||
      event.altKey ||
      event.metaKey ||
      this.help.open ||
      event.target.matches("input, select, textarea")
    )
      return;
    const field = {
      "/": document.querySelector(".stream-search") ?? document.getElementById("event-search"),
      e: document.getElementById("event-search"),
      g: document.getElementById("timeline-canvas"),
    }[event.key];
    if (event.key === "?") this.help.showModal();
    else if (field) {
      field.scrollIntoView({block: "center"});
      field.focus({preventScroll: true});
      field.select?.();
    } else return;
    event.preventDefault();
  }
}

new Page();
