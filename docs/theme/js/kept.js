// What the reader has done, kept in this browser alone: chapters read, exercises done, predictions. Both languages and all
// open pages share it. progress.js and predictions.js show it, and hear of a change by the event `ct-kept`.
const ctKept = (() => {
  const KEY = "cudatut-progress", NAME = /^[a-z0-9_]+\/[a-z0-9_]+$/;
  const isObject = (value) => typeof value === "object" && value !== null && !Array.isArray(value);
  const entries = (value) => Object.entries(isObject(value) ? value : {});

  // Of what somebody else may have written only what has our form. `predicted`: by table and cell, what was written there.
  const chapter = ({ read, done, predicted }) => ({
    read: read === true,
    done: [...new Set(Array.isArray(done) ? done : [])].filter((n) => Number.isInteger(n) && n > 0),
    predicted: Object.fromEntries(entries(predicted).filter(([at, words]) => /^\d+(\.\d+){2}$/.test(at) && typeof words === "string")),
  });
  const chapters = (value) => new Map(entries(value)
    .filter(([name, one]) => NAME.test(name) && isObject(one)).map(([name, one]) => [name, chapter(one)]));
  const parsed = (text) => {
    try {
      const data = JSON.parse(text);
      return data.cudatut === "progress" && data.version === 1 && isObject(data.chapters) ? chapters(data.chapters) : null;
    } catch { return null; }
  };
  const written = (all) => JSON.stringify({ cudatut: "progress", version: 1, chapters: Object.fromEntries(all) }, null, 1);

  let here = null; // where the browser keeps nothing, as long as the page is open
  const all = () => {
    try { return parsed(here ?? localStorage.getItem(KEY)) || new Map(); } catch { return new Map(); }
  };
  const tell = () => document.dispatchEvent(new Event("ct-kept"));
  const keep = (text) => {
    try { text === null ? localStorage.removeItem(KEY) : localStorage.setItem(KEY, text); } catch { here = text ?? written(new Map()); }
    tell();
  };
  // Another page has changed it, or this one was left and is back.
  addEventListener("storage", ({ key }) => { if (key === KEY || key === null) tell(); });
  addEventListener("pageshow", ({ persisted }) => { if (persisted) tell(); });

  const of = (name) => all().get(name) || chapter({});
  // `how` changes what is kept of a chapter, as `of` gives it.
  const change = (name, how) => {
    const now = all(), one = now.get(name) || chapter({});
    how(one);
    const { read, done, predicted } = one;
    if (read || done.length || Object.keys(predicted).length) now.set(name, one);
    else now.delete(name);
    keep(written(now));
  };
  // Adds to what is kept; of a prediction in both, the file's. False for what is no such file.
  const add = (text) => {
    const other = parsed(text), now = all();
    if (!other) return false;
    for (const [name, one] of other) {
      const own = now.get(name) || chapter({});
      now.set(name, chapter({
        read: own.read || one.read, done: [...own.done, ...one.done], predicted: { ...own.predicted, ...one.predicted },
      }));
    }
    keep(written(now));
    return true;
  };

  // The name of a chapter by its address, "start/hello"; "" for all other pages.
  const root = () => new URL(JSON.parse(document.getElementById("__config").text).base, location).pathname.replace(/\/?$/, "/");
  const named = (address) => {
    const path = new URL(address, location).pathname.replace(/(index\.html)?$/, ""), home = root();
    const name = path.startsWith(home) ? path.slice(home.length).replace(/\/$/, "") : "";
    return NAME.test(name) ? name : "";
  };
  return { of, change, add, named, root, text: () => written(all()), forget: () => keep(null) };
})();
