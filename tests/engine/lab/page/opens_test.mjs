// The page opens, on a desk and on a phone, and can be read, used and taught with: opens_test.mjs CACHE PAGE TOOL BROWSER.
import { readFileSync, writeFileSync } from 'node:fs';
import { join, resolve } from 'node:path';
import { launch, texts } from './browser.mjs';
import { check, done, native, note } from './native.mjs';

const [cache, page, tool, which = 'chromium'] = process.argv.slice(2);
const chromium = which === 'chromium';
const { browser, open, settled, require } = await launch(cache, page, which);
const axe = readFileSync(require.resolve('axe-core/axe.min.js'), 'utf8');
const ask = (request) => native(tool, [request])[0];
const wait = (tab, condition, ...more) => tab.waitForFunction(condition, { timeout: 30000 }, ...more).catch((error) => check(`in time: ${condition}`, false, error.message));
const focused = (tab) => tab.evaluate(() => document.activeElement?.id || document.activeElement?.className || document.activeElement?.localName);

// --- No resource is loaded, no error occurs, no element is too wide, and the page is accessible.
const views = [[1600, 'light', ''], [1600, 'dark', ''], [360, 'light', ''], [390, 'light', '#instructor'], [1600, 'light', '#handout'], [390, 'light', '#race?words.at=busbw']];
for (const [width, scheme, at] of views.filter(([, scheme]) => chromium || scheme === 'light')) {
  const tab = await open(at, { width, scheme });
  if (!at || at.includes('?')) await settled(tab);
  const where = `at ${width} pixels, ${scheme} ${at}`;
  const outside = tab.asked.filter((url) => !/^(file|blob|data):/.test(url));
  check(`no request leaves the page ${where}`, outside.length === 0, outside.join(' '));
  check(`no error on the console ${where}`, tab.wrong.length === 0, tab.wrong.join(' '));
  check(`nothing is wider than the screen ${where}`, await tab.evaluate(() => document.documentElement.scrollWidth <= innerWidth));
  await tab.evaluate(axe);
  const { violations } = await tab.evaluate(() => window.axe.run());
  const serious = violations.filter((one) => ['serious', 'critical'].includes(one.impact));
  check(`axe-core finds nothing serious ${where}`, serious.length === 0, JSON.stringify(serious.map((one) => [one.id, one.nodes.length, one.nodes[0].html.slice(0, 200), one.nodes[0].any[0]?.message]), null, 1));
  if (width === 1600 && scheme === 'light' && !at) note(`ready ${await tab.evaluate(() => document.documentElement.dataset.ready)} ms after the page was opened`);
  await tab.close();
}
{
  const tab = await open('#race?race.n=24');
  const found = await tab.$eval('#race [data-fact=time]', (one) => Number(one.dataset.value));
  const { json } = ask({ ask: 'simulate', question: { collective: 'all_reduce', algorithm: 'ring', ranks: 24, bytes: '1M', network: 'plain' } });
  check('the engine in the page answers as the native one', found === json.time, `${found} ${json.time}`);
  await tab.close();
}

