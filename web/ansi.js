// What programs write for terminals, as plain text and the styles of its parts.

const ESCAPE = "\u001b";
// Colours and the like are `ESC [ … m`; every other sequence (cursor, title, links) says nothing in a log.
const SEQUENCE = /\u001b(?:\[([0-9;:]*)([@-~])|\[[0-?]*[ -/]*[@-~]|\][^\u0007\u001b]*(?:\u0007|\u001b\\)|[@-Z\\^_])/g;
const CONTROLS = /[\u0000-\u0008\u000b-\u001f\u007f]/g;
const NAMES = ["black", "red", "green", "yellow", "blue", "magenta", "cyan", "white"];
const FLAGS = { 1: "bold", 2: "faint", 3: "italic", 4: "underline", 9: "struck" };
const ENDS = { 22: ["bold", "faint"], 23: ["italic"], 24: ["underline"], 29: ["struck"] };
const TAB = 8;

/** Return `{ text, parts }`; `parts` is null or a list of `{ from, to, classes, color, background }`. */
export function parsed(raw) {
  const line = overwritten(raw);
  if (!line.includes(ESCAPE)) return { text: shown(line), parts: null };
  let text = "";
  let style = {};
  let from = 0;
  const parts = [];
  const flush = (until) => {
    const piece = shown(line.slice(from, until), text.length);
    if (piece && !isPlain(style)) parts.push({ from: text.length, to: text.length + piece.length, ...look(style) });
    text += piece;
  };
  for (const found of line.matchAll(SEQUENCE)) {
    flush(found.index);
    from = found.index + found[0].length;
    if (found[2] === "m") style = styled(style, found[1]);
  }
  flush(line.length);
  return { text, parts: parts.length ? parts : null };
}

/** A carriage return goes back to the line's beginning, as progress bars do: the last of what was written stays. */
function overwritten(raw) {
  const line = raw.replace(/\r+$/, "");
  return line.includes("\r") ? line.slice(line.lastIndexOf("\r") + 1) : line;
}

function shown(piece, column = 0) {
  const text = piece.replace(CONTROLS, (one) =>
    one === "\u007f" ? "\u2421" : String.fromCharCode(0x2400 + one.charCodeAt(0)),
  );
  if (!text.includes("\t")) return text;
  let expanded = "";
  for (const one of text) expanded += one === "\t" ? " ".repeat(TAB - ((column + expanded.length) % TAB)) : one;
  return expanded;
}

function styled(before, codes) {
  const style = { ...before };
  const numbers = codes.split(/[;:]/).map((code) => Number(code || 0));
  while (numbers.length) {
    const code = numbers.shift();
    if (code === 0) for (const name of Object.keys(style)) delete style[name];
    else if (code in FLAGS) style[FLAGS[code]] = true;
    else if (code in ENDS) for (const name of ENDS[code]) delete style[name];
    else if (code === 7) style.inverse = true;
    else if (code === 27) delete style.inverse;
    else if (code === 38) style.color = extended(numbers);
    else if (code === 48) style.background = extended(numbers);
    else if (code === 39) delete style.color;
    else if (code === 49) delete style.background;
    else if (code >= 30 && code <= 37) style.color = NAMES[code - 30];
    else if (code >= 90 && code <= 97) style.color = `bright-${NAMES[code - 90]}`;
    else if (code >= 40 && code <= 47) style.background = NAMES[code - 40];
    else if (code >= 100 && code <= 107) style.background = `bright-${NAMES[code - 100]}`;
  }
  return style;
}

function extended(numbers) {
  const kind = numbers.shift();
  if (kind === 2)
    return `rgb(${numbers
      .splice(0, 3)
      .map((one) => Math.min(one || 0, 255))
      .join(" ")})`;
  const index = Math.min(numbers.shift() ?? 0, 255);
  if (index < 8) return NAMES[index];
  if (index < 16) return `bright-${NAMES[index - 8]}`;
  if (index >= 232)
    return `rgb(${Array(3)
      .fill(8 + (index - 232) * 10)
      .join(" ")})`;
  const level = (step) => (step ? 55 + 40 * step : 0);
  const cube = index - 16;
  return `rgb(${[Math.floor(cube / 36), Math.floor(cube / 6) % 6, cube % 6].map(level).join(" ")})`;
}

function isPlain(style) {
  return Object.keys(style).length === 0;
}

/** The sixteen colours are classes, since what is readable differs between light and dark. */
function look(style) {
  const classes = Object.values(FLAGS).filter((flag) => style[flag]);
  let { color = "", background = "" } = style;
  if (style.inverse) [color, background] = [background || "inverse", color || "inverse"];
  if (color && !color.startsWith("rgb")) classes.push(`fg-${color}`);
  if (background && !background.startsWith("rgb")) classes.push(`bg-${background}`);
  return {
    classes: classes.join(" "),
    color: color.startsWith("rgb") ? color : "",
    background: background.startsWith("rgb") ? background : "",
  };
}
