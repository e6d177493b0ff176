// The actions of a visitor in each section, with results equal to the native tool's: sections_test.mjs CACHE PAGE TOOL BROWSER.
import { spawnSync } from 'node:child_process';
import { writeFileSync } from 'node:fs';
import { join, resolve } from 'node:path';
import { launch, texts } from './browser.mjs';
import { check, done, native } from './native.mjs';

const [cache, page, tool, which = 'chromium'] = process.argv.slice(2);
const { browser, open, settled } = await launch(cache, page, which);
const ask = (request) => native(tool, [request])[0];
const hash = (tab) => tab.evaluate(() => decodeURIComponent(location.hash));
const text = async (tab, selector) => (await texts(tab, selector)).join(' ');
/** Clicks the first element of `selector` with a text that begins with `words`. */
const click = (tab, selector, words) => tab.$$eval(selector, (all, words) => all.find((one) => one.textContent.trim().startsWith(words)).click(), words);
/** Waits for a condition; after a time-out the check fails and the later checks go on. */
const wait = (tab, condition, ...more) => tab.waitForFunction(condition, { timeout: 30000 }, ...more).catch((error) => check(`in time: ${condition}`, false, `${JSON.stringify(more)} ${error.message}`));
async function control(tab, section, label, value) {
  await tab.evaluate((section, label, value) => {
    const field = [...document.querySelectorAll(`#${section} .field`)].find((one) => one.querySelector('label').textContent === label);
    const input = field.querySelector('select, textarea, input:not([type=range])');
    input.value = value;
    input.dispatchEvent(new Event('input', { bubbles: true }));
    input.dispatchEvent(new Event('change', { bubbles: true }));
  }, section, label, value);
}
async function slide(tab, section, label, value) {
  await tab.evaluate((section, label, value) => {
    const field = [...document.querySelectorAll(`#${section} .field`)].find((one) => one.querySelector('label').textContent === label);
    const slider = field.querySelector('input[type=range]');
    slider.value = value;
    slider.dispatchEvent(new Event('input', { bubbles: true }));
  }, section, label, value);
}

// --- The race: sliders and presets.
{
  const tab = await open('#race');
  await tab.$eval('#race details', (one) => (one.open = true));
  for (const [label, value, said] of [['alpha, per message', 6, 'race.alpha=5us'], ['bandwidth', 7, 'race.bw=200GB/s'], ['ports', 3, 'race.ports=3'], ['N, ranks', 12, 'race.n=12'], ['M, bytes per rank', 16, 'race.m=64K']]) {
    await slide(tab, 'race', label, String(value));
    await wait(tab, (said) => decodeURIComponent(location.hash).includes(said), said);
    check(`a slider of the race sets ${label}`, true);
  }
  await control(tab, 'race', 'N, ranks', '100');
  const time = ask({ ask: 'simulate', question: { collective: 'all_reduce', algorithm: 'ring', ranks: 100, bytes: '64K', network: 'plain', alpha: '5us', bandwidth: '200GB/s', ports: 3 } }).json.time;
  await wait(tab, (time) => Number(document.querySelector('#race [data-fact=time]')?.dataset.value) === time, time);
  check('the race takes more ranks by typing, and all settings at once', true);
  for (const network of ['ring', 'torus', 'two_level']) {
    await control(tab, 'race', 'network', network);
    const { json } = ask({ ask: 'simulate', question: { collective: 'all_reduce', algorithm: 'ring', ranks: 100, bytes: '64K', network, alpha: '5us', bandwidth: '200GB/s', ports: 3 } });
    await wait(tab, (json) => Number(document.querySelector('#race [data-fact=time]')?.dataset.value) === json.time || document.querySelector('#race .lane .error')?.textContent === json.error, json);
    check(`the race runs on the network ${network}`, true);
  }
  await tab.close();
  const marked = await open('#race?race.n=16');
  await wait(marked, () => document.querySelectorAll('#race .strip span').length > 1);
  const said = await text(marked, '#race .winners .note'), verdict = await text(marked, '#race .verdict');
  check('the race says who wins, why, and where it changes', /wins with .* times α/.test(verdict) && /from .* on/.test(said), verdict + said);
  await marked.close();
}