// --- On a phone the racers and their controls are visible together; on any screen rows are full and curves use their chart.
{
  const tab = await open('#race', { width: 390 });
  await tab.$eval('#race .transport', (one) => one.scrollIntoView());
  const seen = await tab.$$eval('#race .transport .main, #race .lane canvas', (all) => all.map((one) => {
    const box = one.getBoundingClientRect();
    return box.top >= 0 && box.left >= 0 && box.bottom <= Math.min(innerHeight, 740) && box.right <= innerWidth && box.width > 60;
  }));
  check('on a phone, Run and all racers are seen at once', seen.length === 4 && seen.every(Boolean), JSON.stringify(seen));
  await tab.close();
}
for (const width of [1600, 1180, 800]) {
  const tab = await open('', { width });
  await settled(tab);
  const gaps = await tab.$$eval('.stage', (all) => all.map((stage) => Math.max(...[...stage.children].map((one) => {
    const box = one.getBoundingClientRect(), row = [...stage.children].filter((other) => Math.abs(other.getBoundingClientRect().top - box.top) < 2);
    return stage.getBoundingClientRect().right - Math.max(...row.map((other) => other.getBoundingClientRect().right));
  }))));
  check(`at ${width} pixels every row of figures is full`, gaps.length >= 4 && gaps.every((gap) => gap < 2), JSON.stringify(gaps));
  const used = await tab.$$eval('#cost .chart', (all) => all.map((chart) => {
    const boxes = [...chart.querySelectorAll('.curve')].map((one) => one.getBBox());
    return (Math.max(...boxes.map((box) => box.y + box.height)) - Math.min(...boxes.map((box) => box.y))) / chart.viewBox.baseVal.height;
  }));
  check(`at ${width} pixels the curves use the height of their charts`, used.length === 2 && used.every((part) => part > 0.6), JSON.stringify(used));
  const rules = await tab.$$eval('#cost .chart', (all) => all.map((chart) => [...chart.querySelectorAll('.tick.end')].map((one) => one.getBoundingClientRect().top)));
  check(`at ${width} pixels their scales can be read`, rules.every((tops) => tops.length >= 3 && tops.slice(1).every((top, i) => Math.abs(top - tops[i]) > 10)), JSON.stringify(rules));
  await tab.close();
}

// --- Figures of an earlier question are marked until the new answer arrives.
{
  const tab = await open();
  await settled(tab);
  const unmarked = () => tab.evaluate(() => [...document.querySelectorAll(['race', 'player', 'timeline', 'cost', 'break', 'planner', 'catalogue', 'tasks'].flatMap((id) =>
    ['[data-value]', '[data-memory]', '.verdict', '.clock', '.strip', '.chart', '.proof', '.rows', '.chip', 'td', 'canvas'].map((figure) => `#${id} ${figure}`)).join())]
    .filter((one) => one.checkVisibility() && !one.closest('[aria-busy=true]')).map((one) => `${one.closest('section').id} ${one.localName}.${one.className}`));
  await wait(tab, () => !document.querySelector('[aria-busy=true]'));
  check('what is answered is not marked', (await unmarked()).length > 100);
  // Cuts the page off from the engine.
  await tab.evaluate(() => {
    window.send = Worker.prototype.postMessage;
    window.held = [];
    Worker.prototype.postMessage = function (...more) { window.held.push(() => window.send.apply(this, more)); };
    for (const [section, label, value] of [
      ['race', 'N, ranks', '1000'], ['player', 'N, ranks', '9'], ['timeline', 'M, bytes per rank', '3M'], ['cost', 'N, ranks', '17'], ['cost', 'M, bytes per rank', '5M'], ['break', 'N, ranks', '5'],
      ['planner', 'micro-batches of a step', '7'], ['catalogue', 'formulas at N =', '9'], ['tasks', 'schedule, judged while you write', 'all_gather 4\nround\n0 -> 1: 0\n'],
    ]) {
      const field = [...document.querySelectorAll(`#${section} .field`)].find((one) => one.querySelector('label').textContent === label);
      const input = field.querySelector('textarea, input:not([type=range])');
      input.value = value;
      input.dispatchEvent(new Event('input', { bubbles: true }));
      input.dispatchEvent(new Event('change', { bubbles: true }));
    }
  });
  await wait(tab, () => location.hash.includes('tasks.text='));
  await wait(tab, () => document.querySelectorAll('.computing').length > 8);
  const left = await unmarked();
  check('as soon as something else is asked, every figure of the earlier question is marked', left.length === 0, JSON.stringify([...new Set(left)]));
  check('in words, too', (await texts(tab, '#race .computing')).every((text) => text.startsWith('computing')) && (await tab.$$('#race .computing')).length === 5);
  await tab.evaluate(() => {
    Worker.prototype.postMessage = window.send;
    window.held.forEach((each) => each());
  });
  await tab.waitForFunction(() => !document.querySelector('[aria-busy=true]'), { timeout: 120000 });
  check('and not when the answers are there', (await unmarked()).length > 100);
  await tab.close();
}

