// The style sheet's colours. Patterns tell states apart without colour, too.
class Palette {
  constructor(context) {
    const style = getComputedStyle(document.documentElement);
    const colour = name => style.getPropertyValue("--" + name).trim();
    for (const name of [
      "ground",
      "panel",
      "text",
      "quiet",
      "line",
      "accent",
      "danger",
      "event",
      "hit",
      "counter",
      "idle",
      "covered",
      "selected",
    ])
      this[name] = colour(name);
    this.hatch = colour("hatch");
    this.state = kStateNames.map(state => colour("state-" + state.replace(" ", "-")));
    this.pixels = Uint32Array.from(this.state, pixelOf);
    this.eventPixel = pixelOf(this.event);
    this.hitPixel = pixelOf(this.hit);
    this.counterPixel = pixelOf(this.counter);
    this.label = kStateNames.map(state => colour("on-" + state.replace(" ", "-")) || this.text);
    const hatchings = {
      waiting: this.stripes,
      halted: this.checks,
      stale: this.dots,
      gap: this.crosses,
    };
    this.fills = kStateNames.map((state, i) =>
      hatchings[state] ? this.pattern(context, this.state[i], hatchings[state]) : this.state[i]
    );
  }

  pattern(context, ground, draw) {
    const tile = document.createElement("canvas");
    tile.width = tile.height = 8;
    const pen = tile.getContext("2d");
    pen.fillStyle = ground;
    pen.fillRect(0, 0, 8, 8);
    pen.strokeStyle = pen.fillStyle = this.hatch;
    draw(pen);
    return context.createPattern(tile, "repeat");
  }

  stripes(pen) {
    pen.beginPath();
    for (const x of [-8, 0, 8]) {
      pen.moveTo(x, 8);
      pen.lineTo(x + 8, 0);
    }
    pen.stroke();
  }

  crosses(pen) {
    pen.beginPath();
    for (const x of [-8, 0, 8]) {
      pen.moveTo(x, 8);
      pen.lineTo(x + 8, 0);
      pen.moveTo(x, 0);
      pen.lineTo(x + 8, 8);
    }
    pen.stroke();
  }

  checks(pen) {
    pen.fillRect(0, 0, 4, 4);
    pen.fillRect(4, 4, 4, 4);
  }

  dots(pen) {
    pen.fillRect(1, 1, 2, 2);
    pen.fillRect(5, 5, 2, 2);
  }
}
