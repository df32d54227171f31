// Makes elements. Texts become text nodes, never markup.

const kSvg = "http://www.w3.org/2000/svg";

function fill(node, attributes, children) {
  for (const [name, value] of Object.entries(attributes)) {
    if (value === undefined || value === false) continue;
    if (name.startsWith("on")) node.addEventListener(name.slice(2), value);
    else node.setAttribute(name, value === true ? "" : String(value));
  }
  for (const child of children.flat(Infinity)) {
    if (child === undefined || child === null || child === false || child === "") continue;
    node.append(child instanceof Node ? child : document.createTextNode(String(child)));
  }
  return node;
}

function element(tag, attributes = {}, ...children) {
  return fill(document.createElement(tag), attributes, children);
}

function svgElement(tag, attributes = {}, ...children) {
  return fill(document.createElementNS(kSvg, tag), attributes, children);
}

// Shows a target's text, with unseen characters escaped. The title of a cut text has all of it.
function targetText(text, {most = kMostOfAName, tag = "span", ...attributes} = {}) {
  const whole = visible(text);
  const short = shortened(whole, most);
  return element(tag, short === whole ? attributes : {...attributes, title: whole}, short);
}

function code(text, options = {}) {
  return text === "" ? "" : targetText(text, {tag: "code", ...options});
}

// Makes a part of the report, with its heading.
function part(id, heading, ...children) {
  const title = element("h2", {id: id + "-heading"}, heading);
  return element("section", {id, "aria-labelledby": id + "-heading"}, title, children);
}

function button(text, name, onclick, attributes = {}) {
  return element(
    "button",
    {type: "button", "aria-label": name, title: name, onclick, ...attributes},
    text
  );
}

// Makes an element that a reader can open and close.
function folded(summary, open, ...children) {
  return element("details", {open}, element("summary", {}, summary), children);
}

// Makes a closed element whose content is made when a reader first opens it.
function foldedLazily(summary, make) {
  const box = folded(summary, false);
  box.addEventListener("toggle", () => {
    if (box.open && box.childElementCount === 1) box.append(make());
  });
  return box;
}

// Makes a table. `rows` are lists of cells; the first cell of a row is its heading.
function table(caption, headings, rows, attributes = {}) {
  const cell = (tag, content, more) => element(tag, more, content);
  return element(
    "div",
    {class: "scroll"},
    element(
      "table",
      attributes,
      element("caption", {class: "unseen"}, caption),
      element(
        "thead",
        {},
        element(
          "tr",
          {},
          headings.map(heading => cell("th", heading, {scope: "col"}))
        )
      ),
      element(
        "tbody",
        {},
        rows.map(row =>
          element(
            "tr",
            {},
            row.map((content, i) =>
              i === 0 ? cell("th", content, {scope: "row"}) : cell("td", content, {})
            )
          )
        )
      )
    )
  );
}

function textList(list) {
  return element(
    "ul",
    {},
    list.map(text => targetText(text, {tag: "li", most: 600}))
  );
}

// Says how many items of a list there are beyond the first `most`, which are shown.
function omittedNote(list, most, one, many) {
  if (list.length <= most) return "";
  return element("p", {class: "quiet"}, `and ${plural(list.length - most, one, many)}`);
}
