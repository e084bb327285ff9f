// The list of the realm's topics, and the form that opens a topic or pattern.

import { ago, el, messageOf } from "./dom.js";
import { formatName } from "./models.js";

/** @import { Client } from "./wamp.js" */
/** @import { Kind } from "./models.js" */

/** A topic as `signalbox.topics` returns it. @typedef {{ topic: string, retained_at?: string }} Topic */

const TYPING_MS = 200;
const REFRESH_MS = 15_000;

/** The view of the topics. */
export class TopicsView {
  /**
   * @param {Client} client
   * @param {(kind: Kind, name: string) => void} open
   */
  constructor(client, open) {
    this.client = client;
    this.open = open;
    /** @type {number | undefined} */
    this.typing = undefined;
    /** @type {number | undefined} */
    this.refreshing = undefined;
    this.filter = el("input", {
      id: "topic",
      type: "text",
      placeholder: "trial.logs",
      autocomplete: "off",
      autocapitalize: "none",
      spellcheck: "false",
      oninput: () => this._typed(),
    });
    this.match = el(
      "select",
      { id: "match" },
      [
        ["exact", "exact"],
        ["prefix", "prefix"],
        ["wildcard", "wildcard (a..c)"],
      ].map(([value, text]) => el("option", { value }, text)),
    );
    this.list = el("ul", { class: "topics" });
    this.note = el("p", { class: "empty", role: "status" });
    // Apart from the note, which each refresh of the list writes.
    this.problem = el("p", { class: "empty", role: "status" });
    this.element = el(
      "section",
      { class: "topics-view", "aria-labelledby": "topics-title" },
      el("h1", { id: "topics-title" }, "Topics"),
      el(
        "form",
        { class: "open", onsubmit: (event) => this._submit(event) },
        el("label", { for: "topic" }, "Topic"),
        this.filter,
        el("label", { for: "match", class: "visually-hidden" }, "Match"),
        this.match,
        el("button", { class: "primary", value: "log" }, "Open as log"),
        el("button", { value: "record" }, "Open as record"),
      ),
      this.problem,
      this.list,
      this.note,
    );
  }

  attach() {
    this.refreshing = setInterval(() => this.refresh(), REFRESH_MS);
    this.refresh();
  }

  detach() {
    clearInterval(this.refreshing);
  }

  /** List the topics that begin with the text of the field. */
  async refresh() {
    const prefix = this.filter.value.trim();
    try {
      const { args, kwargs } = await this.client.call("signalbox.topics", [], { prefix });
      if (prefix === this.filter.value.trim()) this._show(args[0] ?? [], kwargs.more);
    } catch (error) {
      this.note.textContent = this.client.isLive ? `Cannot list topics: ${messageOf(error)}.` : "";
    }
  }

  _typed() {
    this.problem.textContent = "";
    clearTimeout(this.typing);
    this.typing = setTimeout(() => this.refresh(), TYPING_MS);
  }

  /** @param {SubmitEvent} event */
  _submit(event) {
    event.preventDefault();
    this.problem.textContent = "";
    const uri = this.filter.value.trim();
    const button = event.submitter;
    const kind = button instanceof HTMLButtonElement && button.value === "record" ? "record" : "log";
    if (!uri && this.match.value === "exact") {
      this.problem.textContent = "Enter a topic, or choose «prefix» to open all topics.";
      this.filter.focus();
      return;
    }
    if (this.match.value !== "exact" && kind === "record") {
      this.problem.textContent = "A record is a single topic. Open a pattern as a log.";
      return;
    }
    this.open(kind, formatName(uri, this.match.value));
  }

  /**
   * @param {Topic[]} topics
   * @param {boolean} isTruncated
   */
  _show(topics, isTruncated) {
    const focused = document.activeElement?.closest(".topics a")?.getAttribute("href");
    this.list.replaceChildren(...topics.map((one) => topicRow(one)));
    if (focused) {
      const link = this.list.querySelector(`a[href="${CSS.escape(focused)}"]`);
      if (link instanceof HTMLElement) link.focus();
    }
    if (isTruncated) this.note.textContent = "There are more topics. Enter a prefix to narrow the list.";
    else
      this.note.textContent = topics.length
        ? ""
        : "No visible topic has this prefix. A topic can be opened before its first event.";
  }
}

/** @param {Topic} topic */
function topicRow({ topic, retained_at: retainedAt }) {
  /**
   * @param {Kind} kind
   * @param {string} text
   * @param {string} name
   */
  const link = (kind, text, name) =>
    el("a", { href: `#/${kind}/${encodeURIComponent(topic)}`, "aria-label": name }, text);
  return el(
    "li",
    {},
    retainedAt ? link("record", topic, `${topic}, record`) : link("log", topic, `${topic}, log`),
    el("span", { class: "kind" }, retainedAt ? `record · ${ago(Date.parse(retainedAt))}` : "log"),
    retainedAt ? link("log", "as log", `${topic} as log`) : link("record", "as record", `${topic} as record`),
  );
}
