// Makes the page: bundle.mjs CACHE OUTPUT. CACHE has engine.js and engine.wasm, npm's packages, and claims.json, an answer of the native tool.
import { execFileSync } from 'node:child_process';
import { cpSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { createRequire } from 'node:module';
import { dirname, join } from 'node:path';
import { fileURLToPath, pathToFileURL } from 'node:url';
import { gzipSync } from 'node:zlib';

const [cache, output] = process.argv.slice(2);
const here = dirname(fileURLToPath(import.meta.url));
const require = createRequire(join(cache, 'package.json'));
const esbuild = require('esbuild-wasm');

// The sources lie beside npm's packages, because the compilers look for packages there.
const web = join(cache, 'web');
rmSync(web, { recursive: true, force: true });
cpSync(join(here, 'web'), web, { recursive: true });
execFileSync(process.execPath, [join(cache, 'node_modules/typescript/bin/tsc'), '-p', web, '--noEmit'], { stdio: 'inherit' });

const options = {
  bundle: true, minify: true, write: false, target: 'es2022', legalComments: 'none',
  jsx: 'automatic', jsxImportSource: 'preact', loader: { '.css': 'text' }, logLevel: 'warning',
};
const bundled = (file, more = {}) => esbuild.buildSync({ ...options, entryPoints: [join(web, file)], ...more }).outputFiles[0].text;
const embedded = (data) => gzipSync(data, { level: 9 }).toString('base64');
// Escapes text that would end a script element.
const script = (text) => text.replaceAll('</script', '<\\/script').replaceAll('<!--', '<\\!--');

const code = readFileSync(join(cache, 'engine.js'), 'utf8') + '\n' + bundled('worker.ts');
const wasm = readFileSync(join(cache, 'engine.wasm'));

// The gallery for browsers without JavaScript: drawn at build time by the page's code and engine.
const still = join(cache, 'still.mjs');
writeFileSync(still, bundled('still.ts', { format: 'esm', platform: 'neutral' }));
const { gallery } = await import(pathToFileURL(still).href + '?' + Date.now());
const rankineEngine = require(join(cache, 'engine.js'));
const engine = await rankineEngine({ wasmBinary: wasm });

// The beginnings of the learners' tasks: each follows its name in brackets.
const tasks = readFileSync(join(here, '../lesson/course/tasks.txt'), 'utf8').split(/^\[(.*)\.txt\]\n/m).slice(1);
const beginnings = tasks.flatMap((name, i) => (i % 2 === 0 ? [{ name, text: tasks[i + 1] }] : []));

const preact = require('preact/package.json');
const licence = readFileSync(join(cache, 'node_modules/preact/LICENSE'), 'utf8').trim();
const parts = {
  STYLE: readFileSync(join(here, 'web/style.css'), 'utf8'),
  GALLERY: gallery(engine),
  CLAIMS: embedded(readFileSync(join(cache, 'claims.json'))),
  TASKS: embedded(JSON.stringify(beginnings)),
  CODE: embedded(code),
  WASM: embedded(wasm),
  APP: script(bundled('app.tsx', { format: 'iife' })),
  LICENCES: `Preact ${preact.version}\n${licence}`.replaceAll('--', '- -'),
};
const page = readFileSync(join(here, 'web/page.html'), 'utf8').replace(/\{\{(\w+)\}\}/g, (_, name) => parts[name]);
writeFileSync(output, page);
