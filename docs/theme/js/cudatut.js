// Runs before Material's script, which then runs unchanged: keeps it from asking for what the reader
// may never need.

// Material reads a sitemap beside each <link rel="alternate">, to find a page in the other language.
// Ours name that page already, so there is no sitemap to read. (Crawlers see the links: they are in the HTML.)
document.querySelectorAll("link[rel=alternate][hreflang]").forEach((link) => link.remove());

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

  // What a term of the glossary is called in the index's field "keywords": `token` in cudatut/site/searching.py.
  const key = (words) =>
    "§" + [...words.toLowerCase().replace(/[^\p{L}\p{N}]+/gu, "")]
      .map((c) => (c.codePointAt(0) < 128 ? c : c.codePointAt(0).toString(16))).join("");
  // Material cuts Chinese by the words of the index and never looks at the last character: one more is appended.
  // Whoever writes "optimise" finds "optimize" too.
  const widened = (words) =>
    words.replace(/\p{sc=Han}{2,}/gu, "$&〇 $&").replace(/\b(\w{3,}?)is(e[drs]?|ing|ations?)\b/gi, "$& $1iz$2");

  const QUERY = 2, RESULT = 3; // Material's types of messages
  const Now = window.Worker;
  window.Worker = class extends EventTarget {
    constructor(...args) {
      super();
      this.worker = wanted.then(() => {
        const worker = new Now(...args);
        worker.addEventListener("message", ({ data }) => this.answer(data));
        return worker;
      });
    }
    // Each question is asked twice: as it was typed, and as the name of a term.
    postMessage(message) {
      this.worker.then((worker) => {
        if (message.type !== QUERY) return worker.postMessage(message);
        worker.postMessage({ ...message, data: widened(message.data) });
        worker.postMessage({ ...message, data: `${key(message.data)}^1` });
      });
    }
    // The chapters that introduce the term, then everything else.
    answer(data) {
      if (data.type === RESULT && !this.found) return void (this.found = data);
      if (data.type === RESULT) {
        const page = (group) => group[0].location.split("#")[0];
        const terms = data.data.items.map((group) => group.map((item) => ({ ...item, terms: {} })));
        data = this.found;
        this.found = undefined;
        const { items } = data.data;
        for (const item of items.flat()) // words that we added are not missing
          item.terms = Object.fromEntries(Object.entries(item.terms).filter(([word, there]) => there && !word.includes("〇")));
        const first = terms.map((group) => items.find((other) => page(other) === page(group)) || group);
        data.data.items = [...first, ...items.filter((group) => !first.includes(group))];
      }
      this.dispatchEvent(new MessageEvent("message", { data }));
    }
    terminate() { this.worker.then((worker) => worker.terminate()); }
  };
})();

// The other language's page has the same ids: stay at the section at which the reader is.
document.addEventListener("click", ({ target }) => {
  const link = target instanceof Element && target.closest("a.ct-language");
  if (link) link.hash = location.hash;
});

// A GPU that the reader chooses in one chart is chosen in all, and on the next page.
{
  const key = "cudatut-gpu";
  const choose = (gpu) => {
    for (const one of document.querySelectorAll(".ct-gpus input")) if (one.value === gpu) one.checked = true;
  };
  document.addEventListener("change", ({ target }) => {
    if (!target.matches?.(".ct-gpus input")) return;
    choose(target.value);
    try { localStorage.setItem(key, target.value); } catch {}
  });
  document.addEventListener("DOMContentLoaded", () => {
    try { choose(localStorage.getItem(key)); } catch {}
  });
}
