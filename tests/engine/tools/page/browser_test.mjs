// The page in a browser of Debian's, opened from a file: browser_test.mjs CACHE PAGE TOOL BROWSER, where CACHE has npm's packages and
// BROWSER is chromium or firefox. Of Firefox, WebDriver BiDi neither turns JavaScript off nor light to dark, so these checks are
// Chromium's.
import { readFileSync } from 'node:fs';
import { createRequire } from 'node:module';
import { join, resolve } from 'node:path';
import { pathToFileURL } from 'node:url';
import { check, done, native, note } from './native.mjs';

const [cache, page, tool, which = 'chromium'] = process.argv.slice(2);
const chromium = which === 'chromium';
const require = createRequire(join(resolve(cache), 'package.json'));
const { default: puppeteer } = await import(pathToFileURL(require.resolve('puppeteer-core')).href);
const axe = readFileSync(require.resolve('axe-core/axe.min.js'), 'utf8');
const address = pathToFileURL(resolve(page)).href;
const browser = await puppeteer.launch(chromium
  ? { executablePath: process.env.CHROMIUM ?? '/usr/bin/chromium', args: ['--no-sandbox'] }
  : { browser: 'firefox', executablePath: process.env.FIREFOX ?? '/usr/bin/firefox-esr', extraPrefsFirefox: { 'ui.prefersReducedMotion': 1 } });

async function open(hash = '', { width = 1600, scheme = 'light', motion = 'reduce', script = true } = {}) {
  const tab = await browser.newPage();
  tab.asked = [];
  tab.wrong = [];
  tab.on('request', (request) => tab.asked.push(request.url()));
  tab.on('pageerror', (error) => tab.wrong.push(String(error)));
  tab.on('console', (message) => message.type() === 'error' && tab.wrong.push(message.text()));
  await tab.setViewport({ width, height: 900 });
  if (chromium) {
    await tab.setJavaScriptEnabled(script);
    await tab.emulateMediaFeatures([{ name: 'prefers-color-scheme', value: scheme }, { name: 'prefers-reduced-motion', value: motion }]);
  }
  await tab.goto(address + hash);
  if (script) {
    await tab.waitForSelector('[data-ready]', { timeout: 60000 });
    await tab.waitForFunction(() => document.querySelectorAll('#race [data-fact]').length + document.querySelectorAll('#race .error').length > 2 && document.querySelector('#player .proof, #player .error'), { timeout: 60000 });
  }
  return tab;
}
const texts = (tab, selector) => tab.$$eval(selector, (found) => found.map((one) => one.textContent.trim()));

// --- What it shows is the engine's.
const settings = [
  {}, { n: '7' }, { n: '16', m: '64K' }, { c: 'broadcast', n: '9', m: '4M' }, { c: 'all_gather', n: '12' }, { c: 'reduce_scatter', m: '512' },
  { c: 'all_to_all', n: '6', m: '3M' }, { n: '32', net: 'scale_out', m: '16M' }, { n: '8', wiring: 'ring', m: '1M' }, { n: '16', wiring: 'torus', ports: '4', alpha: '2us', bw: '50GB/s' },
];
const shown = [];
for (const setting of settings) {
  const tab = await open('#race?' + new URLSearchParams(Object.entries(setting).map(([key, value]) => ['race.' + key, value])));
  await tab.waitForNetworkIdle({ idleTime: 50 }).catch(() => {});
  await tab.waitForFunction(() => [...document.querySelectorAll('#race .lane')].every((lane) => lane.querySelector('[data-fact], .error')), { timeout: 60000 });
  const lanes = await tab.$$eval('#race .lane', (all) => all.map((lane) => ({
    algorithm: lane.dataset.algorithm, error: lane.querySelector('.error')?.textContent,
    facts: [...lane.querySelectorAll('[data-fact]')].map((fact) => [fact.dataset.fact, fact.dataset.value]),
  })));
  for (const lane of lanes) shown.push({ setting, ...lane });
  await tab.close();
}
const { json: catalogue } = native(tool, [{ ask: 'catalogue' }])[0];
const asked = shown.map(({ setting: s, algorithm }) => {
  const collective = s.c ?? 'all_reduce';
  const line = catalogue.algorithms.find((one) => one.collective === collective && one.name === algorithm);
  return {
    ask: 'simulate', question: {
      collective, algorithm, ...(line.parameters.includes('segments') ? { segments: 'auto' } : {}), ranks: Number(s.n ?? 8), bytes: s.m ?? '1M', network: s.net ?? 'plain',
      ...(s.alpha && { alpha: s.alpha }), ...(s.bw && { bandwidth: s.bw }), ...(s.ports && { ports: Number(s.ports) }), ...(s.wiring && { wiring: s.wiring }),
    },
  };
});
let facts = 0;
native(tool, asked).forEach(({ json }, i) => {
  const lane = shown[i];
  facts += lane.facts.length;
  const differ = json.error ? (lane.error === json.error ? [] : [lane.error]) : lane.facts.filter(([fact, value]) => Number(value) !== json[fact]);
  check(`the race of ${JSON.stringify(lane.setting)}: ${lane.algorithm}`, differ.length === 0 && (json.error || lane.facts.length > 6), JSON.stringify([differ, json.error]));
});
note(`${facts} numbers of the race are the native tool's`);

