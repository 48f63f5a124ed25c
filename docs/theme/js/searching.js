// The search itself, a worker in the place of Material's, which search.js starts. Its messages are Material's: the index comes
// first, then each question as it was typed; the answer is a list of pages, best first, each a list of its sections.
//
// A question is cut into words; what the glossary knows is one word, "shared memory" and 张量核 too, and stands for all of its
// names. Pages that have all words come before those that have some. What counts in a page: that it introduces a word, says it
// in a heading, how often it has it, and how much of the question stands in one section as it was typed. The index is read as
// it is: nothing is built before the first answer, and Chinese is found letter by letter, so no sentence has to be cut.
"use strict";
const SETUP = 0, READY = 1, QUERY = 2, RESULT = 3; // Material's types of messages
const MUCH = 3; // occurrences of a word on a page that are worth half of any number of them
const INTRODUCES = 3, TITLE = 2, HEADING = 1; // what these are worth beside them
const OTHER = 0.5; // what a page is worth that is no chapter; and a list of sources
const FORGIVEN = 5; // of so many words one may be missing: what a terminal prints has names of the reader's own
const PART = 0.5; // what a word is worth that is there as a part of another: with an ending, or in a longer name
const STOP = new Set((
  "a about an and are as at be but by can do does for from get has have how i if in into is it its me my of on or so than that "
  + "the their then there these they this to use using was were what when which who why will with without you your "
  + "一个 可以 这个 那个"
).split(" "));
// The same in Chinese, where no blank says what is a word of its own: it parts the words beside it.
const ASKING = /是什么意思|是什么|为什么|什么是|有什么|什么|怎么样|怎么办|怎么|怎样|如何|哪些|哪个|多少|请问|我的|这么|那么|非常/g;
// What readers add to any question; a page need not say it.
const ADDED = new Set((
  "cuda gpu nvidia tutorial guide example examples explained code implementation optimize optimization fast faster "
  + "教程 示例 例子 代码 详解 实现 优化 加速 方法"
).split(" "));
const BRITISH = /is(e[drs]?|ing|ations?)$/; // whoever writes "optimise" finds "optimize" too

// --- texts ----------------------------------------------------------------------------------------

