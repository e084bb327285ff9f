// Terminal output as plain text and the styles of its parts: ANSI escape sequences, carriage returns and tabs.

/**
 * A styled range of a line's text, from `from` up to but not including `to`. The sixteen named colours are classes,
 * because readable values of them differ between light and dark; all others are CSS values.
 * @typedef {{ from: number, to: number, classes: string, color: string, background: string }} StyledPart
 */

/**
 * The style that is in force at a position of a line.
 * @typedef {{ flags: Set<string>, color?: string, background?: string, inverse?: boolean }} Style
 */

const ESCAPE = "\u001b";
// Styles are `ESC [ … m`. All other sequences (cursor, title, links) mean nothing in a log and are removed.
// biome-ignore lint/suspicious/noControlCharactersInRegex: escape sequences are made of control characters
const SEQUENCE = /\u001b(?:\[([0-9;:]*)([@-~])|\[[0-?]*[ -/]*[@-~]|\][^\u0007\u001b]*(?:\u0007|\u001b\\)|[@-Z\\^_])/g;
// biome-ignore lint/suspicious/noControlCharactersInRegex: these are the characters to show as symbols
const CONTROLS = /[\u0000-\u0008\u000b-\u001f\u007f]/g;
const CONTROL_PICTURES = 0x2400;
const NAMES = ["black", "red", "green", "yellow", "blue", "magenta", "cyan", "white"];
const FLAGS = new Map([
  [1, "bold"],
  [2, "faint"],
  [3, "italic"],
  [4, "underline"],
  [9, "struck"],
]);
const FLAG_ENDS = new Map([
  [22, ["bold", "faint"]],
  [23, ["italic"]],
  [24, ["underline"]],
  [29, ["struck"]],
]);
const TAB = 8;

/**
 * Return the text of a line as a terminal shows it, and its styled parts or null.
 * @param {string} raw
 * @returns {{ text: string, parts: StyledPart[] | null }}
 */
export function parseLine(raw) {
  const line = afterCarriageReturn(raw);
  if (!line.includes(ESCAPE)) return { text: printable(line), parts: null };
  let text = "";
  let style = plain();
  let from = 0;
  /** @type {StyledPart[]} */
  const parts = [];
  /** @param {number} until */
  const flush = (until) => {
    const piece = printable(line.slice(from, until), text.length);
    if (piece && !isPlain(style)) parts.push({ from: text.length, to: text.length + piece.length, ...css(style) });
    text += piece;
  };
  for (const found of line.matchAll(SEQUENCE)) {
    flush(found.index);
    from = found.index + found[0].length;
    if (found[2] === "m") style = withCodes(style, found[1] ?? "");
  }
  flush(line.length);
  return { text, parts: parts.length ? parts : null };
}

/**
 * Return the last state of a line that overwrites itself with carriage returns, as progress bars do.
 * @param {string} raw
 */
function afterCarriageReturn(raw) {
  let end = raw.length; // a regular expression would begin anew at each of a publisher's carriage returns
  while (raw[end - 1] === "\r") end -= 1;
  return raw.slice(raw.slice(0, end).lastIndexOf("\r") + 1, end);
}

/**
 * Replace control characters by their symbols, and tabs by spaces up to the next stop.
 * @param {string} piece
 * @param {number} [column]
 */
function printable(piece, column = 0) {
  const text = piece.replace(CONTROLS, (one) =>
    one === "\u007f" ? "\u2421" : String.fromCharCode(CONTROL_PICTURES + one.charCodeAt(0)),
  );
  if (!text.includes("\t")) return text;
  let expanded = "";
  for (const one of text) expanded += one === "\t" ? " ".repeat(TAB - ((column + expanded.length) % TAB)) : one;
  return expanded;
}

/** @returns {Style} */
function plain() {
  return { flags: new Set() };
}

/**
 * Return the style after an SGR sequence.
 * @param {Style} before
 * @param {string} codes
 */
function withCodes(before, codes) {
  let style = { ...before, flags: new Set(before.flags) };
  const numbers = codes.split(/[;:]/).map((code) => Number(code || 0));
  numbers.reverse(); // each is taken from the end: to remove the first one of many copies all others
  for (let code = numbers.pop(); code !== undefined; code = numbers.pop()) {
    if (code === 0) style = plain();
    else if (code === 38) style.color = extendedColor(numbers);
    else if (code === 48) style.background = extendedColor(numbers);
    else if (!applyFlag(style, code)) applyNamedColor(style, code);
  }
  return style;
}

/**
 * Apply a code that switches a flag, inversion or a colour on or off. Returns false for any other code.
 * @param {Style} style
 * @param {number} code
 */
function applyFlag(style, code) {
  const flag = FLAGS.get(code);
  if (flag) style.flags.add(flag);
  else if (FLAG_ENDS.has(code)) for (const name of FLAG_ENDS.get(code) ?? []) style.flags.delete(name);
  else if (code === 7) style.inverse = true;
  else if (code === 27) delete style.inverse;
  else if (code === 39) delete style.color;
  else if (code === 49) delete style.background;
  else return false;
  return true;
}

/**
 * @param {Style} style
 * @param {number} code
 */
function applyNamedColor(style, code) {
  if (code >= 30 && code <= 37) style.color = NAMES[code - 30];
  else if (code >= 90 && code <= 97) style.color = `bright-${NAMES[code - 90]}`;
  else if (code >= 40 && code <= 47) style.background = NAMES[code - 40];
  else if (code >= 100 && code <= 107) style.background = `bright-${NAMES[code - 100]}`;
}

/**
 * Take the parameters of a colour of the 256-colour palette (`5;n`) or of 24 bits (`2;r;g;b`) and return the colour.
 * @param {number[]} numbers the codes that follow, the last one first; those that are used are removed
 */
function extendedColor(numbers) {
  const kind = numbers.pop();
  if (kind === 2) {
    const channels = [numbers.pop(), numbers.pop(), numbers.pop()].map((one) => Math.min(one || 0, 255));
    return `rgb(${channels.join(" ")})`;
  }
  const index = Math.min(numbers.pop() ?? 0, 255);
  if (index < 8) return NAMES[index];
  if (index < 16) return `bright-${NAMES[index - 8]}`;
  if (index >= 232)
    return `rgb(${Array(3)
      .fill(8 + (index - 232) * 10)
      .join(" ")})`;
  /** @param {number} step */
  const level = (step) => (step ? 55 + 40 * step : 0);
  const cube = index - 16;
  return `rgb(${[Math.floor(cube / 36), Math.floor(cube / 6) % 6, cube % 6].map(level).join(" ")})`;
}

/** @param {Style} style */
function isPlain({ flags, ...colors }) {
  return flags.size === 0 && Object.keys(colors).length === 0;
}

/** @param {Style} style */
function css(style) {
  const classes = [...FLAGS.values()].filter((flag) => style.flags.has(flag));
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