// --- Nothing is loaded, nothing goes wrong, nothing is too wide, everybody can use it.
for (const [width, scheme] of [[1600, 'light'], [1600, 'dark'], [360, 'light']].filter(([, scheme]) => chromium || scheme === 'light')) {
  const tab = await open('', { width, scheme });
  await tab.waitForSelector('#papers .card', { timeout: 60000 });
  await tab.waitForFunction(() => document.querySelectorAll('#cost .curve').length > 7 && document.querySelector('#planner td'), { timeout: 60000 });
  const where = `at ${width} pixels, ${scheme}`;
  const outside = tab.asked.filter((url) => !/^(file|blob|data):/.test(url));
  check(`no request leaves the page ${where}`, outside.length === 0, outside.join(' '));
  check(`no error on the console ${where}`, tab.wrong.length === 0, tab.wrong.join(' '));
  check(`nothing is wider than the screen ${where}`, await tab.evaluate(() => document.documentElement.scrollWidth <= innerWidth));
  await tab.evaluate(axe);
  const { violations } = await tab.evaluate(() => window.axe.run());
  const serious = violations.filter((one) => ['serious', 'critical'].includes(one.impact));
  check(`axe-core finds nothing serious ${where}`, serious.length === 0, JSON.stringify(serious.map((one) => [one.id, one.nodes.length, one.nodes[0].html.slice(0, 200), one.nodes[0].any[0]?.message]), null, 1));
  if (width === 1600 && scheme === 'light') note(`ready ${await tab.evaluate(() => document.documentElement.dataset.ready)} ms after the page was opened`);
  await tab.close();
}

// --- By keyboard.
{
  const tab = await open();
  await tab.waitForSelector('#papers .card', { timeout: 60000 });
  await tab.waitForFunction(() => document.querySelectorAll('#break .chip').length > 3 && document.querySelectorAll('#primitives .card').length === 7);
  const wanted = await tab.evaluate(() => {
    // What stands in a closed <details> is not there yet.
    const all = [...document.querySelectorAll('a[href], button, input, select, summary, [tabindex="0"]')].filter((one) => one.checkVisibility());
    all.forEach((one, i) => (one.dataset.stop = i));
    return all.length;
  });
  const reached = new Set();
  for (let i = 0; i < wanted + 20; ++i) {
    await tab.keyboard.press('Tab');
    reached.add(await tab.evaluate(() => document.activeElement?.dataset.stop));
  }
  reached.delete(undefined);
  check(`all ${wanted} controls are reached with the tabulator`, reached.size === wanted,
    JSON.stringify(await tab.evaluate((seen) => [...document.querySelectorAll('[data-stop]')].filter((one) => !seen.includes(one.dataset.stop)).map((one) => one.outerHTML.slice(0, 120)), [...reached])));
  await tab.focus('#race input[type=range]');
  const before = await tab.$eval('#race .facts', (one) => one.textContent);
  await tab.keyboard.press('ArrowRight');
  await tab.waitForFunction((old) => document.querySelector('#race .facts')?.textContent !== old, { timeout: 20000 }, before);
  check('an arrow key changes N, and the link says so', (await tab.evaluate(() => location.hash)).includes('race.n=9'));
  await tab.focus('#player .transport input[type=range]');
  await tab.keyboard.press('ArrowRight');
  await tab.waitForFunction(() => document.querySelector('#player output').textContent.includes('after round 1'));
  check('an arrow key steps the player', true);
  await tab.focus('#player canvas[tabindex]');
  await tab.keyboard.press('ArrowRight');
  await tab.waitForFunction(() => /^rank 0, block \d/.test(document.querySelector('#player .readout').textContent));
  check('arrow keys tell what a cell holds', true);
  await tab.close();
}

// --- What is wrong is said in the engine's words, beside the control.
for (const [member, question, hash] of [
  ['N, ranks', { ranks: 0 }, 'race.n=0'], ['M, bytes per rank', { bytes: '1e99' }, 'race.m=1e99'], ['ports', { ports: 0 }, 'race.ports=0'], ['alpha, per message', { alpha: 'soon' }, 'race.alpha=soon'],
]) {
  const tab = await open('#race?' + hash);
  const { json } = native(tool, [{ ask: 'messages', question: { collective: 'all_reduce', algorithm: 'ring', ranks: 8, bytes: '1M', network: 'plain', ...question } }])[0];
  const beside = await tab.$$eval('#race .field.wrong', (fields) => fields.map((field) => [field.querySelector('label').textContent, field.querySelector('.error').textContent]));
  check(`what is wrong with ${member} stands beside it`, beside.length === 1 && beside[0][0] === member && beside[0][1] === json.error, JSON.stringify([beside, json.error]));
  await tab.close();
}

