// The empty cells of a table in the section 'Predict' can be filled in. What is written stays in this browser (kept.js), and
// stands above the output when the reader opens it, beside what the page says where a row and a column there have the same names.
// On the document, whose listeners run before those of the window: before Material puts each table into a box of its own.
document.addEventListener("DOMContentLoaded", () => {
  const words = ctWords.predictions, chapter = ctKept.named(location.href), { said, make, showing } = ctProgress;
  const text = (cell) => cell.textContent.replace(/\s+/g, " ").trim();

  // --- tables to fill in --------------------------------------------------------------------------------

  const section = (heading) => {
    const found = [];
    for (let one = heading?.nextElementSibling; one && one.tagName !== "H2"; one = one.nextElementSibling) found.push(one);
    return found;
  };
  // A cell that is to be filled in: its place, the names of its row and column, and its field.
  const fields = (table, number) => {
    const head = [...table.tHead?.rows[0]?.cells || []].map(text), found = [];
    [...table.tBodies[0]?.rows || []].forEach((row, r) => [...row.cells].forEach((cell, c) => {
      if (c === 0 || text(cell) || cell.firstElementChild) return;
      const input = make("input", { className: "ct-guess", autocomplete: "off" }), at = `${number}.${r}.${c}`;
      const one = { at, row: text(row.cells[0]), column: head[c] || "", input, alone: head.length === 2 };
      input.setAttribute("aria-label", said(words.cell, one));
      input.addEventListener("input", () => ctKept.change(chapter, ({ predicted }) => {
        if (input.value.trim()) predicted[at] = input.value;
        else delete predicted[at];
      }));
      cell.append(input);
      found.push(one);
    }));
    return found;
  };

  // --- what the page says ---------------------------------------------------------------------------------

  const key = (name) => name.toLowerCase().replace(/\s+/g, " ").trim();
  // Rows of cells: of a table, or of printed lines whose columns stand apart.
  const grid = (source) => source.tagName === "TABLE"
    ? [...source.rows].map((row) => [...row.cells].map(text))
    : source.textContent.split("\n").map((line) => line.trim().split(/\s{2,}/)).filter((line) => line[0]);
  // "sides per warp, predicted" answers for "sides per warp".
  const names = (said, asked) => said === asked || (asked && said.startsWith(asked) && /^,| \(/.test(said.slice(asked.length)));
  const answers = (fold) => {
    const all = [...fold.querySelectorAll("table, pre.ct-output")].filter((one) => !one.closest(".ct-predicted")).map(grid);
    return ({ row, column, alone }) => {
      for (const [head = [], ...rows] of all) {
        const width = Math.max(0, ...rows.map((cells) => cells.length));
        const named = head.length === width - 1 ? ["", ...head] : head; // no name stands above the names of the rows
        const at = named.findIndex((name, c) => c > 0 && names(key(name), key(column)));
        const found = rows.filter((cells) => key(cells[0]) === key(row));
        if (at > 0 && found.length === 1 && found[0].length > at) return found[0][at];
        // A list of names and values answers a list of names.
        const pairs = [head, ...rows].filter((cells) => cells.length === 2 && key(cells[0]) === key(row));
        if (alone && width === 2 && pairs.length === 1 && at < 0) return pairs[0][1];
      }
      return "";
    };
  };

  // --- both, side by side ------------------------------------------------------------------------------------

  const line = (cells, tag) => make("tr", {}, ...cells.map((words, c) => {
    const cell = make(c ? tag : "th", {}, words);
    if (cell.tagName === "TH") cell.scope = tag === "th" ? "col" : "row";
    return cell;
  }));
  const compare = (fold, cells) => {
    fold.querySelector(":scope > .ct-predicted")?.remove();
    const filled = cells.filter(({ input }) => input.value.trim());
    if (!fold.open || !filled.length) return;
    const answer = answers(fold), name = (one) => (one.alone ? one.row : said(words.cell, one));
    const rows = filled.map((one) => [name(one), one.input.value.trim(), answer(one)]);
    const known = rows.some(([, , page]) => page), shown = (row) => (known ? row : row.slice(0, 2));
    const table = make("table", { className: "ct-table" }, make("caption", {}, words.caption),
      make("thead", {}, line(shown([words.what, words.wrote, words.page]), "th")),
      make("tbody", {}, ...rows.map((row) => line(shown(row.map((cell) => cell || "–")), "td"))));
    fold.querySelector("summary").after(make("div", { className: "ct-predicted ct-scroll", tabIndex: 0 }, table));
  };

  if (chapter) {
    const all = section(document.getElementById("predict")), pairs = new Map();
    all.filter((one) => one.tagName === "TABLE").forEach((table, number) => {
      const cells = fields(table, number);
      // What answers is the first fold with an output or an answer that comes after the table.
      const fold = [...document.querySelectorAll("article > details:is(.example, .success)")]
        .find((one) => table.compareDocumentPosition(one) & Node.DOCUMENT_POSITION_FOLLOWING);
      if (cells.length) pairs.set(fold, [...pairs.get(fold) || [], ...cells]);
    });
    const show = () => {
      const { predicted } = ctKept.of(chapter);
      for (const [fold, cells] of pairs) {
        for (const { at, input } of cells) if (input !== document.activeElement) input.value = predicted[at] || "";
        if (fold) compare(fold, cells);
      }
    };
    for (const fold of pairs.keys()) fold?.addEventListener("toggle", show);
    showing(show);
  }
});
