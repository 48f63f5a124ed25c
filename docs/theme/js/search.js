// The search, between Material's page and the worker that answers, searching.js: asks for the index only when the reader
// reaches for it. Runs before Material's script, which then runs unchanged.
(() => {
  // The index and the worker that reads it weigh as much as several pages. Material asks for both when a page opens.
  const wanted = new Promise((resolve) => {
    // Pages opened from a search result mark what was looked for, which takes the index; before that, folds.js opens what
    // holds it, in the same event.
    if (/[?&][hq]=/.test(location.search)) addEventListener("DOMContentLoaded", () => resolve(ctFolds));
    const reach = (event) => {
      if (event.target instanceof Element && event.target.closest(".md-search, [for=__search], #__search")) resolve();
    };
    for (const type of ["focusin", "pointerover", "change"]) document.addEventListener(type, reach);
  });

  // Material reads the field when a key is released. Nobody releases one who pastes with the mouse, speaks, or picks Chinese
  // from the list of an input method.
  document.addEventListener("input", ({ target }) => {
    if (target.matches(".md-search__input")) target.dispatchEvent(new Event("keyup"));
  });

  const { open, send } = XMLHttpRequest.prototype;
  const late = new WeakSet();
  XMLHttpRequest.prototype.open = function (method, url, ...rest) {
    if (String(url).includes("/search/search_index.json")) late.add(this);
    return open.call(this, method, url, ...rest);
  };
  XMLHttpRequest.prototype.send = function (...body) {
    if (!late.has(this)) return send.apply(this, body);
    wanted.then(() => send.apply(this, body));
  };

  // Ours in the place of Material's, which would build its index anew on each page before it answers.
  const Now = window.Worker, ours = new URL("searching.js", document.currentScript.src);
  window.Worker = class extends EventTarget {
    constructor() {
      super();
      this.worker = wanted.then(() => {
        const worker = new Now(ours);
        worker.addEventListener("message", ({ data }) => this.dispatchEvent(new MessageEvent("message", { data })));
        return worker;
      });
    }
    postMessage(message) { this.worker.then((worker) => worker.postMessage(message)); }
    terminate() { this.worker.then((worker) => worker.terminate()); }
  };
})();
