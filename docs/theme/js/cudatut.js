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
