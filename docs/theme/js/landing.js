// The landing page alone: how much of each part and of the book was read, and what saves, loads and forgets it.
document.addEventListener("DOMContentLoaded", () => {
  const { said, make, ticked, showing } = ctProgress, words = ctWords.progress;
  const place = document.querySelector("article .ct-progress");
  if (!place) return;

  const bar = (n, all) => {
    const label = said(words.chapters, { n, all }), made = make("progress", { max: all, value: n });
    made.setAttribute("aria-label", label);
    return [made, label];
  };
  const parts = [...document.querySelectorAll(".ct-part:has(a)")].map((part) => {
    const items = [...part.querySelectorAll("li:has(a)")].map((item) => ({
      item, name: ctKept.named(item.querySelector("a").href), exercises: Number(item.dataset.exercises),
    }));
    const told = make("p", { className: "ct-part__progress" });
    part.querySelector("ol").before(told);
    return { items, told };
  });
  const all = parts.flatMap(({ items }) => items);
  const sum = (items, of) => items.reduce((so_far, one) => so_far + of(one), 0);
  const done = ({ name, exercises }) => ctKept.of(name).done.filter((n) => n <= exercises).length;
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
  const save = () => {
    const address = URL.createObjectURL(new Blob([ctKept.text()], { type: "application/json" }));
    make("a", { href: address, download: "cudatut-progress.json" }).click();
    setTimeout(() => URL.revokeObjectURL(address));
  };
  const forget = () => {
    if (!confirm(words.sure)) return;
    ctKept.forget();
    say(words.forgotten);
  };
  const buttons = [button(words.save, save), button(words.load, () => file.click()), file, button(words.forget, forget)];
  place.append(make("h3", {}, words.title), whole, make("p", { className: "ct-quiet" }, words.kept), make("p", {}, ...buttons), status);

  showing(() => {
    for (const { items, told } of parts) {
      for (const one of items) {
        ticked(one.item, read(one));
        one.item.querySelector(".ct-part__done")?.remove();
        if (done(one)) one.item.append(make("span", { className: "ct-part__done" }, `${done(one)}/${one.exercises}`));
      }
      told.replaceChildren(...bar(sum(items, read), items.length));
    }
    const exercises = said(words.exercises, { n: sum(all, done), all: sum(all, (one) => one.exercises) });
    whole.replaceChildren(...bar(sum(all, read), all.length), " · ", exercises);
  });
});
