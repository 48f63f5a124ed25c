// What tools/print_part.py does to the page of a chapter in the browser: a function of its options that returns
// {title, xhtml, images, mathml, svg}, the chapter without what only a screen can use, and without answers and solutions.
// options: {chapter, inside, file, narrow, solution, base}; inside: {path of a chapter in this book: its name};
// file: what a link to a chapter begins with ("{name}" is its name); base: the address of the published book, or "".
async (options) => {
  const { chapter, inside, file, narrow, solution, base } = options;
  // Deferred folds and all pictures come for paper.
  dispatchEvent(new Event("beforeprint"));
  const article = document.querySelector("article");
  const drop = (selector) => article.querySelectorAll(selector).forEach((one) => one.remove());
  const page = location.pathname;
  drop(".headerlink, .md-content__button, .md-code__nav, .md-clipboard, .ct-gpus__choice, .ct-deferred, .ct-deferred__status");
  drop(".ct-certificate, .ct-download, .ct-actions, script, noscript, style, input, button, [hidden]");
  // Where the book is not published, no link to the files of a chapter leads anywhere.
  if (!base) drop("#code, ul.ct-code");
  drop(narrow ? ".ct-svg.ct-wide" : ".ct-svg.ct-narrow");
  // Another GPU's tables and charts, which are not here, and what says so.
  article.querySelectorAll(".ct-gpus").forEach((group) => {
    group.querySelectorAll(":scope > .ct-gpu:not(:first-of-type)").forEach((one) => one.remove());
  });
  drop(".ct-gpu__note");

  for (const fold of [...article.querySelectorAll("details.success")]) {
    const told = document.createElement("p");
    told.className = "ct-elsewhere";
    told.textContent = solution.replace("{title}", fold.querySelector("summary").textContent.trim());
    fold.replaceWith(told);
  }
  for (const fold of [...article.querySelectorAll("details")].reverse()) {
    const open = document.createElement("div"), title = document.createElement("p");
    open.className = `ct-fold ${fold.className}`;
    title.className = "ct-fold__title";
    const summary = fold.querySelector(":scope > summary");
    if (summary.id) title.id = summary.id;
    title.append(...summary.childNodes);
    summary.remove();
    open.append(title, ...fold.childNodes);
    fold.replaceWith(open);
  }

  // The colors of drawings, which a reader of books may not have as variables.
  const OF_SHAPES = ["fill", "stroke", "stroke-width", "stroke-dasharray"];
  const OF_WORDS = ["fill", "font-family", "font-weight"];
  const shown = (color) => {
    const [r, g, b] = (color.match(/[\d.]+/g) || []).map(Number);
    return color.startsWith("rgb(") ? `#${[r, g, b].map((c) => c.toString(16).padStart(2, "0")).join("")}` : color;
  };
  if (narrow)
    for (const svg of article.querySelectorAll("svg.ct-svg")) {
      for (const one of svg.querySelectorAll("rect, circle, polygon, polyline, line, path, text")) {
        const style = getComputedStyle(one);
        for (const name of one.matches("text") ? OF_WORDS : OF_SHAPES) {
          let value = shown(style.getPropertyValue(name));
          if (name === "font-family") value = value.includes("mono") ? "monospace" : "sans-serif";
          if (name === "font-weight" && value === "400") continue;
          if (!["", "1px", "normal"].includes(value) && !(value === "none" && name.endsWith("array")))
            one.setAttribute(name, value);
        }
      }
      svg.style.minWidth = "";
      svg.removeAttribute("style");
    }

  // Addresses: one document may hold several chapters.
  const named = (name, id) => (file ? id : `${name}--${id}`);
  for (const one of article.querySelectorAll("[id]")) one.id = named(chapter, one.id);
  const images = [];
  for (const link of article.querySelectorAll("a[href]")) {
    const url = new URL(link.getAttribute("href"), location.href);
    const target = inside[url.pathname];
    const id = decodeURIComponent(url.hash.slice(1));
    if (url.host !== location.host) continue;
    if (url.pathname === page && id) link.setAttribute("href", `#${named(chapter, id)}`);
    else if (target)
      link.setAttribute("href", file ? file.replace("{name}", target) + (id ? `#${id}` : "") : `#${named(target, id || "top-of-chapter")}`);
    else if (base) link.setAttribute("href", new URL(url.pathname.slice(1) + url.hash, base).href);
    else {
      const words = document.createElement("span");
      words.append(...link.childNodes);
      link.replaceWith(words);
    }
  }
  // What a link of the page itself leads to may have gone with a solution.
  for (const link of article.querySelectorAll('a[href^="#"]'))
    if (link.getAttribute("href").startsWith(`#${named(chapter, "")}`) && !document.getElementById(link.getAttribute("href").slice(1)))
      link.replaceWith(...link.childNodes);
  for (const image of article.querySelectorAll("img[src]")) {
    const url = new URL(image.getAttribute("src"), location.href);
    if (url.protocol === "data:") continue;
    images.push(url.pathname);
    image.setAttribute("src", file ? url.pathname.slice(1) : url.pathname);
    image.removeAttribute("loading");
  }
  for (const one of article.querySelectorAll("*"))
    for (const { name } of [...one.attributes])
      if (/^(data-|on)/.test(name) || ["tabindex", "target"].includes(name)) one.removeAttribute(name);

  const title = article.querySelector("h1");
  const words = title.textContent.trim();
  const xhtml = [...article.childNodes].map((one) => new XMLSerializer().serializeToString(one)).join("");
  return { title: words, xhtml, images, mathml: !!article.querySelector("math"), svg: !!article.querySelector("svg") };
}
