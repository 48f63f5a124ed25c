// The search, between Material's page and Material's worker: asks for the index only when the reader reaches for it, and
// puts in order what the worker answers. Runs before Material's script, which then runs unchanged.
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

  // --- the question ---------------------------------------------------------------------------------

  // What a term of the glossary is called in the index's field "keywords": `token` in cudatut/site/searching.py.
  const key = (words) =>
    "§" + [...words.toLowerCase().replace(/[^\p{L}\p{N}]+/gu, "")]
      .map((c) => (c.codePointAt(0) < 128 ? c : c.codePointAt(0).toString(16))).join("");
  // Material cuts Chinese by the words of the index and never looks at the last character: one more is appended.
  // It takes `CUDA显存` for one word, so Chinese gets blanks around it. Whoever writes "optimise" finds "optimize" too.
  const BRITISH = /is(e[drs]?|ing|ations?)$/i;
  const widened = (words) =>
    words.replace(/\p{sc=Han}+/gu, (run) => (run.length > 1 ? ` ${run}〇 ${run} ` : ` ${run} `))
      .replace(/\b\w{5,}\b/g, (word) => (BRITISH.test(word) ? `${word} ${word.replace(BRITISH, "iz$1")}` : word));

  // --- the answer -----------------------------------------------------------------------------------

  // One line of a text as it is compared: without tags, quotes and the marks between Chinese words, in lower case.
  const plain = (text) =>
    text.replace(/<[^>]+>|["\u200b]/g, "").replace(/&quot;/g, "").replace(/&lt;/g, "<").replace(/&gt;/g, ">").replace(/&amp;/g, "&")
      .replace(/\s+/g, " ").toLowerCase();

  // Whether an entry has all that was typed. Material says for each word whether it has it; a word that was asked for
  // in two spellings is there with either, and a run of Chinese where what was found covers what could be.
  const whole = (terms, question) => {
    const words = new Map();
    for (const [word, there] of Object.entries(terms)) {
      if (/\p{sc=Han}|〇/u.test(word)) continue;
      const name = word.replace(BRITISH, "iz$1");
      words.set(name, words.get(name) || there);
    }
    if ([...words.values()].includes(false)) return false;
    const chinese = Object.entries(terms).filter(([word]) => /\p{sc=Han}/u.test(word) && !word.includes("〇"));
    return (question.match(/\p{sc=Han}+/gu) || []).every((run) => {
      const places = (wanted) =>
        new Set(chinese.filter(([, there]) => there || !wanted).flatMap(([word]) =>
          [...run].flatMap((_, i) => (run.startsWith(word, i) ? [...word].map((_, j) => i + j) : []))));
      return places(true).size === places(false).size;
    });
  };

  // How many letters of a text one has to read to see all of the words; infinite where one is not there.
  const spread = (text, words) => {
    const places = words.flatMap((word, number) => {
      const found = [];
      for (let at = text.indexOf(word); at >= 0; at = text.indexOf(word, at + 1))
        if (word.charCodeAt(0) > 127 || !/\w/.test(text[at - 1] || "")) found.push([at, at + word.length, number]);
      return found;
    }).sort(([a], [b]) => a - b);
    const last = new Map();
    let least = Infinity;
    for (const [at, end, number] of places) {
      last.set(number, at);
      if (last.size === words.length) least = Math.min(least, end - Math.min(...last.values()));
    }
    return least;
  };
  const NEAR = 8; // letters between two words that belong together

  const QUERY = 2, RESULT = 3; // Material's types of messages; 0 brings the index
  const Now = window.Worker;
  window.Worker = class extends EventTarget {
    constructor(...args) {
      super();
      this.asked = []; // questions that the worker has not yet answered
      this.texts = new Map(); // of the entries of the index, by their addresses
      this.worker = wanted.then(() => {
        const worker = new Now(...args);
        worker.addEventListener("message", ({ data }) => this.answer(data));
        return worker;
      });
    }
    // Each question is asked twice: as it was typed, and as the name of a term.
    postMessage(message) {
      this.worker.then((worker) => {
        for (const { location, title, text } of message.data.docs || []) this.texts.set(location, `${title} ${text}`);
        if (message.type !== QUERY) return worker.postMessage(message);
        this.asked.push(message.data);
        worker.postMessage({ ...message, data: widened(message.data) });
        worker.postMessage({ ...message, data: `${key(message.data)}^1` });
      });
    }
    answer(data) {
      if (data.type === RESULT && !this.found) return void (this.found = data);
      if (data.type === RESULT) {
        const terms = data.data.items;
        data = this.found;
        this.found = undefined;
        data.data.items = this.ordered(data.data.items, terms, this.asked.shift());
      }
      this.dispatchEvent(new MessageEvent("message", { data }));
    }
    // The chapters that introduce the term; then entries in which the question stands as it was typed; then those that
    // have its words close to each other; then those that have them at all; then everything else. Within each,
    // Material's order.
    ordered(items, terms, question) {
      const line = plain(question).trim();
      const ranked = (item) => {
        if (/\s|\p{sc=Han}{2}/u.test(line) && this.text(item.location).includes(line)) return 3;
        const words = Object.keys(item.terms).filter((word) => item.terms[word] && !word.includes("〇"));
        if (!words.length || !whole(item.terms, question)) return 0;
        const length = words.reduce((sum, word) => sum + word.length + NEAR, 0);
        return words.length > 1 && spread(this.text(item.location), words) <= length ? 2 : 1;
      };
      const rank = new Map();
      for (const item of items.flat()) {
        rank.set(item, ranked(item));
      // Words that we added are not missing.
        item.terms = Object.fromEntries(Object.entries(item.terms).filter(([word, there]) => there && !word.includes("〇")));
      }
      const best = (group) => Math.max(...group.map((item) => rank.get(item)));
      for (const group of items) group.sort((a, b) => rank.get(b) - rank.get(a));
      items.sort((a, b) => best(b) - best(a)); // keeps the order of equals
      const page = (group) => group[0].location.split("#")[0];
      const found = terms.map((group) => group.map((item) => ({ ...item, terms: {} })));
      const first = found.map((group) => items.find((other) => page(other) === page(group)) || group);
      return [...first, ...items.filter((group) => !first.includes(group))];
    }
    text(location) {
      const text = this.texts.get(location);
      if (typeof text !== "string") return text?.plain ?? "";
      const made = { plain: plain(text) };
      this.texts.set(location, made);
      return made.plain;
    }
    terminate() { this.worker.then((worker) => worker.terminate()); }
  };
})();