// --- By keyboard past the sections' names, and to the meaning of a word and back.
{
  const tab = await open();
  await settled(tab);
  await tab.keyboard.press('Tab');
  check('the first stop skips to the content', (await focused(tab)) === 'skip' && (await tab.$eval('.skip', (one) => one.getBoundingClientRect().top >= 0)), await focused(tab));
  await tab.keyboard.press('Enter');
  check('and leads there', (await focused(tab)) === 'content', await focused(tab));
  await tab.keyboard.press('Tab');
  check('from where it goes on', await tab.evaluate(() => document.querySelector('main').contains(document.activeElement)));
  const linked = await tab.$$eval('.word', (all) => [...new Set(all.map((one) => one.getAttribute('href').split('=')[1]))]);
  await tab.focus('#race .facts .word');
  await tab.keyboard.press('Enter');
  await tab.waitForSelector('#words .picked');
  check('a word opens its meaning', (await focused(tab)) === 'words' && (await tab.$eval('#words .picked', (one) => one.getBoundingClientRect().top < innerHeight / 2)));
  const known = await tab.$$eval('#words [data-word]', (all) => all.map((one) => one.dataset.word));
  check('every word that is linked has one', linked.every((word) => known.includes(word)), linked.filter((word) => !known.includes(word)).join());
  const needed = ['alpha', 'beta', 'busbw', 'dataflow', 'round', 'block', 'port', 'rank', 'crossover', 'bubble', 'exposed'];
  check('words that learners do not know are linked where they appear', needed.every((word) => linked.includes(word)), needed.filter((word) => !linked.includes(word)).join());
  await tab.keyboard.press('Escape');
  await wait(tab, () => !document.querySelector('#words'));
  check('and Escape leads back to it', await tab.evaluate(() => document.activeElement.matches('#race .facts .word')));
  await tab.close();
}

