// How far the reader has come, shown and changed: at the end of a chapter and at its exercises, in the navigation, and on
// the landing page, where it can also be saved, loaded and forgotten. What is kept, and where, is in kept.js.
{
  const words = ctWords.progress;
  const said = (sentence, values) => sentence.replace(/\{(\w+)\}/g, (_, name) => values[name]);
  const make = (tag, properties = {}, ...inside) => {
    const made = Object.assign(document.createElement(tag), properties);
    made.append(...inside);
    return made;
  };
  const place = document.querySelector("article .ct-progress"), parts = [...document.querySelectorAll(".ct-part:has(a)")];
  const chapter = parts.length ? "" : ctKept.named(location.href);
  const shows = []; // each brings one thing up to date

  const box = (label, on, change) => {
    const input = make("input", { type: "checkbox", checked: on() });
    input.addEventListener("change", () => change(input.checked));
    shows.push(() => { input.checked = on(); });
    return make("label", { className: "ct-done" }, input, ` ${label}`);
  };

  // --- a chapter ----------------------------------------------------------------------------------------

  const exercises = () => {
    const headings = [...document.querySelectorAll("article h3[id^='exercise-']")];
    for (const heading of headings) {
      const effort = heading.nextElementSibling?.querySelector(".ct-exercise__effort"), number = Number(heading.id.slice(9));
      if (!effort) continue;
      const done = () => ctKept.of(chapter).done.includes(number);
      const tick = box(words.done, done, (on) => ctKept.change(chapter, (one) => {
        one.done = one.done.filter((other) => other !== number).concat(on ? number : []);
      }));
      const name = heading.firstChild.textContent.trim();
      tick.firstChild.setAttribute("aria-label", said(words.exercise, { name }));
      effort.append(tick);
    }
    return headings.length;
  };
  const end = () => {
    const all = exercises(), count = make("span", { className: "ct-quiet" });
    const change = (on) => ctKept.change(chapter, (one) => { one.read = on; });
    const read = box(words.read, () => ctKept.of(chapter).read, change);
    if (all) shows.push(() => { count.textContent = said(words.exercises, { n: ctKept.of(chapter).done.filter((n) => n <= all).length, all }); });
    place.append(read, count, make("a", { href: `${ctKept.root}#contents` }, words.more));
  };

  // --- the navigation ------------------------------------------------------------------------------------

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
  shows.push(() => {
    // The link of a part leads to its first chapter.
    for (const link of document.querySelectorAll(".md-nav--primary li:not(.md-nav__item--nested) > a.md-nav__link")) {
      const name = link.hash ? "" : ctKept.named(link.href);
      // On a telephone a label stands in the place of the link to the open page.
      if (name) for (const one of link.parentElement.querySelectorAll(":scope > .md-nav__link")) ticked(one, ctKept.of(name).read);
    }
  });

  // --- the landing page ------------------------------------------------------------------------------------

  const bar = (n, all) => {
    const label = said(words.chapters, { n, all }), made = make("progress", { max: all, value: n });
    made.setAttribute("aria-label", label);
    return [made, label];
  };
  const book = () => {
    const listed = parts.map((part) => {
      const items = [...part.querySelectorAll("li:has(a)")].map((item) => ({
        item, name: ctKept.named(item.querySelector("a").href), exercises: Number(item.dataset.exercises),
      }));
      const told = make("p", { className: "ct-part__progress" });
      part.querySelector("ol").before(told);
      return { items, told };
    });
    const sum = (all, of) => all.reduce((so_far, one) => so_far + of(one), 0);
    const done = ({ name, exercises: all }) => ctKept.of(name).done.filter((n) => n <= all).length;
    const read = ({ name }) => Number(ctKept.of(name).read);
    const whole = make("p", { className: "ct-part__progress" }), status = make("p", { className: "ct-progress__status" });
    status.setAttribute("role", "status");
    const say = (sentence) => { status.textContent = sentence; };
    const button = (label, press) => {
      const made = make("button", { type: "button" }, label);
      made.addEventListener("click", press);
      return made;
    };
    const file = make("input", { type: "file", accept: ".json,application/json", hidden: true });
    file.addEventListener("change", async () => {
      const [chosen] = file.files;
      if (chosen) say(ctKept.add(await chosen.text()) ? words.loaded : words.wrong);
      file.value = "";
    });
    const buttons = make("p", {},
      button(words.save, () => {
        const address = URL.createObjectURL(new Blob([ctKept.text()], { type: "application/json" }));
        make("a", { href: address, download: "cudatut-progress.json" }).click();
        setTimeout(() => URL.revokeObjectURL(address));
      }),
      button(words.load, () => file.click()), file,
      button(words.forget, () => {
        if (!confirm(words.sure)) return;
        ctKept.forget();
        say(words.forgotten);
      }));
    place.append(make("h3", {}, words.title), whole, make("p", { className: "ct-quiet" }, words.kept), buttons, status);
    shows.push(() => {
      for (const { items, told } of listed) {
        for (const one of items) {
          ticked(one.item, read(one));
          one.item.querySelector(".ct-part__done")?.remove();
          if (done(one)) one.item.append(make("span", { className: "ct-part__done" }, `${done(one)}/${one.exercises}`));
        }
        told.replaceChildren(...bar(sum(items, read), items.length));
      }
      const items = listed.flatMap((one) => one.items), all = sum(items, (one) => one.exercises);
      whole.replaceChildren(...bar(sum(items, read), items.length), " · ", said(words.exercises, { n: sum(items, done), all }));
    });
  };

  if (place && parts.length) book();
  else if (place && chapter) end();
  const show = () => shows.forEach((one) => one());
  document.addEventListener("ct-kept", show);
  show();
}
