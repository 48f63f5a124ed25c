// Runs before Material's script, which then runs unchanged: keeps it from asking for what the reader
// may never need.

// Material reads a sitemap beside each <link rel="alternate">, to find a page in the other language.
// Ours name that page already, so there is no sitemap to read. (Crawlers see the links: they are in the HTML.)
document.querySelectorAll("link[rel=alternate]").forEach((link) => link.remove());

// The search index and the worker that reads it weigh as much as several pages. Material asks for both
// when a page opens; they are fetched when the reader reaches for the search.
(() => {
  const wanted = new Promise((resolve) => {
    // Pages opened from a search result mark what was looked for, which takes the index.
    if (/[?&][hq]=/.test(location.search)) resolve();
    const reach = (event) => {
      if (event.target instanceof Element && event.target.closest(".md-search, [for=__search], #__search")) resolve();
    };
    for (const type of ["focusin", "pointerover", "change"]) document.addEventListener(type, reach);
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

  const Now = window.Worker;
  window.Worker = class extends EventTarget {
    constructor(...args) {
      super();
      this.worker = wanted.then(() => {
        const worker = new Now(...args);
        worker.addEventListener("message", ({ data }) => this.dispatchEvent(new MessageEvent("message", { data })));
        return worker;
      });
    }
    postMessage(...message) { this.worker.then((worker) => worker.postMessage(...message)); }
    terminate() { this.worker.then((worker) => worker.terminate()); }
  };
})();