// --- A schedule is changed: the verifier's own answer. And the link brings it back.
{
  const tab = await open('#player?player.a=ring&player.n=4&player.k=2');
  await tab.$$eval('#player summary', (all) => all.find((one) => one.textContent.startsWith('Change')).click());
  await tab.$$eval('#player .editor li button', (all) => all.find((one) => one.textContent === 'Delete').click());
  await tab.waitForSelector('#player .proof.bad');
  const { json } = native(tool, [{ ask: 'play', question: { collective: 'all_reduce', algorithm: 'ring', ranks: 4, bytes: '1M' }, edits: [{ do: 'delete', round: 1, transfer: 0 }] }])[0];
  const said = (await texts(tab, '#player .proof'))[0];
  check('the verifier answers to a deleted transfer', said.endsWith(json.proof.text), JSON.stringify([said, json.proof]));
  const again = await open(await tab.evaluate(() => location.hash));
  check('a link brings the change back', (await texts(again, '#player .proof'))[0] === said);
  await tab.close();
  await again.close();
}
{
  const tab = await open('#break?break.seed=5');
  await tab.waitForSelector('#break .buttons button');
  await tab.click('#break .buttons button');
  await tab.waitForSelector('#break .proof');
  const { json } = native(tool, [{ ask: 'play', question: { collective: 'all_reduce', algorithm: 'ring', ranks: 3, bytes: 1024 }, edits: [{ do: 'chance', seed: 5 }] }])[0];
  const said = (await texts(tab, '#break .proof'))[0];
  check('a quiz is the same for everybody', json.proof.proved ? said.startsWith('Proved') : said.endsWith(json.proof.text), JSON.stringify([said, json.proof]));
  await tab.close();
}

// --- A step's plan is the tool's, and so is what is wrong with one.
{
  const asked = { ask: 'plan', model: 'gpt2', machine: 'a100', order: 'gpipe', recompute: 'none', zero: 0, tp: 2, sp: 1, ep: 1, dp: 2, pp: 4, micro_batches: 6 };
  const tab = await open('#planner?planner.order=gpipe&planner.micro_batches=6');
  await tab.waitForSelector('#planner td');
  const { json } = native(tool, [asked])[0];
  const values = await tab.$$eval('#planner [data-value]', (all) => all.map((one) => Number(one.dataset.value)));
  const wanted = [json.computing, json.exposed, json.bubble, json.hidden, json.exposed, json.memory.layer_state, json.memory.embedding_state, json.memory.activations];
  check('the planner shows the plan of the tool', JSON.stringify(values) === JSON.stringify(wanted), JSON.stringify([values, wanted]));
  check('the planner lists every collective', (await tab.$$('#planner tbody tr')).length === json.collectives.length);
  await tab.close();
  const wrong = await open('#planner?planner.tp=5');
  await wrong.waitForSelector('#planner .field.wrong');
  const { json: refused } = native(tool, [{ ...asked, tp: 5, order: '1f1b', micro_batches: 8 }])[0];
  const beside = await wrong.$$eval('#planner .field.wrong', (fields) => fields.map((field) => field.querySelector('.error').textContent));
  check('what is wrong with an axis stands beside it', JSON.stringify(beside) === JSON.stringify([refused.error]), JSON.stringify([beside, refused]));
  await wrong.close();
}

// --- Motion, and none. No JavaScript.
{
  const tab = await open('#race?race.n=32', { motion: 'no-preference' });
  await tab.evaluate(() => document.querySelector('#race .transport button:nth-of-type(2)').click());
  const frames = () => tab.evaluate(() => window.raceFrames);
  await new Promise((wait) => setTimeout(wait, 500));
  const first = await frames();
  await new Promise((wait) => setTimeout(wait, 2000));
  const count = (await frames()) - first;
  check('the race runs', count > 1, `${count}`);
  note(`${count / 2} frames a second among 32 ranks`);
  await tab.close();
  const still = await open();
  await new Promise((wait) => setTimeout(wait, 500));
  const before = await still.evaluate(() => window.raceFrames);
  await new Promise((wait) => setTimeout(wait, 1000));
  check('nothing moves by itself where that is asked for', (await still.evaluate(() => window.raceFrames)) === before);
  await still.close();
}
if (chromium) {
  const bare = await open('', { script: false });
  const [text, pictures] = await Promise.all([bare.$eval('main', (main) => main.innerText), bare.$$eval('svg.state', (all) => all.length)]);
  check('without JavaScript it says so and shows the gallery', /Without JavaScript/.test(text) && pictures === 15, `${pictures}`);
  await bare.close();
}
await browser.close();
done();
