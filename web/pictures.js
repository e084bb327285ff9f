// The pictures that the jobs make of their reports.

import { ago, el } from "./dom.js";

const AT_FIRST = 6;

export class PicturesView {
  constructor(client) {
    this.client = client;
    this.urls = new Map();
    this.list = el("ul", { class: "pictures" });
    this.note = el("p", { class: "empty" });
    this.more = el("button", { type: "button", hidden: true, onclick: () => this._show(this.found) }, "Show all");
    this.element = el(
      "section",
      { "aria-labelledby": "pictures-title" },
      el("h2", { id: "pictures-title" }, "Reports"),
      this.list,
      this.note,
      this.more,
    );
  }

  async refresh() {
    try {
      const {
        args: [found],
      } = await this.client.call("signalbox.report");
      this.found = found;
      this.note.textContent = found.length ? "" : "No job has made a picture yet.";
      this._show(found.slice(0, AT_FIRST));
      this.more.hidden = found.length <= AT_FIRST;
    } catch (error) {
      const isDenied = error.uri === "wamp.error.not_authorized";
      this.note.textContent = isDenied
        ? "For administrators, and whom it is granted to."
        : `Not to be had right now: ${error.message}.`;
    }
  }

  _show(pictures) {
    this.more.hidden = true;
    this.list.replaceChildren(...pictures.map((picture) => this._item(picture)));
  }

  _item({ name, made_at: madeAt }) {
    const title = titleOf(name);
    const image = el("img", { alt: title, loading: "lazy" });
    this._load(name, image);
    return el(
      "li",
      {},
      el(
        "button",
        { type: "button", "aria-label": `Enlarge ${title}`, onclick: () => enlarge(image.src, title) },
        el(
          "figure",
          {},
          image,
          el("figcaption", {}, title, el("span", { class: "small" }, ` ${ago(Date.parse(madeAt))}`)),
        ),
      ),
    );
  }

  async _load(name, image) {
    try {
      if (!this.urls.has(name)) {
        const {
          args: [svg],
        } = await this.client.call("signalbox.report", [name]);
        // As an image, not as a part of the page: nothing in it can run.
        this.urls.set(name, URL.createObjectURL(new Blob([svg], { type: "image/svg+xml" })));
      }
      image.src = this.urls.get(name);
    } catch (error) {
      image.alt = `${image.alt}: ${error.message}`;
    }
  }
}

/** Return «delivery report, 2026-11-21» of `delivery_report/picture/day=2026-11-21.svg`. */
function titleOf(name) {
  const parts = name
    .replace(/\.svg$/, "")
    .split("/")
    .filter((part) => part !== "picture");
  return parts.map((part) => part.replace(/^\w+=/, "").replaceAll("_", " ")).join(", ");
}

function enlarge(url, title) {
  const dialog = el(
    "dialog",
    { class: "picture", "aria-label": title, onclose: () => dialog.remove() },
    el("img", { src: url, alt: title }),
    el("form", { method: "dialog", class: "actions" }, el("button", { class: "primary", autofocus: true }, "Close")),
  );
  document.body.append(dialog);
  dialog.showModal();
}
