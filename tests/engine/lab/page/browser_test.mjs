// The page in a browser: browser_test.mjs CACHE PAGE TOOL BROWSER, where CACHE has npm's packages and BROWSER is chromium or firefox.
import { dirname, join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { launch, texts } from './browser.mjs';
import { check, done, native, note } from './native.mjs';

const [cache, page, tool, which = 'chromium'] = process.argv.slice(2);
const chromium = which === 'chromium';
const { browser, open, settled, require } = await launch(cache, page, which);
// The page's code for numbers, because the test compares numbers as the page writes them.
const format = require('esbuild-wasm').buildSync({ entryPoints: [join(dirname(fileURLToPath(import.meta.url)), '../../../../engine/lab/page/web/format.ts')], write: false, format: 'esm' }).outputFiles[0].text;
const { duration, rate, size } = await import('data:text/javascript,' + encodeURIComponent(format));

// --- The page shows the engine's answers.
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
    texts: [...lane.querySelectorAll('dd, .clock')].map((one) => one.textContent),
  })));
  await tab.waitForFunction(() => document.querySelector('#race .winners .note'), { timeout: 60000 });
  const around = (await texts(tab, '#race .verdict, #race .winners h3, #race .winners .strip, #race .winners .ends span, #race .winners .note')).join(' ');
  for (const lane of lanes) shown.push({ setting, around, ...lane });
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
const answered = native(tool, asked).map(({ json }) => json);
/** The texts of a lane, from the clock down. */
const laneTexts = (json) => [
  `done at ${duration(json.time)}`, duration(json.time), `${json.alphas_text} α + ${Number(json.betas.toPrecision(4))} Mβ`, `${json.rounds}`, `${json.messages}`, size(json.sent_max),
  `${json.ports_needed}${json.serialises ? ', more than there are' : ''}`, rate(json.busbw), ...(json.segments > 1 ? [`${json.segments}`] : []),
];
const numbersIn = (text) => text.match(/\d+(?:[.,]\d+)*(?:e[+-]?\d+)?/g) ?? [];
for (const setting of settings) {
  const mine = shown.map((lane, i) => ({ ...lane, json: answered[i], request: asked[i] })).filter((lane) => lane.setting === setting);
  const curve = native(tool, [{
    ask: 'curve', over: 'bytes', values: Array.from({ length: 25 }, (_, i) => 2 ** (i + 6)), questions: mine.map(({ request: { question: { bytes, ...question } } }) => question),
  }])[0].json;
  const least = Math.min(...mine.filter(({ json }) => !json.error).map(({ json }) => json.time));
  const allowed = new Set(numbersIn([
    ...mine.filter(({ json }) => !json.error).flatMap(({ json }) => [...laneTexts(json), json.words, Number((json.time / least).toPrecision(3))]),
    ...curve.crossovers.map((one) => size(one.bytes)), size(curve.values[0]), size(curve.values.at(-1)),
  ].join(' ')));
  const stranger = numbersIn(mine[0].around).filter((number) => !allowed.has(number));
  check(`no number around the race of ${JSON.stringify(setting)} is another`, stranger.length === 0 && numbersIn(mine[0].around).length > 5, JSON.stringify([stranger, mine[0].around]));
}
answered.forEach((json, i) => {
  const lane = shown[i];
  facts += lane.facts.length;
  const differ = json.error ? (lane.error === json.error ? [] : [lane.error]) : [...lane.facts.filter(([fact, value]) => Number(value) !== json[fact]), ...laneTexts(json).filter((text, k) => lane.texts[k] !== text)];
  check(`the race of ${JSON.stringify(lane.setting)}: ${lane.algorithm}`, differ.length === 0 && (json.error || lane.facts.length > 6), JSON.stringify([differ, json.error]));
});
note(`${facts} numbers of the race are the native tool's`);