// --- For teachers: every task belongs to a lesson, and the page judges a class's files again.
{
  const formulas = ask({ ask: 'formula' }).json.tasks.map((one) => one.task), right = 'all_gather 4\nround\n0 -> 1: 0\n1 -> 0: 1\n2 -> 3: 2\n3 -> 2: 3\nround\n0 -> 2: 0,1\n2 -> 0: 2,3\n1 -> 3: 0,1\n3 -> 1: 2,3\n';
  const learner = await open('#tasks');
  await settled(learner);
  const type = (tab, label, value) => tab.evaluate((label, value) => {
    const input = [...document.querySelectorAll('#tasks .field')].find((one) => one.querySelector('label').textContent === label).querySelector('textarea, input');
    input.value = value;
    input.dispatchEvent(new Event('input', { bubbles: true }));
    input.dispatchEvent(new Event('change', { bubbles: true }));
  }, label, value);
  await type(learner, 'schedule, judged while you write', right);
  await wait(learner, () => /^1 tasks? solved/.test(document.querySelector('#tasks .mine [role=status]').textContent));
  await type(learner, 'your formula', 'N*S');
  await learner.waitForSelector('#tasks .card:last-child .proof.bad');
  await type(learner, 'your formula', '2*(N-1)/N*S');
  await wait(learner, () => /^2 tasks solved/.test(document.querySelector('#tasks .mine [role=status]').textContent));
  await type(learner, 'your name', '=Ada');
  await learner.evaluate(() => {
    URL.createObjectURL = (blob) => ((window.saved = blob.text()), '#');
    [...document.querySelectorAll('#tasks .mine button')].find((one) => one.textContent.startsWith('Save')).click();
  });
  const file = await learner.evaluate(() => window.saved);
  check('what a learner saves are name and answers', JSON.parse(file).name === '=Ada' && JSON.parse(file).results.ring_bytes.tries === 2 && JSON.parse(file).results['1-all-gather'].answer === right, file);
  await learner.close();

  const tab = await open('#instructor');
  await tab.waitForSelector('#class input:not([disabled])');
  const lessons = await texts(tab, '.lesson');
  check('six lessons have minutes, something to show, and questions', lessons.length === 6 && lessons.every((text) => /\d+ minutes/.test(text) && /Show\..*Ask\..*\?/s.test(text)));
  const files = [['ada', file], ['bob', JSON.stringify({ rankine: 'results', name: 'Bob', results: { '1-all-gather': { right: true, tries: 1, answer: 'broadcast 2\nround\n0 -> 1: 0\n' }, ring_bytes: { right: true, tries: 1, answer: 'N' }, 'break: ring among 3 ranks, seed 1': { right: true, tries: 1, answer: 'x' } } })], ['other', '{"rankine": "results"}']]
    .map(([name, text]) => (writeFileSync(join(resolve(cache), name + '.json'), text), join(resolve(cache), name + '.json')));
  await (await tab.$('#class input[type=file]')).uploadFile(...files);
  await wait(tab, () => document.querySelectorAll('#class tbody tr').length === 2 && document.querySelector('#class .error'));
  const [head, ...rows] = await tab.$$eval('#class tr', (all) => all.map((row) => [...row.children].map((cell) => cell.textContent)));
  const of = (row, task) => row[head.indexOf(task)];
  check('every task is in the table', formulas.every((task) => head.includes(task)) && head.filter((task) => /^\d-/.test(task)).length === 10, head.join());
  check('right answers count, and with how many tries', rows[0][0] === '=Ada' && of(rows[0], '1-all-gather') === '✓' && of(rows[0], 'ring_bytes') === '✓ 2' && of(rows[0], 'solved').startsWith('2 of '), rows[0].join());
  check('a file that only says that it is right does not', rows[1][0] === 'Bob' && of(rows[1], '1-all-gather') === '✗' && of(rows[1], 'ring_bytes') === '✗' && of(rows[1], 'guesses right') === '1 of 1', rows[1].join());
  check('another file is refused by its name', (await texts(tab, '#class .error')).join().startsWith('other.json is no file of results'));
  await tab.evaluate(() => {
    URL.createObjectURL = (blob) => ((window.saved = blob.text()), '#');
    [...document.querySelectorAll('#class button')].find((one) => one.textContent.startsWith('Save')).click();
  });
  const csv = (await tab.evaluate(() => window.saved)).split('\r\n');
  check('a spreadsheet gets the table, and no formula', csv.length === 4 && csv[1].startsWith(`"'=Ada","✓"`), csv[1]);
  // The targets of a lesson's links exist.
  const shows = await tab.$$eval('.lesson a', (all) => all.map((one) => one.getAttribute('href')));
  for (const show of shows) {
    const shown = await open(show);
    const section = show.slice(1).split('?')[0];
    await wait(shown, (section) => document.querySelector('#primitives .card') && !document.querySelector(`#${section} [aria-busy=true]`), section);
    const errors = await texts(shown, `#${section} .error`);
    check(`a lesson shows ${show}`, errors.length === 0 && (await shown.$eval('#' + section, (one) => Math.abs(one.getBoundingClientRect().top) < innerHeight)), errors.join());
    await shown.close();
  }
  await tab.close();

  const handout = await open('#handout');
  await wait(handout, () => document.querySelectorAll('main li').length > 30);
  const asked = (await texts(handout, 'main li b')).map((text) => text.replace(/\.$/, ''));
  check('the handout has every task, and every word', formulas.every((task) => asked.includes(task)) && asked.length === formulas.length + 10 && (await handout.$$('main [data-word]')).length > 25, asked.join());
  if (chromium) {
    await handout.emulateMediaType('print');
    check('on paper it has no controls', await handout.evaluate(() => [...document.querySelectorAll('button, nav, footer')].every((one) => !one.checkVisibility())));
    const pages = (Buffer.from(await handout.pdf({ format: 'A4' })).toString('latin1').match(/\/Type\s*\/Page\b/g) ?? []).length;
    check('and few pages', pages >= 3 && pages <= 9, `${pages}`);
  }
  await handout.close();
}
await browser.close();
done();
