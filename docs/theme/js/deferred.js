// What a page leaves to pages beside it (cudatut/site/deferred.py): another GPU's tables and charts, which come when the
// reader chooses that GPU, and what some folds hold, which comes when one of them is opened. Until then a link to that page
// stands in its place. Runs before folds.js, which looks into folds, and before Material's script.
const ctDeferred = (() => {
  const WAITING = "[data-deferred]";
  const words = () => document.querySelector(".ct-deferred__status")?.dataset || {};
  const say = (sentence) => {
    const status = document.querySelector(".ct-deferred__status");
    if (status) status.textContent = sentence;
  };
  const address = (place) => place.querySelector("a").href.split("#")[0];

  // --- fetching ---------------------------------------------------------------------------------------

  const pages = new Map(); // the documents that were asked for, by address
  const parsed = (url, text) => {
    const page = new DOMParser().parseFromString(text, "text/html");
    // Where no script runs, such as in this document, what is for readers without scripts is part of the page.
    page.querySelectorAll("noscript").forEach((one) => one.remove());
    // Its links are relative to where it lies. One to this very page stays a link inside it.
    for (const name of ["href", "src", "data-src"])
      for (const one of page.querySelectorAll(`[data-part] [${name}]`)) {
        const target = new URL(one.getAttribute(name), url);
        const here = target.pathname === location.pathname && target.hash;
        one.setAttribute(name, here ? target.hash : target.href);
      }
    return page;
  };
  const fetched = (url) => {
    if (!pages.has(url)) {
      const page = fetch(url).then((answer) => {
        if (!answer.ok) throw new Error(`${url}: ${answer.status}`);
        return answer.text();
      }).then((text) => parsed(url, text));
      page.catch(() => pages.delete(url)); // so that it can be tried again
      pages.set(url, page);
    }
    return pages.get(url);
  };
  // On paper at once: nobody waits for a promise before printing.
  const fetchedNow = (url) => {
    const request = new XMLHttpRequest();
    request.open("GET", url, false);
    request.send();
    return request.status < 400 ? parsed(url, request.responseText) : null;
  };

  // --- putting it in its place ------------------------------------------------------------------------

  // Material gives a copy button to the code that a page has when it opens; this is the same, for code that comes later.
  let blocks = 0;
  const copyable = (code) => {
    const pre = code.parentElement, nav = document.createElement("nav"), button = document.createElement("button");
    pre.id = `__code_later_${blocks++}`;
    nav.className = "md-code__nav";
    button.className = "md-code__button";
    button.title = JSON.parse(document.getElementById("__config").text).translations["clipboard.copy"];
    button.dataset.clipboardTarget = `#${pre.id} > code`;
    button.dataset.mdType = "copy";
    nav.append(button);
    pre.insertBefore(nav, code);
  };
  const put = (place, page) => {
    const part = page?.querySelector(`[data-part="${place.dataset.deferred}"]`);
    if (!part) return failed(place);
    const pieces = [...document.importNode(part, true).childNodes];
    const focused = place.contains(document.activeElement);
    place.replaceWith(...pieces);
    if (focused) pieces.find((piece) => piece.querySelector?.("[tabindex]"))?.querySelector("[tabindex]").focus();
    for (const piece of pieces) piece.querySelectorAll?.("pre > code").forEach(copyable);
    document.dispatchEvent(new Event("ct-put"));
  };
  const failed = (place) => {
    const { failed: sentence, again } = words();
    const told = document.createElement("p"), button = document.createElement("button");
    told.className = "ct-deferred__failed";
    button.type = "button";
    button.textContent = again;
    button.addEventListener("click", () => load([place]));
    told.append(sentence, " ", button);
    place.querySelector(".ct-deferred__failed")?.remove();
    delete place.dataset.loading;
    place.prepend(told);
    say(sentence);
  };

  // What waits for the same page comes with it. Resolves when all of it is there, or known to be missing.
  const load = (places) => {
    const wanted = [...new Set(places.map(address))];
    return Promise.all(wanted.map(async (url) => {
      const waiting = [...document.querySelectorAll(WAITING)].filter((place) => address(place) === url);
      const folds = waiting.some((place) => place.matches("details > *"));
      for (const place of waiting) {
        place.querySelector(".ct-deferred__failed")?.remove();
        place.dataset.loading = words().loading;
      }
      say(words().loading);
      const page = await fetched(url).catch(() => null);
      say("");
      for (const place of waiting) if (place.isConnected) put(place, page);
      if (folds) document.dispatchEvent(new Event("ct-folds"));
    }));
  };

  // --- folds ------------------------------------------------------------------------------------------

  const inFolds = () => [...document.querySelectorAll(`details.deferred > ${WAITING}`)];
  document.addEventListener("toggle", ({ target }) => {
    const place = target.open && target.querySelector?.(`:scope > ${WAITING}`);
    if (place) load([place]);
  }, true);
  // Whoever looks for words on the page, or prints it, means what the folds hold, too.
  addEventListener("keydown", (event) => {
    if ((event.ctrlKey || event.metaKey) && event.key.toLowerCase() === "f" && inFolds().length) load(inFolds());
  });
  addEventListener("beforeprint", () => {
    const now = new Map();
    for (const place of inFolds()) {
      const url = address(place);
      if (!now.has(url)) try { now.set(url, fetchedNow(url)); } catch { now.set(url, null); }
      if (now.get(url)) put(place, now.get(url));
    }
  });

  // --- GPUs -------------------------------------------------------------------------------------------

  // One that the reader chooses in one chart is chosen in all, and on the next page.
  const KEY = "cudatut-gpu";
  const choices = () => [...document.querySelectorAll(".ct-gpus input")];
  const pane = (input) => {
    const label = input.closest("label"), all = input.closest(".ct-gpus");
    return all.querySelectorAll(":scope > .ct-gpu")[[...label.parentElement.querySelectorAll("label")].indexOf(label)];
  };
  // Only what is there is shown, so that nothing jumps twice.
  const choose = async (gpu) => {
    const wanted = choices().filter((input) => input.value === gpu);
    const missing = wanted.map((input) => pane(input).querySelector(WAITING)).filter(Boolean);
    if (missing.length) await load(missing);
    for (const input of choices()) if (input.value === gpu) input.checked = true;
    // Sentences that do not hold there say so (cudatut/site/conditions.py).
    for (const mark of document.querySelectorAll(".ct-not-so[data-gpu]")) mark.hidden = mark.dataset.gpu !== gpu;
    return wanted.map(pane).find((one) => !one.querySelector(WAITING));
  };
  let latest = "";
  document.addEventListener("change", async ({ target }) => {
    if (!target.matches?.(".ct-gpus input")) return;
    latest = target.value;
    try { localStorage.setItem(KEY, latest); } catch {}
    const box = target.closest(".ct-gpus");
    box.style.minHeight = `${box.offsetHeight}px`;
    const shown = await choose(target.value);
    box.style.minHeight = "";
    // Of several choices in short time the last one counts.
    if (latest !== target.value) choose(latest);
    else if (shown) say(words().shown.replace("{name}", shown.getAttribute("aria-label")));
  });
  const remembered = () => {
    try { return localStorage.getItem(KEY); } catch { return null; }
  };
  const asBefore = () => { if (remembered()) choose(remembered()); };
  addEventListener("DOMContentLoaded", asBefore);
  // Folds that come later have charts, too.
  document.addEventListener("ct-folds", () => {
    const gpu = remembered();
    if (choices().some((input) => input.value === gpu && !input.checked)) choose(gpu);
  });

  return { inFolds, load };
})();
