// The topics of the realm, and a way to open any other.

import { ago, el } from "./dom.js";
import { nameOf } from "./models.js";

const TYPING_MS = 200;
const EVERY_MS = 15_000;

export class TopicsView {
  constructor(client, open) {
    Object.assign(this, { client, open });
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
        ["exact", "this topic"],
        ["prefix", "all that begin with it"],
        ["wildcard", "wildcard, a..c"],
      ].map(([value, text]) => el("option", { value }, text)),
    );
    this.list = el("ul", { class: "topics" });
    this.note = el("p", { class: "empty", role: "status" });
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
      this.list,
      this.note,
    );
  }

  attach() {
    this.refreshing = setInterval(() => this.refresh(), EVERY_MS);
    this.refresh();
  }

  detach() {
    clearInterval(this.refreshing);
  }

  async refresh() {
    const prefix = this.filter.value.trim();
    try {
      const { args, kwargs } = await this.client.call("signalbox.topics", [], { prefix });
      if (prefix === this.filter.value.trim()) this._show(args[0] ?? [], kwargs.more);
    } catch (error) {
      this.note.textContent = this.client.isLive ? `Topics cannot be listed: ${error.message}.` : "";
    }
  }

  _typed() {
    clearTimeout(this.typing);
    this.typing = setTimeout(() => this.refresh(), TYPING_MS);
  }

  _submit(event) {
    event.preventDefault();
    const uri = this.filter.value.trim();
    if (!uri && this.match.value === "exact") {
      this.note.textContent = "Type a topic, or choose «all that begin with it» for everything.";
      this.filter.focus();
      return;
    }
    if (this.match.value !== "exact" && event.submitter?.value === "record") {
      this.note.textContent = "A record is one topic. Several can be opened as a log.";
      return;
    }
    this.open(event.submitter?.value ?? "log", nameOf(uri, this.match.value));
  }

  _show(topics, more) {
    const focused = document.activeElement?.closest?.(".topics a")?.getAttribute("href");
    this.list.replaceChildren(...topics.map((one) => topicRow(one)));
    if (focused) this.list.querySelector(`a[href="${CSS.escape(focused)}"]`)?.focus();
    if (more) this.note.textContent = "There are more: type how the topic begins.";
    else
      this.note.textContent = topics.length
        ? ""
        : "No topic that you may see begins so. You can open one before it has events.";
  }
}

function topicRow({ topic, retained_at: retainedAt }) {
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
