// How far the reader has come, shown and changed: at the end of a chapter, at its exercises, and in the navigation; landing.js
// does it on the landing page. What is kept, and where, is in kept.js.
const ctProgress = (() => {
  const words = ctWords.progress;
  const said = (sentence, values) => sentence.replace(/\{(\w+)\}/g, (_, name) => values[name]);
  const make = (tag, properties = {}, ...inside) => {
    const made = Object.assign(document.createElement(tag), properties);
    made.append(...inside);
    return made;
  };
  const tick = () => {
    const made = make("span", { className: "ct-tick" }, "✓");
    made.setAttribute("role", "img");
    made.setAttribute("aria-label", words.ticked);
    return made;
  };
  const ticked = (element, on) => {
    const there = element.querySelector(":scope > .ct-tick");
    if (on && !there) element.append(tick());
    if (!on) there?.remove();
  };
  // Brings something up to date, now and whenever something else is kept.
  const showing = (show) => {
    document.addEventListener("ct-kept", show);
    show();
  };

  // --- a chapter ----------------------------------------------------------------------------------------

  const box = (label, on, change) => {
    const input = make("input", { type: "checkbox" });
    input.addEventListener("change", () => change(input.checked));
    showing(() => { input.checked = on(); });
    return make("label", { className: "ct-done" }, input, ` ${label}`);
  };
  const exercises = (chapter) => {
    const headings = [...document.querySelectorAll("article h3[id^='exercise-']")];
    for (const heading of headings) {
      const effort = heading.nextElementSibling?.querySelector(".ct-exercise__effort"), number = Number(heading.id.slice(9));
      if (!effort) continue;
      const done = box(words.done, () => ctKept.of(chapter).done.includes(number), (on) => ctKept.change(chapter, (one) => {
        one.done = one.done.filter((other) => other !== number).concat(on ? number : []);
      }));
      done.firstChild.setAttribute("aria-label", said(words.exercise, { name: heading.firstChild.textContent.trim() }));
      effort.append(done);
    }
    return headings.length;
  };
  const end = (place, chapter) => {
    const all = exercises(chapter), count = make("span", { className: "ct-quiet" });
    if (all) showing(() => {
      count.textContent = said(words.exercises, { n: ctKept.of(chapter).done.filter((n) => n <= all).length, all });
    });
    const read = box(words.read, () => ctKept.of(chapter).read, (on) => ctKept.change(chapter, (one) => { one.read = on; }));
    place.append(read, count, make("a", { href: `${ctKept.root()}#contents` }, words.more));
  };

  // --- the navigation ------------------------------------------------------------------------------------

  const navigation = () => {
    // The link of a part leads to its first chapter.
    for (const link of document.querySelectorAll(".md-nav--primary li:not(.md-nav__item--nested) > a.md-nav__link")) {
      const name = link.hash ? "" : ctKept.named(link.href);
      // On a telephone a label stands in the place of the link to the open page.
      if (name) for (const one of link.parentElement.querySelectorAll(":scope > .md-nav__link")) ticked(one, ctKept.of(name).read);
    }
  };

  document.addEventListener("DOMContentLoaded", () => {
    const place = document.querySelector("article > .ct-progress"), chapter = ctKept.named(location.href);
    if (place && chapter) end(place, chapter);
    showing(navigation);
  });
  return { said, make, ticked, showing };
})();
