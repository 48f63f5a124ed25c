// Folds open for what is looked for in them: the target of a link, the words of a search. Their addresses come from
// cudatut/site/folds.py. Runs before Material's script, which marks the words of a search in what is open: when `ctFolds`
// resolves, all is open that will be for them.
let ctFolds = Promise.resolve();
{
  const reveal = (element) => {
    for (let fold = element?.closest("details"); fold; fold = fold.parentElement.closest("details")) fold.open = true;
  };
  const named = (hash) => {
    try { return document.getElementById(decodeURIComponent(hash.slice(1))); } catch { return null; }
  };
  let coming = false; // what the address names is in a fold whose content is being fetched (deferred.js)
  const toTarget = () => {
    const target = named(location.hash);
    coming = Boolean(target?.closest("[data-deferred]"));
    if (!target?.closest("details")) return;
    reveal(target);
    target.scrollIntoView();
  };
  addEventListener("hashchange", toTarget);
  document.addEventListener("ct-folds", () => { if (coming) toTarget(); });
  // A link to where the page already is changes no address.
  document.addEventListener("click", ({ target }) => {
    const link = target instanceof Element && target.closest("a[href*='#']");
    if (link && link.pathname === location.pathname && link.hash === location.hash) toTarget();
  });

  // The words of a search are looked for in the section to which its result leads.
  const toWords = async () => {
    const words = (new URLSearchParams(location.search).get("h") || "").toLowerCase().split(/\s+/).filter(Boolean);
    const article = document.querySelector("article");
    if (!words.length || !article) return;
    if (ctDeferred.inFolds().length) await ctDeferred.load(ctDeferred.inFolds());
    const headings = [...article.querySelectorAll(":is(h1, h2, h3, h4, h5, h6)[id]")];
    const from = headings.findIndex((heading) => heading === named(location.hash));
    const start = headings[Math.max(from, 0)], end = headings[Math.max(from, 0) + 1];
    const follows = (a, b) => Boolean(a.compareDocumentPosition(b) & Node.DOCUMENT_POSITION_FOLLOWING);
    const inside = (node) => (!start || follows(start, node)) && (!end || follows(node, end));
    // The text outside the closed folds, and that of each fold.
    const open = [], folds = new Map();
    const texts = document.createTreeWalker(article, NodeFilter.SHOW_TEXT);
    while (texts.nextNode()) {
      const node = texts.currentNode, fold = node.parentElement.closest("details:not([open])");
      if (!inside(node)) continue;
      if (!fold || node.parentElement.closest("summary")?.parentElement === fold) open.push(node.data);
      else folds.set(fold, (folds.get(fold) || "") + node.data);
    }
    const has = (text, word) => text.toLowerCase().includes(word);
    const seen = open.join(" ");
    const missing = words.filter((word) => !has(seen, word));
    const whole = [...folds.keys()].filter((fold) => words.every((word) => has(folds.get(fold), word)));
    const some = [...folds.keys()].filter((fold) => missing.some((word) => has(folds.get(fold), word)));
    if (missing.length || words.length > 1) (whole.length ? whole : some).forEach(reveal);
  };

  // The other language's page has the same folds.
  const KEY = "cudatut-folds";
  document.addEventListener("click", ({ target }) => {
    const link = target instanceof Element && target.closest("a.ct-language");
    if (!link) return;
    const open = [...document.querySelectorAll("article details[open] > summary[id]")].map((one) => one.id);
    try { sessionStorage.setItem(KEY, JSON.stringify([link.pathname, open])); } catch {}
  });
  const asBefore = () => {
    try {
      const [path, open] = JSON.parse(sessionStorage.getItem(KEY));
      sessionStorage.removeItem(KEY);
      if (path === location.pathname) for (const id of open) reveal(document.getElementById(id));
    } catch {}
  };

  addEventListener("DOMContentLoaded", () => { asBefore(); ctFolds = toWords(); toTarget(); });
}
