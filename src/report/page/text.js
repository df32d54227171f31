// Formats texts and numbers for the page.

// Characters that would move a cursor, turn the direction of reading, or not be seen at all.
const kUnseen = new RegExp(
  "[\\u0000-\\u001f\\u007f-\\u009f\\u00ad\\u061c\\u115f\\u1160\\u180e\\u200b-\\u200f" +
    "\\u2028-\\u202e\\u2060-\\u206f\\u3164\\ufeff\\uffa0\\ufff9-\\ufffb" +
    "\\ud800-\\udfff\\u{e0000}-\\u{e01ef}]",
  "gu"
);
const kMostOfAName = 80;

function escaped(character) {
  const short = {"\n": "\\n", "\t": "\\t", "\r": "\\r"}[character];
  if (short) return short;
  const code = character.codePointAt(0);
  return code < 256 ? "\\x" + code.toString(16).padStart(2, "0") : "\\u{" + code.toString(16) + "}";
}

// Escapes the characters of a target's text that cannot be seen.
function visible(text) {
  return String(text).replace(kUnseen, escaped);
}

// Keeps the beginning and the end of a text that is longer than `most`.
function shortened(text, most = kMostOfAName) {
  if (text.length <= most) return text;
  const end = Math.floor(most / 3);
  return text.slice(0, most - end - 1) + "…" + text.slice(-end);
}

// Makes a short text of a target's.
function shortText(text, most) {
  return shortened(visible(text), most);
}

// Writes 1234567 as 1 234 567.
function grouped(number) {
  const [whole, part] = String(Math.abs(number)).split(".");
  if (whole.includes("e")) return String(number);
  return (
    (number < 0 ? "−" : "") + whole.replace(/\B(?=(\d{3})+$)/g, "\u00a0") + (part ? "." + part : "")
  );
}

function plural(number, one, many = one + "s") {
  return grouped(number) + " " + (number === 1 ? one : many);
}

const kUnits = [
  {name: "ns", ns: 1, digits: 0},
  {name: "µs", ns: 1e3, digits: 3},
  {name: "ms", ns: 1e6, digits: 6},
  {name: "s", ns: 1e9, digits: 9},
];

// Formats times of the target's clock: nanoseconds, or counts where its rate is not known.
class Times {
  constructor(counts) {
    this.counts = counts;
  }

  unit(size) {
    return kUnits.findLast(unit => unit.ns <= Math.abs(size)) ?? kUnits[0];
  }

  // Writes a length of time with about three digits: 12.3 ms.
  length(ns) {
    if (this.counts) return plural(Math.round(ns), "count");
    const size = Math.abs(ns);
    if (size >= 120e9) {
      const minutes = Math.floor(size / 60e9);
      if (minutes >= 120) return `${grouped(Math.floor(minutes / 60))} h ${minutes % 60} min`;
      return `${minutes} min ${Math.floor(size / 1e9) % 60} s`;
    }
    const unit = this.unit(size);
    const value = size / unit.ns;
    const digits = value >= 100 || unit.digits === 0 ? 0 : value >= 10 ? 1 : 2;
    return `${value.toFixed(digits)} ${unit.name}`;
  }

  // Writes a time to the last digit, in the unit that suits `around`: -1.234 567 890 s.
  exact(ns, around = ns) {
    if (this.counts) return grouped(Math.round(ns));
    const unit = this.unit(around);
    const [whole, part] = (Math.abs(ns) / unit.ns).toFixed(unit.digits).split(".");
    const text =
      grouped(Number(whole)) + (part ? "." + part.replace(/(\d{3})(?=\d)/g, "$1\u202f") : "");
    return `${ns < 0 ? "−" : ""}${text} ${unit.name}`;
  }

  // Writes a mark of a scale that reaches as far as `around`, with marks `step` apart.
  mark(ns, step, around) {
    if (this.counts) return grouped(Math.round(ns));
    const unit = this.unit(around);
    const digits = Math.max(0, Math.min(9, Math.ceil(-Math.log10(step / unit.ns) - 1e-9)));
    return `${ns < 0 ? "−" : ""}${(Math.abs(ns) / unit.ns).toFixed(digits)} ${unit.name}`;
  }
}
