// Pictures (cudatut/site/pictures.py) are fetched when the reader is near: a browser by itself fetches those that are a whole
// window further down. Runs after deferred.js, which fetches for paper what has pictures, too.
{
  const NEAR = "100px";
  const waiting = () => document.querySelectorAll("img[data-src]");
  const show = (image) => {
    image.src = image.dataset.src;
    image.removeAttribute("data-src");
  };
  const seen = new IntersectionObserver((all) => {
    for (const { isIntersecting, target } of all) {
      if (!isIntersecting) continue;
      seen.unobserve(target);
      show(target);
    }
  }, { rootMargin: NEAR });
  const watch = () => waiting().forEach((image) => seen.observe(image));
  addEventListener("DOMContentLoaded", watch);
  document.addEventListener("ct-put", watch);
  addEventListener("beforeprint", () => waiting().forEach(show));
}