// --- The primitives.
{
  const tab = await open('#primitives');
  await settled(tab);
  const cards = await tab.$$eval('#primitives .card', (all) => all.map((card) => [card.querySelectorAll('svg.state').length, card.querySelectorAll('svg.moves').length, card.querySelector('.where').textContent.length]));
  check('each primitive has before, moves, after, and where it appears', cards.length === 7 && cards.every(([states, moves, where]) => states === moves + 1 && where > 8), JSON.stringify(cards));
  check('all-reduce is shown as its two halves', (await text(tab, '#primitives .all_reduce figcaption')).replace(/\s+/g, ' ') === 'before 3 rounds after reduce-scatter 3 rounds after all-gather');
  const lines = await tab.$eval('#primitives .broadcast svg.moves', (svg) => svg.querySelectorAll('path.move').length);
  check('the moves of a broadcast go to three others', lines === 3, `${lines}`);
  await tab.close();
}

// --- The player.
{
  const tab = await open('#player?player.c=broadcast&player.a=binomial_near&player.n=8&player.k=1');
  const tops = () => tab.$$eval('#player svg.arrows circle', (all) => new Set(all.map((one) => one.getAttribute('cy'))).size);
  check('what has a root is drawn as a tree', (await tops()) === 4, `${await tops()}`);
  await control(tab, 'player', 'drawn as', 'line');
  await wait(tab, () => new Set([...document.querySelectorAll('#player svg.arrows circle')].map((one) => one.getAttribute('cy'))).size === 1);
  check('and as a line', true);
  await control(tab, 'player', 'follow rank', '3');
  await wait(tab, () => document.querySelector('#player .rank.picked text')?.textContent === '3' && /rank 3 /.test(document.querySelector('#player .sent figcaption')?.textContent ?? ''));
  check('a rank can be followed', true);
  await tab.click('#player .transport .main');
  await wait(tab, () => document.querySelector('#player .transport output').textContent.includes('after round 3 of 3'));
  check('it plays by itself', true);
  await tab.close();
  const torus = await open('#player?player.a=bucket&player.n=12&player.dims=3x4&player.k=1');
  const place = await torus.$$eval('#player svg.arrows circle', (all) => [new Set(all.map((one) => one.getAttribute('cx'))).size, new Set(all.map((one) => one.getAttribute('cy'))).size]);
  check('a torus is drawn as rows and columns', JSON.stringify(place) === '[4,3]', JSON.stringify(place));
  await control(torus, 'player', 'sizes of the torus, 3x3', '5x5');
  const { json } = ask({ ask: 'play', question: { collective: 'all_reduce', algorithm: 'bucket', ranks: 12, bytes: '1M', params: { dims: '5x5' } } });
  await wait(torus, (error) => document.querySelector('#player .field.wrong .error')?.textContent === error, json.error);
  check('sizes that do not multiply up are refused beside their field', true);
  await torus.close();
  const sent = await open('#player?player.a=ring&player.n=5');
  await wait(sent, () => document.querySelectorAll('#player .bars i').length === 5);
  const cost = ask({ ask: 'simulate', question: { collective: 'all_reduce', algorithm: 'ring', ranks: 5, bytes: '1M' } }).json;
  check('bytes per rank stand against the bound', (await text(sent, '#player .sent figcaption')).includes('1.6 MiB') && Math.abs(cost.least_bytes / 2 ** 20 - 1.6) < 1e-9, `${cost.least_bytes}`);
  await click(sent, '#player summary', 'Change');
  await slide(sent, 'player', 'N, ranks', '4');
  await sent.$eval('#player .transport input[type=range]', (one) => ((one.value = '1'), one.dispatchEvent(new Event('input', { bubbles: true }))));
  await wait(sent, () => document.querySelectorAll('#player .editor li').length === 4);
  // Some redirections do no harm; this one does.
  const four = { ask: 'play', question: { collective: 'all_reduce', algorithm: 'ring', ranks: 4, bytes: '1M' } };
  const broken = [0, 1, 2, 3].flatMap((transfer) => [0, 1, 2, 3].map((to) => ({ do: 'redirect', round: 0, transfer, to }))).find((edit) => !(ask({ ...four, edits: [edit] }).json.proof?.proved ?? true));
  await control(sent, 'player', 'redirect to rank', String(broken.to));
  const button = `#player .editor li:nth-child(${broken.transfer + 1}) button`;
  await wait(sent, (button, to) => [...document.querySelectorAll(button)].some((one) => one.textContent === 'To ' + to), button, broken.to);
  await click(sent, button, 'To ' + broken.to);
  const redirected = ask({ ...four, edits: [broken] }).json.proof;
  await wait(sent, (text) => document.querySelector('#player .proof.bad')?.textContent.includes(text), redirected.text);
  check('the verifier answers to a redirected transfer', true);
  await sent.close();
}

