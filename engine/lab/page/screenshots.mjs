// Takes pictures of the page with Chromium: screenshots.mjs CACHE PAGE [DIR]. With DIR it takes each section at the narrowest and the widest width
// of its design, light and dark, and at 1000 pixels; without DIR it takes the pictures of README and the guide, in their places.
import { mkdirSync } from 'node:fs';
import { createRequire } from 'node:module';
import { dirname, join, resolve } from 'node:path';
import { fileURLToPath, pathToFileURL } from 'node:url';

const [cache, page, into] = process.argv.slice(2);
const { default: puppeteer } = await import(pathToFileURL(createRequire(join(resolve(cache), 'package.json')).resolve('puppeteer-core')).href);
const sections = into ? ['race', 'primitives', 'player', 'timeline', 'cost', 'break', 'planner', 'papers', 'catalogue', 'tasks'] : ['race', 'player'];
const views = into ? [[1600, 'light'], [1000, 'light'], [360, 'light'], [1600, 'dark']] : [[1000, 'light']];
const fileOf = (section, width, scheme) => (into ? join(into, `${section}-${width}-${scheme}.png`) : join(dirname(fileURLToPath(import.meta.url)), `${section}.png`));

if (into) mkdirSync(into, { recursive: true });
const browser = await puppeteer.launch({ executablePath: process.env.CHROMIUM ?? '/usr/bin/chromium', args: ['--no-sandbox', '--force-device-scale-factor=1'] });
try {
  for (const [width, scheme] of views) {
    const tab = await browser.newPage();
    await tab.setViewport({ width, height: width > 1000 ? 1000 : 740 });
    await tab.emulateMediaFeatures([{ name: 'prefers-color-scheme', value: scheme }, { name: 'prefers-reduced-motion', value: 'reduce' }]);
    await tab.goto(pathToFileURL(resolve(page)).href + (process.env.PAGE_HASH ?? '#?player.k=2'));
    await tab.waitForSelector('[data-ready]', { timeout: 60000 });
    await tab.waitForFunction(() => document.querySelectorAll('#race dd').length > 15 && document.querySelectorAll('#cost .curve').length > 7 && document.querySelector('#planner td') && document.querySelector('#papers .drawings svg') && document.querySelector('#tasks .proof'), { timeout: 60000 });
    await new Promise((done) => setTimeout(done, 500));
    await tab.addStyleTag({ content: '.top { position: static !important; }' });
    // The picture shows the race half run.
    await tab.$eval('#race .transport input[type=range]', (slider) => {
      slider.value = '400';
      slider.dispatchEvent(new Event('input', { bubbles: true }));
    });
    for (const section of sections) {
      const part = await tab.$('#' + section);
      await part.screenshot({ path: fileOf(section, width, scheme) });
    }
    await tab.close();
  }
} finally {
  await browser.close();
}