const ENTITY = { lt: "<", gt: ">", amp: "&", quot: '"', "#39": "'", "#x27": "'" };
const plain = (html) =>
  html.replace(/<\/?(?:code|sub|sup)\b[^>]*>/g, "").replace(/<[^>]*>/g, " ")
    .replace(/&([a-z]+|#x?[\da-f]+);/g, (all, name) => ENTITY[name] ?? all).replace(/\s+/g, " ").trim();
const lower = (text) => {
  const low = text.toLowerCase();
  return low.length === text.length ? low : text.replace(/[A-Z]/g, (letter) => letter.toLowerCase());
};
const escaped = (text) => text.replace(/&/g, "&amp;").replace(/</g, "&lt;").replace(/>/g, "&gt;");
const LATIN = /[a-z0-9]/;

// Where a word stands in a text: Latin ones at the beginning of a word, with or without an ending.
function* places(text, word) {
  const latin = LATIN.test(word[0]);
  for (let at = text.indexOf(word); at >= 0; at = text.indexOf(word, at + word.length))
    if (!latin || !LATIN.test(text[at - 1] || "")) yield at;
}
// How often a text has a word. `longer`: names of which it is a part, as 量化 is of 向量化.
const often = (text, word, longer) => {
  let sum = 0;
  for (const at of places(text, word)) {
    const next = text[at + word.length] || "";
    const ends = !LATIN.test(word[word.length - 1]) || !LATIN.test(next) || next === "s";
    sum += ends && !longer.some(([name, before]) => text.startsWith(name, at - before)) ? 1 : PART;
    if (sum >= 9) break;
  }
  return sum;
};

// --- the index ------------------------------------------------------------------------------------

let pages = [], sections = []; // all pages, each with its sections, the page itself first; and the sections of all
const known = new Map(); // what a word is called without its blanks and marks: its names, and the pages that introduce it
const asked = new Map(); // and what readers type who need a page, called in the same way: as it is written, and the pages
let longest = 0; // Chinese letters in a name

const singular = (word) => (/[a-z]{3,}s$/.test(word) && !/ss$/.test(word) ? word.slice(0, -1) : word);
// What "tiles" and "tiled", "quantizing" and "quantization" begin with.
const stem = (word) => word.replace(/([a-z]{2}e)d$|([a-z]{4})(?:ed|ing|ations?)$/, "$1$2");
const american = (word) => (word.length > 4 ? word.replace(BRITISH, "iz$1") : word);
const ATOM = /\p{sc=Han}+|(?:(?!\p{sc=Han})[\p{L}\p{N}])+(?:\.\d+)*/gu;
const key = (words) => words.map((word) => singular(american(word))).join("");
const keyed = (text) => key(lower(text).match(ATOM) || []);

function read(docs) {
  const byPage = new Map();
  for (const { location, title, text, part, keywords = [], asked: typed = [] } of docs) {
    const page = location.split("#")[0];
    if (!byPage.has(page)) byPage.set(page, { part, sections: [] });
    const shown = plain(text);
    byPage.get(page).sections.push({ location, title, shown, heading: lower(plain(title)), text: lower(shown) });
    for (const names of keywords)
      for (const name of names) {
        const one = known.get(keyed(name)) || { names: new Set(), pages: new Set() };
        known.set(keyed(name), one);
        for (const other of names) one.names.add(lower(other));
        one.pages.add(page);
        for (const [run] of name.matchAll(/\p{sc=Han}+/gu)) longest = Math.max(longest, run.length);
      }
    for (const text of typed) {
      if (!asked.has(keyed(text))) asked.set(keyed(text), { text: lower(text), pages: new Set() });
      asked.get(keyed(text)).pages.add(page);
    }
  }
  pages = [...byPage].map(([location, page]) => ({ location, ...page }));
  sections = pages.flatMap(({ sections }) => sections);
}

// --- the question ---------------------------------------------------------------------------------

// A run of Chinese that no name covers, cut where the book's own words are: the pieces that it has, and has often. Letters
// between them are left out, and more than one of them is a word that the book does not have.
function divided(run) {
  const best = [{ worth: 0, pieces: [] }];
  for (let end = 1; end <= run.length; end++) {
    best[end] = best[end - 1];
    for (let size = 2; size <= Math.min(4, end); size++) {
      const piece = run.slice(end - size, end), before = best[end - size];
      const worth = before.worth + (size - 1) * Math.log(1 + sections.filter(({ text }) => text.includes(piece)).length);
      if (worth > best[end].worth) best[end] = { worth, pieces: [...before.pieces, [end - size, end]] };
    }
  }
  const pieces = [];
  let at = 0;
  for (const [from, to] of [...best[run.length].pieces, [run.length, run.length]]) {
    if (from - at > 1 || (from > at && run.length === 1)) pieces.push([at, from]);
    if (to > from) pieces.push([from, to]);
    at = to;
  }
  return pieces;
}

// A run of Chinese: names that the glossary has, and what is between them; each with its place.
function chinese(run, start) {
  const found = [];
  const add = (from, to) => found.push({ word: run.slice(from, to), start: start + from, end: start + to });
  const between = (from, to) => from < to && divided(run.slice(from, to)).forEach(([a, b]) => add(from + a, from + b));
  let from = 0;
  for (let at = 0; at < run.length; at++)
    for (let size = Math.min(longest, run.length - at); size > 1; size--)
      if (known.has(run.slice(at, at + size))) {
        between(from, at);
        add(at, at + size);
        from = at + size;
        at = from - 1;
        break;
      }
  between(from, run.length);
  return found;
}

const cut = (line) =>
  [...line.matchAll(ATOM)].flatMap(({ 0: word, index }) =>
    /\p{sc=Han}/u.test(word) ? chinese(word, index) : [{ word, start: index, end: index + word.length }]);

// What is looked for: each with what stands for it in a text, the pages that introduce it, and its place in the question.
function wanted(line) {
  const atoms = cut(line);
  const found = [];
  for (let i = 0; i < atoms.length;) {
    let j = Math.min(atoms.length, i + 8);
    while (j > i && !known.has(key(atoms.slice(i, j).map(({ word }) => word)))) j--;
    const name = known.get(j > i ? key(atoms.slice(i, j).map(({ word }) => word)) : key([stem(atoms[i].word)]));
    if (j === i) j++;
    const { start } = atoms[i], { end } = atoms[j - 1];
    const typed = line.slice(start, end);
    // Not what says less: who asks for "bank conflict" does not ask for "bank".
    const names = name ? [...name.names] : [];
    const less = (other) => [typed, ...names].some((one) => one.length > other.length && !places(one, other).next().done);
    const others = names.filter((other) => other.length > 1 && !less(other));
    const alike = [...new Set(j - i > 1 ? [typed] : [typed, american(typed)].flatMap((word) => [word, singular(word), stem(word)]))];
    found.push({ typed, start, end, others, alike, introduced: new Set(name ? name.pages : []) });
    i = j;
  }
  const telling = found.filter(({ typed }) => !STOP.has(typed) && (asked.has(typed) || !/^\p{sc=Han}$/u.test(typed)));
  return telling.length ? telling : found;
}

// A page that is asked for in these words, in whatever order and among others, introduces them.
function helped(words, line) {
  const letters = new Set(keyed(line)), there = new Map(words.map((word) => [keyed(word.typed), word]));
  for (const [name, one] of asked) {
    if (![...name].every((letter) => letters.has(letter))) continue;
    one.words ??= wanted(one.text).map(({ typed }) => keyed(typed));
    if (one.words.every((word) => there.has(word)))
      for (const word of one.words) for (const page of one.pages) there.get(word).introduced.add(page);
  }
}

// --- the answer -----------------------------------------------------------------------------------

const RANK = 1e4; // more than any score: the first of the list is what Enter opens
const rare = (times, of) => Math.log(1 + of / (1 + times));

// Chinese names of which a word is a part, and where in them it begins.
const longerThan = (word, besides) =>
  /\p{sc=Han}/u.test(word)
    ? [...known.values()].flatMap(({ names }) => [...names])
      .filter((name) => name.length > word.length && name.includes(word) && !besides.includes(name))
      .map((name) => [name, name.indexOf(word)])
    : [];

function answer(question) {
  const line = lower(question).replace(ASKING, (some) => " ".repeat(some.length));
  const words = wanted(line);
  if (!words.length) return [];
  helped(words, line);
  for (const word of words) {
    const forms = (word.forms = [...word.alike, ...word.others]);
    const longer = new Map(forms.map((form) => [form, longerThan(form, forms)]));
    word.times = new Map();
    for (const section of sections) {
      const sum = Math.max(...forms.map((form) => often(section.text, form, longer.get(form))));
      const above = Math.max(...forms.map((form) => Math.min(1, often(section.heading, form, longer.get(form)))));
      if (sum || above) word.times.set(section, { sum, above });
    }
    word.worth = rare(word.times.size, sections.length);
  }
  // As it was typed: the whole, and each word with the one that follows it.
  const whole = rare(0, sections.length), telling = words.filter(({ typed }) => !ADDED.has(typed));
  const needed = new Set(telling.length ? telling : words);
  const sum = words.reduce((sum, { worth }) => sum + worth, 0);
  const typed = words.length < 2 ? [] : [
    { text: line.slice(words[0].start, words.at(-1).end), worth: sum },
    ...words.slice(1).map((word, i) => ({ text: line.slice(words[i].start, word.end), worth: (words[i].worth + word.worth) / 2 })),
  ].map(({ text, worth }) => {
    const there = new Set(sections.filter((section) =>
      !places(section.text, text).next().done || !places(section.heading, text).next().done));
    return { there, worth: (worth * rare(there.size, sections.length)) / whole };
  });
  const names = [line, ...[words, [...needed]].map((some) => some.map(({ typed }) => typed).join(" "))].map(keyed);
  const meant = names.flatMap((name) => [known.get(name)?.pages, asked.get(name)?.pages]);
  const ranked = [];
  for (const { location, part, sections: own } of pages) {
    const found = [];
    for (const section of own) {
      const has = words.filter(({ times }) => times.has(section));
      if (!has.length) continue;
      let score = [...needed].every(({ times }) => times.has(section)) ? sum / 2 : 0;
      for (const { times, worth } of has) {
        const { sum, above } = times.get(section);
        score += worth * (sum / (sum + MUCH) + above * HEADING);
      }
      for (const { there, worth } of typed) if (there.has(section)) score += worth;
      found.push({ section, score: section.location.endsWith("#sources") ? score * OTHER : score });
    }
    const introduces = words.filter(({ introduced }) => introduced.has(location));
    if (!found.length && !introduces.length) continue;
    found.sort((a, b) => b.score - a.score);
    let score = found.length ? found[0].score : 0, missing = 0;
    for (const word of words) {
      const { times, introduced, worth } = word;
      const here = own.map((section) => times.get(section)).filter(Boolean);
      const often = here.reduce((all, { sum }) => all + sum, 0);
      if (introduced.has(location)) score += worth * INTRODUCES;
      else if (!here.length && needed.has(word)) missing++;
      const title = times.get(own[0])?.above || 0;
      score += worth * Math.max(title * TITLE, ...here.map(({ above }) => above * HEADING));
      score += (worth * often) / (often + MUCH);
    }
    if (!part) score *= OTHER;
    const rank = meant.some((pages) => pages?.has(location)) ? 2 : missing > needed.size / FORGIVEN ? 0 : 1;
    ranked.push({ rank, score: score + rank * RANK, part, found, page: own[0] });
  }
  ranked.sort((a, b) => b.score - a.score);
  return ranked.map((page) => group(page, words));
}

const LISTED = 6; // sections of a page

// A page as Material shows it: the page and its sections, as objects that have a score, best first.
function group({ part, found, page, score }, words) {
  const listed = found.slice(0, LISTED).map(({ section, score }) => item(section, score, words));
  if (!listed.some(({ location }) => location === page.location)) listed.push(item(page, 0, words));
  for (const one of listed)
    if (one.location === page.location) {
      if (part) one.title += ` · ${escaped(part)}`; // several parts have a chapter on bank conflicts
      if (!Object.keys(one.terms).length) one.terms = listed[0].terms;
    }
  // Pages are compared by the score of their first.
  listed[0].score = Math.max(score, listed[0].score);
  return listed;
}

const BEFORE = 50, AFTER = 110, MOST = 3; // letters around a hit, and places that are shown of a section

function item({ location, title, heading, shown, text }, score, words) {
  const terms = {}, hits = [];
  for (const form of words.flatMap(({ forms }) => forms)) {
    const found = [...places(text, form)].map((at) => [at, at + form.length]);
    hits.push(...found);
    if (found.length || !places(heading, form).next().done) terms[form] = true; // what Material's page is to mark
  }
  hits.sort((a, b) => a[0] - b[0] || b[1] - a[1]);
  return { location, title, text: teaser(shown, hits), score, terms };
}

// The places of a text that have what was looked for, marked.
function teaser(text, hits) {
  const parts = [];
  for (const [begin, end] of hits) {
    const last = parts.at(-1);
    if (last && begin < last.spans.at(-1)[1]) continue; // a part of what is marked
    if (last && end <= last.to) last.spans.push([begin, end]);
    else if (parts.length < MOST) {
      const from = Math.max(last ? last.to : 0, begin - BEFORE), blank = text.slice(from, begin).indexOf(" ");
      parts.push({ from: from && from + blank + 1, to: end + AFTER, spans: [[begin, end]] });
    }
  }
  if (text && !parts.length) parts.push({ from: 0, to: BEFORE + AFTER, spans: [] });
  return parts.map(({ from, to, spans }) => {
    let at = from, marked = from ? "… " : "";
    for (const [begin, end] of spans) {
      marked += `${escaped(text.slice(at, begin))}<mark data-md-highlight>${escaped(text.slice(begin, end))}</mark>`;
      at = end;
    }
    return `<p>${marked}${escaped(text.slice(at, to))}${to < text.length ? " …" : ""}</p>`;
  }).join("");
}

// The word that the last one may become.
function suggested(question) {
  const begun = question.match(/[\p{L}\p{N}_]+$/u)?.[0];
  if (!begun || begun.length < 2) return [];
  const names = [...known.values()].flatMap(({ names }) => [...names]).filter((name) => !/\s/.test(name));
  const one = names.filter((name) => name.startsWith(begun) && name !== begun).sort((a, b) => a.length - b.length)[0];
  return one ? [one] : [];
}

addEventListener("message", ({ data: { type, data } }) => {
  if (type === SETUP) {
    read(data.docs);
    postMessage({ type: READY });
  } else if (type === QUERY) postMessage({ type: RESULT, data: { items: answer(data), suggest: suggested(data) } });
});