// --- The timeline.
{
  const question = { collective: 'all_reduce', algorithm: 'recursive_doubling_pipelined', ranks: 8, bytes: '1M', segments: 3, sync: 'dataflow', network: 'plain' };
  const tab = await open('#timeline?player.a=recursive_doubling_pipelined&player.p=3');
  for (let ports = 1; ports <= 8; ++ports) {
    await slide(tab, 'timeline', 'ports', String(ports));
    const { json } = ask({ ask: 'messages', question: { ...question, ports } });
    await wait(tab, (budget) => document.querySelector('#timeline .verdict')?.textContent.includes(budget), json.budget);
    check(`with ${ports} ports it is the survey's case ${json.ports_needed > ports ? 'B' : 'A'}`, json.budget.includes(json.ports_needed > ports ? 'case B' : 'case A'));
  }
  await click(tab, '#timeline .buttons button', 'Case B');
  await wait(tab, () => decodeURIComponent(location.hash).includes('timeline.ports=1'));
  // A click on a bar moves the player to its round.
  const box = await (await tab.$('#timeline canvas')).boundingBox();
  await tab.$eval('#timeline canvas', (canvas, x) => {
    const at = canvas.getBoundingClientRect();
    for (let y = 6; y < 200; y += 6) canvas.dispatchEvent(new MouseEvent('click', { bubbles: true, clientX: at.left + x, clientY: at.top + y }));
  }, Math.round(box.width / 2));
  await wait(tab, () => /player\.k=\d/.test(location.hash) && /^round \d/.test(document.querySelector('#timeline .readout').textContent));
  check('a bar of the timeline takes the player to its round', true);
  await tab.close();
}
{
  const file = join(resolve(cache), 'wall.json');
  const measure = (...more) => {
    const run = spawnSync(tool, ['run', 'all_reduce', '--ranks', '3', '--bytes', '64K', '--network', 'scale_out', '--clock', 'wall', '--rounds', '--json', '--repeat', '2', ...more], { encoding: 'utf8' });
    check(`rankine run measures ${more.join(' ')}`, run.status === 0, `${run.status} ${run.signal} ${run.error} ${run.stderr}`);
    return run.stdout;
  };
  const written = measure('--algo', 'ring'), json = JSON.parse(written);
  const tab = await open('#timeline?player.a=direct_one_shot&player.n=5');
  // Drops a file on an element: by events of the browser if possible, else by synthetic events.
  const drop = async (selector, text) => {
    writeFileSync(file, text);
    if (which === 'chromium') {
      const box = await (await tab.$(selector)).boundingBox(), client = await tab.createCDPSession();
      for (const type of ['dragEnter', 'dragOver', 'drop']) {
        await client.send('Input.dispatchDragEvent', { type, x: box.x + 10, y: box.y + 10, data: { items: [], files: [file], dragOperationsMask: 1 } });
      }
      await client.detach();
      return;
    }
    await tab.$eval(selector, (target, text) => {
      const dataTransfer = new DataTransfer();
      dataTransfer.items.add(new File([text], 'wall.json', { type: 'application/json' }));
      for (const type of ['dragover', 'drop']) {
        const event = new DragEvent(type, { bubbles: true, cancelable: true, dataTransfer });
        target.dispatchEvent(event);
        if (!event.defaultPrevented) throw new Error(`nobody takes ${type}`);
      }
    }, text);
  };
  const refused = async (what, text, said) => {
    const before = await hash(tab);
    await tab.$eval('#timeline .drop', (one) => one.scrollIntoView({ block: 'center' }));
    await drop('#timeline .drop', text);
    await wait(tab, (said) => document.querySelector('#timeline .drop > .error')?.textContent.includes(said), said);
    check(`${what} is refused, and nothing else is shown`, (await hash(tab)) === before);
  };
  await refused('what is no JSON', 'round 1', 'wall.json is not JSON');
  for (const [what, other] of [['a run without a clock of threads', { ...json, clock: 'virtual' }], ['a list', [1]], ['nothing', null], ['a plan', { tokens: 5 }], ['a run without rounds', { ...json, rounds: [] }], ['a round that is a word', { ...json, rounds: [{ measured: 'soon' }] }]]) {
    await refused(what, JSON.stringify(other), 'has no wall measurements');
  }
  const unknown = ask({ ask: 'simulate', question: { collective: 'all_reduce', algorithm: 'rnig', ranks: 3, bytes: 65536, network: 'scale_out' } }).json.error;
  await refused('an algorithm that is none', JSON.stringify({ ...json, algorithm: 'rnig' }), unknown);
  await refused('a run of another algorithm under this name', JSON.stringify({ ...json, algorithm: 'direct_two_shot' }), 'wall.json has 4 rounds, and direct_two_shot among 3 ranks has 2.');
  await refused('a large file', written + ' '.repeat(2 ** 20), 'bytes; what');

  const measured = async (run) => {
    await wait(tab, () => location.hash.includes('timeline.wall='));
    await wait(tab, () => /ring takes/.test(document.querySelector('#timeline .verdict')?.textContent ?? '') && document.querySelector('#timeline .drop > p:not(.error)'));
    const wall = new URLSearchParams((await tab.evaluate(() => location.hash)).split('?')[1]).get('timeline.wall').split(',').slice(2).map(Number);
    const wanted = run.rounds.map((round) => round.measured / run.dilate);
    return [wall.length === 4 && wall.every((end, k) => Math.abs(end - wanted[k]) <= 1e-4 * wanted[k]), JSON.stringify([wall, wanted])];
  };
  // Over another section: the whole page accepts the file.
  await tab.$eval('#cost h2', (one) => one.scrollIntoView({ block: 'center' }));
  await drop('#cost h2', written);
  check('wall measurements that are dropped on the page lie over the prediction', ...(await measured(json)));
  check('and the page is where they are', (await tab.evaluate(() => location.hash)).startsWith('#timeline') && (await tab.$eval('#timeline h2', (one) => Math.abs(one.getBoundingClientRect().top) < innerHeight)));
  const reds = () => tab.$eval('#timeline canvas', (canvas) => {
    const { data } = canvas.getContext('2d').getImageData(0, 0, canvas.width, 3);
    let found = 0;
    for (let i = 0; i < data.length; i += 4) found += data[i] > 150 && data[i + 1] < 80 && data[i + 3] > 60 ? 1 : 0;
    return found;
  });
  check('as a line for the end of every round', (await reds()) >= 4, `${await reds()}`);
  const again = await open(await tab.evaluate(() => location.hash));
  check('and stand in the link', (await again.$$('#timeline .drop > p:not(.error)')).length === 1);
  await again.close();
  // An algorithm that takes exactly as long.
  await control(tab, 'player', 'algorithm', 'direct_two_shot');
  await wait(tab, () => /direct two shot takes/.test(document.querySelector('#timeline .verdict').textContent) && /all reduce, ring, 3 ranks .* another algorithm/.test(document.querySelector('#timeline .drop > .error')?.textContent ?? ''));
  check('over another schedule they do not lie', (await reds()) === 0);
  const chooser = await tab.$('#timeline input[type=file]');
  const own = measure('--algo', 'ring', '--alpha', '3us', '--bandwidth', '10GB/s');
  writeFileSync(file, own);
  await chooser.uploadFile(file);
  await wait(tab, () => location.hash.includes('timeline.bw='));
  check('a run with an alpha of its own, chosen, brings it along', ...(await measured(JSON.parse(own))));
  check('and what it set', (await hash(tab)).includes('timeline.alpha=0.000003s') && (await hash(tab)).includes('timeline.bw=10000000000B/s'), await hash(tab));
  await tab.close();
}

