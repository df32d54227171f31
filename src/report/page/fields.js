// Reads the data and trusts none of it: it may be damaged, or newer than this page. The page names
// each part that it cannot show.

class Troubles {
  constructor() {
    this.list = [];
    this.onChange = () => {};
  }

  // Keeps a sentence once, and only the first 40 different ones.
  add(text) {
    if (this.list.includes(text) || this.list.length > 40) return;
    this.list.push(this.list.length === 40 ? "and more of the kind" : text);
    this.onChange();
  }
}

// An object of the data. An absent field reads as "", undefined or an empty list, and so does null.
// A field of a wrong type reads like an absent one and adds a trouble.
class Fields {
  constructor(object, where, troubles) {
    this.raw = object;
    this.where = where;
    this.troubles = troubles;
  }

  get(name, fits, what) {
    const value = Object.hasOwn(this.raw, name) ? this.raw[name] : undefined;
    if (value === undefined || value === null) return undefined;
    if (fits(value)) return value;
    this.troubles.add(`Not shown: ${this.where}${name} is no ${what}.`);
    return undefined;
  }

  text(name) {
    return String(
      this.get(name, value => ["string", "number", "boolean"].includes(typeof value), "text") ?? ""
    );
  }

  number(name) {
    return this.get(name, Number.isFinite, "number");
  }

  flag(name) {
    return this.get(name, value => typeof value === "boolean", "truth value") ?? false;
  }

  list(name) {
    return this.get(name, Array.isArray, "list") ?? [];
  }

  // Returns texts and numbers as texts. Other values are left out, with a trouble for each.
  texts(name) {
    return this.list(name)
      .filter((value, i) =>
        this.check(name, i, "text", ["string", "number"].includes(typeof value))
      )
      .map(String);
  }

  objects(name) {
    return this.list(name)
      .map((value, i) =>
        isObject(value)
          ? new Fields(value, `${this.where}${name}[${i}].`, this.troubles)
          : this.check(name, i, "object", false)
      )
      .filter(Boolean);
  }

  object(name) {
    const value = this.get(name, isObject, "object");
    return value && new Fields(value, `${this.where}${name}.`, this.troubles);
  }

  // Returns pairs of finite numbers, the smaller first.
  ranges(name) {
    return this.list(name)
      .filter((value, i) =>
        this.check(
          name,
          i,
          "range",
          Array.isArray(value) && value.length >= 2 && value.slice(0, 2).every(Number.isFinite)
        )
      )
      .map(([from, to]) => [Math.min(from, to), Math.max(from, to)]);
  }

  check(name, i, what, holds) {
    if (!holds) this.troubles.add(`Not shown: ${this.where}${name}[${i}] is no ${what}.`);
    return holds;
  }
}

function isObject(value) {
  return typeof value === "object" && value !== null && !Array.isArray(value);
}

const kDataVersion = 1;
const kKnownFields = [
  "version",
  "title",
  "headline",
  "state",
  "confidence",
  "hang",
  "evidence",
  "doubts",
  "last_output",
  "lost",
  "troubles",
  "notes",
  "clock",
  "window",
  "trigger",
  "run",
  "strings",
  "tracks",
  "kinds",
  "flows",
  "loops",
  "graph",
  "findings",
  "faults",
  "threads",
  "stacks",
  "bus",
  "kernels",
  "debug",
  "words",
  "words_of",
  "numbers",
  "streams",
  "divergence",
];

// Throws an error, whose message is a sentence, where there is nothing to show at all.
function readData(text, troubles) {
  let object;
  try {
    object = JSON.parse(text);
  } catch (error) {
    throw new Error(
      `The data of this page is damaged, and none of it can be shown: ${visible(error.message)}.`
    );
  }
  if (!isObject(object))
    throw new Error("The data of this page is no object, and none of it can be shown.");
  const data = new Fields(object, "", troubles);
  const unknown = Object.keys(object).filter(name => !kKnownFields.includes(name));
  if ((data.number("version") ?? kDataVersion) > kDataVersion || unknown.length > 0) {
    const what =
      unknown.length > 0
        ? `, which does not show: ${unknown
            .slice(0, 20)
            .map(name => shortText(name, 40))
            .join(", ")}`
        : "";
    troubles.add(`The data is of a newer hangscope than this page${what}.`);
  }
  for (const trouble of data.texts("troubles")) troubles.add(trouble);
  return data;
}