// --- By keyboard.
{
  const tab = await open();
  await settled(tab);
  const wanted = await tab.evaluate(() => {
    // The content of a closed <details> is not visible yet.
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

// --- Errors show the engine's words, beside the control.
for (const [member, question, hash] of [
  ['its sizes, 4x4', { wiring: 'torus', dims: '3x3' }, 'race.wiring=torus&race.dims=3x3'],
  ['N, ranks', { ranks: 0 }, 'race.n=0'], ['M, bytes per rank', { bytes: '1e99' }, 'race.m=1e99'], ['ports', { ports: 0 }, 'race.ports=0'], ['alpha, per message', { alpha: 'soon' }, 'race.alpha=soon'],
]) {
  const tab = await open('#race?' + hash);
  const { json } = native(tool, [{ ask: 'messages', question: { collective: 'all_reduce', algorithm: 'ring', ranks: 8, bytes: '1M', network: 'plain', ...question } }])[0];
  const beside = await tab.$$eval('#race .field.wrong', (fields) => fields.filter((field) => field.checkVisibility()).map((field) => [field.querySelector('label').textContent, field.querySelector('.error').textContent]));
  check(`what is wrong with ${member} stands beside it`, beside.length === 1 && beside[0][0] === member && beside[0][1] === json.error, JSON.stringify([beside, json.error]));
  await tab.close();
}

// --- A changed schedule gets the verifier's answer, and the link restores the change.
{
  const tab = await open('#player?player.a=ring&player.n=4&player.k=2');
  await tab.$$eval('#player summary', (all) => all.find((one) => one.textContent.startsWith('Change')).click());
  await tab.$$eval('#player .editor li button', (all) => all.find((one) => one.textContent === 'Delete').click());
  await tab.waitForSelector('#player .proof.bad');
  const { json } = native(tool, [{ ask: 'play', question: { collective: 'all_reduce', algorithm: 'ring', ranks: 4, bytes: '1M' }, edits: [{ do: 'delete', round: 1, transfer: 0 }] }])[0];
  const said = (await texts(tab, '#player .proof'))[0];
  check('the verifier answers to a deleted transfer', said.includes(json.proof.text), JSON.stringify([said, json.proof]));
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
  check('a quiz is the same for everybody', json.proof.proved ? said.startsWith('Proved') : said.includes(json.proof.text), JSON.stringify([said, json.proof]));
  await tab.close();
}

// --- A step's plan equals the tool's, and so do its errors.
{
  const asked = { ask: 'plan', model: 'gpt2', machine: 'a100', order: 'gpipe', recompute: 'none', zero: 0, tp: 2, sp: 1, ep: 1, dp: 2, pp: 4, micro_batches: 6 };
  const tab = await open('#planner?planner.order=gpipe&planner.micro_batches=6');
  await tab.waitForSelector('#planner td');
  const { json } = native(tool, [asked])[0];
  const values = await tab.$$eval('#planner [data-value]', (all) => all.map((one) => Number(one.dataset.value)));
  const wanted = [json.computing, json.exposed, json.bubble, json.hidden, json.exposed];
  check('the planner shows the plan of the tool', JSON.stringify(values) === JSON.stringify(wanted), JSON.stringify([values, wanted]));
  const memory = await tab.$$eval('#planner [data-memory]', (all) => all.map((one) => Number(one.dataset.memory)));
  check('and the memory of every stage', memory.length === 4 && JSON.stringify(memory) === JSON.stringify(json.stages.map((stage) => stage.all)), JSON.stringify([memory, json.stages]));
  check('the planner lists every collective', (await tab.$$('#planner tbody tr')).length === json.collectives.length);
  await tab.close();
  const wrong = await open('#planner?planner.tp=5');
  await wrong.waitForSelector('#planner .field.wrong');
  const { json: refused } = native(tool, [{ ...asked, tp: 5, order: '1f1b', micro_batches: 8 }])[0];
  const beside = await wrong.$$eval('#planner .field.wrong', (fields) => fields.map((field) => field.querySelector('.error').textContent));
  check('what is wrong with an axis stands beside it', JSON.stringify(beside) === JSON.stringify([refused.error]), JSON.stringify([beside, refused]));
  await wrong.close();
}

// --- With motion, without motion, and without JavaScript.
{
  const tab = await open('#race?race.n=32', { motion: 'no-preference' });
  await settled(tab);
  // Measures the work of a frame, not its duration, so that a busy machine does not fail the test.
  const run = await tab.evaluate(async () => {
    const frame = () => new Promise((done) => requestAnimationFrame(done));
    document.querySelector('#race .transport button:nth-of-type(2)').click();
    await frame();
    await frame();
    const out = { made: 0, asked: 0, strokes: [], intervals: [] };
    const send = Worker.prototype.postMessage, pen = CanvasRenderingContext2D.prototype, kept = {};
    Worker.prototype.postMessage = function (...all) {
      ++out.asked;
      return send.apply(this, all);
    };
    let drawn = 0;
    for (const name of ['stroke', 'fill', 'fillText', 'fillRect']) {
      kept[name] = pen[name];
      pen[name] = function (...all) {
        ++drawn;
        return kept[name].apply(this, all);
      };
    }
    const watch = new MutationObserver((seen) => (out.made += seen.length));
    watch.observe(document.querySelector('#race'), { childList: true, subtree: true });
    let before = await frame();
    for (const first = window.raceFrames; window.raceFrames < first + 120; ) {
      drawn = 0;
      const now = await frame();
      out.intervals.push(now - before);
      out.strokes.push(drawn);
      before = now;
    }
    watch.disconnect();
    Object.assign(pen, kept);
    Worker.prototype.postMessage = send;
    return out;
  });
  const sorted = [...run.intervals].sort((a, b) => a - b), most = Math.max(...run.strokes);
  check('the race runs', run.intervals.length >= 60, `${run.intervals.length}`);
  check('a frame of the race makes no element and asks the engine nothing', run.made === 0 && run.asked === 0, JSON.stringify([run.made, run.asked]));
  // A lane draws its ranks, four pieces each, and messages in flight, three pieces each: at most one per rank with one port.
  check('a frame draws what moves, and no more', most > 3 * 32 * 4 && most <= 3 * 32 * (4 + 3), `${most}`);
  note(`${(1000 * run.intervals.length / run.intervals.reduce((a, b) => a + b, 0)).toFixed(1)} frames a second among 32 ranks; between two ${sorted[sorted.length >> 1].toFixed(1)} ms, 95 of 100 within ${sorted[Math.floor(sorted.length * 0.95)].toFixed(1)} ms; ${most} strokes at most`);
  await tab.close();
  const still = await open();
  await new Promise((wait) => setTimeout(wait, 500));
  const before = await still.evaluate(() => window.raceFrames);
  await new Promise((wait) => setTimeout(wait, 1000));
  check('nothing moves by itself where that is asked for', (await still.evaluate(() => window.raceFrames)) === before);
  await still.close();
}
{
  const bare = await launch(cache, page, which, { script: false });
  const tab = await bare.open();
  const { text, pictures, ready } = await tab.evaluate(() => ({
    text: document.querySelector('main').innerText, ready: document.documentElement.dataset.ready,
    pictures: [...document.querySelectorAll('svg.state')].filter((one) => one.checkVisibility() && one.getBoundingClientRect().width > 20).length,
  }));
  check('without JavaScript it says so and shows the gallery', /Without JavaScript/.test(text) && pictures === 15 && ready === undefined, `${pictures} ${ready} ${text.slice(0, 200)}`);
  await bare.browser.close();
}
await browser.close();
done();