// --- Arrow keys reach all that a pointer reaches: messages of the timeline, passes of a pipeline.
{
  const tab = await open('#timeline?player.a=ring&player.n=4');
  const { numbers } = ask({ ask: 'messages', question: { collective: 'all_reduce', algorithm: 'ring', ranks: 4, bytes: '1M', network: 'plain', sync: 'dataflow' } });
  const columns = 11, first = [...Array(numbers.length / columns).keys()].map((k) => k * columns).filter((i) => numbers[i + 2] === 1).sort((a, b) => numbers[a + 5] - numbers[b + 5]);
  const readout = () => text(tab, '#timeline .readout');
  await tab.focus('#timeline canvas[tabindex]');
  for (const [key, said] of [['ArrowRight', 'round 1: 0 → '], ['ArrowDown', 'round 1: 1 → '], ['ArrowRight', `round ${numbers[first[1]] + 1}: 1 → ${numbers[first[1] + 3]}, `], ['ArrowLeft', 'round 1: 1 → '], ['ArrowUp', 'round 1: 0 → '], ['ArrowUp', 'round 1: 0 → ']]) {
    await tab.keyboard.press(key);
    await wait(tab, (said) => document.querySelector('#timeline .readout').textContent.startsWith(said), said);
    check(`${key} leads to ${said}`, (await readout()).startsWith(said), await readout());
  }
  await tab.keyboard.press('Enter');
  await wait(tab, () => location.hash.includes('player.k=1'));
  check('Enter takes the player there', true);
  await tab.waitForSelector('#planner canvas[tabindex]');
  await tab.focus('#planner canvas[tabindex]');
  await tab.keyboard.press('ArrowDown');
  await wait(tab, () => /^stage 0: forward of micro-batch 0, /.test([...document.querySelectorAll('#planner .readout')].at(-1).textContent));
  await tab.keyboard.press('ArrowDown');
  await wait(tab, () => /^stage 1: forward of micro-batch \d, /.test([...document.querySelectorAll('#planner .readout')].at(-1).textContent));
  check('and from stage to stage', true);
  await tab.close();
}

