// Runs before Material's script, which then runs unchanged: keeps it from asking for what the reader
// may never need.

// Material reads a sitemap beside each <link rel="alternate">, to find a page in the other language.
// Ours name that page already, so there is no sitemap to read. (Crawlers see the links: they are in the HTML.)
document.querySelectorAll("link[rel=alternate][hreflang]").forEach((link) => link.remove());

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
