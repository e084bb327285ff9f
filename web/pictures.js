// The pictures of the reports that jobs have made.

import { ago, el, messageOf } from "./dom.js";
import { WampError } from "./wamp.js";

/** @import { Client } from "./wamp.js" */

/** A picture as `signalbox.report` lists it. @typedef {{ name: string, made_at: string }} Picture */

const SHOWN_FIRST = 6;

/**
 * Return the text for what a call could not load.
 * @param {unknown} error
 */
export function unavailable(error) {
  const isDenied = error instanceof WampError && error.uri === "wamp.error.not_authorized";
  return isDenied ? "You have no permission to view this." : `Not available: ${messageOf(error)}.`;
}

/** The pictures of the overview. */
export class PicturesView {
  /** @param {Client} client */
  constructor(client) {
    this.client = client;
    /** @type {Map<string, string>} object URLs by name */
    this.urls = new Map();
    /** @type {Picture[]} */
    this.pictures = [];
    this.list = el("ul", { class: "pictures" });
    this.note = el("p", { class: "empty" });
    this.more = el("button", { type: "button", hidden: true, onclick: () => this._show(this.pictures) }, "Show all");
    this.element = el(
      "section",
      { "aria-labelledby": "pictures-title" },
      el("h2", { id: "pictures-title" }, "Reports"),
      this.list,
      this.note,
      this.more,
    );
  }

  /** List the pictures, and show the newest. */
  async refresh() {
    try {
      const { args } = await this.client.call("signalbox.report");
      this.pictures = args[0];
      this.note.textContent = this.pictures.length ? "" : "There are no reports yet.";
      this._show(this.pictures.slice(0, SHOWN_FIRST));
      this.more.hidden = this.pictures.length <= SHOWN_FIRST;
    } catch (error) {
      this.note.textContent = unavailable(error);
    }
  }

  /** @param {Picture[]} pictures */
  _show(pictures) {
    this.more.hidden = true;
    this.list.replaceChildren(...pictures.map((picture) => this._item(picture)));
  }

  /** @param {Picture} picture */
  _item({ name, made_at: madeAt }) {
    const title = titleOf(name);
    const image = el("img", { alt: title, loading: "lazy" });
    this._load(name, image);
    const age = el("span", { class: "small" }, ` ${ago(Date.parse(madeAt))}`);
    return el(
      "li",
      {},
      el(
        "button",
        { type: "button", "aria-label": `Enlarge ${title}`, onclick: () => enlarge(image.src, title) },
        el("figure", {}, image, el("figcaption", {}, title, age)),
      ),
    );
  }

  /**
   * @param {string} name
   * @param {HTMLImageElement} image
   */
  async _load(name, image) {
    try {
      image.src = this.urls.get(name) ?? (await this._fetch(name));
    } catch (error) {
      image.alt = `${image.alt}: ${messageOf(error)}`;
    }
  }

  /** @param {string} name */
  async _fetch(name) {
    const { args } = await this.client.call("signalbox.report", [name]);
    // As an image, not as a part of the document: scripts in it do not run.
    const url = URL.createObjectURL(new Blob([args[0]], { type: "image/svg+xml" }));
    this.urls.set(name, url);
    return url;
  }
}

/**
 * Return the title of a picture: «delivery report, 2026-11-21» for `delivery_report/picture/day=2026-11-21.svg`.
 * @param {string} name
 */
function titleOf(name) {
  const parts = name
    .replace(/\.svg$/, "")
    .split("/")
    .filter((part) => part !== "picture");
  return parts.map((part) => part.replace(/^\w+=/, "").replaceAll("_", " ")).join(", ");
}

/**
 * @param {string} url
 * @param {string} title
 */
function enlarge(url, title) {
  /** @type {HTMLDialogElement} */
  const dialog = el(
    "dialog",
    { class: "picture", "aria-label": title, onclose: () => dialog.remove() },
    el("img", { src: url, alt: title }),
    el("form", { method: "dialog", class: "actions" }, el("button", { class: "primary", autofocus: true }, "Close")),
  );
  document.body.append(dialog);
  dialog.showModal();
}