// --- Cost.
{
  const tab = await open('#cost');
  await settled(tab);
  const drawn = await tab.$$eval('#cost .chart', (all) => all.map((chart) => [chart.querySelectorAll('.curve').length, chart.querySelectorAll('.formula').length, chart.querySelectorAll('.crossing').length]));
  check('formula and simulation lie in one picture, with crossovers', drawn.length === 2 && drawn.every(([curves, formulas]) => curves === 4 && formulas === 4) && drawn[0][2] > 0, JSON.stringify(drawn));
  await tab.click('#cost .guess .buttons button');
  await wait(tab, () => /^(Yes|No): /.test(document.querySelector('#cost .guess [role=status]')?.textContent ?? ''));
  const truth = ask({ ask: 'curve', over: 'ranks', values: [8], questions: ['ring', 'recursive_doubling', 'halving_doubling', 'double_tree'].map((algorithm) => ({ collective: 'all_reduce', algorithm, bytes: '1K', sync: 'dataflow', network: 'plain', ...(algorithm === 'double_tree' ? { segments: 'auto' } : {}) })) }).json.fastest[0];
  check('a guess is answered by the engine', (await text(tab, '#cost .guess [role=status] b')) === ['ring', 'recursive doubling', 'halving doubling', 'double tree'][truth]);
  const rows = await tab.$$eval('#cost .rows [data-value]', (all) => all.map((one) => Number(one.dataset.value)));
  const buckets = spawnSync(tool, ['buckets', '--algo', 'ring', '--ranks', '16', '--tensors', '64', '--tensor', '4M', '--backward', '20ms', '--network', 'plain', '--json'], { encoding: 'utf8' });
  check('the bucket-size question is rankine buckets’ own', JSON.stringify(rows) === JSON.stringify(JSON.parse(buckets.stdout).map((row) => row.exposed)), JSON.stringify([rows, buckets.stdout, buckets.stderr]));
  await tab.close();
}

// --- Break it, by hand.
{
  const tab = await open('#break?break.by=hand&break.n=4');
  await tab.waitForSelector('#break .editor');
  await click(tab, '#break summary', 'Change');
  await click(tab, '#break .editor li button', 'Double');
  const { proof } = ask({ ask: 'play', question: { collective: 'all_reduce', algorithm: 'ring', ranks: 4, bytes: 1024 }, edits: [{ do: 'double', round: 0, transfer: 0 }] }).json;
  await wait(tab, () => decodeURIComponent(location.hash).includes('double'));
  check('the verdict waits for the guess', (await tab.$('#break .proof')) === null);
  await click(tab, '#break .buttons button', proof.kind.replaceAll('_', ' '));
  await tab.waitForSelector('#break .proof');
  await wait(tab, (text) => document.querySelector('#break .proof.bad')?.textContent.includes(text), proof.text);
  const meanings = await texts(tab, '#break .meanings div');
  const rule = ask({ ask: 'catalogue' }).json.violations.find((one) => one.kind === proof.kind).rule;
  check('what the kinds mean is there to read', meanings.some((one) => one.startsWith(proof.kind.replaceAll('_', ' ')) && one.endsWith(rule)), JSON.stringify(meanings));
  check('a change by hand is guessed at and judged', (await text(tab, '#break [role=status].good')).startsWith('Yes.'));
  await tab.close();
}

// --- The planner's slider for experts.
{
  const tab = await open('#planner?planner.model=mixtral_8x7b&planner.ep=8&planner.tp=1&planner.pp=1&planner.dp=1');
  await tab.waitForSelector('#planner .verdict, #planner .error');
  const said = () => text(tab, '#planner .verdict, #planner > .error');
  const even = await said();
  await slide(tab, 'planner', 'tokens of the busiest rank along ep, % of the mean', '300');
  await wait(tab, (even) => document.querySelector('#planner .verdict')?.textContent !== even, even);
  check('a skewed router makes the step longer', (await hash(tab)).includes('planner.skew=300'), even + (await said()));
  await tab.close();
}

// --- The papers.
{
  const tab = await open('#papers');
  await settled(tab);
  for (let k = 1; k <= 6; ++k) {
    await click(tab, '#papers .buttons button', `Exercise ${k}`);
    await wait(tab, (k) => location.hash.includes(`exercise+${k}`) && document.querySelector('#papers .claims .card')?.textContent.toLowerCase().includes(`exercise ${k}`), k);
    const found = await tab.$$eval('#papers .claims .card', (all) => all.map((one) => one.textContent.toLowerCase()));
    check(`exercise ${k} of the chapter has verdicts`, found.length > 0 && found.every((one) => one.includes(`exercise ${k}`)), `${found.length}`);
  }
  for (const [figure, drawings] of [['trivance-1', 7], ['trivance-2', 3], ['trivance-3', 2], ['trivance-4', 4], ['trivance-5', 2], ['traff-1', 1]]) {
    await control(tab, 'papers', 'figure', figure);
    await wait(tab, (figure) => document.querySelector('#papers .drawings').dataset.figure === figure, figure);
    const drawn = await tab.$$eval('#papers .drawings figure', (all) => all.map((one) => one.querySelectorAll('path.move, canvas').length));
    check(`${figure} is drawn`, drawn.length === drawings && drawn.every((count) => count > 0), JSON.stringify(drawn));
  }
  await control(tab, 'papers', 'figure', 'trivance-2');
  await wait(tab, () => document.querySelector('#papers .drawings').dataset.figure === 'trivance-2');
  check('what is known triples', (await texts(tab, '#papers .drawings figcaption')).map((one) => one.replace(/.*holds /, '')).join(' ') === '12..14 9..17 0..26', JSON.stringify(await texts(tab, '#papers .drawings figcaption')));
  await control(tab, 'papers', 'figure', 'traff-1');
  await wait(tab, () => document.querySelector('#papers .drawings').dataset.figure === 'traff-1');
  check('the tree of 22 ranks has 21 edges', (await tab.$$('#papers .drawings path.move')).length === 21);
  await tab.close();
}

// --- The catalogue.
{
  const tab = await open('#catalogue?catalogue.c=broadcast&catalogue.n=9&catalogue.by=rounds');
  await wait(tab, () => document.querySelectorAll('#catalogue tbody tr').length > 3 && !/\D/.test(document.querySelector('#catalogue tbody td:nth-child(3)').textContent));
  const rounds = (await texts(tab, '#catalogue tbody td:nth-child(3)')).map(Number).filter(Number.isFinite);
  const wanted = ask({ ask: 'catalogue', ranks: 9 }).json.algorithms.filter((line) => line.collective === 'broadcast' && !line.at.refused).map((line) => Number(line.at.rounds)).filter(Number.isFinite).sort((a, b) => a - b);
  check('the catalogue sorts the engine’s formulas', rounds.length > 3 && JSON.stringify(rounds) === JSON.stringify(wanted), JSON.stringify([rounds, wanted]));
  await tab.click('#catalogue tbody button');
  await wait(tab, () => document.querySelector('#catalogue [data-asked]')?.dataset.asked);
  const command = (await texts(tab, '#catalogue .more code'))[1].split(' ').slice(1);
  check('its command line is one that the tool takes', spawnSync(tool, command).status === 0, command.join(' '));
  await tab.close();
}

// --- The tasks.
{
  const tab = await open('#tasks');
  await settled(tab);
  const judged = (text) => ask({ ask: 'check', text }).json;
  const begun = await tab.$eval('#tasks textarea', (one) => one.value);
  check('a task begins wrong, in the verifier’s words', !judged(begun).proved && (await text(tab, '#tasks .proof')).includes(judged(begun).text));
  check('and says what is asked', (await text(tab, '#tasks .question')).startsWith('All-gather among 4 ranks') && !begun.startsWith('#'), begun);
  const own = 'all_gather 4\nround\n0 -> 1: 0\n1 -> 0: 1\n2 -> 3: 2\n3 -> 2: 3\nround\n0 <-> 2: 0,1 \n';
  await control(tab, 'tasks', 'schedule, judged while you write', own);
  await wait(tab, (text) => document.querySelector('#tasks .proof')?.textContent.includes(text), judged(own).text);
  const right = 'all_gather 4\nround\n0 -> 1: 0\n1 -> 0: 1\n2 -> 3: 2\n3 -> 2: 3\nround\n0 -> 2: 0,1\n2 -> 0: 2,3\n1 -> 3: 0,1\n3 -> 1: 2,3\n';
  await control(tab, 'tasks', 'schedule, judged while you write', right);
  await tab.waitForSelector('#tasks .proof.good');
  check('what is mended is proved', judged(right).proved && /2 rounds, where 2 are the least/.test(await text(tab, '#tasks .proof.good')), await text(tab, '#tasks .proof.good'));
  await control(tab, 'tasks', 'schedule, judged while you write', 'all_gather 4\nround\n0 -> 9: 0\n');
  await wait(tab, () => /line 3/.test(document.querySelector('#tasks .error')?.textContent ?? ''));
  check('what cannot be read is said with its line', (await text(tab, '#tasks .error')) === judged('all_gather 4\nround\n0 -> 9: 0\n').error);
  // A pipeline's order.
  await control(tab, 'tasks', 'task', '6-pipeline');
  await wait(tab, () => document.querySelector('#tasks .proof.bad')?.textContent.includes('keeps too much'));
  const gpipe = await tab.$eval('#tasks textarea', (one) => one.value), order = judged(gpipe);
  const rows = () => tab.$$eval('#tasks tbody tr', (all) => all.map((row) => [...row.children].map((cell) => cell.textContent)));
  const wanted = (json) => [...(json.yours ? [json.yours] : []), ...json.named].map((one) => [one.order, `${one.time} s`, `${one.idle} s`, one.kept.join(' ')]);
  check('an order is judged and compared', (await text(tab, '#tasks .proof')).includes(order.text) && JSON.stringify(await rows()) === JSON.stringify(wanted(order)), JSON.stringify(await rows()));
  const labelled = await tab.$eval('#tasks canvas', (one) => one.getAttribute('aria-label'));
  check('and drawn', labelled === '64 passes of 4 stages over 33 s', labelled);
  const earlier = gpipe.replace('0: F0..7 B0..7', '0: F0..3 B0 F4 B1 F5 B2 F6 B3 F7 B4..7').replace('1: F0..7 B0..7', '1: F0..2 B0 F3 B1 F4 B2 F5 B3 F6 B4 F7 B5..7')
    .replace('2: F0..7 B0..7', '2: F0..1 B0 F2 B1 F3 B2 F4 B3 F5 B4 F6 B5 F7 B6..7').replace('3: F0..7 B0..7', '3: F0 B0 F1 B1 F2 B2 F3 B3 F4 B4 F5 B5 F6 B6 F7 B7');
  await control(tab, 'tasks', 'schedule, judged while you write', earlier);
  await wait(tab, () => document.querySelector('#tasks .card:first-child .proof.good'));
  check('one that keeps less is right', judged(earlier).proved && JSON.stringify(await rows()) === JSON.stringify(wanted(judged(earlier))));
  for (const [formula, is] of [['2*S', 'bad'], ['2*(N-1)/N*S', 'good']]) {
    await control(tab, 'tasks', 'your formula', formula);
    await wait(tab, (is) => document.querySelector('#tasks .card:last-child .proof.' + is), is);
    const { json } = ask({ ask: 'formula', task: 'ring_bytes', formula });
    check(`a formula is ${is === 'good' ? 'right' : 'wrong where the tool says'}`, json.right === (is === 'good') && (json.right || (await text(tab, '#tasks .proof.bad')).includes(json.at)));
  }
  await tab.close();
}
await browser.close();
done();
